#pragma once
// What the parts of a verdict share: the file, whom it is for, what was found, and which nodes have been refused
// already (those are not reported again).

#include <set>
#include <string>
#include <utility>

#include "scheduler_config/judge/verdict.hpp"

namespace scheduler_config {

struct judging {
  const document& config;
  const server& scheduler;
  findings out;
  std::set<const text::yaml::node*> refused;  ///< values
  std::size_t budget = 400'000;               ///< values looked at; aliases multiply

  void say(finding finding) { out.push_back(std::move(finding)); }
  void refuse(const text::yaml::node* value, finding finding) {
    if (value) refused.insert(value);
    say(std::move(finding));
  }

  /// A field with a value: null and what was refused count as absent.
  const text::yaml::node::entry* entry(const text::yaml::node* parent, std::string_view key) const {
    const auto* position = text::yaml::find_entry(parent, key);
    if (!position || refused.contains(position->value) || json_type_of(*position->value) == json_type::null)
      return nullptr;
    return position;
  }
  const text::yaml::node* value(const text::yaml::node* parent, std::string_view key) const {
    const auto* position = entry(parent, key);
    return position ? position->value : nullptr;
  }
  std::string text(const text::yaml::node* node, std::string_view key) const {
    const auto* position = value(node, key);
    return position && json_type_of(*position) == json_type::text ? position->text : std::string();
  }
  bool flag(const text::yaml::node* node, std::string_view key) const {
    const auto* position = value(node, key);
    return position && json_type_of(*position) == json_type::boolean && text::yaml::canonical(*position) == "true";
  }
  /// Null and what is no list: none.
  std::vector<const text::yaml::node*> items(const text::yaml::node* parent, std::string_view key) const {
    const auto* position = value(parent, key);
    return position && position->sequence() ? position->items : std::vector<const text::yaml::node*>();
  }
  /// Was the value of that field refused?
  bool was_refused(const text::yaml::node* node, std::string_view key) const {
    const auto* match = text::yaml::find(node, key);
    return match && refused.contains(match);
  }
  std::string version() const { return "1." + std::to_string(scheduler.minor); }
};

/// A value that is not in the range, "field is 0; allowed: ...".
finding refused_value(const text::yaml::node::entry& entry, std::string_view field, text::phrase allowed);

void decode(judging& judging);
void validate(judging& judging);
/// validation_pluginargs.go, for the arguments of one plugin; `needed`: it is enabled, so its own checks run too.
void validate_args(judging& judging, std::string_view plugin, const text::yaml::node* args, const std::string& path,
                   bool needed);
/// framework/runtime NewFramework: would the profile's plugins come to life? Returns those that are enabled somewhere.
std::set<std::string> validate_plugins(judging& judging, const text::yaml::node* profile, const std::string& path);
void advise(judging& judging);

/// Nanoseconds of Go's time.ParseDuration.
std::optional<std::int64_t> parse_duration(std::string_view text);
/// The nanoseconds of a duration field; `otherwise` where there is none, or zero.
std::int64_t duration_of(const judging& judging, const text::yaml::node* node, std::string_view key,
                         std::int64_t otherwise);

}  // namespace scheduler_config
