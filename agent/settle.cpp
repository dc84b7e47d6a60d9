#include "agent/settle.hpp"

#include "agent/cards/resident.hpp"
#include "controller/sleep.hpp"

namespace agent {

boost::asio::awaitable<void> settle() {
  const bool has_started = co_await controller::sleep_for(controller::milliseconds(15'000));
  if (has_started) cards::release_unchanged_pages();
}

}  // namespace agent
