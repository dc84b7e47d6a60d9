#pragma once
// From a ConfigMap to a declaration and everything that is to be said of it alone. Strict about our own fields, never
// fails: what cannot be understood becomes a finding. Cost and size of the result are bounded whatever the ConfigMap
// holds (1 MiB of anything).

#include <string>

#include "reconcilers/declarations/declaration.hpp"

namespace reconcilers::declarations {

struct parse_settings {
  std::string ns = "kube-public";  ///< spec.customResources.namespace

  parse_settings() = default;
};

struct parsed {
  declaration value;
  std::vector<finding> findings;

  friend bool operator==(const parsed&, const parsed&) = default;
};
parsed parse(const config_map_view& config_map, const parse_settings& settings = parse_settings());

struct parsed_device {
  device_config value;
  std::vector<finding> findings;

  friend bool operator==(const parsed_device&, const parsed_device&) = default;
};
parsed_device parse_device(const config_map_view& config_map, const parse_settings& settings = parse_settings());

/// The fields of `data` we know, in the order of docs/declarations.md.
std::span<const std::string_view> known_fields() noexcept;
std::span<const std::string_view> known_device_fields() noexcept;

inline constexpr std::size_t max_text_bytes = 2048;   ///< of a description, in the declaration
inline constexpr std::size_t max_list_items = 64;     ///< of relatedResources and excludeResources
inline constexpr std::size_t max_unknown_fields = 8;  ///< named one by one

}  // namespace reconcilers::declarations
