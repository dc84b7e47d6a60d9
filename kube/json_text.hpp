#pragma once
// What a JSON object says, where a member may be missing or of another type. A missing text is empty, and a missing
// number is `otherwise`. The object may be any value, null too.

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

/// The resourceVersion of an object as a number, for comparing two answers about one object. 0 where it is missing.
std::uint64_t version_of(const nlohmann::json& object);

}  // namespace kube
