#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "cli/chargeback/chargeback.hpp"
#include "cli/console/views.hpp"
#include "text/list.hpp"

namespace cli::console {
namespace {

struct bill_row {
  quota::card_time time;
  std::optional<cost> price;  ///< null: there is none for its model
};

/// Hours of whole GPUs, to the hundredth.
double gpu_hours(const quota::card_time& time) {
  return std::round(static_cast<double>(time.core_seconds) / 3600.0) / 100.0;
}

std::string amount_of(const cost& cost, const std::string& currency) {
  return decimal(cost.hundredths, 2) + (currency.empty() ? "" : " " + currency);
}

/// Organizations and priorities of a namespace are one row here; the report has them.
using bill = std::map<std::tuple<std::string, std::string, std::string>, bill_row>;

bill bill_of(const chargeback& report, const viewer& viewer) {
  bill out;
  for (const auto& row : report.rows) {
    if (!viewer.sees(row.name_space)) continue;
    auto& sum = out[{row.name_space, row.key.model, row.key.mode}];
    sum.time += row.time;
    if (row.price) sum.price = sum.price.value_or(cost()) += *row.price;
  }
  return out;
}

ordered_json rows_json(const bill& bill, const std::string& currency) {
  auto out = ordered_json::array();
  for (const auto& [key, row] : bill) {
    const auto& [name_space, model, mode] = key;
    out.push_back({{"namespace", name_space},
                   {"model", model},
                   {"mode", mode},
                   {"gpuHours", gpu_hours(row.time)},
                   {"hundredths", row.price ? ordered_json(row.price->hundredths) : ordered_json()},
                   {"amount", row.price ? ordered_json(amount_of(*row.price, currency)) : ordered_json()}});
  }
  return out;
}

ordered_json models_json(const quota::model_rows& models, const reconcilers::chargeback_spec& spec) {
  auto out = ordered_json::array();
  for (const auto& [model, time] : models) {
    const auto* price = spec.price_of(model);
    const auto idle =
        price ? std::optional(cost_of(price->card_hour, time.idle, card_memory_mib(time.capacity))) : std::nullopt;
    out.push_back({{"model", model},
                   {"capacity", gpu_hours(time.capacity)},
                   {"used", gpu_hours(time.parts)},
                   {"idle", gpu_hours(time.idle)},
                   {"unhealthy", gpu_hours(time.unhealthy)},
                   {"unattributed", gpu_hours(time.unattributed)},
                   {"beyond", gpu_hours(time.beyond)},
                   {"idleAmount", idle ? ordered_json(amount_of(*idle, spec.currency)) : ordered_json()}});
  }
  return out;
}

text::phrase message_of(const month_usage& usage, const chargeback* report, const bill& bill,
                        const reconcilers::chargeback_spec& spec) {
  if (!usage.problem.empty()) return usage.problem;
  if (!report) return {"console.cost.nothing_in_month", {{"month", usage.month}}};
  if (spec.prices.empty()) return {"console.cost.no_prices"};
  std::set<std::string> without_price;
  for (const auto& [key, row] : bill)
    if (!row.price) without_price.insert(std::get<1>(key));
  if (without_price.empty()) return {};
  return {"console.cost.without_price", {{"models", text::joined(without_price)}}};
}

}  // namespace

ordered_json cost_view(const viewer& viewer, const month_usage& usage, const std::vector<std::string>& months,
                       const reconcilers::chargeback_spec& spec) {
  const auto report = usage.problem.empty() ? chargeback_of(usage.month, usage.objects, spec) : std::nullopt;
  const auto bill = report ? bill_of(*report, viewer) : console::bill();
  cost sum;
  for (const auto& [key, row] : bill)
    if (row.price) sum += *row.price;
  const auto message = message_of(usage, report ? &*report : nullptr, bill, spec);
  const bool has_amount = report && !spec.prices.empty();
  // What is idle and what is sick belongs to no one, and says how much of a model all others hold.
  const bool shows_models = report && report->models && viewer.nodes && viewer.all_pods;
  return {{"month", usage.month},
          {"months", months},
          {"countedSince", report ? ordered_json(report->counted_since) : ordered_json()},
          {"countedUntil", report ? ordered_json(report->counted_until) : ordered_json()},
          {"amount", has_amount ? ordered_json(amount_of(sum, spec.currency)) : ordered_json()},
          {"rows", rows_json(bill, spec.currency)},
          {"models", shows_models ? models_json(*report->models, spec) : ordered_json()},
          {"message", text::message_text(message)},
          {"messages", in_languages(message)}};
}

}  // namespace cli::console
