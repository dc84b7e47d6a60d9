#pragma once
// What namespaces cost in a month, as `quartermaster report chargeback` has it.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/accelerator_usage.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"
#include "text/phrase.hpp"

namespace cli::console {

struct namespace_cost {
  std::int64_t hundredths = 0;             ///< of the currency; the sum of the rounded rows
  std::vector<std::string> without_price;  ///< models that it held
};

struct costs {
  bool are_known = false;
  std::string currency;
  std::map<std::string, namespace_cost, std::less<>> namespaces;  ///< those that held something
  text::phrase message;                                           ///< why costs are not known; empty: they are

  /// "12.34 EUR"; of a namespace that held nothing "0.00 EUR".
  std::string text_of(std::string_view ns) const;
};

/// `month` is the current one, and `objects` are its.
costs costs_of(std::string_view month, const std::vector<api::accelerator_usage>& objects,
               const reconcilers::chargeback_spec& spec);

}  // namespace cli::console
