#include "cli/explain/uncounted.hpp"

#include <algorithm>

#include "api/engine_words.hpp"
#include "cli/explain/explain_pod.hpp"
#include "reconcilers/extender/request.hpp"

namespace cli {

text::phrase uncounted_pod::text() const { return {"uncounted.pod", {{"pod", pod.to_string()}, {"reason", reason}}}; }

text::phrase miscounted(const quota::node_view& node, const reconcilers::extender::pod_request& request) {
  quota::demand needs;
  const auto no = quota::read(request.containers(), node.inventory->serves, needs);
  if (!no || no->kind == quota::wrong::not_served) return {};
  return {"uncounted.reason",
          {{"text", api::words_of(*no, text::language::en), api::words_of(*no, text::language::zh)}}};
}

std::vector<uncounted_pod> uncounted_pods(const picture& picture, std::string_view node, std::string_view ns) {
  std::vector<uncounted_pod> out;
  const auto& book = picture.book->book();
  for (const auto& pod : picture.pods.all()) {
    if (pod.node_name.empty() || (!node.empty() && pod.node_name != node)) continue;
    if (!ns.empty() && pod.key.ns != ns) continue;
    if (pod.finished() || pod.containers.empty() || book.find(pod.id.to_string())) continue;
    const auto view = book.view(pod.node_name);
    if (!view) continue;
    const reconcilers::extender::pod_request request(pod, picture.book->keys());
    if (auto reason = miscounted(*view, request); !reason.empty())
      out.push_back({pod.key, pod.node_name, std::move(reason)});
  }
  std::ranges::sort(out, {}, &uncounted_pod::pod);
  return out;
}

}  // namespace cli
