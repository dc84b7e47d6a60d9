#pragma once
// What the product itself gives as a reason, found in what people paste: reasons of conditions and events
// ("UntoleratedTaint"), codes of findings ("plugin_missing"), keys of messages ("status.node.untolerated"), and
// sentences of the extender, the plugins and the admission policies. The words are rows of the catalogue; a new row is
// known without code.

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "text/message.hpp"

namespace cli {

/// A reason as the text has it, and the key of its row: "reason.node.stuck", "verify.plugin_missing",
/// "start.not_placed".
struct own_reason {
  std::string name, key;
  friend auto operator<=>(const own_reason&, const own_reason&) = default;
};

/// Each once, in the order of keys. A reason of one word, such as Stuck, counts only where it is the whole text, stands
/// behind "reason", or is that of an event about one of our objects.
std::set<own_reason> own_reasons_in(std::string_view text);

/// All that it knows by name: codes of findings, then reasons.
std::vector<std::string> own_names();

struct reason_words {
  std::string title, means, look, act;  ///< each of them may be empty but the first two
};
reason_words words_of(const own_reason& reason, text::language locale);

}  // namespace cli
