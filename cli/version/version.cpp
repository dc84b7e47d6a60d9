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
#include "cli/flags/flags.hpp"
#include "cli/verbs.hpp"
#include "kube/client.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using nlohmann::json;

constexpr std::string_view example = R"(Examples:
  $ quartermaster version
  quartermaster 0.1.0 (Kubernetes 1.30 to 1.37)
  operator 0.1.0 in namespace quartermaster (quartermaster:0.1.0)
  $ quartermaster version --client       # no cluster is asked

What cannot be seen of the operator is named, and is no failure.
Exit codes: 0 done, 2 wrong usage.)";

/// Of the chart's Deployment next to the lease: version, namespace and image; or why it is not known.
kube::task<void> read_operator(kube::transport& transport, json& out) {
  static constexpr kube::resource deployments{"apps", "v1", "deployments", "Deployment", true};
  const auto lease = co_await find_lease(transport, {});
  if (!lease) co_return std::unexpected(lease.error());
  if (!*lease) {
    out["unknown"] = "no operator is installed: there is no lease quartermaster";
    co_return kube::result<void>();
  }
  kube::list_options options;
  options.ns = (*lease)->key.ns;
  options.label_selector = "app.kubernetes.io/name=quartermaster";
  kube::client api(transport);
  const auto listed = co_await api.list(deployments, options);
  if (!listed) co_return std::unexpected(listed.error());
  out["namespace"] = options.ns;
  for (const auto& entry : *listed) {
    const auto version = entry.value("/metadata/labels/app.kubernetes.io~1version"_json_pointer, json());
    const auto image = entry.value("/spec/template/spec/containers/0/image"_json_pointer, json());
    if (!version.is_string() || !image.is_string()) continue;
    out["version"] = version, out["image"] = image;
    co_return kube::result<void>();
  }
  out["unknown"] = "namespace " + options.ns + " has its lease, and no Deployment of the chart";
  co_return kube::result<void>();
}

json operator_of(const cluster_options& options) {
  json out = json::object();
  const auto read = ask_cluster(options, [&](kube::transport& transport) { return read_operator(transport, out); });
  if (!read) out = {{"unknown", read.error().message}};
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

std::string line_of(const json& about) {
  const auto part = [&](const char* name) { return text::shown(about.value(name, ""), 1000); };
  if (about.contains("unknown")) return "operator not known: " + part("unknown");
  return "operator " + part("version") + " in namespace " + part("namespace") + " (" + part("image") + ")";
}

}  // namespace

std::string version_line() { return "quartermaster " QUARTERMASTER_VERSION; }

void add_version(CLI::App& app, int& rc) {
  struct options {
    std::string format = "text";
    bool is_client = false;
    cluster_options cluster;
  };
  auto* verb = add_verb(app, "version", "Print the versions of program and operator, and of Kubernetes they support");
  auto flags = std::make_shared<options>();
  add_option(*verb, "-o,--output", flags->format, "text or json")->check(choice({"text", "json"}));
  add_flag(*verb, "--client", flags->is_client, "Of this program alone; no cluster is asked");
  add_cluster_options(*verb, flags->cluster);
  verb->footer(std::string(example));
  verb->callback([flags, &rc] {
    if (flags->cluster.deadline.empty()) flags->cluster.deadline = "5s";
    const auto about = flags->is_client ? json() : operator_of(flags->cluster);
    if (flags->format == "json") {
      auto out = as_json();
      if (!about.is_null()) out["operator"] = about;
      std::cout << out.dump(-1, ' ', false, json::error_handler_t::replace) << "\n";
    } else {
      std::cout << version_line() << " (Kubernetes 1.30 to 1.37)\n";
      if (!about.is_null()) std::cout << line_of(about) << "\n";
    }
    rc = 0;
  });
}

}  // namespace cli
