#include "controller/teardown.hpp"

namespace controller {
namespace {

/// Only a class of its own may name what the destructor of a context does first.
struct opened_context : boost::asio::io_context {
  using io_context::shutdown;
};

}  // namespace

void destroy_waiting(boost::asio::io_context& context) {
  void (boost::asio::execution_context::*shutdown)() = &opened_context::shutdown;
  (context.*shutdown)();
}

}  // namespace controller
