#pragma once
// The coroutine type of every operation that waits: runs on the one loop thread, cancelled through asio's cancellation
// slots.

#include <boost/asio/awaitable.hpp>

#include "kube/error.hpp"

namespace kube {

template <class T>
using task = boost::asio::awaitable<result<T>>;

}  // namespace kube
