#include "reconcilers/cuda/requirement.hpp"

#include <algorithm>
#include <utility>

#include "text/text.hpp"

namespace reconcilers::cuda {
namespace {

using enum comparison;

/// Longest first: "<=" begins with "<".
constexpr std::pair<std::string_view, comparison> operators[] = {
    {"!=", not_equal}, {"<=", less_equal}, {">=", greater_equal}, {"=", equal}, {"<", less}, {">", greater}};
constexpr std::pair<std::string_view, property> properties[] = {
    {"cuda", property::cuda}, {"arch", property::arch}, {"driver", property::driver}, {"brand", property::brand}};
constexpr std::size_t longest = 4096;
constexpr std::size_t most_conditions = 256;

std::string_view name_of(property property) {
  for (const auto& [name, value] : properties) {
    if (value == property) return name;
  }
  std::unreachable();
}

/// Calls `each` for the parts of `text` between separators; empty parts too.
template <class Each>
void split(std::string_view text, char separator, Each each) {
  for (;;) {
    const auto end = text.find(separator);
    each(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

struct requirement_reader {
  bool annotation = false;
  property about = property::cuda;
  text::phrase wrong{};
  std::size_t conditions = 0;

  void complain(std::string_view condition) {
    if (!wrong.empty()) return;
    wrong = {annotation ? "cuda.need.no_condition" : "cuda.need.no_condition_of_image",
             {{"value", text::shown(condition)}}};
  }

  std::optional<version_condition> read(std::string_view text) {
    const auto find_first = text.find_first_of("<>=!");
    if (find_first == std::string_view::npos || (annotation && find_first != 0)) {
      complain(text);
      return std::nullopt;
    }
    const auto name = text.substr(0, find_first);
    const auto known = std::ranges::find(properties, name, &std::pair<std::string_view, property>::first);
    if (!annotation && known == std::end(properties)) return std::nullopt;
    version_condition out{annotation ? about : known->second, equal, {}};
    auto rest = text.substr(find_first);
    const auto is = std::ranges::find_if(operators, [&](const auto& entry) { return rest.starts_with(entry.first); });
    if (is == std::end(operators)) {
      complain(text);
      return std::nullopt;
    }
    out.op = is->second;
    rest.remove_prefix(is->first.size());
    if (out.attribute == property::brand) return out;
    const auto value = parse_numbers(rest);
    if (!value) {
      complain(text);
      return std::nullopt;
    }
    out.value = *value;
    return out;
  }

  std::vector<conjunction> read_all(std::string_view text) {
    std::vector<conjunction> out;
    split(text, ' ', [&](std::string_view term) {
      conjunction all;
      split(term, ',', [&](std::string_view part) {
        if (part.empty() || !wrong.empty()) return;
        if (++conditions > most_conditions) {
          wrong = {"cuda.need.conditions", {{"most", std::to_string(most_conditions)}}};
          return;
        }
        if (const auto read_one = read(part)) all.push_back(*read_one);
      });
      if (!all.empty()) out.push_back(std::move(all));
    });
    return out;
  }
};

std::expected<requirement, text::phrase> made(std::string_view text, requirement_reader reader) {
  if (text.size() > longest)
    return std::unexpected(text::phrase{"cuda.need.too_long", {{"most", std::to_string(longest)}}});
  requirement out;
  out.any_of = reader.read_all(text);
  if (!reader.wrong.empty()) return std::unexpected(std::move(reader.wrong));
  out.text = text::shown(text::trimmed(text), 200);
  return out;
}

/// ">= 12.4 , < 13" -> ">=12.4,<13": people put blanks there, and a blank alone is OR.
std::string without_blanks(std::string_view text) {
  std::string out;
  const auto joins = [](char c) { return std::string_view("<>=!,").contains(c); };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i] == '\t' || text[i] == '\n' ? ' ' : text[i];
    if (c != ' ') {
      out += c;
      continue;
    }
    const auto next = text.find_first_not_of(" \t\n", i);
    const bool needless =
        out.empty() || next == std::string_view::npos || joins(out.back()) || text[next] == ',' || out.back() == ' ';
    if (!needless) out += ' ';
  }
  return out;
}

bool holds(const std::array<int, 3>& is, comparison comparison, const std::array<int, 3>& value) {
  switch (comparison) {
    case equal:
      return is == value;
    case not_equal:
      return is != value;
    case less:
      return is < value;
    case less_equal:
      return is <= value;
    case greater:
      return is > value;
    case greater_equal:
      break;
  }
  return is >= value;
}

std::optional<std::array<int, 3>> value_in(const node_facts& node, property attribute) {
  const auto pair = attribute == property::cuda   ? node.cuda
                    : attribute == property::arch ? node.capability
                                                  : std::nullopt;
  if (pair) return std::array{pair->major, pair->minor, 0};
  if (attribute == property::driver && node.driver)
    return std::array{node.driver->major, node.driver->minor, node.driver->patch};
  return std::nullopt;
}

/// Of parts that all have to hold.
fit both(fit a, fit b) {
  if (a == fit::no || b == fit::no) return fit::no;
  return a == fit::unknown ? a : b;
}

}  // namespace

std::string to_string(const version_condition& condition) {
  const auto match = std::ranges::find(operators, condition.op, &std::pair<std::string_view, comparison>::second);
  auto out = std::string(name_of(condition.attribute)) + std::string(match->first);
  out += std::to_string(condition.value[0]) + "." + std::to_string(condition.value[1]);
  if (condition.value[2] != 0) out += "." + std::to_string(condition.value[2]);
  return out;
}

std::expected<requirement, text::phrase> parse_requirement(std::string_view text) {
  return made(text, requirement_reader());
}

std::expected<requirement, text::phrase> parse_annotation(std::string_view text, property about) {
  if (text.size() > longest) return made(text, requirement_reader());
  auto out = made(without_blanks(text), {.annotation = true, .about = about});
  if (out && out->any_of.empty()) return std::unexpected(text::phrase{"cuda.need.empty"});
  return out;
}

std::expected<requirement, text::phrase> parse_cuda_version(std::string_view text, bool checked) {
  const auto runtime = parse_version(text);
  if (!runtime) return std::unexpected(text::phrase{"cuda.need.no_version", {{"value", text::shown(text)}}});
  requirement out;
  const bool family = !checked && family_of(runtime->major) != nullptr;
  out.any_of.push_back({{property::cuda, greater_equal, {runtime->major, family ? 0 : runtime->minor, 0}}});
  out.text = text::shown(text);
  return out;
}

fit meets(const node_facts& node, const version_condition& needed) {
  if (needed.attribute == property::brand) return fit::yes;
  const auto is = value_in(node, needed.attribute);
  if (!is) return fit::unknown;
  return holds(*is, needed.op, needed.value) ? fit::yes : fit::no;
}

fit meets(const node_facts& node, const requirement& needed) {
  if (needed.any_of.empty()) return fit::yes;
  auto best = fit::no;
  for (const auto& all : needed.any_of) {
    auto ye = fit::yes;
    for (const auto& each : all) ye = both(ye, meets(node, each));
    if (ye == fit::yes) return ye;
    if (ye == fit::unknown) best = ye;
  }
  return best;
}

fit meets(const node_facts& node, std::span<const requirement> needed) {
  auto out = fit::yes;
  for (const auto& entry : needed) out = both(out, meets(node, entry));
  return out;
}

std::optional<version> runtime_of(std::span<const requirement> needed) {
  std::optional<version> out;
  for (const auto& entry : needed) {
    // Alternatives are older drivers that the compatibility package of the image is for; the first is the image's own.
    for (const auto& all : entry.any_of) {
      const auto match = std::ranges::find_if(all, [](const version_condition& each) {
        return each.attribute == property::cuda && (each.op == equal || each.op == greater || each.op == greater_equal);
      });
      if (match == all.end()) continue;
      out = std::max(out.value_or(version()), version{match->value[0], match->value[1]});
      break;
    }
  }
  return out;
}

}  // namespace reconcilers::cuda
