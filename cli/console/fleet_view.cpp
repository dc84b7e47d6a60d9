// The fleet, one node, and what all of it can still take.

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "api/names.hpp"
#include "cli/console/shares.hpp"
#include "cli/console/views.hpp"
#include "cli/inspect/inspect_fleet.hpp"
#include "kube/rfc3339.hpp"
#include "reconcilers/nodes/mode_change.hpp"
#include "text/phrase_code.hpp"
#include "text/quotation.hpp"

namespace cli::console {
namespace {

namespace phases = reconcilers::phases;

/// Texts that lists name by index.
class dictionary {
 public:
  int index_of(std::string_view text) {
    if (text.empty()) return -1;
    const auto [match, is_new] = indexes_.try_emplace(std::string(text), static_cast<int>(texts_.size()));
    if (is_new) texts_.push_back(match->first);
    return match->second;
  }
  ordered_json texts() const { return texts_; }

 private:
  std::unordered_map<std::string, int> indexes_;
  std::vector<std::string> texts_;
};

struct dictionaries {
  dictionary models, modes, phases, namespaces;
};

/// What a row of the agent says, in the languages of the page.
ordered_json in_both(const api::check_row& row, std::string (*say)(const api::check_row&, text::language)) {
  return {{"en", say(row, text::language::en)}, {"zh", say(row, text::language::zh)}};
}

enum card_flag : int { sick = 1, cordoned_card = 2, cut = 4, given_whole = 8, over_given = 16, unknown_health = 32 };
enum node_flag : int {
  not_ready = 1,
  cordoned = 2,
  changing = 4,
  report_old = 8,
  has_sick_card = 16,
  is_refused = 32,
  has_over_given = 64
};

ordered_json card_list(const card_shares& entry, const viewer& viewer, dictionaries& names) {
  const auto& card = *entry.card;
  const int flags = (entry.is_sick ? sick : 0) | (card.cordoned ? cordoned_card : 0) | (card.mig ? cut : 0) |
                    (entry.used.wholes > 0 ? given_whole : 0) | (quota::beyond(card, entry.used) ? over_given : 0) |
                    (entry.is_sick || entry.is_looked_at ? 0 : unknown_health);
  auto out = ordered_json::array(
      {names.models.index_of(card.model), card.memory_mib, flags, entry.cores(), entry.memory_mib()});
  if (entry.shares.empty()) return out;
  auto shares = ordered_json::array();
  for (const auto& share : entry.shares) {
    const bool is_shown = share.pod && viewer.sees(share.pod->key.ns);
    const int ns = is_shown ? names.namespaces.index_of(share.pod->key.ns) : -1;
    shares.push_back(ordered_json::array({share.cores, share.memory_mib, ns}));
  }
  out.push_back(std::move(shares));
  return out;
}

ordered_json node_list(const node_shares& row, const viewer& viewer, dictionaries& names) {
  const bool is_sick = std::ranges::any_of(row.cards, &card_shares::is_sick);
  const bool is_over =
      std::ranges::any_of(row.cards, [](const card_shares& entry) { return quota::beyond(*entry.card, entry.used); });
  const auto phase = row.report ? std::string_view(row.report->mode.phase) : std::string_view();
  const int flags = (row.node->ready == kube::condition_status::yes ? 0 : not_ready) |
                    (row.node->unschedulable ? cordoned : 0) | (row.is_changing() ? changing : 0) |
                    (row.report && row.report->is_report_old() ? report_old : 0) | (is_sick ? has_sick_card : 0) |
                    (phase == phases::refused ? is_refused : 0) | (is_over ? has_over_given : 0);
  auto cards = ordered_json::array();
  for (const auto& card : row.cards) cards.push_back(card_list(card, viewer, names));
  return ordered_json::array(
      {row.node->key.name, names.modes.index_of(row.mode()), names.phases.index_of(phase), flags, std::move(cards)});
}

/// Of cards that the ledger does not have, because no mode serves them and no agent reports them.
ordered_json unserved_cards(const node_row& row, dictionaries& names) {
  auto out = ordered_json::array();
  const auto card = ordered_json::array({names.models.index_of(row.model), row.memory_mib, unknown_health, 0, 0});
  for (std::int64_t i = 0; i < row.cards; ++i) out.push_back(card);
  return out;
}

ordered_json unserved_list(const node_row& row, dictionaries& names) {
  const auto mode = row.mode == "none" ? std::string_view() : std::string_view(row.mode);
  const int flags = (row.ready == kube::condition_status::yes ? 0 : not_ready) | (row.cordoned ? cordoned : 0);
  return ordered_json::array(
      {row.name, names.modes.index_of(mode), names.phases.index_of(row.phase), flags, unserved_cards(row, names)});
}

ordered_json shares_json(const picture& picture, const viewer& viewer, const card_shares& card) {
  auto out = ordered_json::array();
  for (const auto& share : card.shares) {
    const bool is_shown = share.pod && viewer.sees(share.pod->key.ns);
    ordered_json entry{{"namespace", nullptr}, {"pod", nullptr}, {"container", nullptr}};
    if (is_shown)
      entry = {{"namespace", share.pod->key.ns},
               {"pod", share.pod->key.name},
               {"container", container_name(picture, *share.pod, share.container)}};
    entry["whole"] = share.whole;
    entry["guessed"] = share.guessed;
    entry["cores"] = share.cores;
    entry["memoryMiB"] = share.memory_mib;
    out.push_back(std::move(entry));
  }
  return out;
}

ordered_json cards_json(const picture& picture, const viewer& viewer, const node_shares& row) {
  auto out = ordered_json::array();
  for (std::size_t i = 0; i < row.cards.size(); ++i) {
    const auto& entry = row.cards[i];
    const auto& card = *entry.card;
    const api::reported_card* reported = nullptr;
    if (row.report)
      for (const auto& candidate : row.report->cards)
        if (candidate.uuid == card.uuid) reported = &candidate;
    const auto health = reported && !reported->health.empty() ? reported->health : std::string(entry.health());
    out.push_back({{"index", reported && reported->index >= 0 ? reported->index : static_cast<int>(i)},
                   {"uuid", card.uuid},
                   {"model", card.model},
                   {"memoryMiB", card.memory_mib},
                   {"numa", card.numa},
                   {"health", health},
                   {"healthy", !entry.is_sick},
                   {"heldBack", entry.is_held_back()},
                   {"cordoned", card.cordoned},
                   {"mig", card.mig},
                   {"cores", entry.cores()},
                   {"usedMiB", entry.memory_mib()},
                   {"sharers", entry.used.sharers},
                   {"maxSharers", card.max_sharers},
                   {"warnings", reported ? ordered_json(reported->warnings) : ordered_json::array()},
                   {"shares", shares_json(picture, viewer, entry)}});
  }
  return out;
}

ordered_json topology_json(const node_shares& row) {
  auto out = ordered_json::array();
  if (!row.inventory || row.inventory->links.size() != row.cards.size() * row.cards.size()) return out;
  for (std::size_t a = 0; a < row.cards.size(); ++a) {
    auto line = ordered_json::array();
    for (std::size_t b = 0; b < row.cards.size(); ++b)
      line.push_back(a == b ? "X" : api::text_of(row.inventory->between(a, b)));
    out.push_back(std::move(line));
  }
  return out;
}

/// Where a change stands; of one that is stuck, by what is on the node.
std::string_view step_of(const node_shares& row, const std::optional<reconcilers::switching>& taint) {
  const std::string_view phase = row.report->mode.phase;
  if (phase != phases::stuck) return phase;
  const auto placed = row.node->labels.value_or(api::names::module_label, "");
  if (!taint) return phases::waiting;
  if (placed.empty()) return phases::removing;
  return placed == taint->target ? phases::verifying : phases::draining;
}

ordered_json change_json(const node_shares& row, const viewer& viewer) {
  if (!row.is_changing()) return nullptr;
  const auto& mode = row.report->mode;
  std::optional<reconcilers::switching> taint;
  for (const auto& entry : row.node->taints)
    if (entry.key == api::names::switching_taint) taint = reconcilers::switching::parse(entry.value);
  const auto or_none = [](std::string_view text) { return text.empty() ? std::string("none") : std::string(text); };
  const auto step = step_of(row, taint);
  auto steps = ordered_json::array();
  std::string_view state = "done";
  for (const auto phase :
       {phases::waiting, phases::draining, phases::removing, phases::enrolling, phases::verifying, phases::ready}) {
    if (phase == step) state = "now";
    steps.push_back({{"phase", phase}, {"state", state}});
    if (phase == step) state = "later";
  }
  auto blockers = ordered_json::array();
  std::size_t hidden = 0;
  for (const auto& entry : mode.blockers) {
    const std::string name(api::pod_of_blocker(entry));
    const auto slash = name.find('/');
    const bool is_shown = slash != std::string::npos && viewer.sees(std::string_view(name).substr(0, slash));
    if (is_shown)
      blockers.push_back({{"namespace", name.substr(0, slash)}, {"name", name.substr(slash + 1)}});
    else
      ++hidden;
  }
  const auto since = kube::parse_rfc3339(mode.since);
  return {{"source", or_none(taint ? taint->source : mode.actual_mode)},
          {"target", or_none(taint ? taint->target : mode.requested_mode)},
          {"since", since ? ordered_json(*since) : ordered_json()},
          {"step", step},
          {"stuck", mode.phase == phases::stuck},
          {"steps", std::move(steps)},
          {"blockers", std::move(blockers)},
          {"hiddenBlockers", hidden}};
}

/// The row of `inspect nodes`.
node_row inspected(const picture& picture, const kube::node& node, const std::optional<api::agent_report>& report) {
  agent_reports reports;
  if (report) reports.emplace(node.key.name, *report);
  fleet alone(picture, node.key.name);
  alone.reports = &reports;
  return node_rows(alone).front();
}

/// What cards of one model and mode can still take.
struct capacity_row {
  std::int64_t nodes = 0, cards = 0, usable = 0, free = 0, cores = 0, used_cores = 0, memory_mib = 0, used_mib = 0,
               stranded_cores = 0, stranded_mib = 0, stranded_cards = 0, unhealthy = 0, cordoned = 0;

