#include "cli/cluster/fleet.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <tuple>

#include "api/names.hpp"
#include "cli/cluster/operator_lease.hpp"
#include "controller/sleep.hpp"
#include "kube/client.hpp"
#include "kube/json_text.hpp"
#include "kube/status.hpp"
#include "kube/wire.hpp"
#include "reconcilers/declarations/custom_resource.hpp"
#include "reconcilers/declarations/declared_config_map.hpp"
#include "reconcilers/declarations/parse.hpp"
#include "reconcilers/nodes/intent.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using kube::text_in;
using nlohmann::json;

constexpr auto group_path = "/apis/quartermaster.io/v1alpha1";
constexpr std::array types{&kube::resources::accelerator_policies, &kube::resources::accelerator_nodes,
                           &kube::resources::resource_rules};
/// A leader renews every two seconds by default; one look after this shows whether it does.
constexpr auto second_look = std::chrono::seconds(4);

void read_node_status(std::string_view bytes, listed_node& node) {
  using kube::wire::each_field, kube::wire::field;
  each_field(bytes, field<5>([&](std::string_view entry) {
               // NodeAddress has type and address where a map entry has key and value.
               const auto [type, address] = kube::wire::read_entry(entry);
               if (type == "InternalIP" && node.address.empty()) node.address = address;
             }),
             field<7>([&](std::string_view info) { each_field(info, field<6>(node.container_runtime)); }));
}

std::vector<listed_card> cards_in(const json& list) {
  std::vector<listed_card> out;
  for (const auto& entry : list) {
    if (!entry.is_object()) continue;
    listed_card card;
    card.uuid = text_in(entry, "uuid");
    card.model = text_in(entry, "model");
    card.compute_capability = text_in(entry, "computeCapability");
    card.health = text_in(entry, "health");
    card.index = kube::number_in(entry, "index", -1);
    card.memory_mib = kube::number_in(entry, "memoryMiB");
    out.push_back(std::move(card));
  }
  std::ranges::sort(out, {},
                    [](const listed_card& listed_card) { return std::tie(listed_card.index, listed_card.uuid); });
  return out;
}

kube::task<void> read_types(kube::transport& transport, fleet& fleet) {
  kube::client api(transport);
  const auto answer = co_await api.raw(group_path);
  if (!answer) co_return std::unexpected(answer.error());
  if (!kube::succeeded(answer->status) && answer->status != 404)
    co_return std::unexpected(kube::error_of("ask for the types of quartermaster.io", *answer));
  const auto list = answer->status == 200 ? json::parse(answer->body, nullptr, false) : json();
  for (const auto* type : types) {
    const auto known = [&](const json& object) { return text_in(object, "name") == type->plural; };
    const bool there = list.is_object() && list.contains("resources") && std::ranges::any_of(list["resources"], known);
    if (!there) fleet.missing_types.emplace_back(type->plural);
  }
  co_return kube::result<void>();
}

bool knows(const fleet& fleet, const kube::resource& type) {
  return std::ranges::find(fleet.missing_types, type.plural) == fleet.missing_types.end();
}

/// The server names a type that was deleted for a moment longer than it serves it.
kube::result<void> unless_gone(kube::result<void> listed, const kube::resource& type, fleet& fleet) {
  if (listed || listed.error().http != 404) return listed;
  fleet.missing_types.emplace_back(type.plural);
  return {};
}

kube::task<void> read_policies(kube::transport& transport, fleet& fleet) {
  const std::function<void(reconcilers::accelerator_policy)> keep = [&](reconcilers::accelerator_policy policy) {
    if (policy.key.name == api::names::policy)
      fleet.policy = std::move(policy);
    else
      fleet.other_policies.push_back(std::move(policy.key.name));
  };
  auto listed = co_await list_each<reconcilers::accelerator_policy>(transport, kube::list_options(), keep);
  co_return unless_gone(std::move(listed), kube::resources::accelerator_policies, fleet);
}

