#pragma once
// Which form the API server decodes in each field that decides where the pods of an object go, and how many there are:
// a text, a whole number, a list. Source: k8s.io/api 1.37. One reader for all verbs that judge a workload in a file.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/yaml/source.hpp"

namespace cli::field_forms {

enum class form : std::uint8_t {
  text,
  number,       ///< 32 bits
  count,        ///< the same, from 0
  long_number,  ///< 64 bits
  flag,
  mapping,
  list,
};

struct form_fault {
  const text::yaml::node* place;  ///< its key, or the item of a list
  const text::yaml::node* value;
  std::string field;
  form expected;
};

/// The whole number that the API server decodes: 3, 3.0, 1e1, 0x10; never "3". Empty for any other value.
std::optional<std::int64_t> whole_number(const text::yaml::node& value);

/// `path` is that of the mapping, without a dot behind it; "" for an object. Null and what is no mapping have no
/// faults.
std::vector<form_fault> of_metadata(const text::yaml::node* metadata, const std::string& path);
/// The object itself and its spec, without what describes its pods.
std::vector<form_fault> of_workload(const text::yaml::node* object);
std::vector<form_fault> of_pod_spec(const text::yaml::node* spec, const std::string& path);
std::vector<form_fault> of_container(const text::yaml::node* container, const std::string& path);
/// Of a mapping that may have `replicas`.
std::vector<form_fault> of_replicas(const text::yaml::node* parent, const std::string& path);

}  // namespace cli::field_forms
