#pragma once
// `quartermaster report right-size`: containers that used little of the card memory they were given, by the series that
// the alert QuartermasterShareMemoryUnused uses. Queries are built purely, and answers read purely.

#include <cstdint>
#include <expected>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/output/listing.hpp"

namespace cli {

/// The expression of the alert: of each share, the largest part of its memory that was used in the last day, where that
/// is less than 30 % and the share has been there for a day.
std::string unused_query();
/// Bytes that those shares were given.
std::string given_query();
/// How many shares have been measured for a day; no series: none.
std::string measured_query();

struct right_size_row {
  std::string name_space, pod, container, model, mode, node, card;
  std::int64_t given_mib = 0, peak_mib = 0;
  double used = 0;  ///< at most, as a part of what was given

  /// The peak and a quarter of it, in whole units of 256 MiB; at most what was given.
  std::int64_t advised_mib() const;
};

/// Rows by namespace, pod, container and card; `ns` empty: of all namespaces. An error says which answer cannot be
/// read.
std::expected<std::vector<right_size_row>, text::phrase> right_sizes(std::string_view unused_body,
                                                                     std::string_view given_body, std::string_view ns);

void print(const std::vector<right_size_row>& rows, const listing_style& style, std::ostream& out);
std::vector<std::string> right_size_headers();

}  // namespace cli