/// Of the namespace the operator reads them in. That they may not be seen is no reason to see nothing.
kube::task<void> read_device_labels(kube::transport& transport, fleet& fleet) {
  kube::list_options options;
  options.ns = reconcilers::declarations::parse_settings().ns;
  options.label_selector = reconcilers::declarations::names::device_selector;
  using reconcilers::declarations::declared_config_map;
  options.limit = declared_config_map::page;
  const std::function<void(declared_config_map)> keep = [&](const declared_config_map& config_map) {
    const auto parsed = reconcilers::declarations::parse_device(reconcilers::view_of(config_map));
    if (parsed.value.sound) fleet.declared.push_back(reconcilers::alias_of(parsed.value));
  };
  const auto listed = co_await list_each<declared_config_map>(transport, options, keep);
  if (!listed && listed.error().code != kube::errc::forbidden) co_return std::unexpected(listed.error());
  co_return kube::result<void>();
}

kube::task<void> read_nodes(kube::transport& transport, const std::string& only, fleet& fleet) {
  kube::list_options options;
  if (!only.empty()) options.field_selector = "metadata.name=" + only;
  const std::function<void(listed_node)> keep = [&](listed_node listed_node) {
    fleet.nodes.push_back(std::move(listed_node));
  };
  const auto nodes = co_await list_each<listed_node>(transport, options, keep);
  if (!nodes) co_return std::unexpected(nodes.error());
  if (!only.empty() && fleet.nodes.empty())
    co_return std::unexpected(
        kube::error{kube::errc::not_found, 404, "there is no node " + text::shown(only), std::nullopt});
  std::ranges::sort(fleet.nodes, {}, [](const listed_node& listed_node) { return listed_node.key.name; });
  if (!knows(fleet, kube::resources::accelerator_nodes)) co_return kube::result<void>();
  const std::function<void(listed_accelerator)> note = [&](listed_accelerator accelerator) {
    auto name = accelerator.key.name;
    fleet.accelerators.insert_or_assign(std::move(name), std::move(accelerator));
  };
  auto listed = co_await list_each<listed_accelerator>(transport, options, note);
  co_return unless_gone(std::move(listed), kube::resources::accelerator_nodes, fleet);
}

kube::task<void> read_pods(kube::transport& transport, const std::string& only, fleet& fleet) {
  kube::list_options options;
  if (!only.empty()) options.field_selector = "spec.nodeName=" + only;
  const std::function<void(kube::pod)> keep = [&](kube::pod pod) {
    if (pod.finished()) return;
    if (!pod.containers.empty() || pod.labels.contains(api::names::module_label) ||
        !reconcilers::foreign_product(pod).empty())
      fleet.pods.push_back(std::move(pod));
  };
  const auto pods = co_await list_each<kube::pod>(transport, options, keep);
  if (!pods) co_return std::unexpected(pods.error());
  std::ranges::sort(fleet.pods, {}, [](const kube::pod& pod) { return pod.key; });
  co_return kube::result<void>();
}

kube::task<void> read_daemon_sets(kube::transport& transport, fleet& fleet) {
  kube::list_options options;
  options.ns = fleet.ns;
  options.label_selector = std::string(api::names::managed_by_label) + "=" + std::string(api::names::managed_by);
  const std::function<void(kube::daemon_set)> keep = [&](kube::daemon_set set) {
    if (fleet.ns.empty()) fleet.ns = set.key.ns;
    fleet.daemon_sets.push_back(std::move(set));
  };
  co_return co_await list_each<kube::daemon_set>(transport, options, keep);
}

/// Quotas are of people's namespaces: that they may not be seen is no reason to see nothing.
kube::task<void> read_quotas(kube::transport& transport, fleet& fleet) {
  const std::function<void(api::accelerator_quota)> keep = [&](api::accelerator_quota quota) {
    fleet.quotas.push_back(std::move(quota));
  };
  const auto listed = co_await list_each<api::accelerator_quota>(transport, kube::list_options(), keep);
  const bool unseen =
      !listed && (listed.error().code == kube::errc::forbidden || listed.error().code == kube::errc::not_found);
  if (!listed && !unseen) co_return std::unexpected(listed.error());
  std::ranges::sort(fleet.quotas, {}, [](const api::accelerator_quota& quota) { return quota.key; });
  co_return kube::result<void>();
}

std::chrono::seconds age_of(const kube::lease& lease, std::chrono::system_clock::time_point now) {
  const auto renewed = std::chrono::system_clock::time_point(std::chrono::microseconds(lease.renewed_us));
  return std::max(std::chrono::duration_cast<std::chrono::seconds>(now - renewed), std::chrono::seconds(0));
}

