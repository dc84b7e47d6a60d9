// The report for people in two languages, for spreadsheets, and for programs. JSON is stable: fields are added, never
// renamed.

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/chargeback/chargeback.hpp"
#include "cli/output/answer.hpp"
#include "cli/output/headers.hpp"
#include "cli/output/table.hpp"
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

ordered_json as_json(const chargeback& report) {
  ordered_json out{{"month", report.month},
                   {"since", text_of(report.counted_since)},
                   {"through", text_of(report.counted_until)},
                   {"currency", report.currency},
                   {"rows", ordered_json::array()}};
  for (const auto& row : report.rows) {
    ordered_json entry{{"namespace", row.name_space},
                       {"model", row.key.model},
                       {"mode", row.key.mode},
                       {"organization", row.key.organization},
                       {"priority", row.key.priority}};
    entry.update(as_json(row.time));
    entry["cardMemoryMiB"] = row.card_mib;
    entry["cardHour"] = row.card_hour ? ordered_json(decimal(*row.card_hour, exact_places)) : ordered_json();
    entry["cost"] = row.price ? ordered_json(decimal(row.price->millionths, exact_places)) : ordered_json();
    entry["roundedCost"] = row.price ? ordered_json(decimal(row.price->hundredths, rounded_places)) : ordered_json();
    out["rows"].push_back(std::move(entry));
  }
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
  out["discrepancy"] = report.discrepancy;
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

void print_rows(const chargeback& report, const bilingual& say, bool is_wide, std::ostream& out) {
  auto header = headers_of(
      "report", {"namespace", "model", "mode", "organization", "priority", "card_hours", "memory_gib_hours", "cost"},
      say);
  if (is_wide) std::ranges::move(headers_of("report", {"paid_hours", "price"}, say), std::back_inserter(header));
  table lines(std::move(header));
  constexpr std::int64_t unit = 1'000'000;
  for (const auto& row : report.rows) {
    std::vector<std::string> line{shown(row.name_space),
                                  shown(row.key.model),
                                  shown(row.key.mode),
                                  shown(row.key.organization),
                                  std::to_string(row.key.priority),
                                  card_hours(row.time),
                                  memory_gib_hours(row.time),
                                  row.price ? money(row.price->hundredths, report.currency) : ""};
    if (is_wide) {
      line.push_back(decimal(cost_of(unit, row.time, row.card_mib).hundredths, rounded_places));
      line.push_back(row.card_hour ? decimal(*row.card_hour, exact_places) : "");
    }
    lines.add(std::move(line));
  }
  lines.print(out);
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

void print_models(const quota::model_rows& models, const bilingual& say, std::ostream& out) {
  auto header = headers_of("report", {"model"}, say);
  for (const auto& column : columns)
    std::ranges::move(headers_of("report", {column.name}, say), std::back_inserter(header));
  table lines(std::move(header));
  for (const auto& [model, row] : models) {
    std::vector<std::string> line{shown(model)};
    for (const auto& column : columns) line.push_back(card_hours(row.*column.member));
    lines.add(std::move(line));
  }
  lines.print(out);
}

void print_period(const chargeback& report, const bilingual& say, std::ostream& out) {
  auto period = text_of(report.counted_until);
  if (report.counted_since > report.begin)
    period = say.message("report.period", {{"until", period}, {"since", text_of(report.counted_since)}});
  out << say.message(report.discrepancy.empty() ? "report.balanced" : "report.discrepancy",
                     {{"text", shown(report.discrepancy, 2000)}, {"period", period}})
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

void print(const chargeback& report, const report_style& style, std::ostream& out) {
  if (style.output == "csv") return print_csv(report, out);
  if (printed_as_data(as_json(report), style.output, out)) return;
  const bilingual say(style.language);
  if (report.rows.empty()) {
    out << say.message("report.no_part", {{"month", report.month}}) << "\n";
  } else {
    print_rows(report, say, style.output == "wide", out);
    print_prices(report, say, out);
  }
  if (report.models) {
    out << "\n";
    print_models(*report.models, say, out);
  }
  print_period(report, say, out);
}

}  // namespace cli
