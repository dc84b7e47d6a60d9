#pragma once
// What is wrong with the words of a command line, before its flags are read: --lang may be among what is wrong.

#include <string>
#include <string_view>
#include <vector>

#include "text/message.hpp"

namespace cli {

/// Of --lang, the last one; without it of the environment, as of LC_ALL, LC_MESSAGES and LANG: "zh_CN.UTF-8".
text::language language_asked(const std::vector<std::string>& words);

/// "zh" or "en" of the environment: what a verb answers in without --lang.
std::string language_of_environment();

/// The language of what a verb refuses whose answers have none: of its --lang, or without one of the environment.
text::language language_of_refusal(const std::string& named);

/// What a validator says of a value: words of the catalogue about {name}, the flag, and {value}. It goes through CLI11,
/// which puts the flag before it, to usage_problem.
std::string refusal(std::string_view key, std::string_view value = {});

/// A message of CLI11, which is English or a refusal, in the words of the catalogue; one of another form as it is.
std::string usage_problem(std::string_view message, text::language locale);

}  // namespace cli
