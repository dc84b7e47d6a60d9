// The plugins of kube-scheduler, and whether a profile's come to life: framework/runtime NewFramework on what
// config/v1/default_plugins.go merges. Sources: Kubernetes 1.30, 1.36 and 1.37; between them by their release notes.

#include <algorithm>
#include <array>
#include <map>

#include "scheduler_config/judge/judging.hpp"
#include "text/nearest.hpp"

namespace scheduler_config {
namespace {

using text::yaml::node;

enum point : std::uint16_t {
  pre_enqueue = 1 << 0,
  queue_sort = 1 << 1,
  pre_filter = 1 << 2,
  filter = 1 << 3,
  post_filter = 1 << 4,
  pre_score = 1 << 5,
  score = 1 << 6,
  reserve = 1 << 7,
  permit = 1 << 8,
  pre_bind = 1 << 9,
  bind = 1 << 10,
  post_bind = 1 << 11,
  placement_generate = 1 << 12,
  placement_score = 1 << 13,
  pod_group_post_filter = 1 << 14,
};
constexpr std::array<std::pair<std::string_view, point>, 15> points{{{"preEnqueue", pre_enqueue},
                                                                     {"queueSort", queue_sort},
                                                                     {"preFilter", pre_filter},
                                                                     {"filter", filter},
                                                                     {"postFilter", post_filter},
                                                                     {"preScore", pre_score},
                                                                     {"score", score},
                                                                     {"reserve", reserve},
                                                                     {"permit", permit},
                                                                     {"preBind", pre_bind},
                                                                     {"bind", bind},
                                                                     {"postBind", post_bind},
                                                                     {"placementGenerate", placement_generate},
                                                                     {"placementScore", placement_score},
                                                                     {"podGroupPostFilter", pod_group_post_filter}}};

struct plugin {
  std::string_view name;
  unsigned points;
  int since = 0, until = 99;
  int by_default = 0;  ///< enabled from this version on; 99: never
  int weight = 1;      ///< where it is enabled by default
};
constexpr unsigned scoring = pre_filter | filter | pre_score | score;
/// In the order in which they are enabled by default.
constexpr plugin known_plugins[] = {
    {"SchedulingGates", pre_enqueue},
    {"PrioritySort", queue_sort},
    {"NodeUnschedulable", filter, 0, 36},
    {"NodeName", filter, 0, 36},
    {"NodeName", pre_filter | filter, 37},
    {"NodeUnschedulable", pre_filter | filter, 37},
    {"TaintToleration", filter | pre_score | score, 0, 36, 0, 3},
    {"TaintToleration", scoring, 37, 99, 0, 3},
    {"NodeAffinity", scoring, 0, 99, 0, 2},
    {"NodePorts", pre_filter | filter},
    {"DeferredPodScheduling", pre_filter | filter | permit, 37, 99, 99},
    {"NodeResourcesFit", scoring, 0, 35},
    {"NodeResourcesFit", scoring | placement_score, 36},
    {"VolumeRestrictions", pre_filter | filter},
    {"EBSLimits", pre_filter | filter, 0, 30},
    {"GCEPDLimits", pre_filter | filter, 0, 30},
    {"AzureDiskLimits", pre_filter | filter, 0, 30},
    {"CinderLimits", pre_filter | filter, 0, 30, 99},
    {"NodeVolumeLimits", pre_filter | filter},
    {"VolumeBinding", scoring | reserve | pre_bind},
    {"VolumeZone", pre_filter | filter},
    {"PodTopologySpread", scoring, 0, 99, 0, 2},
    {"InterPodAffinity", scoring, 0, 99, 0, 2},
    {"DynamicResources", pre_enqueue | pre_filter | filter | post_filter | pre_score | reserve | pre_bind | post_bind,
     0, 31, 99},
    {"DynamicResources", pre_enqueue | pre_filter | filter | post_filter | score | reserve | pre_bind, 32, 36, 34, 2},
    {"DynamicResources",
     pre_enqueue | pre_filter | filter | post_filter | score | reserve | pre_bind | pod_group_post_filter, 37, 99, 0,
     2},
    {"DefaultPreemption", post_filter, 0, 32},
    {"DefaultPreemption", post_filter | pre_enqueue, 33, 36},
    {"DefaultPreemption", post_filter | pre_enqueue | pod_group_post_filter, 37},
    {"NodeResourcesBalancedAllocation", pre_score | score},
    {"ImageLocality", score},
    {"DefaultBinder", bind},
    {"GangScheduling", pre_enqueue | permit, 35, 99, 99},
    {"NodeDeclaredFeatures", pre_filter | filter, 35, 99, 36},
    {"TopologyPlacementGenerator", placement_generate, 36, 99, 99},
    {"PodGroupPodsCount", placement_score, 36, 99, 99},
};
constexpr std::string_view removed_plugins[] = {"EBSLimits", "GCEPDLimits", "AzureDiskLimits", "CinderLimits"};

bool is_one_of(std::string_view name, const auto& names) { return std::ranges::find(names, name) != std::end(names); }

const plugin* find_plugin(std::string_view name, int minor) {
  const auto is = [&](const plugin& plugin) {
    return plugin.name == name && plugin.since <= minor && minor <= plugin.until;
  };
  const auto* match = std::ranges::find_if(known_plugins, is);
  return match == std::end(known_plugins) ? nullptr : match;
}

class profile_plugins {
 public:
  profile_plugins(judging& judging, const node* profile, std::string path)
      : judging_(judging),
        plugins_(judging.value(profile, "plugins")),
        profile_(profile),
        path_(below(path, "plugins")) {}

