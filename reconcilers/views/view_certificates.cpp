#include "reconcilers/views/view_certificates.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "controller/log.hpp"
#include "kube/config.hpp"
#include "kube/json_text.hpp"
#include "kube/wire.hpp"
#include "reconcilers/admission/certificate_secret.hpp"

namespace reconcilers {
namespace {

using namespace std::chrono_literals;
using controller::action;
using controller::milliseconds;
namespace log = controller::log;
namespace wire = kube::wire;

constexpr milliseconds lag_allowed = 2s;
constexpr milliseconds between_tellings = 500ms;  // if another program writes the caBundle, we do not race with it
constexpr milliseconds longest_rest = 1h;
constexpr kube::resource api_services{"apiregistration.k8s.io", "v1", "apiservices", "APIService", false};
const kube::object_key service_key{{}, std::string(names::view_service)};

std::int64_t system_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

const kube::resource& api_service::of() { return api_services; }

kube::result<api_service> api_service::decode(std::string_view bytes) {
  return wire::decode<api_service>(bytes, [](std::string_view whole, api_service& made) {
    wire::each_field(
        whole, wire::field<1>([&](std::string_view meta) {
          wire::read_metadata(meta, made, kube::keep_none, kube::keep_none);
        }),
        wire::field<2>([&](std::string_view spec) { wire::each_field(spec, wire::field<5>(made.authorities)); }));
  });
}

view_certificates::view_certificates(view_stores stores, kube::client& client, settings settings)
    : stores_(stores), client_(client), settings_(std::move(settings)) {
  if (!settings_.wall) settings_.wall = system_seconds;
  issuing_.name = names::views;
  const auto host = std::string(names::views) + "." + settings_.ns + ".svc";
  issuing_.names = {host, host + ".cluster.local"};
}

kube::task<action> view_certificates::reconcile(kube::object_key key) {
  if (key.name != names::views) co_return action::await_change();
  if (!stores_.synced()) co_return action::again(250ms);
  const auto* service = stores_.services.find(service_key);
  if (!service) co_return action::await_change();
  const auto* secret = stores_.secrets.find({settings_.ns, std::string(names::views)});
  const bool is_foreign = secret && !is_ours(*secret);
  if (is_foreign && !std::exchange(is_foreign_known_, true)) log_foreign(*secret);
  is_foreign_known_ = is_foreign;
  if (is_foreign) co_return action::await_change();
  const auto seen = secret ? secret->resource_version : 0;
  if (seen < stored_version_ && settings_.now() - stored_at_ < lag_allowed) co_return action::again(250ms);
  const std::vector<std::string> bundles{service->authorities};
  auto step =
      controller::next_step(secret ? secret->keys : controller::authority_keys(), bundles, settings_.wall(), issuing_);
  if (step.action == controller::authority_step::kind::store) co_return co_await store(std::move(step));
  if (service->authorities != step.keys.authorities) co_return co_await tell(step.keys.authorities);
  issuing_.earlier = std::move(step.keys.authorities);
  co_return action::again(std::min<milliseconds>(step.again, longest_rest));
}

kube::task<action> view_certificates::store(controller::authority_step step) {
  const kube::object_key key{settings_.ns, std::string(names::views)};
  stored_at_ = settings_.now();
  const auto version = co_await apply_certificates(client_, key, stores_.secrets.find(key), step.keys);
  if (!version && version.error().code == kube::errc::conflict) co_return action::again(250ms);
  if (!version) co_return std::unexpected(version.error());
  stored_version_ = *version;
  log::info("certificates of the views stored", {{"why", step.reason}});
  co_return action::again(lag_allowed);
}

kube::task<action> view_certificates::tell(std::string authorities) {
  const auto now = settings_.now();
  if (now - told_at_ < between_tellings) co_return action::again(between_tellings - (now - told_at_));
  told_at_ = now;
  const auto* service = stores_.services.find(service_key);
  if (!service) co_return action::await_change();
  auto patch = nlohmann::json::array();
  patch.push_back({{"op", "test"}, {"path", "/metadata/uid"}, {"value", service->id.to_string()}});
  patch.push_back({{"op", "add"}, {"path", "/spec/caBundle"}, {"value", kube::base64_encode(authorities)}});
  const auto answer = co_await client_.patch(api_services, service_key, kube::patch_kind::json, patch);
  if (!answer) {
    const auto code = answer.error().code;
    const bool has_moved = code == kube::errc::conflict || code == kube::errc::not_found;
    if (has_moved) co_return action::again(between_tellings);
    co_return std::unexpected(answer.error());
  }
  log::info("API servers trust the authorities of the views", {{"service", names::view_service}});
  co_return action::again(lag_allowed);
}

}  // namespace reconcilers
