#pragma once
// A custom resource declaration as we understood it, and its sibling, the device configuration. Plain values, made by
// parse.hpp from a ConfigMap of either dialect; texts are already cut and safe to show.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/declaration_names.hpp"
#include "kube/resource.hpp"
#include "reconcilers/declarations/finding.hpp"

namespace reconcilers::declarations {

/// What we read of a ConfigMap, wherever it comes from (store, file, test). The views must outlive the call they are
/// given to.
struct config_map_view {
  using entries = std::vector<std::pair<std::string_view, std::string_view>>;
  kube::object_key key;
  std::int64_t created = 0;  ///< seconds since 1970; 0 in files. Of two that declare one key the older counts
  entries labels;
  entries data;
  std::size_t binary = 0;    ///< entries of binaryData, which we never read
  std::size_t left_out = 0;  ///< bytes of a ConfigMap that is too large to be read; 0: it is not

  std::optional<std::string_view> label(std::string_view name) const { return find(labels, name); }
  std::optional<std::string_view> field(std::string_view name) const { return find(data, name); }

 private:
  static std::optional<std::string_view> find(const entries& entries, std::string_view name) {
    for (const auto& [k, v] : entries) {
      if (k == name) return v;
    }
    return std::nullopt;
  }
};

/// Which ConfigMaps are ours to judge; decided by labels only, never by name.
enum class kind : std::uint8_t { none, declaration, device_config };
kind kind_of(const config_map_view& config_map);

/// The label domain the type label is in. The manual writes features.alauda.io, today's platform features.cpaas.io.
enum class dialect : std::uint8_t { alauda, cpaas, both };

/// May, must or must not a container name the resource under resources.limits / resources.requests. `from_limits`:
/// filled with the limit.
enum class use : std::uint8_t { disabled, required, optional, from_limits };
std::string_view to_string(use u) noexcept;

struct declaration {
  kube::object_key config_map;
  std::int64_t created = 0;
  dialect written_in = dialect::alauda;
  bool managed = false;  ///< a module's own, written by the operator

  std::string key;  ///< extended resource name; empty when it is missing or not legal
  std::string group;
  bool enabled = false;
  bool switched_off = false;  ///< it says so; neither of the two where it cannot be read
  use limits = use::optional;
  use requests = use::disabled;
  std::optional<std::int64_t>
      default_value;  ///< in `unit`, written into limits where a container names a key of the group without it
  std::string unit;   ///< count, %, Mi, ...; a text for people

  std::string label_en, label_zh, description_en, description_zh, group_en, group_zh;
  std::vector<std::string> related, excluded;  ///< sorted, without duplicates and without the key itself
  bool ignore_node_check = false;              ///< the key need not appear in a node's allocatable
  std::string runtime_class;

  bool sound = false;  ///< parsed without error
  /// Has to be there in a container that uses the group: a request without a limit is none.
  bool required() const { return limits == use::required || requests == use::required; }
  /// May be compiled into rules, as far as this ConfigMap alone tells.
  bool in_force() const { return sound && enabled; }

  /// The text in the language asked for, in the other one where that is missing.
  const std::string& label(text::language language) const { return either(language, label_en, label_zh); }
  const std::string& description(text::language language) const {
    return either(language, description_en, description_zh);
  }
  const std::string& group_label(text::language language) const { return either(language, group_en, group_zh); }

  friend bool operator==(const declaration&, const declaration&) = default;

 private:
  static const std::string& either(text::language locale, const std::string& en, const std::string& zh) {
    return locale == text::language::zh ? (zh.empty() ? en : zh) : (en.empty() ? zh : en);
  }
};

/// `device-plugin.cpaas.io/config="true"`: the node label that enrols a node with a device plugin.
struct device_config {
  kube::object_key config_map;
  std::int64_t created = 0;
  std::string name;                    ///< for people
  std::string label_key, label_value;  ///< gpu=on
  bool sound = false;

  friend bool operator==(const device_config&, const device_config&) = default;
};

namespace names = api::declaration;

}  // namespace reconcilers::declarations
