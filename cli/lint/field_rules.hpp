#pragma once
// What the API server refuses of fields together, each of which is right by itself: none or two of those of which there
// must be one, and two items of a list that have the same name. And the numbers and names that it takes, which OpenAPI
// does not say. Source: k8s.io/kubernetes pkg/apis/{apps,batch,core}/validation/validation.go, 1.30 to 1.37.

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/lint/kubernetes_fields.hpp"
#include "text/yaml/source.hpp"

namespace cli::field_rules {

/// Of these fields of a type exactly one may have a value, or at most one.
struct alternatives {
  std::string_view type;
  std::vector<std::string_view> fields;  ///< empty: all but `name`
  bool may_lack = false;
};
/// Null: the type has none.
const alternatives* alternatives_of(const kubernetes_fields::object_type& type);
/// The names that it chooses among.
std::vector<std::string_view> names_of(const alternatives& rule, const kubernetes_fields::object_type& type);
/// The entries of `mapping` that are chosen, in the order of the file. Null, "" and [] are no choice, {} is one.
std::vector<const text::yaml::node::entry*> chosen(const text::yaml::node& mapping,
                                                   std::span<const std::string_view> names);

/// What a number may be.
struct number_limits {
  std::string_view type;  ///< empty: of every type
  std::string_view field;
  std::int64_t least = 0, most = std::numeric_limits<std::int32_t>::max();
};
/// Null: any that has room in it.
const number_limits* limits_of(const kubernetes_fields::object_type& type, std::string_view field);

enum class name_kind : std::uint8_t {
  any,
  object,     ///< text::is_object_name
  label,      ///< text::is_dns_label
  label_key,  ///< text::is_label_key
};
/// What such a text has to be.
name_kind name_kind_of(const kubernetes_fields::object_type& type, std::string_view field, std::string_view text);
bool is_name(std::string_view text, name_kind kind);

struct repeated_item {
  const text::yaml::node::entry* field{};
  std::string path;
};
/// The fields that must differ in the items of the lists of `mapping`, where an item before has the same text. Empty
/// texts and templates are none. `path` is that of the mapping.
std::vector<repeated_item> repeated_items(const text::yaml::node& mapping, const std::string& path,
                                          const kubernetes_fields::object_type& type);

/// Whether the operator of a requirement and its `values` go together: In and NotIn want some, Gt and Lt one, Exists
/// and DoesNotExist none. True for other types and other operators.
bool are_values_legal(const text::yaml::node& mapping, const kubernetes_fields::object_type& type);

}  // namespace cli::field_rules
