#include "kube/exec_plugin.hpp"

#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "kube/json_text.hpp"
#include "kube/program.hpp"
#include "kube/rfc3339.hpp"

namespace kube {

namespace {

using namespace std::chrono_literals;
using nlohmann::json;

std::unexpected<error> bad(std::string message) {
  return std::unexpected(error{errc::config, 0, std::move(message), {}});
}

std::string named(const exec_config& plugin) { return "credential plugin \"" + plugin.command + "\""; }

}  // namespace

bool have_terminal() { return ::isatty(0) && ::isatty(2); }

std::string exec_info(const exec_config& plugin, const cluster_config& cluster, const std::string& ca_pem,
                      bool interactive) {
  json info = {
      {"kind", "ExecCredential"}, {"apiVersion", plugin.api_version}, {"spec", {{"interactive", interactive}}}};
  if (plugin.provide_cluster_info) {
    json about = {{"server", cluster.server}};
    if (!cluster.tls_server_name.empty()) about["tls-server-name"] = cluster.tls_server_name;
    if (cluster.insecure) about["insecure-skip-tls-verify"] = true;
    if (!ca_pem.empty()) about["certificate-authority-data"] = base64_encode(ca_pem);
    if (!cluster.proxy_url.empty()) about["proxy-url"] = cluster.proxy_url;
    info["spec"]["cluster"] = std::move(about);
  }
  return info.dump(-1, ' ', false, json::error_handler_t::replace);
}

result<exec_credential> parse_exec_credential(std::string_view output, const exec_config& plugin) {
  const auto doc = json::parse(output, nullptr, false);
  if (doc.is_discarded() || !doc.is_object())
    return bad(named(plugin) + " printed something that is not an ExecCredential");
  if (doc.value("apiVersion", json()) != plugin.api_version)
    return bad(named(plugin) + " answered in another apiVersion than " + plugin.api_version +
               ", which the kubeconfig asks for");
  const auto status = doc.find("status");
  if (status == doc.end() || !status->is_object())
    return bad(named(plugin) + " printed an ExecCredential without status");
  exec_credential got;
  got.token = text_in(*status, "token");
  got.certificate = text_in(*status, "clientCertificateData");
  got.key = text_in(*status, "clientKeyData");
  if (got.token.empty() && got.certificate.empty())
    return bad(named(plugin) + " printed neither status.token nor status.clientCertificateData");
  if (got.certificate.empty() != got.key.empty())
    return bad(named(plugin) + " printed only one of status.clientCertificateData and status.clientKeyData");
  if (const auto until = text_in(*status, "expirationTimestamp"); !until.empty()) {
    const auto rfc3339 = parse_rfc3339(until);
    if (!rfc3339) return bad(named(plugin) + ": status.expirationTimestamp \"" + until + "\" is not RFC 3339");
    got.expires = std::chrono::system_clock::time_point(std::chrono::seconds(*rfc3339));
  }
  return got;
}

task<exec_credential> run_exec_plugin(exec_config plugin, std::string info, std::chrono::milliseconds limit) {
  const bool interactive = plugin.mode != exec_config::interactive::never && have_terminal();
  if (plugin.mode == exec_config::interactive::always && !interactive)
    co_return bad(named(plugin) + " must ask a person (interactiveMode: Always) and there is no terminal");
  program starts{.command = {plugin.command}, .has_terminal = interactive};
  starts.command.insert(starts.command.end(), plugin.args.begin(), plugin.args.end());
  for (const auto& [name, value] : plugin.env) starts.environment[name] = value;
  starts.environment["KUBERNETES_EXEC_INFO"] = std::move(info);
  auto end = co_await run(std::move(starts), limit);
  if (!end) {
    auto& problem = end.error();
    if (problem.code == errc::config)
      co_return bad(named(plugin) + ": " + problem.message +
                    (plugin.install_hint.empty() ? "" : "; " + last_line(plugin.install_hint)));
    problem.message = named(plugin) + (problem.code == errc::cancelled ? ": " : " ") + problem.message;
    co_return std::unexpected(std::move(problem));
  }
  if (end->status != 0) {
    const auto detail = last_line(std::move(end->complaints));
    co_return bad(named(plugin) + " " + end_in_words(end->status) + (detail.empty() ? "" : ": " + detail));
  }
  co_return parse_exec_credential(end->output, plugin);
}

}  // namespace kube
