#include "controller/conditions.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "controller/coded_message.hpp"

namespace controller {
namespace {

using nlohmann::json;

json::iterator find(json& list, std::string_view type) {
  return std::ranges::find_if(list, [&](const json& c) { return c.is_object() && c.value("type", "") == type; });
}

bool empty(const json& value) { return value.is_null() || ((value.is_object() || value.is_array()) && value.empty()); }

}  // namespace

bool set_condition(json& list, const condition& condition, std::string_view now) {
  if (!list.is_array()) list = json::array();
  json next = {{"type", condition.type},
               {"status", condition.status},
               {"reason", condition.reason.empty() ? "Unknown" : condition.reason},
               {"observedGeneration", condition.generation}};
  set_message(next, condition.message);
  const auto match = find(list, condition.type);
  if (match == list.end()) {
    next["lastTransitionTime"] = now;
    list.push_back(std::move(next));
    return true;
  }
  const auto since = match->find("lastTransitionTime");
  const bool moved = match->value("status", "") != condition.status || since == match->end();
  next["lastTransitionTime"] = moved ? json(now) : *since;
  if (*match == next) return false;
  *match = std::move(next);
  return true;
}

bool remove_condition(json& list, std::string_view type) {
  if (!list.is_array()) return false;
  const auto match = find(list, type);
  if (match == list.end()) return false;
  list.erase(match);
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
      const auto match = is.find(member.key());
      if (match == is.end() ? !empty(member.value()) : !same_status(member.value(), *match)) return false;
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
