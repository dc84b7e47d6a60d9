#include "reconcilers/quotas/limit_scope.hpp"

namespace reconcilers {

std::string scope_of(const quota::scope& only) {
  std::string out;
  if (!only.pool.empty()) out += " in pool " + only.pool;
  if (only.isolated) out += " with isolation " + std::string(quota::text_of(*only.isolated));
  if (only.priority_from) out += " from priority " + std::to_string(*only.priority_from);
  if (only.priority_to) out += " up to priority " + std::to_string(*only.priority_to);
  return out;
}

}  // namespace reconcilers
