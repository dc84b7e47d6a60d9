#include "reconcilers/verify/verify.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/memory.hpp"
#include "api/names.hpp"
#include "controller/coded_message.hpp"
#include "kube/json_text.hpp"
#include "quota/vocabulary.hpp"
#include "reconcilers/certificates/caller_certificates.hpp"
#include "reconcilers/container_runtime/fix_step.hpp"
#include "reconcilers/dialects/annotations.hpp"
#include "reconcilers/extender/brake.hpp"
#include "reconcilers/extender/inventory.hpp"
#include "reconcilers/nodes/foreign.hpp"
#include "reconcilers/nodes/intent.hpp"
#include "reconcilers/nodes/node_pods.hpp"
#include "reconcilers/nodes/shown_mode.hpp"
#include "reconcilers/nodes/taints.hpp"
#include "reconcilers/plugins/plugin_rollout.hpp"
#include "reconcilers/quotas/quota_status.hpp"
#include "reconcilers/verify/mistyped_label.hpp"
#include "text/text.hpp"

namespace reconcilers::verify {
namespace {

using kind = node_intent::kind;
using modules::advertises, modules::has_prefix, modules::module_type;

constexpr std::size_t most_named = 5;
/// Why a plugin pod is not ready that has nothing to do with the node's driver or cards.
constexpr std::string_view image_reasons[] = {"ErrImagePull", "ImagePullBackOff", "InvalidImageName",
                                              "ImageInspectError", "ErrImageNeverPull"};

/// With what the operator or we say, in both languages.
step with_other(step out, const text::phrase& message) {
  out.other = words_of(message, text::language::en);
  out.other_zh = words_of(message, text::language::zh);
  return out;
}
step with_value(step out, const text::phrase& message) {
  out.value = words_of(message, text::language::en);
  out.value_zh = words_of(message, text::language::zh);
  return out;
}
step unseen(stage stage, const text::phrase& reason) {
  return with_other({stage, outcome::unknown, stage_code::none, {}, {}, {}}, reason);
}
step good(stage stage, std::string value = {}, std::string other = {}) {
  return {stage, outcome::good, stage_code::none, std::move(value), std::move(other), {}};
}
step wrong(stage stage, stage_code code, std::string value = {}, std::string other = {}) {
  return {stage, outcome::wrong, code, std::move(value), std::move(other), {}};
}
step warning(stage stage, stage_code code, std::string value = {}) {
  return {stage, outcome::warning, code, std::move(value), {}, {}};
}
step skipped(stage stage) { return {stage, outcome::skipped, stage_code::none, {}, {}, {}}; }
outcome outcome_of(api::check_state state) {
  switch (state) {
    case api::check_state::ok:
      return outcome::good;
    case api::check_state::warning:
      return outcome::warning;
    case api::check_state::failed:
      return outcome::wrong;
    case api::check_state::unknown:
      return outcome::unknown;
    case api::check_state::not_needed:
      return outcome::skipped;
  }
  return outcome::unknown;
}
bool is_wrong(const step& step) { return step.is == outcome::wrong; }
/// Wrong, changing, a warning, or not known.
bool is_finding(const step& step) { return step.is != outcome::good && step.is != outcome::skipped; }

std::string of_total(std::int64_t some, std::int64_t all) { return std::to_string(some) + "/" + std::to_string(all); }

void append(std::string& list, std::string_view item) { (list += list.empty() ? "" : ", ") += item; }

/// The labels people ask with, as they are written.
std::string asking_labels(const kube::node& node, const accelerator_policy* policy,
                          std::span<const label_alias> declared) {
  std::string out;
  const auto add = [&](std::string_view key) {
    if (const auto value = node.labels.find(key)) append(out, std::string(key) + "=" + std::string(*value));
  };
  add("nvidia-device-enable");
  add("quartermaster.io/mode");
  const auto add_all = [&](std::span<const label_alias> aliases) {
    for (const auto& alias : aliases) {
      if (!out.contains(alias.key + "=")) add(alias.key);
    }
  };
  add_all(declared);
  if (policy) add_all(policy->enrolment.aliases);
  return out;
}

nlohmann::json status_of(const cluster_view& view) {
  return view.policy ? nlohmann::json::parse(view.policy->status, nullptr, false) : nlohmann::json();
}

/// The members of a list in a status, which a file of `--snapshot` may have as anything.
nlohmann::json list_of(const nlohmann::json& status, const char* name) {
  const auto match = status.find(name);
  return match != status.end() && match->is_array() ? *match : nlohmann::json::array();
}

/// The condition of that type; an empty object where there is none.
nlohmann::json condition_of(const nlohmann::json& status, std::string_view type) {
  if (!status.is_object()) return nlohmann::json::object();
  for (const auto& entry : list_of(status, "conditions")) {
    if (entry.is_object() && kube::text_in(entry, "type") == type) return entry;
  }
  return nlohmann::json::object();
}

/// What is wrong with a module, in a word, as the policy says of it; empty: nothing.
std::string problem_of(const cluster_view& view, std::string_view module) {
  const auto status = status_of(view);
  if (!status.is_object()) return {};
  for (const auto& entry : list_of(status, "modules"))
    if (entry.is_object() && kube::text_in(entry, "name") == module) return kube::text_in(entry, "problem");
  return {};
}

/// The node on which the roll-out of a module halted; empty: none did.
std::string halted_on(const cluster_view& view, std::string_view module) {
  // Asked for each node, and the status is parsed each time: where nothing has halted it is not read at all.
  if (!view.policy || !view.policy->status.contains("RolloutHalted")) return {};
  if (problem_of(view, module) != "RolloutHalted") return {};
  for (const auto& set : view.daemon_sets) {
    const auto note = api::remembered(set.annotations, api::names::rollout_annotation);
    if (!note || set.labels.value_or(api::names::module_label, "") != module) continue;
    const auto record = rollout_record::parse(*note, set.key.name);
    if (record) return record->node;
  }
  return {};
}

bool is_on_missing_card(const text::phrase& pod) {
  return std::ranges::any_of(
      pod.arguments, [](const text::phrase_argument& part) { return part.inner.key == "uncounted.no_such_card"; });
}

/// With the first of them.
step of_pods(stage_code code, std::span<const text::phrase> pods) {
  auto out = wrong(stage::pods, code);
  for (const auto& pod : pods.first(std::min(pods.size(), most_named))) {
    append(out.other, words_of(pod, text::language::en));
    append(out.other_zh, words_of(pod, text::language::zh));
  }
  if (pods.size() > most_named) out.other += ", …", out.other_zh += ", …";
  return out;
}

/// Units of a resource that one whole card is; 0 where that depends on the card.
std::int64_t per_card(std::string_view resource) {
  if (resource == "nvidia.com/gpu") return 1;
  return resource == "tencent.com/vcuda-core" || resource == "nvidia.com/mps-core" ? 100 : 0;
}

class node_walker {
 public:
  node_walker(const cluster_view& view, const node_view& is, bool leaderless)
      : cluster_(view),
        is_(is),
        policy_(view.policy ? &*view.policy : nullptr),
        offered_(modules::offered_by(policy_)),
        leaderless_(leaderless),
        wanted_(intent_of(is.node, policy_, view.declared, is.foreign)),
        serving_(offered_.find(is.node.labels.value_or(api::names::module_label, ""))),
        halted_(serving_ && halted_on(view, serving_->name) == is.node.key.name) {}

