// The report for people in two languages, for spreadsheets, and for programs. JSON is stable: fields are added, never
// renamed.

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "cli/chargeback/chargeback.hpp"
#include "cli/output/answer.hpp"
#include "cli/output/listing.hpp"
#include "controller/clock.hpp"
#include "text/list.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using nlohmann::ordered_json;
using text::shown;

constexpr int exact_places = 6, rounded_places = 2;

std::string text_of(quota::seconds time) {
  return controller::rfc3339_seconds(controller::wall_time(std::chrono::seconds(time)));
}

std::string money(std::int64_t hundredths, const std::string& currency) {
  return decimal(hundredths, rounded_places) + (currency.empty() ? "" : " " + shown(currency));
}

/// The columns of a model, in the order of the table.
struct column {
  std::string_view name;
  quota::card_time quota::model_time::* member;
};
constexpr std::array<column, 6> columns{{{"capacity", &quota::model_time::capacity},
                                         {"parts", &quota::model_time::parts},
                                         {"idle", &quota::model_time::idle},
                                         {"unhealthy", &quota::model_time::unhealthy},
                                         {"unattributed", &quota::model_time::unattributed},
                                         {"beyond", &quota::model_time::beyond}}};

ordered_json as_json(const quota::card_time& time) {
  return {{"coreSeconds", time.core_seconds}, {"memoryMiBSeconds", time.memory_mib_seconds}};
}

ordered_json as_json(const chargeback_row& row) {
  ordered_json out{{"namespace", row.name_space},
                   {"model", row.key.model},
                   {"mode", row.key.mode},
                   {"organization", row.key.organization},
                   {"priority", row.key.priority}};
  out.update(as_json(row.time));
  out["cardMemoryMiB"] = row.card_mib;
  out["cardHour"] = row.card_hour ? ordered_json(decimal(*row.card_hour, exact_places)) : ordered_json();
  out["cost"] = row.price ? ordered_json(decimal(row.price->millionths, exact_places)) : ordered_json();
  out["roundedCost"] = row.price ? ordered_json(decimal(row.price->hundredths, rounded_places)) : ordered_json();
  return out;
}

/// Text that a name cannot be is quoted and marked; numbers are ours and stay as they are.
void print_csv(const chargeback& report, std::ostream& out) {
  out << "month,namespace,model,mode,organization,priority,coreSeconds,memoryMiBSeconds,cost,currency,roundedCost,"
         "cardHours,memoryGiBHours\r\n";
  for (const auto& row : report.rows)
    out << csv_text(report.month) << ',' << csv_text(row.name_space) << ',' << csv_text(row.key.model) << ','
        << csv_text(row.key.mode) << ',' << csv_text(row.key.organization) << ',' << row.key.priority << ','
        << row.time.core_seconds << ',' << row.time.memory_mib_seconds << ','
        << (row.price ? decimal(row.price->millionths, exact_places) : "") << ',' << csv_text(report.currency) << ','
        << (row.price ? decimal(row.price->hundredths, rounded_places) : "") << ',' << card_hours(row.time) << ','
        << memory_gib_hours(row.time) << "\r\n";
}

/// A row with what stands once in the report.
struct bill_row {
  const chargeback_row* row;
  const chargeback* report;
};
std::vector<bill_row> bill_rows(const chargeback& report) {
  std::vector<bill_row> out;
  for (const auto& row : report.rows) out.push_back({&row, &report});
  return out;
}

const listing<bill_row>& bill_listing() {
  using words = const bilingual&;
  using entry = const bill_row&;
  static const listing<bill_row> out{
      .name = "rows",
      .columns = {{"namespace", [](entry bill, words) { return shown(bill.row->name_space); }},
                  {"model", [](entry bill, words) { return shown(bill.row->key.model); }},
                  {"mode", [](entry bill, words) { return shown(text::lower_case(bill.row->key.mode)); }},
                  {"organization", [](entry bill, words) { return shown(bill.row->key.organization); }},
                  {"priority", [](entry bill, words) { return std::to_string(bill.row->key.priority); }},
                  {"card-hours", [](entry bill, words) { return card_hours(bill.row->time); }},
                  {"memory-gib-hours", [](entry bill, words) { return memory_gib_hours(bill.row->time); }},
                  {"cost",
                   [](entry bill, words) {
                     return bill.row->price ? money(bill.row->price->hundredths, bill.report->currency) : std::string();
                   }},
                  {"paid-hours",
                   [](entry bill, words) {
                     constexpr std::int64_t unit = 1'000'000;
                     return decimal(cost_of(unit, bill.row->time, bill.row->card_mib).hundredths, rounded_places);
                   },
                   true},
                  {"price",
                   [](entry bill, words) {
                     return bill.row->card_hour ? decimal(*bill.row->card_hour, exact_places) : std::string();
                   },
                   true}},
      .json = [](entry bill) { return as_json(*bill.row); },
      .object = {}};
  return out;
}

