#include "cli/explain/uncounted.hpp"

#include <algorithm>

#include "cli/explain/explain_pod.hpp"
#include "reconcilers/extender/request.hpp"

namespace cli {

std::vector<uncounted_pod> uncounted_pods(const placements& placements, std::string_view node) {
  std::vector<uncounted_pod> out;
  const auto& book = placements.book->book();
  for (const auto& pod : placements.pods.all()) {
    if (pod.node_name.empty() || (!node.empty() && pod.node_name != node)) continue;
    if (pod.finished() || pod.containers.empty() || book.find(pod.id.to_string())) continue;
    const auto view = book.view(pod.node_name);
    if (!view) continue;
    const reconcilers::extender::pod_request request(pod, placements.book->keys());
    quota::demand needs;
    const auto no = quota::read(request.containers(), view->inventory->serves, needs);
    if (no && no->kind != quota::wrong::not_served)
      out.push_back({pod.key, pod.node_name, refusal_of(*view, request, placements)});
  }
  std::ranges::sort(out, {}, &uncounted_pod::pod);
  return out;
}

}  // namespace cli
