#include "agent/grpc/session.hpp"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "text/escape.hpp"

namespace agent::grpc {
namespace {

constexpr std::size_t prefix_length = 5;  // compressed or not, then the length, in front of each message
constexpr std::uint32_t window = std::uint32_t{1} << 20;

std::string framed(std::string_view message) {
  std::string out(prefix_length, '\0');
  for (int i = 0; i < 4; ++i) out[1 + i] = static_cast<char>(message.size() >> (24 - 8 * i));
  return out.append(message);
}
std::size_t length_in(std::string_view prefix) {
  std::size_t out = 0;
  for (const char byte : prefix.substr(1, 4)) out = out << 8 | static_cast<unsigned char>(byte);
  return out;
}

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (const unsigned char byte : text) {
    if (byte >= 0x20 && byte <= 0x7e && byte != '%')
      out += static_cast<char>(byte);
    else
      (out += '%').append({digits[byte >> 4], digits[byte & 15]});
  }
  return out;
}
std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = 0;
    const auto* digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() && std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      out += static_cast<char>(byte);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

nghttp2_nv header(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {
    return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}
std::string_view view(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

constexpr std::string_view content_type = "application/grpc";

}  // namespace

std::string to_string(const status& status) {
  return "status " + std::to_string(status.code) + (status.text.empty() ? "" : ": " + status.text);
}

struct session::open_call {
  // What the peer said.
  std::string method, http_method, content, http_status, grpc_status, grpc_message, unread;
  std::size_t header_bytes = 0;
  // What is sent to it.
  std::string out;
  std::size_t sent = 0;
  bool is_started = false, is_finished = false, is_served = false, is_refused = false;
  std::optional<status> trailers;
  std::string problem;  ///< why the answer cannot be read

  bool wants_grpc() const { return http_method == "POST" && content.starts_with(content_type); }
};

struct session::callbacks {
  static session& of(void* user) { return *static_cast<session*>(user); }

  static int begin(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    auto& self = of(user);
    if (self.role_ == role::server && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
      self.calls_[frame->hd.stream_id] = std::make_unique<open_call>();
    return 0;
  }

  static int take_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                         const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* user) {
    auto& self = of(user);
    auto* call = self.find(frame->hd.stream_id);
    if (!call) return 0;
    call->header_bytes += name_size + value_size;
    if (call->header_bytes > self.limits_.headers) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    const auto key = view(name, name_size), text = view(value, value_size);
    const std::pair<std::string_view, std::string*> known[] = {
        {":path", &call->method},        {":method", &call->http_method},     {"content-type", &call->content},
        {":status", &call->http_status}, {"grpc-status", &call->grpc_status}, {"grpc-message", &call->grpc_message}};
    for (const auto& [named, target] : known)
      if (key == named) *target = text;
    return 0;
  }

  static int take_data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* data, std::size_t size,
                       void* user) {
    auto& self = of(user);
    auto* call = self.find(id);
    if (!call || call->is_refused) return 0;
    call->unread.append(view(data, size));
    self.take_messages(id, *call);
    return 0;
  }

  static int take_frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    auto& self = of(user);
    const bool ends = (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) &&
                      (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (!ends || self.role_ != role::server) return 0;
    if (auto* call = self.find(frame->hd.stream_id); call && !call->is_refused) self.serve(frame->hd.stream_id, *call);
    return 0;
  }

  static int close(nghttp2_session*, std::int32_t id, std::uint32_t code, void* user) {
    of(user).close(id, code);
    return 0;
  }

  static ssize_t give(nghttp2_session* raw, std::int32_t id, std::uint8_t* target, std::size_t room,
                      std::uint32_t* flags, nghttp2_data_source*, void* user) {
    auto* call = of(user).find(id);
    if (!call) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    const auto size = std::min(room, call->out.size() - call->sent);
    std::memcpy(target, call->out.data() + call->sent, size);
    call->sent += size;
    if (call->sent < call->out.size()) return static_cast<ssize_t>(size);
    call->out.clear();
    call->sent = 0;
    if (!call->is_finished) return size == 0 ? static_cast<ssize_t>(NGHTTP2_ERR_DEFERRED) : static_cast<ssize_t>(size);
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (call->trailers) {
      *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      const auto code = std::to_string(call->trailers->code), text = percent_encoded(call->trailers->text);
      const std::array lines{header("grpc-status", code), header("grpc-message", text)};
      nghttp2_submit_trailer(raw, id, lines.data(), text.empty() ? 1 : 2);
    }
    return static_cast<ssize_t>(size);
  }
};

session::session(role role, session_listener& listener, session_limits limits)
    : role_(role), listener_(listener), limits_(limits) {
  nghttp2_session_callbacks* callback_list = nullptr;
  nghttp2_session_callbacks_new(&callback_list);
  nghttp2_session_callbacks_set_on_begin_headers_callback(callback_list, &callbacks::begin);
  nghttp2_session_callbacks_set_on_header_callback(callback_list, &callbacks::take_header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callback_list, &callbacks::take_data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callback_list, &callbacks::take_frame);
  nghttp2_session_callbacks_set_on_stream_close_callback(callback_list, &callbacks::close);
  nghttp2_option* options = nullptr;
  nghttp2_option_new(&options);
  nghttp2_option_set_max_outbound_ack(options, 1'000);  // a flood of pings ends the connection
  if (role == role::server)
    nghttp2_session_server_new2(&raw_, callback_list, this, options);
  else
    nghttp2_session_client_new2(&raw_, callback_list, this, options);
  nghttp2_option_del(options);
  nghttp2_session_callbacks_del(callback_list);
  const std::array settings{
      nghttp2_settings_entry{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits.calls},
      nghttp2_settings_entry{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window},
      nghttp2_settings_entry{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<std::uint32_t>(limits.headers)}};
  nghttp2_submit_settings(raw_, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(raw_, NGHTTP2_FLAG_NONE, 0, window);
}

session::~session() { nghttp2_session_del(raw_); }

session::open_call* session::find(call_id id) {
  const auto match = calls_.find(id);
  return match == calls_.end() ? nullptr : match->second.get();
}

kube::result<void> session::receive(std::string_view bytes) {
  const auto taken = nghttp2_session_mem_recv(raw_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  if (taken >= 0) return {};
  return std::unexpected(kube::error{
      kube::errc::decode, 0, std::string("no HTTP/2: ") + nghttp2_strerror(static_cast<int>(taken)), std::nullopt});
}

std::string session::output(std::size_t most) {
  std::string out;
  while (out.size() < most) {
    const std::uint8_t* bytes = nullptr;
    const auto size = nghttp2_session_mem_send(raw_, &bytes);
    if (size <= 0) break;
    out.append(view(bytes, static_cast<std::size_t>(size)));
  }
  return out;
}

bool session::over() const { return nghttp2_session_want_read(raw_) == 0 && nghttp2_session_want_write(raw_) == 0; }

void session::refuse(call_id id, std::uint32_t code) {
  if (auto* call = find(id)) call->is_refused = true;
  nghttp2_submit_rst_stream(raw_, NGHTTP2_FLAG_NONE, id, code);
}

/// Of a client each whole message; of a server only whether the one that comes is allowed.
void session::take_messages(call_id id, open_call& call) {
  while (call.unread.size() >= prefix_length) {
    const auto length = length_in(call.unread);
    if (call.unread[0] != 0) {
      call.problem = "compressed, which was not asked for";
    } else if (length > limits_.message) {
      call.problem = "a message of " + std::to_string(length) + " bytes; at most " + std::to_string(limits_.message);
    } else if (role_ == role::server && call.unread.size() > prefix_length + length) {
      call.problem = "more than one message";
    }
    if (!call.problem.empty()) {
      refuse(id, NGHTTP2_ENHANCE_YOUR_CALM);
      return;
    }
    if (role_ == role::server || call.unread.size() < prefix_length + length) return;
    const auto message = call.unread.substr(prefix_length, length);
    call.unread.erase(0, prefix_length + length);
    listener_.answered(id, message);
  }
}

void session::serve(call_id id, open_call& call) {
  if (!call.wants_grpc()) {
    const std::array lines{header(":status", "415")};
    call.is_finished = call.is_started = true;
    nghttp2_submit_response(raw_, id, lines.data(), lines.size(), nullptr);
    return;
  }
  const bool is_whole =
      call.unread.size() >= prefix_length && call.unread.size() == prefix_length + length_in(call.unread);
  if (!is_whole) return finish(id, {status_code::internal, "not one whole message"});
  call.is_served = true;
  const auto message = std::exchange(call.unread, {}), method = call.method;
  listener_.called(id, method, std::string_view(message).substr(prefix_length));
}

void session::start_answer(call_id id, open_call& call, bool has_data) {
  if (call.is_started) return;
  call.is_started = true;
  const auto code = call.trailers ? std::to_string(call.trailers->code) : std::string();
  const auto text = call.trailers ? percent_encoded(call.trailers->text) : std::string();
  std::vector<nghttp2_nv> lines{header(":status", "200"), header("content-type", content_type)};
  nghttp2_data_provider provider{};
  provider.read_callback = &callbacks::give;
  if (!has_data) lines.push_back(header("grpc-status", code));
  if (!has_data && !text.empty()) lines.push_back(header("grpc-message", text));
  nghttp2_submit_response(raw_, id, lines.data(), lines.size(), has_data ? &provider : nullptr);
}

void session::send(call_id id, std::string_view message) {
  auto* call = find(id);
  if (!call || call->is_finished || call->is_refused) return;
  if (call->out.size() - call->sent + message.size() > limits_.unsent) return refuse(id, NGHTTP2_ENHANCE_YOUR_CALM);
  call->out += framed(message);
  start_answer(id, *call, true);
  nghttp2_session_resume_data(raw_, id);
}

void session::finish(call_id id, const status& status) {
  auto* call = find(id);
  if (!call || call->is_finished || call->is_refused) return;
  call->is_finished = true;
  call->trailers = status;
  start_answer(id, *call, false);
  nghttp2_session_resume_data(raw_, id);
}

call_id session::call(std::string_view method, std::string_view message) {
  auto call = std::make_unique<open_call>();
  call->out = framed(message);
  call->is_started = call->is_finished = true;
  const std::array lines{header(":method", "POST"),
                         header(":scheme", "http"),
                         header(":path", method),
                         header(":authority", "localhost"),
                         header("content-type", content_type),
                         header("te", "trailers")};
  nghttp2_data_provider provider{};
  provider.read_callback = &callbacks::give;
  const auto id = nghttp2_submit_request(raw_, nullptr, lines.data(), lines.size(), &provider, nullptr);
  if (id < 0) return 0;
  calls_[id] = std::move(call);
  return id;
}

void session::cancel(call_id id) {
  if (find(id)) refuse(id, NGHTTP2_CANCEL);
}

void session::end() {
  nghttp2_submit_goaway(raw_, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(raw_), NGHTTP2_NO_ERROR,
                        nullptr, 0);
}

void session::close(call_id id, std::uint32_t code) {
  const auto match = calls_.find(id);
  if (match == calls_.end()) return;
  const auto call = std::move(match->second);
  calls_.erase(match);
  if (role_ == role::server) {
    if (call->is_served && !call->is_finished) listener_.given_up(id);
    return;
  }
  status out;
  int number = 0;
  const auto& text = call->grpc_status;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (!call->problem.empty())
    out = {status_code::internal, call->problem};
  else if (!call->http_status.empty() && call->http_status != "200")
    out = {status_code::unavailable, "HTTP status " + call->http_status};
  else if (!text.empty() && problem == std::errc() && end == text.data() + text.size())
    out.code = number, out.text = text::utf8_clean(percent_decoded(call->grpc_message), 4'000);
  else if (code != NGHTTP2_NO_ERROR)
    out = {status_code::unavailable, std::string("the stream ended: ") + nghttp2_http2_strerror(code)};
  else
    out = {status_code::unknown, "no gRPC status: this is no gRPC server"};
  if (out.good() && !call->unread.empty()) out = {status_code::internal, "the answer ends in the middle of a message"};
  listener_.ended(id, out);
}

void session::lost(const std::string& reason) {
  auto all = std::exchange(calls_, {});
  for (const auto& [id, call] : all) {
    if (role_ == role::client)
      listener_.ended(id, {status_code::unavailable, reason});
    else if (call->is_served && !call->is_finished)
      listener_.given_up(id);
  }
}

}  // namespace agent::grpc
