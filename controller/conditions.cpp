#include "controller/conditions.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "text/escape.hpp"

namespace controller {
namespace {

using json = nlohmann::json;

json::iterator find(json& list, std::string_view type) {
  return std::ranges::find_if(list, [&](const json& c) { return c.is_object() && c.value("type", "") == type; });
}

bool empty(const json& value) { return value.is_null() || ((value.is_object() || value.is_array()) && value.empty()); }

}  // namespace

bool set_condition(json& list, const condition& what, std::string_view now) {
  if (!list.is_array()) list = json::array();
  json next = {{"type", what.type},
               {"status", what.status},
               {"reason", what.reason.empty() ? "Unknown" : what.reason},
               {"message", utf8_clean(what.message, 32768)},
               {"observedGeneration", what.generation}};
  const auto at = find(list, what.type);
  if (at == list.end()) {
    next["lastTransitionTime"] = now;
    list.push_back(std::move(next));
    return true;
  }
  const auto since = at->find("lastTransitionTime");
  const bool moved = at->value("status", "") != what.status || since == at->end();
  next["lastTransitionTime"] = moved ? json(now) : *since;
  if (*at == next) return false;
  *at = std::move(next);
  return true;
}

bool remove_condition(json& list, std::string_view type) {
  if (!list.is_array()) return false;
  const auto at = find(list, type);
  if (at == list.end()) return false;
  list.erase(at);
  return true;
}

const json* find_condition(const json& list, std::string_view type) {
  if (!list.is_array()) return nullptr;
  for (const auto& c : list) {
    if (c.is_object() && c.value("type", "") == type) return &c;
  }
  return nullptr;
}

bool condition_true(const json& list, std::string_view type) {
  const json* const found = find_condition(list, type);
  return found && found->value("status", "") == "True";
}

bool same_status(const json& want, const json& is) {
  if (empty(want) || empty(is)) return empty(want) && empty(is);
  if (want.is_object()) {
    if (!is.is_object()) return false;
    for (const auto& member : want.items()) {
      const auto at = is.find(member.key());
      if (at == is.end() ? !empty(member.value()) : !same_status(member.value(), *at)) return false;
    }
    return std::ranges::all_of(
        is.items(), [&](const auto& member) { return empty(member.value()) || want.contains(member.key()); });
  }
  if (want.is_array()) {
    return is.is_array() &&
           std::ranges::equal(want, is, [](const json& a, const json& b) { return same_status(a, b); });
  }
  return want == is;
}

}  // namespace controller
