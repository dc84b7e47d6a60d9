#pragma once
// The end of a program on a loop. Coroutines that still wait when it ends are destroyed with the loop, and their locals
// would then refer to what has been destroyed before it.

#include <boost/asio/io_context.hpp>

namespace controller {

/// Destroys all coroutines and callbacks that wait. Call it when the loop has ended and before anything else is
/// destroyed. The loop cannot run again.
void destroy_waiting(boost::asio::io_context& context);

}  // namespace controller