  void add(const node_shares& node, const card_shares& entry) {
    ++cards;
    const auto& card = *entry.card;
    const auto& used = entry.used;
    if (entry.is_sick) ++unhealthy;
    if (node.is_cordoned(entry)) ++cordoned;
    if (node.node->unschedulable || !card.usable()) return;
    ++usable;
    cores += quota::whole_card;
    used_cores += entry.cores();
    memory_mib += card.lendable_mib();
    used_mib += entry.memory_mib();
    if (used.untouched()) {
      if (entry.is_free) ++free;
      return;
    }
    if (used.wholes > 0) return;
    const auto left_cores = std::max<std::int64_t>(quota::whole_card - used.cores, 0);
    const auto left_mib = std::max<std::int64_t>(card.lendable_mib() - used.memory_mib, 0);
    const bool is_full = used.sharers >= card.max_sharers || left_cores == 0 || left_mib == 0;
    if (!is_full || (left_cores == 0 && left_mib == 0)) return;
    ++stranded_cards;
    stranded_cores += left_cores;
    stranded_mib += left_mib;
  }
};

}  // namespace

ordered_json in_languages(const text::phrase& phrase) {
  const auto sentence = text::quotation_of(phrase);
  return {{"en", words_of(sentence, text::language::en)}, {"zh", words_of(sentence, text::language::zh)}};
}

std::string body_of(const ordered_json& view) {
  return view.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

ordered_json fleet_view(const picture& picture, const viewer& viewer, page_range page) {
  struct entry {
    const node_shares* shares = nullptr;
    const node_row* unserved = nullptr;
  };
  const auto shares = shares_of(picture);
  std::map<std::string_view, entry> rows;
  for (const auto& row : shares) rows[row.node->key.name].shares = &row;
  auto inspected_rows = node_rows(fleet(picture));
  std::erase_if(inspected_rows, [](const node_row& row) { return row.cards == 0; });
  for (const auto& row : inspected_rows) {
    auto& match = rows[row.name];
    if (!match.shares || match.shares->cards.empty()) match.unserved = &row;
  }
  dictionaries names;
  auto nodes = ordered_json::array();
  const auto begin = std::min(page.offset, rows.size()), end = begin + std::min(page.limit, rows.size() - begin);
  std::size_t i = 0;
  for (const auto& [name, row] : rows) {
    if (const auto place = i++; place < begin || place >= end) continue;
    auto node = row.shares ? node_list(*row.shares, viewer, names) : unserved_list(*row.unserved, names);
    if (row.shares && row.unserved) node.back() = unserved_cards(*row.unserved, names);
    nodes.push_back(std::move(node));
  }
  return {{"total", rows.size()},           {"offset", begin},
          {"models", names.models.texts()}, {"modes", names.modes.texts()},
          {"phases", names.phases.texts()}, {"namespaces", names.namespaces.texts()},
          {"nodes", std::move(nodes)}};
}

ordered_json node_view(const picture& picture, const viewer& viewer, const kube::node& node,
                       const std::optional<api::agent_report>& report) {
  const auto inspected_row = inspected(picture, node, report);
  auto rows = shares_of(picture, node.key.name);
  mark_guesses(picture, rows);
  ordered_json out{{"name", inspected_row.name},
                   {"address", inspected_row.address},
                   {"ready", inspected_row.ready == kube::condition_status::yes},
                   {"cordoned", inspected_row.cordoned},
                   {"mode", inspected_row.mode == "none" ? "" : inspected_row.mode},
                   {"requestedMode", inspected_row.requested == "none" ? "" : inspected_row.requested},
                   {"phase", inspected_row.phase},
                   {"reason", inspected_row.reason},
                   {"message", viewer.all_pods ? in_languages(inspected_row.message) : ordered_json()},
                   {"driver", inspected_row.driver},
                   {"cuda", inspected_row.cuda},
                   {"reportIsOld", inspected_row.is_report_old}};
  out["cards"] = rows.empty() ? ordered_json::array() : cards_json(picture, viewer, rows.front());
  out["topology"] = rows.empty() ? ordered_json::array() : topology_json(rows.front());
  out["change"] = rows.empty() ? ordered_json() : change_json(rows.front(), viewer);
  out["resources"] = ordered_json::array();
  for (const auto& use : inspected_row.resources)
    out["resources"].push_back({{"name", use.name},
                                {"capacity", use.capacity},
                                {"allocatable", use.allocatable},
                                {"requested", use.requested.value_or(0)}});
  out["preflight"] = ordered_json::array();
  for (const auto& check : inspected_row.preflight)
    out["preflight"].push_back({{"check", check.name},
                                {"state", to_string(check.state)},
                                {"found", in_both(check, &api::found_text)},
                                {"remedy", in_both(check, &api::remedy_text)}});
  return out;
}

std::optional<double> days_until(double cores, const trend& trend) {
  static constexpr std::size_t fewest_points = 12;
  static constexpr double day = 86'400, least_growth = 1e-6;
  if (trend.size() < fewest_points) return std::nullopt;
  double mean_time = 0, mean_value = 0;
  for (const auto& [time, value] : trend) {
    mean_time += static_cast<double>(time) / static_cast<double>(trend.size());
    mean_value += value / static_cast<double>(trend.size());
  }
  double above = 0, below = 0;
  for (const auto& [time, value] : trend) {
    const auto distance = static_cast<double>(time) - mean_time;
    above += distance * (value - mean_value);
    below += distance * distance;
  }
  if (below == 0 || !std::isfinite(above)) return std::nullopt;
  const auto per_day = above / below * day;
  const auto last = trend.back();
  const auto now = mean_value + above / below * (static_cast<double>(last.first) - mean_time);
  if (per_day < least_growth) return std::nullopt;
  return std::max(0.0, (cores - now) / per_day);
}

ordered_json capacity_view(const picture& picture, const viewer&, const trends& trends, const text::phrase& message) {
  std::map<std::pair<std::string, std::string>, capacity_row> rows;
  for (const auto& node : shares_of(picture)) {
    std::set<std::string> models;
    for (const auto& card : node.cards) {
      auto& row = rows[{card.card->model, std::string(node.mode())}];
      row.add(node, card);
      if (models.insert(card.card->model).second) ++row.nodes;
    }
  }
  auto models = ordered_json::array();
  for (const auto& [key, row] : rows) {
    const auto trend = trends.find(key);
    const auto days = trend == trends.end() ? std::nullopt : days_until(static_cast<double>(row.cores), trend->second);
    models.push_back({{"model", key.first},
                      {"mode", key.second},
                      {"nodes", row.nodes},
                      {"cards", row.cards},
                      {"usable", row.usable},
                      {"free", row.free},
                      {"unhealthy", row.unhealthy},
                      {"cordoned", row.cordoned},
                      {"cores", row.cores},
                      {"usedCores", row.used_cores},
                      {"memoryMiB", row.memory_mib},
                      {"usedMiB", row.used_mib},
                      {"strandedCores", row.stranded_cores},
                      {"strandedMiB", row.stranded_mib},
                      {"strandedCards", row.stranded_cards},
                      {"daysUntilFull", days ? ordered_json(std::round(*days * 10) / 10) : ordered_json()}});
  }
  return {{"models", std::move(models)},
          {"trendMessage", text::message_text(message)},
          {"trendMessages", in_languages(message)}};
}

}  // namespace cli::console
