#pragma once
// The real recorder: an event_book, and one coroutine that writes what it says. Recording never waits and never fails;
// a note that cannot be written is dropped and counted.

#include <memory>
#include <string>

#include "controller/event_book.hpp"
#include "controller/metrics.hpp"
#include "controller/recorder.hpp"
#include "kube/client.hpp"
#include "kube/wait_list.hpp"

namespace controller {

class event_recorder final : public recorder {
 public:
  /// `api` must outlive the recorder; it should be the fenced one, so that only the leader's events are written.
  event_recorder(kube::client& api, event_settings settings, registry& metrics);

  void record(const object_reference& about, event_type type, std::string_view reason, std::string_view action,
              std::string_view note) override;

  /// Writes in the background until cancelled.
  kube::task<void> run();
  /// Returns when everything that may go out now has gone out. Bound it: the API server may be away.
  kube::task<void> flush();

 private:
  boost::asio::awaitable<void> write(event_write event_write);

  kube::client& api_;
  event_book book_;
  std::shared_ptr<kube::wait_list> recorded_ = std::make_shared<kube::wait_list>();
  family<counter>& events_;  ///< by type and reason
  family<counter>& writes_;  ///< by result
  bool writing_ = false;
};

}  // namespace controller