/// Whether a lease that looks old is renewed all the same: clocks differ.
kube::task<void> look_again(kube::transport& transport, fleet& fleet) {
  const auto& lease = *fleet.lease;
  const std::chrono::seconds allowed(lease.duration_seconds);
  if (lease.holder.empty() || age_of(lease, std::chrono::system_clock::now()) <= allowed)
    co_return kube::result<void>();
  co_await controller::sleep_for(second_look);
  const auto later = co_await find_lease(transport, lease.key.ns);
  if (later && *later) fleet.lease_renewed = (*later)->renewed_us != lease.renewed_us;
  co_return kube::result<void>();
}

/// With a given namespace that is not the operator's, its own DaemonSets would count as foreign.
kube::task<void> sure_of_namespace(kube::transport& transport, const fleet_options& options, const fleet& found) {
  if (options.ns.empty() || found.lease || !found.daemon_sets.empty()) co_return kube::result<void>();
  const auto elsewhere = co_await find_lease(transport, {});
  if (!elsewhere || !*elsewhere || (*elsewhere)->key.ns == options.ns) co_return kube::result<void>();
  const auto& ns = (*elsewhere)->key.ns;
  co_return std::unexpected(kube::error{kube::errc::config, 0,
                                        "--namespace " + options.ns +
                                            ": there is no operator; its lease is in namespace " + ns +
                                            " (say that, or leave -n out)",
                                        std::nullopt});
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

bool concerns(const fleet& fleet, const listed_node& node) {
  if (node.labels.contains(api::names::module_label) || fleet.accelerators.contains(node.key.name)) return true;
  const auto switching = [](const kube::taint& taint) { return taint.key == api::names::switching_taint; };
  if (std::ranges::any_of(node.taints, switching)) return true;
  const auto* policy = fleet.policy ? &*fleet.policy : nullptr;
  return reconcilers::intent_of(node, policy, fleet.declared).type != reconcilers::node_intent::kind::none;
}

}  // namespace

kube::result<listed_node> listed_node::decode(std::string_view bytes) {
  auto known = kube::node::decode(bytes);
  if (!known) return std::unexpected(std::move(known.error()));
  return kube::wire::decode<listed_node>(bytes, [&](std::string_view whole, listed_node& made) {
    static_cast<kube::node&>(made) = std::move(*known);
    kube::wire::each_field(whole,
                           kube::wire::field<3>([&](std::string_view status) { read_node_status(status, made); }));
  });
}

kube::result<listed_accelerator> listed_accelerator::decode(std::string_view bytes) {
  auto known = api::accelerator_node::decode(bytes);
  if (!known) return std::unexpected(std::move(known.error()));
  listed_accelerator made;
  static_cast<api::accelerator_node&>(made) = std::move(*known);
  const auto whole = json::parse(bytes, nullptr, false);
  const auto status = whole.is_object() ? whole.value("status", json::object()) : json::object();
  if (!status.is_object()) return made;
  made.other_cards = api::other_cards_in(status);
  if (const auto rows = status.find("preflight"); rows != status.end() && rows->is_array()) {
    for (const auto& row : *rows) {
      if (row.is_object())
        made.reported.push_back(
            {text_in(row, "check"), text_in(row, "found"), text_in(row, "state"), text_in(row, "remedy")});
    }
  }
  if (const auto cards = status.find("cards"); cards != status.end() && cards->is_array())
    made.cards = cards_in(*cards);
  return made;
}

kube::task<fleet> read_fleet(kube::transport& transport, fleet_options options) {
  fleet out;
  out.ns = options.ns;
  const auto types_known = co_await read_types(transport, out);
  if (!types_known) co_return std::unexpected(types_known.error());
  if (knows(out, kube::resources::accelerator_policies)) {
    const auto policies = co_await read_policies(transport, out);
    if (!policies) co_return std::unexpected(policies.error());
  }
  const auto labels = co_await read_device_labels(transport, out);
  if (!labels) co_return std::unexpected(labels.error());
  const auto nodes = co_await read_nodes(transport, options.node, out);
  if (!nodes) co_return std::unexpected(nodes.error());
  if (options.operator_too) {
    auto lease = co_await find_lease(transport, out.ns);
    if (lease)
      out.lease = std::move(*lease);
    else
      out.lease_unseen = lease.error().message;
    if (out.lease && out.ns.empty()) out.ns = out.lease->key.ns;
    const auto quotas = co_await read_quotas(transport, out);
    if (!quotas) co_return std::unexpected(quotas.error());
  }
  const auto sets = co_await read_daemon_sets(transport, out);
  if (!sets) co_return std::unexpected(sets.error());
  const auto here = co_await sure_of_namespace(transport, options, out);
  if (!here) co_return std::unexpected(here.error());
  const auto pods = co_await read_pods(transport, options.node, out);
  if (!pods) co_return std::unexpected(pods.error());
  if (out.lease) {
    const auto again = co_await look_again(transport, out);
    if (!again) co_return std::unexpected(again.error());
  }
  co_return out;
}

