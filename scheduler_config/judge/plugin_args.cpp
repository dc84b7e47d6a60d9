// k8s.io/kubernetes pkg/scheduler/apis/config/validation/validation_pluginargs.go, and component-helpers
// scheduling/corev1/nodeaffinity.

#include <algorithm>
#include <charconv>
#include <climits>

#include "scheduler_config/judge/judging.hpp"
#include "text/resource_name.hpp"

namespace reconcilers::scheduler_config {
namespace {

using yaml::node;

class arguments {
 public:
  arguments(judging& in, const node* args, const std::string& path) : in_(in), args_(args), path_(path) {}

  void preemption() {
    range(args_, "minCandidateNodesPercentage", path_, 0, 100);
    range(args_, "minCandidateNodesAbsolute", path_, 0, INT_MAX);
    const auto percentage = integer_of(in_.value(args_, "minCandidateNodesPercentage")).value_or(10);
    const auto absolute = integer_of(in_.value(args_, "minCandidateNodesAbsolute")).value_or(100);
    if (percentage == 0 && absolute == 0)
      refuse(args_, "minCandidateNodesPercentage", path_, "not 0 while minCandidateNodesAbsolute is 0");
  }
  void inter_pod_affinity() { range(args_, "hardPodAffinityWeight", path_, 0, 100); }

  void balanced() {
    std::set<std::string> seen;
    each(args_, "resources", path_, [&](const node* one, const std::string& path) {
      if (!seen.insert(in_.text(one, "name")).second) refuse(one, "name", path, "each resource once");
      const auto weight = integer_of(in_.value(one, "weight")).value_or(0);
      if (weight != 0 && weight != 1) refuse(one, "weight", path, "1");
    });
  }

  void volume_binding() {
    range(args_, "bindTimeoutSeconds", path_, 0, INT64_MAX);
    if (in_.value(args_, "shape"))
      refuse(args_, "shape", path_, "nothing, as long as the feature gate of storage capacity scoring is off");
  }

  void dynamic_resources() {
    if (duration_of(in_, args_, "filterTimeout", 0) < 0) refuse(args_, "filterTimeout", path_, "0 or more");
    const auto* binding = in_.value(args_, "bindingTimeout");
    if (!binding) return;
    if (in_.on.minor < 36)
      refuse(args_, "bindingTimeout", path_, "nothing before Kubernetes 1.36");
    else if (parse_duration(binding->text).value_or(0) < 1'000'000'000)
      refuse(args_, "bindingTimeout", path_, "1s or more");
  }

  void fit() {
    each(args_, "ignoredResources", path_, [&](const node* one, const std::string& path) {
      if (!crl::is_label_key(one->text)) refuse_at(*one, path, "<domain>/<name>");
    });
    each(args_, "ignoredResourceGroups", path_, [&](const node* one, const std::string& path) {
      if (one->text.contains('/') || !crl::is_label_key(one->text)) refuse_at(*one, path, "a domain without a slash");
    });
    const auto* strategy = in_.value(args_, "scoringStrategy");
    if (!strategy) return;
    const auto path = below(path_, "scoringStrategy");
    const auto type = in_.text(strategy, "type");
    if (type != "LeastAllocated" && type != "MostAllocated" && type != "RequestedToCapacityRatio")
      return refuse(strategy, "type", path, "LeastAllocated, MostAllocated, RequestedToCapacityRatio");
    each(strategy, "resources", path, [&](const node* one, const std::string& at) {
      const auto weight = integer_of(in_.value(one, "weight")).value_or(0);
      if (weight < 0 || weight > 100) refuse(one, "weight", at, "1 to 100");
    });
    ratio(strategy, type == "RequestedToCapacityRatio", path);
  }

  void topology_spread() {
    const auto type = in_.text(args_, "defaultingType");
    const auto constraints = in_.items(args_, "defaultConstraints");
    if (!type.empty() && type != "System" && type != "List") refuse(args_, "defaultingType", path_, "System, List");
    if ((type.empty() || type == "System") && !constraints.empty())
      refuse(args_, "defaultConstraints", path_, "none, or defaultingType: List");
    std::set<std::pair<std::string, std::string>> seen;
    each(args_, "defaultConstraints", path_, [&](const node* one, const std::string& path) {
      const auto key = in_.text(one, "topologyKey"), when = in_.text(one, "whenUnsatisfiable");
      if (integer_of(in_.value(one, "maxSkew")).value_or(0) <= 0) refuse(one, "maxSkew", path, "1 or more");
      if (!crl::is_label_key(key)) refuse(one, "topologyKey", path, "the key of a node label");
      if (when != "DoNotSchedule" && when != "ScheduleAnyway")
        refuse(one, "whenUnsatisfiable", path, "DoNotSchedule, ScheduleAnyway");
      if (in_.value(one, "labelSelector")) refuse(one, "labelSelector", path, "nothing: each pod's own is used");
      if (!seen.emplace(key, when).second) refuse(one, "topologyKey", path, "each pair with whenUnsatisfiable once");
    });
  }

  void node_affinity() {
    const auto* added = in_.value(args_, "addedAffinity");
    const auto path = below(path_, "addedAffinity");
    constexpr auto required = "requiredDuringSchedulingIgnoredDuringExecution";
    constexpr auto preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    each(in_.value(added, required), "nodeSelectorTerms", below(path, required),
         [&](const node* one, const std::string& at) { term(one, at); });
    each(added, preferred, path, [&](const node* one, const std::string& at) {
      if (integer_of(in_.value(one, "weight")).value_or(0) != 0)
        term(in_.value(one, "preference"), below(at, "preference"));
    });
  }

 private:
  void each(const node* of, std::string_view key, const std::string& path, const auto& look) {
    const auto all = in_.items(of, key);
    const auto where = below(path, key);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!in_.refused.contains(all[i])) look(all[i], below(where, i));
    }
  }
  /// At the field, or at the mapping that misses it.
  void refuse(const node* of, std::string_view key, const std::string& path, std::string allowed) {
    if (in_.was_refused(of, key)) return;
    const auto* at = yaml::find_entry(of, key);
    in_.say({.what = code::value_refused,
             .at = at ? at->key->at : of->at,
             .field = below(path, key),
             .value = at ? shown_value(*at->value) : "missing",
             .allowed = std::move(allowed)});
  }
  void refuse_at(const node& at, const std::string& path, std::string allowed) {
    in_.say({.what = code::value_refused,
             .at = at.at,
             .field = path,
             .value = shown_value(at),
             .allowed = std::move(allowed)});
  }
  void range(const node* of, std::string_view key, const std::string& path, std::int64_t from, std::int64_t to) {
    const auto number = integer_of(in_.value(of, key));
    if (number && (*number < from || *number > to))
      refuse(of, key, path, to > 100 ? "0 or more" : std::to_string(from) + " to " + std::to_string(to));
  }

