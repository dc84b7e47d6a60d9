#include "cli/top/top.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <tuple>

#include "cli/cluster/card_number.hpp"
#include "cli/cluster/pod_target.hpp"
#include "cli/console/holdings.hpp"
#include "cli/console/shares.hpp"
#include "cli/explain/uncounted.hpp"
#include "cli/flags/flags.hpp"
#include "cli/output/answer.hpp"
#include "cli/verbs.hpp"
#include "cli/views/view_reply.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using console::card_shares, console::node_shares;
using nlohmann::ordered_json;
using text::shown;

/// What is given out, of what there is.
struct given_out {
  std::int64_t cards = 0, free = 0, sick = 0, cordoned = 0, cores = 0, used_cores = 0, memory_mib = 0, used_mib = 0;
  std::set<kube::object_key> pods;

  void add(const node_shares& node, const card_shares& entry) {
    ++cards;
    if (!node.mode().empty() && entry.is_free) ++free;
    if (entry.is_sick) ++sick;
    if (node.is_cordoned(entry)) ++cordoned;
    cores += quota::whole_card;
    used_cores += entry.cores();
    memory_mib += entry.card->lendable_mib();
    used_mib += entry.memory_mib();
    for (const auto& share : entry.shares)
      if (share.pod) pods.insert(share.pod->key);
  }
  ordered_json as_json() const {
    return {{"cards", cards},     {"freeCards", free},       {"sickCards", sick},       {"cordonedCards", cordoned},
            {"cores", cores},     {"usedCores", used_cores}, {"memoryMiB", memory_mib}, {"usedMiB", used_mib},
            {"pods", pods.size()}};
  }
};

/// "130/400 (33%)"; of nothing "-".
std::string part_of(std::int64_t used, std::int64_t all) {
  if (all <= 0) return "-";
  return std::to_string(used) + "/" + std::to_string(all) + " (" + std::to_string((used * 100 + all / 2) / all) + "%)";
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
  NODE   MODE  CARDS  FREE  SICK  CORDONED  CORES          MEMORY-MIB         PODS
  gpu-1  vgpu  4      2     0     0         130/400 (33%)  20480/61440 (33%)  3

What is given out of the cards, the fullest first: the larger of cores and memory counts. A whole card is 100 cores and
all of its memory. FREE: cards that no one has a part of and a new pod gets right now; SICK and CORDONED ones are not.
Exit codes: 0 done, 1 the cluster cannot be read, 2 wrong usage.)";

constexpr std::string_view pods_example = R"(Example:
  $ quartermaster top pods -n team
  NAMESPACE  NAME   NODE   CARDS  CORES  MEMORY-MIB
  team       infer  gpu-1  1      30     2048

What pods hold of cards, most cores first. A whole card is 100 cores and all of its memory.
Exit codes: 0 done, 1 the cluster cannot be read, 2 wrong usage.)";

constexpr std::string_view cards_example = R"(Example:
  $ quartermaster top cards
  NODE   CARD      MODEL     CORES         MEMORY-MIB         SHARES  HEALTH
  gpu-1  GPU-5c1f  Tesla-T4  80/100 (80%)  8192/15360 (53%)   2       Healthy

What is given out of each card, the fullest first: the larger of cores and memory counts. -o wide adds its number on
the node. HEALTH Unknown: neither an agent nor the plugin says how the card is.
"2?" shares: some are pods that another scheduler placed, and which card they have is a guess.
Exit codes: 0 done, 1 the cluster cannot be read, 2 wrong usage.)";

}  // namespace

namespace {

using words = const bilingual&;

struct node_sums {
  const node_shares* node;
  given_out sums;
  std::span<const api::other_card> others;  ///< of other vendors than NVIDIA, which are not in the ledger

  /// Of a node without cards in the ledger nothing is known here, which is not the same as none.
  std::string counted(std::int64_t number) const { return sums.cards == 0 ? std::string() : std::to_string(number); }
  std::string cards() const { return card_number(sums.cards == 0 ? std::nullopt : std::optional(sums.cards), others); }
};
const listing<node_sums>& nodes_listing() {
  using row = const node_sums&;
  static const listing<node_sums> out{
      .name = "nodes",
      .columns = {{"node", [](row entry, words) { return entry.node->node->key.name; }},
                  {"mode", [](row entry, words) { return shown(entry.node->shown_mode()); }},
                  {"cards", [](row entry, words) { return entry.cards(); }},
                  {"free", [](row entry, words) { return entry.counted(entry.sums.free); }},
                  {"sick", [](row entry, words) { return entry.counted(entry.sums.sick); }},
                  {"cordoned", [](row entry, words) { return entry.counted(entry.sums.cordoned); }},
                  {"cores", [](row entry, words) { return part_of(entry.sums.used_cores, entry.sums.cores); }},
                  {"memory-mib", [](row entry, words) { return part_of(entry.sums.used_mib, entry.sums.memory_mib); }},
                  {"pods", [](row entry, words) { return std::to_string(entry.sums.pods.size()); }}},
      .json =
          [](row entry) {
            ordered_json out{{"node", entry.node->node->key.name}, {"mode", entry.node->mode()}};
            out.update(entry.sums.as_json());
            out["otherCards"] = ordered_json::array();
            for (const auto& card : entry.others) out["otherCards"].push_back(ordered_json(api::json_of(card)));
            return out;
          },
      .object = [](row entry) { return "node/" + entry.node->node->key.name; },
      .absence = "top.no_cards"};
  return out;
}

struct card_row {
  const node_shares* node;
  std::size_t place;

