#include "scheduler_config/judge/schema.hpp"

#include <algorithm>
#include <iterator>

namespace scheduler_config {
namespace {

using enum type;

constexpr field tls_fields[] = {{"insecure", boolean}, {"serverName", text}, {"certFile", text}, {"keyFile", text},
                                {"caFile", text},      {"certData", bytes},  {"keyData", bytes}, {"caData", bytes}};
constexpr shape tls_shape{tls_fields};

constexpr field managed_fields[] = {{"name", text}, {"ignoredByScheduler", boolean}};
constexpr shape managed_shape{managed_fields};

constexpr field extender_fields[] = {{"urlPrefix", text},
                                     {"filterVerb", text},
                                     {"preemptVerb", text},
                                     {"prioritizeVerb", text},
                                     {"weight", int64},
                                     {"bindVerb", text},
                                     {"enableHTTPS", boolean},
                                     {"tlsConfig", object, &tls_shape},
                                     {"httpTimeout", duration},
                                     {"nodeCacheCapable", boolean},
                                     {"managedResources", objects, &managed_shape},
                                     {"ignorable", boolean}};
constexpr shape extender_shape{extender_fields};

constexpr field plugin_fields[] = {{"name", text}, {"weight", int32}};
constexpr shape plugin_shape{plugin_fields};
constexpr field plugin_set_fields[] = {{"enabled", objects, &plugin_shape}, {"disabled", objects, &plugin_shape}};
constexpr shape plugin_set_shape{plugin_set_fields};
constexpr field plugins_fields[] = {{"preEnqueue", object, &plugin_set_shape},
                                    {"queueSort", object, &plugin_set_shape},
                                    {"preFilter", object, &plugin_set_shape},
                                    {"filter", object, &plugin_set_shape},
                                    {"postFilter", object, &plugin_set_shape},
                                    {"preScore", object, &plugin_set_shape},
                                    {"score", object, &plugin_set_shape},
                                    {"reserve", object, &plugin_set_shape},
                                    {"permit", object, &plugin_set_shape},
                                    {"preBind", object, &plugin_set_shape},
                                    {"bind", object, &plugin_set_shape},
                                    {"postBind", object, &plugin_set_shape},
                                    {"multiPoint", object, &plugin_set_shape},
                                    {"placementGenerate", object, &plugin_set_shape, 36},
                                    {"placementScore", object, &plugin_set_shape, 36},
                                    {"podGroupPostFilter", object, &plugin_set_shape, 37}};
constexpr shape plugins_shape{plugins_fields};

constexpr field plugin_config_fields[] = {{"name", text}, {"args", any}};
constexpr shape plugin_config_shape{plugin_config_fields};

constexpr field profile_fields[] = {{"schedulerName", text},
                                    {"percentageOfNodesToScore", int32},
                                    {"plugins", object, &plugins_shape},
                                    {"pluginConfig", objects, &plugin_config_shape}};
constexpr shape profile_shape{profile_fields};

constexpr field election_fields[] = {
    {"leaderElect", boolean}, {"leaseDuration", duration}, {"renewDeadline", duration}, {"retryPeriod", duration},
    {"resourceLock", text},   {"resourceName", text},      {"resourceNamespace", text}};
constexpr shape election_shape{election_fields};

constexpr field connection_fields[] = {
    {"kubeconfig", text}, {"acceptContentTypes", text}, {"contentType", text}, {"qps", real}, {"burst", int32}};
constexpr shape connection_shape{connection_fields};

constexpr field configuration_fields[] = {{"kind", text},
                                          {"apiVersion", text},
                                          {"parallelism", int32},
                                          {"leaderElection", object, &election_shape},
                                          {"clientConnection", object, &connection_shape},
                                          {"enableProfiling", boolean},
                                          {"enableContentionProfiling", boolean},
                                          {"percentageOfNodesToScore", int32},
                                          {"podInitialBackoffSeconds", int64},
                                          {"podMaxBackoffSeconds", int64},
                                          {"profiles", objects, &profile_shape},
                                          {"extenders", objects, &extender_shape},
                                          {"delayCacheUntilActive", boolean}};
constexpr shape configuration_shape{configuration_fields};

// ---- arguments of plugins ----
constexpr field spec_fields[] = {{"name", text}, {"weight", int64}};
constexpr shape spec_shape{spec_fields};
constexpr field point_fields[] = {{"utilization", int32}, {"score", int32}};
constexpr shape point_shape{point_fields};
constexpr field ratio_fields[] = {{"shape", objects, &point_shape}};
constexpr shape ratio_shape{ratio_fields};
constexpr field strategy_fields[] = {
    {"type", text}, {"resources", objects, &spec_shape}, {"requestedToCapacityRatio", object, &ratio_shape}};
constexpr shape strategy_shape{strategy_fields};

constexpr field requirement_fields[] = {{"key", text}, {"operator", text}, {"values", texts}};
constexpr shape requirement_shape{requirement_fields};
constexpr field selector_fields[] = {{"matchLabels", labels}, {"matchExpressions", objects, &requirement_shape}};
constexpr shape selector_shape{selector_fields};
constexpr field constraint_fields[] = {{"maxSkew", int32},           {"topologyKey", text},
                                       {"whenUnsatisfiable", text},  {"minDomains", int32},
                                       {"nodeAffinityPolicy", text}, {"nodeTaintsPolicy", text},
                                       {"matchLabelKeys", texts},    {"labelSelector", object, &selector_shape}};
constexpr shape constraint_shape{constraint_fields};
constexpr field term_fields[] = {{"matchExpressions", objects, &requirement_shape},
                                 {"matchFields", objects, &requirement_shape}};
constexpr shape term_shape{term_fields};
constexpr field required_fields[] = {{"nodeSelectorTerms", objects, &term_shape}};
constexpr shape required_shape{required_fields};
constexpr field preferred_fields[] = {{"weight", int32}, {"preference", object, &term_shape}};
constexpr shape preferred_shape{preferred_fields};
constexpr field affinity_fields[] = {{"requiredDuringSchedulingIgnoredDuringExecution", object, &required_shape},
                                     {"preferredDuringSchedulingIgnoredDuringExecution", objects, &preferred_shape}};
constexpr shape affinity_shape{affinity_fields};

#define QM_TYPE_META \
  {"kind", text}, { "apiVersion", text }
constexpr field preemption_args[] = {
    QM_TYPE_META, {"minCandidateNodesPercentage", int32}, {"minCandidateNodesAbsolute", int32}};
constexpr field inter_pod_args[] = {
    QM_TYPE_META, {"hardPodAffinityWeight", int32}, {"ignorePreferredTermsOfExistingPods", boolean}};
constexpr field fit_args[] = {QM_TYPE_META,
                              {"ignoredResources", texts},
                              {"ignoredResourceGroups", texts},
                              {"scoringStrategy", object, &strategy_shape}};
constexpr field spread_args[] = {
    QM_TYPE_META, {"defaultConstraints", objects, &constraint_shape}, {"defaultingType", text}};
constexpr field balanced_args[] = {QM_TYPE_META, {"resources", objects, &spec_shape}};
constexpr field volume_args[] = {QM_TYPE_META, {"bindTimeoutSeconds", int64}, {"shape", objects, &point_shape}};
constexpr field affinity_args[] = {QM_TYPE_META, {"addedAffinity", object, &affinity_shape}};
constexpr field dynamic_args[] = {
    QM_TYPE_META, {"filterTimeout", optional_duration}, {"bindingTimeout", optional_duration}};
#undef QM_TYPE_META

struct plugin_args {
  std::string_view plugin;
  shape layout;
  int since = 0;
};
constexpr plugin_args known_args[] = {{"DefaultPreemption", {preemption_args}},
                                      {"InterPodAffinity", {inter_pod_args}},
                                      {"NodeResourcesFit", {fit_args}},
                                      {"PodTopologySpread", {spread_args}},
                                      {"NodeResourcesBalancedAllocation", {balanced_args}},
                                      {"VolumeBinding", {volume_args}},
                                      {"NodeAffinity", {affinity_args}},
                                      {"DynamicResources", {dynamic_args}, 34}};

}  // namespace

const shape& configuration() noexcept { return configuration_shape; }
const shape& extender() noexcept { return extender_shape; }
const shape& tls() noexcept { return tls_shape; }

const shape* args_of(std::string_view plugin, int minor) noexcept {
  const auto* match = std::ranges::find(known_args, plugin, &plugin_args::plugin);
  return match != std::end(known_args) && match->since <= minor ? &match->layout : nullptr;
}

}  // namespace scheduler_config
