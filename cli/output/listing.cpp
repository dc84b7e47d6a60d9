#include "cli/output/listing.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <optional>

#include "cli/flags/flags.hpp"
#include "cli/flags/usage.hpp"
#include "text/list.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

std::optional<std::int64_t> number_at_start(std::string_view& text) {
  std::int64_t out = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (problem != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return out;
}

}  // namespace

listing_style filtered_by(listing_style style, std::vector<std::string> filters) {
  std::erase(filters, std::string());
  style.filters = std::move(filters);
  return style;
}

std::string namespace_filter(std::string_view ns) { return ns.empty() ? std::string() : "-n " + std::string(ns); }

std::string absence_words(std::string_view listing, std::string_view absence, const listing_style& style) {
  const bilingual say(style.language);
  auto filters = style.filters;
  if (!style.selector.empty()) filters.push_back("-l " + style.selector);
  if (filters.empty()) return absence.empty() ? std::string() : say.message(absence);
  auto key = "no_match." + std::string(listing);
  if (text::pattern_of(key, say.locale()).empty()) key = "no_match.rows";
  return say.message(key, {{"filters", text::shown(text::joined(filters), 1000)}});
}

std::string header_of(std::string_view name, std::string_view words, const bilingual& say) {
  std::string key(words.empty() ? name : words);
  std::ranges::replace(key, '-', '_');
  return say.message("column." + key);
}

bool sorts_before(std::string_view a, std::string_view b) {
  auto rest_a = a, rest_b = b;
  const auto number_a = number_at_start(rest_a), number_b = number_at_start(rest_b);
  if (number_a && number_b && *number_a != *number_b) return *number_a < *number_b;
  return a < b;
}

std::vector<std::size_t> order_of(const std::vector<std::string>& keys) {
  std::vector<std::size_t> out(keys.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = i;
  std::ranges::sort(out, [&](std::size_t a, std::size_t b) {
    if (sorts_before(keys[a], keys[b])) return true;
    return !sorts_before(keys[b], keys[a]) && a < b;
  });
  return out;
}

kube::label_selector node_selector(const listing_style& style) {
  return kube::label_selector::parse(style.selector).value_or(kube::label_selector());
}

void add_node_selector(CLI::App& verb, listing_style& style) {
  const auto problem = [](const std::string& text) {
    return kube::label_selector::parse(text) ? std::string() : refusal("usage.not_a_selector", text::shown(text));
  };
  add_option(verb, "-l,--selector", style.selector, "Only nodes with these labels, as kubectl takes it")
      ->check(CLI::Validator(problem, ""))
      ->type_name("SELECTOR");
}

void add_listing_options(CLI::App& verb, listing_style& style, std::vector<std::string> headers, object_names names,
                         std::vector<std::string> more) {
  if (names == object_names::some) more.emplace_back("name");
  add_answer_options(verb, style.language, style.output, more);
  add_flag(verb, "--no-headers", style.no_headers, "A table without its first line");
  add_option(verb, "--sort-by", style.sort_by, "By this column; numbers by their value")
      ->transform([](const std::string& value) { return CLI::detail::to_lower(value); })
      ->check(choice(std::move(headers)))
      ->type_name("COLUMN");
}

}  // namespace cli
