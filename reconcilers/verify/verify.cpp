#include "reconcilers/verify/verify.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/names.hpp"
#include "reconcilers/certificates/caller_certificates.hpp"
#include "reconcilers/extender/inventory.hpp"
#include "reconcilers/nodes/intent.hpp"
#include "reconcilers/nodes/node_pods.hpp"
#include "reconcilers/nodes/taints.hpp"
#include "reconcilers/plugins/plugin_rollout.hpp"

namespace reconcilers::verify {
namespace {

using kind = node_intent::kind;
using modules::advertises, modules::has_prefix, modules::module_type;

constexpr std::size_t most_named = 5;
/// Why a plugin pod is not ready that has nothing to do with the node's driver or cards.
constexpr std::string_view image_reasons[] = {"ErrImagePull", "ImagePullBackOff", "InvalidImageName",
                                              "ImageInspectError", "ErrImageNeverPull"};

step good(stage at, std::string value = {}, std::string other = {}) {
  return {at, outcome::good, code::none, std::move(value), std::move(other), {}};
}
step wrong(stage at, code why, std::string value = {}, std::string other = {}) {
  return {at, outcome::wrong, why, std::move(value), std::move(other), {}};
}
step skipped(stage at) { return {at, outcome::skipped, code::none, {}, {}, {}}; }
bool is_wrong(const step& of) { return of.is == outcome::wrong; }

std::string of_total(std::int64_t some, std::int64_t all) { return std::to_string(some) + "/" + std::to_string(all); }

void append(std::string& list, std::string_view one) { (list += list.empty() ? "" : ", ") += one; }

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

nlohmann::json status_of(const cluster_view& of) {
  return of.policy ? nlohmann::json::parse(of.policy->status, nullptr, false) : nlohmann::json();
}

/// The condition of that type; an empty object where there is none.
nlohmann::json condition_of(const nlohmann::json& status, std::string_view type) {
  if (!status.is_object()) return nlohmann::json::object();
  for (const auto& one : status.value("conditions", nlohmann::json::array())) {
    if (one.is_object() && one.value("type", "") == type) return one;
  }
  return nlohmann::json::object();
}

/// The node on which the roll-out of a module halted, which the policy tells with the cause; empty: none did.
std::string halted_on(const cluster_view& of, std::string_view module) {
  const auto ready = condition_of(status_of(of), "Ready");
  if (ready.value("status", "") != "False") return {};
  for (const auto& set : of.daemon_sets) {
    const auto note = set.annotations.find(names::rollout_annotation);
    if (!note || set.labels.value_or(names::module_label, "") != module) continue;
    const auto record = rollout_record::parse(*note, set.key.name);
    if (record && ready.value("message", "").contains("halted on node " + record->node + ":")) return record->node;
  }
  return {};
}

/// Units of a resource that one whole card is; 0 where that depends on the card.
std::int64_t per_card(std::string_view resource) {
  if (resource == "nvidia.com/gpu") return 1;
  return resource == "tencent.com/vcuda-core" || resource == "nvidia.com/mps-core" ? 100 : 0;
}

class node_walker {
 public:
  node_walker(const cluster_view& in, const node_view& is, bool leaderless)
      : in_(in),
        is_(is),
        policy_(in.policy ? &*in.policy : nullptr),
        offered_(modules::offered_by(policy_)),
        leaderless_(leaderless),
        wanted_(intent_of(is.node, policy_, in.declared, is.foreign)),
        serving_(offered_.find(is.node.labels.value_or(names::module_label, ""))),
        halted_(serving_ && halted_on(in, serving_->name) == is.node.key.name) {}

