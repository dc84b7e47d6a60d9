#include "controller/leader_label.hpp"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "controller/log.hpp"
#include "controller/sleep.hpp"
#include "kube/json_text.hpp"

namespace controller {
namespace {

using kube::text_at;
using nlohmann::json;

/// A merge patch: null takes the label off. The UID is a precondition, as the API server compares it.
json label_patch(const std::string& uid, const json& value) {
  json patch = {{"metadata", {{"labels", {{leader_label, value}}}}}};
  if (!uid.empty()) patch["metadata"]["uid"] = uid;
  return patch;
}

kube::task<void> mark_once(kube::client& api, own_pod self) {
  kube::list_options marked;
  marked.ns = self.key.ns;
  marked.label_selector = std::string(leader_label) + "=true";
  const auto others = co_await api.list(kube::resources::pods, marked);
  if (!others) co_return std::unexpected(others.error());
  for (const auto& pod : *others) {
    const kube::object_key key{self.key.ns, text_at(pod, "/metadata/name")};
    if (key == self.key) continue;
    const json object = label_patch(text_at(pod, "/metadata/uid"), nullptr);
    const auto done = co_await api.patch(kube::resources::pods, key, kube::patch_kind::merge, object);
    // Gone or replaced meanwhile: then it does not bear the label either.
    const bool gone =
        !done && (done.error().code == kube::errc::not_found || done.error().code == kube::errc::conflict);
    if (!done && !gone) co_return std::unexpected(done.error());
    log::info("leader label taken off a former leader", {{"pod", key.to_string()}});
  }
  const json patch = label_patch({}, "true");
  const auto done = co_await api.patch(kube::resources::pods, self.key, kube::patch_kind::merge, patch);
  if (!done) co_return std::unexpected(done.error());
  co_return kube::result<void>();
}

}  // namespace

own_pod own_pod::of_environment() {
  const auto text = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value ? value : "");
  };
  own_pod out;
  out.key = {text("POD_NAMESPACE"), text("POD_NAME")};
  if (out.key.ns.empty()) out.key.name.clear();
  return out;
}

kube::task<void> mark_leader(kube::client& api, own_pod self) {
  if (self.key.name.empty()) co_return kube::result<void>();
  for (milliseconds wait(500);; wait = std::min(wait * 2, milliseconds(60'000))) {
    const auto done = co_await mark_once(api, self);
    // The fence says cancelled when we do not lead any more.
    if (done || done.error().code == kube::errc::cancelled) co_return done;
    log::warn("leader label not set, retrying", {{"pod", self.key.to_string()}, {"error", done.error().message}});
    const bool slept = co_await sleep_for(wait);
    if (!slept) co_return std::unexpected(kube::error{kube::errc::cancelled, 0, "stopped", {}});
  }
}

kube::task<void> unmark_leader(kube::client& api, own_pod self) {
  if (self.key.name.empty()) co_return kube::result<void>();
  const json object = label_patch({}, nullptr);
  const auto done = co_await api.patch(kube::resources::pods, self.key, kube::patch_kind::merge, object);
  if (!done && done.error().code != kube::errc::not_found) co_return std::unexpected(done.error());
  co_return kube::result<void>();
}

}  // namespace controller
