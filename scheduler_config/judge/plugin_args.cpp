// k8s.io/kubernetes pkg/scheduler/apis/config/validation/validation_pluginargs.go, and component-helpers
// scheduling/corev1/nodeaffinity.

#include <algorithm>
#include <charconv>
#include <climits>

#include "scheduler_config/judge/judging.hpp"
#include "text/resource_name.hpp"

namespace scheduler_config {
namespace {

using text::yaml::node;

class arguments {
 public:
  arguments(judging& judging, const node* args, const std::string& path)
      : judging_(judging), args_(args), path_(path) {}

  void preemption() {
    range(args_, "minCandidateNodesPercentage", path_, 0, 100);
    range(args_, "minCandidateNodesAbsolute", path_, 0, INT_MAX);
    const auto percentage = integer_of(judging_.value(args_, "minCandidateNodesPercentage")).value_or(10);
    const auto absolute = integer_of(judging_.value(args_, "minCandidateNodesAbsolute")).value_or(100);
    if (percentage == 0 && absolute == 0)
      refuse(args_, "minCandidateNodesPercentage", path_, phrase_of(term::not_both_zero));
  }
  void inter_pod_affinity() { range(args_, "hardPodAffinityWeight", path_, 0, 100); }

  void balanced() {
    std::set<std::string> seen;
    each(args_, "resources", path_, [&](const node* node, const std::string& path) {
      if (!seen.insert(judging_.text(node, "name")).second)
        refuse(node, "name", path, phrase_of(term::each_resource_once));
      const auto weight = integer_of(judging_.value(node, "weight")).value_or(0);
      if (weight != 0 && weight != 1) refuse(node, "weight", path, text::phrase("1"));
    });
  }

  void volume_binding() {
    range(args_, "bindTimeoutSeconds", path_, 0, INT64_MAX);
    // The feature gate StorageCapacityScoring is on from 1.37 on. An empty list then counts as the default.
    if (judging_.scheduler.minor >= 37)
      shape(args_, path_);
    else if (judging_.value(args_, "shape"))
      refuse(args_, "shape", path_, phrase_of(term::without_storage_scoring));
  }

