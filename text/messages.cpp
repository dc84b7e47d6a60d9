#include "text/messages.hpp"

#include <algorithm>

#include "text/list.hpp"

namespace text {
namespace {

// The length of a text is then known to the compiler, which counts the characters of others one by one.
using namespace std::string_view_literals;

constexpr catalogue_entry all_entries[] = {
#include "messages.inc"
};
static_assert(std::ranges::is_sorted(all_entries, {}, &catalogue_entry::key), "looked up by halves");

}  // namespace

std::span<const catalogue_entry> catalogue() noexcept { return all_entries; }

std::string_view pattern_of(std::string_view key, language locale) noexcept {
  const auto* row = std::ranges::lower_bound(all_entries, key, {}, &catalogue_entry::key);
  return row != std::end(all_entries) && row->key == key ? row->words[static_cast<std::size_t>(locale)]
                                                         : std::string_view();
}

std::string filled(std::string_view pattern, std::span<const parameter> parameters) {
  std::string out;
  while (!pattern.empty()) {
    const auto open = std::min(pattern.find('{'), pattern.size());
    out += pattern.substr(0, open);
    pattern.remove_prefix(open);
    if (pattern.empty()) break;
    const auto close = pattern.find('}');
    const auto name = pattern.substr(1, close == pattern.npos ? close : close - 1);
    const auto match = std::ranges::find(parameters, name, &parameter::name);
    if (close == pattern.npos || match == parameters.end()) {
      out += '{';
      pattern.remove_prefix(1);
    } else {
      out += match->value;
      pattern.remove_prefix(close + 1);
    }
  }
  return out;
}

std::vector<std::string_view> placeholders_of(std::string_view pattern) {
  std::vector<std::string_view> out;
  for (auto open = pattern.find('{'); open != pattern.npos; open = pattern.find('{', open + 1)) {
    const auto name = pattern.substr(open + 1, pattern.find('}', open) - open - 1);
    if (!name.empty() && !name.contains('{')) out.push_back(name);
  }
  return out;
}

std::string counted(std::size_t number, std::string_view key, language locale) {
  return message(std::string(key) + (number == 1 ? ".one" : ".many"), locale, {{"number", std::to_string(number)}});
}

std::string message(std::string_view key, language locale, std::initializer_list<parameter> parameters) {
  const auto pattern = pattern_of(key, locale);
  return pattern.empty() ? std::string(key) : filled(pattern, parameters);
}

std::string some_of(const std::vector<std::string>& items, std::size_t most, language locale) {
  const std::vector<std::string> first(items.begin(),
                                       items.begin() + static_cast<std::ptrdiff_t>(std::min(most, items.size())));
  auto list = joined(first, message("engine.comma", locale));
  if (items.size() <= most) return list;
  return message("engine.more", locale, {{"list", std::move(list)}, {"number", std::to_string(items.size() - most)}});
}

}  // namespace text
