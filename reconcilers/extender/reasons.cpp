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
    if (view && (view->what->serves.modes != 0 || !view->what->counts.empty())) out.push_back(*view);
  }
  // Stores have no order; equal clusters are to be explained alike.
  std::ranges::sort(out, {}, [](const quota::node_view& one) -> const std::string& { return one.what->name; });
  return out;
}

std::optional<quota::exceeded> limit_of(const account& book, const kube::pod& pod, const asked& by,
                                        std::span<const quota::node_view> nodes) {
  if (!book.limited(pod.key.ns)) return {};
  std::vector<quota::shortfall> found(nodes.size());
  quota::filter(by.containers(), nodes, found, by.only());
  if (std::ranges::none_of(found, &quota::shortfall::fits)) {
    static constexpr std::array<quota::card_use, quota::max_cards> nobody{};
    std::vector<quota::node_view> empty;
    std::size_t keys = 0;
    for (const auto& one : nodes) keys = std::max(keys, one.counts_used.size());
    const std::vector<std::int64_t> none(keys);
    for (const auto& one : nodes)
      empty.push_back(
          {one.what, std::span(nobody).first(one.used.size()), std::span(none).first(one.counts_used.size())});
    quota::filter(by.containers(), empty, found, by.only());
  }
  std::optional<quota::exceeded> out;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!found[i].fits()) continue;
    auto no = book.over(pod, by, *nodes[i].what);
    if (!no) return {};
    if (!out) out = std::move(no);
  }
  return out;
}

std::string_view short_text_of(const quota::exceeded& of) {
  using kind = quota::exceeded::kind;
  if (of.what == kind::model) return "the namespace may not use this model";
  if (of.what == kind::pool) return "the namespace may not use this pool";
  if (of.what == kind::isolation) return "the namespace demands more isolation than this node gives";
  switch (of.of) {
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
  const asked by(*read, book.keys());
  if (by.nothing()) return {};
  const auto no = limit_of(book, *read, by, candidates(book.book(), nodes));
  if (!no) return {};
  return {"the pod will wait for its namespace's quota: " + quota::text_of(*no)};
}

std::string name_of(const quota::exceeded& of) {
  if (of.what == quota::exceeded::kind::model) return "model";
  if (of.what == quota::exceeded::kind::pool) return "pool";
  std::string out(unit_of(of.of));
  if (of.what == quota::exceeded::kind::isolation) out = "isolation";
  if (!of.model.empty()) out += " of model " + of.model;
  return out;
}

bool carries_ours(std::string_view said) {
  for (auto i = std::to_underlying(quota::reason::refused); i <= std::to_underlying(quota::reason::not_steered); ++i)
    if (said.contains(quota::text_of(quota::reason{i}))) return true;
  return false;
}

std::string by_name(std::string_view text, const asked& by) {
  static constexpr std::string_view word = "container ";
  std::string out;
  for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word)) {
    out += text.substr(0, at + word.size());
    text.remove_prefix(at + word.size());
    std::size_t number = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failed != std::errc() || number >= by.names().size()) continue;
    out += by.names()[number]->name;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  return out += text;
}

std::string text_of(const quota::explanation& why, std::span<const quota::node_view> nodes, const asked& by) {
  return by_name(quota::text_of(why, nodes), by);
}

}  // namespace reconcilers::extender
