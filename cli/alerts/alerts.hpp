#pragma once
// The alerts of the chart: what each means, what to look at and what to do. The words are those of docs/alerts.md and
// alerts.zh.md, which are compiled in, so they are at hand where no browser is.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/message.hpp"

namespace cli {

/// A section of the page.
struct known_alert {
  std::string_view name;      ///< "QuartermasterDown"
  std::string_view severity;  ///< "critical"
  std::string_view delay;     ///< "after 5 minutes"
  /// One line each: a paragraph, or a line of a block of code, which begins with two blanks.
  std::vector<std::string> means, look, act;
};

/// In the order of the page.
std::span<const known_alert> known_alerts(text::language language = text::language::en);

/// By its name in any case, also without Quartermaster before it; null where there is none.
const known_alert* find_alert(std::string_view name, text::language language = text::language::en);

/// The alert that a wrong name probably means, or empty.
std::string_view nearest_alert(std::string_view name);

}  // namespace cli
