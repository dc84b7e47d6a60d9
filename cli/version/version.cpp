// quartermaster version

#include <curl/curl.h>
#include <gnu/libc-version.h>
#include <openssl/crypto.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/cluster/cluster.hpp"
#include "cli/cluster/operator_lease.hpp"
#include "cli/cluster/refusal.hpp"
#include "cli/flags/flags.hpp"
#include "cli/output/answer.hpp"
#include "cli/verbs.hpp"
#include "controller/clock.hpp"
#include "kube/client.hpp"
#include "kube/json_text.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using json = nlohmann::ordered_json;

constexpr std::string_view example = R"(Examples:
  $ quartermaster version
  quartermaster 0.1.0 (Kubernetes 1.30 to 1.37)
  operator 0.1.0 in namespace quartermaster (quartermaster:0.1.0)
  $ quartermaster version --client       # no cluster is asked

What cannot be seen of the operator is named, and is no failure; nor is a cluster in which none runs.
Exit codes: 0 done, 2 wrong usage.)";

/// The operator of a cluster.
struct operator_found {
  std::string version, ns, image;  ///< of the chart's Deployment
  text::phrase unknown;            ///< why these are not known; empty: they are
  text::phrase absence;            ///< why none runs; empty: one does, or it is not known
};

/// Why no operator runs where this lease is; empty: one does.
kube::task<text::phrase> absence_of_holder(kube::transport& transport, kube::lease lease) {
  if (lease.holder.empty()) co_return text::phrase{"version.no_holder", {{"namespace", lease.key.ns}}};
  if (looks_fresh(lease)) co_return text::phrase();
  const auto renewed = co_await is_renewed(transport, lease);
  if (!renewed) co_return std::unexpected(renewed.error());
  if (*renewed) co_return text::phrase();
  const std::chrono::system_clock::time_point last{std::chrono::microseconds(lease.renewed_us)};
  co_return text::phrase{"version.silent", {{"namespace", lease.key.ns}, {"time", controller::rfc3339_millis(last)}}};
}

/// Of the chart's Deployment next to the lease.
kube::task<void> read_operator(kube::transport& transport, operator_found& out) {
  static constexpr kube::resource deployments{"apps", "v1", "deployments", "Deployment", true};
  const auto lease = co_await find_lease(transport, {});
  if (!lease) co_return std::unexpected(lease.error());
  if (!*lease) {
    out.unknown = out.absence = {"version.no_lease"};
    co_return kube::result<void>();
  }
  out.ns = (*lease)->key.ns;
  auto absence = co_await absence_of_holder(transport, **lease);
  if (!absence) co_return std::unexpected(absence.error());
  out.absence = std::move(*absence);
  kube::list_options options;
  options.ns = out.ns;
  options.label_selector = "app.kubernetes.io/name=quartermaster";
  kube::client api(transport);
  const auto listed = co_await api.list(deployments, options);
  if (!listed) co_return std::unexpected(listed.error());
  for (const auto& entry : *listed) {
    const auto version = kube::text_at(entry, "/metadata/labels/app.kubernetes.io~1version");
    const auto image = kube::text_at(entry, "/spec/template/spec/containers/0/image");
    if (version.empty() || image.empty()) continue;
    out.version = version, out.image = image;
    co_return kube::result<void>();
  }
  out.unknown = {"version.no_deployment", {{"namespace", out.ns}}};
  co_return kube::result<void>();
}

operator_found operator_of(const cluster_options& options) {
  operator_found out;
  const auto read = ask_cluster(options, [&](kube::transport& transport) { return read_operator(transport, out); });
  if (!read) out.version.clear(), out.image.clear(), out.unknown = phrase_of(read.error());
  return out;
}

json as_json(const operator_found& found) {
  json out = json::object();
  if (!found.ns.empty()) out["namespace"] = found.ns;
  if (found.unknown.empty())
    out["version"] = found.version, out["image"] = found.image;
  else
    out["unknown"] = words_of(found.unknown, text::language::en);
  if (found.unknown.empty() || !found.absence.empty()) out["runs"] = found.absence.empty();
  if (!found.absence.empty()) out["reason"] = words_of(found.absence, text::language::en);
  return out;
}

json as_json() {
  // Of the libraries that this process has loaded: a scanner cannot look into a static executable.
  const json libraries = {{"openssl", OpenSSL_version(OPENSSL_VERSION_STRING)},
                          {"curl", curl_version_info(CURLVERSION_NOW)->version},
                          {"glibc", gnu_get_libc_version()}};
  return {
      {"version", QUARTERMASTER_VERSION}, {"kubernetes", {{"from", "1.30"}, {"to", "1.37"}}}, {"libraries", libraries}};
}

std::string line_of(const operator_found& found, text::language locale) {
  const auto plain = [](const std::string& value) { return text::shown(value, 1000); };
  const auto reason = plain(words_of(found.absence.empty() ? found.unknown : found.absence, locale));
  if (!found.unknown.empty())
    return text::message(found.absence.empty() ? "version.unknown" : "version.none", locale, {{"reason", reason}});
  return text::message(found.absence.empty() ? "version.operator" : "version.stopped", locale,
                       {{"version", plain(found.version)},
                        {"namespace", plain(found.ns)},
                        {"image", plain(found.image)},
                        {"reason", reason}});
}

}  // namespace

std::string version_line() { return "quartermaster " QUARTERMASTER_VERSION; }

void add_version(CLI::App& app, int& rc) {
  struct options : report_style {
    bool is_client = false;
    cluster_options cluster;
  };
  auto* verb = add_verb(app, "version", "Print the versions of program and operator, and of Kubernetes they support");
  auto flags = std::make_shared<options>();
  add_answer_options(*verb, flags->language, flags->output);
  add_flag(*verb, "--client", flags->is_client, "Of this program alone; no cluster is asked");
  add_cluster_options(*verb, flags->cluster);
  verb->footer(std::string(example));
  verb->callback([flags, &rc] {
    if (flags->cluster.deadline.empty()) flags->cluster.deadline = "5s";
    const auto found = flags->is_client ? std::nullopt : std::optional(operator_of(flags->cluster));
    auto all = as_json();
    if (found) all["operator"] = as_json(*found);
    if (!printed_as_data(all, flags->output, std::cout)) {
      const auto locale = bilingual(flags->language).locale();
      std::cout << text::message("version.program", locale, {{"version", version_line()}}) << "\n";
      if (found) std::cout << line_of(*found, locale) << "\n";
    }
    rc = 0;
  });
}

}  // namespace cli
