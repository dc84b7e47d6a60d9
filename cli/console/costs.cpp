#include "cli/console/costs.hpp"

#include <algorithm>

#include "cli/chargeback/chargeback.hpp"

namespace cli::console {

std::string costs::text_of(std::string_view ns) const {
  const auto match = namespaces.find(ns);
  const auto amount = decimal(match == namespaces.end() ? 0 : match->second.hundredths, 2);
  return currency.empty() ? amount : amount + " " + currency;
}

costs costs_of(std::string_view month, const std::vector<api::accelerator_usage>& objects,
               const reconcilers::chargeback_spec& spec) {
  costs out;
  if (spec.prices.empty()) {
    out.message = {"console.cost.no_prices"};
    return out;
  }
  const auto report = chargeback_of(month, objects, spec);
  if (!report) {
    out.message = {"console.cost.nothing_counted"};
    return out;
  }
  out.are_known = true;
  out.currency = spec.currency;
  for (const auto& row : report->rows) {
    auto& sum = out.namespaces[row.name_space];
    if (row.price)
      sum.hundredths += row.price->hundredths;
    else if (std::ranges::find(sum.without_price, row.key.model) == sum.without_price.end())
      sum.without_price.push_back(row.key.model);
  }
  return out;
}

}  // namespace cli::console
