#include "reconcilers/declarations/resource_rules.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "api/names.hpp"
#include "kube/json_text.hpp"
#include "reconcilers/declarations/compiled.hpp"
#include "reconcilers/declarations/enforcement.hpp"
#include "reconcilers/modules/catalogue.hpp"
#include "reconcilers/modules/settings.hpp"
#include "text/list.hpp"

namespace reconcilers {
namespace {

using namespace std::chrono_literals;
using controller::action;
using nlohmann::json;

constexpr auto between_writes = 1s;
constexpr auto lag_allowed = 2s;
constexpr auto look_at_policies_every = 1min;
constexpr kube::resource mutating_policies{"admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies",
                                           "MutatingAdmissionPolicy", false};
constexpr kube::resource mutating_bindings{"admissionregistration.k8s.io", "v1", "mutatingadmissionpolicybindings",
                                           "MutatingAdmissionPolicyBinding", false};
constexpr kube::resource validating_bindings{"admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings",
                                             "ValidatingAdmissionPolicyBinding", false};
struct chart_policy {
  const kube::resource* type;
  const char* name;
  const kube::resource* bindings;
  bool suffixed;  ///< a binding per mode, named with -deny and -warn; otherwise one, named as the policy
};
constexpr const auto* validating_policies = &kube::resources::validating_admission_policies;
constexpr std::array<chart_policy, 5> chart_policies{{
    {validating_policies, "resource-rules.quartermaster.io", &validating_bindings, true},
    {validating_policies, "resource-advice.quartermaster.io", &validating_bindings, false},
    {validating_policies, "resource-templates.quartermaster.io", &validating_bindings, false},
    {validating_policies, "declarations.quartermaster.io", &validating_bindings, true},
    {&mutating_policies, "resource-defaults.quartermaster.io", &mutating_bindings, false},
}};

const kube::object_key only = api::compiled_rules::only();
const std::vector<kube::object_key> again{only};

bool ours(const api::compiled_rules& object) {
  return object.labels.value_or(api::names::managed_by_label, "") == api::names::managed_by;
}

bool same(const json& want, const api::compiled_rules* is) {
  if (!is) return false;
  for (const auto& [name, value] : want["metadata"]["labels"].items()) {
    if (is->labels.value_or(name, "") != value.get_ref<const std::string&>()) return false;
  }
  return json::parse(is->spec, nullptr, false) == want["spec"];
}

text::phrase rules_phrase(std::string_view key, std::vector<text::phrase_argument> arguments) {
  return {"status.rules." + std::string(key), std::move(arguments)};
}

}  // namespace

std::string_view single_share(const accelerator_policy& policy) {
  constexpr std::string_view module = "share", setting = "failRequestsGreaterThanOne";
  const auto* row = modules::find(module);
  const auto spec = policy.modules.find(module);
  const auto is_strict = [&](const module_spec& known) {
    return modules::flag_of(row->settings, known, setting) &&
           std::ranges::none_of(known.node_sets, [&](const auto& set) {
             const auto own = set.settings.find(setting);
             return own != set.settings.end() && own->second != "true";
           });
  };
  const bool strict = is_strict(spec == policy.modules.end() ? module_spec() : spec->second);
  return strict && !row->resources.empty() ? row->resources.front() : std::string_view();
}

resource_rules::resource_rules(stores stores, custom_resource& declared, kube::client& client, settings settings)
    : stores_(stores), declared_(declared), client_(client), settings_(std::move(settings)) {
  for (const auto& node : stores_.nodes.all()) count(nullptr, &node);
  stores_.nodes.observe([this](const auto* before, const auto* after) { count(before, after); });
}

void resource_rules::count(const kube::node* before, const kube::node* after) {
  if (before && after && before->allocatable == after->allocatable) return;
  const auto add = [this](const kube::node* node, int delta) {
    if (!node) return;
    for (const auto& [key, amount] : node->allocatable) {
      if (amount <= 0) continue;
      auto& nodes = offering_[key];
      nodes += delta;
      if (nodes > 0)
        offered_.insert(key);
      else
        offered_.erase(key);
    }
  };
  add(after, 1);
  add(before, -1);
}

bool resource_rules::synced() const {
  return stores_.policies.synced() && stores_.nodes.synced() && stores_.rules.synced() && declared_.synced();
}

/// What was compiled last: as the object has it, but for what we know better.
declarations::rule_set resource_rules::last_good(const api::compiled_rules* is) const {
  auto out = is ? declarations::rules_of(json::parse(is->spec, nullptr, false)) : declarations::rule_set();
  if (kept_.empty()) return out;
  std::set<kube::object_key> known;
  for (const auto& entry : kept_) known.insert(entry.config_map);
  std::erase_if(out.rules, [&](const declarations::rule& rule) { return known.contains(rule.config_map); });
  out.rules.insert(out.rules.end(), kept_.begin(), kept_.end());
  std::ranges::sort(out.rules, {}, &declarations::rule::key);
  return out;
}

json resource_rules::object_of(const accelerator_policy& policy, const api::compiled_rules* is) {
  declarations::compile_options options;
  options.fill_optional = policy.resources.fill_optional;
  options.offered = &offered_;
  options.one_only = single_share(policy);
  const auto of_now = declared_.registry().compile(options);
  const auto last = last_good(is);
  options.last = &last;
  auto all = declared_.registry().compile(options);
  kept_.clear();
  for (const auto& rule : all.rules) {
    if (!of_now.find(rule.key)) kept_.push_back(rule);
  }
  auto compiled = declarations::fitting(std::move(all));
  keys_ = compiled.rules.rules.size();
  left_out_ = compiled.left_out;
  auto spec = declarations::spec_of(compiled.rules);
  const auto& mode = policy.resources.enforcement;
  // Where the webhook fills, it may be away while the API server refuses: then a default that no one wrote is no fault.
  if (!settings_.filled_by_policies() && mode == "Deny") {
    for (const auto& rule : compiled.rules.rules) {
      if (rule.fill) spec["rules"][rule.key]["absentPasses"] = true;
    }
  }
  const auto& type = kube::resources::resource_rules;
  const auto sends = settings_.sends().value_or(is && is->sends_pods());
  const bool is_static_pod = policy.scheduler.mode == "StaticPod" && !policy.removing;
  return {{"apiVersion", type.api_version()},
          {"kind", type.kind},
          {"metadata",
           {{"name", only.name},
            {"labels",
             {{api::names::managed_by_label, api::names::managed_by},
              {api::names::enforcement_label, mode},
              {api::names::scheduler_label, sends           ? "Dedicated"
                                            : is_static_pod ? "StaticPod"
                                                            : "None"}}}}},
          {"spec", std::move(spec)}};
}

kube::task<action> resource_rules::reconcile(kube::object_key key) {
  if (key != only) co_return action::await_change();
  if (!synced()) co_return action::again(250ms);
  const auto* policy = stores_.policies.find(policy_key);
  const auto* object = stores_.rules.find(only);
  if (!policy || policy->deleting) {
    say(std::nullopt);
    kept_.clear();
    if (!object || !ours(*object)) co_return action::await_change();
    co_return co_await remove(*object);
  }
  const auto now = settings_.now();
  if ((!object || object->resource_version < wrote_version_) && now - wrote_ < lag_allowed)
    co_return action::again(lag_allowed);
  // All declarations are compiled each time, so a thousand that come at once are not compiled a thousand times.
  if (now - wrote_ < between_writes) co_return action::again(between_writes - (now - wrote_));
  const auto want = object_of(*policy, object);
  if (!same(want, object)) {
    kube::write_options options;
    options.field_manager = api::names::field_owner;
    options.force = true;
    auto answer = co_await client_.apply(kube::resources::resource_rules, only, want, options);
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    wrote_ = now;
    wrote_version_ = kube::version_of(*answer);
  }
  const auto* match = stores_.policies.find(policy_key);
  const auto mode = match ? match->resources.enforcement : std::string("Off");
  const bool enforcing = mode != "Off";
  const bool due = !looked_ || mode != looked_for_ || settings_.now() - *looked_ >= look_at_policies_every;
  if (enforcing && due) {
    auto looked = co_await look_at_chart(mode);
    if (!looked) co_return std::unexpected(std::move(looked.error()));
  }
  if (const auto* still = stores_.policies.find(policy_key)) say(condition_of(*still));
  if (enforcing) co_return action::again(look_at_policies_every);
  co_return action::await_change();
}

kube::task<action> resource_rules::remove(const api::compiled_rules& object) {
  kube::preconditions only_if;
  only_if.uid = object.id.to_string();
  const auto done = co_await client_.remove(kube::resources::resource_rules, only, only_if);
  const bool finished = done || done.error().code == kube::errc::not_found || done.error().code == kube::errc::conflict;
  if (!finished) co_return std::unexpected(done.error());
  co_return action::await_change();
}

/// What of the chart is not there, or not as the mode needs it: a policy without its binding does nothing.
kube::task<void> resource_rules::look_at_chart(std::string mode) {
  const bool fills = mode == "Deny";
  auto found = co_await problem_of_policies(mode);
  if (found && found->empty() && fills && !settings_.filled_by_policies()) found = co_await problem_of_webhook();
  if (!found) co_return std::unexpected(std::move(found.error()));
  problem_ = std::move(*found);
  looked_ = settings_.now();
  looked_for_ = std::move(mode);
  co_return kube::result<void>();
}

/// The first of the chart's policies that does not act as the mode says.
kube::task<text::phrase> resource_rules::problem_of_policies(std::string mode) {
  for (const auto& [type, name, bindings, suffixed] : chart_policies) {
    const bool fills = type == &mutating_policies;
    if (fills && !settings_.filled_by_policies()) continue;
    auto found = co_await problem_of_policy(*type, name);
    if (!found || !found->empty()) co_return found;
    if (fills && mode != "Deny") continue;
    std::string binding(name);
    if (suffixed) binding.insert(binding.find('.'), mode == "Deny" ? "-deny" : "-warn");
    found = co_await problem_of_binding(*bindings, binding, name, fills ? "" : suffixed ? mode : "Warn");
    if (!found || !found->empty()) co_return found;
  }
  co_return text::phrase();
}

/// Whether it is there, and what the API server's type checker says of it.
kube::task<text::phrase> resource_rules::problem_of_policy(const kube::resource& type, std::string name) {
  const auto answer = co_await client_.get(type, kube::object_key{{}, name});
  if (!answer && answer.error().code != kube::errc::not_found) co_return std::unexpected(answer.error());
  if (!answer) co_return rules_phrase("policy_missing", {{"name", name}});
  const auto warnings = answer->value("/status/typeChecking/expressionWarnings"_json_pointer, json::array());
  if (warnings.empty()) co_return text::phrase();
  co_return rules_phrase(
      "policy_doubted",
      {{"name", name}, {"field", warnings[0].value("fieldRef", "")}, {"warning", warnings[0].value("warning", "")}});
}

kube::task<text::phrase> resource_rules::problem_of_binding(const kube::resource& type, std::string name,
                                                            std::string policy, std::string action) {
  const auto answer = co_await client_.get(type, kube::object_key{{}, name});
  if (!answer && answer.error().code != kube::errc::not_found) co_return std::unexpected(answer.error());
  if (!answer) co_return rules_phrase("binding_missing", {{"name", name}, {"policy", policy}});
  const auto spec = answer->value("spec", json::object());
  const auto actions = spec.value("validationActions", json::array());
  const bool acts = action.empty() || std::ranges::find(actions, json(action)) != actions.end();
  if (spec.value("policyName", "") == policy && acts && spec.contains("paramRef")) co_return text::phrase();
  co_return rules_phrase("binding_changed", {{"name", name}, {"policy", policy}});
}

/// Where the webhook fills pods in, the API server must be told to call it.
kube::task<text::phrase> resource_rules::problem_of_webhook() {
  const auto answer = co_await client_.get(kube::resources::mutating_webhook_configurations,
                                           kube::object_key{{}, std::string(api::names::managed_by)});
  if (!answer && answer.error().code != kube::errc::not_found) co_return std::unexpected(answer.error());
  const auto webhooks = answer ? answer->value("webhooks", json::array()) : json::array();
  const auto fills = [](const json& entry) { return entry.value("name", "") == mutate_pods_route.webhook; };
  if (std::ranges::any_of(webhooks, fills)) co_return text::phrase();
  co_return rules_phrase("webhook_missing", {{"name", std::string(mutate_pods_route.webhook)}});
}

controller::condition resource_rules::condition_of(const accelerator_policy& policy) const {
  controller::condition out;
  out.type = "RulesEnforced";
  out.generation = policy.generation;
  const auto& mode = policy.resources.enforcement;
  std::vector<text::phrase> counts{text::counted_phrase(keys_, "status.rules.keys")};
  if (!kept_.empty()) counts.push_back(text::counted_phrase(kept_.size(), "status.rules.kept"));
  if (left_out_ > 0) counts.push_back(text::counted_phrase(left_out_, "status.rules.left_out"));
  if (mode == "Off") {
    out.status = "False";
    out.reason = "Off";
    counts.push_back(rules_phrase("off", {}));
    out.message = text::joined_by_semicolons(std::move(counts));
  } else if (!problem_.empty()) {
    out.status = "False";
    out.reason = "PoliciesUnusable";
    out.message = problem_;
  } else {
    out.status = left_out_ > 0 ? "False" : "True";
    out.reason = left_out_ > 0 ? "TooManyKeys" : mode == "Deny" ? "Deny" : "Warn";
    out.message = text::joined_by_semicolons(std::move(counts));
  }
  return out;
}

void resource_rules::say(std::optional<controller::condition> update) {
  if (update == state_) return;
  state_ = std::move(update);
  settings_.on_state();
}

std::vector<kube::object_key> resource_rules::affected_by(const accelerator_policy*, const accelerator_policy*) const {
  return again;
}

std::vector<kube::object_key> resource_rules::affected_by(const kube::node* before, const kube::node* after) const {
  const auto keys = [](const kube::node* node) {
    std::vector<std::string_view> out;
    if (!node) return out;
    for (const auto& [key, amount] : node->allocatable) {
      if (amount > 0) out.push_back(key);
    }
    return out;
  };
  if (keys(before) == keys(after)) return {};
  return again;
}

std::vector<kube::object_key> resource_rules::affected_by(const kube::config_map* before,
                                                          const kube::config_map* after) const {
  return is_other_content(before, after) ? again : std::vector<kube::object_key>();
}

std::vector<kube::object_key> resource_rules::affected_by(const api::compiled_rules* before,
                                                          const api::compiled_rules* after) const {
  return {after ? after->key : before->key};
}

std::vector<kube::object_key> resource_rules::affected_by(const api::owned_runtime_class* before,
                                                          const api::owned_runtime_class* after) const {
  if (before && after) return {};
  return again;
}

}  // namespace reconcilers
