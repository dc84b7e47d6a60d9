#include "cli/top/top.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "cli/console/shares.hpp"
#include "cli/explain/uncounted.hpp"
#include "cli/flags/flags.hpp"
#include "cli/output/answer.hpp"
#include "cli/output/table.hpp"
#include "cli/verbs.hpp"
#include "text/messages.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using console::card_shares, console::node_shares;
using nlohmann::ordered_json;
using text::shown;

/// What is given out, of what there is.
struct given_out {
  std::int64_t cards = 0, sick = 0, cores = 0, used_cores = 0, memory_mib = 0, used_mib = 0;
  std::set<kube::object_key> pods;

  void add(const card_shares& entry) {
    ++cards;
    if (!entry.card->healthy) ++sick;
    cores += quota::whole_card;
    used_cores += entry.cores();
    memory_mib += entry.card->lendable_mib();
    used_mib += entry.memory_mib();
    for (const auto& share : entry.shares)
      if (share.pod) pods.insert(share.pod->key);
  }
  ordered_json as_json() const {
    return {{"cards", cards},          {"sickCards", sick},   {"cores", cores},     {"usedCores", used_cores},
            {"memoryMiB", memory_mib}, {"usedMiB", used_mib}, {"pods", pods.size()}};
  }
};

/// "130/400 (33%)"; of nothing "-".
std::string part_of(std::int64_t used, std::int64_t all) {
  if (all <= 0) return "-";
  return std::to_string(used) + "/" + std::to_string(all) + " (" + std::to_string((used * 100 + all / 2) / all) + "%)";
}

/// What a pod holds on its node.
struct pod_row {
  std::string node;
  std::set<std::string> cards;
  std::int64_t whole = 0, cores = 0, memory_mib = 0;
};

int card_index(const node_shares& node, std::size_t place) {
  const auto& uuid = node.cards[place].card->uuid;
  if (node.report)
    for (const auto& card : node.report->cards)
      if (card.uuid == uuid && card.index >= 0) return card.index;
  return static_cast<int>(place);
}

/// The larger of the two parts that are given out.
double fullness(std::int64_t used_cores, std::int64_t cores, std::int64_t used_mib, std::int64_t mib) {
  const auto part = [](std::int64_t used, std::int64_t all) {
    return all > 0 ? static_cast<double>(used) / static_cast<double>(all) : 0.0;
  };
  return std::max(part(used_cores, cores), part(used_mib, mib));
}

constexpr std::string_view nodes_example = R"(Example:
  $ quartermaster top nodes
  NODE   MODE  CARDS  SICK  CORES          MEMORY-MIB          PODS
  gpu-1  vgpu  4      0     130/400 (33%)  20480/61440 (33%)   3

What is given out of the cards, the fullest first: the larger of cores and memory counts. A whole card is 100 cores and all of its memory.
Exit codes: 0 done, 1 the cluster cannot be read, 2 wrong usage.)";

constexpr std::string_view pods_example = R"(Example:
  $ quartermaster top pods -n team
  NAMESPACE  NAME   NODE   CARDS  CORES  MEMORY-MIB
  team       infer  gpu-1  1      30     2048

What pods hold of cards, most cores first. A whole card is 100 cores and all of its memory.
Exit codes: 0 done, 1 the cluster cannot be read, 2 wrong usage.)";

constexpr std::string_view cards_example = R"(Example:
  $ quartermaster top cards
  NODE   CARD  MODEL     CORES         MEMORY-MIB         SHARES  HEALTH
  gpu-1  0     Tesla-T4  80/100 (80%)  8192/15360 (53%)   2       Healthy

What is given out of each card, the fullest first: the larger of cores and memory counts. -o wide adds the UUID.
"2?" shares: some are pods that another scheduler placed, and which card they have is a guess.
Exit codes: 0 done, 1 the cluster cannot be read, 2 wrong usage.)";

}  // namespace

namespace {

text::language locale_of(const bilingual& say) { return say.zh ? text::language::zh : text::language::en; }

/// What the sums above lack.
void print_uncounted(const std::vector<std::string>& pods, const bilingual& say, std::ostream& out) {
  if (pods.empty()) return;
  out << text::counted(pods.size(), "top.uncounted", locale_of(say)) << "\n";
  for (const auto& pod : pods) out << "  " << shown(pod, 400) << "\n";
}

}  // namespace

