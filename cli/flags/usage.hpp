#pragma once
// What is wrong with the words of a command line, before its flags are read: --lang may be among what is wrong.

#include <string>
#include <string_view>
#include <vector>

#include "text/message.hpp"

namespace cli {

/// Of --lang, the last one; without it of the environment, as of LC_ALL, LC_MESSAGES and LANG: "zh_CN.UTF-8".
text::language language_asked(const std::vector<std::string>& words);

/// A message of CLI11, which is English, in the words of the catalogue; one of another form as it is.
std::string usage_problem(std::string_view message, text::language locale);

}  // namespace cli
