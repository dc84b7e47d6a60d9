#include "reconcilers/container_runtime/runtime_fixer.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/hash.hpp"
#include "api/names.hpp"
#include "reconcilers/container_runtime/pod.hpp"

namespace reconcilers::container_runtime {
namespace {

using namespace std::chrono_literals;
using controller::action;
using nlohmann::json;
using kind = fix_step::kind;

constexpr auto look_again = 250ms;
/// The watch shows a pod that we made within this time, or it is gone again.
constexpr auto watch_patience = 5s;
constexpr auto retry_after = 60s;

bool is_selected(const kube::node& node, const settings_map& selector) {
  return !selector.empty() && !node.deleting && std::ranges::all_of(selector, [&](const auto& label) {
    return node.labels.find(label.first) == label.second;
  });
}

bool is_ours(const kube::pod& pod) {
  return pod.labels.value_or(api::names::managed_by_label, "") == api::names::managed_by &&
         pod.labels.value_or(api::names::part_label, "") == part;
}

}  // namespace

runtime_fixer::runtime_fixer(stores stores, kube::client& client, controller::recorder& events, settings settings)
    : stores_(stores), client_(client), events_(events), settings_(std::move(settings)) {
  if (settings_.own_image.empty()) settings_.own_image = "quartermaster:" QUARTERMASTER_VERSION;
}

kube::object_key runtime_fixer::only() { return {{}, std::string(part)}; }

bool runtime_fixer::synced() const {
  return stores_.policies.synced() && stores_.nodes.synced() && stores_.pods.synced() && stores_.reports.synced();
}

const accelerator_policy* runtime_fixer::policy() const {
  const auto* rules = stores_.policies.find(policy_key);
  return rules && !rules->deleting && !rules->container_runtime.node_selector.empty() ? rules : nullptr;
}

const kube::pod* runtime_fixer::pod() const { return stores_.pods.find({settings_.ns, std::string(pod_name)}); }

bool runtime_fixer::has_work() const { return policy() || pod(); }

std::string runtime_fixer::wish_of(const container_runtime_spec& spec) const {
  return api::hex(api::fnv1a(json(spec.node_selector).dump() + settings_.own_image));
}

std::optional<fix_pod> runtime_fixer::pod_now() const {
  const auto* found = pod();
  if (!found) return std::nullopt;
  fix_pod out;
  out.key = found->key;
  out.node = found->node_name;
  out.wish = found->annotations.value_or(api::names::applied_annotation, "");
  out.reason = found->reason;
  out.created = found->created;
  out.is_ours = is_ours(*found);
  out.is_deleting = found->deleting;
  out.has_succeeded = found->phase == kube::pod_phase::succeeded;
  out.has_failed = found->phase == kube::pod_phase::failed;
  const auto* report = stores_.reports.find({{}, found->node_name});
  out.has_report = report;
  if (report && report->fix && report->fix->pod == found->id.to_string()) {
    out.recorded = std::max<std::int64_t>(report->fix->timestamp, 1);
    out.answer = phrase_of(report->fix->code, report->fix->message);
  }
  return out;
}

fix_state runtime_fixer::look() const {
  fix_state out;
  out.pod = pod_now();
  out.wall = std::chrono::floor<std::chrono::seconds>(settings_.wall().time_since_epoch()).count();
  const auto* rules = policy();
  if (!rules) return out;
  out.is_wanted = true;
  out.wish = wish_of(rules->container_runtime);
  for (const auto& node : stores_.nodes.all()) {
    if (!is_selected(node, rules->container_runtime.node_selector)) continue;
    const auto* report = stores_.reports.find(node.key);
    // k0s reports its containerd without its own name.
    const auto* distribution = node.kubelet_version.contains("+k0s") ? " of k0s" : "";
    out.nodes.push_back({node.key.name, node.container_runtime + distribution,
                         node.ready == kube::condition_status::yes, report ? report->default_runtime : std::nullopt,
                         report ? report->container_toolkit : std::nullopt});
  }
  return out;
}

kube::task<action> runtime_fixer::reconcile(kube::object_key key) {
  if (key != only()) co_return action::await_change();
  if (!synced()) co_return action::again(look_again);
  if (pod()) made_.reset();
  const auto step = next_fix_step(look());
  if (step.type != kind::make) problem_ = {};
  decide(step);
  if (step.type == kind::make) co_return co_await make(step);
  if (step.type == kind::record) co_return co_await record();
  if (step.type == kind::remove) co_return co_await remove();
  co_return step.again_in ? action::again(*step.again_in) : action::await_change();
}

/// An apply under the one name: of two leaders at the same time, the second finds a pod that cannot be changed.
kube::task<action> runtime_fixer::make(fix_step step) {
  if (made_ && settings_.now() - *made_ < watch_patience) co_return action::again(look_again);
  const auto* rules = policy();
  const pod_facts known{settings_.ns, settings_.own_image, wish_of(rules->container_runtime), rules->key.name,
                        rules->id.to_string()};
  const auto body = pod_for(step.node, step.runtime, known);
  const kube::object_key key{settings_.ns, std::string(pod_name)};
  kube::write_options options;
  options.field_manager = api::names::field_owner;
  const auto answer = co_await client_.apply(kube::resources::pods, key, body, options);
  problem_ = {};
  if (answer) {
    made_ = settings_.now();
    decide(step);
    co_return action::again(watch_patience);
  }
  if (answer.error().code != kube::errc::forbidden && answer.error().code != kube::errc::invalid)
    co_return std::unexpected(answer.error());
  if (pod()) co_return action::again(look_again);
  problem_ = {"status.runtimes.of_node", {{"node", step.node}, {"text", answer.error().message}}};
  decide(step);
  co_return action::again(retry_after);
}

kube::task<action> runtime_fixer::record() {
  const auto* found = pod();
  const auto* report = stores_.reports.find({{}, found->node_name});
  const auto* node = stores_.nodes.find({{}, found->node_name});
  const bool has_succeeded = found->phase == kube::pod_phase::succeeded;
  const auto pod_id = found->id.to_string(), report_id = report->id.to_string();
  const auto report_key = report->key;
  const auto code_before = report->fix ? report->fix->code : text::phrase_code();
  controller::object_reference about;
  if (node) about = controller::object_reference(kube::resources::nodes, *node);
  const kube::object_key key = found->key;
  const auto object = co_await client_.get(kube::resources::pods, key);
  if (!object && object.error().code == kube::errc::not_found) co_return action::again(look_again);
  if (!object) co_return std::unexpected(object.error());
  const auto answer = answer_of(*object);
  json record = {{"result", has_succeeded ? "Done" : "Failed"},
                 {"at", controller::rfc3339_seconds(settings_.wall())},
                 {"pod", pod_id}};
  controller::set_message(record, line_of(answer), code_of(answer));
  if (!record.contains("cause") && !code_before.empty()) record["cause"] = nullptr;
  // A merge keeps what the patch does not name.
  for (const auto& [name, value] : code_before.parameters) record["parameters"].emplace(name, nullptr);
  const json body = {{"metadata", {{"uid", report_id}}}, {"status", {{"runtimeFix", std::move(record)}}}};
  kube::write_options options;
  options.field_manager = api::names::field_owner;
  const auto written = co_await client_.patch(kube::resources::accelerator_nodes, report_key, kube::patch_kind::merge,
                                              body, "status", options);
  if (!written && (written.error().code == kube::errc::not_found || written.error().code == kube::errc::conflict))
    co_return action::again(look_again);
  if (!written) co_return std::unexpected(written.error());
  if (!about.kind.empty())
    events_.record(about, has_succeeded ? controller::event_type::normal : controller::event_type::warning,
                   has_succeeded ? "ContainerRuntimeFixed" : "ContainerRuntimeNotFixed", "FixRuntime", line_of(answer));
  co_return action::await_change();  // the watch of AcceleratorNodes shows it
}

kube::task<action> runtime_fixer::remove() {
  const auto* found = pod();
  kube::preconditions only_if;
  only_if.uid = found->id.to_string();
  const auto key = found->key;
  const auto done = co_await client_.remove(kube::resources::pods, key, only_if);
  if (!done && done.error().code != kube::errc::conflict) co_return std::unexpected(done.error());
  co_return action::again(look_again);
}

void runtime_fixer::decide(const fix_step& step) {
  std::optional<controller::condition> state;
  if (const auto* rules = policy()) {
    const bool is_halted = step.type == kind::halted || !problem_.empty(), is_over = step.type == kind::none;
    state.emplace();
    state->type = runtimes_fixed;
    state->status = is_over ? "True" : "False";
    state->reason = is_halted ? "Halted" : is_over ? "NoneLeft" : "Fixing";
    state->message = problem_.empty() ? step.message : problem_;
    state->generation = rules->generation;
  }
  const bool is_same = state_ == state;
  state_ = std::move(state);
  if (!is_same) settings_.on_state();
}

std::vector<kube::object_key> runtime_fixer::affected_by(const accelerator_policy* before,
                                                         const accelerator_policy* after) const {
  const auto& any = after ? *after : *before;
  const bool is_same = before && after && before->id == after->id && before->generation == after->generation &&
                       before->deleting == after->deleting;
  if (any.key != policy_key || is_same) return {};
  return {only()};
}

std::vector<kube::object_key> runtime_fixer::affected_by(const kube::node* before, const kube::node* after) const {
  const bool is_same = before && after && before->id == after->id && before->ready == after->ready &&
                       before->labels == after->labels && before->container_runtime == after->container_runtime &&
                       before->deleting == after->deleting;
  if (is_same || !has_work()) return {};
  return {only()};
}

std::vector<kube::object_key> runtime_fixer::affected_by(const kube::pod* before, const kube::pod* after) const {
  const auto& any = after ? *after : *before;
  if (any.key.name != pod_name || any.key.ns != settings_.ns) return {};
  return {only()};
}

std::vector<kube::object_key> runtime_fixer::affected_by(const api::accelerator_node* before,
                                                         const api::accelerator_node* after) const {
  const bool is_same = before && after && before->default_runtime == after->default_runtime &&
                       before->container_toolkit == after->container_toolkit && before->fix == after->fix;
  if (is_same || !has_work()) return {};
  return {only()};
}

}  // namespace reconcilers::container_runtime
