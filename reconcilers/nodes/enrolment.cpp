#include "reconcilers/nodes/enrolment.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/names.hpp"
#include "controller/coded_message.hpp"
#include "controller/log.hpp"
#include "kube/json_text.hpp"
#include "reconcilers/cuda/labels.hpp"
#include "reconcilers/modules/node_sets.hpp"
#include "reconcilers/nodes/intent.hpp"
#include "reconcilers/nodes/taints.hpp"
#include "text/list.hpp"

namespace reconcilers {
namespace {

using namespace std::chrono_literals;
using controller::action;
using nlohmann::json;

constexpr auto label_path = "/metadata/labels/quartermaster.io~1module";
constexpr auto taken_over_path = "/metadata/labels/quartermaster.io~1taken-over";
constexpr auto look_again = 250ms;
/// How long an AcceleratorNode may be on its way out before that is reported.
constexpr auto deletion_patience = 60s;
/// After a PodDisruptionBudget has refused an eviction; as kubectl drain.
constexpr auto ask_again = 5s;
/// The words for a PodDisruptionBudget, whose numbers come and go.
/// How long the API server's own word that the pods of a node are known counts.
constexpr auto word_counts = 1s;
/// How long a store may be behind our own write before we look at it all the same.
constexpr auto lag_allowed = 2s;
/// Between two restarts of the plugin of one node.
constexpr controller::milliseconds restart_pause = 1h;

json operation(const char* op, std::string path, json value) {
  return {{"op", op}, {"path", std::move(path)}, {"value", std::move(value)}};
}

/// Has a mode, or asks for one. An agent alone makes an object, too.
bool is_enrolled(const api::accelerator_node& object) {
  const auto is_mode = [](std::string_view name) { return !name.empty() && name != "none"; };
  return is_mode(object.mode.requested_mode) || is_mode(object.mode.actual_mode);
}

/// Where one of our taints is in the list.
std::optional<std::size_t> taint_at(const kube::node& node, std::string_view key = api::names::switching_taint) {
  const auto match = std::ranges::find(node.taints, key, &kube::taint::key);
  return match == node.taints.end() ? std::nullopt : std::optional<std::size_t>(match - node.taints.begin());
}

void patch_label(const kube::node& node, const std::string& value, json& out) {
  const auto match = node.labels.find(api::names::module_label);
  // A `test` for null is true where the member is absent (evanphx/json-patch, which the API server uses).
  out.push_back(operation("test", label_path, match ? json(*match) : json()));
  if (!value.empty())
    out.push_back(operation("add", label_path, value));
  else if (match)
    out.push_back({{"op", "remove"}, {"path", label_path}});
}

/// The list of taints is others' too: only our own entry is named, by its place and its key. Without a value it goes.
void patch_taint(const kube::node& node, std::string_view key, const std::optional<std::string>& value, json& out) {
  const std::string list = "/spec/taints";
  const auto position = taint_at(node, key);
  const auto path = list + "/" + std::to_string(position.value_or(0));
  if (position) out.push_back(operation("test", path + "/key", key));
  if (!value) {
    if (position) out.push_back({{"op", "remove"}, {"path", path}});
    return;
  }
  json made = {{"key", key}, {"effect", "NoSchedule"}};
  if (!value->empty()) made["value"] = *value;
  if (position) {
    out.push_back(operation("replace", path, made));
  } else if (node.taints.empty()) {
    out.push_back(operation("test", list, json()));
    out.push_back(operation("add", list, json::array({made})));
  } else {
    out.push_back(operation("add", list + "/-", made));
  }
}

json patch_of(const kube::node& node, const mode_step& step, const accelerator_policy* policy) {
  auto out = json::array({operation("test", "/metadata/uid", node.id.to_string())});
  if (step.label) {
    patch_label(node, *step.label, out);
    patch_set(node, wanted_set(policy, *step.label, node), out);
  }
  const bool taken = node.labels.contains(api::names::taken_over_label);
  if (step.take_over && *step.take_over) out.push_back(operation("add", taken_over_path, "true"));
  if (step.take_over && !*step.take_over && taken) out.push_back({{"op", "remove"}, {"path", taken_over_path}});
  if (step.change == mode_step::taint_change::set)
    patch_taint(node, api::names::switching_taint, step.taint.to_string(), out);
  if (step.change == mode_step::taint_change::remove) patch_taint(node, api::names::switching_taint, std::nullopt, out);
  return out;
}

json bare(const std::string& name) {
  const auto& type = kube::resources::accelerator_nodes;
  return {{"apiVersion", type.api_version()}, {"kind", type.kind}, {"metadata", {{"name", name}}}};
}

json object_of(const std::string& name, const std::string& node_uid) {
  auto out = bare(name);
  auto& metadata = out["metadata"];
  metadata["labels"] = {{api::names::managed_by_label, api::names::managed_by}};
  metadata["ownerReferences"] =
      json::array({{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", name}, {"uid", node_uid}}});
  return out;
}

json status_of(const std::string& name, const api::mode_status& mode_status) {
  auto out = bare(name);
  auto& status = out["status"];
  status = {{"requestedMode", mode_status.requested_mode},
            {"actualMode", mode_status.actual_mode},
            {"phase", mode_status.phase},
            {"reason", mode_status.reason},
            {"since", mode_status.since}};
  controller::set_message(status, mode_status.message, mode_status.code);
  json ready = {{"type", "Ready"},
                {"status", mode_status.ready},
                {"reason", mode_status.reason},
                {"lastTransitionTime", mode_status.ready_since}};
  controller::set_message(ready, mode_status.message, mode_status.code);
  status["conditions"] = json::array({std::move(ready)});
  if (!mode_status.blockers.empty()) status["blockers"] = mode_status.blockers;
  for (const auto& [pod, code] : mode_status.blocker_causes) {
    auto& entry = status["blockerCauses"].emplace_back(json{{"pod", pod}, {"cause", code.cause}});
    if (!code.parameters.empty()) entry["parameters"] = code.parameters;
  }
  if (mode_status.given_up) {
    const auto& last = *mode_status.given_up;
    status["rolledBack"] = {{"request", last.request},
                            {"reason", last.reason},
                            {"attempts", last.attempts},
                            {"policyGeneration", last.policy_generation}};
    controller::set_message(status["rolledBack"], last.message, last.code);
    if (last.timestamp > 0)
      status["rolledBack"]["at"] =
          controller::rfc3339_seconds(controller::wall_time(std::chrono::seconds(last.timestamp)));
    if (!last.blockers.empty()) status["rolledBack"]["blockers"] = last.blockers;
  }
  return out;
}

/// As it is read back where the CRD has no fields for codes.
std::optional<api::mode_status> uncoded(std::optional<api::mode_status> status) {
  if (status) {
    status->code = {};
    status->blocker_causes.clear();
  }
  if (status && status->given_up) status->given_up->code = {};
  return status;
}

kube::write_options forced_owner(std::string_view owner) {
  kube::write_options out;
  out.field_manager = owner;
  out.force = true;
  return out;
}

enum class belongs { to_this, to_another, to_none };
belongs owner_of(const api::accelerator_node& object, const kube::node& node) {
  auto out = belongs::to_none;
  for (const auto& owner : object.owners) {
    if (owner.kind != "Node") continue;
    if (owner.id == node.id) return belongs::to_this;
    out = belongs::to_another;
  }
  return out;
}

/// Ours, or someone else's.
bool takes_plugin(const node_state& is, const mode_step& step) {
  return (step.label && !is.placed.empty() && *step.label != is.placed) || step.take_over.value_or(false);
}

/// The world moved on between our look and our write; what it is now comes with the watch.
bool overtaken(kube::errc code) { return code == kube::errc::conflict || code == kube::errc::not_found; }

}  // namespace

enrolment::enrolment(stores stores, kube::client& client, controller::recorder& events, settings settings)
    : stores_(stores),
      client_(client),
      events_(events),
      settings_(std::move(settings)),
      pods_(stores.pods, settings_.ns) {
  for (const auto& node : stores_.nodes.all()) {
    follow(node.key.name);
    count_free(nullptr, &node);
  }
  stores_.nodes.observe([this](const kube::node* before, const kube::node* after) {
    follow((after ? after : before)->key.name);
    count_free(before, after);
  });
  stores_.accelerator_nodes.observe([this](const api::accelerator_node* before, const api::accelerator_node* after) {
    const auto& name = (after ? after : before)->key.name;
    enrolled_ += std::int64_t{after && is_enrolled(*after)} - std::int64_t{before && is_enrolled(*before)};
    if (!after) {
      if (const auto match = written_.find(name); match != written_.end()) match->second.status_version = 0;
    }
    follow(name);
  });
}

/// As the stores show it; a node that we are writing to counts already, and until the watch has shown what we wrote.
bool enrolment::changing(const kube::node& node) const {
  const auto wrote = written_.find(node.key.name);
  if (writing_.contains(node.key.name) ||
      (wrote != written_.end() && node.resource_version < wrote->second.node_version))
    return true;
  const auto* object = stores_.accelerator_nodes.find(node.key);
  const bool same = object && owner_of(*object, node) != belongs::to_another;
  return is_changing(taint_at(node).has_value(), node.labels.value_or(api::names::module_label, ""),
                     same ? std::string_view(object->mode.actual_mode) : std::string_view());
}

void enrolment::follow(const std::string& name) {
  const auto* node = stores_.nodes.find({{}, name});
  if (node && changing(*node)) {
    changing_.insert(name);
    return;
  }
  if (!node) waiting_.erase(name);
  if (changing_.erase(name) == 0) return;
  auto free = slots();
  for (const auto& next : waiting_) {
    if (free-- <= 0) break;
    settings_.wake({{}, next});
  }
}

std::int64_t enrolment::slots() const {
  const auto* rules = policy();
  const auto allowed =
      allowed_changes(rules ? std::string_view(rules->enrolment.max_unavailable) : std::string_view(), enrolled_);
  return allowed - static_cast<std::int64_t>(changing_.size());
}

bool enrolment::synced() const {
  return stores_.policies.synced() && stores_.nodes.synced() && stores_.pods.synced() &&
         stores_.accelerator_nodes.synced();
}

const accelerator_policy* enrolment::policy() const {
  const auto* found = stores_.policies.find(policy_key);
  return found && !found->deleting ? found : nullptr;
}

/// What the driver knows of CUDA, as labels people select by.
cuda::label_step enrolment::cuda_labels(const kube::node& node) const {
  const auto* rules = policy();
  return rules && !rules->removing ? cuda::labels_for(node) : cuda::label_step();
}

void enrolment::count_free(const kube::node* before, const kube::node* after) {
  const bool none = free_ == 0;
  for (const auto* entry : {before, after}) {
    if (entry && !entry->labels.contains(api::names::module_label) && !entry->unschedulable)
      free_ += entry == after ? 1 : -1;
  }
  if (!none || free_ == 0) return;
  for (const auto& key : isolation_changed()) settings_.wake(key);
}

/// A node keeps it while its mode changes. It is put on only where some node is left to everything else: in a cluster
/// where every node has a module nothing could be scheduled any more.
std::optional<bool> enrolment::isolation_step(const kube::node& node) const {
  const auto isolates = settings_.isolates();
  if (!isolates) return std::nullopt;
  const bool is = taint_at(node, api::names::accelerator_taint).has_value();
  const bool served = node.labels.contains(api::names::module_label);
  const bool wanted = *isolates && (is ? served || taint_at(node) : served && free_ > 0);
  return wanted == is ? std::nullopt : std::optional<bool>(wanted);
}

bool enrolment::concerns(const kube::node& node) const {
  return !cuda_labels(node).idle() || isolation_step(node) || node.labels.contains(api::names::module_label) ||
         taint_at(node) || node.labels.contains(api::names::taken_over_label) ||
         stores_.accelerator_nodes.find(node.key) ||
         intent_of(node, policy(), declared_).type != node_intent::kind::none;
}

bool enrolment::behind(const kube::node& node, const api::accelerator_node* object) {
  const auto match = written_.find(node.key.name);
  if (match == written_.end()) return false;
  const auto& wrote = match->second;
  const bool lags = node.resource_version < wrote.node_version ||
                    (wrote.status_version > 0 && (!object || object->resource_version < wrote.status_version));
  if (lags && settings_.now() - match->second.time < lag_allowed) return true;
  written_.erase(match);
  return false;
}

controller::milliseconds enrolment::lasted(const std::string& name, const api::mode_status& status) {
  auto& seen = phases_[name];
  if (seen.phase != status.phase || seen.began != status.since) {
    seen = {status.phase, status.since, settings_.now(), controller::milliseconds(0)};
    const auto wall = std::chrono::floor<std::chrono::seconds>(settings_.wall().time_since_epoch()).count();
    if (const auto began = controller::parse_rfc3339_seconds(status.since); began && *began < wall)
      seen.before = std::chrono::seconds(wall - *began);
  }
  return settings_.now() - seen.since + seen.before;
}

node_state enrolment::state_of(const kube::node& node, const api::accelerator_node* object) {
  const auto* rules = policy();
  const auto& name = node.key.name;
  node_state out;
  out.wanted = intent_of(node, rules, declared_, pods_.foreign(name));
  out.taken_over = node.labels.contains(api::names::taken_over_label);
  out.placed = node.labels.value_or(api::names::module_label, "");
  out.placed_enabled = rules && rules->enabled(out.placed);
  if (const auto position = taint_at(node)) {
    out.taint = switching::parse(node.taints[*position].value);
    out.from_enabled = rules && rules->enabled(out.taint->source);
  }
  out.answers = node.ready == kube::condition_status::yes;
  out.governed = rules != nullptr;
  out.may_begin = changing_.contains(name) || slots() > 0;
  out.allocatable = node.allocatable;
  out.plugins = pods_.plugins(name);
  if (rules) out.offered = rules->offered.catalogue;
  if (out.plugins.empty() && out.placed_enabled) out.untolerated = untolerated_taints(node, *rules, out.placed);
  const auto& offered = modules::offered_by(rules);
  out.holders = pods_.holders(node, offered, offered.find(out.taint ? out.taint->source : out.placed));
  for (auto& holder : out.holders) {
    if (const auto match = refused_.find(holder.pod); match != refused_.end()) holder.refused = match->second;
    const auto* pod = pace_.came_back(name, holder) ? stores_.pods.find(holder.pod) : nullptr;
    if (pod) holder.returned_by = controller_name(*pod);
  }
  out.wall = std::chrono::floor<std::chrono::seconds>(settings_.wall().time_since_epoch()).count();
  if (rules) {
    out.verify_timeout = rules->enrolment.verify_timeout;
    out.drain_timeout = rules->enrolment.drain_timeout;
    out.evict = rules->enrolment.evict;
    out.policy_generation = rules->generation;
  }
  const bool all_sick =
      object && !object->cards.empty() && std::ranges::none_of(object->cards, &api::reported_card::healthy);
  const auto restarted = restarted_.find(name);
  out.may_restart = !all_sick && (restarted == restarted_.end() || settings_.now() - restarted->second > restart_pause);
  if (object && !object->mode.phase.empty()) {
    out.before = object->mode;
    out.in_phase = lasted(name, object->mode);
  }
  return out;
}

kube::task<action> enrolment::reconcile(kube::object_key key) {
  if (!synced() || (!policy() && settings_.awaits_policy())) co_return action::again(look_again);
  const auto* node = stores_.nodes.find(key);
  const auto* object = stores_.accelerator_nodes.find(key);
  if (!node) {
    written_.erase(key.name);
    phases_.erase(key.name);
    waiting_.erase(key.name);
    known_pods_.erase(key.name);
    pace_.forget(key.name);
    restarted_.erase(key.name);
    departures_.erase(key.name);
    if (!object || object->deleting) co_return action::await_change();
    co_return co_await remove(*object);
  }
  if (!object || !object->deleting) departures_.erase(key.name);
  if (node->deleting) co_return action::await_change();
  if (object && object->deleting)
    co_return co_await await_deletion(controller::object_reference(kube::resources::nodes, *node), *object);
  if (behind(*node, object)) co_return action::again(lag_allowed);
  // Another node of the same name: reports on the earlier one are void.
  if (object && owner_of(*object, *node) == belongs::to_another) co_return co_await remove(*object);
  if (const auto isolate = isolation_step(*node)) {
    auto patch = json::array({operation("test", "/metadata/uid", node->id.to_string())});
    patch_taint(*node, api::names::accelerator_taint, *isolate ? std::optional<std::string>("") : std::nullopt, patch);
    const auto done = co_await write(*node, patch);
    if (!done) co_return std::unexpected(done.error());
    co_return action::again(look_again);
  }
  if (const auto labels = cuda_labels(*node); !labels.idle()) {
    const auto patch = cuda::patch_of(*node, labels);
    const auto done = co_await write(*node, patch);
    if (!done) co_return std::unexpected(done.error());
    co_return action::again(look_again);  // the store shows it, or someone else's change, by then
  }
  co_return co_await bring(*node, object);
}

kube::task<action> enrolment::bring(const kube::node& node, const api::accelerator_node* object) {
  const auto is = state_of(node, object);
  const auto step = next_step(is);
  const auto name = node.key.name;
  const auto uid = node.id.to_string();
  const bool create = !object || owner_of(*object, node) != belongs::to_this;
  if (!is.taint && step.evict.empty()) pace_.forget(name);
  // What the node's agent has made or written stays as long as the node; nothing of our own is left in it.
  const bool is_agents =
      object && !step.status && (!object->boot.empty() || owner_of(*object, node) == belongs::to_none);
  const bool is_same = is.before == step.status || (status_.lacks_codes() && is.before == uncoded(step.status));
  const bool says_so = step.status ? !create && is_same : !object || is_agents;
  const std::optional<api::accelerator_node> last =
      object && !step.status && !is_agents ? std::optional(*object) : std::nullopt;
  const bool leaves = is_agents && !object->boot.empty() && (create || object->mode != api::mode_status());
  // The report is about the node as it is now: after a write it may have gone from the store.
  const controller::object_reference about(kube::resources::nodes, node);
  if (step.status && !step.quiet && step.status->reason == "MaxUnavailable")
    waiting_.insert(name);
  else
    waiting_.erase(name);

  if (step.writes_node() && !(step.status_first && !says_so)) {
    if (takes_plugin(is, step) && !knows_pods(name)) co_return co_await learn_pods(name);
    const auto patch = patch_of(node, step, policy());
    const auto done = co_await write(node, patch);
    if (!done) co_return std::unexpected(done.error());
    if (!*done) co_return action::again(look_again);
  }
  kube::result<void> done;
  if (leaves && object->mode == api::mode_status())
    done = co_await own(name, uid);  // thousands of agents that report for the first time: one write for each
  else if (leaves || (!says_so && step.status))
    done = co_await write_status(name, uid, create, step.status);
  if (!done) {
    if (overtaken(done.error().code)) co_return action::again(look_again);
    co_return std::unexpected(done.error());
  }
  tell(about, step, is);
  if (last) co_return co_await remove(*last);
  auto again_in = step.again_in;
  if (step.restart) {
    const auto restarted = co_await restart(about, *step.restart);
    if (!restarted) co_return std::unexpected(restarted.error());
  }
  if (!step.evict.empty()) {
    const auto later = co_await evict(name, step.evict);
    if (!later) co_return std::unexpected(later.error());
    if (*later && (!again_in || **later < *again_in)) again_in = *later;
  }
  co_return action{again_in};
}

bool enrolment::knows_pods(const std::string& node) const {
  const auto match = known_pods_.find(node);
  return match != known_pods_.end() && settings_.now() - match->second < word_counts;
}

/// The watch of pods may be late, or end without another. Before a plugin is taken away the API server itself is asked,
/// and the step is decided once more. It is one answer, without pages.
kube::task<action> enrolment::learn_pods(std::string node) {
  kube::list_options unfinished;
  unfinished.field_selector = "spec.nodeName=" + node + ",status.phase!=Succeeded,status.phase!=Failed";
  unfinished.limit = 0;
  const auto pods = co_await client_.list(kube::resources::pods, unfinished);
  if (!pods) co_return std::unexpected(pods.error());
  for (const auto& pod : *pods) {
    const kube::object_key key{kube::text_at(pod, "/metadata/namespace"), kube::text_at(pod, "/metadata/name")};
    const auto* known = stores_.pods.find(key);
    if (!known || known->id.to_string() != kube::text_at(pod, "/metadata/uid") || known->node_name != node)
      co_return action::again(lag_allowed);  // or sooner, with the watch
  }
  known_pods_[node] = settings_.now();
  const kube::object_key key{{}, node};
  co_return co_await reconcile(key);
}

/// False: the world moved on meanwhile.
kube::task<bool> enrolment::write(const kube::node& node, const json& patch) {
  const auto name = node.key.name;
  const auto version = node.resource_version;
  const auto options = forced_owner(api::names::field_owner);
  writing_.insert(name);
  follow(name);
  auto answer = co_await client_.patch(kube::resources::nodes, {{}, name}, kube::patch_kind::json, patch, {}, options);
  if (answer) {
    auto& wrote = written_[name];
    wrote.node_version = kube::version_of(*answer);
    wrote.time = settings_.now();
  }
  writing_.erase(name);
  follow(name);
  if (answer) co_return true;
  const auto* later = stores_.nodes.find({{}, name});
  const bool moved = !later || later->resource_version != version;
  // A failed test reads like any other 422: only where the node has moved on is it the one we expect.
  if (overtaken(answer.error().code) || (moved && answer.error().code == kube::errc::invalid)) co_return false;
  co_return std::unexpected(answer.error());
}

/// When to ask again; empty when no one refused and no one came back. What the API server says of one pod stops none of
/// the others: a pod that it cannot evict (under two PodDisruptionBudgets, say) is named among the blockers, with its
/// words.
kube::task<std::optional<controller::milliseconds>> enrolment::evict(std::string node, std::vector<holder> pods) {
  const auto turn = pace_.take(node, pods, settings_.now());
  auto later = turn.next;
  for (const auto& pod : turn.due) {
    kube::preconditions only_if;
    only_if.uid = pod.id.to_string();
    const auto key = pod.pod;
    const auto done = co_await client_.evict(key, only_if);
    if (done) pace_.evicted(node, pod, settings_.now());
    if (done || overtaken(done.error().code)) {
      refused_.erase(key);
      continue;
    }
    const auto& reason = done.error();
    if (reason.http == 0) co_return std::unexpected(reason);  // no one answered: the next would fare the same
    auto words = reason.code == kube::errc::too_many_requests
                     ? text::phrase{"status.node.refusal.budget"}
                     : text::phrase{"status.node.refusal.other", {{"error", reason.message}}};
    later = std::min<controller::milliseconds>(later.value_or(ask_again), ask_again);
    auto& last = refused_[key];
    if (last == words) continue;
    last = std::move(words);
    if (reason.code == kube::errc::too_many_requests) continue;
    controller::object_reference about;
    about.api_version = "v1";
    about.kind = "Pod";
    about.key = key;
    about.uid = pod.id.to_string();
    events_.record(about, controller::event_type::warning, "EvictionRefused", "Enrol", text::message_text(last));
  }
  co_return later;
}

kube::task<void> enrolment::restart(controller::object_reference about, plugin_pod pod) {
  restarted_[about.key.name] = settings_.now();
  kube::preconditions only_if;
  only_if.uid = pod.id.to_string();
  const auto done = co_await client_.remove(kube::resources::pods, pod.pod, only_if);
  if (!done && !overtaken(done.error().code)) co_return std::unexpected(done.error());
  if (done)
    events_.record(about, controller::event_type::warning, "PluginRestarted", "Enrol",
                   "plugin pod " + pod.name +
                       " is ready, and its kubelet offers 0 of its resource: the pod is deleted once, so that the next "
                       "one registers again. A plugin pod that is deleted with --force leaves its node so");
  co_return kube::result<void>();
}

namespace {

bool names_pod(const std::vector<std::string>& blockers, std::string_view pod) {
  return std::ranges::any_of(blockers, [&](std::string_view entry) { return api::pod_of_blocker(entry) == pod; });
}

}  // namespace

void enrolment::tell(const controller::object_reference& about, const mode_step& step, const node_state& is) {
  if (step.tell) events_.record(about, step.tell->type, step.tell->reason, step.tell->action, step.tell->note);
  for (const auto& blocker : step.blockers) {
    const auto name = blocker.name();
    const bool reported = is.before && names_pod(is.before->blockers, name);
    if (reported || !step.status || !names_pod(step.status->blockers, name)) continue;
    controller::object_reference pod;
    pod.api_version = "v1";
    pod.kind = "Pod";
    pod.key = blocker.pod;
    pod.uid = blocker.id.to_string();
    events_.record(
        pod, controller::event_type::normal, "HoldsModeChange", "Enrol",
        "node " + about.key.name + " waits for this pod to end: it is to change to mode " +
            (step.status->requested_mode) +
            (blocker.stays.empty() ? "" : "; this pod " + text::message_text(blocker.stays) + " and is not evicted"));
  }
}

kube::task<void> enrolment::own(std::string name, std::string uid) {
  const kube::object_key key{{}, name};
  const auto whole = object_of(name, uid);
  const auto options = forced_owner(api::names::node_field_owner);
  auto answer = co_await client_.apply(kube::resources::accelerator_nodes, key, whole, options);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  auto& wrote = written_[name];
  wrote.status_version = kube::version_of(*answer);
  wrote.time = settings_.now();
  co_return kube::result<void>();
}

kube::task<void> enrolment::write_status(std::string name, std::string uid, bool create,
                                         std::optional<api::mode_status> status) {
  const auto& type = kube::resources::accelerator_nodes;
  const kube::object_key key{{}, name};
  const auto options = forced_owner(api::names::node_field_owner);
  if (create) {
    auto done = co_await own(name, uid);
    if (!done) co_return std::unexpected(std::move(done.error()));
  }
  const auto body = status ? status_of(name, *status) : bare(name);
  auto answer = co_await status_.apply(client_, type, key, body, options);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  auto& wrote = written_[name];
  wrote.status_version = kube::version_of(*answer);
  wrote.time = settings_.now();
  if (status)
    lasted(name, *status);  // its time begins now, not when the watch shows it
  else
    phases_.erase(name);
  co_return kube::result<void>();
}

kube::task<action> enrolment::remove(const api::accelerator_node& object) {
  kube::preconditions only_if;
  only_if.uid = object.id.to_string();
  const auto key = object.key;
  const auto done = co_await client_.remove(kube::resources::accelerator_nodes, key, only_if);
  if (!done && !overtaken(done.error().code)) co_return std::unexpected(done.error());
  // The next look comes with the watch: the object is gone, or another has its name.
  phases_.erase(key.name);
  co_return action::await_change();
}

kube::task<action> enrolment::await_deletion(controller::object_reference node, api::accelerator_node object) {
  const auto key = object.key;
  auto& seen = departures_[key.name];
  if (seen.object != object.id) seen = {object.id, settings_.now(), false};
  const auto lasted = settings_.now() - seen.since;
  if (lasted < deletion_patience) co_return action::again(deletion_patience - lasted);
  if (seen.is_said) co_return action::await_change();
  seen.is_said = true;
  kube::list_options only;  // a right to read single ones is not needed for anything else
  only.field_selector = "metadata.name=" + key.name;
  const auto list = co_await client_.list(kube::resources::accelerator_nodes, only);
  if (!list) {
    departures_.erase(key.name);  // to be asked again, a minute later
    co_return std::unexpected(list.error());
  }
  std::vector<std::string> holders;
  for (const auto& entry : *list) {
    const auto metadata = entry.value("metadata", json::object());
    if (kube::text_in(metadata, "uid") == object.id.to_string())
      holders = metadata.value("finalizers", std::vector<std::string>());
  }
  if (holders.empty()) co_return action::await_change();
  const auto finalizers = text::some_of(holders);
  controller::log::warn("an AcceleratorNode is being deleted and held by a finalizer; its node is not enrolled",
                        {{"node", key.name}, {"finalizers", finalizers}});
  events_.record(
      node, controller::event_type::warning, "HeldByFinalizer", "Enrol",
      "AcceleratorNode " + key.name + " is being deleted and held by finalizer " + finalizers +
          ": until it is gone this node's mode stays as it is. Who set the finalizer has to take it off, or: "
          "kubectl patch anode " +
          key.name + R"( --type=merge -p '{"metadata":{"finalizers":null}}')");
  co_return action::await_change();
}

std::vector<kube::object_key> enrolment::affected_by(const kube::node* before, const kube::node* after) const {
  if (!after) return {before->key};
  if ((before && concerns(*before)) || concerns(*after)) return {after->key};
  return {};
}

std::vector<kube::object_key> enrolment::affected_by(const kube::pod* before, const kube::pod* after) const {
  auto out = pods_.affected_by(before, after);
  if (!pods_.gpu_operator_came_or_went(before, after)) return out;
  for (const auto& node : stores_.nodes.all()) {
    if (wanted_by_gpu_operator(node) && concerns(node) && std::ranges::find(out, node.key) == out.end())
      out.push_back(node.key);
  }
  return out;
}

std::vector<kube::object_key> enrolment::affected_by(const api::accelerator_node* before,
                                                     const api::accelerator_node* after) const {
  return {after ? after->key : before->key};
}

std::vector<kube::object_key> enrolment::declare(std::vector<label_alias> labels) {
  if (labels == declared_) return {};
  std::vector<kube::object_key> out;
  const auto add_concerned = [&] {
    for (const auto& node : stores_.nodes.all()) {
      if (concerns(node) && std::ranges::find(out, node.key) == out.end()) out.push_back(node.key);
    }
  };
  add_concerned();
  declared_ = std::move(labels);
  add_concerned();
  return out;
}

std::vector<kube::object_key> enrolment::isolation_changed() const {
  std::vector<kube::object_key> out;
  for (const auto& node : stores_.nodes.all()) {
    if (isolation_step(node)) out.push_back(node.key);
  }
  return out;
}

/// Any edit of the policy is a reason to try again what was given up.
std::vector<kube::object_key> enrolment::given_up() const {
  std::vector<kube::object_key> out;
  for (const auto& object : stores_.accelerator_nodes.all()) {
    if (object.mode.given_up) out.push_back(object.key);
  }
  return out;
}

std::vector<kube::object_key> enrolment::affected_by(const accelerator_policy* before,
                                                     const accelerator_policy* after) const {
  const auto& any = after ? *after : *before;
  if (any.key != policy_key) return {};
  // Nodes that the tested image does not suit are judged by whether the policy names another (intent.cpp).
  const auto own_image = [](const modules::module_type& type, const accelerator_policy& policy) {
    const auto spec = policy.modules.find(type.name);
    return type.needs.containerd_below != 0 && spec != policy.modules.end() && !spec->second.image.empty();
  };
  // And by whether its plugin needs CDI, which a node set may choose.
  const auto same_plugin = [&](const modules::module_type& type) {
    if (!type.follows_placement) return true;
    const auto first = before->modules.find(type.name), second = after->modules.find(type.name);
    if (first == before->modules.end() || second == after->modules.end())
      return (first == before->modules.end()) == (second == after->modules.end());
    return first->second.settings == second->second.settings && first->second.node_sets == second->second.node_sets;
  };
  const auto same_modules = [&] {
    return std::ranges::equal(modules::offered_by(before).rows(), modules::offered_by(after).rows(),
                              [&](const modules::module_type& type, const modules::module_type& other) {
                                return type.name == other.name && std::ranges::equal(type.resources, other.resources) &&
                                       std::ranges::equal(type.prefixes, other.prefixes) &&
                                       std::ranges::equal(type.needs.architectures, other.needs.architectures) &&
                                       before->enabled(type.name) == after->enabled(type.name) &&
                                       own_image(type, *before) == own_image(other, *after) && same_plugin(type);
                              });
  };
  if (before && after && before->id == after->id && before->deleting == after->deleting &&
      before->enrolment == after->enrolment && same_modules())
    return before->generation == after->generation ? std::vector<kube::object_key>() : given_up();
  std::vector<kube::object_key> out;
  for (const auto& node : stores_.nodes.all()) {
    if (concerns(node)) out.push_back(node.key);
  }
  return out;
}

}  // namespace reconcilers
