#pragma once
// Our entry in a configuration that others have written too. Merging and taking it out again are insertions and
// deletions of text: not a byte of the rest changes, comments and order stay. The result is parsed again and compared,
// and taken apart again and compared, before anyone gets it; where that cannot be, the place is named.

#include <expected>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "scheduler_config/judge/verdict.hpp"

namespace scheduler_config {

struct addition {
  nlohmann::ordered_json extender;  ///< with urlPrefix, by which it is known again
  std::string scheduler_name;       ///< of a profile to add; empty: extenders serve every profile there is
};

/// A file that has one of our additions already gets the new one in its place. The error is a finding of the file that
/// ends kube-scheduler, or one of the codes from no_safe_place on. `runs`: a kube-scheduler is running with the file,
/// so it is right, whatever we know of plugins of its image, feature gates and fields of a newer version; only what the
/// merge adds is judged.
std::expected<std::string, finding> merge(std::string_view text, const addition& addition, const server& server = {},
                                          bool runs = false);

/// The first finding of `after` that ends kube-scheduler and that `before` does not have, whatever its line. Null:
/// none.
const finding* added_end(const findings& before, const findings& after);

/// The bytes from before. `url` is that of our extender, for files in which there can be no comment (JSON).
std::expected<std::string, finding> unmerge(std::string_view text, std::string_view url = {});

/// Ours, and default-scheduler next to it where no profile was written, because then there was that one.
nlohmann::ordered_json profiles_for(const document& document, std::string_view scheduler_name);

/// One line of JSON with a blank after each comma and colon; YAML readers take it inside of brackets.
std::string write_flow(const nlohmann::ordered_json& value);

}  // namespace scheduler_config
