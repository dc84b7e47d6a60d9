#include "cli/explain/idle_nodes.hpp"

#include <algorithm>
#include <set>

#include "api/names.hpp"
#include "cli/cluster/open_node.hpp"
#include "quota/resource_keys.hpp"
#include "reconcilers/dialects/dialect.hpp"
#include "reconcilers/dialects/module_settings.hpp"
#include "reconcilers/extender/inventory.hpp"
#include "reconcilers/modules/catalogue.hpp"
#include "reconcilers/nodes/intent.hpp"

namespace cli {
namespace {

namespace ext = reconcilers::extender;
namespace modules = reconcilers::modules;
namespace dialects = reconcilers::dialects;

constexpr std::string_view asking_label = "nvidia-device-enable";

const dialects::dialect* product_of(const modules::module_type& module) {
  const auto match = std::ranges::find_if(dialects::all(), [&](const dialects::dialect* product) {
    return !product->ways().empty() && product->ways().front().module == module.name;
  });
  return match == dialects::all().end() ? nullptr : *match;
}

kube::packed_map with_label(const kube::packed_map& labels, std::string_view key, std::string_view value) {
  std::vector<kube::packed_map::entry> entries;
  for (const auto entry : labels) entries.push_back(entry);
  entries.emplace_back(key, value);
  return kube::packed_map::of(std::span(entries));
}

/// A module that is on, and in whose mode the pod's keys can be asked for.
struct serving_module {
  const modules::module_type* type;
  const dialects::dialect* product;
};

std::vector<serving_module> serving_modules(const reconcilers::accelerator_policy& policy,
                                            const ext::declared_keys& keys, const ext::pod_request& request) {
  std::vector<serving_module> out;
  for (const auto& module : modules::offered_by(&policy).rows()) {
    const auto* product = product_of(module);
    if (!product || !policy.enabled(module.name) || module.label_values.empty()) continue;
    auto service = service_in(product->engine_mode(), &policy);
    for (std::size_t i = 0; i < quota::alternatives.size(); ++i) {
      const bool is_offered = std::ranges::any_of(module.resources, [&](std::string_view resource) {
        return keys.engine_name(resource) == quota::alternatives[i];
      });
      if (!is_offered) service.withheld |= static_cast<std::uint8_t>(1U << i);
    }
    quota::demand needs;
    if (!quota::read(request.containers(), service, needs)) out.push_back({&module, product});
  }
  return out;
}

/// What an agent would report of the node's cards: as the ledger has them, else the agent's report, else what GPU
/// Feature Discovery says. Empty: which cards it has is not known.
std::vector<api::reported_card> cards_of_node(const kube::node& node, const quota::node_inventory* inventory,
                                              const api::accelerator_node* report) {
  std::vector<api::reported_card> out;
  if (inventory)
    for (const auto& card : inventory->cards)
      out.push_back({.uuid = card.uuid,
                     .model = card.model,
                     .health = card.healthy ? "" : "Unhealthy",
                     .memory_mib = card.memory_mib,
                     .index = card.minor,
                     .numa = card.numa,
                     .mig = card.mig,
                     .compute_capability = {},
                     .bus_id = {},
                     .links = {},
                     .warnings = {}});
  if (!out.empty()) return out;
  if (report && !report->cards.empty()) return report->cards;
  const auto number = dialects::number_of(node.labels.find("nvidia.com/gpu.count"));
  for (std::int64_t i = 0; i < std::min<std::int64_t>(number, static_cast<std::int64_t>(quota::max_cards)); ++i) {
    auto& card = out.emplace_back();
    card.uuid = node.key.name + "/" + std::to_string(i);
    card.model = node.labels.value_or("nvidia.com/gpu.product", "");
    card.memory_mib = dialects::number_of(node.labels.find("nvidia.com/gpu.memory"));
  }
  return out;
}

/// So much of the key would the kubelet offer.
std::int64_t offered_amount(std::string_view key, std::span<const api::reported_card> cards,
                            const quota::service& service) {
  const auto number = static_cast<std::int64_t>(cards.size());
  const auto* known = quota::resource_key_of(key);
  if (known && known->unit_mib > 0) {
    const bool is_spread = (service.modes & static_cast<std::uint16_t>(quota::mode::memory_shares)) != 0;
    const auto unit = is_spread ? service.memory_unit_mib : known->unit_mib;
    return cards.front().memory_mib / std::max<std::int64_t>(unit, 1) * number;
  }
  return known && known->legal.whole > 0 ? known->legal.whole * number : number;
}

/// The node as it would be in the mode.
kube::node changed_node(const kube::node& node, const serving_module& module, const ext::declared_keys& keys,
                        std::span<const api::reported_card> cards, const reconcilers::accelerator_policy& policy) {
  auto out = node;
  out.labels = with_label(node.labels, api::names::module_label, module.type->name);
  std::erase_if(out.allocatable, [&](const auto& entry) { return quota::known(keys.engine_name(entry.first)); });
  const auto service = service_in(module.product->engine_mode(), &policy);
  for (const auto resource : module.type->resources)
    out.allocatable.emplace_back(resource, offered_amount(keys.engine_name(resource), cards, service));
  std::ranges::sort(out.allocatable);
  return out;
}

/// A plugin with a register writes it when it runs, so its cards are not there yet.
void add_registered(quota::node_inventory& inventory, std::span<const api::reported_card> cards) {
  if (!inventory.cards.empty()) return;
  for (const auto& reported : cards) {
    auto& card = inventory.cards.emplace_back();
    card.uuid = reported.uuid;
    card.model = reported.model;
    card.memory_mib = reported.memory_mib;
    card.healthy = reported.healthy();
    card.mig = reported.mig;
    card.minor = reported.index;
  }
}

class idle_search {
 public:
  idle_search(const picture& picture, const kube::pod& pod, const ext::pod_request& request, const node_rules* rules)
      : picture_(picture), pod_(pod), request_(request), rules_(rules) {
    for (const auto& other : picture.pods.all())
      if (!other.node_name.empty() && !other.finished() && !other.containers.empty()) busy_.insert(other.node_name);
  }

