#pragma once
// Fields of a pod as JSON that may have any form: what is not as the API has it is as if it were not there.

#include <nlohmann/json.hpp>
#include <string>

namespace cli {

inline const nlohmann::json& member(const nlohmann::json& object, const char* name) {
  static const nlohmann::json none;
  if (!object.is_object()) return none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}
inline std::string text_at(const nlohmann::json& object, const char* name) {
  const auto& found = member(object, name);
  return found.is_string() ? found.get<std::string>() : std::string();
}

}  // namespace cli
