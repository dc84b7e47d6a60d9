// The report for people in two languages, for spreadsheets, and for programs. JSON is stable: fields are added, never
// renamed.

#include <array>
#include <nlohmann/json.hpp>

#include "cli/chargeback/chargeback.hpp"
#include "cli/output/answer.hpp"
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
  std::string_view name, english, chinese;
  quota::card_time quota::model_time::* member;
};
constexpr std::array<column, 6> columns{{{"capacity", "CAPACITY", "容量", &quota::model_time::capacity},
                                         {"parts", "PARTS", "已分配", &quota::model_time::parts},
                                         {"idle", "IDLE", "空闲", &quota::model_time::idle},
                                         {"unhealthy", "UNHEALTHY", "异常", &quota::model_time::unhealthy},
                                         {"unattributed", "UNATTRIBUTED", "未归属", &quota::model_time::unattributed},
                                         {"beyond", "BEYOND", "超额", &quota::model_time::beyond}}};

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
  auto header =
      say.zh ? std::vector<std::string>{"命名空间", "型号", "模式", "组织", "优先级", "卡时", "显存(GIB时)", "费用"}
             : std::vector<std::string>{"NAMESPACE",        "MODEL", "MODE", "ORGANIZATION", "PRIORITY", "CARD-HOURS",
                                        "MEMORY-GIB-HOURS", "COST"};
  if (is_wide)
    for (const auto name : {say("PAID-HOURS", "计费卡时"), say("PRICE", "单价")}) header.emplace_back(name);
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
    out << say("No prices are set (spec.chargeback.prices of AcceleratorPolicy default), so there is no cost.",
               "未设置价格（AcceleratorPolicy default 的 spec.chargeback.prices），因此没有费用。")
        << "\n";
    return;
  }
  out << say("Sum: ", "合计：") << money(report.sum.hundredths, report.currency) << "\n";
  if (!report.without_price.empty())
    out << say("Without a price: ", "没有价格的型号：") << shown(text::joined(report.without_price), 2000) << "\n";
}

void print_models(const quota::model_rows& models, const bilingual& say, std::ostream& out) {
  std::vector<std::string> header{std::string(say("MODEL", "型号"))};
  for (const auto& column : columns) header.emplace_back(say(column.english, column.chinese));
  table lines(std::move(header));
  for (const auto& [model, row] : models) {
    std::vector<std::string> line{shown(model)};
    for (const auto& column : columns) line.push_back(card_hours(row.*column.member));
    lines.add(std::move(line));
  }
  lines.print(out);
}

void print_period(const chargeback& report, const bilingual& say, std::ostream& out) {
  if (!report.discrepancy.empty())
    out << say("It does not add up: ", "账目不平：") << shown(report.discrepancy, 2000);
  else
    out << say("It adds up", "账目平衡");
  out << say(". Counted through ", "。统计截至 ") << text_of(report.counted_until);
  if (report.counted_since > report.begin) out << say(", since ", "，起始于 ") << text_of(report.counted_since);
  out << say(".", "。") << "\n";
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
    out << say("No part of a card was held in ", "没有占用过卡的月份：") << report.month
        << say(", as far as it is counted: the operator writes every 5 minutes",
               "（截至最近一次统计，每 5 分钟写入一次）")
        << "\n";
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
