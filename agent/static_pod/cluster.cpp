#include "agent/static_pod/cluster.hpp"

#include <boost/asio/this_coro.hpp>

#include "api/names.hpp"
#include "kube/config.hpp"
#include "kube/curl_transport.hpp"
#include "kube/json_text.hpp"
#include "scheduler_config/url.hpp"

namespace agent::static_pod {
namespace {

using kube::text_at;
using nlohmann::json;
namespace config = scheduler_config;

constexpr auto schedulers_namespace = "kube-system", schedulers_lease = "kube-scheduler";
constexpr auto service_name = "quartermaster-extender", client_secret = "quartermaster-extender-client";

/// Null where there is none.
kube::task<json> get_if_there(kube::client& api, const kube::resource& type, kube::object_key key) {
  auto got = co_await api.get(type, std::move(key));
  if (!got && got.error().code == kube::errc::not_found) co_return json();
  co_return got;
}

std::string secret_text(const json& secret, const char* key) {
  const auto position = json::json_pointer("/data") / std::string(key);
  if (!secret.contains(position) || !secret.at(position).is_string()) return {};
  return kube::base64_decode(secret.at(position).get<std::string>()).value_or("");
}

std::string port_of(const json& service) {
  const auto port = service.value("/spec/ports/0/port"_json_pointer, json());
  return port.is_number_integer() ? std::to_string(port.get<int>()) : "443";
}

std::expected<config::extender_settings, text::phrase> extender_of(const json& secret, const json& service,
                                                                   const static_pod::options& options) {
  const auto wrong = [&](const char* key, const char* name) {
    return std::unexpected(
        text::phrase{std::string("static_pod.") + key, {{"namespace", options.ns}, {"name", std::string(name)}}});
  };
  config::extender_settings out;
  if (secret.is_null()) return wrong("no_secret", client_secret);
  out.ca = secret_text(secret, "ca.crt");
  out.certificate = secret_text(secret, "tls.crt");
  out.key = secret_text(secret, "tls.key");
  if (out.ca.empty() || out.certificate.empty() || out.key.empty()) return wrong("secret_incomplete", client_secret);
  out.url = options.extender_url;
  if (out.url.empty()) {
    const auto ip = text_at(service, "/spec/clusterIP");
    if (ip.empty() || ip == "None") return wrong("no_service", service_name);
    out.url = "https://" + (ip.contains(':') ? "[" + ip + "]" : ip) + ":" + port_of(service);
  }
  if (config::split_url(out.url).path.size() <= 1) {
    if (out.url.ends_with('/')) out.url.pop_back();
    out.url += "/scheduler";
  }
  out.server_name = std::string(service_name) + "." + options.ns + ".svc";
  return out;
}

kube::task<void> answered(kube::cluster_config config, std::string path, bool any_status) {
  kube::transport_options options;
  options.unary_deadline = std::chrono::seconds(3);
  kube::curl_transport transport(co_await boost::asio::this_coro::executor, std::move(config), options);
  kube::request request;
  request.target = std::move(path);
  request.accept = "*/*";
  const auto answer = co_await transport.send(std::move(request));
  if (!answer) co_return std::unexpected(answer.error());
  if (any_status || answer->status == 200) co_return kube::result<void>();
  co_return std::unexpected(
      kube::error{kube::errc::server, answer->status, "HTTP status " + std::to_string(answer->status), {}});
}

}  // namespace

kube::task<static_pod_cluster> look_at_cluster(kube::client& api, const static_pod::options& options, std::string pod) {
  static_pod_cluster out;
  const kube::object_key policy_key{{}, std::string(api::names::policy)};
  const auto policy = co_await get_if_there(api, kube::resources::accelerator_policies, policy_key);
  if (!policy) co_return std::unexpected(policy.error());
  out.asked_for = policy->is_object() && text_at(*policy, "/spec/scheduler/mode") == "StaticPod" &&
                  !policy->value("/spec/removing"_json_pointer, false);

  const kube::object_key secret_key{options.ns, client_secret}, service_key{options.ns, service_name};
  const auto secret = co_await get_if_there(api, kube::resources::secrets, secret_key);
  if (!secret) co_return std::unexpected(secret.error());
  const auto service = co_await get_if_there(api, kube::resources::services, service_key);
  if (!service) co_return std::unexpected(service.error());
  out.extender = extender_of(*secret, *service, options);

  kube::list_options list_options;
  list_options.ns = schedulers_namespace;
  list_options.label_selector = "component=kube-scheduler";
  auto schedulers = co_await api.list(kube::resources::pods, list_options);
  if (!schedulers) co_return std::unexpected(schedulers.error());
  out.schedulers = std::move(*schedulers);
  for (const auto& scheduler : out.schedulers) {
    if (text_at(scheduler, "/metadata/name") == pod) out.mirror = scheduler;
  }
  const kube::object_key lease_key{schedulers_namespace, schedulers_lease};
  const auto lease = co_await get_if_there(api, kube::resources::leases, lease_key);
  if (!lease) co_return std::unexpected(lease.error());
  if (const auto renewed = text_at(*lease, "/spec/renewTime"); !renewed.empty()) out.renewed = renewed;

  const kube::object_key rows_key{options.ns, static_pod_name};
  const auto rows = co_await get_if_there(api, kube::resources::config_maps, rows_key);
  if (!rows) co_return std::unexpected(rows.error());
  out.has_rows = rows->is_object();
  const auto data = out.has_rows ? rows->value("data", json::object()) : json::object();
  for (const auto& [node, text] : data.items()) {
    if (text.is_string()) out.rows[node] = agent::static_pod::read_row(text.get<std::string>());
  }
  for (const auto& [node, row] : out.rows) {
    const bool is_changing = agent::static_pod::between(row);
    if (node == options.node || (!is_changing && row.tried.empty())) continue;
    // A control-plane node that is gone leaves its row.
    const kube::object_key node_key{{}, node};
    const auto there = co_await get_if_there(api, kube::resources::nodes, node_key);
    if (!there) co_return std::unexpected(there.error());
    if (there->is_null()) continue;
    if (is_changing)
      out.busy_node = node;
    else
      out.rolled_back[node] = row;
  }
  co_return out;
}

kube::task<void> try_extender(const config::extender_settings& settings) {
  kube::cluster_config config;
  config.server = settings.url.substr(0, settings.url.find('/', settings.url.find("://") + 3));
  config.source = std::string("Secret ") + client_secret;
  config.ca.data = settings.ca;
  config.tls_server_name = settings.server_name;
  config.user.certificate.data = settings.certificate;
  config.user.key.data = settings.key;
  co_return co_await answered(std::move(config), "/", true);
}

kube::task<void> try_healthz(std::string base) {
  kube::cluster_config config;
  config.server = std::move(base);
  config.insecure = true;
  co_return co_await answered(std::move(config), "/healthz", false);
}

}  // namespace agent::static_pod
