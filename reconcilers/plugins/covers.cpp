#include "reconcilers/plugins/covers.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace reconcilers {
namespace {

using nlohmann::json;

/// The member that tells the items of a list apart, or null when they have none.
const char* merge_key(const json& list) {
  for (const auto* key : {"mountPath", "uid", "name"}) {
    if (std::ranges::all_of(list, [&](const json& object) { return object.is_object() && object.contains(key); }))
      return key;
  }
  return nullptr;
}

bool covers_list(const json& is, const json& want) {
  const auto* key = want.empty() ? nullptr : merge_key(want);
  if (!key) {
    return is.size() == want.size() &&
           std::ranges::equal(is, want, [](const json& a, const json& b) { return covers(a, b); });
  }
  return std::ranges::all_of(want, [&](const json& object) {
    return std::ranges::any_of(is, [&](const json& other) {
      return other.is_object() && other.contains(key) && other.at(key) == object.at(key) && covers(other, object);
    });
  });
}

}  // namespace

bool covers(const json& is, const json& want) {
  if (want.is_object()) {
    if (!is.is_object()) return want.empty() && is.is_null();
    return std::ranges::all_of(want.items(), [&](const auto& member) {
      const auto match = is.find(member.key());
      return match == is.end() ? member.value() == json::array() || member.value() == json::object() ||
                                     member.value() == json("") || member.value() == json(false)
                               : covers(*match, member.value());
    });
  }
  if (want.is_array()) return is.is_array() ? covers_list(is, want) : want.empty() && is.is_null();
  return is == want;
}

}  // namespace reconcilers
