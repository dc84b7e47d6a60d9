#include "reconcilers/policy.hpp"

#include <nlohmann/json.hpp>

#include "controller/conditions.hpp"
#include "reconcilers/names.hpp"

namespace reconcilers {
namespace {

using namespace std::chrono_literals;
using controller::action;
using controller::event_type;
using nlohmann::json;

/// Between two writes of the status: during a roll-out its numbers change with every pod.
constexpr auto between_writes = 500ms;

const kube::object_key policy_key{{}, std::string(names::policy)};

json parsed(const std::string& text) {
  auto out = text.empty() ? json::object() : json::parse(text, nullptr, false);
  return out.is_object() ? out : json::object();
}

}  // namespace

policy::policy(stores from, kube::client& client, controller::recorder& events, settings how)
    : from_(from),
      client_(client),
      events_(events),
      how_(std::move(how)),
      keeper_(from.objects, client, events, how_.ns, how_.now) {
  if (how_.own_image.empty()) how_.own_image = "quartermaster:" QUARTERMASTER_VERSION;
  for (const auto& node : from_.nodes.all()) count(nullptr, &node);
  from_.nodes.observe([this](const auto* before, const auto* after) { count(before, after); });
}

void policy::count(const kube::node* before, const kube::node* after) {
  for (const auto* one : {before, after}) {
    const auto label = one ? one->labels.find(names::module_label) : std::nullopt;
    if (label) nodes_in_[std::string(*label)] += one == after ? 1 : -1;
  }
}

bool policy::synced() const { return from_.policies.synced() && from_.nodes.synced() && keeper_.synced(); }

void policy::round::add(const keeper::outcome& one) {
  if (one.again_in && (!again_in || *one.again_in < *again_in)) again_in = one.again_in;
  if (one.failed && !failed) failed = one.failed;
}

void policy::round::add(const std::string& module, const keeper::outcome& one) {
  add(one);
  keeper::outcome fine;
  fine.settled = true;
  auto& all = modules.try_emplace(module, fine).first->second;
  all.settled = all.settled && one.settled;
  if (!all.problem.empty()) return;
  all.problem = one.problem;
  all.message = one.message;
}

policy::wanted policy::wanted_by(const accelerator_policy* rules) const {
  wanted out;
  if (!rules) return out;
  const modules::facts known{how_.ns, how_.own_image, rules->key.name, rules->id.to_string()};
  for (const auto& [name, spec] : rules->modules) {
    const auto* of = modules::find(name);
    if (!of || !spec.enabled) continue;
    try {
      for (auto& one : modules::intents_of(*of, spec, known)) out.objects.push_back(std::move(one));
    } catch (const json::exception& wrong) {
      out.broken[name] = "spec.modules." + name + " cannot be used: " + wrong.what();
    }
  }
  return out;
}

std::vector<module_row> policy::rows_of(const accelerator_policy& rules, const wanted& want, const round& did) const {
  std::vector<module_row> out;
  for (const auto& of : modules::catalogue()) {
    const std::string name(of.name);
    module_row row;
    row.name = of.name;
    row.enabled = rules.enabled(name);
    const auto* set = from_.objects.daemon_sets.find({how_.ns, std::string(of.daemon_set)});
    if (set && keeper_.is_ours(*set)) {
      row.desired = set->desired;
      row.ready = set->ready;
      row.rolled_out = set->rolled_out();
    }
    if (const auto at = nodes_in_.find(name); at != nodes_in_.end()) row.nodes = at->second;
    if (const auto at = did.modules.find(name); at != did.modules.end()) {
      row.applied = at->second.settled;
      row.problem = at->second.problem;
      row.message = at->second.message;
    }
    if (const auto at = want.broken.find(name); at != want.broken.end()) {
      row.problem = "InvalidPolicy";
      row.message = at->second;
    }
    out.push_back(std::move(row));
  }
  return out;
}

kube::task<action> policy::reconcile(kube::object_key key) {
  if (!synced()) co_return action::again(250ms);
  const auto* rules = from_.policies.find(key);
  if (rules && rules->deleting) rules = nullptr;
  if (key == policy_key) co_return co_await govern(rules);
  if (!rules) co_return action::await_change();
  const auto before = parsed(rules->status);
  const auto now = controller::rfc3339_seconds(how_.wall());
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
  std::set<keeper::identity> kept;
  std::set<std::string> spared;  // a module whose part of the policy cannot be used keeps its last good objects
  for (const auto& [name, why] : want.broken) spared.insert(name);
  for (const auto& one : want.objects) kept.insert({one.type->kind, one.key.name});
  for (const auto& one : want.objects) {
    auto done = co_await keeper_.ensure(one, about);
    if (!done) co_return std::unexpected(done.error());
    did.add(one.module, *done);
  }
  auto pruned = co_await keeper_.prune(kept, spared, about);
  if (!pruned) co_return std::unexpected(pruned.error());
  did.add(*pruned);
  auto said = co_await report(want, did, about);
  if (!said) co_return std::unexpected(said.error());
  did.add(*said);
  if (did.failed) co_return std::unexpected(*did.failed);
  co_return action{did.again_in};
}

/// Looks the policy up again: during the writes it may have gone, or become another.
kube::task<keeper::outcome> policy::report(wanted want, round did, controller::object_reference about) {
  const auto* rules = from_.policies.find(policy_key);
  if (!rules || rules->deleting || rules->id.to_string() != about.uid) co_return keeper::outcome();
  const auto before = parsed(rules->status);
  const auto rows = rows_of(*rules, want, did);
  const auto status =
      policy_status(rows, rules->generation, before, controller::rfc3339_seconds(how_.wall()), how_.conditions());
  auto said = co_await say(policy_key, about.uid, before, status);
  if (said && said->settled) tell(about, before, status);
  co_return said;
}

/// Settled means written; where nothing differs it is not.
kube::task<keeper::outcome> policy::say(kube::object_key key, std::string uid, json before, json status) {
  keeper::outcome out;
  if (controller::same_status(status, before)) co_return out;
  const auto now = how_.now();
  if (now - status_wrote_ < between_writes) {
    out.again_in = between_writes - (now - status_wrote_);
    co_return out;
  }
  status_wrote_ = now;
  const auto& type = kube::resources::accelerator_policies;
  const json body = {{"apiVersion", type.api_version()},
                     {"kind", type.kind},
                     {"metadata", {{"name", key.name}, {"uid", uid}}},
                     {"status", std::move(status)}};
  kube::write_options options;
  options.field_manager = names::field_owner;
  options.force = true;
  auto answer = co_await client_.apply_status(type, key, body, options);
  if (answer) {
    out.settled = true;
  } else if (answer.error().code == kube::errc::conflict) {
    out.again_in = between_writes;
  } else if (answer.error().code != kube::errc::not_found) {
    out.failed = answer.error();
  }
  co_return out;
}

void policy::tell(const controller::object_reference& about, const json& before, const json& now) {
  const auto list = before.is_object() ? before.value("conditions", json::array()) : json::array();
  const auto* was = controller::find_condition(list, "Degraded");
  const auto* is = controller::find_condition(now.at("conditions"), "Degraded");
  const auto text = [](const json* of, const char* name) { return of ? of->value(name, "") : std::string(); };
  if (text(is, "status") == "True" && text(was, "message") != text(is, "message"))
    events_.record(about, event_type::warning, text(is, "reason"), "Apply", text(is, "message"));
  if (text(is, "status") == "False" && text(was, "status") == "True")
    events_.record(about, event_type::normal, "Recovered", "Apply", "every module that is on is as wanted");
}

std::vector<kube::object_key> policy::affected_by(const accelerator_policy* before,
                                                  const accelerator_policy* after) const {
  return {after ? after->key : before->key};
}

std::vector<kube::object_key> policy::affected_by(const kube::node* before, const kube::node* after) const {
  const auto label = [](const kube::node* of) {
    return of ? of->labels.value_or(names::module_label, "") : std::string_view();
  };
  if (label(before) == label(after)) return {};
  return {policy_key};
}

std::vector<kube::object_key> policy::affected_by(const kube::object* before, const kube::object* after) const {
  const auto& any = after ? *after : *before;
  if (any.key.ns != how_.ns) return {};
  return {policy_key};
}

}  // namespace reconcilers