  node_walk walk() {
    node_walk out;
    out.node = is_.node.key.name;
    const auto* mode = wanted_.mode ? offered_.find(wanted_.mode->name) : serving_;
    if (mode) out.mode = mode->name;
    out.current = current_mode(is_.node, is_.status ? &*is_.status : nullptr);
    out.requested = wanted_.requested;
    out.shown_mode = shown_mode(is_.node, is_.status ? &*is_.status : nullptr);
    if (mode && out.shown_mode == "none") out.shown_mode = mode->name;
    auto& step = out.steps;
    step.push_back(label());
    for (auto& fault : faults()) step.push_back(std::move(fault));
    const bool apart = wanted_.type == kind::left_alone || (wanted_.type == kind::none && !serving_ && !is_.status);
    if (apart) {
      if (tainted()) step.push_back(wrong(stage::taint, stage_code::taint_left));
      return out;
    }
    step.push_back(node());
    for (auto& cordon : cordons()) step.push_back(std::move(cordon));
    if (wanted_.mode) step.push_back(module());
    const auto rows = checks(mode);
    const bool unfit = std::ranges::any_of(rows, is_wrong);
    refused_ = wanted_.type == kind::refused;
    const auto label_step = module_label();
    const auto plugin_step = plugin(unfit);
    const auto others_step = others();
    auto resources_step = resources(plugin_step.is == outcome::good, unfit);
    const bool explained = unfit || halted_ || !ready() || is_wrong(plugin_step) || is_wrong(others_step) ||
                           is_wrong(resources_step) || plugin_explained_;
    step.push_back(enrolment(explained, rows));
    // A sick card stays one while the mode changes, or the plugin does not work.
    if (auto sick = sick_cards(); resources_step.is == outcome::skipped && sick) resources_step = *std::move(sick);
    if (!is_.old_report.empty())
      step.push_back(with_value(warning(stage::agent, stage_code::agent_gone), is_.old_report));
    std::ranges::copy(rows, std::back_inserter(step));
    step.insert(step.end(), {label_step, plugin_step, others_step, resources_step});
    if (is_.withheld_cards > 0 && serving_)
      step.push_back(warning(stage::resources, stage_code::shares_withheld, std::to_string(is_.withheld_cards)));
    for (auto& pod : pods(resources_step.is == outcome::good)) step.push_back(std::move(pod));
    step.push_back(taint());
    return out;
  }

 private:
  /// A file may leave the conditions out. Then nothing follows from them.
  bool is_state_unseen() const {
    return is_.node.ready == kube::condition_status::unknown && is_.node.ready_since == 0;
  }
  bool ready() const { return is_.node.ready == kube::condition_status::yes || is_state_unseen(); }
  std::string_view phase() const { return is_.status ? std::string_view(is_.status->phase) : std::string_view(); }
  std::string expected() const { return wanted_.requested.empty() ? "none" : wanted_.requested; }
  /// AcceleratorNode is about what the labels say now.
  bool followed() const { return is_.status && is_.status->requested_mode == expected(); }
  bool changing() const {
    return phase() == phases::draining || phase() == phases::removing || phase() == phases::enrolling ||
           phase() == phases::waiting;
  }
  bool tainted() const {
    return std::ranges::any_of(is_.node.taints,
                               [](const auto& entry) { return entry.key == api::names::switching_taint; });
  }

  /// With what speaks against the mode that the node asks for.
  step refused(stage position, stage_code code, std::string value) const {
    return with_other(wrong(position, code, std::move(value)), wanted_.message);
  }