  std::set<std::string> run() {
    merge_multi_point();
    for (const auto& [name, point] : points) enabled_at(name, point);
    if (!broken_) {
      sets();
      weights("score", score);
      weights("placementScore", placement_score);
    }
    return std::move(needed_);
  }

 private:
  struct enabled {
    std::string name;
    const node* item;  ///< null: by default
    std::string path;
  };

  std::vector<enabled> list(std::string_view point_name) {
    std::vector<enabled> out;
    const auto path = below(below(path_, point_name), "enabled");
    const auto all = judging_.items(judging_.value(plugins_, point_name), "enabled");
    for (std::size_t i = 0; i < all.size(); ++i)
      out.push_back({judging_.text(all[i], "name"), all[i], below(below(path, i), "name")});
    return out;
  }
  std::set<std::string> disabled(std::string_view point_name) {
    std::set<std::string> out;
    for (const auto* item : judging_.items(judging_.value(plugins_, point_name), "disabled"))
      out.insert(judging_.text(item, "name"));
    return out;
  }
  const plugin* known(const enabled& entry) {
    const auto* position = find_plugin(entry.name, judging_.scheduler.minor);
    if (position || !entry.item || is_one_of(entry.name, judging_.scheduler.plugins) ||
        !reported_.insert(entry.name).second)
      return position;
    broken_ = true;
    finding finding{.issue = is_one_of(entry.name, removed_plugins) ? code::plugin_removed : code::plugin_unknown,
                    .location = place(entry),
                    .field = entry.path,
                    .value = entry.name,
                    .other = judging_.version()};
    std::vector<std::string_view> names;
    for (const auto& row : known_plugins) names.push_back(row.name);
    finding.hint = text::nearest(entry.name, names);
    judging_.say(std::move(finding));
    return nullptr;
  }
  text::yaml::place place(const enabled& entry) const {
    const auto* position = judging_.entry(entry.item, "name");
    return position ? position->key->location : entry.item->location;
  }
  void twice(const enabled& entry) {
    broken_ = true;
    if (!entry.item) return;
    judging_.say({.issue = code::plugin_twice, .location = place(entry), .field = entry.path, .value = entry.name});
  }

  /// mergePluginSet: a default that is enabled again is replaced in its place, whatever is left comes after.
  void merge_multi_point() {
    auto own = list("multiPoint");
    const auto excluded = disabled("multiPoint");
    std::map<std::string, std::size_t> last;
    for (std::size_t i = 0; i < own.size(); ++i) last[own[i].name] = i;
    std::set<std::size_t> replaced;
    for (const auto& row : known_plugins) {
      const bool is_default = row.since <= judging_.scheduler.minor && judging_.scheduler.minor <= row.until &&
                              row.by_default <= judging_.scheduler.minor;
      if (!is_default || excluded.contains("*") || excluded.contains(std::string(row.name))) continue;
      const auto match = last.find(std::string(row.name));
      if (match != last.end()) replaced.insert(match->second);
      multi_.push_back(match != last.end() ? own[match->second] : enabled{std::string(row.name), nullptr, {}});
    }
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (!replaced.contains(i)) multi_.push_back(own[i]);
    }
    for (const auto& entry : multi_) needed_.insert(entry.name);
  }

  void enabled_at(std::string_view name, point point) {
    std::set<std::string> here;
    auto& count = counts_[point];
    for (const auto& entry : list(name)) {
      if (point == pod_group_post_filter) arguments_of(entry);
      needed_.insert(entry.name);
      const auto* row = known(entry);
      if (row && (row->points & point) == 0) {
        broken_ = true;
        judging_.say({.issue = code::plugin_point,
                      .location = place(entry),
                      .field = entry.path,
                      .value = entry.name,
                      .other = std::string(name),
                      .allowed = text::phrase(points_of(*row))});
      }
      if (here.insert(entry.name).second)
        ++count;
      else
        twice(entry);
    }
    const auto excluded = disabled(name);
    if (excluded.contains("*")) return;
    std::set<std::string> by_multi;
    for (const auto& entry : multi_) {
      const auto* row = known(entry);
      if (!row || (row->points & point) == 0 || excluded.contains(entry.name) || here.contains(entry.name)) continue;
      if (by_multi.insert(entry.name).second)
        ++count;
      else if (said_twice_.insert(entry.name).second)
        twice(entry);
    }
  }

