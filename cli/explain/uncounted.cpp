#include "cli/explain/uncounted.hpp"

#include <algorithm>

#include "api/engine_words.hpp"
#include "cli/explain/explain_pod.hpp"
#include "reconcilers/extender/request.hpp"
#include "text/text.hpp"

namespace cli {

text::phrase uncounted_pod::text() const { return {"uncounted.pod", {{"pod", pod.to_string()}, {"reason", reason}}}; }

text::phrase miscounted(const quota::node_view& node, const reconcilers::extender::pod_request& request) {
  quota::demand needs;
  const auto no = quota::read(request.containers(), node.inventory->serves, needs);
  if (!no || no->kind == quota::wrong::not_served) return {};
  return {"uncounted.reason",
          {{"text", api::words_of(*no, text::language::en), api::words_of(*no, text::language::zh)}}};
}

namespace {

/// A card in the pod's placement that its node does not have: someone wrote that, or the card was taken out.
text::phrase missing_card(const quota::node_view& node, const quota::holding& held) {
  if (node.inventory->cards.empty()) return {};
  for (const auto& grant : held.grants)
    if (std::ranges::find(node.inventory->cards, grant.card, &quota::card::uuid) == node.inventory->cards.end())
      return {"uncounted.no_such_card", {{"card", text::shown(grant.card)}}};
  return {};
}

}  // namespace

std::vector<uncounted_pod> uncounted_pods(const picture& picture, std::string_view node, std::string_view ns) {
  std::vector<uncounted_pod> out;
  const auto& book = picture.book->book();
  for (const auto& pod : picture.pods.all()) {
    if (pod.node_name.empty() || (!node.empty() && pod.node_name != node)) continue;
    if (!ns.empty() && pod.key.ns != ns) continue;
    if (pod.finished() || pod.containers.empty()) continue;
    const auto view = book.view(pod.node_name);
    if (!view) continue;
    if (const auto* entry = book.find(pod.id.to_string())) {
      if (auto reason = missing_card(*view, entry->held); !reason.empty())
        out.push_back({pod.key, pod.node_name, std::move(reason)});
      continue;
    }
    const reconcilers::extender::pod_request request(pod, picture.book->keys());
    if (auto reason = miscounted(*view, request); !reason.empty())
      out.push_back({pod.key, pod.node_name, std::move(reason)});
  }
  std::ranges::sort(out, {}, &uncounted_pod::pod);
  return out;
}

}  // namespace cli
