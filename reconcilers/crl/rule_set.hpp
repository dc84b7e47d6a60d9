#pragma once
// The declarations compiled to what admission needs: by key, what a container may, must and must not name. Only
// accepted and enabled declarations are in it. Equal declarations give an identical rule set in whatever order they
// came.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/crl/declaration.hpp"

namespace reconcilers::crl {

struct rule {
  std::string key;
  kube::object_key config_map;  ///< for messages
  std::string group;
  use limits = use::optional;
  use requests = use::disabled;
  std::optional<std::int64_t> default_value;  ///< in `unit`
  std::string unit;
  std::vector<std::string> related;  ///< keys a container must name with this one; declared keys only
  std::vector<std::string>
      excluded;  ///< keys no container of the pod may name beside it; both directions, declared or not
  bool ignore_node_check = false;
  std::string runtime_class;

  friend bool operator==(const rule&, const rule&) = default;
};

struct group_rule {
  std::string name;
  std::vector<std::string> members;  ///< keys, sorted
  /// The members must be named together. So where all of them are written in the manual's dialect, which ties keys by
  /// their group alone; the platform's dialect says it with relatedResources.
  bool tied = false;

  friend bool operator==(const group_rule&, const group_rule&) = default;
};

struct rule_set {
  std::vector<rule> rules;         ///< sorted by key
  std::vector<group_rule> groups;  ///< sorted by name

  const rule* find(std::string_view key) const;
  const group_rule* group(std::string_view name) const;
  /// Keys that must be named together with `key`: its related ones and, in a tied group, the other members. Sorted.
  std::vector<std::string> companions(std::string_view key) const;

  friend bool operator==(const rule_set&, const rule_set&) = default;
};

}  // namespace reconcilers::crl