  /// SetDefaults_KubeSchedulerConfiguration of 1.37 fills in the arguments of the plugins of all other points, so a
  /// plugin of this one alone has none, and refuses to start.
  void arguments_of(const enabled& entry) {
    if (needed_.contains(entry.name) || !args_of(entry.name, judging_.scheduler.minor)) return;
    for (const auto* item : judging_.items(profile_, "pluginConfig")) {
      if (judging_.text(item, "name") == entry.name) return;
    }
    broken_ = true;
    judging_.say(
        {.issue = code::plugin_without_args, .location = place(entry), .field = entry.path, .value = entry.name});
  }

  void sets() {
    const bool own_plugins = !judging_.scheduler.plugins.empty();
    if (counts_[queue_sort] != 1 && !own_plugins)
      set("queueSort", counts_[queue_sort], text::phrase("1"), "queueSort: {enabled: [{name: PrioritySort}]}");
    if (counts_[bind] == 0 && !own_plugins) set("bind", 0, at_least("1"), "bind: {enabled: [{name: DefaultBinder}]}");
    if (counts_[placement_generate] > 1)
      set("placementGenerate", counts_[placement_generate], phrase_of(term::zero_or_one), {},
          {{"hint", phrase_of(term::one_of_them)}});
  }
  void set(std::string_view name, std::size_t count, text::phrase allowed, std::string hint,
           std::vector<text::phrase_argument> terms = {}) {
    const auto* position = judging_.entry(plugins_, name);
    if (!position) position = judging_.entry(plugins_, "multiPoint");
    if (!position) position = judging_.entry(profile_, "plugins");
    judging_.say({.issue = code::plugin_set,
                  .location = position ? position->key->location : profile_->location,
                  .field = position && position->key->text != "plugins" ? below(path_, position->key->text) : path_,
                  .value = std::to_string(count),
                  .other = std::string(name),
                  .allowed = std::move(allowed),
                  .hint = std::move(hint),
                  .terms = std::move(terms)});
  }
  /// NewFramework adds the weights up, those of the point first, then those of multiPoint. Before each it asks whether
  /// the sum stays within 64 bits, and after a sum below 0 that question itself overflows. Weights of 32 bits never
  /// reach the upper end.
  void weights(std::string_view name, point point) {
    std::set<std::string> seen;
    std::int64_t sum = 0;
    const enabled* below_zero = nullptr;
    bool overflows = false;
    const auto add = [&](const enabled& plugin, bool scores) {
      if (overflows || !scores || !seen.insert(plugin.name).second) return;
      overflows = sum < 0;
      const auto weight = weight_of(plugin);
      if (sum >= 0 && sum + weight < 0) below_zero = &plugin;
      sum += weight;
    };
    const auto own = list(name);
    for (const auto& plugin : own) add(plugin, true);
    for (const auto& plugin : multi_) {
      const auto* row = find_plugin(plugin.name, judging_.scheduler.minor);
      add(plugin, row && (row->points & point) != 0);
    }
    if (!overflows) return;
    const auto* entry = judging_.entry(below_zero->item, "weight");
    const auto owner = below_zero->path.substr(0, below_zero->path.rfind('.'));
    judging_.say(refused_value(*entry, below(owner, "weight"), at_least("0")));
  }
  std::int64_t weight_of(const enabled& entry) const {
    const auto* row = find_plugin(entry.name, judging_.scheduler.minor);
    if (!entry.item) return row ? row->weight : 1;
    const auto written = integer_of(judging_.value(entry.item, "weight")).value_or(0);
    return written == 0 ? 1 : written;
  }
  static std::string points_of(const plugin& row) {
    std::string out;
    for (const auto& [name, point] : points) {
      if ((row.points & point) != 0) out += (out.empty() ? "" : ", ") + std::string(name);
    }
    return out;
  }

  judging& judging_;
  const node* plugins_;
  const node* profile_;
  std::string path_;
  std::vector<enabled> multi_;
  std::set<std::string> needed_, reported_, said_twice_;
  std::map<point, std::size_t> counts_;
  bool broken_ = false;
};

}  // namespace

std::set<std::string> validate_plugins(judging& judging, const node* profile, const std::string& path) {
  return profile_plugins(judging, profile, path).run();
}

}  // namespace scheduler_config