  node_walk walk() {
    node_walk out;
    out.node = is_.node.key.name;
    const auto* mode = wanted_.mode ? offered_.find(wanted_.mode->name) : serving_;
    if (mode) out.mode = mode->name;
    auto& to = out.steps;
    to.push_back(label());
    const bool apart = wanted_.of == kind::left_alone || (wanted_.of == kind::none && !serving_ && !is_.status);
    if (apart) {
      if (tainted()) to.push_back(wrong(stage::taint, code::taint_left));
      return out;
    }
    to.push_back(node());
    for (auto& one : cordons()) to.push_back(std::move(one));
    if (wanted_.mode) to.push_back(module());
    const auto rows = checks(mode);
    const bool unfit = std::ranges::any_of(rows, is_wrong);
    refused_ = wanted_.of == kind::refused;
    const auto label_step = module_label();
    const auto plugin_step = plugin(unfit);
    const auto others_step = others();
    const auto resources_step = resources(plugin_step.is == outcome::good, unfit);
    const bool explained = unfit || halted_ || !ready() || is_wrong(plugin_step) || is_wrong(others_step) ||
                           is_wrong(resources_step) || plugin_explained_;
    to.push_back(enrolment(explained));
    std::ranges::copy(rows, std::back_inserter(to));
    to.insert(to.end(), {label_step, plugin_step, others_step, resources_step});
    for (auto& one : pods(resources_step.is == outcome::good)) to.push_back(std::move(one));
    to.push_back(taint());
    return out;
  }

 private:
  bool ready() const { return is_.node.ready == kube::condition_status::yes; }
  std::string_view phase() const { return is_.status ? std::string_view(is_.status->phase) : std::string_view(); }
  std::string expected() const { return wanted_.requested.empty() ? "none" : wanted_.requested; }
  /// AcceleratorNode is about what the labels say now.
  bool followed() const { return is_.status && is_.status->requested_mode == expected(); }
  bool changing() const {
    return phase() == phases::draining || phase() == phases::removing || phase() == phases::enrolling ||
           phase() == phases::waiting;
  }
  bool tainted() const {
    return std::ranges::any_of(is_.node.taints, [](const auto& one) { return one.key == names::switching_taint; });
  }

  step label() const {
    const auto asked = asking_labels(is_.node, policy_, in_.declared);
    if (wanted_.of == kind::none) return good(stage::label, asked);
    if (wanted_.of == kind::left_alone) return good(stage::label, asked, wanted_.requested);
    if (wanted_.of == kind::refused) {
      if (wanted_.reason == "UnknownMode" || wanted_.reason == "ConflictingLabels") {
        const bool unknown = wanted_.reason == "UnknownMode";
        auto out = wrong(stage::label, unknown ? code::unknown_mode : code::conflicting_labels, asked, wanted_.message);
        out.other_zh = wanted_.message_zh;
        return out;
      }
      if (wanted_.reason == "ForeignPlugin") return wrong(stage::label, code::foreign_label, asked, wanted_.message);
    }
    return good(stage::label, asked, wanted_.mode ? std::string(wanted_.mode->name) : wanted_.requested);
  }

  step node() const {
    if (!ready()) return wrong(stage::node, code::node_not_ready);
    return is_.node.unschedulable ? wrong(stage::node, code::node_cordoned) : good(stage::node);
  }

  /// Cards that a person took out of use.
  std::vector<step> cordons() const {
    const auto list = is_.node.annotations.value_or(extender::cordon_annotation, "");
    if (list.empty() || !serving_) return {};
    const auto cards = extender::node_of(is_.node, policy_, {}, is_.cards).cards;
    std::string out_of_use, all, unknown;
    for (const auto& one : cards) {
      append(all, one.uuid);
      if (one.cordoned) append(out_of_use, one.uuid);
    }
    for (const auto& name : extender::cordoned_cards(list))
      if (std::ranges::find(cards, name, &quota::card::uuid) == cards.end()) append(unknown, name);
    std::vector<step> out;
    if (!out_of_use.empty())
      out.push_back({stage::node, outcome::warning, code::cards_cordoned, std::move(out_of_use), {}, {}});
    if (!unknown.empty() && !cards.empty()) out.push_back(wrong(stage::node, code::cordon_unknown, unknown, all));
    return out;
  }

