#pragma once
// metav1.Condition lists as we write them into status. A condition's time moves only when its status does, so that
// writing the same truth twice gives the same bytes, and a settled object is not written at all.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "text/phrase.hpp"

namespace controller {

struct condition {
  std::string type;                ///< "Ready"
  std::string status = "Unknown";  ///< "True", "False", "Unknown"
  std::string reason;              ///< CamelCase, not empty
  text::phrase message;            ///< for people; its English is cut at 32 KiB
  std::int64_t generation = 0;     ///< observedGeneration
  friend bool operator==(const condition&, const condition&) = default;
};

/// Puts `condition` into the list (an array, or null) in place of the one of the same type, or at the end. `now` as
/// metav1.Time (rfc3339_seconds). True when anything but the time changed.
bool set_condition(nlohmann::json& list, const condition& condition, std::string_view now);
/// Takes a condition out that no longer applies. True when it was there.
bool remove_condition(nlohmann::json& list, std::string_view type);
/// The condition of this type; null when there is none.
const nlohmann::json* find_condition(const nlohmann::json& list, std::string_view type);
/// Is `type` in the list with status "True"?
bool condition_true(const nlohmann::json& list, std::string_view type);

/// Does the object already say what we want it to? For a status that is ours whole: a server-side apply takes away what
/// is left out of it, so a member that only the object has is a difference too. Null, empty and missing are the same,
/// as the API server drops them.
bool same_status(const nlohmann::json& want, const nlohmann::json& is);

}  // namespace controller
