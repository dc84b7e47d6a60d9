#include "api/gpu_quota.hpp"

#include <nlohmann/json.hpp>

namespace api {
namespace {

using nlohmann::json;

constexpr std::int64_t most_cards = 1'000'000, cores_a_card = 100;

using trouble = std::optional<std::string>;

trouble read_models(const std::string& ns, const json& object, quota::tenant& tenant) {
  if (!object.is_object()) return ns + ".quota is no object; allowed is {\"<model>\": <cards>}";
  tenant.only_models.emplace();
  for (const auto& [model, cards] : object.items()) {
    if (!cards.is_number_integer() || cards < 0 || cards > most_cards)
      return ns + ".quota[\"" + model + "\"] is " + cards.dump() + "; allowed are whole numbers of cards from 0 to " +
             std::to_string(most_cards);
    quota::tenant::limit limit;
    limit.model = model;
    limit.nominal[static_cast<std::size_t>(quota::resource::cores)] = cards.get<std::int64_t>() * cores_a_card;
    tenant.limits.push_back(std::move(limit));
    tenant.only_models->push_back(model);
  }
  return {};
}

trouble read_pools(const std::string& ns, const json& object, quota::tenant& tenant) {
  if (object.is_null()) return {};
  if (!object.is_array()) return ns + ".pool is no list; allowed is [\"<pool>\", ...]";
  for (const auto& entry : object) {
    if (!entry.is_string()) return ns + ".pool has " + entry.dump() + "; allowed are names of pools";
    if (!tenant.only_pools) tenant.only_pools.emplace();
    tenant.only_pools->push_back(entry.get<std::string>());
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
    quota::tenant tenant;
    tenant.name_space = ns;
    for (const auto& [key, value] : entry.items()) {
      trouble no;
      if (key == "quota") {
        no = read_models(ns, value, tenant);
      } else if (key == "pool") {
        no = read_pools(ns, value, tenant);
      } else {
        no = ns + " has \"" + key + "\"; allowed are quota and pool";
      }
      if (no) return std::unexpected(std::move(*no));
    }
    if (!tenant.only_models) tenant.only_models.emplace();  // as the Go program reads it: no quota, no cards
    out.push_back(std::move(tenant));
  }
  return out;
}

}  // namespace api