  const card_shares& entry() const { return node->cards[place]; }
  const quota::card& card() const { return *entry().card; }
  int index() const { return console::card_index(*node, place); }
  std::int64_t guesses() const { return std::ranges::count_if(entry().shares, &console::held_share::guessed); }
};
const listing<card_row>& cards_listing() {
  using row = const card_row&;
  static const listing<card_row> out{
      .name = "cards",
      .columns = {{"node", [](row card, words) { return card.node->node->key.name; }},
                  {"card", [](row card, words) { return shown(card.card().uuid, 128); }},
                  {"model", [](row card, words) { return shown(card.card().model); }},
                  {"cores", [](row card, words) { return part_of(card.entry().cores(), quota::whole_card); }},
                  {"memory-mib",
                   [](row card, words) { return part_of(card.entry().memory_mib(), card.card().lendable_mib()); }},
                  {"shares",
                   [](row card, words) {
                     return std::to_string(card.entry().shares.size()) + (card.guesses() > 0 ? "?" : "");
                   }},
                  {"health",
                   [](row card, words say) {
                     const auto& entry = card.entry();
                     const auto health = say.message(entry.is_held_back()  ? "top.held_back"
                                                     : entry.is_sick       ? "top.unhealthy"
                                                     : !entry.is_looked_at ? "top.unknown_health"
                                                                           : "top.healthy");
                     return card.node->is_cordoned(entry) ? health + say.message("top.cordoned") : health;
                   }},
                  {"cordoned",
                   [](row card, words say) {
                     return card.node->is_cordoned(card.entry()) ? say.message("inspect.yes") : std::string();
                   },
                   true},
                  {"index", [](row card, words) { return std::to_string(card.index()); }, true}},
      .json =
          [](row card) {
            return ordered_json{{"node", card.node->node->key.name},
                                {"index", card.index()},
                                {"uuid", card.card().uuid},
                                {"model", card.card().model},
                                {"cores", quota::whole_card},
                                {"usedCores", card.entry().cores()},
                                {"memoryMiB", card.card().lendable_mib()},
                                {"usedMiB", card.entry().memory_mib()},
                                {"shares", card.entry().shares.size()},
                                {"guessedShares", card.guesses()},
                                {"healthy", !card.entry().is_sick},
                                {"health", card.entry().health()},
                                {"heldBack", card.entry().is_held_back()},
                                {"cordoned", card.node->is_cordoned(card.entry())}};
          },
      .object = [](row card) { return card.card().uuid; },
      .absence = "top.no_cards"};
  return out;
}

}  // namespace

void top_nodes(const picture& picture, const listing_style& style, std::ostream& out, std::string_view only) {
  const auto nodes = console::shares_of(picture, only);
  std::vector<node_sums> rows;
  const auto selector = node_selector(style);
  for (const auto& node : nodes) {
    if (!selector.selects(node.node->labels)) continue;
    const auto report = picture.reports.find(node.node->key.name);
    const auto others =
        report == picture.reports.end() ? std::span<const api::other_card>() : std::span(report->second.other_cards);
    auto& row = rows.emplace_back(&node, given_out(), others);
    for (const auto& card : node.cards) row.sums.add(node, card);
  }
  std::ranges::sort(rows, {}, [](const node_sums& row) {
    const auto& sums = row.sums;
    return std::pair(-fullness(sums.used_cores, sums.cores, sums.used_mib, sums.memory_mib), row.node);
  });
  auto uncounted = uncounted_pods(picture, only);
  std::erase_if(uncounted, [&](const uncounted_pod& entry) {
    const auto* node = picture.nodes.find({{}, entry.node});
    return node && !selector.selects(node->labels);
  });
  const auto look = filtered_by(style, {std::string(only)});
  if (print(nodes_listing(), std::move(rows), look, out, {{"uncounted", uncounted_texts(uncounted)}}))
    print_uncounted(uncounted, bilingual(style.language), out);
}