  void dynamic_resources() {
    if (duration_of(judging_, args_, "filterTimeout", 0) < 0) refuse(args_, "filterTimeout", path_, at_least("0"));
    const auto* binding = judging_.value(args_, "bindingTimeout");
    if (!binding) return;
    if (judging_.scheduler.minor < 36)
      refuse(args_, "bindingTimeout", path_, phrase_of(term::not_before, {{"version", std::string("1.36")}}));
    else if (parse_duration(binding->text).value_or(0) < 1'000'000'000)
      refuse(args_, "bindingTimeout", path_, at_least("1s"));
  }

  void fit() {
    each(args_, "ignoredResources", path_, [&](const node* node, const std::string& path) {
      if (!text::is_label_key(node->text)) refuse_at(*node, path, text::phrase("<domain>/<name>"));
    });
    each(args_, "ignoredResourceGroups", path_, [&](const node* node, const std::string& path) {
      if (node->text.contains('/') || !text::is_label_key(node->text))
        refuse_at(*node, path, phrase_of(term::domain_without_slash));
    });
    const auto* strategy = judging_.value(args_, "scoringStrategy");
    if (!strategy) return;
    const auto path = below(path_, "scoringStrategy");
    const auto type = judging_.text(strategy, "type");
    if (type != "LeastAllocated" && type != "MostAllocated" && type != "RequestedToCapacityRatio")
      return refuse(strategy, "type", path, text::phrase("LeastAllocated, MostAllocated, RequestedToCapacityRatio"));
    each(strategy, "resources", path, [&](const node* node, const std::string& item_path) {
      const auto weight = integer_of(judging_.value(node, "weight")).value_or(0);
      if (weight < 0 || weight > 100) refuse(node, "weight", item_path, between("1", "100"));
    });
    ratio(strategy, type == "RequestedToCapacityRatio", path);
  }

  void topology_spread() {
    const auto type = judging_.text(args_, "defaultingType");
    const auto constraints = judging_.items(args_, "defaultConstraints");
    if (!type.empty() && type != "System" && type != "List")
      refuse(args_, "defaultingType", path_, text::phrase("System, List"));
    if ((type.empty() || type == "System") && !constraints.empty())
      refuse(args_, "defaultConstraints", path_, phrase_of(term::list_of_constraints));
    std::set<std::pair<std::string, std::string>> seen;
    each(args_, "defaultConstraints", path_, [&](const node* node, const std::string& path) {
      const auto key = judging_.text(node, "topologyKey"), unsatisfiable = judging_.text(node, "whenUnsatisfiable");
      if (integer_of(judging_.value(node, "maxSkew")).value_or(0) <= 0) refuse(node, "maxSkew", path, at_least("1"));
      if (!text::is_label_key(key)) refuse(node, "topologyKey", path, phrase_of(term::label_key));
      if (unsatisfiable != "DoNotSchedule" && unsatisfiable != "ScheduleAnyway")
        refuse(node, "whenUnsatisfiable", path, text::phrase("DoNotSchedule, ScheduleAnyway"));
      if (judging_.value(node, "labelSelector")) refuse(node, "labelSelector", path, phrase_of(term::selector_of_pod));
      if (!seen.emplace(key, unsatisfiable).second) refuse(node, "topologyKey", path, phrase_of(term::each_pair_once));
    });
  }

  void node_affinity() {
    const auto* added = judging_.value(args_, "addedAffinity");
    const auto path = below(path_, "addedAffinity");
    constexpr auto required = "requiredDuringSchedulingIgnoredDuringExecution";
    constexpr auto preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    each(judging_.value(added, required), "nodeSelectorTerms", below(path, required),
         [&](const node* node, const std::string& item_path) { term(node, item_path); });
    each(added, preferred, path, [&](const node* node, const std::string& item_path) {
      if (integer_of(judging_.value(node, "weight")).value_or(0) != 0)
        term(judging_.value(node, "preference"), below(item_path, "preference"));
    });
  }

 private:
  void each(const node* node, std::string_view key, const std::string& path, const auto& look) {
    const auto all = judging_.items(node, key);
    const auto list_path = below(path, key);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!judging_.refused.contains(all[i])) look(all[i], below(list_path, i));
    }
  }
  /// At the field, or at the mapping that misses it.
  void refuse(const node* node, std::string_view key, const std::string& path, text::phrase allowed) {
    if (judging_.was_refused(node, key)) return;
    const auto* position = text::yaml::find_entry(node, key);
    judging_.say({.issue = code::value_refused,
                  .location = position ? position->key->location : node->location,
                  .field = below(path, key),
                  .value = position ? shown_value(*position->value) : std::string(),
                  .allowed = std::move(allowed),
                  .terms = position ? terms_of(*position->value)
                                    : std::vector<text::phrase_argument>{{"value", phrase_of(term::missing)}}});
  }
  void refuse_at(const node& node, const std::string& path, text::phrase allowed) {
    judging_.say({.issue = code::value_refused,
                  .location = node.location,
                  .field = path,
                  .value = shown_value(node),
                  .allowed = std::move(allowed),
                  .terms = terms_of(node)});
  }
  void range(const node* node, std::string_view key, const std::string& path, std::int64_t minimum,
             std::int64_t maximum) {
    const auto number = integer_of(judging_.value(node, key));
    if (number && (*number < minimum || *number > maximum))
      refuse(node, key, path,
             maximum > 100 ? at_least("0") : between(std::to_string(minimum), std::to_string(maximum)));
  }