  /// No one has asked for a mode, or someone has by a key that no one reads.
  step no_mode(const std::string& asking_label) const {
    if (!asking_label.empty()) return good(stage::label, asking_label);
    if (const auto mistyped = mistyped_label_of(is_.node, policy_, cluster_.declared))
      return wrong(stage::label, stage_code::mode_label_mistyped, mistyped->label, mistyped->meant);
    if (cluster_.whole || serving_ || is_.status || !is_said_to_have_cards()) return good(stage::label);
    std::string modes;
    for (const auto& mode : offered_.rows())
      if (policy_ && policy_->enabled(mode.name) && !mode.label_values.empty())
        append(modes, mode.label_values.front());
    return warning(stage::label, stage_code::mode_label_missing, modes.empty() ? "-" : modes);
  }

  /// With the label as it should be.
  step unknown_mode() const {
    const auto& arguments = wanted_.message.arguments;
    const auto argument = [&](std::string_view name) {
      const auto match = std::ranges::find(arguments, name, &text::phrase_argument::name);
      return match == arguments.end() ? std::string() : match->values.front();
    };
    const auto label = argument("label"), hint = argument("hint");
    const auto key = label.substr(0, label.find('=')) + "=";
    auto out = refused(stage::label, stage_code::unknown_mode, key + (hint.empty() ? "MODE" : hint));
    if (hint.empty()) out.value_zh = key + "模式";
    return out;
  }

  step label() const {
    const auto asking_label = asking_labels(is_.node, policy_, cluster_.declared);
    if (wanted_.type == kind::none) return no_mode(asking_label);
    if (wanted_.type == kind::left_alone) return good(stage::label, asking_label, wanted_.requested);
    if (wanted_.type == kind::refused) {
      if (wanted_.reason == "UnknownMode" || wanted_.reason == "ConflictingLabels") {
        if (wanted_.reason == "UnknownMode") return unknown_mode();
        return refused(stage::label, stage_code::conflicting_labels, asking_label);
      }
      if (wanted_.reason == "ForeignPlugin") return refused(stage::label, stage_code::foreign_label, asking_label);
    }
    return good(stage::label, asking_label, wanted_.mode ? std::string(wanted_.mode->name) : wanted_.requested);
  }

  step node() const {
    if (!ready()) return wrong(stage::node, stage_code::node_not_ready);
    if (is_.node.unschedulable) return wrong(stage::node, stage_code::node_cordoned);
    if (is_state_unseen()) return {stage::node, outcome::unknown, stage_code::node_state_unseen, {}, {}, {}};
    return good(stage::node);
  }

  /// In annotations that products keep on the node.
  std::vector<step> faults() const {
    std::vector<step> out;
    for (auto& [annotation, reason, is_unreadable] : dialects::annotation_faults(is_.node))
      out.push_back(with_other(is_unreadable
                                   ? wrong(stage::node, stage_code::annotation_unreadable, std::move(annotation))
                                   : warning(stage::node, stage_code::left_out_by_product, std::move(annotation)),
                               reason));
    return out;
  }

  /// Cards that a person took out of use.
  std::vector<step> cordons() const {
    const auto list = is_.node.annotations.value_or(extender::cordon_annotation, "");
    if (list.empty() || !serving_) return {};
    const auto cards = extender::node_of(is_.node, policy_, {}, is_.cards).cards;
    std::string out_of_use, all, unknown;
    for (const auto& card : cards) {
      append(all, card.uuid);
      if (card.cordoned) append(out_of_use, card.uuid);
    }
    for (const auto& name : extender::cordoned_cards(list))
      if (std::ranges::find(cards, name, &quota::card::uuid) == cards.end()) append(unknown, name);
    std::vector<step> out;
    if (!out_of_use.empty())
      out.push_back({stage::node, outcome::warning, stage_code::cards_cordoned, std::move(out_of_use), {}, {}});
    if (!unknown.empty() && !cards.empty()) out.push_back(wrong(stage::node, stage_code::cordon_unknown, unknown, all));
    return out;
  }

  step module() const {
    const std::string name(wanted_.mode->name);
    if (!policy_ || policy_->removing) return skipped(stage::module);  // told of the cluster
    return policy_->enabled(name) ? good(stage::module, name) : wrong(stage::module, stage_code::module_off, name);
  }

  std::vector<step> checks(const module_type* type) const {
    std::vector<step> out;
    if (!type) return out;
    for (auto& row : preflight(is_.known, *type, policy_ ? policy_->runtime_class(type->name) : std::string_view())) {
      const auto state = outcome_of(row.state);
      const auto cause = state == outcome::wrong ? stage_code::preflight_failed : stage_code::none;
      out.push_back({stage::preflight, state, cause, row.name, {}, std::move(row)});
    }
    return out;
  }

  /// Has another row the reason for which the node is refused?
  bool is_refusal_shown(const std::vector<step>& rows) const {
    const auto& reason = wanted_.reason;
    const auto has_failed = [&rows](api::check check) {
      return std::ranges::any_of(
          rows, [check](const step& step) { return is_wrong(step) && step.value == to_string(check); });
    };
    if (reason == "UnsuitableNode") return has_failed(api::check::platform);
    if (reason == "UnsuitableCards")
      return has_failed(api::check::compute_capability) || has_failed(api::check::cuda) || has_failed(api::check::mig);
    // The rows label, module and policy.
    return reason == "UnknownMode" || reason == "ConflictingLabels" || reason == "ForeignPlugin" ||
           reason == "NoPolicy" || reason == module_disabled;
  }

