// Pods that hold GPUs.

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/console/shares.hpp"
#include "cli/console/views.hpp"
#include "text/phrase_code.hpp"

namespace cli::console {
namespace {

struct held_card {
  const card_shares* card = nullptr;
  const held_share* share = nullptr;
  int index = 0;
};

struct holder {
  const kube::pod* pod = nullptr;
  std::vector<held_card> cards;
};

ordered_json held_json(const held_card& held) {
  return {{"index", held.index},        {"model", held.card->card->model},     {"whole", held.share->whole},
          {"cores", held.share->cores}, {"memoryMiB", held.share->memory_mib}, {"guessed", held.share->guessed}};
}

ordered_json holder_json(const holder& holder, const pod_use& use) {
  const auto& pod = *holder.pod;
  std::int64_t cores = 0, memory_mib = 0;
  auto cards = ordered_json::array();
  for (const auto& held : holder.cards) {
    cores += held.share->cores;
    memory_mib += held.share->memory_mib;
    cards.push_back(held_json(held));
  }
  const auto measured = use.find({pod.key.ns, pod.key.name});
  return {{"namespace", pod.key.ns},
          {"name", pod.key.name},
          {"node", pod.node_name},
          {"phase", pod.deleting ? "Terminating" : std::string(kube::to_string(pod.phase))},
          {"reason", pod.reason},
          {"ready", pod.ready},
          {"restarts", pod.restarts},
          {"since", pod.created > 0 ? ordered_json(pod.created) : ordered_json()},
          {"cores", cores},
          {"memoryMiB", memory_mib},
          {"use", measured == use.end() ? ordered_json() : ordered_json(measured->second)},
          {"cards", std::move(cards)}};
}

}  // namespace

ordered_json holders_view(const picture& picture, const viewer& viewer, std::string_view ns, page_range page,
                          const pod_use& use, const text::phrase& message) {
  auto nodes = shares_of(picture);
  mark_guesses(picture, nodes);
  std::map<kube::object_key, holder> holders;
  for (const auto& node : nodes)
    for (std::size_t i = 0; i < node.cards.size(); ++i)
      for (const auto& share : node.cards[i].shares) {
        const bool is_shown = share.pod && viewer.sees(share.pod->key.ns) && (ns.empty() || share.pod->key.ns == ns);
        if (!is_shown) continue;
        auto& holder = holders[share.pod->key];
        holder.pod = share.pod;
        holder.cards.push_back({&node.cards[i], &share, card_index(node, i)});
      }
  auto pods = ordered_json::array();
  const auto begin = std::min(page.offset, holders.size()), end = begin + std::min(page.limit, holders.size() - begin);
  std::size_t i = 0;
  for (const auto& [key, holder] : holders) {
    if (const auto place = i++; place >= begin && place < end) pods.push_back(holder_json(holder, use));
  }
  return {{"total", holders.size()},
          {"offset", begin},
          {"message", text::message_text(message)},
          {"messages", in_languages(message)},
          {"pods", std::move(pods)}};
}

}  // namespace cli::console
