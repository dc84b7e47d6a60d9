#include "reconcilers/extender/reasons.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "api/accelerator_node.hpp"
#include "api/engine_words.hpp"
#include "quota/filter.hpp"
#include "quota/topology.hpp"
#include "reconcilers/extender/protocol.hpp"
#include "text/list.hpp"
#include "text/messages.hpp"

namespace reconcilers::extender {

std::vector<quota::node_view> candidates(const quota::ledger& book, const controller::store<kube::node>& nodes) {
  std::vector<quota::node_view> out;
  out.reserve(nodes.size());
  for (const auto& node : nodes.all()) {
    if (node.unschedulable) continue;
    const auto view = book.view(node.key.name);
    if (!view) continue;
    const auto& cards = *view->inventory;
    if (cards.serves.modes != 0 || !cards.counts.empty() || cards.changes_mode) out.push_back(*view);
  }
  // Stores have no order; equal clusters are to be explained alike.
  std::ranges::sort(out, {}, [](const quota::node_view& view) -> const std::string& { return view.inventory->name; });
  return out;
}

std::optional<quota::exceeded_limit> limit_of(const account& book, const kube::pod& pod, const pod_request& request,
                                              std::span<const quota::node_view> nodes) {
  if (!book.limited(pod.key.ns)) return {};
  std::vector<quota::shortfall> found(nodes.size());
  quota::filter(request.containers(), nodes, found, request.only());
  if (std::ranges::none_of(found, &quota::shortfall::fits)) {
    static constexpr std::array<quota::card_use, quota::max_cards> nobody{};
    std::vector<quota::node_view> empty;
    std::size_t keys = 0;
    for (const auto& node : nodes) keys = std::max(keys, node.counts_used.size());
    const std::vector<std::int64_t> none(keys);
    for (const auto& node : nodes)
      empty.push_back(
          {node.inventory, std::span(nobody).first(node.used.size()), std::span(none).first(node.counts_used.size())});
    quota::filter(request.containers(), empty, found, request.only());
  }
  std::optional<quota::exceeded_limit> out;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!found[i].fits()) continue;
    auto no = book.over(pod, request, *nodes[i].inventory);
    if (!no) return {};
    if (!out) out = std::move(no);
  }
  return out;
}

std::string_view short_text_of(const quota::exceeded_limit& limit) {
  using kind = quota::exceeded_limit::kind;
  // Once per process: a filter says it of each node.
  const auto words = [](std::string_view name) {
    return text::pattern_of("engine.limit.short." + std::string(name), text::language::en);
  };
  static const auto model = words("model"), pool = words("pool"), isolation = words("isolation");
  static const std::array used_up{words("cores"), words("memory"), words("cards")};
  if (limit.rule == kind::model) return model;
  if (limit.rule == kind::pool) return pool;
  if (limit.rule == kind::isolation) return isolation;
  return used_up[static_cast<std::size_t>(limit.unit)];
}

std::string name_of(const quota::exceeded_limit& limit) {
  if (limit.rule == quota::exceeded_limit::kind::model) return "model";
  if (limit.rule == quota::exceeded_limit::kind::pool) return "pool";
  std::string out(api::unit_of(limit.unit));
  if (limit.rule == quota::exceeded_limit::kind::isolation) out = "isolation";
  if (!limit.model.empty()) out += " of model " + limit.model;
  return out;
}

bool carries_ours(std::string_view message) {
  for (auto i = std::to_underlying(quota::reason::refused); i <= std::to_underlying(quota::reason::changes_mode); ++i)
    if (message.contains(api::words_of(quota::reason{i}, text::language::en))) return true;
  return false;
}

std::vector<std::string_view> names_of_containers(const pod_request& request) {
  std::vector<std::string_view> out;
  for (const auto* container : request.names()) out.push_back(container->name);
  return out;
}

std::string words_of(const quota::change& change, std::span<const quota::node_view> nodes, const pod_request& request,
                     text::language locale) {
  return api::words_of(change, nodes, names_of_containers(request), locale);
}

std::string words_of(const quota::explanation& explanation, std::span<const quota::node_view> nodes,
                     const pod_request& request, text::language locale) {
  return api::words_of(explanation, nodes, names_of_containers(request), locale);
}

std::string words_of_causes(const quota::explanation& explanation, std::span<const quota::node_view> nodes,
                            const pod_request& request, text::language locale) {
  return api::words_of_causes(explanation, nodes, names_of_containers(request), locale);
}

namespace {

/// The cards of a node that one container has, and the links among them.
struct card_set {
  const quota::node_inventory& node;
  std::vector<std::uint8_t> cards;  ///< ascending