  void ratio(const node* strategy, bool wanted, const std::string& path) {
    const auto* of = in_.value(strategy, "requestedToCapacityRatio");
    // Without it the plugin of 1.30 crashes; what no strategy asks for is refused by later ones only.
    if (wanted && !of) return refuse(strategy, "type", path, "with requestedToCapacityRatio");
    if (!wanted && of && in_.on.minor >= 34)
      return refuse(strategy, "requestedToCapacityRatio", path, "only for type RequestedToCapacityRatio");
    if (!of) return;
    const auto where = below(path, "requestedToCapacityRatio");
    const auto points = in_.items(of, "shape");
    if (points.empty()) return refuse(of, "shape", where, "one point or more");
    std::int64_t last = -1;
    bool sorted = true;
    each(of, "shape", where, [&](const node* one, const std::string& at) {
      const auto utilization = integer_of(in_.value(one, "utilization")).value_or(0);
      if (sorted && last >= utilization && last >= 0) {
        refuse(one, "utilization", at, "more than the point before");
        sorted = false;
      }
      last = utilization;
      range(one, "utilization", at, 0, 100);
      const auto score = integer_of(in_.value(one, "score")).value_or(0);
      if (score < 0 || score > 10) refuse(one, "score", at, "0 to 10");
    });
  }

  void term(const node* of, const std::string& path) {
    each(of, "matchExpressions", path, [&](const node* one, const std::string& at) { expression(one, at); });
    each(of, "matchFields", path, [&](const node* one, const std::string& at) {
      const auto is = in_.text(one, "operator");
      if (is != "In" && is != "NotIn")
        refuse(one, "operator", at, "In, NotIn");
      else if (in_.items(one, "values").size() != 1)
        refuse(one, "values", at, "exactly one");
    });
  }
  void expression(const node* of, const std::string& path) {
    const auto is = in_.text(of, "operator");
    const auto values = in_.items(of, "values");
    const bool compares = is == "Gt" || is == "Lt";
    if (is != "In" && is != "NotIn" && is != "Exists" && is != "DoesNotExist" && !compares)
      return refuse(of, "operator", path, "In, NotIn, Exists, DoesNotExist, Gt, Lt");
    if (!crl::is_label_key(in_.text(of, "key"))) refuse(of, "key", path, "the key of a node label");
    if ((is == "In" || is == "NotIn") && values.empty()) return refuse(of, "values", path, "one or more");
    if ((is == "Exists" || is == "DoesNotExist") && !values.empty()) return refuse(of, "values", path, "none");
    if (compares && (values.size() != 1 || !is_integer(values[0]->text)))
      return refuse(of, "values", path, "exactly one whole number, in quotes");
    for (const auto* one : values) {
      if (!crl::is_label_value(one->text)) return refuse(of, "values", path, "values of a node label");
    }
  }
  static bool is_integer(std::string_view text) {
    std::int64_t number = 0;
    if (text.starts_with('+')) text.remove_prefix(1);
    const auto [stopped, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
    return wrong == std::errc{} && stopped == text.data() + text.size();
  }

  judging& in_;
  const node* args_;
  const std::string& path_;
};

}  // namespace

void validate_args(judging& in, std::string_view plugin, const node* args, const std::string& path, bool needed) {
  arguments of(in, args, path);
  if (plugin == "DefaultPreemption") of.preemption();
  if (plugin == "InterPodAffinity") of.inter_pod_affinity();
  if (plugin == "NodeResourcesBalancedAllocation") of.balanced();
  if (plugin == "VolumeBinding") of.volume_binding();
  if (plugin == "DynamicResources") of.dynamic_resources();
  if (plugin == "PodTopologySpread") of.topology_spread();
  if (plugin == "NodeAffinity") of.node_affinity();
  // Kubernetes' validation asks for a plugin "NodeResourcesFitArgs", which there is not: the plugin itself refuses.
  if (plugin == "NodeResourcesFit" && needed) of.fit();
}

}  // namespace reconcilers::scheduler_config
