#pragma once
// A message in the status of an object: in English for people with kubectl, and next to it `cause` and `parameters`, by
// which other readers say it in their own language (text/phrase_code.hpp).

#include <nlohmann/json_fwd.hpp>

#include "text/phrase_code.hpp"

namespace controller {

/// Sets `message` of the object, and `cause` and `parameters` where it has them; otherwise these two go.
void set_message(nlohmann::json& object, const text::phrase& message);
void set_message(nlohmann::json& object, const std::string& message, const text::phrase_code& code);
/// The phrase again; where its code is not known here, the message itself.
text::phrase message_of(const nlohmann::json& object);
/// The same for people, as text::quoted_phrase_of has it.
text::phrase quoted_message_of(const nlohmann::json& object);

}  // namespace controller