void top_nodes(const placements& placements, const report_style& style, std::ostream& out, std::string_view only) {
  const bilingual say(style.language);
  std::vector<std::pair<given_out, const node_shares*>> rows;
  const auto nodes = console::shares_of(placements, only);
  for (const auto& node : nodes) {
    given_out sums;
    for (const auto& card : node.cards) sums.add(card);
    rows.emplace_back(std::move(sums), &node);
  }
  std::ranges::sort(rows, {}, [](const auto& row) {
    const auto& [sums, node] = row;
    return std::pair(-fullness(sums.used_cores, sums.cores, sums.used_mib, sums.memory_mib), node);
  });
  auto all = ordered_json::array();
  table lines(say.zh ? std::vector<std::string>{"节点", "模式", "卡", "异常", "核心", "显存(MIB)", "POD"}
                     : std::vector<std::string>{"NODE", "MODE", "CARDS", "SICK", "CORES", "MEMORY-MIB", "PODS"});
  for (const auto& [sums, node] : rows) {
    ordered_json entry{{"node", node->node->key.name}, {"mode", node->mode()}};
    entry.update(sums.as_json());
    all.push_back(std::move(entry));
    lines.add({node->node->key.name, shown(node->mode()), std::to_string(sums.cards), std::to_string(sums.sick),
               part_of(sums.used_cores, sums.cores), part_of(sums.used_mib, sums.memory_mib),
               std::to_string(sums.pods.size())});
  }
  const auto uncounted = only.empty() ? uncounted_pods(placements) : uncounted_pods(placements, only);
  if (printed_as_data({{"nodes", std::move(all)}, {"uncounted", uncounted}}, style.output, out)) return;
  lines.print(out);
  print_uncounted(uncounted, say, out);
}

void top_cards(const placements& placements, const report_style& style, std::ostream& out, std::string_view only) {
  const bilingual say(style.language);
  auto nodes = console::shares_of(placements, only);
  console::mark_guesses(placements, nodes);
  struct card_place {
    const node_shares* node;
    std::size_t place;
    const card_shares& entry() const { return node->cards[place]; }
  };
  std::vector<card_place> rows;
  for (const auto& node : nodes)
    for (std::size_t i = 0; i < node.cards.size(); ++i) rows.push_back({&node, i});
  std::ranges::sort(rows, {}, [](const card_place& row) {
    const auto& entry = row.entry();
    const auto full = fullness(entry.cores(), quota::whole_card, entry.memory_mib(), entry.card->lendable_mib());
    return std::tuple(-full, row.node, row.place);
  });
  const bool is_wide = style.output == "wide";
  auto header = say.zh ? std::vector<std::string>{"节点", "卡", "型号", "核心", "显存(MIB)", "份数", "健康"}
                       : std::vector<std::string>{"NODE", "CARD", "MODEL", "CORES", "MEMORY-MIB", "SHARES", "HEALTH"};
  if (is_wide) header.emplace_back("UUID");
  table lines(std::move(header));
  auto all = ordered_json::array();
  bool has_guess = false;
  for (const auto& row : rows) {
    const auto& entry = row.entry();
    const auto& card = *entry.card;
    const auto guesses = std::ranges::count_if(entry.shares, &console::held_share::guessed);
    has_guess |= guesses > 0;
    const auto index = card_index(*row.node, row.place);
    all.push_back({{"node", row.node->node->key.name},
                   {"index", index},
                   {"uuid", card.uuid},
                   {"model", card.model},
                   {"cores", quota::whole_card},
                   {"usedCores", entry.cores()},
                   {"memoryMiB", card.lendable_mib()},
                   {"usedMiB", entry.memory_mib()},
                   {"shares", entry.shares.size()},
                   {"guessedShares", guesses},
                   {"healthy", card.healthy}});
    std::vector<std::string> line{
        row.node->node->key.name,
        std::to_string(index),
        shown(card.model),
        part_of(entry.cores(), quota::whole_card),
        part_of(entry.memory_mib(), card.lendable_mib()),
        std::to_string(entry.shares.size()) + (guesses > 0 ? "?" : ""),
        card.healthy ? text::message("top.healthy", locale_of(say)) : text::message("top.unhealthy", locale_of(say))};
    if (is_wide) line.push_back(shown(card.uuid, 128));
    lines.add(std::move(line));
  }
  if (printed_as_data({{"cards", std::move(all)}}, style.output, out)) return;
  lines.print(out);
  if (has_guess) out << text::message("top.guess", locale_of(say)) << "\n";
}

