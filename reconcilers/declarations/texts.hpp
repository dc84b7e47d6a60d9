#pragma once
// The words of every finding, in both languages, as one table. Placeholders: {field} {value} {allowed} {hint} {other}
// {count}.

#include <string_view>

#include "reconcilers/declarations/finding.hpp"

namespace reconcilers::crl {

struct texts {
  code of;
  std::string_view name;
  severity level;
  words en, zh;
  const words& in(language which) const { return which == language::zh ? zh : en; }
};

const texts& texts_of(code c) noexcept;
/// The whole table, in the order of `code`.
std::span<const texts> all_texts() noexcept;

}  // namespace reconcilers::crl
