#include "kube/key_table.hpp"

namespace kube {

std::uint32_t key_table::known(std::string_view key) const {
  const auto match = numbers_.find(key);
  return match == numbers_.end() ? 0 : match->second;
}

std::uint32_t key_table::number_of(std::string_view key) {
  if (const auto number = known(key)) return number;
  if (names_.size() >= cap || key.size() > longest || key.find('/') == std::string_view::npos) return 0;
  const auto& kept = names_.emplace_back(key);
  const auto number = static_cast<std::uint32_t>(names_.size());
  numbers_.emplace(std::string_view(kept), number);
  return number;
}

key_table& key_table::of_this_thread() {
  thread_local key_table table;
  return table;
}

}  // namespace kube