  step module() const {
    const std::string name(wanted_.mode->name);
    if (!policy_ || policy_->removing) return skipped(stage::module);  // told of the cluster
    return policy_->enabled(name) ? good(stage::module, name) : wrong(stage::module, code::module_off, name);
  }

  static std::vector<step> checks(const node_facts& known, const module_type& of) {
    std::vector<step> out;
    for (auto& row : preflight(known, of)) {
      if (row.is == preflight_verdict::not_needed) continue;
      step one{stage::preflight, outcome::good, code::none, {}, {}, {}};
      if (row.is == preflight_verdict::failed) one = wrong(stage::preflight, code::preflight_failed);
      if (row.is == preflight_verdict::warning) one.is = outcome::warning;
      if (row.is == preflight_verdict::unknown) one.is = outcome::unknown;
      one.value = to_string(row.what);
      one.row = std::move(row);
      out.push_back(std::move(one));
    }
    return out;
  }
  std::vector<step> checks(const module_type* of) const { return of ? checks(is_.known, *of) : std::vector<step>(); }

  step enrolment(bool explained) const {
    const auto at = stage::enrolment;
    const bool blind =
        std::ranges::find(in_.missing_types, kube::resources::accelerator_nodes.plural) != in_.missing_types.end();
    if (!is_.status) return blind || leaderless_ ? skipped(at) : wrong(at, code::not_enrolled);
    const auto& says = *is_.status;
    if (!followed()) {
      return leaderless_ ? skipped(at) : wrong(at, code::enrolment_behind, says.requested_mode, expected());
    }
    if (says.phase == phases::ready || says.phase == phases::rolled_back) {
      const bool back =
          says.phase == phases::rolled_back || (wanted_.of == kind::mode && says.actual_mode != wanted_.mode->name);
      return back ? wrong(at, code::rolled_back, says.actual_mode, says.message)
                  : good(at, says.phase, says.actual_mode);
    }
    if (says.phase == phases::refused || says.phase == phases::disabled || says.phase == phases::left_alone) {
      const bool same = wanted_.of != kind::mode;
      return same || leaderless_ ? skipped(at) : wrong(at, code::refused, says.reason, says.message);
    }
    if (says.phase == phases::draining) {
      std::string pods;
      for (const auto& one : says.blockers) append(pods, one);
      return wrong(at, code::waits_for_pods, pods.empty() ? "?" : pods, says.message);
    }
    if (explained) return skipped(at);
    const bool stuck = says.phase == phases::stuck;
    return wrong(at, stuck ? code::stuck : code::change_under_way, stuck ? says.reason : says.phase, says.message);
  }

  step module_label() const {
    const auto at = stage::module_label;
    const std::string placed(is_.node.labels.value_or(names::module_label, ""));
    const auto* target = wanted_.of == kind::mode ? wanted_.mode : nullptr;
    if (target && placed == target->name) return good(at, placed);
    if (phase() == phases::rolled_back && (placed.empty() ? "none" : placed) == is_.status->actual_mode)
      return good(at, placed.empty() ? "-" : placed);
    if (refused_ || changing() || !followed() || phase() == phases::stuck)
      return placed.empty() ? skipped(at) : good(at, placed);
    if (!target) return placed.empty() ? good(at, "-") : wrong(at, code::module_label_other, placed, "-");
    if (placed.empty()) return wrong(at, code::module_label_missing, std::string(target->name));
    return wrong(at, code::module_label_other, placed, std::string(target->name));
  }

