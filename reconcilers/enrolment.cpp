#include "reconcilers/enrolment.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "reconcilers/intent.hpp"
#include "reconcilers/names.hpp"

namespace reconcilers {
namespace {

using namespace std::chrono_literals;
using controller::action;
using nlohmann::json;

constexpr auto label_path = "/metadata/labels/quartermaster.io~1module";
constexpr auto look_again = 250ms;
/// How long a store may be behind our own write before we look at it all the same.
constexpr auto lag_allowed = 2s;

const kube::object_key policy_key{{}, std::string(names::policy)};

std::uint64_t version_of(const json& object) {
  const auto text = object.value("/metadata/resourceVersion"_json_pointer, std::string());
  std::uint64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

/// A `test` for null is true where the member is absent (evanphx/json-patch, which the API server uses).
json label_patch(const std::string& uid, const std::string& from, const std::string& to) {
  auto out = json::array({{{"op", "test"}, {"path", "/metadata/uid"}, {"value", uid}},
                          {{"op", "test"}, {"path", label_path}, {"value", from.empty() ? json() : json(from)}}});
  if (to.empty()) {
    out.push_back({{"op", "remove"}, {"path", label_path}});
  } else {
    out.push_back({{"op", "add"}, {"path", label_path}, {"value", to}});
  }
  return out;
}

json bare(const std::string& name) {
  const auto& type = kube::resources::accelerator_nodes;
  return {{"apiVersion", type.api_version()}, {"kind", type.kind}, {"metadata", {{"name", name}}}};
}

json object_of(const std::string& name, const std::string& node_uid) {
  auto out = bare(name);
  auto& metadata = out["metadata"];
  metadata["labels"] = {{names::managed_by_label, names::managed_by}};
  metadata["ownerReferences"] =
      json::array({{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", name}, {"uid", node_uid}}});
  return out;
}

json status_of(const std::string& name, const mode_status& from) {
  auto out = bare(name);
  auto& status = out["status"];
  status = {{"requestedMode", from.requested_mode},
            {"actualMode", from.actual_mode},
            {"phase", from.phase},
            {"reason", from.reason},
            {"message", from.message},
            {"since", from.since}};
  if (!from.blockers.empty()) status["blockers"] = from.blockers;
  return out;
}

kube::write_options as_owner(std::string_view owner) {
  kube::write_options out;
  out.field_manager = owner;
  out.force = true;
  return out;
}

enum class belongs { to_this, to_another, to_none };
belongs owner_of(const accelerator_node& object, const kube::node& node) {
  auto out = belongs::to_none;
  for (const auto& owner : object.owners) {
    if (owner.kind != "Node") continue;
    if (owner.id == node.id) return belongs::to_this;
    out = belongs::to_another;
  }
  return out;
}

/// The world moved on between our look and our write; what it is now comes with the watch.
bool overtaken(kube::errc code) { return code == kube::errc::conflict || code == kube::errc::not_found; }

}  // namespace

enrolment::enrolment(stores from, kube::client& client, controller::recorder& events, settings how)
    : from_(from), client_(client), events_(events), how_(std::move(how)), pods_(from.pods, how_.ns) {
  from_.accelerator_nodes.observe([this](const accelerator_node* before, const accelerator_node* after) {
    if (after || !before) return;
    if (const auto at = written_.find(before->key.name); at != written_.end()) at->second.status_version = 0;
  });
}

bool enrolment::synced() const {
  return from_.policies.synced() && from_.nodes.synced() && from_.pods.synced() && from_.accelerator_nodes.synced();
}

const accelerator_policy* enrolment::policy() const {
  const auto* found = from_.policies.find(policy_key);
  return found && !found->deleting ? found : nullptr;
}

bool enrolment::concerns(const kube::node& node) const {
  return node.labels.contains(names::module_label) || from_.accelerator_nodes.find(node.key) ||
         intent_of(node, policy()).of != node_intent::kind::none;
}

bool enrolment::behind(const kube::node& node, const accelerator_node* object) {
  const auto at = written_.find(node.key.name);
  if (at == written_.end()) return false;
  const auto& wrote = at->second;
  const bool lags = node.resource_version < wrote.node_version ||
                    (wrote.status_version > 0 && (!object || object->resource_version < wrote.status_version));
  if (lags && how_.now() - at->second.at < lag_allowed) return true;
  written_.erase(at);
  return false;
}

node_state enrolment::state_of(const kube::node& node, const accelerator_node* object) {
  const auto* rules = policy();
  node_state out;
  out.wanted = intent_of(node, rules);
  out.placed = node.labels.value_or(names::module_label, "");
  out.placed_enabled = rules && rules->enabled(out.placed);
  out.allocatable = node.allocatable;
  out.plugins = pods_.plugins(node.key.name);
  out.holders = pods_.holders(node.key.name);
  out.now = controller::rfc3339_seconds(how_.wall());
  if (rules) out.verify_timeout = rules->enrolment.verify_timeout;
  if (object && !object->mode.phase.empty()) {
    out.before = object->mode;
    auto& seen = phases_[node.key.name];
    if (seen.phase != object->mode.phase) seen = {object->mode.phase, how_.now()};
    out.in_phase = how_.now() - seen.since;
  }
  return out;
}

kube::task<action> enrolment::reconcile(kube::object_key key) {
  if (!synced()) co_return action::again(look_again);
  const auto* node = from_.nodes.find(key);
  const auto* object = from_.accelerator_nodes.find(key);
  if (!node) {
    written_.erase(key.name);
    phases_.erase(key.name);
    if (!object || object->deleting) co_return action::await_change();
    co_return co_await remove(*object);
  }
  if (node->deleting || (object && object->deleting)) co_return action::await_change();
  if (behind(*node, object)) co_return action::again(lag_allowed);
  // Another node of the same name: what is said of the earlier one is void.
  if (object && owner_of(*object, *node) == belongs::to_another) co_return co_await remove(*object);
  co_return co_await bring(*node, object);
}

kube::task<action> enrolment::bring(const kube::node& node, const accelerator_node* object) {
  const auto is = state_of(node, object);
  const auto step = next_step(is);
  const auto name = node.key.name;
  const auto uid = node.id.to_string();
  const controller::object_reference about(kube::resources::nodes, node);
  const bool create = !object || owner_of(*object, node) != belongs::to_this;
  const bool says_so = step.status ? !create && is.before == step.status : !object;
  const std::optional<accelerator_node> last = object && !step.status ? std::optional(*object) : std::nullopt;

  if (step.relabel) {
    const auto version = node.resource_version;
    const auto done = co_await relabel(name, uid, is.placed, step.label);
    if (!done) {
      const auto* later = from_.nodes.find({{}, name});
      const bool moved = !later || later->resource_version != version;
      // A failed test reads like any other 422: only where the node has moved on is it the one we expect.
      if (overtaken(done.error().code) || (moved && done.error().code == kube::errc::invalid))
        co_return action::again(look_again);
      co_return std::unexpected(done.error());
    }
  }
  if (!says_so && step.status) {
    const auto done = co_await write_status(name, uid, create, *step.status);
    if (!done) {
      if (overtaken(done.error().code)) co_return action::again(look_again);
      co_return std::unexpected(done.error());
    }
  }
  if (step.tell) events_.record(about, step.tell->type, step.tell->reason, step.tell->action, step.tell->note);
  if (last) co_return co_await remove(*last);
  co_return action{step.again_in};
}

kube::task<void> enrolment::relabel(std::string name, std::string uid, std::string from, std::string to) {
  const auto patch = label_patch(uid, from, to);
  const auto options = as_owner(names::field_owner);
  auto answer = co_await client_.patch(kube::resources::nodes, {{}, name}, kube::patch_kind::json, patch, {}, options);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  auto& wrote = written_[name];
  wrote.node_version = version_of(*answer);
  wrote.at = how_.now();
  co_return kube::result<void>();
}

kube::task<void> enrolment::write_status(std::string name, std::string uid, bool create, mode_status status) {
  const auto& type = kube::resources::accelerator_nodes;
  const kube::object_key key{{}, name};
  const auto options = as_owner(names::node_field_owner);
  if (create) {
    const auto whole = object_of(name, uid);
    auto answer = co_await client_.apply(type, key, whole, options);
    if (!answer) co_return std::unexpected(std::move(answer.error()));
  }
  const auto body = status_of(name, status);
  auto answer = co_await client_.apply_status(type, key, body, options);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  auto& wrote = written_[name];
  wrote.status_version = version_of(*answer);
  wrote.at = how_.now();
  co_return kube::result<void>();
}

kube::task<action> enrolment::remove(const accelerator_node& object) {
  kube::preconditions only_if;
  only_if.uid = object.id.to_string();
  const auto key = object.key;
  const auto done = co_await client_.remove(kube::resources::accelerator_nodes, key, only_if);
  if (!done && !overtaken(done.error().code)) co_return std::unexpected(done.error());
  // The next look comes with the watch: the object is gone, or another has its name.
  phases_.erase(key.name);
  co_return action::await_change();
}

std::vector<kube::object_key> enrolment::affected_by(const kube::node* before, const kube::node* after) const {
  if (!after) return {before->key};
  if ((before && concerns(*before)) || concerns(*after)) return {after->key};
  return {};
}

std::vector<kube::object_key> enrolment::affected_by(const kube::pod* before, const kube::pod* after) const {
  return pods_.affected_by(before, after);
}

std::vector<kube::object_key> enrolment::affected_by(const accelerator_node* before,
                                                     const accelerator_node* after) const {
  return {after ? after->key : before->key};
}

std::vector<kube::object_key> enrolment::affected_by(const accelerator_policy* before,
                                                     const accelerator_policy* after) const {
  const auto& any = after ? *after : *before;
  if (any.key != policy_key) return {};
  const auto same_switch = [&](const modules::module_type& one) {
    return before->enabled(one.name) == after->enabled(one.name);
  };
  if (before && after && before->id == after->id && before->deleting == after->deleting &&
      before->enrolment == after->enrolment && std::ranges::all_of(modules::catalogue(), same_switch))
    return {};
  std::vector<kube::object_key> out;
  for (const auto& node : from_.nodes.all()) {
    if (concerns(node)) out.push_back(node.key);
  }
  return out;
}

}  // namespace reconcilers
