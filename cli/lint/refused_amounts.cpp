#include "cli/lint/refused_amounts.hpp"

#include "quota/faults.hpp"

namespace cli {

std::vector<refused_amount> refused_amounts(const kube::pod& pod,
                                            const reconcilers::extender::declared_keys& declared) {
  const reconcilers::extender::pod_request request(pod, declared);
  std::vector<refused_amount> out;
  for (auto& refusal : quota::refused_amounts(request.containers(), quota::stage::written))
    out.push_back({request.names()[refusal.container], std::move(refusal)});
  return out;
}

}  // namespace cli
