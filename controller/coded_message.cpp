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

namespace {

text::phrase_code code_in(const json& object) {
  text::phrase_code out{kube::text_in(object, "cause"), {}};
  const auto match = out.empty() ? object.end() : object.find("parameters");
  if (match != object.end() && match->is_object())
    for (const auto& [name, value] : match->items())
      if (value.is_string() && out.parameters.size() < text::most_phrase_parameters)
        out.parameters[name] = value.get<std::string>();
  return out;
}

}  // namespace

text::phrase message_of(const json& object) { return phrase_of(code_in(object), kube::text_in(object, "message")); }

text::phrase quoted_message_of(const json& object) {
  return quoted_phrase_of(code_in(object), kube::text_in(object, "message"));
}

}  // namespace controller
