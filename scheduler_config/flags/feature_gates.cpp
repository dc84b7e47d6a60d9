#include "scheduler_config/flags/feature_gates.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "scheduler_config/flags/feature_gate_table.hpp"
#include "scheduler_config/flags/flag_value.hpp"
#include "scheduler_config/judge/schema.hpp"
#include "text/nearest.hpp"
#include "text/text.hpp"

namespace scheduler_config {
namespace {

/// "kube:" in front of a gate, and with it the other flags of componentGlobalsRegistry.
constexpr int components_since = 31;

constexpr bool is_capital(char letter) { return letter >= 'A' && letter <= 'Z'; }
constexpr char stage_of(char letter) { return is_capital(letter) ? static_cast<char>(letter - 'A' + 'a') : letter; }

const feature_gate* known_gate(std::string_view name) {
  const auto* match = std::ranges::find(feature_gates, name, &feature_gate::name);
  return match == std::end(feature_gates) ? nullptr : match;
}

char letter_of(std::string_view name, int minor) {
  if (name == "AllAlpha") return 'a';
  if (name == "AllBeta") return 'b';
  const auto* gate = known_gate(name);
  return gate ? gate->states[static_cast<std::size_t>(std::min(minor, newest_minor) - oldest_minor)] : '.';
}

/// "1.30 to 1.33"; empty: no version we know has it.
text::phrase versions_of(std::string_view name) {
  const auto* gate = known_gate(name);
  if (!gate) return {};
  const auto first = gate->states.find_first_not_of('.'), last = gate->states.find_last_not_of('.');
  const auto version = [](std::size_t index) { return "1." + std::to_string(oldest_minor + static_cast<int>(index)); };
  return first == last ? text::phrase(version(first)) : between(version(first), version(last));
}

struct gate_setting {
  std::string name, value, component;
  const flag* source = nullptr;
};

std::vector<gate_setting> settings_of(std::span<const flag* const> flags, int minor) {
  std::vector<gate_setting> out;
  for (const auto* flag : flags) {
    std::string_view rest = flag->value;
    while (!rest.empty()) {
      const auto comma = std::min(rest.find(','), rest.size());
      const auto part = text::trimmed(rest.substr(0, comma));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      if (part.empty()) continue;
      const auto equals = std::min(part.find('='), part.size());
      auto name = text::trimmed(part.substr(0, equals));
      auto& made = out.emplace_back();
      made.source = flag;
      if (const auto colon = name.find(':'); colon != name.npos && minor >= components_since) {
        made.component = name.substr(0, colon);
        name.remove_prefix(colon + 1);
      }
      made.name = name;
      if (equals < part.size()) made.value = text::trimmed(part.substr(equals + 1));
    }
  }
  return out;
}

/// The gates as they stand when all flags are read.
class gates {
 public:
  gates(const std::vector<gate_setting>& settings, int minor) : minor_(minor) {
    for (const auto& entry : settings) {
      if (const auto parsed = go_bool(entry.value)) set_[entry.name] = *parsed;
    }
  }

  bool enabled(std::string_view name) const {
    if (const auto match = set_.find(name); match != set_.end()) return match->second;
    const auto letter = letter_of(name, minor_);
    if (const auto all = set_.find(stage_of(letter) == 'a' ? "AllAlpha" : "AllBeta");
        all != set_.end() && (stage_of(letter) == 'a' || stage_of(letter) == 'b'))
      return all->second;
    return is_capital(letter);
  }

 private:
  std::map<std::string, bool, std::less<>> set_;
  int minor_;
};

std::vector<std::string_view> names_in(int minor) {
  std::vector<std::string_view> out{"AllAlpha", "AllBeta"};
  for (const auto& gate : feature_gates) {
    if (letter_of(gate.name, minor) != '.') out.push_back(gate.name);
  }
  return out;
}

/// What is wrong with one "NAME=VALUE".
std::optional<finding> judge_setting(const gate_setting& entry, int minor) {
  finding out{.location = entry.source->location,
              .field = entry.name,
              .value = entry.name + (entry.value.empty() ? "" : "=" + entry.value),
              .other = "1." + std::to_string(minor)};
  if (!entry.component.empty() && entry.component != "kube") {
    out.issue = code::flag_value;
    out.field = "--feature-gates";
    out.value = entry.component + ":" + out.value;
    out.allowed = phrase_of(term::gate_setting);
    return out;
  }
  const auto letter = letter_of(entry.name, minor);
  if (letter == '.') {
    out.issue = code::gate_unknown;
    if (const auto versions = versions_of(entry.name); !versions.empty()) {
      out.issue = code::gate_of_other_version;
      out.allowed = versions;
    } else {
      const auto names = names_in(minor);
      out.hint = text::nearest(entry.name, names);
    }
    return out;
  }
  const auto parsed = go_bool(entry.value);
  if (!parsed) {
    out.issue = code::flag_value;
    out.field = "--feature-gates";
    out.allowed = phrase_of(term::gate_setting);
    return out;
  }
  const bool locked = stage_of(letter) == 'l', early = stage_of(letter) == 'p';
  if ((locked && *parsed != is_capital(letter)) || early) {
    out.issue = code::gate_locked;
    out.hint = is_capital(letter) ? "true" : "false";
    return out;
  }
  return std::nullopt;
}

}  // namespace

bool gate_enabled(std::string_view gate, std::span<const flag* const> flags, int minor) {
  return letter_of(gate, minor) != '.' && gates(settings_of(flags, minor), minor).enabled(gate);
}

findings judge_feature_gates(std::span<const flag* const> flags, int minor) {
  findings out;
  const auto settings = settings_of(flags, minor);
  for (const auto& entry : settings) {
    if (auto wrong = judge_setting(entry, minor)) out.push_back(std::move(*wrong));
  }
  const auto mixed =
      std::ranges::find_if(settings, [&](const auto& entry) { return entry.component != settings.front().component; });
  if (mixed != settings.end() && out.empty())
    out.push_back({.issue = code::flag_value,
                   .location = mixed->source->location,
                   .field = "--feature-gates",
                   .value = mixed->source->value,
                   .allowed = phrase_of(term::component_prefix)});
  if (!out.empty() || settings.empty()) return out;
  const gates state(settings, minor);
  for (const auto& [gate, needs, since] : gate_dependencies) {
    const bool both = letter_of(gate, minor) != '.' && letter_of(needs, minor) != '.';
    if (minor < since || !both || !state.enabled(gate) || state.enabled(needs)) continue;
    out.push_back({.issue = code::gate_dependency,
                   .location = settings.front().source->location,
                   .field = std::string(gate),
                   .value = std::string(needs),
                   .hint = std::string(needs) + "=true"});
  }
  return out;
}

}  // namespace scheduler_config
