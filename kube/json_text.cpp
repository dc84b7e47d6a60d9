#include "kube/json_text.hpp"

#include <charconv>
#include <nlohmann/json.hpp>

namespace kube {

std::string text_at(const nlohmann::json& object, const nlohmann::json_pointer<std::string>& pointer) {
  if (!object.contains(pointer)) return {};
  const auto& found = object.at(pointer);
  return found.is_string() ? found.get<std::string>() : std::string();
}

std::string text_at(const nlohmann::json& object, const std::string& pointer) {
  return text_at(object, nlohmann::json::json_pointer(pointer));
}

std::string text_in(const nlohmann::json& object, const char* key) {
  const auto match = object.find(key);
  return match != object.end() && match->is_string() ? match->get<std::string>() : std::string();
}

std::int64_t number_in(const nlohmann::json& object, const char* key, std::int64_t otherwise) {
  const auto match = object.find(key);
  return match != object.end() && match->is_number_integer() ? match->get<std::int64_t>() : otherwise;
}

std::uint64_t version_of(const nlohmann::json& object) {
  const auto text = text_at(object, "/metadata/resourceVersion");
  std::uint64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

}  // namespace kube
