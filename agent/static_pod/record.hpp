#pragma once
// The record of a control-plane node (machine.hpp) as the one file it is kept in: JSON, so that in need `jq -r
// .before.manifest` gives a person what was there.

#include <expected>
#include <string>
#include <string_view>

#include "agent/static_pod/machine.hpp"

namespace agent::static_pod {

std::string write(const record& record);
/// The error says what is wrong with it.
std::expected<record, text::phrase> read_record(std::string_view text);

}  // namespace agent::static_pod
