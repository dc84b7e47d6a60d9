#pragma once
// The declarations compiled to what admission needs: by key, what a container may, must and must not name. Only
// accepted and enabled declarations are in it. Equal declarations give an identical rule set in whatever order they
// came.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/declarations/declaration.hpp"

namespace reconcilers::declarations {

struct rule {
  std::string key;
  kube::object_key config_map;        ///< for messages
  std::string group;                  ///< empty: stands alone
  bool forbidden = false;             ///< limits: disabled
  bool must = false;                  ///< where a container uses any key of the group: limits or requests are required
  std::optional<std::int64_t> fill;   ///< written where it is absent from a container that uses the group
  std::vector<std::string> related;   ///< keys that usually go with it; sorted
  std::vector<std::string> excluded;  ///< keys no container of the pod may name next to it; both directions; sorted
  std::string runtime_class;          ///< written into the pod where it has none; only one that exists
  bool offered = true;                ///< by a node, or no one cares (ignoreNodeCheck)
  bool managed = false;               ///< of a module: a person's declaration of the key takes its place
  bool one_only = false;              ///< its plugin refuses a container that asks for more than one

  friend bool operator==(const rule&, const rule&) = default;
};

/// A group with a rule that is a must or has a fill.
struct group_rule {
  std::string name;
  std::vector<std::string> members;  ///< keys, sorted

  friend bool operator==(const group_rule&, const group_rule&) = default;
};

struct rule_set {
  std::vector<rule> rules;         ///< sorted by key
  std::vector<group_rule> groups;  ///< sorted by name

  const rule* find(std::string_view key) const;
  const group_rule* group(std::string_view name) const;

  friend bool operator==(const rule_set&, const rule_set&) = default;
};

// Up to so many keys that take part in exclusions are listed for the policies, and then looked for in a pod one by one;
// of more, all keys of the pod are compared with each other. So their cost grows with the number of containers, not its
// square.
inline constexpr std::size_t max_exclusive = 320;

/// The keys that exclude another or are excluded, declared or not.
std::set<std::string, std::less<>> exclusive_keys(const rule_set& rules);

}  // namespace reconcilers::declarations
