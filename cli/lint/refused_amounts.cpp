#include "cli/lint/refused_amounts.hpp"

#include <optional>

namespace cli {
namespace {

/// The refusal of every mode in which a node can be asked by these keys; none: a mode takes them.
std::optional<quota::refusal> refusal_by_all(const quota::limits& limits) {
  std::uint16_t modes = 0xFFFF;
  for (const auto& amount : limits)
    if (const auto known = quota::modes_of(amount.key); known != 0) modes &= known;
  std::optional<quota::refusal> out;
  for (std::uint16_t mode = 1; mode != 0 && modes != 0xFFFF; mode = static_cast<std::uint16_t>(mode << 1)) {
    if ((modes & mode) == 0) continue;
    quota::demand needs;
    auto refusal = quota::read({&limits, 1}, quota::service{.modes = mode}, needs);
    if (!refusal) return {};
    if (!out) out = std::move(refusal);
  }
  return out;
}

}  // namespace

std::vector<refused_amount> refused_amounts(const kube::pod& pod,
                                            const reconcilers::extender::declared_keys& declared) {
  const reconcilers::extender::pod_request request(pod, declared);
  std::vector<refused_amount> out;
  for (std::size_t i = 0; i < request.containers().size(); ++i)
    if (auto refusal = refusal_by_all(request.containers()[i]))
      out.push_back({request.names()[i], *std::move(refusal)});
  return out;
}

}  // namespace cli