void top_pods(const placements& placements, const std::string& ns, const report_style& style, std::ostream& out,
              std::string_view name) {
  const bilingual say(style.language);
  std::map<kube::object_key, pod_row> pods;
  for (const auto& node : console::shares_of(placements))
    for (const auto& card : node.cards)
      for (const auto& share : card.shares) {
        if (!share.pod || (!ns.empty() && share.pod->key.ns != ns)) continue;
        if (!name.empty() && share.pod->key.name != name) continue;
        auto& row = pods[share.pod->key];
        row.node = node.node->key.name;
        row.cards.insert(card.card->uuid);
        row.whole += share.whole ? 1 : 0;
        row.cores += share.cores;
        row.memory_mib += share.memory_mib;
      }
  std::vector<const std::pair<const kube::object_key, pod_row>*> rows;
  for (const auto& entry : pods) rows.push_back(&entry);
  std::ranges::sort(rows, {}, [](const auto* entry) { return std::pair(-entry->second.cores, entry->first); });
  table lines(say.zh ? std::vector<std::string>{"命名空间", "名称", "节点", "卡", "核心", "显存(MIB)"}
                     : std::vector<std::string>{"NAMESPACE", "NAME", "NODE", "CARDS", "CORES", "MEMORY-MIB"});
  auto all = ordered_json::array();
  for (const auto* entry : rows) {
    const auto& [key, row] = *entry;
    all.push_back({{"namespace", key.ns},
                   {"name", key.name},
                   {"node", row.node},
                   {"cards", row.cards},
                   {"wholeCards", row.whole},
                   {"cores", row.cores},
                   {"memoryMiB", row.memory_mib}});
    lines.add({key.ns, key.name, row.node, std::to_string(row.cards.size()), std::to_string(row.cores),
               std::to_string(row.memory_mib)});
  }
  auto uncounted = uncounted_pods(placements);
  std::erase_if(uncounted, [&](const std::string& pod) {
    const auto slash = pod.find('/');
    return (!ns.empty() && pod.substr(0, slash) != ns) ||
           (!name.empty() && pod.substr(slash + 1, pod.find(' ') - slash - 1) != name);
  });
  if (printed_as_data({{"pods", std::move(all)}, {"uncounted", uncounted}}, style.output, out)) return;
  lines.print(out);
  print_uncounted(uncounted, say, out);
}

namespace {

CLI::App* add_subject(CLI::App& verb, const char* name, const char* description, std::string_view example,
                      const std::function<void(const placements&, const top_options&)>& print, int& rc) {
  auto options = std::make_shared<top_options>();
  const bool is_of_pods = std::string_view(name) == "pods";
  auto* subject = add_verb(verb, name, description);
  subject->alias(std::string(name).substr(0, std::string_view(name).size() - 1));  // kubectl takes the singular too
  add_option(*subject, "name", options->name, is_of_pods ? "Only pods of this name" : "Only this node");
  add_answer_options(*subject, options->style.language, options->style.output);
  if (is_of_pods) {
    add_option(*subject, "-n,--namespace", options->ns, "Only pods of this namespace");
    subject->add_flag_callback("-A,--all-namespaces", [options] { options->ns.clear(); }, "Pods of all namespaces");
  } else {
    add_unused_namespace(*subject);
  }
  add_option(*subject, "--snapshot", options->snapshot, "Instead of a cluster: a file of quartermaster inspect --save")
      ->type_name("FILE");
  add_cluster_options(*subject, options->cluster);
  subject->footer(std::string(example));
  subject->callback([options, print, is_of_pods, &rc] {
    placements all;
    const auto read = gather(options->cluster, options->snapshot, all);
    if (!read) {
      rc = failed(read.error().message, std::cerr);
      return;
    }
    if (!options->name.empty() && !is_of_pods && !all.nodes.find({{}, options->name})) {
      rc = failed("there is no node \"" + options->name + "\"", std::cerr);
      return;
    }
    const auto is_named = [&](const kube::pod& pod) {
      return pod.key.name == options->name && (options->ns.empty() || pod.key.ns == options->ns);
    };
    if (is_of_pods && !options->name.empty() && std::ranges::none_of(all.pods.all(), is_named)) {
      rc = failed("there is no pod \"" + options->name + "\"" +
                      (options->ns.empty() ? "" : " in namespace \"" + options->ns + "\""),
                  std::cerr);
      return;
    }
    print(all, *options);
    rc = 0;
  });
  return subject;
}

}  // namespace

void add_top(CLI::App& app, int& rc) {
  auto* verb = add_verb(app, "top", "Show what is given out of the cards: of nodes, pods or cards");
  verb->require_subcommand(1);
  const auto nodes = [](const placements& all, const top_options& options) {
    top_nodes(all, options.style, std::cout, options.name);
  };
  const auto pods = [](const placements& all, const top_options& options) {
    top_pods(all, options.ns, options.style, std::cout, options.name);
  };
  const auto cards = [](const placements& all, const top_options& options) {
    top_cards(all, options.style, std::cout, options.name);
  };
  add_subject(*verb, "nodes", "Nodes: cards, cores and memory that are given out", nodes_example, nodes, rc);
  add_subject(*verb, "pods", "Pods: what they hold of cards", pods_example, pods, rc);
  add_subject(*verb, "cards", "Cards: how much of each is given out, and in how many shares", cards_example, cards, rc);
}

}  // namespace cli
