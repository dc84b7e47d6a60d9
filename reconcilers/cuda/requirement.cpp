#include "reconcilers/cuda/requirement.hpp"

#include <algorithm>
#include <utility>

#include "text/text.hpp"

namespace reconcilers::compat {
namespace {

using enum comparison;

/// Longest first: "<=" begins with "<".
constexpr std::pair<std::string_view, comparison> operators[] = {
    {"!=", not_equal}, {"<=", less_equal}, {">=", greater_equal}, {"=", equal}, {"<", less}, {">", greater}};
constexpr std::pair<std::string_view, property> properties[] = {
    {"cuda", property::cuda}, {"arch", property::arch}, {"driver", property::driver}, {"brand", property::brand}};
constexpr std::size_t longest = 4096;
constexpr std::size_t most_conditions = 256;

std::string_view name_of(property of) {
  for (const auto& [name, one] : properties) {
    if (one == of) return name;
  }
  std::unreachable();
}

/// Calls `each` for the parts of `text` between separators; empty parts too.
template <class Each>
void split(std::string_view text, char at, Each each) {
  for (;;) {
    const auto end = text.find(at);
    each(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

struct reader {
  bool annotation = false;
  property about = property::cuda;
  std::string wrong{};
  std::size_t conditions = 0;

  void complain(std::string_view condition) {
    if (!wrong.empty()) return;
    wrong =
        "\"" + crl::shown(condition) + "\" is no condition; allowed is " +
        (annotation ? std::string("one of >= > <= < = != and a version, for example >=12.4; a comma is AND, a blank OR")
                    : std::string("cuda, driver or arch, one of >= > <= < = != and a version, for example "
                                  "cuda>=12.4; a comma is AND, a blank OR"));
  }

  std::optional<condition> read(std::string_view text) {
    const auto at = text.find_first_of("<>=!");
    if (at == std::string_view::npos || (annotation && at != 0)) {
      complain(text);
      return std::nullopt;
    }
    const auto name = text.substr(0, at);
    const auto known = std::ranges::find(properties, name, &std::pair<std::string_view, property>::first);
    if (!annotation && known == std::end(properties)) return std::nullopt;
    condition out{annotation ? about : known->second, equal, {}};
    auto rest = text.substr(at);
    const auto is = std::ranges::find_if(operators, [&](const auto& one) { return rest.starts_with(one.first); });
    if (is == std::end(operators)) {
      complain(text);
      return std::nullopt;
    }
    out.how = is->second;
    rest.remove_prefix(is->first.size());
    if (out.of == property::brand) return out;
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
      split(term, ',', [&](std::string_view one) {
        if (one.empty() || !wrong.empty()) return;
        if (++conditions > most_conditions) {
          wrong = "there are more than " + std::to_string(most_conditions) + " conditions";
          return;
        }
        if (const auto read_one = read(one)) all.push_back(*read_one);
      });
      if (!all.empty()) out.push_back(std::move(all));
    });
    return out;
  }
};

std::expected<requirement, std::string> made(std::string_view text, reader by) {
  if (text.size() > longest) return std::unexpected("it has more than " + std::to_string(longest) + " bytes");
  requirement out;
  out.any_of = by.read_all(text);
  if (!by.wrong.empty()) return std::unexpected(std::move(by.wrong));
  out.text = crl::shown(crl::trimmed(text), 200);
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

bool holds(const std::array<int, 3>& is, comparison how, const std::array<int, 3>& value) {
  switch (how) {
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

std::optional<std::array<int, 3>> value_in(const node_facts& node, property of) {
  const auto pair = of == property::cuda ? node.cuda : of == property::arch ? node.capability : std::nullopt;
  if (pair) return std::array{pair->major, pair->minor, 0};
  if (of == property::driver && node.driver)
    return std::array{node.driver->major, node.driver->minor, node.driver->patch};
  return std::nullopt;
}

/// Of parts that all have to hold.
fit both(fit a, fit b) {
  if (a == fit::no || b == fit::no) return fit::no;
  return a == fit::unknown ? a : b;
}

}  // namespace

std::string to_string(const condition& of) {
  const auto how = std::ranges::find(operators, of.how, &std::pair<std::string_view, comparison>::second);
  auto out = std::string(name_of(of.of)) + std::string(how->first);
  out += std::to_string(of.value[0]) + "." + std::to_string(of.value[1]);
  if (of.value[2] != 0) out += "." + std::to_string(of.value[2]);
  return out;
}

std::expected<requirement, std::string> parse_requirement(std::string_view text) { return made(text, reader()); }

std::expected<requirement, std::string> parse_annotation(std::string_view text, property about) {
  if (text.size() > longest) return made(text, reader());
  auto out = made(without_blanks(text), {.annotation = true, .about = about});
  if (out && out->any_of.empty()) return std::unexpected("it is empty; allowed is, for example, >=12.4");
  return out;
}

std::expected<requirement, std::string> parse_cuda_version(std::string_view text, bool checked) {
  const auto runtime = parse_version(text);
  if (!runtime)
    return std::unexpected("\"" + crl::shown(text) + "\" is no CUDA version; allowed is MAJOR.MINOR, for example 12.4");
  requirement out;
  const bool family = !checked && family_of(runtime->major) != nullptr;
  out.any_of.push_back({{property::cuda, greater_equal, {runtime->major, family ? 0 : runtime->minor, 0}}});
  out.text = crl::shown(text);
  return out;
}

fit meets(const node_facts& node, const condition& needed) {
  if (needed.of == property::brand) return fit::yes;
  const auto is = value_in(node, needed.of);
  if (!is) return fit::unknown;
  return holds(*is, needed.how, needed.value) ? fit::yes : fit::no;
}

fit meets(const node_facts& node, const requirement& needed) {
  if (needed.any_of.empty()) return fit::yes;
  auto best = fit::no;
  for (const auto& all : needed.any_of) {
    auto one = fit::yes;
    for (const auto& each : all) one = both(one, meets(node, each));
    if (one == fit::yes) return one;
    if (one == fit::unknown) best = one;
  }
  return best;
}

fit meets(const node_facts& node, std::span<const requirement> needed) {
  auto out = fit::yes;
  for (const auto& one : needed) out = both(out, meets(node, one));
  return out;
}

std::optional<version> runtime_of(std::span<const requirement> needed) {
  std::optional<version> out;
  for (const auto& one : needed) {
    // Alternatives are older drivers that the compatibility package of the image is for; the first is the image's own.
    for (const auto& all : one.any_of) {
      const auto at = std::ranges::find_if(all, [](const condition& each) {
        return each.of == property::cuda && (each.how == equal || each.how == greater || each.how == greater_equal);
      });
      if (at == all.end()) continue;
      out = std::max(out.value_or(version()), version{at->value[0], at->value[1]});
      break;
    }
  }
  return out;
}

}  // namespace reconcilers::compat
