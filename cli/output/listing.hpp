#pragma once
// One printer for every verb that lists things: a verb says its columns once, and has table, wide, JSON, YAML and
// names, with or without a header, sorted by any column, in both languages.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/output/answer.hpp"
#include "cli/output/table.hpp"
#include "kube/label_selector.hpp"

namespace CLI {
class App;
}

namespace cli {

struct listing_style : report_style {
  std::string selector;              ///< of labels of nodes; empty: all
  std::vector<std::string> filters;  ///< what else rows had to match, as it is typed: "gpu-1", "-n team"
  std::string sort_by;               ///< the name of a column; empty: the verb's own order
  bool no_headers = false;

  listing_style(std::string form = "table", std::string tongue = "en") {
    output = std::move(form);
    language = std::move(tongue);
  }
};

/// The style with what rows had to match; what is empty is no filter.
listing_style filtered_by(listing_style style, std::vector<std::string> filters);
/// "-n team"; empty: no filter.
std::string namespace_filter(std::string_view ns);

/// In place of a table without rows: which filters nothing matches, or without a filter the words of `absence`. Empty:
/// the table has to do.
std::string absence_words(std::string_view listing, std::string_view absence, const listing_style& style);

/// The words of "column.WORDS" of the catalogue; `words` empty: those of the name, with _ for -.
std::string header_of(std::string_view name, std::string_view words, const bilingual& say);

template <class Row>
struct listed_column {
  using cell = std::function<std::string(const Row&, const bilingual&)>;
  std::string_view name;   ///< what --sort-by takes: "memory-mib"
  std::string_view words;  ///< the key of its header, where that is not the name
  cell text;
  bool is_wide;  ///< only with -o wide

  listed_column(std::string_view column, cell value, bool wide = false) : listed_column(column, {}, value, wide) {}
  listed_column(std::string_view column, std::string_view header, cell value, bool wide = false)
      : name(column), words(header), text(std::move(value)), is_wide(wide) {}
};

template <class Row>
struct listing {
  std::string name;  ///< of the list in JSON: "nodes"
  std::vector<listed_column<Row>> columns;
  std::function<nlohmann::ordered_json(const Row&)> json;
  std::function<std::string(const Row&)> object;  ///< as kubectl names it: "node/gpu-1"
  std::string_view absence = {};                  ///< the key of the words in place of an empty table
};

enum class object_names : std::uint8_t { some, none };
/// --lang, -o (with name, unless the rows are no objects, and with `more` forms), --no-headers and --sort-by, which
/// takes `headers`. `style` must outlive parsing.
void add_listing_options(CLI::App& verb, listing_style& style, std::vector<std::string> headers,
                         object_names names = object_names::some, std::vector<std::string> more = {});

/// -l, of verbs that list nodes.
void add_node_selector(CLI::App& verb, listing_style& style);
/// What the style selects: it was checked when the flag was read.
kube::label_selector node_selector(const listing_style& style);

/// The names of its columns.
template <class Row>
std::vector<std::string> sort_keys(const listing<Row>& listing) {
  std::vector<std::string> out;
  for (const auto& column : listing.columns) out.emplace_back(column.name);
  return out;
}

/// Numbers at the start by their value, the rest as text.
bool sorts_before(std::string_view a, std::string_view b);
/// The places of the keys when they are sorted; equal ones stay in their order.
std::vector<std::size_t> order_of(const std::vector<std::string>& keys);

/// The rows as --sort-by has them.
template <class Row>
std::vector<Row> sorted(const listing<Row>& listing, std::vector<Row> rows, const listing_style& style) {
  const bilingual english("en");
  for (const auto& column : listing.columns) {
    if (style.sort_by.empty() || column.name != style.sort_by) continue;
    std::vector<std::string> keys;
    for (const auto& row : rows) keys.push_back(column.text(row, english));
    std::vector<Row> out;
    for (const auto index : order_of(keys)) out.push_back(std::move(rows[index]));
    return out;
  }
  return rows;
}

/// The table alone, also where it is a part of an answer.
template <class Row>
void print_table(const listing<Row>& listing, const std::vector<Row>& rows, const listing_style& style,
                 std::ostream& out) {
  const bilingual say(style.language);
  const auto has = [&](const listed_column<Row>& column) { return !column.is_wide || style.output == "wide"; };
  std::vector<std::string> cells;
  for (const auto& column : listing.columns)
    if (has(column)) cells.push_back(header_of(column.name, column.words, say));
  table lines(cells);
  for (const auto& row : rows) {
    cells.clear();
    for (const auto& column : listing.columns)
      if (has(column)) cells.push_back(column.text(row, say));
    lines.add(cells);
  }
  lines.print(out, !style.no_headers);
}

/// Returns whether people read it, so that a verb can add a line for them. `more` are members next to the list.
template <class Row>
bool print(const listing<Row>& listing, std::vector<Row> rows, const listing_style& style, std::ostream& out,
           nlohmann::ordered_json more = nlohmann::ordered_json::object()) {
  rows = sorted(listing, std::move(rows), style);
  if (style.output == "name") {
    for (const auto& row : rows) out << listing.object(row) << "\n";
    return false;
  }
  if (style.as_data()) {
    nlohmann::ordered_json all{{listing.name, nlohmann::ordered_json::array()}};
    for (const auto& row : rows) all[listing.name].push_back(listing.json(row));
    all.update(more);
    return !printed_as_data(all, style.output, out);
  }
  if (const auto words = rows.empty() ? absence_words(listing.name, listing.absence, style) : std::string();
      !words.empty()) {
    out << words << "\n";
    return true;
  }
  print_table(listing, rows, style, out);
  return true;
}

}  // namespace cli