  step enrolment(bool explained, const std::vector<step>& rows) const {
    const auto position = stage::enrolment;
    const bool blind = std::ranges::find(cluster_.missing_types, kube::resources::accelerator_nodes.plural) !=
                       cluster_.missing_types.end();
    if (!is_.status) return blind || leaderless_ ? skipped(position) : wrong(position, stage_code::not_enrolled);
    const auto& says = *is_.status;
    const auto message = quoted_phrase_of(says.code, says.message);
    if (!followed()) {
      return leaderless_ ? skipped(position)
                         : wrong(position, stage_code::enrolment_behind, says.requested_mode, expected());
    }
    if (says.phase == phases::ready || says.phase == phases::rolled_back) {
      const bool back =
          says.phase == phases::rolled_back || (wanted_.type == kind::mode && says.actual_mode != wanted_.mode->name);
      return back ? with_other(wrong(position, stage_code::rolled_back, says.actual_mode), message)
                  : good(position, says.phase, says.actual_mode);
    }
    if (says.phase == phases::refused || says.phase == phases::disabled || says.phase == phases::left_alone) {
      if (wanted_.type == kind::refused && !is_refusal_shown(rows))
        return refused(position, stage_code::refused, wanted_.reason);
      const bool same = wanted_.type != kind::mode;
      return same || leaderless_ ? skipped(position)
                                 : with_other(wrong(position, stage_code::refused, says.reason), message);
    }
    if (says.phase == phases::draining) {
      auto pods = text::joined_by_commas(blockers_of(says));
      if (pods.empty()) pods = {"?"};
      return with_other(with_value({position, outcome::changing, stage_code::waits_for_pods, {}, {}, {}}, pods),
                        message);
    }
    if (explained) return skipped(position);
    const bool stuck = says.phase == phases::stuck;
    if (stuck) return with_other(wrong(position, stage_code::stuck, says.reason), message);
    return with_other({position, outcome::changing, stage_code::change_under_way, says.phase, {}, {}}, message);
  }

  step module_label() const {
    const auto position = stage::module_label;
    const std::string placed(is_.node.labels.value_or(api::names::module_label, ""));
    const auto* target = wanted_.type == kind::mode ? wanted_.mode : nullptr;
    if (target && placed == target->name) return good(position, placed);
    if (phase() == phases::rolled_back && (placed.empty() ? "none" : placed) == is_.status->actual_mode)
      return good(position, placed.empty() ? "-" : placed);
    if (refused_ || changing() || !followed() || phase() == phases::stuck)
      return placed.empty() ? skipped(position) : good(position, placed);
    if (!target)
      return placed.empty() ? good(position, "-") : wrong(position, stage_code::module_label_other, placed, "-");
    if (placed.empty()) return wrong(position, stage_code::module_label_missing, std::string(target->name));
    return wrong(position, stage_code::module_label_other, placed, std::string(target->name));
  }

  step plugin(bool unfit) {
    const auto position = stage::plugin;
    if (!serving_ || changing()) return skipped(position);
    const plugin_pod* best = nullptr;
    for (const auto& entry : is_.plugins) {
      if (entry.module != serving_->name) continue;
      if (!best || (entry.ready && !entry.deleting)) best = &entry;
    }
    if (best && best->ready && !best->deleting) return good(position, best->name);
    plugin_explained_ = true;
    if (!ready() || halted_) return skipped(position);
    if (best) {
      const bool image = std::ranges::find(image_reasons, best->reason) != std::end(image_reasons);
      if (unfit && !image) return skipped(position);
      return wrong(position, stage_code::plugin_not_ready, best->name, best->reason.empty() ? "?" : best->reason);
    }
    const bool has_set = std::ranges::any_of(cluster_.daemon_sets, [&](const kube::daemon_set& set) {
      return set.labels.value_or(api::names::module_label, "") == serving_->name;
    });
    if (!has_set && cluster_.sets_unseen.empty()) return skipped(position);  // told of the cluster
    const std::string name(serving_->name);
    if (auto taints = policy_ ? untolerated_taints(is_.node, *policy_, name) : std::string(); !taints.empty())
      return wrong(position, stage_code::taint_not_tolerated, name, std::move(taints));
    return wrong(position, stage_code::plugin_missing, std::string(serving_->daemon_set));
  }

  bool plugin_of(const module_type& mode) const {
    return std::ranges::any_of(is_.plugins,
                               [&](const plugin_pod& plugin_pod) { return plugin_pod.module == mode.name; });
  }

  step others() const {
    const auto other_plugin = stage::other_plugins;
    if (!serving_ && !(wanted_.type == kind::mode && phase() == phases::enrolling)) return skipped(other_plugin);
    if (phase() == phases::draining || phase() == phases::removing) return skipped(other_plugin);
    for (const auto& [name, amount] : is_.node.allocatable) {
      if (amount <= 0 || (serving_ && advertises(*serving_, name)) || !offered_.goes_with_its_plugin(name)) continue;
      const auto mine = [&](const module_type& type) { return advertises(type, name) && plugin_of(type); };
      if (std::ranges::none_of(offered_.rows(), mine))
        return wrong(other_plugin, stage_code::foreign_plugin, name + " " + std::to_string(amount));
    }
    for (const auto& [name, amount] : is_.node.allocatable)
      if (amount > 0 && counts_cards(name) && !(serving_ && advertises(*serving_, name)) && !offered_.advertiser(name))
        return wrong(other_plugin, stage_code::foreign_plugin, name + " " + std::to_string(amount));
    if (!is_.claimed_devices.empty())
      return with_value(wrong(other_plugin, stage_code::foreign_plugin), is_.claimed_devices.front());
    if (phase() == phases::ready) {
      for (const auto& entry : is_.plugins) {
        if (serving_ && entry.module != serving_->name)
          return wrong(other_plugin, stage_code::foreign_plugin, "pod " + entry.name);
      }
    }
    return good(other_plugin);
  }

  /// Cards that are cut, or that a configuration renames, have resources of their own, and their number is not that of
  /// the cards.
  bool cut() const {
    return std::ranges::any_of(is_.node.allocatable, [&](const auto& entry) {
      return entry.second > 0 && (entry.first.starts_with(modules::mig_prefix) || has_prefix(*serving_, entry.first));
    });
  }

