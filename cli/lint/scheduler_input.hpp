#pragma once
// What `lint scheduler-config` judges in one file: the file itself, or each KubeSchedulerConfiguration in the data of
// its ConfigMaps, with places in the file that was given.

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "kube/resource.hpp"
#include "scheduler_config/judge/document.hpp"

namespace cli {

struct scheduler_input {
  std::string name;  ///< of the file
  std::expected<scheduler_config::document, scheduler_config::finding> read;

  std::string entry = {};            ///< the key in data; empty: the file itself
  kube::object_key config_map = {};  ///< with `entry`
  text::yaml::place key = {};        ///< where the entry begins in the file
  int lines = 0,
      columns = 0;  ///< of the file in front of the entry's first line and column; 0 lines: only `key` is known

  /// A place in the file of a place in what was read.
  text::yaml::place place_in_file(text::yaml::place place) const;
};

/// At least one.
std::vector<scheduler_input> read_scheduler_inputs(const std::string& name, const std::string& bytes);

}  // namespace cli