void top_cards(const picture& picture, const listing_style& style, std::ostream& out, std::string_view only) {
  auto nodes = console::shares_of(picture, only);
  console::mark_guesses(picture, nodes);
  std::vector<card_row> rows;
  const auto selector = node_selector(style);
  for (const auto& node : nodes)
    for (std::size_t i = 0; i < node.cards.size(); ++i)
      if (selector.selects(node.node->labels)) rows.emplace_back(&node, i);
  std::ranges::sort(rows, {}, [](const card_row& row) {
    const auto& entry = row.entry();
    const auto full = fullness(entry.cores(), quota::whole_card, entry.memory_mib(), entry.card->lendable_mib());
    return std::tuple(-full, row.node, row.place);
  });
  const bool has_guess = std::ranges::any_of(rows, [](const card_row& row) { return row.guesses() > 0; });
  const bilingual say(style.language);
  if (print(cards_listing(), std::move(rows), filtered_by(style, {std::string(only)}), out) && has_guess)
    out << say.message("top.guess") << "\n";
}

namespace {

CLI::App* add_subject(CLI::App& verb, const char* name, const char* description, std::string_view example,
                      std::vector<std::string> headers,
                      const std::function<void(const picture&, const top_options&)>& print, int& rc) {
  auto options = std::make_shared<top_options>();
  const bool is_of_pods = std::string_view(name) == "pods";
  auto* subject = add_verb(verb, name, description);
  subject->alias(std::string(name).substr(0, std::string_view(name).size() - 1));  // kubectl takes the singular too
  if (is_of_pods)
    add_option(*subject, "name", options->name, "Only pods of this name: NAME, or NAMESPACE/NAME");
  else
    add_node(*subject, options->name, "Only this node", "--node,name");
  add_listing_options(*subject, options->style, std::move(headers));
  if (is_of_pods) {
    add_namespace_scope(*subject, options->scope, "Only pods of this namespace; without it all that you may see");
  } else {
    add_unused_namespace(*subject);
    add_node_selector(*subject, options->style);
  }
  add_option(*subject, "--snapshot", options->snapshot, "Instead of a cluster: a file of quartermaster inspect --save")
      ->type_name("FILE");
  add_cluster_options(*subject, options->cluster);
  subject->footer(std::string(example));
  subject->callback([options, print, is_of_pods, &rc] {
    picture all;
    const auto locale = bilingual(options->style.language).locale();
    if (is_of_pods && !options->name.empty()) {
      std::vector<std::string> names{options->name};
      const auto ns = plain_pod_names(names, options->scope.ns);
      if (!ns) {
        rc = failed(ns.error(), locale, std::cerr, 2);
        return;
      }
      options->scope.ns = *ns;
      options->name = names.front();
    }
    auto read = gather(options->cluster, options->snapshot, all);
    if (!read && is_of_pods) {
      if (const auto code = namespace_answer(options->cluster, options->scope, {{}, "holdings", options->name},
                                             options->style, read.error(), std::cout, std::cerr)) {
        rc = *code;
        return;
      }
    }
    if (!read) {
      rc = failed(read.error(), locale, std::cerr);
      return;
    }
    if (!options->name.empty() && !is_of_pods && !all.nodes.find({{}, options->name})) {
      rc = failed({"transport.no_node", {{"node", text::shown(options->name)}}}, locale, std::cerr);
      return;
    }
    const auto is_named = [&](const kube::pod& pod) {
      return pod.key.name == options->name && (options->scope.ns.empty() || pod.key.ns == options->scope.ns);
    };
    if (is_of_pods && !options->name.empty() && std::ranges::none_of(all.pods.all(), is_named)) {
      rc = failed({options->scope.ns.empty() ? "transport.no_pod" : "transport.no_pod_in",
                   {{"pod", text::shown(options->name)}, {"namespace", options->scope.ns}}},
                  locale, std::cerr);
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
  const auto nodes = [](const picture& all, const top_options& options) {
    top_nodes(all, options.style, std::cout, options.name);
  };
  const auto pods = [](const picture& all, const top_options& options) {
    top_pods(all, options.scope.ns, options.style, std::cout, options.name);
  };
  const auto cards = [](const picture& all, const top_options& options) {
    top_cards(all, options.style, std::cout, options.name);
  };
  add_subject(*verb, "nodes", "Nodes: cards, cores and memory that are given out", nodes_example,
              sort_keys(nodes_listing()), nodes, rc);
  add_subject(*verb, "pods", "Pods: what they hold of cards", pods_example, holding_headers(), pods, rc);
  add_subject(*verb, "cards", "Cards: how much of each is given out, and in how many shares", cards_example,
              sort_keys(cards_listing()), cards, rc);
}

}  // namespace cli
