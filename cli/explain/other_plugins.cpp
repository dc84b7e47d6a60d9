#include "cli/explain/other_plugins.hpp"

#include "quota/vocabulary.hpp"
#include "reconcilers/verify/verify.hpp"
#include "text/list.hpp"
#include "text/messages.hpp"
#include "text/text.hpp"

namespace cli {

kube::quantities foreign_amounts(const kube::pod& pod, const known_resources& known, const picture& picture) {
  const auto& keys = picture.book->keys();
  kube::quantities out;
  for (auto& [key, amount] : reconcilers::verify::asked_by(pod)) {
    const bool is_ours = quota::known(keys.engine_name(key)) || keys(key);
    if (amount > 0 && !is_ours && known.offered.contains(key) && known.class_of(key).empty())
      out.emplace_back(key, amount);
  }
  return out;
}

foreign_room::foreign_room(const picture& picture) {
  for (const auto& pod : picture.pods.all())
    if (!pod.node_name.empty() && !pod.finished()) take(pod.node_name, reconcilers::verify::asked_by(pod));
}

std::int64_t foreign_room::left(const kube::node& node, std::string_view key) const {
  const auto all = kube::amount(node.allocatable, key);
  const auto here = held_.find(node.key.name);
  if (here == held_.end()) return all;
  const auto held = here->second.find(key);
  return held == here->second.end() ? all : all - held->second;
}

text::phrase foreign_room::refusal(const kube::node& node, const kube::quantities& amounts) const {
  for (const auto& [key, amount] : amounts)
    if (const auto rest = left(node, key); rest < amount)
      return {"explain.closed_by.other_plugin",
              {{"key", text::shown(key, 320)},
               {"amount", std::to_string(amount)},
               {"left", std::to_string(std::max<std::int64_t>(rest, 0))},
               {"all", std::to_string(kube::amount(node.allocatable, key))}}};
  return {};
}

void foreign_room::take(const std::string& node, const kube::quantities& amounts) {
  if (amounts.empty()) return;
  auto& here = held_[node];
  for (const auto& [key, amount] : amounts) here[key] += amount;
}

std::string words_of(const nodes_by_refusal& refusals, text::language locale) {
  std::vector<std::string> texts;
  for (const auto& [text, count] : refusals)
    texts.push_back(text::message("explain.simulate.nodes", locale,
                                  {{"nodes", text::counted(count, "explain.nodes", locale)}, {"text", text}}));
  return text::joined(texts, text::message("finding.remedy", locale));
}

foreign_fit fit_of(const picture& picture, const foreign_room& room, const node_rules* rules,
                   const kube::quantities& amounts, text::language locale) {
  foreign_fit out;
  std::map<std::string, std::size_t> refusals;
  for (const auto& node : picture.nodes.all()) {
    if (node.unschedulable || node.ready == kube::condition_status::no) continue;
    auto refusal = rules ? rules->refuses(node, locale) : std::string();
    if (refusal.empty()) refusal = words_of(room.refusal(node, amounts), locale);
    if (!refusal.empty()) {
      ++refusals[std::move(refusal)];
      continue;
    }
    ++out.nodes;
    const auto& key = amounts.front().first;
    if (!out.best || room.left(node, key) > room.left(*out.best, key)) out.best = &node;
  }
  out.refusals = words_of(nodes_by_refusal(refusals.begin(), refusals.end()), locale);
  return out;
}

std::string keys_in(const kube::quantities& amounts, text::language locale) {
  std::vector<std::string> keys;
  for (const auto& [key, amount] : amounts) keys.push_back(text::shown(key, 320));
  return some_of(keys, 3, locale);
}

}  // namespace cli
