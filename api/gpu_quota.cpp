#include "api/gpu_quota.hpp"

#include <nlohmann/json.hpp>

namespace reconcilers {
namespace {

using nlohmann::json;

constexpr std::int64_t most_cards = 1'000'000, cores_a_card = 100;

using trouble = std::optional<std::string>;

trouble read_models(const std::string& ns, const json& of, quota::tenant& into) {
  if (!of.is_object()) return ns + ".quota is no object; allowed is {\"<model>\": <cards>}";
  into.only_models.emplace();
  for (const auto& [model, cards] : of.items()) {
    if (!cards.is_number_integer() || cards < 0 || cards > most_cards)
      return ns + ".quota[\"" + model + "\"] is " + cards.dump() + "; allowed are whole numbers of cards from 0 to " +
             std::to_string(most_cards);
    quota::tenant::limit one;
    one.model = model;
    one.nominal[static_cast<std::size_t>(quota::resource::cores)] = cards.get<std::int64_t>() * cores_a_card;
    into.limits.push_back(std::move(one));
    into.only_models->push_back(model);
  }
  return {};
}

trouble read_pools(const std::string& ns, const json& of, quota::tenant& into) {
  if (of.is_null()) return {};
  if (!of.is_array()) return ns + ".pool is no list; allowed is [\"<pool>\", ...]";
  for (const auto& one : of) {
    if (!one.is_string()) return ns + ".pool has " + one.dump() + "; allowed are names of pools";
    if (!into.only_pools) into.only_pools.emplace();
    into.only_pools->push_back(one.get<std::string>());
  }
  return {};
}

}  // namespace

std::expected<std::vector<quota::tenant>, std::string> read_gpu_quota(std::string_view text) {
  std::vector<quota::tenant> out;
  if (text.empty()) return out;
  json read;
  try {
    read = json::parse(text);
  } catch (const json::parse_error& thrown) {
    return std::unexpected("not JSON: at byte " + std::to_string(thrown.byte));
  }
  if (!read.is_object()) return std::unexpected("no JSON object; allowed is {\"<namespace>\": {\"quota\": {...}}}");
  for (const auto& [ns, entry] : read.items()) {
    if (!entry.is_object())
      return std::unexpected(ns + " is no object; allowed is {\"quota\": {...}, \"pool\": [...]}");
    quota::tenant one;
    one.name_space = ns;
    for (const auto& [key, value] : entry.items()) {
      trouble no;
      if (key == "quota") {
        no = read_models(ns, value, one);
      } else if (key == "pool") {
        no = read_pools(ns, value, one);
      } else {
        no = ns + " has \"" + key + "\"; allowed are quota and pool";
      }
      if (no) return std::unexpected(std::move(*no));
    }
    if (!one.only_models) one.only_models.emplace();  // as the Go program reads it: no quota, no cards
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace reconcilers
