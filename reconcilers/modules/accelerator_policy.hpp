#pragma once
// What we keep of an AcceleratorPolicy: all of its spec that is acted on, and its status as text, to see whether it
// already says what we want it to. Defaults are the API server's (crds/); those here are for policies made by hand in
// tests.

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/names.hpp"
#include "kube/object.hpp"

namespace reconcilers {

namespace modules {
class offer;
}

/// Settings by name. A value that is no string is kept as its JSON text.
using settings_map = std::map<std::string, std::string, std::less<>>;

/// Nodes of a module with settings of their own: those with the label quartermaster.io/node-set=<name>.
struct node_set {
  std::string name;
  settings_map settings;  ///< each replaces the module's setting of that name
  friend bool operator==(const node_set&, const node_set&) = default;
};

/// spec.modules.<name>. Parts that go into the DaemonSet as they are stay JSON text; empty where the policy has none.
struct module_spec {
  bool enabled = false;
  std::string image;
  std::string image_pull_policy;
  std::string resources;    ///< object {limits, requests}
  std::string args;         ///< array of strings
  std::string env;          ///< array of {name, value}
  std::string tolerations;  ///< array
  std::string priority_class;
  std::string runtime_class;  ///< RuntimeClass of the plugin's pods; the module's declarations name it, too
  std::string rollout;        ///< Always, WhenIdle, OnDelete; empty: as the module says
  std::string pull_secrets;   ///< array of {name}; the policy's, for every module
  bool adopt = false;         ///< objects that others made under one of our names are taken over
  settings_map settings;
  std::vector<node_set> node_sets;
  std::string device;  ///< object; only a module of the policy's own has it
  friend bool operator==(const module_spec&, const module_spec&) = default;
};

/// A node label that asks for a mode; `value` is compared without regard to case, "none" is a mode.
struct label_alias {
  std::string key, value, mode;
  friend bool operator==(const label_alias&, const label_alias&) = default;
};

struct enrolment_spec {
  std::string default_mode;  ///< of a node with cards and no asking label; empty: none
  std::vector<label_alias> aliases;
  std::chrono::seconds verify_timeout{300}, drain_timeout{1800};
  bool evict = false;                   ///< drain.mode is Evict
  bool take_over = false;               ///< a node with someone else's device plugin may change to one of our modes
  std::string max_unavailable = "10%";  ///< a number of nodes, or "25%"
  friend bool operator==(const enrolment_spec&, const enrolment_spec&) = default;
};

/// spec.customResources: how strictly pods are held to the declarations.
struct custom_resources_spec {
  std::string enforcement = "Off";  ///< Off, Warn, Deny
  bool fill_optional = false;       ///< keys with limits: optional get their default too
  bool publish = true;              ///< modules declare what they advertise
  friend bool operator==(const custom_resources_spec&, const custom_resources_spec&) = default;
};

/// The catalogue as a policy has it (modules/catalogue.hpp). It follows from the policy, so it is never compared.
struct offered_modules {
  std::shared_ptr<const modules::offer> catalogue;
  friend bool operator==(const offered_modules&, const offered_modules&) { return true; }
};

/// spec.compatibility: what is done about pods that say which CUDA or which cards they need.
struct compatibility_spec {
  std::string enforcement = "Warn";  ///< Off, Warn, Deny
  bool paddle_allocator = false;     ///< FLAGS_allocator_strategy is written into Paddle pods that share a card
  friend bool operator==(const compatibility_spec&, const compatibility_spec&) = default;
};

/// spec.scheduler: how pods that ask for accelerators come to the extender.
struct scheduler_spec {
  std::string mode = "None";  ///< None, Dedicated, StaticPod
  bool isolate_nodes = true;  ///< with Dedicated: nodes with accelerators are tainted
  std::string image = {};     ///< empty: the usual one of the server's version
  std::int32_t replicas = 2;
  std::string pull_secrets = {};  ///< array of {name}; the policy's
  friend bool operator==(const scheduler_spec&, const scheduler_spec&) = default;
};

/// spec.health: what is done about cards that agents report as sick.
struct health_spec {
  std::string max_withdrawn = "20%";  ///< a number of nodes, or a percentage
  friend bool operator==(const health_spec&, const health_spec&) = default;
};

/// spec.containerRuntime: on which nodes the operator sets up the container runtime for NVIDIA's.
struct container_runtime_spec {
  settings_map node_selector;  ///< labels, all of which a node must have; empty: no node
  friend bool operator==(const container_runtime_spec&, const container_runtime_spec&) = default;
};

/// spec.chargeback: what the time of cards costs. Prices are applied when a report is made.
struct chargeback_spec {
  struct price {
    std::string model;           ///< of the card; `*` stands for any text
    std::int64_t card_hour = 0;  ///< one hour of a whole card, in millionths of the currency
    friend bool operator==(const price&, const price&) = default;
  };
  std::string currency;
  std::string organization_label;  ///< of Namespaces; its value names the organization. Empty: there are none
  std::vector<price> prices;       ///< the first whose model matches counts

  /// Null: this model has no price.
  const price* price_of(std::string_view model) const;
  friend bool operator==(const chargeback_spec&, const chargeback_spec&) = default;
};

/// Of the one policy that counts.
inline const kube::object_key policy_key{{}, std::string(api::names::policy)};

struct accelerator_policy : kube::object {
  std::map<std::string, module_spec, std::less<>> modules;
  enrolment_spec enrolment;
  custom_resources_spec resources;
  compatibility_spec compatibility;
  scheduler_spec scheduler;
  health_spec health;
  container_runtime_spec container_runtime;
  chargeback_spec chargeback;
  std::vector<std::string> card_labels;  ///< families of labels that are written on nodes (nodes/card_labels.hpp)
  /// Everything is to go: each module counts as off, whatever it says.
  bool removing = false;
  std::string status;       ///< JSON; empty where there is none yet
  offered_modules offered;  ///< made when decoded

  bool enabled(std::string_view module) const {
    const auto match = modules.find(module);
    return match != modules.end() && match->second.enabled;
  }
  /// Of the module's pods; empty: none.
  std::string_view runtime_class(std::string_view module) const {
    const auto match = modules.find(module);
    return match == modules.end() ? std::string_view() : match->second.runtime_class;
  }

  static const kube::resource& of() { return kube::resources::accelerator_policies; }
  static constexpr kube::encoding wire = kube::encoding::json;
  static kube::result<accelerator_policy> decode(std::string_view bytes);
  friend bool operator==(const accelerator_policy&, const accelerator_policy&) = default;
};

/// How many of `nodes` may change their mode at once; at least 1. A percentage is rounded up.
std::int64_t allowed_changes(std::string_view max_unavailable, std::int64_t nodes);

/// "2.50" as millionths: up to 6 digits, and up to 6 decimals. Empty where it is no such number.
std::optional<std::int64_t> parse_millionths(std::string_view text);

/// "1h30m", "90s"; empty where it is neither.
std::optional<std::chrono::seconds> parse_duration(std::string_view text);

}  // namespace reconcilers
