#pragma once
// What the parts of a verdict share: the file, whom it is for, what was found, and which nodes have been refused
// already (of those nothing more is said).

#include <set>
#include <string>
#include <utility>

#include "scheduler_config/judge/verdict.hpp"

namespace reconcilers::scheduler_config {

struct judging {
  const document& of;
  const server& on;
  findings out;
  std::set<const yaml::node*> refused;  ///< values
  std::size_t budget = 400'000;         ///< values looked at; aliases multiply

  void say(finding what) { out.push_back(std::move(what)); }
  void refuse(const yaml::node* value, finding what) {
    if (value) refused.insert(value);
    say(std::move(what));
  }

  /// A field with a value: null and what was refused count as absent.
  const yaml::node::entry* entry(const yaml::node* in, std::string_view key) const {
    const auto* at = yaml::find_entry(in, key);
    if (!at || refused.contains(at->value) || json_type_of(*at->value) == json_type::null) return nullptr;
    return at;
  }
  const yaml::node* value(const yaml::node* in, std::string_view key) const {
    const auto* at = entry(in, key);
    return at ? at->value : nullptr;
  }
  std::string text(const yaml::node* in, std::string_view key) const {
    const auto* at = value(in, key);
    return at && json_type_of(*at) == json_type::text ? at->text : std::string();
  }
  bool flag(const yaml::node* in, std::string_view key) const {
    const auto* at = value(in, key);
    return at && json_type_of(*at) == json_type::boolean && yaml::canonical(*at) == "true";
  }
  /// Null and what is no list: none.
  std::vector<const yaml::node*> items(const yaml::node* in, std::string_view key) const {
    const auto* at = value(in, key);
    return at && at->sequence() ? at->items : std::vector<const yaml::node*>();
  }
  /// Was the value of that field refused?
  bool was_refused(const yaml::node* in, std::string_view key) const {
    const auto* at = yaml::find(in, key);
    return at && refused.contains(at);
  }
  std::string version() const { return "1." + std::to_string(on.minor); }
};

/// A value that is not in the range, "field is 0; allowed: ...".
finding refused_value(const yaml::node::entry& at, std::string_view field, std::string allowed);

void decode(judging& in);
void validate(judging& in);
/// validation_pluginargs.go, for the arguments of one plugin; `needed`: it is enabled, so its own checks run too.
void validate_args(judging& in, std::string_view plugin, const yaml::node* args, const std::string& path, bool needed);
/// framework/runtime NewFramework: would the profile's plugins come to life? Returns those that are enabled somewhere.
std::set<std::string> validate_plugins(judging& in, const yaml::node* profile, const std::string& path);
void advise(judging& in);

/// Nanoseconds of Go's time.ParseDuration.
std::optional<std::int64_t> parse_duration(std::string_view text);
/// The nanoseconds of a duration field; `otherwise` where there is none, or zero.
std::int64_t duration_of(const judging& in, const yaml::node* of, std::string_view key, std::int64_t otherwise);

}  // namespace reconcilers::scheduler_config
