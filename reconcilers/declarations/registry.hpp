#pragma once
// All declarations at once, indexed so that what is to be said between them costs what one declaration touches, not
// what there is: a change of one re-judges its neighbours only. Pure; the reconciler feeds it from the stores, lint
// from files.
//
// Of several that declare one key, the one in force counts before one that is not, then the older, then the first by
// name: adding a duplicate never changes what is enforced, it is refused and says so.

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "reconcilers/declarations/parse.hpp"
#include "reconcilers/declarations/rule_set.hpp"

namespace reconcilers::declarations {

/// Everything we say of one ConfigMap.
struct judgement {
  kind type = kind::none;
  kube::object_key config_map;
  std::string key;                ///< the resource, or the node label as "key=value"
  std::vector<finding> findings;  ///< sorted
  std::uint64_t observed = 0;     ///< hash of the labels and data that were judged
  bool kept = false;              ///< refused, and what was accepted last stays in force (custom_resource knows)

  friend bool operator==(const judgement&, const judgement&) = default;
};

/// What compiling needs to know in addition to the declarations.
struct compile_options {
  bool fill_optional = false;  ///< spec.customResources.fillOptional: optional keys get their default too
  /// Keys some node offers; null: not known, so they are not checked.
  const std::set<std::string, std::less<>>* offered = nullptr;
  /// What was compiled last: the rule of a declaration that was edited into an error stays as it was there, until the
  /// ConfigMap is fixed, switched off or deleted.
  const rule_set* last = nullptr;
  /// The key of which a plugin gives a container one and no more, as its module is set; empty: none.
  std::string_view one_only{};
};

class registry {
 public:
  explicit registry(parse_settings settings = parse_settings()) : settings_(std::move(settings)) {}

  /// Takes a ConfigMap in, replacing what was known of it. One that is neither kind is forgotten.
  void put(const config_map_view& config_map);
  void erase(const kube::object_key& config_map);

  const parsed* find(const kube::object_key& config_map) const;
  std::size_t size() const { return items_.size(); }

  /// Own findings and those between ConfigMaps; `type` is none when it is not known.
  judgement judge(const kube::object_key& config_map) const;
  /// Exactly this content was taken in last.
  bool holds(const config_map_view& config_map) const;
  /// All, in the order of their keys.
  std::vector<judgement> judge_all() const;
  /// The ConfigMaps whose judgement may depend on this one, known here or not. Sorted, without itself.
  std::vector<kube::object_key> neighbours(const config_map_view& config_map) const;

  /// What the cluster has; unknown (a file is judged) is not found fault with. Changes the judgement of declarations
  /// that name a RuntimeClass.
  void set_runtime_classes(std::optional<std::set<std::string, std::less<>>> names) {
    runtime_classes_ = std::move(names);
  }
  /// The declarations that name a RuntimeClass, sorted by key.
  std::vector<kube::object_key> with_runtime_class() const;

  rule_set compile(const compile_options& options = {}) const;
  /// Sound device configurations, in the order of their keys.
  std::vector<device_config> devices() const;

 private:
  struct item {
    parsed about;
    std::uint64_t observed = 0;
  };
  struct device_item {
    parsed_device about;
    std::uint64_t observed = 0;
  };
  struct by_rank {
    bool operator()(const declaration* a, const declaration* b) const;
  };
  using ranked = std::set<const declaration*, by_rank>;
  void index(const declaration& declaration);
  void forget(const declaration& declaration);
  const ranked* with_key(const std::string& key) const;
  const declaration* first_with_key(const std::string& key) const;

  void add_neighbours(const declaration& declaration, std::set<kube::object_key>& object_keys) const;
  bool is_missed(const declaration& declaration) const;
  bool has_unreadable_neighbour(const declaration& declaration) const;
  void say_duplicates(const declaration& declaration, std::vector<finding>& findings) const;
  void say_related(const declaration& declaration, std::vector<finding>& findings) const;
  void say_exclusions(const declaration& declaration, std::vector<finding>& findings) const;
  void say_unanswered(const declaration& declaration, std::vector<finding>& findings) const;
  void say_group(const declaration& declaration, std::vector<finding>& findings) const;
  std::vector<finding> between(const declaration& declaration) const;
  void say_runtime_class(const declaration& declaration, std::vector<finding>& findings) const;
  void keep_last_good(rule_set& rule_set, const compile_options& options) const;
  judgement judge(const item& item) const;
  judgement judge(const device_item& device_item) const;

  parse_settings settings_;
  std::map<kube::object_key, item> items_;
  std::map<kube::object_key, device_item> devices_;
  std::map<std::string, ranked, std::less<>> by_key_;
  std::map<std::string, ranked, std::less<>> by_mention_;  ///< key -> those that name it as related or excluded
  std::map<std::string, ranked, std::less<>> by_group_;
  std::optional<std::set<std::string, std::less<>>> runtime_classes_;
};

/// Judges a set of ConfigMaps together: what `lint` does. In the order of their keys; those that are neither kind are
/// left out.
std::vector<judgement> judge_all(std::span<const config_map_view> config_maps,
                                 const parse_settings& settings = parse_settings());

}  // namespace reconcilers::declarations
