#pragma once
// What a JSON object says, where a member may be missing or of another type: then a text is empty and a number is the
// other one. Any value may be asked, null too.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace kube {

/// By JSON pointer: "/metadata/name".
std::string text_at(const nlohmann::json& object, const nlohmann::json_pointer<std::string>& pointer);
std::string text_at(const nlohmann::json& object, const std::string& pointer);

/// Of a member.
std::string text_in(const nlohmann::json& object, const char* key);
std::int64_t number_in(const nlohmann::json& object, const char* key, std::int64_t otherwise = 0);

}  // namespace kube
