#include "api/placement.hpp"

#include <nlohmann/json.hpp>

namespace api {
namespace {

using nlohmann::json;

constexpr std::int64_t whole_card = 100, most_mib = std::int64_t{1} << 30;

/// 0 where it is left out.
std::optional<std::int64_t> amount_in(const json& object, const char* key, std::int64_t most) {
  const auto match = object.find(key);
  if (match == object.end()) return 0;
  if (!match->is_number_unsigned() || match->get<std::uint64_t>() > static_cast<std::uint64_t>(most)) return {};
  return match->get<std::int64_t>();
}

std::optional<placed_share> share_in(const json& object) {
  if (!object.is_object()) return {};
  const auto card = object.find("card"), whole = object.find("whole");
  const auto cores = amount_in(object, "cores", whole_card), burst = amount_in(object, "burstCores", whole_card),
             memory = amount_in(object, "memoryMiB", most_mib);
  if (card == object.end() || !card->is_string() || !cores || !burst || !memory) return {};
  return placed_share{card->get<std::string>(), static_cast<std::int32_t>(*cores), static_cast<std::int32_t>(*burst),
                      *memory, whole != object.end() && whole->is_boolean() && whole->get<bool>()};
}

}  // namespace

std::optional<placement> placement_in(std::string_view text) {
  const auto object = json::parse(text, nullptr, false);
  if (!object.is_object() || object.value("v", json()) != 1) return {};
  const auto node = object.value("node", json()), containers = object.value("containers", json::object()),
             counts = object.value("counts", json::object());
  if (!node.is_string() || !containers.is_object() || !counts.is_object()) return {};
  placement out{.node = node.get<std::string>(), .containers = {}, .counts = {}};
  for (const auto& [name, shares] : containers.items()) {
    if (!shares.is_array()) return {};
    for (const auto& entry : shares) {
      auto share = share_in(entry);
      if (!share) return {};
      out.containers[name].push_back(std::move(*share));
    }
  }
  for (const auto& [key, amount] : counts.items()) {
    if (!amount.is_number_unsigned()) return {};
    out.counts[key] = amount.get<std::int64_t>();
  }
  return out;
}

}  // namespace api
