#include "reconcilers/admission/webhook_config.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/names.hpp"
#include "controller/log.hpp"
#include "kube/config.hpp"
#include "kube/json_text.hpp"
#include "reconcilers/admission/admission.hpp"
#include "reconcilers/admission/certificate_secret.hpp"

namespace reconcilers {
namespace {

using namespace std::chrono_literals;
using controller::action;
using controller::milliseconds;
using nlohmann::json;
namespace log = controller::log;

constexpr milliseconds lag_allowed = 2s;
constexpr milliseconds between_tellings = 500ms;  // if another program writes the caBundle, we do not race with it
constexpr milliseconds at_least_every = 1h;
constexpr std::string_view service = names::webhook;

std::int64_t system_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

controller::authority_settings issuing(const webhook_settings& settings) {
  controller::authority_settings out;
  out.name = service;
  const auto host = std::string(service) + "." + settings.ns + ".svc";
  out.names = {host, host + ".cluster.local"};
  if (!settings.url.empty()) out.names.push_back(host_of(settings.url).value_or(""));
  std::erase(out.names, "");
  return out;
}

const kube::object_key configuration_key{{}, std::string(names::webhook_configuration)};

std::string path_of(std::string_view webhook) {
  for (const auto& entry : {mutate_pods_route, compatibility_route}) {
    if (entry.webhook == webhook) return std::string(entry.path);
  }
  return {};
}

json test(const std::string& path, json value) { return {{"op", "test"}, {"path", path}, {"value", std::move(value)}}; }

}  // namespace

std::int64_t webhook_settings::wall_seconds() const { return wall ? wall() : system_seconds(); }

std::optional<std::string> host_of(std::string_view url) {
  constexpr std::string_view scheme = "https://";
  if (!url.starts_with(scheme) || url.find_first_of("?#@ ") != url.npos) return std::nullopt;
  url.remove_prefix(scheme.size());
  url = url.substr(0, url.find('/'));
  if (url.starts_with('[')) {
    const auto end = url.find(']');
    if (end == url.npos || end == 1) return std::nullopt;
    return std::string(url.substr(1, end - 1));
  }
  url = url.substr(0, url.find(':'));
  if (url.empty()) return std::nullopt;
  return std::string(url);
}

std::vector<std::string> webhook_stores::told() const {
  std::vector<std::string> out;
  if (const auto* configuration = mutating.find(configuration_key))
    for (const auto& webhook : configuration->webhooks) out.push_back(webhook.authorities);
  return out;
}

webhook_config::webhook_config(webhook_stores webhook_stores, kube::client& client, webhook_settings settings)
    : stores_(webhook_stores), client_(client), settings_(std::move(settings)), issuing_(issuing(settings_)) {}

std::string webhook_config::url_of(const webhook_entry& entry) const {
  const auto path = path_of(entry.name);
  return settings_.url.empty() || path.empty() ? entry.url : settings_.url + path;
}

bool webhook_config::right(const webhook_entry& entry, const std::string& authorities) const {
  return entry.authorities == authorities && entry.url == url_of(entry);
}

json webhook_config::patch_of(const mutating_webhooks& mutating_webhooks, const std::string& authorities) const {
  auto out = json::array({test("/metadata/uid", mutating_webhooks.id.to_string())});
  const auto bundle = kube::base64_encode(authorities);
  for (std::size_t i = 0; i < mutating_webhooks.webhooks.size(); ++i) {
    const auto& entry = mutating_webhooks.webhooks[i];
    if (right(entry, authorities)) continue;
    const auto position = "/webhooks/" + std::to_string(i);
    out.push_back(test(position + "/name", entry.name));
    if (entry.url == url_of(entry)) {
      out.push_back({{"op", "add"}, {"path", position + "/clientConfig/caBundle"}, {"value", bundle}});
    } else {
      out.push_back({{"op", "replace"},
                     {"path", position + "/clientConfig"},
                     {"value", {{"url", url_of(entry)}, {"caBundle", bundle}}}});
    }
  }
  return out;
}

void webhook_config::say_foreign(const webhook_secret& secret) {
  if (!std::exchange(said_foreign_, true)) log_foreign(secret);
}

kube::task<action> webhook_config::reconcile(kube::object_key key) {
  if (key.name != names::webhook) co_return action::await_change();
  if (!stores_.synced()) co_return action::again(250ms);
  const auto bundles = stores_.told();
  if (bundles.empty()) co_return action::await_change();
  const auto* secret = stores_.secrets.find({settings_.ns, std::string(names::webhook)});
  if (secret && !is_ours(*secret)) {
    say_foreign(*secret);
    co_return action::await_change();
  }
  said_foreign_ = false;
  const auto seen = secret ? secret->resource_version : 0;
  if (seen < stored_version_ && settings_.now() - stored_at_ < lag_allowed) co_return action::again(250ms);

  auto step = controller::next_step(secret ? secret->keys : controller::authority_keys(), bundles,
                                    settings_.wall_seconds(), issuing_);
  if (step.action == controller::authority_step::kind::store) co_return co_await store(std::move(step));
  const auto* configuration = stores_.mutating.find(configuration_key);
  const auto wrong = [&](const webhook_entry& webhook_entry) { return !right(webhook_entry, step.keys.authorities); };
  if (configuration && std::ranges::any_of(configuration->webhooks, wrong))
    co_return co_await tell(step.keys.authorities);
  issuing_.earlier = std::move(step.keys.authorities);
  co_return action::again(std::min<milliseconds>(step.again, at_least_every));
}

kube::task<action> webhook_config::store(controller::authority_step step) {
  const kube::object_key key{settings_.ns, std::string(names::webhook)};
  stored_at_ = settings_.now();
  const auto version = co_await apply_certificates(client_, key, stores_.secrets.find(key), step.keys);
  if (!version && version.error().code == kube::errc::conflict) co_return action::again(250ms);
  if (!version) co_return std::unexpected(version.error());
  stored_version_ = *version;
  log::info("webhook certificates stored", {{"why", step.reason}});
  co_return action::again(lag_allowed);
}

kube::task<action> webhook_config::tell(std::string authorities) {
  const auto now = settings_.now();
  if (now - told_at_ < between_tellings) co_return action::again(between_tellings - (now - told_at_));
  told_at_ = now;
  const auto* configuration = stores_.mutating.find(configuration_key);
  if (!configuration) co_return action::again(between_tellings);
  const auto& type = mutating_webhooks::of();
  const auto patch = patch_of(*configuration, authorities);
  const auto answer = co_await client_.patch(type, configuration_key, kube::patch_kind::json, patch);
  if (!answer) {
    const auto code = answer.error().code;
    const bool moved = code == kube::errc::conflict || code == kube::errc::not_found;
    if (moved) co_return action::again(between_tellings);
    co_return std::unexpected(answer.error());
  }
  log::info("webhook callers told of the authorities", {{"configuration", type.kind}});
  co_return action::again(lag_allowed);
}

webhook_certificate::webhook_certificate(webhook_stores webhook_stores, webhook_settings settings,
                                         controller::http_server& server)
    : stores_(webhook_stores), settings_(std::move(settings)), server_(server) {}

milliseconds webhook_certificate::look() {
  const auto* secret = stores_.secrets.find({settings_.ns, std::string(names::webhook)});
  if (!secret || secret->keys.leaf == certificate_ || secret->keys == refused_) return at_least_every;
  const auto& keys = secret->keys;
  const auto decision = gate_.look(keys, stores_.told(), server_.serving(), settings_.now(), settings_.wall_seconds());
  if (decision.show) {
    const auto taken = server_.show({keys.leaf, {}});
    if (taken) {
      certificate_ = keys.leaf;
      refused_ = {};
    } else {
      log::warn("stored certificate refused", {{"error", taken.error().message}});
      refused_ = keys;
    }
  } else if (!decision.reason.empty()) {
    server_.reject_certificate(decision.reason);
    refused_ = keys;
  }
  return decision.again > 0ms ? decision.again : at_least_every;
}

kube::task<void> webhook_certificate::run() {
  for (;;) {
    const auto wait = look();
    const auto woken = co_await kube::wait_list::wait(changed_, std::chrono::steady_clock::now() + wait);
    if (woken == kube::woken::by_cancellation)
      co_return std::unexpected(kube::error{kube::errc::cancelled, 0, "stopped", {}});
  }
}

std::string webhook_certificate::problem() const {
  if (server_.serving() || stores_.told().empty()) return {};
  return "no certificate yet: the leader makes it";
}

}  // namespace reconcilers
