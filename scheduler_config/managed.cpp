#include "scheduler_config/managed.hpp"

#include <algorithm>

namespace scheduler_config {

const managed_key* managed_key_of(std::string_view key) noexcept {
  const auto* match = std::ranges::find(managed_keys, key, &managed_key::key);
  return match == std::end(managed_keys) ? nullptr : match;
}

}  // namespace scheduler_config
