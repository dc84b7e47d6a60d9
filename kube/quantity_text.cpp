#include "kube/quantity_text.hpp"

#include <array>

namespace kube {
namespace {

// unicode.IsSpace of Go in UTF-8, without the ASCII ones that JSON escapes, and U+2028 and U+2029, which Go escapes.
constexpr std::array<std::string_view, 18> blanks{
    " ",      "\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004",
    "\u2005", "\u2006", "\u2007", "\u2008", "\u2009", "\u200a", "\u202f", "\u205f", "\u3000",
};

}  // namespace

std::string_view unpadded_quantity(std::string_view text) {
  for (bool any = true; any;) {
    any = false;
    for (const auto blank : blanks) {
      if (text.starts_with(blank)) text.remove_prefix(blank.size()), any = true;
      if (text.ends_with(blank)) text.remove_suffix(blank.size()), any = true;
    }
  }
  return text;
}

}  // namespace kube
