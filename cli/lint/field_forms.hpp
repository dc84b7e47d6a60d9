#pragma once
// What the API server refuses in the fields of an object, whatever they mean: a name that it does not know, a value of
// another form, a word that it does not have, a field that must be there. One reader for all verbs that judge a
// workload in a file; the fields are those of kubernetes_fields.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/lint/kubernetes_fields.hpp"
#include "text/yaml/source.hpp"

namespace cli::field_forms {

enum class form : std::uint8_t {
  text,
  number,       ///< 32 bits
  long_number,  ///< 64 bits
  range,        ///< a whole number of field_rules::limits_of
  flag,
  quantity,
  number_or_text,
  port_name,
  port_or_name,  ///< or a number
  unpadded,      ///< text without blanks at its ends
  object_name,
  label,
  label_key,  ///< these three as field_rules::name_kind
  mapping,
  list,
};

struct field_fault {
  enum class kind : std::uint8_t {
    unknown,
    misformed,
    word,
    missing,
    none_chosen,  ///< of `names` one must be there
    two_chosen,   ///< of `names` only one may be there
    repeated,     ///< an item before has the same text there
    next_to,      ///< not legal next to `names`
  };

  kind is = kind::misformed;
  const text::yaml::node* place{};  ///< its key, the item of a list, or the mapping in which it is missing
  const text::yaml::node* value{};  ///< null: there is none
  std::string field;
  form expected = form::text;                     ///< of what is misformed
  const kubernetes_fields::object_type* owner{};  ///< what has the field
  const kubernetes_fields::known_field* about{};  ///< null: the type does not know it
  std::string names = {};
};

/// The whole number that the API server decodes: 3, 3.0, 1e1, 0x10; never "3". Empty for any other value.
std::optional<std::int64_t> whole_number(const text::yaml::node& value);

/// Everything below `mapping`. `path` is its own, without a dot behind it; "" for an object. Null and what is no
/// mapping have no faults. `is_whole`: it is an object of Kubernetes, so that no other names are legal and none may be
/// missing; otherwise only forms are judged.
std::vector<field_fault> faults_of(const text::yaml::node* mapping, const std::string& path,
                                   const kubernetes_fields::object_type& type, bool is_whole);
/// Of a mapping that may have `replicas`.
std::vector<field_fault> faults_of_replicas(const text::yaml::node* mapping, const std::string& path);

}  // namespace cli::field_forms
