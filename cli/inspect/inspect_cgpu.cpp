#include <algorithm>
#include <array>
#include <charconv>

#include "cli/inspect/inspect_fleet.hpp"

namespace cli {
namespace {

/// Resources in which memory of cards is shared, and what a unit is. The first a node offers counts.
struct memory_unit {
  std::string_view resource;
  std::int64_t mib;
};
constexpr std::array<memory_unit, 4> units{{{"aliyun.com/gpu-mem", 1024},
                                            {"tencent.com/vcuda-memory", 256},
                                            {"nvidia.com/mps-memory", 1024},
                                            {"nvidia.com/gpumem", 1}}};
constexpr std::string_view count_resource = "aliyun.com/gpu-count";
constexpr std::int64_t gib = 1024;
constexpr int unplaced = -1;

struct share {
  kube::object_key pod;
  std::int64_t mib = 0;
  std::vector<int> cards;  ///< numbers; unplaced: no one has said which
};

/// One node that is shared by memory, in MiB.
struct shared_node {
  std::string name, address;
  int cards = 0;
  std::int64_t total = 0;
  std::vector<share> shares;

  std::int64_t used_on(int card) const {
    std::int64_t out = 0;
    for (const auto& share : shares) {
      for (const auto entry : share.cards)
        out += entry == card ? share.mib / static_cast<std::int64_t>(share.cards.size()) : 0;
    }
    return out;
  }
  std::int64_t used() const {
    std::int64_t out = 0;
    for (const auto& share : shares) out += share.mib;
    return out;
  }
  bool pending() const { return used_on(unplaced) > 0; }
};

/// The number of a card that is named by number, UUID, or "<node>/<number>".
int number_of(const std::string& card, const fleet& fleet, const std::string& node) {
  if (const auto* accelerator = fleet.accelerator(node)) {
    for (const auto& entry : accelerator->cards)
      if (entry.uuid == card) return entry.index;
  }
  const std::string_view digits = std::string_view(card).substr(card.rfind('/') + 1);
  int out = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  return failed == std::errc() && end == digits.data() + digits.size() && out >= 0 ? out : unplaced;
}

share share_of(const kube::pod& pod, std::int64_t mib, const fleet& fleet, const shared_node& shared_node) {
  share out{pod.key, mib, {}};
  for (const auto& card : placed_cards(pod)) {
    const auto number = number_of(card, fleet, shared_node.name);
    out.cards.push_back(number < shared_node.cards ? number : unplaced);
  }
  if (out.cards.empty()) out.cards.push_back(unplaced);
  return out;
}

/// Empty where the node is not shared by memory.
std::optional<shared_node> shared(const fleet& fleet, const kube::node& node) {
  const auto offered = [&](const memory_unit& memory_unit) {
    return kube::amount(node.allocatable, memory_unit.resource) > 0;
  };
  const auto unit = std::ranges::find_if(units, offered);
  if (unit == units.end()) return std::nullopt;
  shared_node out;
  out.name = node.key.name;
  out.address = node.address.empty() ? "unknown" : node.address;
  out.total = kube::amount(node.allocatable, unit->resource) * unit->mib;
  out.cards = static_cast<int>(kube::amount(node.allocatable, count_resource));
  if (out.cards == 0) out.cards = facts_of(fleet, node).cards;
  for (const auto* pod : fleet.pods_on(node.key.name)) {
    const auto requested = kube::amount(reconcilers::verify::asked_by(*pod), unit->resource);
    if (requested > 0) out.shares.push_back(share_of(*pod, requested * unit->mib, fleet, out));
  }
  return out;
}

using rows = std::vector<std::vector<std::string>>;

/// Go's text/tabwriter with a padding of two: the last cell of a row takes part in no width. Blanks at line ends are
/// left out.
void write(const rows& all, std::ostream& out) {
  std::vector<std::size_t> widths;
  for (const auto& row : all) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i + 1 < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : all) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line += std::string(widths[i] - row[i].size() + 2, ' ');
    }
    line.resize(line.find_last_not_of(' ') + 1);
    out << line << "\n";
  }
}

