#include "reconcilers/plugins/policy.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "api/names.hpp"
#include "controller/conditions.hpp"
#include "quota/limits.hpp"
#include "reconcilers/modules/node_sets.hpp"

namespace reconcilers {
namespace {

using namespace std::chrono_literals;
using controller::action;
using controller::event_type;
using nlohmann::json;

/// During a roll-out the numbers of the status change with every pod.
constexpr auto between_status_writes = 500ms;

/// What no one else declares: a person's word on a key, or on a node label, counts before ours.
void add_declarations(std::vector<modules::intent> intents, const std::set<std::string, std::less<>>& others,
                      std::vector<modules::intent>& out) {
  for (auto& intent : intents) {
    const auto data = json::parse(intent.body).at("data");
    const auto label = data.value("nodeLabelKey", "") + "=" + data.value("nodeLabelValue", "");
    if (others.contains(intent.key.name) || others.contains(data.value("key", label))) continue;
    out.push_back(std::move(intent));
  }
}

json parsed(const std::string& text) {
  auto out = text.empty() ? json::object() : json::parse(text, nullptr, false);
  return out.is_object() ? out : json::object();
}

/// Of its plugin, as we want it: what others write into a DaemonSet is put back and is no version of our own.
std::string image_of(std::string_view module, const std::vector<modules::intent>& wanted) {
  const auto match = std::ranges::find_if(wanted, [&](const modules::intent& intent) {
    return intent.module == module && intent.type->kind == kube::resources::daemon_sets.kind;
  });
  if (match == wanted.end()) return {};
  return json::parse(match->body).value("/spec/template/spec/containers/0/image"_json_pointer, std::string());
}

}  // namespace

policy::policy(stores stores, kube::client& client, controller::recorder& events, settings settings)
    : stores_(stores),
      client_(client),
      events_(events),
      settings_(std::move(settings)),
      applier_(stores.objects, client, events, {settings_.ns, settings_.declarations}, settings_.now) {
  if (settings_.own_image.empty()) settings_.own_image = "quartermaster:" QUARTERMASTER_VERSION;
  for (const auto& node : stores_.nodes.all()) count(nullptr, &node);
  stores_.nodes.observe([this](const auto* before, const auto* after) { count(before, after); });
}

void policy::count(const kube::node* before, const kube::node* after) {
  for (const auto* entry : {before, after}) {
    const auto label = entry ? entry->labels.find(api::names::module_label) : std::nullopt;
    if (!label) continue;
    nodes_in_[std::string(*label)] += entry == after ? 1 : -1;
    if (const auto set = serving_set(*entry); !set.empty() && set != between_sets)
      nodes_of_[{std::string(*label), std::string(set)}] += entry == after ? 1 : -1;
  }
}

bool policy::synced() const { return stores_.policies.synced() && stores_.nodes.synced() && applier_.synced(); }

void policy::round::add(const applier::outcome& outcome) {
  if (outcome.again_in && (!again_in || *outcome.again_in < *again_in)) again_in = outcome.again_in;
  if (outcome.failed && !failed) failed = outcome.failed;
}

void policy::round::add(const std::string& module, const applier::outcome& outcome) {
  add(outcome);
  applier::outcome fine;
  fine.settled = true;
  auto& all = modules.try_emplace(module, fine).first->second;
  all.settled = all.settled && outcome.settled;
  if (!all.problem.empty()) return;
  all.problem = outcome.problem;
  all.message = outcome.message;
}

std::shared_ptr<const policy::desired_objects> policy::wanted_by(const accelerator_policy* rules) {
  if (!rules) return std::make_shared<const desired_objects>();
  const bool publish = rules->resources.publish;
  auto uid = rules->id.to_string();
  std::set<std::string, std::less<>> others;
  if (publish) others = applier_.declared_by_others();
  auto& last = last_wanted_;
  if (!last.is || last.uid != uid || last.publish != publish || last.modules != rules->modules || last.others != others)
    last = {std::move(uid), rules->modules, publish, others,
            std::make_shared<const desired_objects>(made_of(*rules, others))};
  return last.is;
}

policy::desired_objects policy::made_of(const accelerator_policy& rules,
                                        const std::set<std::string, std::less<>>& others) const {
  desired_objects out;
  const modules::facts known{.ns = settings_.ns,
                             .own_image = settings_.own_image,
                             .policy_name = rules.key.name,
                             .policy_uid = rules.id.to_string(),
                             .image_registry = settings_.image_registry};
  const auto& offered = modules::offered_by(&rules);
  for (const auto& [name, spec] : rules.modules) {
    const auto* match = offered.find(name);
    if (!match || !spec.enabled) continue;
    if (auto conflict = offered.conflict_of(name); !conflict.empty()) {
      out.broken[name] = std::move(conflict);
      continue;
    }
    try {
      auto made = modules::intents_of(*match, spec, known);
      if (rules.resources.publish)
        add_declarations(modules::declarations_of(*match, spec, known, settings_.declarations), others, made);
      std::ranges::move(made, std::back_inserter(out.objects));
    } catch (const modules::invalid_policy& wrong) {
      out.broken[name] = wrong.message;
    } catch (const json::exception& wrong) {
      out.broken[name] = {"status.policy.unusable", {{"module", name}, {"error", std::string(wrong.what())}}};
    }
  }
  return out;
}

std::vector<module_row> policy::rows_of(const accelerator_policy& rules, const desired_objects& want,
                                        const round& did) const {
  std::vector<module_row> out;
  for (const auto& entry : modules::offered_by(&rules).rows()) {
    const std::string name(entry.name);
    const auto at_spec = rules.modules.find(name);
    const auto spec = at_spec == rules.modules.end() ? module_spec() : at_spec->second;
    module_row row;
    row.name = entry.name;
    row.isolation = quota::text_of(modules::isolation_of(entry, spec));
    row.enabled = spec.enabled;
    row.image = image_of(entry.name, want.objects);
    row.rolled_out = true;
    for (const auto& set_name : modules::daemon_sets_of(entry, spec)) {
      const auto* set = stores_.objects.daemon_sets.find({settings_.ns, set_name});
      const bool there = set && applier_.is_ours(*set);
      row.rolled_out = row.rolled_out && there && set->rolled_out();
      if (!there) continue;
      row.desired += set->desired;
      row.ready += set->ready;
      row.updated += set->updated;
    }
    if (const auto match = nodes_in_.find(name); match != nodes_in_.end()) row.nodes = match->second;
    if (const auto match = did.modules.find(name); match != did.modules.end()) {
      row.applied = match->second.settled;
      row.problem = match->second.problem;
      row.message = match->second.message;
    }
    if (const auto step = settings_.rollout(name); step.is == rollout_step::kind::halted && row.problem.empty()) {
      row.problem = "RolloutHalted";
      row.message = step.message;
    } else if (row.enabled) {
      row.rolling = step.message;
    }
    if (!row.enabled && row.nodes > 0 && row.message.empty())
      row.message = text::counted_phrase(static_cast<std::size_t>(row.nodes), "status.policy.switched_off");
    if (const auto match = want.broken.find(name); match != want.broken.end()) {
      row.problem = "InvalidPolicy";
      row.message = match->second;
    }
    out.push_back(std::move(row));
  }
  return out;
}

kube::task<action> policy::reconcile(kube::object_key key) {
  if (!synced()) co_return action::again(250ms);
  const auto* rules = stores_.policies.find(key);
  if (rules && rules->deleting) rules = nullptr;
  if (key == policy_key) co_return co_await govern(rules);
  if (!rules) co_return action::await_change();
  const auto before = parsed(rules->status);
  const auto now = controller::rfc3339_seconds(settings_.wall());
  const auto uid = rules->id.to_string();
  const auto status = ignored_status(rules->generation, before, now);
  auto done = co_await say(key, uid, before, status);
  if (!done) co_return std::unexpected(done.error());
  if (done->failed) co_return std::unexpected(*done->failed);
  co_return action{done->again_in};
}

kube::task<action> policy::govern(const accelerator_policy* rules) {
  controller::object_reference about;
  if (rules) about = controller::object_reference(kube::resources::accelerator_policies, *rules);
  const auto want = wanted_by(rules);
  round did;
  std::set<applier::identity> kept;
  std::set<std::string> spared;  // a module whose part of the policy cannot be used keeps its last good objects
  for (const auto& [name, reason] : want->broken) spared.insert(name);
  // A module that was switched off goes when the last node has left it: pods may hold its cards.
  if (rules) {
    for (const auto& [name, nodes] : nodes_in_) {
      if (nodes > 0 && !rules->enabled(name)) spared.insert(name);
    }
  }
  for (const auto& object : want->objects) kept.insert({object.type->kind, object.key});
  // A node set that is gone from the policy goes when its last node has moved.
  for (const auto& [set, nodes] : nodes_of_) {
    const auto* match = rules ? modules::offered_by(rules).find(set.first) : nullptr;
    if (match && nodes > 0)
      kept.insert({kube::resources::daemon_sets.kind,
                   {settings_.ns, std::string(match->daemon_set) + "-" + std::string(set.second)}});
  }
  for (const auto& object : want->objects) {
    auto done = co_await applier_.ensure(object, about);
    if (!done) co_return std::unexpected(done.error());
    did.add(object.module, *done);
  }
  auto pruned = co_await applier_.prune(kept, spared, about);
  if (!pruned) co_return std::unexpected(pruned.error());
  did.add(*pruned);
  auto outcome = co_await report(want, did, about);
  if (!outcome) co_return std::unexpected(outcome.error());
  did.add(*outcome);
  if (did.failed) co_return std::unexpected(*did.failed);
  co_return action{did.again_in};
}

/// Looks the policy up again: during the writes it may have gone, or become another.
kube::task<applier::outcome> policy::report(std::shared_ptr<const desired_objects> want, round did,
                                            controller::object_reference about) {
  const auto* rules = stores_.policies.find(policy_key);
  if (!rules || rules->deleting || rules->id.to_string() != about.uid) co_return applier::outcome();
  // What cannot be written yet is not worked out: it looks at every node.
  if (const auto early = too_early()) co_return *early;
  const auto before = parsed(rules->status);
  const auto rows = rows_of(*rules, *want, did);
  const auto status = policy_status(rows, *rules, before, controller::rfc3339_seconds(settings_.wall()),
                                    settings_.conditions(), settings_.schedulers());
  auto outcome = co_await say(policy_key, about.uid, before, status);
  if (outcome && outcome->settled) tell(about, before, status);
  co_return outcome;
}

std::optional<applier::outcome> policy::too_early() const {
  const auto since = settings_.now() - status_wrote_;
  if (since >= between_status_writes) return std::nullopt;
  applier::outcome out;
  out.again_in = between_status_writes - since;
  return out;
}

/// Settled means written; where nothing differs it is not.
kube::task<applier::outcome> policy::say(kube::object_key key, std::string uid, json before, json status) {
  applier::outcome out;
  const bool is_same = controller::same_status(status, before) ||
                       (status_.lacks_codes() && controller::same_status(controller::without_codes(status), before));
  if (is_same) co_return out;
  if (const auto early = too_early()) co_return *early;
  status_wrote_ = settings_.now();
  const auto& type = kube::resources::accelerator_policies;
  const json body = {{"apiVersion", type.api_version()},
                     {"kind", type.kind},
                     {"metadata", {{"name", key.name}, {"uid", uid}}},
                     {"status", std::move(status)}};
  kube::write_options options;
  options.field_manager = api::names::field_owner;
  options.force = true;
  auto answer = co_await status_.apply(client_, type, key, body, options);
  if (answer) {
    out.settled = true;
  } else if (answer.error().code == kube::errc::conflict) {
    out.again_in = between_status_writes;
  } else if (answer.error().code != kube::errc::not_found) {
    out.failed = answer.error();
  }
  co_return out;
}

void policy::tell(const controller::object_reference& about, const json& before, const json& now) {
  const auto list = before.is_object() ? before.value("conditions", json::array()) : json::array();
  const auto* was = controller::find_condition(list, "Degraded");
  const auto* is = controller::find_condition(now.at("conditions"), "Degraded");
  const auto text = [](const json* object, const char* name) {
    return object ? object->value(name, "") : std::string();
  };
  if (text(is, "status") == "True" && text(was, "message") != text(is, "message"))
    events_.record(about, event_type::warning, text(is, "reason"), "Apply", text(is, "message"));
  if (text(is, "status") == "False" && text(was, "status") == "True")
    events_.record(about, event_type::normal, "Recovered", "Apply", "every module that is on is as wanted");
  tell_of_schedulers(about, before, now);
}

namespace {

/// What is as wanted, or becomes so without anyone's doing.
bool on_its_way(std::string_view reason) {
  constexpr std::array known{"Dedicated", "Starting", "RollingOut", "SwitchingOff", "Applied",
                             "Waiting",   "Changing", "Removing",   "Off"};
  return std::ranges::find(known, reason) != known.end();
}

}  // namespace

void policy::tell_of_schedulers(const controller::object_reference& about, const json& before, const json& now) {
  const auto rows = [](const json& object) {
    std::map<std::string, json> out;
    const auto list = object.is_object() ? object.value("schedulers", json::array()) : json::array();
    for (const auto& entry : list) out[entry.value("name", "")] = entry;
    return out;
  };
  const auto was = rows(before), is = rows(now);
  for (const auto& [name, row] : is) {
    const auto match = was.find(name);
    const auto reason = row.value("reason", "");
    if (match != was.end() && match->second.value("reason", "") == reason) continue;
    const auto message = row.value("message", "");
    events_.record(about, on_its_way(reason) ? event_type::normal : event_type::warning, "Scheduler" + reason,
                   "Schedule", "kube-scheduler " + name + ": " + (message.empty() ? reason : message));
  }
  for (const auto& [name, row] : was) {
    if (!is.contains(name))
      events_.record(about, event_type::normal, "SchedulerRemoved", "Schedule", "kube-scheduler " + name + " is gone");
  }
}

std::vector<kube::object_key> policy::affected_by(const accelerator_policy* before,
                                                  const accelerator_policy* after) const {
  return {after ? after->key : before->key};
}

std::vector<kube::object_key> policy::affected_by(const kube::node* before, const kube::node* after) const {
  const auto served = [](const kube::node* node) {
    return node ? std::pair(node->labels.value_or(api::names::module_label, ""), serving_set(*node))
                : std::pair<std::string_view, std::string_view>();
  };
  if (served(before) == served(after)) return {};
  return {policy_key};
}

std::vector<kube::object_key> policy::affected_by(const kube::object* before, const kube::object* after) const {
  const auto& any = after ? *after : *before;
  if (any.key.ns != settings_.ns && any.key.ns != settings_.declarations) return {};
  return {policy_key};
}

}  // namespace reconcilers