  /// As an agent reports them that is there; nothing: there is none.
  std::optional<step> sick_cards() const {
    constexpr std::string_view xid = "XID ";
    auto out = wrong(stage::resources, stage_code::cards_sick);
    if (!is_.old_report.empty()) return std::nullopt;
    for (const auto& card : is_.cards) {
      if (card.healthy()) continue;
      append(out.value, card.uuid + " (" + card.health + ")");
      const auto number = card.health.starts_with(xid) ? card.health.substr(xid.size()) : std::string();
      const bool is_number = !number.empty() && number.find_first_not_of("0123456789") == number.npos;
      if (is_number && out.other.empty()) out.other = number;
    }
    return out.value.empty() ? std::nullopt : std::optional(std::move(out));
  }

  /// By an agent, by labels, or by what anything on it offers.
  bool is_said_to_have_cards() const {
    return is_.known.cards > 0 || !is_.known.product.empty() || !is_.known.driver.empty() || !is_.cards.empty() ||
           has_cards(is_.node);
  }

  step resources(bool plugin_works, bool unfit) const {
    const auto resource = stage::resources;
    if (!serving_ || !plugin_works || !ready() || halted_) return skipped(resource);
    std::string nothing, unhealthy, missing, all;
    for (const auto name : serving_->resources) {
      const auto can = kube::amount(is_.node.allocatable, name), has = kube::amount(is_.node.capacity, name);
      const auto cards = per_card(name) * is_.known.cards;
      const auto prefix = std::string(name) + " ";
      append(all, prefix + of_total(can, has));
      if (cut()) continue;
      if (can <= 0)
        append(nothing, name);
      else if (can < has)
        append(unhealthy, prefix + of_total(can, has));
      else if (has < cards)
        append(missing, prefix + of_total(has, cards));
    }
    if (!nothing.empty() && !unfit && !is_said_to_have_cards())
      return wrong(resource, stage_code::no_cards, nothing, std::string(serving_->name));
    if (!nothing.empty())
      return unfit ? skipped(resource)
                   : wrong(resource, stage_code::nothing_advertised, nothing, std::string(serving_->daemon_set));
    if (!unhealthy.empty()) return wrong(resource, stage_code::cards_unhealthy, unhealthy);
    // A plugin may offer a card long after the agent has found it sick.
    if (auto sick = sick_cards()) return *std::move(sick);
    if (!missing.empty()) return wrong(resource, stage_code::cards_missing, missing);
    return good(resource, all);
  }

  std::vector<step> pods(bool counts) const {
    const auto pod = stage::pods;
    std::map<std::string, std::int64_t> held;
    std::string strangers, names;
    std::size_t count = 0;
    for (const auto& claim : is_.claims) {
      bool strange = false, relevant = false;
      for (const auto& [name, amount] : claim.requests) {
        const auto* module = amount > 0 ? module_of(name, is_.node, offered_, serving_) : nullptr;
        if (!module) continue;
        relevant = true;
        held[name] += amount;
        strange = strange || (serving_ && module != serving_);
      }
      if (!relevant) continue;
      if (++count <= most_named) append(names, claim.pod);
      if (strange) append(strangers, claim.pod);
    }
    std::vector<step> out;
    const bool settled = serving_ && !changing() && phase() != phases::verifying && phase() != phases::stuck;
    if (settled && !strangers.empty()) out.push_back(wrong(pod, stage_code::pod_of_other_mode, strangers));
    if (counts && serving_) {
      std::string excess;
      for (const auto name : serving_->resources) {
        const auto can = kube::amount(is_.node.allocatable, name);
        const auto at_name = held.find(std::string(name));
        if (at_name != held.end() && at_name->second > can)
          append(excess, std::string(name) + " " + of_total(at_name->second, can));
      }
      if (!excess.empty()) out.push_back(wrong(pod, stage_code::overbooked, excess));
    }
    if (out.empty() && !is_.given_twice.empty()) {
      std::string cards;
      for (const auto& card : is_.given_twice) append(cards, card);
      out.push_back(wrong(pod, stage_code::card_given_twice, cards));
    }
    if (out.empty() && !is_.perhaps_given_twice.empty()) {
      std::string cards;
      for (const auto& card : is_.perhaps_given_twice) append(cards, card);
      out.push_back(warning(pod, stage_code::card_perhaps_given_twice, cards));
    }
    std::vector<text::phrase> uncounted, misplaced;
    for (const auto& entry : is_.uncounted_pods) (is_on_missing_card(entry) ? misplaced : uncounted).push_back(entry);
    if (!uncounted.empty()) out.push_back(of_pods(stage_code::pods_not_counted, uncounted));
    if (!misplaced.empty()) out.push_back(of_pods(stage_code::pods_on_missing_cards, misplaced));
    if (out.empty()) out.push_back(good(pod, std::to_string(count), count > most_named ? names + ", …" : names));
    if (!cluster_.ledger_unseen.empty()) out.push_back(unseen(pod, cluster_.ledger_unseen));
    return out;
  }

  step taint() const {
    const bool under_way = changing() || phase() == phases::verifying || phase() == phases::stuck;
    if (!tainted()) return good(stage::taint);
    return under_way || !followed() ? skipped(stage::taint) : wrong(stage::taint, stage_code::taint_left);
  }

