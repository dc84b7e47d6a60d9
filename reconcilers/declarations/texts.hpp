#pragma once
// The words of every finding, in both languages, as one table. Placeholders: {field} {value} {allowed} {hint} {other}
// {count}.

#include <string_view>

#include "reconcilers/declarations/finding.hpp"

namespace reconcilers::declarations {

struct texts {
  error_code kind;
  std::string_view name;
  text::severity level;
  text::message_pattern en, zh;
  const text::message_pattern& in(text::language locale) const { return locale == text::language::zh ? zh : en; }
};

const texts& texts_of(error_code c) noexcept;
/// The whole table, in the order of `code`.
std::span<const texts> all_texts() noexcept;

}  // namespace reconcilers::declarations