  void ratio(const node* strategy, bool wanted, const std::string& path) {
    const auto* capacity_ratio = judging_.value(strategy, "requestedToCapacityRatio");
    // Without it the plugin of 1.30 crashes; what no strategy asks for is refused by later ones only.
    if (wanted && !capacity_ratio) return refuse(strategy, "type", path, phrase_of(term::with_capacity_ratio));
    if (!wanted && capacity_ratio && judging_.scheduler.minor >= 34)
      return refuse(strategy, "requestedToCapacityRatio", path, phrase_of(term::for_capacity_ratio));
    if (!capacity_ratio) return;
    const auto ratio_path = below(path, "requestedToCapacityRatio");
    if (judging_.items(capacity_ratio, "shape").empty())
      return refuse(capacity_ratio, "shape", ratio_path, phrase_of(term::one_point_or_more));
    shape(capacity_ratio, ratio_path);
  }
  void shape(const node* owner, const std::string& path) {
    std::int64_t last = -1;
    bool sorted = true;
    each(owner, "shape", path, [&](const node* node, const std::string& item_path) {
      const auto utilization = integer_of(judging_.value(node, "utilization")).value_or(0);
      if (sorted && last >= utilization && last >= 0) {
        refuse(node, "utilization", item_path, phrase_of(term::above_previous_point));
        sorted = false;
      }
      last = utilization;
      range(node, "utilization", item_path, 0, 100);
      const auto score = integer_of(judging_.value(node, "score")).value_or(0);
      if (score < 0 || score > 10) refuse(node, "score", item_path, between("0", "10"));
    });
  }

  void term(const node* selector, const std::string& path) {
    each(selector, "matchExpressions", path,
         [&](const node* node, const std::string& item_path) { expression(node, item_path); });
    each(selector, "matchFields", path, [&](const node* node, const std::string& item_path) {
      const auto is = judging_.text(node, "operator");
      if (is != "In" && is != "NotIn")
        refuse(node, "operator", item_path, text::phrase("In, NotIn"));
      else if (judging_.items(node, "values").size() != 1)
        refuse(node, "values", item_path, phrase_of(term::exactly_one));
    });
  }
  void expression(const node* node, const std::string& path) {
    const auto is = judging_.text(node, "operator");
    const auto values = judging_.items(node, "values");
    const bool compares = is == "Gt" || is == "Lt";
    if (is != "In" && is != "NotIn" && is != "Exists" && is != "DoesNotExist" && !compares)
      return refuse(node, "operator", path, text::phrase("In, NotIn, Exists, DoesNotExist, Gt, Lt"));
    if (!text::is_label_key(judging_.text(node, "key"))) refuse(node, "key", path, phrase_of(term::label_key));
    if ((is == "In" || is == "NotIn") && values.empty())
      return refuse(node, "values", path, phrase_of(term::one_or_more));
    if ((is == "Exists" || is == "DoesNotExist") && !values.empty())
      return refuse(node, "values", path, phrase_of(term::none));
    if (compares && (values.size() != 1 || !is_integer(values[0]->text)))
      return refuse(node, "values", path, phrase_of(term::exactly_one_number));
    for (const auto* value : values) {
      if (!text::is_label_value(value->text)) return refuse(node, "values", path, phrase_of(term::label_values));
    }
  }
  static bool is_integer(std::string_view text) {
    std::int64_t number = 0;
    if (text.starts_with('+')) text.remove_prefix(1);
    const auto [stopped, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
    return wrong == std::errc{} && stopped == text.data() + text.size();
  }

  judging& judging_;
  const node* args_;
  const std::string& path_;
};

}  // namespace

void validate_args(judging& judging, std::string_view plugin, const node* args, const std::string& path, bool needed) {
  arguments values(judging, args, path);
  if (plugin == "DefaultPreemption") values.preemption();
  if (plugin == "InterPodAffinity") values.inter_pod_affinity();
  if (plugin == "NodeResourcesBalancedAllocation") values.balanced();
  if (plugin == "VolumeBinding") values.volume_binding();
  if (plugin == "DynamicResources") values.dynamic_resources();
  if (plugin == "PodTopologySpread") values.topology_spread();
  if (plugin == "NodeAffinity") values.node_affinity();
  // Kubernetes' validation asks for a plugin "NodeResourcesFitArgs", which there is not: the plugin itself refuses.
  if (plugin == "NodeResourcesFit" && needed) values.fit();
}

}  // namespace scheduler_config
