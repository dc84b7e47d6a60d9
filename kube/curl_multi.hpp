#pragma once
// One CURLM driven by asio. libcurl owns every file descriptor: we only lend them to the reactor (assign) and give them
// back (release), the resolver's socket pairs among them. Loop thread only.
//
// Lifetimes: transfers hold the curl_multi, handlers hold only weak references, so dropping the last transfer of a
// replaced pool closes its connections. libcurl must not be called from inside its own callbacks: nothing here resumes
// a coroutine directly.

#include <curl/curl.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <unordered_map>

namespace kube {

class curl_multi : public std::enable_shared_from_this<curl_multi> {
 public:
  /// Gets the news that an easy handle has finished. Called outside of libcurl, with the handle already removed; must
  /// not throw, and must only note the code and post.
  class completion {
   public:
    virtual void finished(CURLcode code) = 0;

   protected:
    ~completion() = default;
  };

  /// `max_connections` to the one host, running ones included; 0: no cap, for lanes with endless streams (a capped lane
  /// whose connections are all streams never starts the next request, nor its timeout).
  curl_multi(boost::asio::any_io_executor executor, long max_connections);
  ~curl_multi();
  curl_multi(const curl_multi&) = delete;
  curl_multi& operator=(const curl_multi&) = delete;

  /// Both must outlive the transfer; `completion` hears of it exactly once unless it is cancelled. False: called from
  /// inside a callback of libcurl, post and try again.
  bool start(CURL* easy, completion* completion);
  /// Takes the handle out; a transfer in the middle loses its connection. Harmless when it has finished.
  void cancel(CURL* easy);

 private:
  struct watched {
    explicit watched(const boost::asio::any_io_executor& executor) : descriptor(executor) {}
    boost::asio::posix::stream_descriptor descriptor;
    int want = 0;
    bool reading = false, writing = false;
  };
  using watched_ptr = std::shared_ptr<watched>;

  static int on_socket(CURL*, curl_socket_t fd, int events, void* self, void*);
  static int on_timer(CURLM*, long timeout_ms, void* self);
  void watch(curl_socket_t fd, int events);
  void forget(curl_socket_t fd);
  void arm(curl_socket_t fd, const watched_ptr& socket);
  void ready(curl_socket_t fd, const watched_ptr& socket, int event);
  void arm_timer(long timeout_ms);
  void act(curl_socket_t fd, int events);
  void collect();

  boost::asio::any_io_executor executor_;
  boost::asio::steady_timer timer_;
  CURLM* multi_;
  std::unordered_map<curl_socket_t, watched_ptr> sockets_;
  bool inside_ = false;
};

}  // namespace kube
