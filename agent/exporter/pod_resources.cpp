#include "agent/exporter/pod_resources.hpp"

#include <curl/curl.h>
#include <strings.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <new>
#include <optional>
#include <system_error>

#include "kube/curl_multi.hpp"
#include "kube/wire.hpp"
#include "text/escape.hpp"

namespace agent::exporter {
namespace {

namespace asio = boost::asio;
using kube::errc;
using kube::wire::each_field, kube::wire::field;

constexpr std::size_t prefix_length = 5, body_limit = std::size_t{16} << 20;  // the kubelet's own limit

void read_container(std::string_view bytes, given_devices& target) {
  each_field(bytes, field<1>(target.container), field<2>([&](std::string_view devices) {
               each_field(devices, field<2>([&](std::string_view id) { target.ids.emplace_back(id); }));
             }));
}

void read_pod(std::string_view bytes, std::vector<given_devices>& target) {
  std::string name, ns;
  std::vector<given_devices> containers;
  each_field(bytes, field<1>(name), field<2>(ns),
             field<3>([&](std::string_view container) { read_container(container, containers.emplace_back()); }));
  for (auto& container : containers) {
    if (container.ids.empty()) continue;
    container.pod = name;
    container.ns = ns;
    target.push_back(std::move(container));
  }
}

/// The call on its way through libcurl. Owned by the coroutine that waits for it.
class call final : public kube::curl_multi::completion {
 public:
  call(asio::any_io_executor executor, const std::string& socket) : alarm_(executor), easy_(curl_easy_init()) {
    if (!easy_) throw std::bad_alloc();
    for (const auto* line : {"Content-Type: application/grpc", "TE: trailers", "Accept:"})
      headers_ = curl_slist_append(headers_, line);
    curl_easy_setopt(easy_, CURLOPT_URL, "http://localhost/v1.PodResourcesLister/List");
    curl_easy_setopt(easy_, CURLOPT_UNIX_SOCKET_PATH, socket.c_str());
    curl_easy_setopt(easy_, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
    curl_easy_setopt(easy_, CURLOPT_PROXY, "");
    curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, detail_.data());
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDS, empty_message_.data());
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDSIZE, static_cast<long>(empty_message_.size()));
    curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, headers_);
    curl_easy_setopt(easy_, CURLOPT_HEADERFUNCTION, &call::on_header);
    curl_easy_setopt(easy_, CURLOPT_HEADERDATA, this);
    curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, &call::on_body);
    curl_easy_setopt(easy_, CURLOPT_WRITEDATA, this);
  }
  ~call() {
    curl_easy_cleanup(easy_);
    curl_slist_free_all(headers_);
  }
  call(const call&) = delete;
  call& operator=(const call&) = delete;

  void finished(CURLcode code) override {
    code_ = code;
    alarm_.cancel();
  }

  CURL* easy() const { return easy_; }
  bool is_done() const { return code_.has_value(); }
  asio::steady_timer& alarm() { return alarm_; }

  kube::result<std::vector<given_devices>> answer() const {
    const auto fails = [](errc code, std::string text) {
      return std::unexpected(kube::error{code, 0, text::utf8_clean(text, 500), {}});
    };
    if (*code_ == CURLE_COULDNT_CONNECT) {
      long system_error = 0;
      curl_easy_getinfo(easy_, CURLINFO_OS_ERRNO, &system_error);
      return fails(errc::connect, "cannot connect: " + std::generic_category().message(static_cast<int>(system_error)));
    }
    if (*code_ != CURLE_OK) {
      const std::string_view detail = detail_.data();
      return fails(errc::connect, detail.empty() ? curl_easy_strerror(*code_) : std::string(detail));
    }
    long http = 0;
    curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &http);
    if (http != 200) return fails(errc::server, "HTTP status " + std::to_string(http));
    if (status_ != "0") {
      if (status_.empty()) return fails(errc::decode, "no gRPC status: this is no gRPC server");
      return fails(errc::server, "gRPC status " + status_ + (reason_.empty() ? "" : ": " + reason_));
    }
    const auto message = message_in(body_);
    if (!message) return std::unexpected(message.error());
    return devices_in(*message);
  }

 private:
  /// Headers, and trailers behind the body: the status may be in either.
  static std::size_t on_header(char* data, std::size_t, std::size_t size, void* self) {
    auto& call = *static_cast<class call*>(self);
    const std::string_view line(data, size);
    const auto take = [line](std::string_view name, std::string& target) {
      if (line.size() < name.size() || strncasecmp(line.data(), name.data(), name.size()) != 0) return;
      auto value = line.substr(name.size());
      const auto first = value.find_first_not_of(" \t");
      value = first == value.npos ? std::string_view() : value.substr(first);
      target = value.substr(0, value.find_last_not_of("\r\n\t ") + 1);
    };
    take("grpc-status:", call.status_);
    take("grpc-message:", call.reason_);
    return size;
  }
  static std::size_t on_body(char* data, std::size_t, std::size_t size, void* self) {
    auto& call = *static_cast<class call*>(self);
    if (call.body_.size() + size > body_limit) return 0;
    call.body_.append(data, size);
    return size;
  }

  asio::steady_timer alarm_;
  CURL* easy_;
  curl_slist* headers_ = nullptr;
  std::array<char, prefix_length> empty_message_{};  // no compression, no bytes
  std::array<char, CURL_ERROR_SIZE> detail_{};
  std::string body_, status_, reason_;
  std::optional<CURLcode> code_;
};

