#include "cli/cluster/fleet.hpp"

#include <algorithm>
#include <tuple>

#include "api/names.hpp"
#include "reconcilers/nodes/intent.hpp"
#include "reconcilers/verify/mistyped_label.hpp"
#include "text/quotation.hpp"

namespace cli {
namespace {

bool matters(const kube::pod& pod) {
  return !pod.finished() && (!pod.containers.empty() || pod.labels.contains(api::names::module_label) ||
                             !reconcilers::foreign_product(pod).empty());
}

std::chrono::seconds age_of(const kube::lease& lease, std::chrono::system_clock::time_point now) {
  const auto renewed = std::chrono::system_clock::time_point(std::chrono::microseconds(lease.renewed_us));
  return std::max(std::chrono::duration_cast<std::chrono::seconds>(now - renewed), std::chrono::seconds(0));
}

/// The oldest of the cards, and whether one is cut: labels may not say it, or may be older.
void take_in_cards(const std::vector<api::reported_card>& cards, reconcilers::node_facts& facts) {
  using reconcilers::parse_version;
  std::string oldest;
  for (const auto& card : cards) {
    if (card.compute_capability.empty()) continue;
    if (oldest.empty() || parse_version(card.compute_capability) < parse_version(oldest))
      oldest = card.compute_capability;
  }
  if (!oldest.empty()) facts.compute_capability = oldest;
  const bool is_cut = std::ranges::any_of(cards, &api::reported_card::mig);
  // Labels name the strategy by which cards are cut.
  if (is_cut && (facts.mig.empty() || facts.mig == "none")) facts.mig = "cut";
  if (!is_cut && !cards.empty()) facts.mig = "none";
}

bool concerns(const fleet& fleet, const kube::node& node) {
  if (node.labels.contains(api::names::module_label) || fleet.accelerator(node.key.name)) return true;
  const auto switching = [](const kube::taint& taint) { return taint.key == api::names::switching_taint; };
  if (std::ranges::any_of(node.taints, switching)) return true;
  return reconcilers::intent_of(node, fleet.policy, fleet.cluster.declared).type !=
             reconcilers::node_intent::kind::none ||
         reconcilers::verify::mistyped_label_of(node, fleet.policy, fleet.cluster.declared);
}

void take_in_operator(const picture& picture, reconcilers::verify::cluster_view& out) {
  out.leader_unseen = picture.reason_unseen(part::lease);
  out.sets_unseen = picture.reason_unseen(part::daemon_sets);
  out.old_quotas_unseen = picture.reason_unseen(part::old_quotas);
  if (picture.book) out.old_quotas_trouble = text::quotation_of(picture.book->trouble());
  out.slices_unseen = picture.reason_unseen(part::slices);
  out.labels_unseen = picture.reason_unseen(part::device_labels);
  out.refused_declarations = picture.refused_declarations;
  out.declarations_unseen = picture.declarations_unseen;
  for (const auto part : ledger_parts().needed)
    if (out.ledger_unseen.empty()) out.ledger_unseen = picture.reason_unseen(part);
  const auto& [ns, lease, renewed] = picture.leader;
  if (lease)
    out.leader = {lease->holder, age_of(*lease, picture.taken), std::chrono::seconds(lease->duration_seconds), renewed};
}

void take_in_pods(const fleet& fleet, reconcilers::verify::node_view& view) {
  for (const auto* pod : fleet.pods_on(view.node.key.name)) {
    if (fleet.is_plugin(*pod)) {
      view.plugins.push_back({std::string(pod->labels.value_or(api::names::module_label, "")), pod->key.to_string(),
                              pod->reason, pod->ready, pod->deleting});
      continue;
    }
    if (!reconcilers::foreign_product(*pod).empty())
      view.foreign.here.push_back(reconcilers::foreign_pod_of(*pod, fleet.cluster.leader.ns));
    view.claims.push_back({pod->key.to_string(), reconcilers::verify::asked_by(*pod)});
  }
}

}  // namespace

fleet::fleet(const picture& picture, std::string_view only_node, std::string_view only_ns)
    : cluster(picture), reports(&picture.reports), policy(picture.policies.find(reconcilers::policy_key)) {
  for (const auto& node : picture.nodes.all())
    if (only_node.empty() || node.key.name == only_node) nodes.emplace_back(node);
  std::ranges::sort(nodes, {}, [](const kube::node& node) -> const std::string& { return node.key.name; });
  for (const auto& pod : picture.pods.all()) {
    const bool is_of_node = only_node.empty() || pod.node_name == only_node;
    if (is_of_node && (only_ns.empty() || pod.key.ns == only_ns) && matters(pod)) pods.push_back(&pod);
  }
  std::ranges::sort(pods, {}, [](const kube::pod* pod) -> const kube::object_key& { return pod->key; });
  for (const auto* pod : pods) by_node_[pod->node_name].push_back(pod);
}

const api::accelerator_node* fleet::accelerator(std::string_view node) const {
  return cluster.cards.find({{}, std::string(node)});
}

const api::agent_report* fleet::report(std::string_view node) const {
  const auto match = reports->find(node);
  return match == reports->end() ? nullptr : &match->second;
}

const std::vector<const kube::pod*>& fleet::pods_on(std::string_view node) const {
  static const std::vector<const kube::pod*> none;
  const auto match = by_node_.find(node);
  return match == by_node_.end() ? none : match->second;
}

bool fleet::is_plugin(const kube::pod& pod) const {
  return pod.key.ns == cluster.leader.ns && pod.labels.contains(api::names::module_label);
}

reconcilers::node_facts facts_of(const fleet& fleet, const kube::node& node) {
  auto out = reconcilers::facts_of(node);
  const auto* accelerator = fleet.accelerator(node.key.name);
  if (!accelerator) return out;
  if (!accelerator->driver.empty()) out.driver = accelerator->driver;
  if (!accelerator->cuda.empty()) out.cuda = accelerator->cuda;
  if (const auto* report = fleet.report(node.key.name)) reconcilers::take_in(out, report->checks);
  if (accelerator->cards.empty()) return out;
  out.cards = static_cast<int>(accelerator->cards.size());
  if (!accelerator->cards.front().model.empty()) out.product = accelerator->cards.front().model;
  take_in_cards(accelerator->cards, out);
  return out;
}

reconcilers::verify::cluster_view view_of(const fleet& fleet, std::string_view only_node) {
  const auto& picture = fleet.cluster;
  reconcilers::verify::cluster_view out;
  out.missing_types = picture.missing_types;
  out.view_api_problem = picture.view_api_problem;
  if (fleet.policy) out.policy = *fleet.policy;
  for (const auto& policy : picture.policies.all())
    if (policy.key.name != api::names::policy) out.other_policies.push_back(policy.key.name);
  std::ranges::sort(out.other_policies);
  out.declared = picture.declared;
  out.daemon_sets = picture.daemon_sets;
  if (only_node.empty())
    for (const auto& quota : picture.quotas.all()) out.quotas.push_back(quota);
  std::ranges::sort(out.quotas, {}, [](const api::accelerator_quota& quota) { return quota.key; });
  out.whole = only_node.empty();
  take_in_operator(picture, out);
  const bool gpu_operator =
      std::ranges::any_of(fleet.pods, [](const kube::pod* pod) { return reconcilers::of_gpu_operator(*pod); });
  for (const kube::node& node : fleet.nodes) {
    if (only_node.empty() ? !concerns(fleet, node) : node.key.name != only_node) continue;
    auto& view = out.nodes.emplace_back();
    view.node = node;
    view.known = facts_of(fleet, node);
    view.foreign.gpu_operator = gpu_operator;
    if (const auto* accelerator = fleet.accelerator(node.key.name)) {
      if (!accelerator->mode.phase.empty()) view.status = accelerator->mode;
      view.cards = accelerator->cards;
      if (accelerator->is_report_old())
        view.old_report = quoted_phrase_of(accelerator->agent_reporting_code, accelerator->agent_reporting_message);
    }
    if (const auto match = picture.claimed.find(node.key.name); match != picture.claimed.end())
      view.claimed_devices = match->second;
    take_in_pods(fleet, view);
  }
  return out;
}

}  // namespace cli