ordered_json as_json(const chargeback& report, const std::vector<bill_row>& rows) {
  ordered_json out{{"month", report.month},
                   {"since", text_of(report.counted_since)},
                   {"through", text_of(report.counted_until)},
                   {"currency", report.currency},
                   {"rows", ordered_json::array()}};
  for (const auto& bill : rows) out["rows"].push_back(bill_listing().json(bill));
  out["cost"] = report.has_prices ? ordered_json(decimal(report.sum.millionths, exact_places)) : ordered_json();
  out["roundedCost"] =
      report.has_prices ? ordered_json(decimal(report.sum.hundredths, rounded_places)) : ordered_json();
  out["modelsWithoutPrice"] = report.without_price;
  out["models"] = ordered_json();
  if (report.models) {
    out["models"] = ordered_json::array();
    for (const auto& [model, row] : *report.models) {
      ordered_json entry{{"model", model}};
      for (const auto& column : columns) entry[std::string(column.name)] = as_json(row.*column.member);
      out["models"].push_back(std::move(entry));
    }
  }
  out["addsUp"] = report.discrepancy.empty();
  out["discrepancy"] = words_of(report.discrepancy, text::language::en);
  return out;
}

void print_prices(const chargeback& report, const bilingual& say, std::ostream& out) {
  if (!report.has_prices) {
    out << say.message("report.no_prices") << "\n";
    return;
  }
  out << say.message("report.sum", {{"amount", money(report.sum.hundredths, report.currency)}}) << "\n";
  if (!report.without_price.empty())
    out << say.message("report.without_price", {{"models", shown(text::joined(report.without_price), 2000)}}) << "\n";
}

using model_entry = std::pair<std::string, quota::model_time>;

const listing<model_entry>& times_listing() {
  static const listing<model_entry> out = [] {
    listing<model_entry> made{
        .name = "models",
        .columns = {{"model", [](const model_entry& entry, const bilingual&) { return shown(entry.first); }}},
        .json = {},
        .object = {}};
    for (const auto& column : columns)
      made.columns.emplace_back(column.name, [member = column.member](const model_entry& entry, const bilingual&) {
        return card_hours(entry.second.*member);
      });
    return made;
  }();
  return out;
}

void print_period(const chargeback& report, const bilingual& say, std::ostream& out) {
  auto period = text_of(report.counted_until);
  if (report.counted_since > report.begin)
    period = say.message("report.period", {{"until", period}, {"since", text_of(report.counted_since)}});
  out << say.message(report.discrepancy.empty() ? "report.balanced" : "report.discrepancy",
                     {{"text", shown(words_of(report.discrepancy, say.locale()), 2000)}, {"period", period}})
      << "\n";
}

}  // namespace

std::string csv_text(std::string_view text) {
  std::string out(text);
  constexpr std::string_view formula = "=+-@\t\r";
  if (!out.empty() && formula.contains(out.front())) out.insert(0, "'");
  if (out.find_first_of(",\"\r\n") == std::string::npos) return out;
  for (auto quote = out.find('"'); quote != std::string::npos; quote = out.find('"', quote + 2))
    out.insert(quote, "\"");
  return '"' + out + '"';
}

std::vector<std::string> chargeback_headers() { return sort_keys(bill_listing()); }

void print(const chargeback& report, const listing_style& style, std::ostream& out) {
  if (style.output == "csv") return print_csv(report, out);
  const auto rows = sorted(bill_listing(), bill_rows(report), style);
  if (printed_as_data(as_json(report, rows), style.output, out)) return;
  const bilingual say(style.language);
  if (rows.empty()) {
    out << say.message("report.no_part", {{"month", report.month}}) << "\n";
    if (!style.filters.empty()) out << absence_words("rows", {}, style) << "\n";
  } else {
    print_table(bill_listing(), rows, style, out);
    print_prices(report, say, out);
  }
  if (report.models) {
    out << "\n";
    print_table(times_listing(), {report.models->begin(), report.models->end()}, style, out);
    out << say.message("report.columns") << "\n";
  }
  print_period(report, say, out);
}

}  // namespace cli