  int score() const {
    int out = 0;
    for (std::size_t a = 0; a < cards.size(); ++a)
      for (std::size_t b = 0; b < a; ++b) out += quota::quality(node.between(cards[a], cards[b]));
    return out;
  }
  /// "linked by NV12 to SYS", from the best to the worst of the pairs. Nothing of a single card.
  text::phrase links() const {
    std::vector<quota::link> all;
    for (std::size_t a = 0; a < cards.size(); ++a)
      for (std::size_t b = 0; b < a; ++b) all.push_back(node.between(cards[a], cards[b]));
    if (all.empty()) return {};
    const auto [worst, best] = std::ranges::minmax(all, {}, quota::quality);
    const auto first = api::text_of(best), last = api::text_of(worst);
    if (quota::quality(best) == 0) return {"why_cards.links_unknown"};
    return {first == last ? "why_cards.links_alike" : "why_cards.links", {{"first", first}, {"last", last}}};
  }
  /// "on NUMA node 0"; empty where it is not known.
  text::phrase numa_nodes() const {
    std::set<std::int32_t> numas;
    for (const auto card : cards) numas.insert(node.cards[card].numa);
    numas.erase(-1);
    if (numas.empty()) return {};
    std::vector<std::string> texts;
    for (const auto numa : numas) texts.push_back(std::to_string(numa));
    return {numas.size() == 1 ? "why_cards.numa.one" : "why_cards.numa.many", {{"list", text::joined(texts)}}};
  }
};

/// Why a set of whole cards was chosen, and its score: both empty where there is nothing to compare.
struct whole_cause {
  text::phrase cause, score;
};
whole_cause cause_of(const card_set& set, std::span<const std::uint8_t> free) {
  const auto count = set.cards.size();
  if (!quota::knows_topology(set.node)) return {{"why_cards.no_links"}, {}};
  std::array<std::uint8_t, quota::max_cards> best{};
  if (quota::best_together(set.node, free, count, best) != count) return {};
  const card_set better{set.node, {best.begin(), best.begin() + static_cast<std::ptrdiff_t>(count)}};
  const auto others = text::counted_phrase(free.size(), "why_cards.free");
  text::phrase score;
  if (count > 1) score = {"why_cards.score", {{"score", std::to_string(set.score())}}};
  if (better.score() > set.score())
    return {{"why_cards.better_now", {{"free", others}, {"score", std::to_string(better.score())}}}, score};
  return {{count > 1 ? "why_cards.best" : "why_cards.leaves_best", {{"free", others}}}, score};
}

text::phrase why_whole(const card_set& set, std::span<const std::uint8_t> free, bool plugin_picks) {
  auto [cause, score] = cause_of(set, free);
  return {plugin_picks ? "why_cards.whole_of_plugin" : "why_cards.whole",
          {{"cards", text::counted_phrase(set.cards.size(), "why_cards.cards")},
           {"links", set.links()},
           {"numa", set.numa_nodes()},
           {"score", std::move(score)},
           {"cause", std::move(cause)}}};
}

text::phrase why_shared(const card_set& set, std::int32_t sharers, quota::policy policy) {
  if (set.node.serves.plugin_chooses) return {"why_cards.plugin_chooses", {{"numa", set.numa_nodes()}}};
  return {policy == quota::policy::binpack ? "why_cards.packed" : "why_cards.spread",
          {{"shares", text::counted_phrase(static_cast<std::size_t>(std::max(sharers, 0)), "why_cards.shares")},
           {"numa", set.numa_nodes()}}};
}

}  // namespace

std::vector<text::phrase> why_these(const quota::holding& held, const quota::node_view& view,
                                    const pod_request& request) {
  const auto& node = *view.inventory;
  const auto index_of = [&node](const std::string& uuid) {
    return static_cast<std::size_t>(std::ranges::find(node.cards, uuid, &quota::card::uuid) - node.cards.begin());
  };
  std::map<std::uint16_t, std::vector<const quota::grant*>> containers;
  for (const auto& grant : held.grants)
    if (index_of(grant.card) < std::min(node.cards.size(), view.used.size()))
      containers[grant.container].push_back(&grant);
  // As it was before the pod: its own parts count as free.
  std::vector<quota::card_use> used(view.used.begin(), view.used.end());
  std::vector<std::int64_t> counts(view.counts_used.begin(), view.counts_used.end());
  quota::apply(node, held, -1, used, counts);
  std::vector<std::uint8_t> free;
  for (std::size_t i = 0; i < used.size(); ++i)
    if (quota::admits_whole(node.cards[i], used[i])) free.push_back(static_cast<std::uint8_t>(i));
  const auto policy = request.only() ? request.only()->on(node, quota::policy::binpack)
                                     : node.placement.value_or(quota::policy::binpack);
  using quota::mode;
  const bool picks = node.serves.has(mode::pgpu) || node.serves.has(mode::share) || node.serves.has(mode::topology);
  std::vector<text::phrase> out;
  for (const auto& [container, grants] : containers) {
    card_set set{node, {}};
    std::int32_t sharers = 0;
    for (const auto* grant : grants) {
      const auto index = index_of(grant->card);
      set.cards.push_back(static_cast<std::uint8_t>(index));
      sharers += used[index].sharers;
    }
    std::ranges::sort(set.cards);
    auto words = grants.front()->whole ? why_whole(set, free, picks) : why_shared(set, std::max(sharers, 0), policy);
    if (container < request.names().size())
      words = {"why_cards.of_container", {{"name", request.names()[container]->name}, {"text", std::move(words)}}};
    out.push_back(std::move(words));
  }
  return out;
}

}  // namespace reconcilers::extender
