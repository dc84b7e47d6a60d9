#pragma once
// What a device plugin accepts for its resource, whatever a declaration says: where the two disagree this wins, because
// the plugin would refuse the container later and say less. Rows of data, one a key.

#include <cstdint>
#include <span>
#include <string_view>

namespace reconcilers::crl {

/// A resource counted in shares of a card: 1 to `whole` - 1 is a share of one card, a multiple of `whole` is whole
/// cards, nothing else is legal.
struct vocabulary {
  std::string_view key;
  std::int64_t whole;
  std::string_view partner;  ///< a share needs it beside it; whole cards need none of it and get none

  bool legal(std::int64_t amount) const { return amount < whole || amount % whole == 0; }
  bool share(std::int64_t amount) const { return amount > 0 && amount < whole; }
  /// The legal amount nearest to a positive one; of two equally near the smaller.
  std::int64_t nearest(std::int64_t amount) const;
};

std::span<const vocabulary> vocabularies() noexcept;
/// Null for a key any whole number is legal for.
const vocabulary* vocabulary_of(std::string_view key) noexcept;
/// The vocabulary whose shares need this key beside them.
const vocabulary* partner_of(std::string_view key) noexcept;

}  // namespace reconcilers::crl
