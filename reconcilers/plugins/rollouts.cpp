#include "reconcilers/plugins/rollouts.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/memory.hpp"
#include "api/names.hpp"
#include "kube/json_text.hpp"
#include "kube/projections/from_json.hpp"
#include "reconcilers/modules/node_sets.hpp"
#include "reconcilers/nodes/mode_change.hpp"
#include "reconcilers/nodes/suitable_runtime.hpp"

namespace reconcilers {
namespace {

using namespace std::chrono_literals;
using controller::action;
using nlohmann::json;

constexpr auto look_again = 250ms;
/// Between two looks at a module without an old plugin: nodes that enrol make events by the thousand.
constexpr auto at_rest = 250ms;
constexpr auto module_path = "/metadata/labels/quartermaster.io~1module";
constexpr auto record_path = "/metadata/annotations/state.quartermaster.io~1rollout";
constexpr auto former_record_path = "/metadata/annotations/quartermaster.io~1rollout";

std::string_view module_of(const kube::object* object) {
  return object ? object->labels.value_or(api::names::module_label, "") : std::string_view();
}

/// The modules two states of an object are of, each once.
std::vector<kube::object_key> modules_of(std::string_view before, std::string_view after) {
  std::vector<kube::object_key> out;
  if (!before.empty()) out.push_back({{}, std::string(before)});
  if (!after.empty() && after != before) out.push_back({{}, std::string(after)});
  return out;
}

bool tainted(const kube::node& node) {
  return std::ranges::any_of(node.taints, [](const auto& taint) { return taint.key == api::names::switching_taint; });
}

const kube::owner_ref* owner_of(const kube::pod& pod) {
  const auto match = std::ranges::find(pod.owners, true, &kube::owner_ref::controller);
  return match == pod.owners.end() ? nullptr : &*match;
}

/// Follows which objects are of which module.
void follow(auto& index, const kube::object* before, const kube::object* after, bool was, bool is) {
  if (was && (!is || module_of(before) != module_of(after))) {
    const auto match = index.find(module_of(before));
    if (match != index.end() && match->second.erase(before->key) > 0 && match->second.empty()) index.erase(match);
  }
  if (is) index[std::string(module_of(after))].insert(after->key);
}

}  // namespace

rollouts::rollouts(stores stores, kube::client& client, controller::recorder& events, settings settings)
    : stores_(stores), client_(client), events_(events), settings_(std::move(settings)) {
  const auto see_pod = [this](const kube::pod* before, const kube::pod* after) {
    follow(plugins_, before, after, before && is_plugin(*before), after && is_plugin(*after));
    if (before && (!after || after->id != before->id || after->deleting)) removed_.erase(before->id);
  };
  const auto see_node = [this](const kube::node* before, const kube::node* after) {
    follow(served_, before, after, !module_of(before).empty(), !module_of(after).empty());
  };
  for (const auto& pod : stores_.pods.all()) see_pod(nullptr, &pod);
  for (const auto& node : stores_.nodes.all()) see_node(nullptr, &node);
  stores_.pods.observe(see_pod);
  stores_.nodes.observe(see_node);
}

bool rollouts::synced() const {
  return stores_.policies.synced() && stores_.daemon_sets.synced() && stores_.nodes.synced() && stores_.pods.synced() &&
         stores_.accelerator_nodes.synced();
}

bool rollouts::is_plugin(const kube::pod& pod) const {
  return pod.key.ns == settings_.ns && !pod.finished() && !module_of(&pod).empty();
}

bool rollouts::is_ours(const kube::daemon_set& set) const {
  return set.key.ns == settings_.ns && !set.deleting && !module_of(&set).empty() &&
         set.labels.value_or(api::names::managed_by_label, "") == api::names::managed_by;
}

std::string rollouts::record_on(const kube::daemon_set& set) const {
  const auto match = written_.find(set.id.to_string());
  if (match != written_.end() && set.resource_version < match->second.version) return match->second.record;
  return std::string(api::remembered(set.annotations, api::names::rollout_annotation).value_or(""));
}

rollouts::sets_of rollouts::sets(std::string_view module) const {
  sets_of out;
  for (const auto& set : stores_.daemon_sets.all()) {
    if (!is_ours(set) || module_of(&set) != module) continue;
    out.all.push_back(&set);
    if (!out.record) out.record = rollout_record::parse(record_on(set), set.key.name);
  }
  return out;
}

bool rollouts::changing(const kube::node& node, std::string_view module) const {
  const auto* object = stores_.accelerator_nodes.find(node.key);
  return node.deleting ||
         is_changing(tainted(node), module, object ? std::string_view(object->mode.actual_mode) : std::string_view());
}

rollout_state rollouts::state_of(const std::string& module) const {
  rollout_state out;
  const auto* rules = stores_.policies.find(policy_key);
  const auto& offered = modules::offered_by(rules);
  const auto* match = offered.find(module);
  const auto daemon_sets = sets(module);
  if (!rules || rules->deleting || !match || daemon_sets.all.empty()) return out;
  out.record = daemon_sets.record;

  const auto template_of = [](const kube::object& object) {
    return object.annotations.value_or(api::names::template_annotation, "");
  };
  const auto each_plugin = [&](auto&& call) {
    const auto position = plugins_.find(module);
    if (position == plugins_.end()) return;
    for (const auto& key : position->second) {
      const auto* pod = stores_.pods.find(key);
      const auto* owner = pod && !pod->node_name.empty() ? owner_of(*pod) : nullptr;
      if (!owner) continue;
      const auto set = std::ranges::find(daemon_sets.all, owner->id, &kube::daemon_set::id);
      if (set != daemon_sets.all.end()) call(*pod, **set);
    }
  };
  bool any_old = out.record.has_value();
  each_plugin([&](const kube::pod& pod, const kube::daemon_set& set) {
    any_old = any_old || template_of(pod) != template_of(set);
  });
  const auto served = served_.find(module);
  const auto each_node = [&](auto&& call) {
    if (served == served_.end()) return;
    for (const auto& key : served->second) {
      if (const auto* node = stores_.nodes.find(key)) call(*node);
    }
  };
  each_node([&](const kube::node& node) { any_old = any_old || serving_set(node) != wanted_set(rules, module, node); });
  if (!any_old) return out;

  std::map<std::string_view, rollout_node> nodes;
  each_plugin([&](const kube::pod& pod, const kube::daemon_set&) {
    const bool going = pod.deleting || removed_.contains(pod.id);
    nodes[pod.node_name].pods.push_back(
        {pod.key, pod.id, std::string(template_of(pod)), pod.reason, pod.restarts, pod.ready, going});
  });

  const auto at_spec = rules->modules.find(module);
  const auto spec = at_spec == rules->modules.end() ? module_spec() : at_spec->second;
  out.method = modules::rollout_of(*match, spec).method;
  out.resources.assign(match->resources.begin(), match->resources.end());
  out.timeout = rules->enrolment.verify_timeout;
  out.wall = std::chrono::floor<std::chrono::seconds>(settings_.wall().time_since_epoch()).count();
  each_node([&](const kube::node& node) {
    auto& made = out.nodes.emplace_back(std::move(nodes[node.key.name]));
    made.name = node.key.name;
    made.answers = node.ready == kube::condition_status::yes;
    made.changing = changing(node, module);
    made.unsuitable = has_unsuitable_runtime(node, *match, *rules);
    made.serves = serving_set(node);
    made.target = wanted_set(rules, module, node);
    made.allocatable = node.allocatable;
    for (const auto& [name, amount] : node.allocatable) {
      if (modules::has_prefix(*match, name) && std::ranges::find(out.others, name) == out.others.end())
        out.others.push_back(name);
    }
    const auto name = std::string(match->daemon_set) + (made.target.empty() ? "" : "-" + made.target);
    const auto position = std::ranges::find_if(daemon_sets.all, [&](const auto* set) { return set->key.name == name; });
    const auto& set = position == daemon_sets.all.end() ? *daemon_sets.all.front() : **position;
    made.set = set.key.name;
    made.wanted = template_of(set);
    made.known = position != daemon_sets.all.end() && set.observed_generation >= set.generation;
    const bool idle = out.method == modules::rollout::strategy::when_idle || changes_chooser(made);
    if (idle && !made.pods.empty() && !made.changing) {
      // Of any module: NVIDIA's plugin offers shares of MPS under the name of another.
      for (const auto& pod : stores_.on_nodes.holders(node, offered, match)) made.users.push_back(pod.name());
    }
  });
  if (const auto position = well_.find(module); position != well_.end() && out.record == position->second.record)
    out.well_for = settings_.now() - position->second.time;
  return out;
}

rollout_step rollouts::look(const std::string& module) const { return next_rollout_step(state_of(module)); }

kube::task<action> rollouts::reconcile(kube::object_key key) {
  if (!synced()) co_return action::again(look_again);
  const auto module = key.name;
  if (const auto match = at_rest_.find(module); match != at_rest_.end() && settings_.now() - match->second < at_rest)
    co_return action::again(at_rest - (settings_.now() - match->second));
  auto is = state_of(module);
  if (!is_well(is)) {
    well_.erase(module);
  } else if (const auto match = well_.find(module); match == well_.end() || match->second.record != is.record) {
    well_.insert_or_assign(module, well_since{*is.record, settings_.now()});
    is.well_for = 0ms;
  }
  const auto step = next_rollout_step(is);
  if (step.is == rollout_step::kind::done && !step.clear)
    at_rest_[module] = settings_.now();
  else
    at_rest_.erase(module);
  if (step.waits_for_pods)
    waiting_.insert(module);
  else
    waiting_.erase(module);
  const std::pair news(step.is == rollout_step::kind::halted, step.message);
  if (std::exchange(messages_[module], news) != news) settings_.on_news();

  if (step.clear) {
    const auto done = co_await write(*step.clear, {});
    if (!done) co_return std::unexpected(done.error());
    if (!*done) co_return action::again(look_again);
    settings_.on_news();  // only now does `look` see no node under way
  }
  if (step.record) {
    const auto done = co_await write(step.record->set, step.record->to_string());
    if (!done) co_return std::unexpected(done.error());
    if (!*done) co_return action::again(look_again);
  }
  if ((step.remove && step.remove->if_idle) || (step.move && step.move->if_idle)) {
    const auto idle = co_await is_idle(step.remove ? step.remove->node : step.move->node);
    if (!idle) co_return std::unexpected(idle.error());
    if (!*idle) co_return action::again(look_again);
  }
  if (step.remove) {
    const auto done = co_await remove(*step.remove, module);
    if (!done) co_return std::unexpected(done.error());
    co_return action::again(is.timeout);
  }
  if (step.move) {
    const auto done = co_await move(*step.move, module);
    if (!done) co_return std::unexpected(done.error());
    co_return action::again(*done ? controller::milliseconds(is.timeout) : look_again);
  }
  co_return action{step.again_in};
}

/// False: the world moved on meanwhile. An empty record takes it off.
kube::task<bool> rollouts::write(std::string set, std::string record) {
  const kube::object_key key{settings_.ns, set};
  const auto* known = stores_.daemon_sets.find(key);
  if (!known) co_return false;
  const auto uid = known->id.to_string();
  auto patch = json::array({{{"op", "test"}, {"path", "/metadata/uid"}, {"value", uid}}});
  // One of the two keys has the record: who writes the present one removes the former.
  const bool former = known->annotations.contains(api::former_key(api::names::rollout_annotation));
  if (former) patch.push_back({{"op", "remove"}, {"path", former_record_path}});
  if (!record.empty())
    patch.push_back({{"op", "add"}, {"path", record_path}, {"value", record}});
  else if (!former)
    patch.push_back({{"op", "remove"}, {"path", record_path}});
  kube::write_options options;
  options.field_manager = api::names::rollout_field_owner;
  auto answer = co_await client_.patch(kube::resources::daemon_sets, key, kube::patch_kind::json, patch, {}, options);
  if (answer) {
    written_[uid] = {kube::version_of(*answer), std::move(record)};
    co_return true;
  }
  const auto code = answer.error().code;
  if (code == kube::errc::conflict || code == kube::errc::not_found || code == kube::errc::invalid) co_return false;
  co_return std::unexpected(answer.error());
}

/// Asks the server, because our view may be a moment old: a pod that has just come would be disturbed.
kube::task<bool> rollouts::is_idle(std::string node) {
  kube::list_options those;
  those.field_selector = "spec.nodeName=" + node + ",status.phase!=Succeeded,status.phase!=Failed";
  const auto pods = co_await client_.list(kube::resources::pods, those);
  if (!pods) co_return std::unexpected(pods.error());
  const auto* match = stores_.nodes.find({{}, node});
  if (!match) co_return false;
  const auto& offered = modules::offered_by(stores_.policies.find(policy_key));
  const auto* mode = offered.find(module_of(match));
  const auto is_card = [&](const auto& limit) {
    return limit.second > 0 && module_of(limit.first, *match, offered, mode);
  };
  for (const auto& object : *pods) {
    const auto pod = kube::from_json<kube::pod>(object.dump());
    if (!pod) co_return std::unexpected(pod.error());
    for (const auto& container : pod->containers)
      if (std::ranges::any_of(container.limits, is_card)) co_return false;
  }
  co_return true;
}

kube::task<void> rollouts::remove(rollout_step::removal removal, std::string module) {
  kube::preconditions only_if;
  only_if.uid = removal.pod.id.to_string();
  const auto key = removal.pod.key;
  const auto done = co_await client_.remove(kube::resources::pods, key, only_if);
  if (!done && done.error().code != kube::errc::conflict) co_return std::unexpected(done.error());
  const auto* still = stores_.pods.find(key);
  if (still && still->id == removal.pod.id && !still->deleting) removed_.insert(removal.pod.id);
  if (const auto* node = stores_.nodes.find({{}, removal.node}); node && done)
    events_.record({kube::resources::nodes, *node}, controller::event_type::normal, "PluginReplaced", "Delete",
                   "plugin pod " + key.to_string() + " of module " + module +
                       " is replaced by the newest version; running pods keep their cards");
  co_return kube::result<void>();
}

/// False: the world moved on meanwhile.
kube::task<bool> rollouts::move(rollout_step::relocation relocation, std::string module) {
  const kube::object_key key{{}, relocation.node};
  const auto* node = stores_.nodes.find(key);
  if (!node || module_of(node) != module || serving_set(*node) != relocation.source) co_return false;
  auto patch = json::array({{{"op", "test"}, {"path", "/metadata/uid"}, {"value", node->id.to_string()}},
                            {{"op", "test"}, {"path", module_path}, {"value", module}}});
  patch_set(*node, relocation.target, patch);
  const controller::object_reference about(kube::resources::nodes, *node);
  kube::write_options options;
  options.field_manager = api::names::field_owner;
  const auto answer = co_await client_.patch(kube::resources::nodes, key, kube::patch_kind::json, patch, {}, options);
  if (answer) {
    if (relocation.target == between_sets)
      events_.record(about, controller::event_type::normal, "PluginReplaced", "Move",
                     "the plugin of module " + module +
                         " is replaced by that of the node's new node set; running pods keep their cards");
    co_return true;
  }
  const auto code = answer.error().code;
  if (code == kube::errc::conflict || code == kube::errc::not_found || code == kube::errc::invalid) co_return false;
  co_return std::unexpected(answer.error());
}

std::vector<kube::object_key> rollouts::affected_by(const accelerator_policy* before,
                                                    const accelerator_policy* after) const {
  std::vector<kube::object_key> out;
  if ((after ? after : before)->key != policy_key) return out;
  std::set<std::string_view> modules;
  for (const auto& set : stores_.daemon_sets.all()) {
    if (is_ours(set)) modules.insert(module_of(&set));
  }
  for (const auto module : modules) out.push_back({{}, std::string(module)});
  return out;
}

std::vector<kube::object_key> rollouts::affected_by(const kube::daemon_set* before,
                                                    const kube::daemon_set* after) const {
  if (!is_ours(after ? *after : *before)) return {};
  return modules_of(module_of(before), module_of(after));
}

std::vector<kube::object_key> rollouts::affected_by(const kube::node* before, const kube::node* after) const {
  return modules_of(module_of(before), module_of(after));
}

std::vector<kube::object_key> rollouts::affected_by(const kube::pod* before, const kube::pod* after) const {
  const auto& any = after ? *after : *before;
  if (any.key.ns == settings_.ns && (!module_of(before).empty() || !module_of(after).empty()))
    return modules_of(module_of(before), module_of(after));
  std::vector<kube::object_key> out;
  if (waiting_.empty()) return out;
  for (const auto& entry : stores_.on_nodes.affected_by(before, after)) {
    const auto module = module_of(stores_.nodes.find(entry));
    if (waiting_.contains(module)) out.push_back({{}, std::string(module)});
  }
  return out;
}

std::vector<kube::object_key> rollouts::affected_by(const api::accelerator_node* before,
                                                    const api::accelerator_node* after) const {
  const auto mode = [](const api::accelerator_node* status) {
    return status ? std::string_view(status->mode.actual_mode) : std::string_view();
  };
  if (mode(before) == mode(after)) return {};
  const auto module = module_of(stores_.nodes.find((after ? after : before)->key));
  return modules_of({}, module);
}

}  // namespace reconcilers
