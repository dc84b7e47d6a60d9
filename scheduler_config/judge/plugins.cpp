// The plugins of kube-scheduler, and whether a profile's come to life: framework/runtime NewFramework on what
// config/v1/default_plugins.go merges. Sources: Kubernetes 1.30 and 1.36; between the two by their release notes.

#include <algorithm>
#include <array>
#include <map>

#include "scheduler_config/judge/judging.hpp"
#include "text/nearest.hpp"

namespace reconcilers::scheduler_config {
namespace {

using yaml::node;

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
};
constexpr std::array<std::pair<std::string_view, point>, 14> points{{{"preEnqueue", pre_enqueue},
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
                                                                     {"placementScore", placement_score}}};

struct plugin {
  std::string_view name;
  unsigned at;
  int since = 0, until = 99;
  int by_default = 0;  ///< enabled from this version on; 99: never
  int weight = 1;      ///< where it is enabled by default
};
constexpr unsigned scoring = pre_filter | filter | pre_score | score;
/// In the order in which they are enabled by default.
constexpr plugin table[] = {
    {"SchedulingGates", pre_enqueue},
    {"PrioritySort", queue_sort},
    {"NodeUnschedulable", filter},
    {"NodeName", filter},
    {"TaintToleration", filter | pre_score | score, 0, 99, 0, 3},
    {"NodeAffinity", scoring, 0, 99, 0, 2},
    {"NodePorts", pre_filter | filter},
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
    {"DynamicResources", pre_enqueue | pre_filter | filter | post_filter | score | reserve | pre_bind, 32, 99, 34, 2},
    {"DefaultPreemption", post_filter, 0, 32},
    {"DefaultPreemption", post_filter | pre_enqueue, 33},
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
  const auto is = [&](const plugin& one) { return one.name == name && one.since <= minor && minor <= one.until; };
  const auto* at = std::ranges::find_if(table, is);
  return at == std::end(table) ? nullptr : at;
}

class profile_plugins {
 public:
  profile_plugins(judging& in, const node* profile, std::string path)
      : in_(in), plugins_(in.value(profile, "plugins")), profile_(profile), path_(below(path, "plugins")) {}

  std::set<std::string> run() {
    merge_multi_point();
    for (const auto& [name, at] : points) enabled_at(name, at);
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
    const node* at;  ///< null: by default
    std::string path;
  };

  std::vector<enabled> list(std::string_view point_name) {
    std::vector<enabled> out;
    const auto path = below(below(path_, point_name), "enabled");
    const auto all = in_.items(in_.value(plugins_, point_name), "enabled");
    for (std::size_t i = 0; i < all.size(); ++i)
      out.push_back({in_.text(all[i], "name"), all[i], below(below(path, i), "name")});
    return out;
  }
  std::set<std::string> disabled(std::string_view point_name) {
    std::set<std::string> out;
    for (const auto* one : in_.items(in_.value(plugins_, point_name), "disabled")) out.insert(in_.text(one, "name"));
    return out;
  }
  const plugin* known(const enabled& one) {
    const auto* at = find_plugin(one.name, in_.on.minor);
    if (at || !one.at || is_one_of(one.name, in_.on.plugins) || !said_.insert(one.name).second) return at;
    broken_ = true;
    finding what{.what = is_one_of(one.name, removed_plugins) ? code::plugin_removed : code::plugin_unknown,
                 .at = place(one),
                 .field = one.path,
                 .value = one.name,
                 .other = in_.version()};
    std::vector<std::string_view> names;
    for (const auto& row : table) names.push_back(row.name);
    what.hint = crl::nearest(one.name, names);
    in_.say(std::move(what));
    return nullptr;
  }
  yaml::place place(const enabled& one) const {
    const auto* at = in_.entry(one.at, "name");
    return at ? at->key->at : one.at->at;
  }
  void twice(const enabled& one) {
    broken_ = true;
    if (!one.at) return;
    in_.say({.what = code::plugin_twice, .at = place(one), .field = one.path, .value = one.name});
  }

  /// mergePluginSet: a default that is enabled again is replaced in its place, whatever is left comes after.
  void merge_multi_point() {
    auto own = list("multiPoint");
    const auto off = disabled("multiPoint");
    std::map<std::string, std::size_t> last;
    for (std::size_t i = 0; i < own.size(); ++i) last[own[i].name] = i;
    std::set<std::size_t> replaced;
    for (const auto& row : table) {
      const bool on = row.since <= in_.on.minor && in_.on.minor <= row.until && row.by_default <= in_.on.minor;
      if (!on || off.contains("*") || off.contains(std::string(row.name))) continue;
      const auto at = last.find(std::string(row.name));
      if (at != last.end()) replaced.insert(at->second);
      multi_.push_back(at != last.end() ? own[at->second] : enabled{std::string(row.name), nullptr, {}});
    }
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (!replaced.contains(i)) multi_.push_back(own[i]);
    }
    for (const auto& one : multi_) needed_.insert(one.name);
  }

