#pragma once
// The fields that API servers know in objects which describe pods: names, forms, those that must be there, and words
// that are the only values. Source: kubernetes_fields.txt, which is made of what kube-apiserver tells (OpenAPI). An
// older server refuses the newest of them, too.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cli::kubernetes_fields {

struct object_type;

enum class form : std::uint8_t { text, time, flag, int32, int64, quantity, int_or_text, object, of_type };
/// The value itself, a list of such, or a mapping to such.
enum class arrangement : std::uint8_t { single, list, mapping };

struct known_field {
  std::string_view name;
  form is = form::text;
  arrangement is_in = arrangement::single;
  const object_type* parts = nullptr;  ///< of form::of_type
  bool required = false;
  std::vector<std::string_view> words = {};  ///< the only legal ones; empty: any
};

struct object_type {
  std::string_view name;
  std::vector<known_field> fields;  ///< sorted by name

  /// Null: the API server knows none of that name.
  const known_field* find(std::string_view field_name) const;
};

/// "Container", "PodSpec", "Deployment", ...; null: not in the table.
const object_type* find(std::string_view name);

/// What was most likely meant by a name that the type does not have; may be empty. What belongs to `resources` is known
/// again in a container: "limit" there is "resources.limits".
std::string meant(std::string_view name, const object_type& type);

}  // namespace cli::kubernetes_fields