  step plugin(bool unfit) {
    const auto at = stage::plugin;
    if (!serving_ || changing()) return skipped(at);
    const plugin_pod* best = nullptr;
    for (const auto& one : is_.plugins) {
      if (one.module != serving_->name) continue;
      if (!best || (one.ready && !one.deleting)) best = &one;
    }
    if (best && best->ready && !best->deleting) return good(at, best->name);
    plugin_explained_ = true;
    if (!ready() || halted_) return skipped(at);
    if (best) {
      const bool image = std::ranges::find(image_reasons, best->reason) != std::end(image_reasons);
      if (unfit && !image) return skipped(at);
      return wrong(at, code::plugin_not_ready, best->name, best->reason.empty() ? "?" : best->reason);
    }
    const bool has_set = std::ranges::any_of(in_.daemon_sets, [&](const kube::daemon_set& one) {
      return one.labels.value_or(names::module_label, "") == serving_->name;
    });
    if (!has_set) return skipped(at);  // told of the cluster
    const std::string name(serving_->name);
    if (auto taints = policy_ ? untolerated_taints(is_.node, *policy_, name) : std::string(); !taints.empty())
      return wrong(at, code::taint_not_tolerated, name, std::move(taints));
    return wrong(at, code::plugin_missing, std::string(serving_->daemon_set));
  }

  bool plugin_of(const module_type& mode) const {
    return std::ranges::any_of(is_.plugins, [&](const plugin_pod& one) { return one.module == mode.name; });
  }

  step others() const {
    const auto at = stage::other_plugins;
    if (!serving_ && !(wanted_.of == kind::mode && phase() == phases::enrolling)) return skipped(at);
    if (phase() == phases::draining || phase() == phases::removing) return skipped(at);
    for (const auto& [name, amount] : is_.node.allocatable) {
      if (amount <= 0 || (serving_ && advertises(*serving_, name)) || !offered_.goes_with_its_plugin(name)) continue;
      const auto mine = [&](const module_type& one) { return advertises(one, name) && plugin_of(one); };
      if (std::ranges::none_of(offered_.rows(), mine))
        return wrong(at, code::foreign_plugin, name + " " + std::to_string(amount));
    }
    if (phase() == phases::ready) {
      for (const auto& one : is_.plugins) {
        if (serving_ && one.module != serving_->name) return wrong(at, code::foreign_plugin, "pod " + one.name);
      }
    }
    return good(at);
  }

  /// Cards that are cut, or that a configuration renames, have resources of their own, and their number is not that of
  /// the cards.
  bool cut() const {
    return std::ranges::any_of(is_.node.allocatable, [&](const auto& entry) {
      return entry.second > 0 && (entry.first.starts_with(modules::mig_prefix) || has_prefix(*serving_, entry.first));
    });
  }

  step resources(bool plugin_works, bool unfit) const {
    const auto at = stage::resources;
    if (!serving_ || !plugin_works || !ready() || halted_) return skipped(at);
    std::string nothing, unhealthy, missing, all;
    for (const auto name : serving_->resources) {
      const auto can = kube::amount(is_.node.allocatable, name), has = kube::amount(is_.node.capacity, name);
      const auto cards = per_card(name) * is_.known.cards;
      const auto said = std::string(name) + " ";
      append(all, said + of_total(can, has));
      if (cut()) continue;
      if (can <= 0)
        append(nothing, name);
      else if (can < has)
        append(unhealthy, said + of_total(can, has));
      else if (has < cards)
        append(missing, said + of_total(has, cards));
    }
    if (!nothing.empty())
      return unfit ? skipped(at) : wrong(at, code::nothing_advertised, nothing, std::string(serving_->daemon_set));
    if (!unhealthy.empty()) return wrong(at, code::cards_unhealthy, unhealthy);
    if (!missing.empty()) return wrong(at, code::cards_missing, missing);
    return good(at, all);
  }