  bool is_idle(const kube::node& node) const {
    if (!takes_new_pods(node) || busy_.contains(node.key.name)) return false;
    const auto view = picture_.book->book().view(node.key.name);
    const bool is_used =
        view && (std::ranges::any_of(view->used, [](const auto& use) { return !use.untouched(); }) ||
                 std::ranges::any_of(view->counts_used, [](std::int64_t amount) { return amount > 0; }));
    if (is_used || (view && view->inventory->changes_mode)) return false;
    const bool is_served_by_others =
        view && view->inventory->serves.modes != 0 && !node.labels.contains(api::names::module_label);
    if (is_served_by_others) return false;
    const auto* report = picture_.cards.find(node.key);
    const auto wanted = report ? std::string_view(report->mode.requested_mode) : std::string_view();
    return wanted.empty() || wanted == "none" || wanted == node.labels.value_or(api::names::module_label, "");
  }

  bool fits(const kube::node& node, const serving_module& module, const reconcilers::accelerator_policy& policy) const {
    if (!is_granted(node, module, policy)) return false;
    const auto view = picture_.book->book().view(node.key.name);
    const auto cards = cards_of_node(node, view ? view->inventory : nullptr, picture_.cards.find(node.key));
    if (cards.empty()) return false;
    const auto keys = picture_.book->keys();
    const auto changed = changed_node(node, module, keys, cards, policy);
    if (rules_ && !rules_->refuses(changed, text::language::en).empty()) return false;
    auto inventory = ext::node_of(changed, &policy, keys, cards);
    add_registered(inventory, cards);
    const std::vector<quota::card_use> used(inventory.cards.size());
    const std::vector<std::int64_t> counts(inventory.counts.size());
    quota::demand needs;
    if (quota::read(request_.containers(), inventory.serves, needs)) return false;
    return quota::fit(needs, {&inventory, used, counts}, {.only = request_.only()}).fits() &&
           !picture_.book->over(pod_, request_, inventory) &&
           !picture_.book->goes_before(pod_, request_, node.key.name);
  }

 private:
  /// What the operator would answer to the label.
  bool is_granted(const kube::node& node, const serving_module& module,
                  const reconcilers::accelerator_policy& policy) const {
    auto labelled = node;
    labelled.labels = with_label(node.labels, asking_label, module.type->label_values.front());
    const auto intent = reconcilers::intent_of(labelled, &policy, picture_.declared);
    return intent.type == reconcilers::node_intent::kind::mode && intent.mode->name == module.type->name &&
           intent.foreign.empty();
  }

  const picture& picture_;
  const kube::pod& pod_;
  const ext::pod_request& request_;
  const node_rules* rules_;
  std::set<std::string, std::less<>> busy_;
};

}  // namespace

quota::service service_in(quota::mode mode, const reconcilers::accelerator_policy* policy) {
  quota::service out;
  out.modes = static_cast<std::uint16_t>(mode);
  for (const auto* product : dialects::all()) {
    if (product->engine_mode() != mode || product->ways().empty()) continue;
    kube::node node;
    const auto module = product->ways().front().module;
    if (!module.empty()) node.labels = with_label({}, api::names::module_label, module);
    product->read_service(out, node, policy);
  }
  return out;
}

std::vector<idle_node> idle_nodes_for(const picture& picture, const kube::pod& pod, const ext::pod_request& request,
                                      const node_rules* rules) {
  const auto* policy = picture.policies.find(reconcilers::policy_key);
  if (!policy) return {};
  const auto able = serving_modules(*policy, picture.book->keys(), request);
  if (able.empty()) return {};
  const idle_search search(picture, pod, request, rules);
  std::vector<const kube::node*> nodes;
  for (const auto& node : picture.nodes.all())
    if (search.is_idle(node)) nodes.push_back(&node);
  std::ranges::sort(nodes, {}, [](const kube::node* node) -> const std::string& { return node->key.name; });
  std::vector<idle_node> out;
  for (const bool has_mode : {false, true}) {
    const auto first = [&]() -> std::optional<idle_node> {
      for (const auto* node : nodes) {
        const auto current = node->labels.value_or(api::names::module_label, "");
        if (current.empty() == has_mode) continue;
        for (const auto& module : able) {
          if (module.type->name == current || !search.fits(*node, module, *policy)) continue;
          return idle_node{.name = node->key.name,
                           .mode = std::string(module.type->name),
                           .current = std::string(current),
                           .command = "kubectl label node " + node->key.name + " " + std::string(asking_label) + "=" +
                                      std::string(module.type->label_values.front()) +
                                      (node->labels.contains(asking_label) ? " --overwrite" : "")};
        }
      }
      return {};
    };
    if (auto match = first()) out.push_back(std::move(*match));
  }
  return out;
}

}  // namespace cli
