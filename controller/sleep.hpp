#pragma once
// Waiting on the loop, and random numbers for its jitter.

#include <boost/asio/awaitable.hpp>

#include "controller/clock.hpp"

namespace controller {

/// False when the coroutine was cancelled before the time was over.
boost::asio::awaitable<bool> sleep_for(milliseconds how_long);
/// Lets everything else on the loop that is ready run first.
boost::asio::awaitable<void> yield_to_others();

/// Uniform in [0, 1): spreads retries, decides nothing.
double random_jitter();

}  // namespace controller