/// The length of a row as the original wrote it: a tab after each cell but the last, and a line end.
std::size_t raw_length(const std::vector<std::string>& row) {
  std::size_t out = 0;
  for (const auto& cell : row) out += cell.size() + 1;
  return out;
}

std::string of_total(std::int64_t used_mib, std::int64_t total_gib) {
  return std::to_string(used_mib / gib) + "/" + std::to_string(total_gib);
}

std::string percent(std::int64_t used_mib, std::int64_t total_gib) {
  return "(" + std::to_string(total_gib > 0 ? used_mib / gib * 100 / total_gib : 0) + "%)";
}

void summary(const std::vector<shared_node>& nodes, std::ostream& out) {
  int most = 0;
  bool pending = false;
  for (const auto& node : nodes) {
    most = std::max(most, node.cards);
    pending = pending || node.pending();
  }
  rows all(1, {"NAME", "IPADDRESS"});
  for (int i = 0; i < most; ++i) all.front().push_back("GPU" + std::to_string(i) + "(Allocated/Total)");
  if (pending) all.front().push_back("PENDING(Allocated)");
  all.front().push_back("GPU Memory(GiB)");
  std::int64_t used = 0, total = 0;
  std::size_t rule = 0;
  for (const auto& node : nodes) {
    const auto in_node = node.total / gib;
    std::vector<std::string> row{node.name, node.address};
    for (int i = 0; i < most; ++i)
      row.push_back(i < node.cards ? of_total(node.used_on(i), in_node / node.cards) : "0/0");
    if (pending) row.push_back(node.pending() ? std::to_string(node.used_on(unplaced) / gib) : "");
    row.push_back(of_total(node.used(), in_node));
    if (rule == 0) rule = raw_length(row) + 20;
    used += node.used();
    total += in_node;
    all.push_back(std::move(row));
  }
  write(all, out);
  out << std::string(rule, '-') << "\nAllocated/Total GPU Memory In Cluster:\n"
      << of_total(used, total) << " " << percent(used, total) << "\n";
}

void detail(const std::vector<shared_node>& nodes, std::ostream& out) {
  std::int64_t used = 0, total = 0;
  std::size_t rule = 0;
  for (const auto& node : nodes) {
    out << "\n";
    write({{"NAME:", node.name}, {"IPADDRESS:", node.address}}, out);
    out << "\n";
    rows all(1, {"NAME", "NAMESPACE"});
    for (int i = 0; i < node.cards; ++i) all.front().push_back("GPU" + std::to_string(i) + "(Allocated)");
    if (node.pending()) all.front().push_back("Pending(Allocated)");
    all.front().emplace_back();
    std::size_t length = 0;
    for (const auto& share : node.shares) {
      std::vector<std::string> row{share.pod.name, share.pod.ns};
      const auto match = [&](int card) {
        const bool there = std::ranges::find(share.cards, card) != share.cards.end();
        row.push_back(there ? std::to_string(share.mib / static_cast<std::int64_t>(share.cards.size()) / gib) : "0");
      };
      for (int i = 0; i < node.cards; ++i) match(i);
      if (node.pending()) match(unplaced);
      row.emplace_back();
      length += raw_length(row);
      all.push_back(std::move(row));
    }
    const auto in_node = node.total / gib;
    all.push_back({"Allocated :", std::to_string(node.used() / gib) + " " + percent(node.used(), in_node), ""});
    all.push_back({"Total :", std::to_string(in_node), ""});
    write(all, out);
    if (rule == 0) rule = length + 10;
    out << std::string(rule, '-') << "\n";
    used += node.used();
    total += in_node;
  }
  out << "\n\nAllocated/Total GPU Memory In Cluster:  " << of_total(used, total) << " " << percent(used, total) << "\n";
}

}  // namespace

void print_cgpu(const fleet& fleet, const std::vector<std::string>& only, bool details, std::ostream& out) {
  std::vector<shared_node> nodes;
  for (const kube::node& node : fleet.nodes) {
    if (!only.empty() && std::ranges::find(only, node.key.name) == only.end()) continue;
    if (auto entry = shared(fleet, node)) nodes.push_back(std::move(*entry));
  }
  details ? detail(nodes, out) : summary(nodes, out);
}

}  // namespace cli
