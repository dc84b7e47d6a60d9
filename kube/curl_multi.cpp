#include "kube/curl_multi.hpp"

#include <new>

namespace kube {

curl_multi::curl_multi(boost::asio::any_io_executor executor, long max_connections)
    : executor_(std::move(executor)), timer_(executor_), multi_(curl_multi_init()) {
  if (!multi_) throw std::bad_alloc();
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &curl_multi::on_socket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &curl_multi::on_timer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
  curl_multi_setopt(multi_, CURLMOPT_MAX_HOST_CONNECTIONS, max_connections);
  if (max_connections > 0) curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, max_connections);
}

curl_multi::~curl_multi() {
  curl_multi_cleanup(multi_);  // closes idle connections; calls on_socket for those it still watched
  for (auto& [fd, socket] : sockets_) socket->descriptor.release();
}

bool curl_multi::start(CURL* easy, completion* completion) {
  if (inside_) return false;
  curl_easy_setopt(easy, CURLOPT_PRIVATE, completion);
  if (curl_multi_add_handle(multi_, easy) != CURLM_OK) throw std::bad_alloc();
  return true;  // libcurl has asked for its timer, which does the first step
}

void curl_multi::cancel(CURL* easy) { curl_multi_remove_handle(multi_, easy); }

int curl_multi::on_socket(CURL*, curl_socket_t fd, int events, void* self, void*) {
  auto& multi = *static_cast<curl_multi*>(self);
  if (events == CURL_POLL_REMOVE)
    multi.forget(fd);
  else
    multi.watch(fd, events);
  return 0;
}

int curl_multi::on_timer(CURLM*, long timeout_ms, void* self) {
  static_cast<curl_multi*>(self)->arm_timer(timeout_ms);
  return 0;
}

void curl_multi::watch(curl_socket_t fd, int events) {
  auto& socket = sockets_[fd];
  if (!socket) {
    socket = std::make_shared<watched>(executor_);
    boost::system::error_code failed;
    socket->descriptor.assign(fd, failed);
  }
  socket->want = events;
  arm(fd, socket);
}

/// Removed is not closed: an idle pooled connection comes back under the same number.
void curl_multi::forget(curl_socket_t fd) {
  const auto found = sockets_.find(fd);
  if (found == sockets_.end()) return;
  found->second->want = CURL_POLL_NONE;
  found->second->descriptor.release();
  sockets_.erase(found);
}

/// The reactor is edge-triggered, but every async_wait re-arms it, so data that is already there is seen.
void curl_multi::arm(curl_socket_t fd, const watched_ptr& socket) {
  using boost::asio::posix::descriptor_base;
  if ((socket->want & CURL_POLL_IN) && !socket->reading) {
    socket->reading = true;
    socket->descriptor.async_wait(descriptor_base::wait_read,
                                  [self = weak_from_this(), fd, socket](boost::system::error_code) {
                                    socket->reading = false;
                                    if (const auto multi = self.lock()) multi->ready(fd, socket, CURL_CSELECT_IN);
                                  });
  }
  if ((socket->want & CURL_POLL_OUT) && !socket->writing) {
    socket->writing = true;
    socket->descriptor.async_wait(descriptor_base::wait_write,
                                  [self = weak_from_this(), fd, socket](boost::system::error_code) {
                                    socket->writing = false;
                                    if (const auto multi = self.lock()) multi->ready(fd, socket, CURL_CSELECT_OUT);
                                  });
  }
}

void curl_multi::ready(curl_socket_t fd, const watched_ptr& socket, int event) {
  // Numbers are recycled: only the pointer says that this is still the connection that was waited for.
  const auto same = [&] {
    const auto found = sockets_.find(fd);
    return found != sockets_.end() && found->second == socket;
  };
  if (!same()) return;
  const int wanted = event == CURL_CSELECT_IN ? CURL_POLL_IN : CURL_POLL_OUT;
  if (!(socket->want & wanted)) return;
  act(fd, event);
  if (same()) arm(fd, socket);
}

void curl_multi::arm_timer(long timeout_ms) {
  if (timeout_ms < 0) {
    timer_.cancel();
    return;
  }
  timer_.expires_after(std::chrono::milliseconds(timeout_ms));
  timer_.async_wait([self = weak_from_this()](boost::system::error_code cancelled) {
    if (cancelled) return;
    if (const auto multi = self.lock()) multi->act(CURL_SOCKET_TIMEOUT, 0);
  });
}

void curl_multi::act(curl_socket_t fd, int events) {
  int running = 0;
  inside_ = true;
  curl_multi_socket_action(multi_, fd, events, &running);
  inside_ = false;
  collect();
}

void curl_multi::collect() {
  int left = 0;
  while (const auto* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    auto* easy = message->easy_handle;
    const auto code = message->data.result;
    completion* completion = nullptr;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &completion);
    curl_multi_remove_handle(multi_, easy);
    completion->finished(code);
  }
}

}  // namespace kube
