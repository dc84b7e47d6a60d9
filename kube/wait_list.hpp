#pragma once
// Coroutines of one loop wait for an event, first come first served. Nothing is posted and nothing is locked: each
// waiter sleeps on its own timer, and a wake-up cancels that timer. Waiters share ownership of the list, because a
// waiting coroutine can be destroyed after the list's owner.

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <deque>
#include <memory>

namespace kube {

enum class woken { by_event, by_deadline, by_cancellation };

class wait_list {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// Sleeps until notified, until the deadline, or until the coroutine is cancelled.
  static boost::asio::awaitable<woken> wait(std::shared_ptr<wait_list> list, time_point deadline) {
    waiter self(co_await boost::asio::this_coro::executor, *list);
    self.timer.expires_at(deadline);
    co_await self.timer.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    if (self.notified) co_return woken::by_event;
    const auto state = co_await boost::asio::this_coro::cancellation_state;
    co_return state.cancelled() != boost::asio::cancellation_type::none ? woken::by_cancellation : woken::by_deadline;
  }

  /// Wakes the longest waiter; false when no coroutine waits.
  bool notify_one() {
    if (waiting_.empty()) return false;
    wake(waiting_.front());
    waiting_.pop_front();
    return true;
  }
  void notify_all() {
    while (notify_one()) {
    }
  }
  std::size_t size() const { return waiting_.size(); }

 private:
  struct waiter {
    waiter(boost::asio::any_io_executor executor, wait_list& wait_list) : timer(executor), list(wait_list) {
      list.waiting_.push_back(this);
    }
    waiter(const waiter&) = delete;
    waiter& operator=(const waiter&) = delete;
    ~waiter() {
      if (!notified) std::erase(list.waiting_, this);
    }
    boost::asio::steady_timer timer;
    wait_list& list;
    bool notified = false;
  };
  static void wake(waiter* waiter) {
    waiter->notified = true;
    waiter->timer.cancel();
  }

  std::deque<waiter*> waiting_;
};

}  // namespace kube
