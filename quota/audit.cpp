#include "quota/audit.hpp"

#include <algorithm>
#include <tuple>

namespace quota {
namespace {

using part = std::tuple<std::string_view, bool, std::int32_t, std::int64_t>;

std::vector<part> parts_of(const holding& of) {
  std::vector<part> out;
  for (const grant& one : of.grants)
    out.emplace_back(one.card, one.whole, one.whole ? 0 : one.cores, one.whole ? 0 : one.memory_mib);
  std::ranges::sort(out);
  return out;
}

std::vector<std::pair<std::string_view, std::int64_t>> counts_of(const holding& of) {
  std::vector<std::pair<std::string_view, std::int64_t>> out;
  for (const count& one : of.counts)
    if (one.amount != 0) out.emplace_back(one.key, one.amount);
  std::ranges::sort(out);
  return out;
}

bool alike(const holding& a, const holding& b) {
  return a == b || (a.node == b.node && parts_of(a) == parts_of(b) && counts_of(a) == counts_of(b));
}

}  // namespace

snapshot snapshot_of(const ledger& book) {
  snapshot out;
  book.for_each_node([&](const node_view& one) { out.nodes.push_back(*one.what); });
  std::ranges::sort(out.nodes, {}, &node::name);
  book.for_each([&](const std::string& uid, const ledger::entry& one) { out.pods.emplace_back(uid, one); });
  std::ranges::sort(out.pods, {}, [](const auto& one) -> const std::string& { return one.first; });
  return out;
}

ledger book_of(const snapshot& from) {
  ledger out;
  for (const node& one : from.nodes) out.put(one);
  for (const auto& [uid, one] : from.pods) out.restore(uid, one);
  return out;
}

std::vector<difference> compare(const ledger& book, const ledger& recomputed) {
  std::vector<difference> out;
  using kind = difference::kind;
  recomputed.for_each([&](const std::string& uid, const ledger::entry& one) {
    const auto* const ours = book.find(uid);
    if (ours == nullptr)
      out.push_back({kind::missing, uid, one.held.node, {}});
    else if (!alike(ours->held, one.held))
      out.push_back({kind::different, uid, one.held.node, {}});
  });
  book.for_each([&](const std::string& uid, const ledger::entry& one) {
    if (one.confirmed && recomputed.find(uid) == nullptr) out.push_back({kind::extra, uid, one.held.node, {}});
  });
  recomputed.for_each_node([&](const node_view& on) {
    for (std::size_t i = 0; i < on.used.size(); ++i)
      if (beyond(on.what->cards[i], on.used[i]))
        out.push_back({kind::over_given, {}, on.what->name, on.what->cards[i].uuid});
    for (std::size_t i = 0; i < on.counts_used.size(); ++i)
      if (on.counts_used[i] > on.what->counts[i].amount)
        out.push_back({kind::over_given, {}, on.what->name, on.what->counts[i].key});
  });
  std::ranges::sort(out, {}, [](const difference& one) { return std::tie(one.what, one.pod, one.node, one.card); });
  return out;
}

std::string_view text_of(difference::kind of) {
  switch (of) {
    case difference::kind::missing:
      return "missing";
    case difference::kind::extra:
      return "extra";
    case difference::kind::different:
      return "different";
    case difference::kind::over_given:
      return "over_given";
  }
  return "";
}

std::string text_of(const difference& of) {
  switch (of.what) {
    case difference::kind::missing:
      return "pod " + of.pod + " is on node " + of.node + " and not in the book";
    case difference::kind::extra:
      return "pod " + of.pod + " is in the book for node " + of.node + " and not in the API";
    case difference::kind::different:
      return "pod " + of.pod + " on node " + of.node + " holds other cards or amounts than the book says";
    case difference::kind::over_given:
      return "more of " + of.card + " on node " + of.node + " is given out than it has";
  }
  return "";
}

}  // namespace quota
