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
  if (!object.is_object()) return {};
  // References alone: a copy of a value goes as deep as the text, and so does its stack.
  const auto none = json::object();
  const auto member = [&](const char* key) -> const json& {
    const auto match = object.find(key);
    return match == object.end() ? none : *match;
  };
  const auto &version = member("v"), &node = member("node"), &containers = member("containers"),
             &counts = member("counts");
  if (!version.is_number() || version != 1) return {};
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
