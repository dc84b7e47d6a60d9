#pragma once
// The flags of kube-scheduler 1.30 to 1.37, as data. Sources: `kube-scheduler --help` of 1.30.14, 1.36.3 and 1.37.2,
// and the sources of the versions between (apiserver/pkg/server/options, component-base,
// cmd/kube-scheduler/app/options); what went before 1.30 from those of 1.20 to 1.28.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "scheduler_config/judge/terms.hpp"

namespace scheduler_config {

enum class flag_type : std::uint8_t {
  text,
  texts,         ///< separated by commas
  header_names,  ///< the same, none of them blank
  boolean,       ///< takes a value with "=" alone
  version,       ///< --version: as boolean
  int32,
  int64,
  level,  ///< a decimal number of 31 bits
  real,
  duration,
  ip,
  port,
  quantity,
  labels,         ///< KEY=VALUE
  module_levels,  ///< PATTERN=N,...
  key_pair,       ///< CERTIFICATE,KEY
  curves,
  choice,         ///< one of `allowed`, separated by "|"
  ciphers,        ///< some of `allowed`
  older_version,  ///< the minor version before, or nothing
  gates,          ///< feature_gates.hpp
};

struct flag_rule {
  std::string_view name;
  flag_type type;
  int since = 0, until = 99;  ///< Kubernetes 1.x
  std::string_view allowed = {};
};
std::span<const flag_rule> flag_rules() noexcept;
/// Null where no version we know has it.
const flag_rule* flag_rule_of(std::string_view name) noexcept;

/// Flags that were gone before 1.30.
struct gone_flag {
  std::string_view name;
  int since;  ///< the first version without it
  /// What to write instead, with the value after it where it ends in "="; without it and without `place`: remove it.
  std::string_view hint = {};
  std::optional<term> place = {};  ///< where the file of --config has it
};
const gone_flag* gone_flag_of(std::string_view name) noexcept;

}  // namespace scheduler_config
