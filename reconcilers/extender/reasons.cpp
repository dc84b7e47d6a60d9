#include "reconcilers/extender/reasons.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "quota/filter.hpp"
#include "reconcilers/extender/protocol.hpp"

namespace reconcilers::extender {

std::vector<quota::node_view> candidates(const quota::ledger& book, const controller::store<kube::node>& nodes) {
  std::vector<quota::node_view> out;
  out.reserve(nodes.size());
  for (const auto& node : nodes.all()) {
    if (node.unschedulable) continue;
    const auto view = book.view(node.key.name);
    if (view && (view->inventory->serves.modes != 0 || !view->inventory->counts.empty())) out.push_back(*view);
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
  if (limit.rule == kind::model) return "the namespace may not use this model";
  if (limit.rule == kind::pool) return "the namespace may not use this pool";
  if (limit.rule == kind::isolation) return "the namespace demands more isolation than this node gives";
  switch (limit.unit) {
    case quota::resource::cores:
      return "the namespace's quota of cores is used up";
    case quota::resource::memory:
      return "the namespace's quota of card memory is used up";
    case quota::resource::cards:
      return "the namespace's quota of cards is used up";
  }
  return "the namespace's quota is used up";
}

std::vector<std::string> advice_of(const account& book, const controller::store<kube::node>& nodes, std::string_view ns,
                                   const nlohmann::json& pod) {
  if (!book.synced() || !book.limited(ns)) return {};
  if (!pod.is_object() || !pod.value("metadata", nlohmann::json()).is_object()) return {};
  auto named = pod;
  named["metadata"]["name"] = "new";  // the server gives it one later, where it has none yet
  auto read = pod_of(named.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  if (!read) return {};
  read->key.ns = ns;
  const pod_request request(*read, book.keys());
  if (request.nothing()) return {};
  const auto no = limit_of(book, *read, request, candidates(book.book(), nodes));
  if (!no) return {};
  return {"the pod will wait for its namespace's quota: " + quota::text_of(*no)};
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
  for (auto i = std::to_underlying(quota::reason::refused); i <= std::to_underlying(quota::reason::not_steered); ++i)
    if (message.contains(quota::text_of(quota::reason{i}))) return true;
  return false;
}

std::string by_name(std::string_view text, const pod_request& request) {
  static constexpr std::string_view word = "container ";
  std::string out;
  for (auto match = text.find(word); match != std::string_view::npos; match = text.find(word)) {
    out += text.substr(0, match + word.size());
    text.remove_prefix(match + word.size());
    std::size_t number = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failed != std::errc() || number >= request.names().size()) continue;
    out += request.names()[number]->name;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  return out += text;
}

std::string text_of(const quota::explanation& explanation, std::span<const quota::node_view> nodes,
                    const pod_request& request) {
  return by_name(quota::text_of(explanation, nodes), request);
}

}  // namespace reconcilers::extender