reconcilers::node_facts facts_of(const fleet& fleet, const listed_node& node) {
  auto out = reconcilers::facts_of(static_cast<const kube::node&>(node));
  out.container_runtime = node.container_runtime;
  const auto match = fleet.accelerators.find(node.key.name);
  if (match == fleet.accelerators.end()) return out;
  const auto& accelerator = match->second;
  if (!accelerator.driver.empty()) out.driver = accelerator.driver;
  if (!accelerator.cuda.empty()) out.cuda = accelerator.cuda;
  reconcilers::take_in(out, accelerator.reported);
  if (accelerator.cards.empty()) return out;
  out.cards = static_cast<int>(accelerator.cards.size());
  if (!accelerator.cards.front().model.empty()) out.product = accelerator.cards.front().model;
  take_in_cards(accelerator.api::accelerator_node::cards, out);
  return out;
}

std::vector<const kube::pod*> pods_on(const fleet& fleet, std::string_view node) {
  std::vector<const kube::pod*> out;
  for (const auto& pod : fleet.pods) {
    if (pod.node_name == node) out.push_back(&pod);
  }
  return out;
}

bool is_plugin(const fleet& fleet, const kube::pod& pod) {
  return pod.key.ns == fleet.ns && pod.labels.contains(api::names::module_label);
}

reconcilers::verify::cluster_view view_of(const fleet& fleet, std::string_view only_node,
                                          std::chrono::system_clock::time_point now) {
  reconcilers::verify::cluster_view out;
  out.missing_types = fleet.missing_types;
  out.policy = fleet.policy;
  out.other_policies = fleet.other_policies;
  out.declared = fleet.declared;
  out.daemon_sets = fleet.daemon_sets;
  if (only_node.empty()) out.quotas = fleet.quotas;
  out.whole = only_node.empty();
  out.leader_unseen = fleet.lease_unseen;
  if (fleet.lease)
    out.leader = {fleet.lease->holder, age_of(*fleet.lease, now), std::chrono::seconds(fleet.lease->duration_seconds),
                  fleet.lease_renewed};
  const bool gpu_operator = std::ranges::any_of(fleet.pods, reconcilers::of_gpu_operator);
  for (const auto& node : fleet.nodes) {
    if (only_node.empty() ? !concerns(fleet, node) : node.key.name != only_node) continue;
    auto& view = out.nodes.emplace_back();
    view.node = node;
    view.known = facts_of(fleet, node);
    view.foreign.gpu_operator = gpu_operator;
    if (const auto match = fleet.accelerators.find(node.key.name);
        match != fleet.accelerators.end() && !match->second.mode.phase.empty())
      view.status = match->second.mode;
    if (const auto match = fleet.accelerators.find(node.key.name); match != fleet.accelerators.end()) {
      view.cards = static_cast<const api::accelerator_node&>(match->second).cards;
      if (match->second.is_report_old()) view.old_report = match->second.agent_reporting_message;
    }
    for (const auto* pod : pods_on(fleet, node.key.name)) {
      if (is_plugin(fleet, *pod)) {
        view.plugins.push_back({std::string(pod->labels.value_or(api::names::module_label, "")), pod->key.to_string(),
                                pod->reason, pod->ready, pod->deleting});
      } else {
        if (!reconcilers::foreign_product(*pod).empty())
          view.foreign.here.push_back(reconcilers::foreign_pod_of(*pod, fleet.ns));
        view.claims.push_back({pod->key.to_string(), reconcilers::verify::asked_by(*pod)});
      }
    }
  }
  return out;
}

}  // namespace cli
