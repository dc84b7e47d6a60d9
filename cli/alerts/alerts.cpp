#include "cli/alerts/alerts.hpp"

#include <algorithm>

#include "text/nearest.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

constexpr std::string_view family = "Quartermaster";

/// What tells the alerts apart: without the family's name, which nearly all begin with.
std::string_view own_part(std::string_view name) {
  const bool has_family = text::lower_case(name.substr(0, family.size())) == text::lower_case(family);
  return has_family ? name.substr(family.size()) : name;
}

// A raw string literal that the build makes of docs/alerts.md. Longer than every compiler has to take; ours does.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Woverlength-strings"
constexpr std::string_view alerts_page =
#include "alerts.md.inc"
    ;
#pragma clang diagnostic pop

/// What stands before a mark, which goes too; all where it is not there.
std::string_view cut(std::string_view& text, std::string_view mark) {
  const auto end = text.find(mark);
  const auto out = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + mark.size());
  return out;
}

/// [agent.md](agent.md) is the file docs/agent.md.
std::string without_links(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto begin = text.find('['), middle = text.find("](", begin), end = text.find(')', middle);
    if (begin == text.npos || middle == text.npos || end == text.npos) return out + std::string(text);
    const auto words = text.substr(begin + 1, middle - begin - 1), target = text.substr(middle + 2, end - middle - 2);
    out += text.substr(0, begin);
    if (words != target) {
      out += text.substr(begin, end + 1 - begin);
    } else {
      out += "docs/" + std::string(words);
    }
    text.remove_prefix(end + 1);
  }
  return out;
}

/// Markdown as a terminal shows it: a paragraph is one line, and a block of code has two blanks before each of its own.
std::vector<std::string> lines_of(std::string_view markdown) {
  std::vector<std::string> out;
  bool code = false, open = false;  // open: the last line goes on
  while (!markdown.empty()) {
    const auto line = cut(markdown, "\n");
    if (line.starts_with("```")) {
      code = !code;
      open = false;
    } else if (code) {
      out.push_back("  " + std::string(line));
    } else if (line.empty()) {
      open = false;
    } else if (open) {
      out.back() += " " + std::string(line);
    } else {
      out.emplace_back(line);
      open = true;
    }
  }
  for (auto& line : out)
    if (!line.starts_with("  ")) line = without_links(line);
  return out;
}

std::vector<known_alert> read_page() {
  std::vector<known_alert> out;
  auto page = alerts_page;
  cut(page, "\n### ");
  while (!page.empty()) {
    auto section = cut(page, "\n### ");
    section = cut(section, "\n## ");
    auto& alert = out.emplace_back();
    alert.name = cut(section, "\n\n");
    alert.severity = cut(section, ", ");
    alert.delay = cut(section, "\n\n**Means:** ");
    alert.means = lines_of(cut(section, "\n\n**Look:** "));
    alert.look = lines_of(cut(section, "\n\n**Do:** "));
    alert.act = lines_of(section);
  }
  return out;
}

}  // namespace

std::span<const known_alert> known_alerts() {
  static const auto all = read_page();
  return all;
}

const known_alert* find_alert(std::string_view name) {
  const auto wanted = text::lower_case(own_part(name));
  const auto all = known_alerts();
  const auto found = std::ranges::find_if(
      all, [&](const known_alert& alert) { return text::lower_case(own_part(alert.name)) == wanted; });
  return found == all.end() ? nullptr : &*found;
}

std::string_view nearest_alert(std::string_view name) {
  std::vector<std::string_view> own_parts;
  for (const auto& alert : known_alerts()) own_parts.push_back(own_part(alert.name));
  const auto near = text::nearest(own_part(name), own_parts);
  return near.empty() ? near : find_alert(near)->name;
}

}  // namespace cli