  std::vector<step> pods(bool counts) const {
    const auto at = stage::pods;
    std::map<std::string, std::int64_t> held;
    std::string strangers, names;
    std::size_t count = 0;
    for (const auto& one : is_.claims) {
      bool strange = false, ours = false;
      for (const auto& [name, amount] : one.asked) {
        const auto* module = amount > 0 ? module_of(name, is_.node, offered_, serving_) : nullptr;
        if (!module) continue;
        ours = true;
        held[name] += amount;
        strange = strange || (serving_ && module != serving_);
      }
      if (!ours) continue;
      if (++count <= most_named) append(names, one.pod);
      if (strange) append(strangers, one.pod);
    }
    std::vector<step> out;
    const bool settled = serving_ && !changing() && phase() != phases::verifying && phase() != phases::stuck;
    if (settled && !strangers.empty()) out.push_back(wrong(at, code::pod_of_other_mode, strangers));
    if (counts && serving_) {
      std::string over;
      for (const auto name : serving_->resources) {
        const auto can = kube::amount(is_.node.allocatable, name);
        const auto at_name = held.find(std::string(name));
        if (at_name != held.end() && at_name->second > can)
          append(over, std::string(name) + " " + of_total(at_name->second, can));
      }
      if (!over.empty()) out.push_back(wrong(at, code::overbooked, over));
    }
    if (out.empty()) out.push_back(good(at, std::to_string(count), count > most_named ? names + ", …" : names));
    return out;
  }

  step taint() const {
    const bool under_way = changing() || phase() == phases::verifying || phase() == phases::stuck;
    if (!tainted()) return good(stage::taint);
    return under_way || !followed() ? skipped(stage::taint) : wrong(stage::taint, code::taint_left);
  }

