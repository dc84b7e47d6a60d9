#pragma once
// What the engine says, in English. Tests that compare sentences have "golden" in their names.

#include <string>

#include "api/engine_words.hpp"

namespace quota {

template <class Fact>
std::string english(const Fact& fact) {
  return std::string(api::words_of(fact, text::language::en));
}
template <class Fact>
std::string english(const Fact& fact, std::span<const node_view> nodes) {
  return api::words_of(fact, nodes, {}, text::language::en);
}

}  // namespace quota
