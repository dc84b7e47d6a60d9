#pragma once
// The headers of a table, by key.

#include <string>
#include <string_view>
#include <vector>

#include "cli/output/answer.hpp"

namespace cli {

/// The words of TABLE.column.NAME.
std::vector<std::string> headers_of(std::string_view table, std::initializer_list<std::string_view> names,
                                    const bilingual& say);

}  // namespace cli
