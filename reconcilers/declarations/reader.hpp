#pragma once
// Reading one ConfigMap field by field: each function takes a field, says what is to be said of it, and gives back the
// value we go on with. Private to parse.cpp; a class because every step needs the ConfigMap and the list of findings.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/declarations/declaration.hpp"

namespace reconcilers::declarations {

class reader {
 public:
  explicit reader(const config_map_view& config_map) : config_map_(config_map) {}

  finding& say(error_code code, std::string field, std::string_view value = {});
  /// Takes a finding back because another one says the same mistake better.
  void drop(error_code code, std::string_view field);
  std::vector<finding> findings();

  /// The value without blanks around it; nullopt when the field is absent or empty.
  std::optional<std::string_view> field(std::string_view name) const;
  /// A label of either domain, of features.cpaas.io where both have it. `path` becomes the finding's field.
  std::optional<std::string_view> label(std::string_view name, std::string& path);

  /// A text for people, cut at `max_bytes`, control characters taken out.
  std::string text(std::string_view name, std::size_t max_bytes);
  /// One word of `allowed`; anything else is `otherwise`, absence is nullopt.
  std::optional<std::string_view> word(std::string path, std::optional<std::string_view> value,
                                       std::span<const std::string_view> allowed, error_code otherwise);
  bool flag(std::string_view name);
  std::vector<std::string> resources(std::string_view name, std::string_view own_key);
  void unknown_fields(std::span<const std::string_view> known);
  void place(std::string_view ns);

  const config_map_view& from() const { return config_map_; }

 private:
  const config_map_view& config_map_;
  std::vector<finding> findings_;
};

std::string data_path(std::string_view field);
std::string label_path(std::string_view label);

}  // namespace reconcilers::declarations
