#include "controller/coded_message.hpp"

#include <nlohmann/json.hpp>

#include "kube/json_text.hpp"
#include "text/escape.hpp"
#include "text/phrase_code.hpp"

namespace controller {
namespace {

using nlohmann::json;

constexpr std::size_t longest_message = 32'768;  ///< of metav1.Condition

}  // namespace

void set_message(json& object, const text::phrase& message) {
  object["message"] = text::utf8_clean(words_of(message, text::language::en), longest_message);
  object.erase("cause");
  object.erase("parameters");
  const auto code = code_of(message);
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