  const cluster_view& in_;
  const node_view& is_;
  const accelerator_policy* policy_;
  const modules::offer& offered_;
  bool leaderless_, refused_ = false, plugin_explained_ = false;
  node_intent wanted_;
  const module_type* serving_;
  bool halted_;  ///< the new version of its plugin does not come up, as the policy tells
};

step types_step(const cluster_view& of) {
  std::string missing;
  for (const auto& one : of.missing_types) append(missing, one);
  return missing.empty() ? good(stage::types) : wrong(stage::types, code::types_missing, missing);
}

step leader_step(const cluster_view& of) {
  const auto at = stage::leader;
  if (!of.missing_types.empty()) return skipped(at);  // it does not start without them
  if (!of.leader_unseen.empty()) return {at, outcome::unknown, code::none, of.leader_unseen, {}, {}};
  if (!of.leader || of.leader->holder.empty()) return wrong(at, code::leader_missing);
  const auto& is = *of.leader;
  const auto age = std::to_string(is.age.count());
  if (!is.moved && is.age > is.duration) return wrong(at, code::leader_silent, is.holder, age);
  return good(at, is.holder, is.moved ? "" : age);
}

step policy_step(const cluster_view& of, bool leaderless) {
  const auto at = stage::policy;
  if (std::ranges::find(of.missing_types, kube::resources::accelerator_policies.plural) != of.missing_types.end())
    return skipped(at);
  if (!of.policy) {
    std::string others;
    for (const auto& one : of.other_policies) append(others, one);
    return wrong(at, code::policy_missing, others);
  }
  const auto status = status_of(of);
  const auto seen = status.is_object() ? status.value("observedGeneration", std::int64_t(0)) : 0;
  if (seen < of.policy->generation) return leaderless ? skipped(at) : wrong(at, code::policy_not_looked_at);
  const auto one = condition_of(status, "Ready");
  const auto reason = one.value("reason", "");
  // How far each DaemonSet is, the next step tells.
  if (one.value("status", "") == "False" && reason != "RollingOut")
    return wrong(at, code::policy_not_ready, reason, one.value("message", ""));
  return good(at, status.is_object() ? status.value("summary", "") : "");
}

/// Whether pods are held to the declarations. Nothing where the operator has not said so yet.
std::vector<step> rules_step(const cluster_view& of, bool told) {
  const auto at = stage::rules;
  const auto one = condition_of(status_of(of), "RulesEnforced");
  if (one.empty()) return {};
  if (told) return {skipped(at)};
  const auto reason = one.value("reason", ""), message = one.value("message", "");
  const bool works = one.value("status", "") == "True" || reason == "Off";
  return {works ? good(at, reason, message) : wrong(at, code::rules_not_enforced, reason, message)};
}

step wrong_master(std::string_view reason, std::string name, std::string message) {
  auto why = code::master_not_ready;
  if (reason == "Stopped") why = code::master_stopped;
  if (reason == "RolledBack") why = code::master_rolled_back;
  if (reason == "NoAgent") why = code::master_without_agent;
  if (why == code::master_not_ready && !reason.empty())
    message = std::string(reason) + (message.empty() ? "" : ": " + message);
  return wrong(stage::scheduler, why, std::move(name), std::move(message));
}

/// Whoever sends pods that ask for accelerators to the extender, as far as the operator does that.
std::vector<step> scheduler_steps(const cluster_view& of, bool told) {
  const auto at = stage::scheduler;
  if (!of.whole || !of.policy) return {};
  const auto status = status_of(of);
  const auto is = condition_of(status, "SchedulerReady");
  const auto& mode = of.policy->scheduler.mode;
  const bool wanted = mode != "None" && !of.policy->removing;
  if (told) return {skipped(at)};
  if (is.empty()) return {wanted ? skipped(at) : good(at, "None")};  // or nobody has looked yet
  const auto reason = is.value("reason", ""), message = is.value("message", "");
  if (is.value("status", "") == "True") return {good(at, reason, message)};
  if (!wanted) return {wrong(at, code::scheduler_leaving, reason, message)};
  std::vector<step> out;
  for (const auto& row : status.value("schedulers", nlohmann::json::array())) {
    if (row.value("mode", "") != "StaticPod" || row.value("ready", 0) >= row.value("desired", 1)) continue;
    out.push_back(wrong_master(row.value("reason", ""), row.value("name", ""), row.value("message", "")));
  }
  if (out.empty()) out.push_back(wrong(at, code::scheduler_not_ready, reason, message));
  return out;
}

/// Whoever calls the extender with a certificate that ends soon is refused then; until then all is well.
std::vector<step> caller_steps(const cluster_view& of, bool told) {
  const auto is = condition_of(status_of(of), caller_certificates_valid);
  const auto status = is.value("status", "");
  if (told || !of.whole || (status != "True" && status != "False")) return {};
  const auto message = is.value("message", "");
  if (status == "True") return {good(stage::callers, message)};
  return {{stage::callers, outcome::warning, code::caller_certificate_ends, message, {}, {}}};
}

/// Limits that people believe in and nobody asks about. What the operator has said nothing of yet is not judged.
std::vector<step> quota_steps(const cluster_view& of, bool told) {
  if (of.quotas.empty()) return {};
  if (told) return {skipped(stage::quotas)};
  std::string names, message;
  std::size_t enforced = 0;
  for (const auto& one : of.quotas) {
    const auto status = nlohmann::json::parse(one.status, nullptr, false);
    const auto is = condition_of(status, "Enforced");
    if (is.value("status", "") == "True") ++enforced;
    if (is.value("status", "") != "False") continue;
    append(names, one.key.to_string());
    message = is.value("message", "");
  }
  if (!names.empty()) return {wrong(stage::quotas, code::quota_not_enforced, names, message)};
  return {good(stage::quotas, std::to_string(enforced))};
}

/// Trouble with the plugin's pods on one of the nodes, which is why its DaemonSet is not rolled out.
bool told_of_a_node(const report& so_far, std::string_view module) {
  return std::ranges::any_of(so_far.nodes, [&](const node_walk& one) {
    return one.mode == module && std::ranges::any_of(one.steps, [](const step& at) {
             return is_wrong(at) &&
                    (at.at == stage::plugin || at.at == stage::preflight || at.why == code::node_not_ready ||
                     at.why == code::change_under_way || at.why == code::waits_for_pods);
           });
  });
}

std::vector<step> daemon_set_steps(const cluster_view& of, const report& so_far, bool told) {
  const auto at = stage::daemon_sets;
  std::vector<step> out;
  if (!of.policy) return out;
  for (const auto& mode : modules::offered_by(&*of.policy).rows()) {
    if (!of.policy->enabled(mode.name)) continue;
    const auto serves = [&](const node_walk& one) { return one.mode == mode.name; };
    if (!of.whole && std::ranges::none_of(so_far.nodes, serves)) continue;
    const auto found = std::ranges::find_if(of.daemon_sets, [&](const kube::daemon_set& one) {
      return one.labels.value_or(names::module_label, "") == mode.name;
    });
    const std::string name(mode.daemon_set);
    if (found == of.daemon_sets.end()) {
      out.push_back(told ? skipped(at) : wrong(at, code::daemon_set_missing, name, std::string(mode.name)));
      continue;
    }
    const auto progress = of_total(found->available, found->desired);
    // A pod counts as available some seconds after it is ready; until then nothing is wrong.
    auto soon = *found;
    soon.available = std::max(soon.available, soon.ready);
    if (soon.rolled_out())
      out.push_back(good(at, name, progress));
    else if (!of.whole || told_of_a_node(so_far, mode.name) || !halted_on(of, mode.name).empty())
      out.push_back(skipped(at));
    else
      out.push_back(wrong(at, code::daemon_set_not_rolled_out, name, progress));
  }
  return out;
}

}  // namespace

report walk(const cluster_view& of) {
  report out;
  const auto leader = leader_step(of);
  const bool leaderless = is_wrong(leader) || !of.missing_types.empty();
  for (const auto& one : of.nodes) out.nodes.push_back(node_walker(of, one, leaderless).walk());
  const auto types = types_step(of);
  const auto policy = policy_step(of, leaderless);
  out.cluster = {types, policy};
  for (auto& one : rules_step(of, leaderless || is_wrong(types))) out.cluster.push_back(std::move(one));
  for (auto& one : daemon_set_steps(of, out, leaderless || is_wrong(policy) || is_wrong(types)))
    out.cluster.push_back(std::move(one));
  for (auto& one : scheduler_steps(of, leaderless || is_wrong(types) || policy.why == code::policy_not_looked_at))
    out.cluster.push_back(std::move(one));
  for (auto& one : caller_steps(of, leaderless || is_wrong(types))) out.cluster.push_back(std::move(one));
  for (auto& one : quota_steps(of, leaderless || is_wrong(types))) out.cluster.push_back(std::move(one));
  out.cluster.push_back(leader);
  return out;
}

std::size_t problems(const report& of) {
  auto out = static_cast<std::size_t>(std::ranges::count_if(of.cluster, is_wrong));
  for (const auto& one : of.nodes) out += static_cast<std::size_t>(std::ranges::count_if(one.steps, is_wrong));
  return out;
}

bool unsettled(const report& of) {
  const auto passing = [](const step& one) {
    return one.why == code::policy_not_looked_at || one.why == code::not_enrolled || one.why == code::enrolment_behind;
  };
  return std::ranges::any_of(of.cluster, passing) ||
         std::ranges::any_of(of.nodes, [&](const node_walk& one) { return std::ranges::any_of(one.steps, passing); });
}

kube::quantities asked_by(const kube::pod& pod) {
  // An init container runs beside the sidecars that were started before it (KEP-753).
  std::map<std::string, std::int64_t> beside, most;
  for (const auto& one : pod.containers) {
    for (const auto& [name, amount] : one.limits) {
      if (one.as != kube::container::role::init) {
        beside[name] += amount;
        most[name] = std::max(most[name], beside[name]);
      } else {
        most[name] = std::max(most[name], beside[name] + amount);
      }
    }
  }
  return {most.begin(), most.end()};
}

}  // namespace reconcilers::verify