  const cluster_view& cluster_;
  const node_view& is_;
  const accelerator_policy* policy_;
  const modules::offer& offered_;
  bool leaderless_, refused_ = false, plugin_explained_ = false;
  node_intent wanted_;
  const module_type* serving_;
  bool halted_;  ///< the new version of its plugin does not come up, as the policy tells
};

step types_step(const cluster_view& view) {
  std::string missing;
  for (const auto& missing_type : view.missing_types) append(missing, missing_type);
  return missing.empty() ? good(stage::types) : wrong(stage::types, stage_code::types_missing, missing);
}

step leader_step(const cluster_view& view) {
  const auto position = stage::leader;
  if (!view.missing_types.empty()) return skipped(position);  // it does not start without them
  if (!view.leader_unseen.empty()) return unseen(position, view.leader_unseen);
  if (!view.leader || view.leader->holder.empty()) return wrong(position, stage_code::leader_missing);
  const auto& is = *view.leader;
  const auto age = std::to_string(is.age.count());
  if (!is.renewed && is.age > is.duration) return wrong(position, stage_code::leader_silent, is.holder, age);
  return good(position, is.holder, is.renewed ? "" : age);
}

step policy_step(const cluster_view& view, bool leaderless) {
  const auto position = stage::policy;
  if (std::ranges::find(view.missing_types, kube::resources::accelerator_policies.plural) != view.missing_types.end())
    return skipped(position);
  if (!view.policy) {
    std::string others;
    for (const auto& other_policy : view.other_policies) append(others, other_policy);
    return wrong(position, stage_code::policy_missing, others);
  }
  const auto status = status_of(view);
  const auto seen = kube::number_in(status, "observedGeneration", 0);
  if (seen < view.policy->generation)
    return leaderless ? skipped(position) : wrong(position, stage_code::policy_not_looked_at);
  const auto condition = condition_of(status, "Ready");
  const auto reason = kube::text_in(condition, "reason");
  // How far each DaemonSet is, the next step tells.
  if (kube::text_in(condition, "status") == "False" && reason != "RollingOut")
    return with_other(wrong(position, stage_code::policy_not_ready, reason), controller::quoted_message_of(condition));
  if (kube::text_in(condition, "status") != "True" && kube::text_in(condition, "status") != "False")
    return {position, outcome::unknown, stage_code::policy_unknown, {}, {}, {}};
  return good(position, status.is_object() ? kube::text_in(status, "summary") : "");
}

/// Whether pods are held to the declarations. Nothing where the operator has not said so yet.
std::vector<step> rules_step(const cluster_view& view, bool reported) {
  const auto rule = stage::rules;
  const auto condition = condition_of(status_of(view), "RulesEnforced");
  if (condition.empty()) return {};
  if (reported) return {skipped(rule)};
  const auto reason = kube::text_in(condition, "reason");
  const bool works = kube::text_in(condition, "status") == "True" || reason == "Off";
  return {with_other(works ? good(rule, reason) : wrong(rule, stage_code::rules_not_enforced, reason),
                     controller::quoted_message_of(condition))};
}

/// Declarations that no one holds pods to, though someone wrote them.
std::vector<step> declaration_steps(const cluster_view& view) {
  std::vector<step> out;
  for (const auto& [config_map, key, reason, reason_zh] : view.refused_declarations) {
    auto value = config_map.to_string() + (key.empty() ? "" : " (" + key + ")");
    auto step = wrong(stage::rules, stage_code::declaration_refused, std::move(value), reason);
    step.other_zh = reason_zh;
    out.push_back(std::move(step));
  }
  if (!view.unread_declarations.empty())
    out.push_back(with_value(warning(stage::rules, stage_code::declarations_elsewhere),
                             {"list.quotation", {text::some_of("text", view.unread_declarations)}}));
  if (!view.declarations_unseen.empty())
    out.push_back(unseen(stage::rules, {"verify.step.declarations", {{"reason", view.declarations_unseen}}}));
  return out;
}

step wrong_control_plane_node(const nlohmann::json& row) {
  const auto reason = kube::text_in(row, "reason");
  auto message = controller::quoted_message_of(row);
  auto cause = stage_code::control_plane_node_not_ready;
  if (reason == "Stopped") cause = stage_code::control_plane_node_stopped;
  if (reason == "RolledBack") cause = stage_code::control_plane_node_rolled_back;
  if (reason == "NoAgent") cause = stage_code::control_plane_node_without_agent;
  if (cause == stage_code::control_plane_node_not_ready && !reason.empty())
    message = message.empty() ? text::phrase(reason)
                              : text::phrase{"verify.step.because", {{"text", reason}, {"cause", std::move(message)}}};
  return with_other(wrong(stage::scheduler, cause, kube::text_in(row, "name")), message);
}

/// What sends pods that ask for accelerators to the extender, as far as the operator does that. Without a leader the
/// condition is old, and the pods that are sent there wait.
std::vector<step> scheduler_steps(const cluster_view& view, bool leads, bool reported) {
  const auto position = stage::scheduler;
  if (!view.policy) return {};
  const auto status = status_of(view);
  const auto is = condition_of(status, "SchedulerReady");
  const auto& mode = view.policy->scheduler.mode;
  const bool wanted = mode != "None" && !view.policy->removing;
  if (!leads && wanted) return {wrong(position, stage_code::scheduler_asks_no_one, mode)};
  if (reported) return {skipped(position)};
  if (is.empty()) return {wanted ? skipped(position) : good(position, "None")};  // or no one has looked yet
  const auto reason = kube::text_in(is, "reason");
  const auto message = controller::quoted_message_of(is);
  if (kube::text_in(is, "status") == "True") return {with_other(good(position, reason), message)};
  if (!wanted) return {with_other(wrong(position, stage_code::scheduler_leaving, reason), message)};
  std::vector<step> out;
  for (const auto& row : list_of(status, "schedulers")) {
    if (kube::text_in(row, "mode") != "StaticPod" ||
        kube::number_in(row, "ready", 0) >= kube::number_in(row, "desired", 1))
      continue;
    out.push_back(wrong_control_plane_node(row));
  }
  if (out.empty()) out.push_back(with_other(wrong(position, stage_code::scheduler_not_ready, reason), message));
  return out;
}

/// A caller of the extender whose certificate ends soon is refused then; until then all is well.
std::vector<step> caller_steps(const cluster_view& view, bool reported) {
  const auto is = condition_of(status_of(view), caller_certificates_valid);
  const auto status = kube::text_in(is, "status");
  if (reported || !view.whole || (status != "True" && status != "False")) return {};
  const auto message = controller::quoted_message_of(is);
  if (status == "True") return {with_value(good(stage::callers), message)};
  return {with_value(warning(stage::callers, stage_code::caller_certificate_ends), message)};
}

step runtimes_step(std::string_view status, const std::string& reason, const text::phrase& message) {
  const auto position = stage::runtimes;
  if (status != "False") return with_value(good(position), message);
  return with_other(reason == "Halted" ? wrong(position, stage_code::runtimes_not_fixed, reason)
                                       : warning(position, stage_code::runtimes_not_fixed, reason),
                    message);
}

step unknown_condition(const std::string& type, const std::string& state, const text::phrase& message) {
  step out{stage::policy, outcome::unknown, stage_code::condition_unknown, type, state, {}};
  if (message.empty()) return out;
  return with_other(std::move(out), {"verify.step.because", {{"text", state}, {"cause", message}}});
}

/// Conditions of the policy that no other step has looked at. One that this version does not know may mean anything.
std::vector<step> condition_steps(const cluster_view& view, bool reported) {
  constexpr std::string_view others[] = {"Ready",         "Progressing",    "Degraded",
                                         "RulesEnforced", "SchedulerReady", caller_certificates_valid};
  std::vector<step> out;
  const auto status = status_of(view);
  if (reported || !view.whole || !status.is_object()) return out;
  for (const auto& entry : list_of(status, "conditions")) {
    const auto type = kube::text_in(entry, "type"), is = kube::text_in(entry, "status");
    const auto reason = kube::text_in(entry, "reason");
    const auto message = controller::quoted_message_of(entry);
    if (std::ranges::find(others, type) != std::end(others)) continue;
    if (type == container_runtime::runtimes_fixed)
      out.push_back(runtimes_step(is, reason, message));
    else if (type == extender::withdrawals_held_back)
      out.push_back(with_value(
          is == "True" ? wrong(stage::health, stage_code::withdrawals_held_back) : good(stage::health), message));
    else
      out.push_back(unknown_condition(type, is + ", " + reason, message));
  }
  return out;
}

/// Limits that people believe in and no one asks about. What the operator has said nothing of yet is unknown.
std::vector<step> quota_steps(const cluster_view& view, bool reported) {
  std::vector<step> out;
  if (view.quotas.empty()) return out;
  if (reported) return {skipped(stage::quotas)};
  std::string names, unknown;
  text::phrase message;
  std::size_t enforced = 0;
  for (const auto& entry : view.quotas) {
    const auto status = nlohmann::json::parse(entry.status, nullptr, false);
    for (const auto type : {models_condition, pools_condition, cohort_condition})
      if (const auto part = condition_of(status, type); kube::text_in(part, "status") == "False")
        out.push_back(with_other(warning(stage::quotas, stage_code::quota_counts_in_part, entry.key.to_string()),
                                 controller::quoted_message_of(part)));
    const auto is = condition_of(status, enforced_condition);
    if (kube::text_in(is, "status") == "True") ++enforced;
    if (kube::text_in(is, "status") != "True" && kube::text_in(is, "status") != "False")
      append(unknown, entry.key.to_string());
    if (kube::text_in(is, "status") != "False") continue;
    append(names, entry.key.to_string());
    message = controller::quoted_message_of(is);
  }
  if (!unknown.empty())
    out.push_back({stage::quotas, outcome::unknown, stage_code::quota_not_looked_at, unknown, {}, {}});
  if (!names.empty())
    out.push_back(with_other(wrong(stage::quotas, stage_code::quota_not_enforced, names), message));
  else if (enforced > 0)
    out.push_back(good(stage::quotas, std::to_string(enforced)));
  return out;
}

/// Limits in kube-system/gpuquota that no one could read.
std::vector<step> old_quotas_steps(const cluster_view& view) {
  if (!view.whole) return {};
  if (!view.old_quotas_unseen.empty())
    return {unseen(stage::quotas, {"verify.step.old_quotas", {{"reason", view.old_quotas_unseen}}})};
  if (view.old_quotas_trouble.empty()) return {};
  return {with_other(wrong(stage::quotas, stage_code::old_quotas_unreadable), view.old_quotas_trouble)};
}

/// Trouble with the plugin's pods on one of the nodes, which is why its DaemonSet is not rolled out.
bool told_of_a_node(const report& so_far, std::string_view module) {
  return std::ranges::any_of(so_far.nodes, [&](const node_walk& node_walk) {
    return node_walk.mode == module && std::ranges::any_of(node_walk.steps, [](const step& step) {
             return (is_wrong(step) || step.is == outcome::changing) &&
                    (step.position == stage::plugin || step.position == stage::preflight ||
                     step.cause == stage_code::node_not_ready || step.cause == stage_code::change_under_way ||
                     step.cause == stage_code::waits_for_pods);
           });
  });
}

std::vector<step> daemon_set_steps(const cluster_view& view, const report& so_far, bool reported) {
  const auto position = stage::daemon_sets;
  std::vector<step> out;
  if (!view.policy) return out;
  if (!view.sets_unseen.empty()) return {unseen(position, view.sets_unseen)};
  for (const auto& mode : modules::offered_by(&*view.policy).rows()) {
    if (!view.policy->enabled(mode.name)) continue;
    const auto serves = [&](const node_walk& node_walk) { return node_walk.mode == mode.name; };
    if (!view.whole && std::ranges::none_of(so_far.nodes, serves)) continue;
    const auto found = std::ranges::find_if(view.daemon_sets, [&](const kube::daemon_set& set) {
      return set.labels.value_or(api::names::module_label, "") == mode.name;
    });
    const std::string name(mode.daemon_set);
    if (found == view.daemon_sets.end()) {
      out.push_back(reported ? skipped(position)
                             : wrong(position, stage_code::daemon_set_missing, name, std::string(mode.name)));
      continue;
    }
    const auto progress = of_total(found->available, found->desired);
    // A pod counts as available some seconds after it is ready; until then nothing is wrong.
    auto soon = *found;
    soon.available = std::max(soon.available, soon.ready);
    if (soon.rolled_out())
      out.push_back(good(position, name, progress));
    else if (!view.whole || told_of_a_node(so_far, mode.name) || !halted_on(view, mode.name).empty())
      out.push_back(skipped(position));
    else
      out.push_back(wrong(position, stage_code::daemon_set_not_rolled_out, name, progress));
  }
  return out;
}

}  // namespace

report walk(const cluster_view& view) {
  report out;
  const auto leader = leader_step(view);
  const bool leaderless = is_wrong(leader) || !view.missing_types.empty();
  for (const auto& node : view.nodes) out.nodes.push_back(node_walker(view, node, leaderless).walk());
  const auto types = types_step(view);
  const auto policy = policy_step(view, leaderless);
  out.cluster = {types, policy};
  for (auto& entry : rules_step(view, leaderless || is_wrong(types))) out.cluster.push_back(std::move(entry));
  for (auto& daemon_set_step : daemon_set_steps(view, out, leaderless || is_wrong(policy) || is_wrong(types)))
    out.cluster.push_back(std::move(daemon_set_step));
  for (auto& scheduler_step : scheduler_steps(
           view, !is_wrong(leader), leaderless || is_wrong(types) || policy.cause == stage_code::policy_not_looked_at))
    out.cluster.push_back(std::move(scheduler_step));
  for (auto& caller_step : caller_steps(view, leaderless || is_wrong(types)))
    out.cluster.push_back(std::move(caller_step));
  for (auto& condition_step : condition_steps(view, leaderless || is_wrong(types)))
    out.cluster.push_back(std::move(condition_step));
  for (auto& quota_step : quota_steps(view, leaderless || is_wrong(types)))
    out.cluster.push_back(std::move(quota_step));
  for (auto& declaration_step : declaration_steps(view)) out.cluster.push_back(std::move(declaration_step));
  for (auto& old_quotas_step : old_quotas_steps(view)) out.cluster.push_back(std::move(old_quotas_step));
  if (!view.view_api_problem.empty())
    out.cluster.push_back(wrong(stage::view_api, stage_code::view_api_silent, view.view_api_problem));
  if (!view.slices_unseen.empty()) out.cluster.push_back(unseen(stage::other_plugins, view.slices_unseen));
  if (!view.labels_unseen.empty()) out.cluster.push_back(unseen(stage::label, view.labels_unseen));
  out.cluster.push_back(leader);
  return out;
}

report about_node(report of_node, const report& all) {
  const auto is_apart = [](const step& step) {
    return step.position == stage::rules || step.position == stage::quotas || step.position == stage::view_api;
  };
  std::erase_if(of_node.cluster, is_apart);
  const auto is_kept = [&](const step& finding) {
    return std::ranges::any_of(of_node.cluster, [&](const step& step) {
      return step.position == finding.position && step.cause == finding.cause && step.value == finding.value;
    });
  };
  of_node.other_findings = static_cast<std::size_t>(
      std::ranges::count_if(all.cluster, [&](const step& step) { return is_finding(step) && !is_kept(step); }));
  return of_node;
}

std::size_t problems(const report& report) {
  auto out = static_cast<std::size_t>(std::ranges::count_if(report.cluster, is_wrong));
  for (const auto& node : report.nodes) out += static_cast<std::size_t>(std::ranges::count_if(node.steps, is_wrong));
  return out;
}

bool all_good(const report& report) {
  const auto is_good = [](const step& step) { return step.is == outcome::good || step.is == outcome::skipped; };
  return std::ranges::all_of(report.cluster, is_good) && std::ranges::all_of(report.nodes, [&](const node_walk& node) {
           return std::ranges::all_of(node.steps, is_good);
         });
}

bool unsettled(const report& report) {
  const auto passing = [](const step& step) {
    return step.cause == stage_code::policy_not_looked_at || step.cause == stage_code::not_enrolled ||
           step.cause == stage_code::enrolment_behind;
  };
  return std::ranges::any_of(report.cluster, passing) ||
         std::ranges::any_of(report.nodes,
                             [&](const node_walk& node_walk) { return std::ranges::any_of(node_walk.steps, passing); });
}

kube::quantities asked_by(const kube::pod& pod) {
  // An init container runs next to the sidecars that were started before it (KEP-753).
  std::map<std::string, std::int64_t> running, most;
  for (const auto& entry : pod.containers) {
    for (const auto& [name, amount] : entry.limits) {
      if (entry.kind != kube::container::role::init) {
        running[name] += amount;
        most[name] = std::max(most[name], running[name]);
      } else {
        most[name] = std::max(most[name], running[name] + amount);
      }
    }
  }
  return {most.begin(), most.end()};
}

}  // namespace reconcilers::verify
