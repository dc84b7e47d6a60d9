#include "reconcilers/verify/node_walk.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/names.hpp"
#include "reconcilers/dialects/annotations.hpp"
#include "reconcilers/extender/inventory.hpp"
#include "reconcilers/nodes/foreign.hpp"
#include "reconcilers/nodes/intent.hpp"
#include "reconcilers/nodes/node_pods.hpp"
#include "reconcilers/nodes/shown_mode.hpp"
#include "reconcilers/nodes/taints.hpp"
#include "reconcilers/verify/mistyped_label.hpp"
#include "reconcilers/verify/steps.hpp"
#include "text/text.hpp"

namespace reconcilers::verify {
namespace {

using kind = node_intent::kind;
using modules::advertises, modules::has_prefix, modules::module_type;

/// Why a plugin pod is not ready that has nothing to do with the node's driver or cards.
constexpr std::string_view image_reasons[] = {"ErrImagePull", "ImagePullBackOff", "InvalidImageName",
                                              "ImageInspectError", "ErrImageNeverPull"};

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

}  // namespace

node_walk walk_node(const cluster_view& view, const node_view& node, bool leaderless) {
  return node_walker(view, node, leaderless).walk();
}

}  // namespace reconcilers::verify
