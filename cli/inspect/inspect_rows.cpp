// Rows of inspect nodes, modules and pods.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "api/names.hpp"
#include "cli/cluster/free_cards.hpp"
#include "cli/cluster/open_node.hpp"
#include "cli/inspect/inspect_fleet.hpp"
#include "controller/coded_message.hpp"
#include "quota/resource_keys.hpp"
#include "reconcilers/dialects/dialect.hpp"
#include "reconcilers/extender/inventory.hpp"
#include "reconcilers/nodes/intent.hpp"
#include "reconcilers/nodes/mode_change.hpp"
#include "reconcilers/nodes/shown_mode.hpp"
#include "reconcilers/verify/mistyped_label.hpp"

namespace cli {
namespace {

using nlohmann::json;
using reconcilers::modules::module_type;

constexpr std::string_view none = "none";

std::int64_t number(std::string_view text) {
  std::int64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

/// Whole cards of a resource's amount; 0 where it does not say.
std::int64_t cards_of(std::string_view resource, std::int64_t amount) {
  if (resource == "nvidia.com/gpu") return amount;
  return resource == "tencent.com/vcuda-core" || resource == "nvidia.com/mps-core" ? amount / 100 : 0;
}

const reconcilers::modules::offer& offered(const fleet& fleet) {
  return reconcilers::modules::offered_by(fleet.policy);
}

/// Of a card of which new pods get shares, in the unit of the key; memory in MiB.
std::int64_t left_of(const quota::resource_key& key, const quota::card& card, const quota::card_use& used) {
  if (key.unit_mib > 0) return std::max<std::int64_t>(card.lendable_mib() - used.memory_mib, 0);
  if (key.legal.whole > 0) return std::max(quota::whole_card - used.cores, 0);
  return std::max<std::int64_t>(std::int64_t{card.max_sharers} - used.sharers, 0);
}

std::optional<quota::node_view> ledger_view(const fleet& fleet, const kube::node& node) {
  return fleet.cluster.book ? fleet.cluster.book->book().view(node.key.name) : std::nullopt;
}

/// What new pods get of a resource on the cards of a node, as the ledger has them; without a ledger, and of resources
/// that are no cards, no bound.
std::int64_t left_on_cards(const fleet& fleet, const kube::node& node, const resource_use& use) {
  constexpr auto no_bound = std::numeric_limits<std::int64_t>::max();
  const auto view = ledger_view(fleet, node);
  if (!view || view->inventory->cards.empty()) return no_bound;
  std::string_view name = use.name;
  const auto renamed = reconcilers::extender::renamed_keys(fleet.policy);
  if (const auto match = std::ranges::find(renamed, use.name, &reconcilers::dialects::renamed_key::here);
      match != renamed.end())
    name = match->engine;
  const auto* key = quota::resource_key_of(name);
  if (!key) return no_bound;
  std::int64_t left = 0, memory_mib = 0;
  const bool is_counted_whole = key->key == "nvidia.com/gpu" && view->inventory->serves.has(quota::mode::pgpu);
  const auto lendable = is_counted_whole ? free_cards(node, *view) : cards_with_shares_left(node, *view);
  for (std::size_t i = 0; i < lendable.size(); ++i) {
    if (lendable[i]) left += is_counted_whole ? 1 : left_of(*key, view->inventory->cards[i], view->used[i]);
    memory_mib += view->inventory->cards[i].lendable_mib();
  }
  if (key->unit_mib == 0) return left;
  // Plugins count in units of their own: the node's capacity says which.
  if (memory_mib <= 0 || use.capacity <= 0) return no_bound;
  const auto amount = static_cast<double>(left) / static_cast<double>(memory_mib) * static_cast<double>(use.capacity);
  return static_cast<std::int64_t>(std::ceil(amount - 1e-6));
}

std::vector<resource_use> use_of(const fleet& fleet, const kube::node& node,
                                 const std::vector<std::string>& resources) {
  std::vector<resource_use> out;
  const bool is_open = takes_new_pods(node);
  for (const auto& name : resources) {
    auto& entry = out.emplace_back(
        resource_use{name, kube::amount(node.capacity, name), kube::amount(node.allocatable, name), 0});
    entry.most = is_open ? left_on_cards(fleet, node, entry) : 0;
  }
  if (!fleet.cluster.reason_unseen(part::pods).empty()) {
    for (auto& entry : out) entry.requested.reset();
    return out;
  }
  for (const auto* pod : fleet.pods_on(node.key.name)) {
    const auto requested = reconcilers::verify::asked_by(*pod);
    for (auto& entry : out) *entry.requested += kube::amount(requested, entry.name);
  }
  return out;
}

/// An agent has NVML's name ("Tesla T4"); people select by the label nvidia.com/gpu.product, which has dashes.
std::string as_product(std::string model) {
  std::ranges::replace(model, ' ', '-');
  return model;
}

void add_cards(node_row& node_row, const fleet& fleet, const kube::node& node) {
  const auto known = facts_of(fleet, node);
  node_row.model = as_product(known.product);
  node_row.driver = known.driver;
  node_row.cuda = known.cuda;
  node_row.cards = known.cards;
  node_row.memory_mib = number(node.labels.value_or("nvidia.com/gpu.memory", ""));
  if (const auto* accelerator = fleet.accelerator(node.key.name); accelerator && !accelerator->cards.empty()) {
    const auto& cards = accelerator->cards;
    if (cards.front().memory_mib > 0) node_row.memory_mib = cards.front().memory_mib;
    if (node_row.model.empty()) node_row.model = as_product(cards.front().model);
    if (node_row.cards == 0) node_row.cards = static_cast<std::int64_t>(cards.size());
    const auto reported = [](const api::reported_card& card) { return !card.health.empty(); };
    if (std::ranges::any_of(cards, reported))
      node_row.unhealthy = std::ranges::count_if(
          cards, [](const api::reported_card& card) { return !card.health.empty() && card.health != "Healthy"; });
    node_row.cards_known = true;
    return;
  }
  for (const auto& resource : node_row.resources) {
    if (node_row.mode == "share") break;  // several of one card
    if (node_row.cards == 0) node_row.cards = cards_of(resource.name, resource.capacity);
    // What a plugin advertises and does not offer is unhealthy; without a plugin no one has looked at a card.
    if (cards_of(resource.name, resource.capacity) > 0 && node_row.unhealthy.value_or(0) == 0)
      node_row.unhealthy = cards_of(resource.name, resource.capacity - resource.allocatable);
  }
  // An agent may report a sick card to those who may read its reports.
  if (node_row.unhealthy == 0 && !fleet.cluster.reason_unseen(part::accelerator_nodes).empty())
    node_row.unhealthy.reset();
  node_row.cards_known = node_row.cards > 0;
}

/// As the ledger names them; where it knows none, as the agent does, or by their numbers.
std::set<std::string> names_of_cards(const fleet& fleet, const kube::node& node, std::int64_t number) {
  std::set<std::string> out;
  if (const auto view = ledger_view(fleet, node))
    for (const auto& card : view->inventory->cards) out.insert(card.uuid);
  if (const auto* report = out.empty() ? fleet.accelerator(node.key.name) : nullptr)
    for (const auto& card : report->cards) out.insert(card.uuid);
  const std::int64_t unnamed = out.empty() ? number : 0;
  for (std::int64_t i = 0; i < unnamed; ++i) out.insert(node.key.name + "/" + std::to_string(i));
  return out;
}

/// All of a cordoned node, else those of its cards that the annotation names.
std::int64_t cordoned_cards_of(const fleet& fleet, const node_row& row, const kube::node& node) {
  if (row.cordoned) return row.cards;
  const auto list = node.annotations.value_or(reconcilers::extender::cordon_annotation, "");
  if (list.empty()) return 0;
  const auto names = reconcilers::extender::cordoned_cards(list);
  return std::ranges::count_if(names_of_cards(fleet, node, row.cards),
                               [&](const std::string& card) { return std::ranges::find(names, card) != names.end(); });
}

/// Someone says how each card is: the ledger makes up the names of cards that it only counts.
bool are_looked_at(const fleet& fleet, const kube::node& node) {
  if (const auto* report = fleet.accelerator(node.key.name); report && !report->cards.empty())
    return std::ranges::none_of(report->cards, [](const auto& card) { return card.health.empty(); });
  const auto view = ledger_view(fleet, node);
  return view && !view->inventory->cards.empty() && std::ranges::none_of(view->inventory->cards, [&](const auto& card) {
           return card.uuid.starts_with(node.key.name + "/");
         });
}

/// The operator writes in English. Where the same finding is made from what is seen here, it has words in both
/// languages.
text::phrase made_again(const text::phrase& finding, const std::string& written) {
  return !written.empty() && words_of(finding, text::language::en) == written ? finding : text::phrase(written);
}

node_row row_of(const fleet& fleet, const kube::node& node) {
  node_row out;
  out.name = node.key.name;
  out.address = node.address;
  out.ready = node.ready;
  out.cordoned = node.unschedulable;
  out.is_seen = fleet.cluster.reason_unseen(part::nodes).empty();
  const auto wanted = reconcilers::intent_of(node, fleet.policy, fleet.cluster.declared);
  out.requested = wanted.requested.empty() ? std::string(none) : wanted.requested;
  const auto* accelerator = fleet.accelerator(node.key.name);
  if (accelerator) {
    const auto& says = accelerator->mode;
    if (!out.is_seen && !says.requested_mode.empty()) out.requested = says.requested_mode;
    out.phase = says.phase;
    out.reason = says.reason;
    out.message = says.code.empty() ? made_again(wanted.message, says.message) : phrase_of(says.code, says.message);
    out.waits_for = says.blockers;
    out.fix = accelerator->fix;
    out.is_report_old = accelerator->is_report_old();
    if (const auto* report = fleet.report(node.key.name)) {
      out.preflight = report->checks;
      out.other_cards = report->other_cards;
    }
  } else if (wanted.type == reconcilers::node_intent::kind::refused) {
    out.reason = wanted.reason;
    out.message = wanted.message;
  }
  if (wanted.type == reconcilers::node_intent::kind::none && out.reason.empty())
    if (const auto mistyped = reconcilers::verify::mistyped_label_of(node, fleet.policy, fleet.cluster.declared)) {
      out.reason = "ModeLabelMistyped";
      out.message = {"verify.mode_label_mistyped.wrong", {{"value", mistyped->label}, {"other", mistyped->meant}}};
    }
  const auto* status = accelerator ? &accelerator->mode : nullptr;
  const auto mode_now = reconcilers::current_mode(node, status);
  out.mode = mode_now.empty() ? none : mode_now;
  out.shown_mode = reconcilers::shown_mode(node, status);
  const auto* mode = offered(fleet).find(out.mode);
  if (!mode) mode = offered(fleet).find(node.labels.value_or(api::names::module_label, ""));
  std::vector<std::string> resources;
  if (mode && out.is_seen) resources.assign(mode->resources.begin(), mode->resources.end());
  // Which of them the plugin of another vendor's cards offers is known to no one here.
  if (!out.other_cards.empty())
    for (const auto& [name, amount] : node.capacity)
      if (std::ranges::find(resources, name) == resources.end()) resources.push_back(name);
  out.resources = use_of(fleet, node, resources);
  add_cards(out, fleet, node);
  out.cordoned_cards = cordoned_cards_of(fleet, out, node);
  out.are_looked_at = are_looked_at(fleet, node);
  if (const auto view = ledger_view(fleet, node)) out.withheld_cards = withheld_cards(node, *view);
  return out;
}

/// That of its node where it offers what the pod asks for, else the one that would offer it.
std::string mode_of(const fleet& fleet, const kube::pod& pod, const kube::quantities& quantities) {
  const auto* node = fleet.cluster.nodes.find({{}, pod.node_name});
  const auto* here = node ? offered(fleet).find(node->labels.value_or(api::names::module_label, "")) : nullptr;
  for (const auto& [name, amount] : quantities) {
    if (here && std::ranges::find(here->resources, name) != here->resources.end()) return std::string(here->name);
  }
  for (const auto& [name, amount] : quantities) {
    if (const auto* mode = offered(fleet).advertiser(name)) return std::string(mode->name);
  }
  return {};
}

bool listed(const fleet& fleet, const kube::node& node) {
  if (reconcilers::has_cards(node) || fleet.accelerator(node.key.name)) return true;
  if (node.labels.contains(api::names::module_label)) return true;
  return reconcilers::intent_of(node, fleet.policy).type != reconcilers::node_intent::kind::none ||
         reconcilers::verify::mistyped_label_of(node, fleet.policy);
}

}  // namespace

std::vector<node_row> node_rows(const fleet& fleet, const std::vector<std::string>& only,
                                const kube::label_selector& selector) {
  std::vector<node_row> out;
  for (const kube::node& node : fleet.nodes) {
    if (!selector.selects(node.labels)) continue;
    const bool named = std::ranges::find(only, node.key.name) != only.end();
    if (only.empty() ? listed(fleet, node) : named) out.push_back(row_of(fleet, node));
  }
  return out;
}

std::vector<module_row> module_rows(const fleet& fleet) {
  std::vector<module_row> out;
  const auto status = fleet.policy ? json::parse(fleet.policy->status, nullptr, false) : json();
  for (const auto& mode : offered(fleet).rows()) {
    module_row row;
    row.name = mode.name;
    row.title = mode.title;
    row.daemon_set = mode.daemon_set;
    row.enabled = fleet.policy && fleet.policy->enabled(mode.name);
    row.resources = {mode.resources.begin(), mode.resources.end()};
    row.label_values = {mode.label_values.begin(), mode.label_values.end()};
    for (const auto& set : fleet.cluster.daemon_sets) {
      if (set.labels.value_or(api::names::module_label, "") != mode.name) continue;
      row.desired += set.desired;
      row.ready += set.ready;
      if (row.image.empty()) row.image = set.image;
    }
    row.nodes = std::ranges::count_if(fleet.nodes, [&](const kube::node& node) {
      return node.labels.value_or(api::names::module_label, "") == mode.name;
    });
    const auto statuses = status.is_object() ? status.value("modules", json::array()) : json::array();
    for (const auto& entry : statuses) {
      if (entry.is_object() && entry.value("name", "") == mode.name) row.message = controller::message_of(entry);
    }
    out.push_back(std::move(row));
  }
  return out;
}

std::vector<pod_row> pod_rows(const fleet& fleet, std::string_view ns, const std::vector<std::string>& only) {
  std::vector<pod_row> out;
  for (const auto* entry : fleet.pods) {
    const auto& pod = *entry;
    if ((!ns.empty() && pod.key.ns != ns) || fleet.is_plugin(pod)) continue;
    if (!only.empty() && std::ranges::find(only, pod.key.name) == only.end()) continue;
    pod_row row;
    row.requested = reconcilers::verify::asked_by(pod);
    std::erase_if(row.requested, [](const auto& entry) { return entry.second <= 0; });
    if (row.requested.empty()) continue;
    row.key = pod.key;
    row.node = pod.node_name;
    row.mode = mode_of(fleet, pod, row.requested);
    row.phase = pod.deleting ? "Terminating" : std::string(kube::to_string(pod.phase));
    row.reason = pod.reason;
    row.isolation = std::string(pod.annotations.value_or("quartermaster.io/isolation", ""));
    row.cards = named_cards(pod, fleet.accelerator(pod.node_name));
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace cli
