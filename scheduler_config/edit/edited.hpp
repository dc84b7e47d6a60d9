#pragma once
// What a person has changed in our part of a file. It goes when the part is taken out or written again, so it is
// reported.

#include <string>
#include <string_view>
#include <vector>

#include "scheduler_config/edit/render.hpp"

namespace scheduler_config {

struct edit {
  text::yaml::place location;
  text::phrase field;         ///< extenders[0].weight, or a comment
  text::phrase is, expected;  ///< as JSON, certificates and keys left out; empty: not there
};

/// `bare` is what unmerge makes of `text`. One a value, in the order of the file.
std::vector<edit> edits_of(std::string_view text, std::string_view bare, const addition& addition);

/// What was merged, as far as no one says it: address, certificates, profile and those of our resources that are there.
/// Of `settings`, url, resources and not_offered count.
addition merged_into(std::string_view text, std::string_view bare, extender_settings settings);

}  // namespace scheduler_config
