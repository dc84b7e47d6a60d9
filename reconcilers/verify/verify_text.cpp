#include <algorithm>
#include <array>

#include "reconcilers/verify/verify.hpp"
#include "text/messages.hpp"

namespace reconcilers::verify {
namespace {

using text::language;

struct stage_row {
  stage position;
  std::string_view name;
};
struct cause_row {
  stage_code cause;
  std::string_view name;
};

constexpr std::array<stage_row, static_cast<std::size_t>(stage::allocation) + 1> stages{{
    {stage::types, "types"},
    {stage::policy, "policy"},
    {stage::rules, "rules"},
    {stage::daemon_sets, "daemonsets"},
    {stage::leader, "leader"},
    {stage::scheduler, "scheduler"},
    {stage::extender, "extender"},
    {stage::callers, "callers"},
    {stage::runtimes, "runtimes"},
    {stage::health, "health"},
    {stage::quotas, "quotas"},
    {stage::view_api, "view-api"},
    {stage::label, "label"},
    {stage::node, "node"},
    {stage::module, "module"},
    {stage::enrolment, "enrolment"},
    {stage::agent, "agent"},
    {stage::preflight, "preflight"},
    {stage::module_label, "module-label"},
    {stage::plugin, "plugin"},
    {stage::other_plugins, "other-plugins"},
    {stage::resources, "resources"},
    {stage::pods, "pods"},
    {stage::taint, "taint"},
    {stage::allocation, "allocation"},
}};

constexpr std::array<cause_row, code_count> codes{{
    {stage_code::none, ""},
    {stage_code::types_missing, "types_missing"},
    {stage_code::policy_missing, "policy_missing"},
    {stage_code::policy_not_ready, "policy_not_ready"},
    {stage_code::policy_not_looked_at, "policy_not_looked_at"},
    {stage_code::policy_unknown, "policy_unknown"},
    {stage_code::rules_not_enforced, "rules_not_enforced"},
    {stage_code::declarations_elsewhere, "declarations_elsewhere"},
    {stage_code::declaration_refused, "declaration_refused"},
    {stage_code::daemon_set_missing, "daemonset_missing"},
    {stage_code::daemon_set_not_rolled_out, "daemonset_not_rolled_out"},
    {stage_code::daemon_set_updating, "daemonset_updating"},
    {stage_code::leader_missing, "leader_missing"},
    {stage_code::leader_silent, "leader_silent"},
    {stage_code::mode_label_missing, "mode_label_missing"},
    {stage_code::mode_label_mistyped, "mode_label_mistyped"},
    {stage_code::unknown_mode, "unknown_mode"},
    {stage_code::conflicting_labels, "conflicting_labels"},
    {stage_code::foreign_label, "foreign_label"},
    {stage_code::refused, "refused"},
    {stage_code::node_not_ready, "node_not_ready"},
    {stage_code::node_state_unseen, "node_state_unseen"},
    {stage_code::annotation_unreadable, "annotation_unreadable"},
    {stage_code::left_out_by_product, "left_out_by_product"},
    {stage_code::node_cordoned, "node_cordoned"},
    {stage_code::cards_cordoned, "cards_cordoned"},
    {stage_code::cordon_unknown, "cordon_unknown"},
    {stage_code::module_off, "module_off"},
    {stage_code::not_enrolled, "not_enrolled"},
    {stage_code::enrolment_behind, "enrolment_behind"},
    {stage_code::waits_for_pods, "waits_for_pods"},
    {stage_code::change_under_way, "change_under_way"},
    {stage_code::stuck, "stuck"},
    {stage_code::rolled_back, "rolled_back"},
    {stage_code::agent_gone, "agent_gone"},
    {stage_code::preflight_failed, "preflight_failed"},
    {stage_code::module_label_missing, "module_label_missing"},
    {stage_code::module_label_other, "module_label_other"},
    {stage_code::plugin_missing, "plugin_missing"},
    {stage_code::taint_not_tolerated, "taint_not_tolerated"},
    {stage_code::plugin_not_ready, "plugin_not_ready"},
    {stage_code::foreign_plugin, "foreign_plugin"},
    {stage_code::nothing_advertised, "nothing_advertised"},
    {stage_code::no_cards, "no_cards"},
    {stage_code::cards_unhealthy, "cards_unhealthy"},
    {stage_code::cards_sick, "cards_sick"},
    {stage_code::cards_missing, "cards_missing"},
    {stage_code::shares_withheld, "shares_withheld"},
    {stage_code::overbooked, "overbooked"},
    {stage_code::card_given_twice, "card_given_twice"},
    {stage_code::card_perhaps_given_twice, "card_perhaps_given_twice"},
    {stage_code::pods_not_counted, "pods_not_counted"},
    {stage_code::pods_on_missing_cards, "pods_on_missing_cards"},
    {stage_code::pod_of_other_mode, "pod_of_other_mode"},
    {stage_code::taint_left, "taint_left"},
    {stage_code::allocation_failed, "allocation_failed"},
    {stage_code::allocation_sees_nothing, "allocation_sees_nothing"},
    {stage_code::scheduler_not_ready, "scheduler_not_ready"},
    {stage_code::scheduler_asks_no_one, "scheduler_asks_no_one"},
    {stage_code::scheduler_leaving, "scheduler_leaving"},
    {stage_code::control_plane_node_stopped, "control_plane_node_stopped"},
    {stage_code::control_plane_node_rolled_back, "control_plane_node_rolled_back"},
    {stage_code::control_plane_node_without_agent, "control_plane_node_without_agent"},
    {stage_code::control_plane_node_not_ready, "control_plane_node_not_ready"},
    {stage_code::caller_certificate_ends, "caller_certificate_ends"},
    {stage_code::runtimes_not_fixed, "runtimes_not_fixed"},
    {stage_code::withdrawals_held_back, "withdrawals_held_back"},
    {stage_code::watches_refused, "watches_refused"},
    {stage_code::condition_unknown, "condition_unknown"},
    {stage_code::quota_not_enforced, "quota_not_enforced"},
    {stage_code::quota_counts_in_part, "quota_counts_in_part"},
    {stage_code::quota_not_looked_at, "quota_not_looked_at"},
    {stage_code::old_quotas_unreadable, "old_quotas_unreadable"},
    {stage_code::scheduler_unseen, "scheduler_unseen"},
    {stage_code::scheduler_looks_itself, "scheduler_looks_itself"},
    {stage_code::scheduler_found_no_node, "scheduler_found_no_node"},
    {stage_code::scheduler_did_not_ask, "scheduler_did_not_ask"},
    {stage_code::extender_unreachable, "extender_unreachable"},
    {stage_code::extender_untrusted, "extender_untrusted"},
    {stage_code::extender_refuses, "extender_refuses"},
    {stage_code::test_pod_refused, "test_pod_refused"},
    {stage_code::view_api_silent, "view_api_silent"},
}};

static_assert(
    [] {
      for (std::size_t i = 0; i < stages.size(); ++i) {
        if (stages[i].position != static_cast<stage>(i)) return false;
      }
      for (std::size_t i = 0; i < codes.size(); ++i) {
        if (codes[i].cause != static_cast<stage_code>(i)) return false;
      }
      return true;
    }(),
    "one row each, in the order of the enumerations");

std::string words_of(const std::string& key, const step& step, language locale, std::string_view node = {}) {
  const auto& other = locale == language::zh && !step.other_zh.empty() ? step.other_zh : step.other;
  const auto& value = locale == language::zh && !step.value_zh.empty() ? step.value_zh : step.value;
  return text::message(key, locale,
                       {{"value", value},
                        {"other", other},
                        {"node", std::string(node)},
                        {"pod", step.pod.name},
                        {"namespace", step.pod.ns}});
}

/// "verify.stage.module_label.good"
std::string key_of(stage stage, std::string_view part) {
  std::string name(to_string(stage));
  std::ranges::replace(name, '-', '_');
  return "verify.stage." + name + "." + std::string(part);
}
std::string key_of(stage_code code, std::string_view part) {
  return "verify." + std::string(to_string(code)) + "." + std::string(part);
}

/// Of warnings those that someone can do something about right away.
bool has_remedy(const step& step) {
  return step.is == outcome::wrong || step.is == outcome::changing || step.cause == stage_code::mode_label_missing ||
         step.cause == stage_code::shares_withheld || step.cause == stage_code::card_perhaps_given_twice;
}

std::string good_text(const step& step, language locale) {
  if (step.position == stage::label && step.other.empty())
    return words_of(step.value.empty() ? "verify.stage.label.none" : "verify.stage.label.without_mode", step, locale);
  if (step.position == stage::label && step.value.empty()) return words_of("verify.stage.label.default", step, locale);
  if (step.position == stage::policy && step.value.empty()) return words_of("verify.stage.policy.ready", step, locale);
  if (step.position == stage::scheduler && step.value == "None")
    return words_of("verify.stage.scheduler.mode_none", step, locale);
  if (step.position == stage::pods) {
    const auto out = words_of(step.value == "1" ? "verify.stage.pods.one" : "verify.stage.pods.several", step, locale);
    return step.other.empty() ? out : out + words_of("verify.stage.pods.which", step, locale);
  }
  return words_of(key_of(step.position, "good"), step, locale);
}

}  // namespace

std::string_view to_string(stage stage) noexcept { return stages[static_cast<std::size_t>(stage)].name; }
std::string_view name_of(stage stage, language locale) { return text::pattern_of(key_of(stage, "name"), locale); }

std::string_view to_string(outcome is) noexcept {
  constexpr std::array<std::string_view, 6> all{"good", "wrong", "changing", "warning", "unknown", "skipped"};
  return all[static_cast<std::size_t>(is)];
}

std::string_view to_string(stage_code code) noexcept { return codes[static_cast<std::size_t>(code)].name; }

std::string text_of(const step& step, language locale) {
  if (step.row) return reconcilers::text_of(*step.row, locale);
  if (step.is == outcome::skipped) return text::message("verify.step.skipped", locale);
  if (step.is == outcome::good) return good_text(step, locale);
  if (step.cause == stage_code::none && step.is == outcome::unknown)
    return locale == language::zh ? step.other_zh : step.other;
  if (step.cause == stage_code::none) return step.value;
  if (step.cause == stage_code::preflight_failed) return {};  // its row says it
  auto out = words_of(key_of(step.cause, "wrong"), step, locale);
  if (step.cause == stage_code::policy_missing && !step.value.empty())
    out += words_of("verify.step.other_policy", step, locale);
  return out;
}

std::string remedy_of(const step& step, std::string_view node, language locale) {
  if (step.row) return reconcilers::remedy_of(*step.row, locale);
  if (!has_remedy(step)) return {};
  if (step.cause == stage_code::none || step.cause == stage_code::preflight_failed) return {};
  if (step.cause == stage_code::cards_sick && step.other.empty())
    return words_of("verify.cards_sick.without_xid", step, locale, node);
  return words_of(key_of(step.cause, "remedy"), step, locale, node);
}

}  // namespace reconcilers::verify
