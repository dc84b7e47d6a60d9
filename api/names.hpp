#pragma once
// Keys that people, scripts and DaemonSets rely on; the table is in docs/architecture.md. Changing one breaks clusters.
// Those of state.quartermaster.io are the operator's memory: no one else writes them (api/memory.hpp reads them).
// Memory in a pod template has no such prefix: another key there replaces the pods.

#include <algorithm>
#include <array>
#include <string_view>

namespace api::names {

/// On nodes: which module serves the node; every module DaemonSet selects it. On objects and pods of a module: whose
/// they are. Written by us only.
inline constexpr std::string_view module_label = "quartermaster.io/module";
/// A change of mode under way (taint). Every module DaemonSet tolerates it.
inline constexpr std::string_view switching_taint = "quartermaster.io/switching";
/// On nodes that were taken over from someone else's device plugin, whose DaemonSet may be told to keep away from it.
/// Of a control-plane node whose kube-scheduler's files the agent looks after. The chart's DaemonSet selects it.
inline constexpr std::string_view static_pod_label = "quartermaster.io/static-pod";
inline constexpr std::string_view taken_over_label = "quartermaster.io/taken-over";
/// On nodes that have a module, while pods that ask for accelerators have a scheduler of their own
/// (spec.scheduler.isolateNodes): only those pods, and what serves the nodes, tolerate it.
inline constexpr std::string_view accelerator_taint = "quartermaster.io/accelerator";
/// On our objects: the hash of the intent that was applied last.
inline constexpr std::string_view applied_annotation = "state.quartermaster.io/applied";

/// On nodes, by people: the node set of its module whose settings count there.
inline constexpr std::string_view node_set_label = "quartermaster.io/node-set";
/// On pods of a module: the hash of the files they read, so that a change replaces them.
inline constexpr std::string_view files_annotation = "quartermaster.io/files";
/// On pods of a module and on their DaemonSet: what the pod was made from, and what it is to be made from, as
/// "<all but the images>.<images>", as hashes, with ".placement" behind them where the plugin gives the cards of each
/// pod's placement. A pod whose value is another is of an older version.
inline constexpr std::string_view template_annotation = "quartermaster.io/template";
/// On a DaemonSet: the node that is between two versions (plugin_rollout.hpp).
inline constexpr std::string_view rollout_annotation = "state.quartermaster.io/rollout";

/// On the pod of a kube-scheduler, and on its Deployment: the SHA-256 of its configuration, so that a change replaces
/// the pod.
inline constexpr std::string_view scheduler_config_annotation = "quartermaster.io/scheduler-config";
/// Next to it: how often it has been changed on that control-plane node.
inline constexpr std::string_view scheduler_generation_annotation = "quartermaster.io/scheduler-config-generation";

/// On that pod: a hash of the certificates by which it knows the extender and is known to it.
inline constexpr std::string_view certificates_annotation = "quartermaster.io/certificates";
/// On the Deployment of a kube-scheduler: the version of the API server it was made for.
inline constexpr std::string_view server_version_annotation = "state.quartermaster.io/server-version";
/// Next to it: the version of kube-scheduler that it runs, as far as its image's tag tells.
inline constexpr std::string_view scheduler_version_annotation = "state.quartermaster.io/scheduler-version";
/// On objects that are of no module: which part of us they are.
inline constexpr std::string_view part_label = "quartermaster.io/part";

/// On the ResourceRules object: None, Dedicated or StaticPod; selects the bindings of the policies that send pods to
/// our scheduler, and of those that refuse pods that pass it by.
inline constexpr std::string_view scheduler_label = "quartermaster.io/scheduler";
/// Reason of the condition Enforced of a quota: only pods of our own scheduler are held to it.
inline constexpr std::string_view own_scheduler_asks = "OwnSchedulerAsks";
/// What spec.schedulerName says of pods that ask for accelerators; the name of its objects and of its lease follow it.
inline constexpr std::string_view scheduler_name = "quartermaster";
inline constexpr std::string_view scheduler_objects = "quartermaster-scheduler";
/// The Service of the extender, the Secret kube-scheduler shows itself with; both are the chart's.
inline constexpr std::string_view extender_service = "quartermaster-extender";
inline constexpr std::string_view extender_client_secret = "quartermaster-extender-client";

/// On the ResourceRules object: Off, Warn or Deny; selects the bindings of the admission policies.
inline constexpr std::string_view enforcement_label = "quartermaster.io/enforcement";

inline constexpr std::string_view managed_by_label = "app.kubernetes.io/managed-by";
inline constexpr std::string_view managed_by = "quartermaster";

/// Field owner of objects that are ours.
inline constexpr std::string_view field_owner = "quartermaster";
/// Field owner of the controller's part of AcceleratorNode; the agent has the rest.
inline constexpr std::string_view node_field_owner = "quartermaster-controller";
inline constexpr std::string_view agent_field_owner = "quartermaster-agent";
/// Field owner of the condition AgentReporting, which the controller writes on its own.
inline constexpr std::string_view report_age_field_owner = "quartermaster-report-age";
/// Field owner of the record of a roll-out, on DaemonSets that `field_owner` has the rest of.
inline constexpr std::string_view rollout_field_owner = "quartermaster-rollout";

/// Namespaces whose pods are never held to declared rules; nor are those of our own.
inline constexpr std::array<std::string_view, 3> system_namespaces{"kube-system", "kube-public", "kube-node-lease"};
constexpr bool is_system(std::string_view ns) {
  return std::ranges::find(system_namespaces, ns) != system_namespaces.end();
}

/// The AcceleratorPolicy that counts.
inline constexpr std::string_view policy = "default";

}  // namespace api::names
