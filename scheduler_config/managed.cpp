#include "scheduler_config/managed.hpp"

#include <algorithm>

namespace reconcilers::scheduler_config {

const managed_key* managed_key_of(std::string_view key) noexcept {
  const auto* at = std::ranges::find(managed_keys, key, &managed_key::key);
  return at == std::end(managed_keys) ? nullptr : at;
}

}  // namespace reconcilers::scheduler_config