/// A call is never left inside libcurl by a coroutine that ends in its middle.
struct taken_out {
  kube::curl_multi& pool;
  const call& running;
  ~taken_out() {
    if (!running.is_done()) pool.cancel(running.easy());
  }
};

}  // namespace

kube::result<std::vector<given_devices>> devices_in(std::string_view message) {
  return kube::wire::guarded("ListPodResourcesResponse", [message] {
    std::vector<given_devices> out;
    each_field(message, field<1>([&](std::string_view pod) { read_pod(pod, out); }));
    return out;
  });
}

kube::result<std::string_view> message_in(std::string_view body) {
  const auto fails = [](std::string text) {
    return std::unexpected(kube::error{errc::decode, 0, "gRPC answer: " + std::move(text), {}});
  };
  if (body.size() < prefix_length) return fails(std::to_string(body.size()) + " bytes, which is no message");
  if (body[0] != 0) return fails("compressed, which was not asked for");
  std::size_t length = 0;
  for (const char byte : body.substr(1, 4)) length = length << 8 | static_cast<unsigned char>(byte);
  body.remove_prefix(prefix_length);
  if (body.size() != length)
    return fails(std::to_string(body.size()) + " bytes where the message has " + std::to_string(length));
  return body;
}

kube::task<std::vector<given_devices>> list_devices(asio::any_io_executor executor, std::string socket,
                                                    std::chrono::milliseconds deadline) {
  const auto pool = std::make_shared<kube::curl_multi>(executor, 1);
  call running(executor, socket);
  const taken_out guard{*pool, running};
  pool->start(running.easy(), &running);
  running.alarm().expires_after(deadline);
  while (!running.is_done()) {
    const auto [stopped] = co_await running.alarm().async_wait(asio::as_tuple(asio::use_awaitable));
    if (running.is_done()) break;
    const auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none)
      co_return std::unexpected(kube::error{errc::cancelled, 0, "kubelet at " + socket + ": cancelled", {}});
    if (!stopped)
      co_return std::unexpected(
          kube::error{errc::timeout,
                      0,
                      "kubelet at " + socket + ": no answer within " + std::to_string(deadline.count()) + " ms",
                      {}});
  }
  auto out = running.answer();
  if (!out) out.error().message = "kubelet at " + socket + ": " + out.error().message;
  co_return out;
}

}  // namespace agent::exporter
