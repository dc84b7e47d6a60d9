#pragma once
// One request on its way through libcurl: the easy handle with its options, the answer as it arrives, and what a
// failure means for the person who reads it. Owned by the coroutine that waits for it.

#include <curl/curl.h>

#include <array>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "kube/config.hpp"
#include "kube/credentials.hpp"
#include "kube/curl_multi.hpp"
#include "kube/transport.hpp"

namespace kube {

/// What a lane has done since start. Bytes are of bodies.
struct lane_counters {
  std::uint64_t requests = 0;  ///< sent, retries after 401 included
  std::uint64_t failures = 0;  ///< without an HTTP answer
  std::uint64_t bytes_in = 0, bytes_out = 0;
  std::uint64_t connections = 0;  ///< sockets opened, attempts that failed included
  std::uint64_t resets = 0;       ///< times the lane gave up its idle connections
  int in_flight = 0;
  int waiting = 0;  ///< for one of the lane's slots
};

/// Memory for the bodies of all answers that are being received, in bytes: one for a transport. Each grows by copies,
/// and old and new count while both are there, so `used` is never above `most`.
struct body_memory {
  std::size_t most = 256u << 20;
  std::size_t used = 0;
};

struct transfer_limits {
  std::chrono::milliseconds connect{10'000};
  std::size_t body = 256u << 20;      ///< of a `send` answer
  std::size_t error_body = 1u << 20;  ///< of a stream's answer that is no stream
  body_memory* bodies = nullptr;      ///< outlives the transfer; null: no bound for all together
  long buffer = 16 << 10;  ///< bytes libcurl reads at once; a TLS record has no more, so more would gain nothing
};

class curl_transfer final : public curl_multi::completion {
 public:
  /// `request`, `config`, `count` and `sink` (null: collect the body) must outlive the transfer. `extra` are more
  /// header lines.
  curl_transfer(boost::asio::any_io_executor executor, const cluster_config& config, const request& request,
                const credential& credential, const std::vector<std::string>& extra, const chunk_sink* sink,
                transfer_limits limits, lane_counters& count);
  ~curl_transfer();
  curl_transfer(const curl_transfer&) = delete;
  curl_transfer& operator=(const curl_transfer&) = delete;

  void finished(CURLcode code) override;

  CURL* easy() const { return easy_; }
  bool done() const { return done_; }
  /// Cancelled when the transfer is done: what a coroutine sleeps on.
  boost::asio::steady_timer& alarm() { return alarm_; }
  std::chrono::steady_clock::time_point last_byte() const { return last_byte_; }

  /// After done(): the answer or the error. Rethrows what the sink threw.
  result<response> take();
  /// The connection may be dead although no one said so, or the peer is gone: do not trust its idle siblings.
  bool suspect() const {
    return done_ && code_ != CURLE_OK && code_ != CURLE_WRITE_ERROR && code_ != CURLE_ABORTED_BY_CALLBACK;
  }

 private:
  static std::size_t on_header(char* data, std::size_t, std::size_t size, void* self);
  static std::size_t on_body(char* data, std::size_t, std::size_t size, void* self);
  static int on_ready(void* self, char*, char*, int, int);
  static int on_connect(void* self, curl_socket_t fd, curlsocktype purpose);
  void header(std::string_view line);
  bool body(std::string_view bytes);
  /// Memory for so many bytes of the body; false: there is none.
  bool reserve(std::size_t size);
  void set_target();
  void set_trust();
  void set_headers(const std::vector<std::string>& extra);
  void set_body();

  const cluster_config& config_;
  const request& request_;
  credential credential_;
  const chunk_sink* sink_;
  transfer_limits limits_;
  lane_counters& count_;
  boost::asio::steady_timer alarm_;
  CURL* easy_;
  curl_slist* headers_ = nullptr;
  curl_slist* connect_to_ = nullptr;
  std::array<char, CURL_ERROR_SIZE> detail_{};
  std::chrono::steady_clock::time_point last_byte_ = std::chrono::steady_clock::now();
  response answer_;
  std::size_t held_ = 0;  ///< of `limits_.bodies`
  enum class stopped { no, by_sink, too_big, no_memory, cut, not_allowed } stopped_ = stopped::no;
  std::exception_ptr thrown_;
  CURLcode code_ = CURLE_OK;
  bool done_ = false;
};

/// "GET /api/v1/pods": the operation as messages name it, without the query.
std::string operation_of(const request& request);

/// What went wrong, in one line that says what to do. `detail` is libcurl's own text, `os_errno` the system's.
error transfer_error(const request& request, const cluster_config& config, CURLcode code, long os_errno,
                     std::string_view detail, std::chrono::milliseconds connect_limit);

}  // namespace kube
