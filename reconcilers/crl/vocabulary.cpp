#include "reconcilers/crl/vocabulary.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace reconcilers::crl {
namespace {

// gpu-manager, pkg/services/allocator/nvidia/allocator.go: "must be multiple of 100", "cores or memory zero is not
// permitted"; a whole card's memory is charged whatever the pod asks for.
constexpr std::array<vocabulary, 1> rows{{{"tencent.com/vcuda-core", 100, "tencent.com/vcuda-memory"}}};

const vocabulary* find(std::string_view key, auto field) noexcept {
  const auto at = std::ranges::find(rows, key, field);
  return at == rows.end() ? nullptr : &*at;
}

}  // namespace

std::int64_t vocabulary::nearest(std::int64_t amount) const {
  if (legal(amount)) return std::max<std::int64_t>(amount, 1);
  const auto below = amount - amount % whole;
  const bool down = amount - below <= whole / 2 || below > std::numeric_limits<std::int64_t>::max() - whole;
  return down ? below : below + whole;
}

std::span<const vocabulary> vocabularies() noexcept { return rows; }
const vocabulary* vocabulary_of(std::string_view key) noexcept { return find(key, &vocabulary::key); }
const vocabulary* partner_of(std::string_view key) noexcept { return find(key, &vocabulary::partner); }

}  // namespace reconcilers::crl
