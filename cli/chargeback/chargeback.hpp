#pragma once
// `quartermaster report chargeback`: the time of cards in one month with the policy's prices. Objects in, report out;
// nothing here reads a cluster or a clock. docs/decisions/014 says what is counted.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "api/accelerator_usage.hpp"
#include "cli/chargeback/cost.hpp"
#include "cli/output/listing.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"
#include "text/phrase.hpp"

namespace cli {

struct chargeback_row {
  std::string name_space;
  quota::usage_key key;
  quota::card_time time;
  std::optional<std::int64_t> card_hour;  ///< its price, in millionths; null: its model has none
  std::optional<cost> price;              ///< of the row; null where there is no price for its model
  std::int64_t card_mib = 0;              ///< memory of a card of the model
};

struct chargeback {
  std::string month, currency;
  quota::seconds begin = 0;  ///< of the month
  quota::seconds counted_since = 0, counted_until = 0;
  std::vector<chargeback_row> rows;         ///< by namespace, then model, mode, organization, priority
  cost sum;                                 ///< of the rows, so that the table adds up
  std::vector<std::string> without_price;   ///< models of the rows
  bool has_prices = false;                  ///< the policy has any
  std::optional<quota::model_rows> models;  ///< of the whole cluster; null in the report of one namespace
  text::phrase discrepancy;                 ///< what does not add up; empty: all does
};

/// Of the objects of all namespaces; `ns` empty: the rows of all. Null: the month has no object of the whole cluster,
/// so nothing was counted.
std::optional<chargeback> chargeback_of(std::string_view month, const std::vector<api::accelerator_usage>& objects,
                                        const reconcilers::chargeback_spec& spec, std::string_view ns = {});

/// One field of a CSV file by RFC 4180. Text that a spreadsheet would take for a formula gets an apostrophe before it.
std::string csv_text(std::string_view text);

/// What --sort-by takes.
std::vector<std::string> chargeback_headers();

/// `style.output`: table, wide, csv, json or yaml. A spreadsheet sorts by itself: csv has the order of the report.
void print(const chargeback& report, const listing_style& style, std::ostream& out);

}  // namespace cli
