#pragma once
// What the agent's programs have in common once they are up.

#include <boost/asio/awaitable.hpp>

namespace agent {

/// After everything has been read, asked and written for the first time: lets go of memory that only the start needed.
boost::asio::awaitable<void> settle();

}  // namespace agent
