#pragma once
// The words of every finding, in both languages, as one table. Placeholders: {field} {value} {allowed} {hint} {other}
// {count}.

#include <string_view>

#include "reconcilers/crl/finding.hpp"

namespace reconcilers::crl {

struct words {
  std::string_view wrong;             ///< what is wrong, with field and value
  std::string_view allowed;           ///< what may stand there, when the finding itself does not say
  std::string_view remedy;            ///< what to do
  std::string_view remedy_with_hint;  ///< what to do when we can guess what was meant; empty: `remedy`
};

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