  void enabled_at(std::string_view name, point at) {
    std::set<std::string> here;
    auto& count = counts_[at];
    for (const auto& one : list(name)) {
      needed_.insert(one.name);
      const auto* row = known(one);
      if (row && (row->at & at) == 0) {
        broken_ = true;
        in_.say({.what = code::plugin_point,
                 .at = place(one),
                 .field = one.path,
                 .value = one.name,
                 .other = std::string(name),
                 .allowed = points_of(*row)});
      }
      if (here.insert(one.name).second)
        ++count;
      else
        twice(one);
    }
    const auto off = disabled(name);
    if (off.contains("*")) return;
    std::set<std::string> by_multi;
    for (const auto& one : multi_) {
      const auto* row = known(one);
      if (!row || (row->at & at) == 0 || off.contains(one.name) || here.contains(one.name)) continue;
      if (by_multi.insert(one.name).second)
        ++count;
      else if (said_twice_.insert(one.name).second)
        twice(one);
    }
  }

  void sets() {
    const bool own_plugins = !in_.on.plugins.empty();
    if (counts_[queue_sort] != 1 && !own_plugins)
      set("queueSort", counts_[queue_sort], "1", "queueSort: {enabled: [{name: PrioritySort}]}");
    if (counts_[bind] == 0 && !own_plugins) set("bind", 0, "1 or more", "bind: {enabled: [{name: DefaultBinder}]}");
    if (counts_[placement_generate] > 1) set("placementGenerate", counts_[placement_generate], "0 or 1", "one of them");
  }
  void set(std::string_view name, std::size_t count, std::string allowed, std::string hint) {
    const auto* at = in_.entry(plugins_, name);
    if (!at) at = in_.entry(plugins_, "multiPoint");
    if (!at) at = in_.entry(profile_, "plugins");
    in_.say({.what = code::plugin_set,
             .at = at ? at->key->at : profile_->at,
             .field = at && at->key->text != "plugins" ? below(path_, at->key->text) : path_,
             .value = std::to_string(count),
             .other = std::string(name),
             .allowed = std::move(allowed),
             .hint = std::move(hint)});
  }
  /// NewFramework adds the weights up, those of the point first, then those of multiPoint. Before each it asks whether
  /// the sum stays within 64 bits, and after a sum below 0 that question itself overflows. Weights of 32 bits never
  /// reach the upper end.
  void weights(std::string_view name, point at) {
    std::set<std::string> seen;
    std::int64_t sum = 0;
    const enabled* below_zero = nullptr;
    bool overflows = false;
    const auto add = [&](const enabled& one, bool scores) {
      if (overflows || !scores || !seen.insert(one.name).second) return;
      overflows = sum < 0;
      const auto weight = weight_of(one);
      if (sum >= 0 && sum + weight < 0) below_zero = &one;
      sum += weight;
    };
    const auto own = list(name);
    for (const auto& one : own) add(one, true);
    for (const auto& one : multi_) {
      const auto* row = find_plugin(one.name, in_.on.minor);
      add(one, row && (row->at & at) != 0);
    }
    if (!overflows) return;
    const auto* entry = in_.entry(below_zero->at, "weight");
    const auto owner = below_zero->path.substr(0, below_zero->path.rfind('.'));
    in_.say(refused_value(*entry, below(owner, "weight"), "0 or more"));
  }
  std::int64_t weight_of(const enabled& one) const {
    const auto* row = find_plugin(one.name, in_.on.minor);
    if (!one.at) return row ? row->weight : 1;
    const auto written = integer_of(in_.value(one.at, "weight")).value_or(0);
    return written == 0 ? 1 : written;
  }
  static std::string points_of(const plugin& row) {
    std::string out;
    for (const auto& [name, at] : points) {
      if ((row.at & at) != 0) out += (out.empty() ? "" : ", ") + std::string(name);
    }
    return out;
  }

  judging& in_;
  const node* plugins_;
  const node* profile_;
  std::string path_;
  std::vector<enabled> multi_;
  std::set<std::string> needed_, said_, said_twice_;
  std::map<point, std::size_t> counts_;
  bool broken_ = false;
};

}  // namespace

std::set<std::string> validate_plugins(judging& in, const node* profile, const std::string& path) {
  return profile_plugins(in, profile, path).run();
}

}  // namespace reconcilers::scheduler_config
