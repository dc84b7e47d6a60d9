#pragma once
// A body as gzip (RFC 1952), for answers that are large: Boost.Beast's deflate, which we link anyway.

#include <string>
#include <string_view>

namespace controller {

/// Equal bytes for equal text: no name and no time is in it.
std::string gzip(std::string_view text);

}  // namespace controller
