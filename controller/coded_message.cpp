#include "controller/coded_message.hpp"

#include <nlohmann/json.hpp>

#include "kube/json_text.hpp"

namespace controller {
using nlohmann::json;

void set_message(json& object, const text::phrase& message) {
  set_message(object, text::message_text(message), code_of(message));
}

void set_message(json& object, const std::string& message, const text::phrase_code& code) {
  object["message"] = message;
  object.erase("cause");
  object.erase("parameters");
  if (code.empty()) return;
  object["cause"] = code.cause;
  if (!code.parameters.empty()) object["parameters"] = code.parameters;
}

text::phrase message_of(const json& object) {
  text::phrase_code code{kube::text_in(object, "cause"), {}};
  const auto message = kube::text_in(object, "message");
  if (code.empty()) return message;
  const auto match = object.find("parameters");
  if (match != object.end() && match->is_object())
    for (const auto& [name, value] : match->items())
      if (value.is_string() && code.parameters.size() < text::most_phrase_parameters)
        code.parameters[name] = value.get<std::string>();
  return phrase_of(code, message);
}

}  // namespace controller
