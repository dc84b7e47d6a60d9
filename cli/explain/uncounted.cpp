#include "cli/explain/uncounted.hpp"

#include <algorithm>
#include <iterator>

#include "cli/explain/explain_pod.hpp"
#include "reconcilers/extender/request.hpp"

namespace cli {

std::vector<std::string> uncounted_pods(const placements& placements, std::string_view node) {
  std::vector<std::string> out;
  const auto view = placements.book->book().view(node);
  if (!view) return out;
  for (const auto& pod : placements.pods.all()) {
    if (pod.node_name != node || pod.finished() || placements.book->book().find(pod.id.to_string())) continue;
    const reconcilers::extender::pod_request request(pod, placements.book->keys());
    quota::demand needs;
    const auto no = quota::read(request.containers(), view->inventory->serves, needs);
    if (no && no->kind != quota::wrong::not_served)
      out.push_back(pod.key.to_string() + " (" + refusal_of(*view, request, placements) + ")");
  }
  std::ranges::sort(out);
  return out;
}

std::vector<std::string> uncounted_pods(const placements& placements) {
  std::vector<std::string> out;
  for (const auto& node : placements.nodes.all())
    std::ranges::move(uncounted_pods(placements, node.key.name), std::back_inserter(out));
  std::ranges::sort(out);
  return out;
}

}  // namespace cli
