#include "kube/curl_transfer.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <new>

#include "kube/authorities.hpp"
#include "kube/server_address.hpp"

namespace kube {

namespace {

constexpr int keepalive_idle_s = 30;
constexpr int keepalive_interval_s = 10;
constexpr unsigned unacknowledged_ms =
    30'000;  // what we sent and no one acknowledged for so long: the connection is dead

bool same_word(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

std::string_view without_blanks(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

/// RFC 9110 warn-text out of `299 - "text"`.
std::string warning_text(std::string_view value) {
  const auto open = value.find('"');
  const auto close = value.rfind('"');
  if (open == std::string_view::npos || close <= open) return std::string(value);
  std::string text;
  for (auto i = open + 1; i < close; ++i) {
    if (value[i] == '\\' && i + 1 < close) ++i;
    text.push_back(value[i]);
  }
  return text;
}

/// Host and port of "https://host:port/path"; the port is 443 when it is not there.
std::pair<std::string, std::string> host_port(const std::string& server) {
  auto authority = address_of(server);
  authority = authority.substr(0, authority.find('/'));
  const auto colon = authority.rfind(':');
  if (colon == std::string_view::npos || authority.ends_with(']')) return {std::string(authority), "443"};
  return {std::string(authority.substr(0, colon)), std::string(authority.substr(colon + 1))};
}

bool proxy_of_environment() {
  const auto set = [](const char* name) {
    const char* const value = ::getenv(name);
    return value && *value;
  };
  return set("HTTPS_PROXY") || set("https_proxy");
}

bool loopback(const std::string& host) { return host == "localhost" || host == "[::1]" || host.starts_with("127."); }

/// The text must outlive the handle's transfer; libcurl copies it only into connections.
void set_blob(CURL* easy, CURLoption option, const std::string& text) {
  curl_blob blob{const_cast<char*>(text.data()), text.size(), CURL_BLOB_NOCOPY};
  curl_easy_setopt(easy, option, &blob);
}

}  // namespace

curl_transfer::curl_transfer(boost::asio::any_io_executor executor, const cluster_config& config,
                             const request& request, const credential& credential,
                             const std::vector<std::string>& extra, const chunk_sink* sink, transfer_limits limits,
                             lane_counters& count)
    : config_(config),
      request_(request),
      credential_(credential),
      sink_(sink),
      limits_(limits),
      count_(count),
      alarm_(std::move(executor)),
      easy_(curl_easy_init()) {
  if (!easy_) throw std::bad_alloc();
  curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, detail_.data());
  curl_easy_setopt(easy_, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(easy_, CURLOPT_PROTOCOLS_STR, config_.takes_http ? "http,https" : "https");
  curl_easy_setopt(easy_, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(limits_.connect.count()));
  curl_easy_setopt(easy_, CURLOPT_BUFFERSIZE, limits_.buffer);
  curl_easy_setopt(easy_, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy_, CURLOPT_TCP_KEEPIDLE, static_cast<long>(keepalive_idle_s));
  curl_easy_setopt(easy_, CURLOPT_TCP_KEEPINTVL, static_cast<long>(keepalive_interval_s));
  curl_easy_setopt(easy_, CURLOPT_SOCKOPTFUNCTION, &curl_transfer::on_connect);
  curl_easy_setopt(easy_, CURLOPT_SOCKOPTDATA, this);
  curl_easy_setopt(easy_, CURLOPT_HEADERFUNCTION, &curl_transfer::on_header);
  curl_easy_setopt(easy_, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, &curl_transfer::on_body);
  curl_easy_setopt(easy_, CURLOPT_WRITEDATA, this);
  if (request_.allowed) {
    curl_easy_setopt(easy_, CURLOPT_PREREQFUNCTION, &curl_transfer::on_ready);
    curl_easy_setopt(easy_, CURLOPT_PREREQDATA, this);
  }
  curl_easy_setopt(easy_, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  set_target();
  set_trust();
  set_headers(extra);
  set_body();
  ++count_.requests;
  ++count_.in_flight;
}

curl_transfer::~curl_transfer() {
  --count_.in_flight;
  if (limits_.bodies) limits_.bodies->used -= held_;
  curl_easy_cleanup(easy_);
  curl_slist_free_all(headers_);
  curl_slist_free_all(connect_to_);
}

void curl_transfer::set_target() {
  auto url = config_.server + request_.target;
  const auto [host, port] = host_port(config_.server);
  if (!config_.tls_server_name.empty()) {
    // libcurl takes the name for SNI and verification from the URL: the URL gets that name, and the address is given
    // apart.
    url = "https://" + config_.tls_server_name + ":" + port +
          url.substr(url.find('/', 8) == std::string::npos ? url.size() : url.find('/', 8));
    connect_to_ = curl_slist_append(nullptr, ("::" + host + ":" + port).c_str());
    curl_easy_setopt(easy_, CURLOPT_CONNECT_TO, connect_to_);
  }
  curl_easy_setopt(easy_, CURLOPT_URL, url.c_str());
  // As in Go, an environment's proxy is not for loopback, and ALL_PROXY names none; a proxy-url in the kubeconfig is
  // for everything.
  if (!config_.proxy_url.empty()) {
    curl_easy_setopt(easy_, CURLOPT_PROXY, config_.proxy_url.c_str());
    curl_easy_setopt(easy_, CURLOPT_NOPROXY, "");
  } else if (loopback(host) || !proxy_of_environment()) {
    curl_easy_setopt(easy_, CURLOPT_PROXY, "");
  }
}

void curl_transfer::set_trust() {
  curl_easy_setopt(easy_, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  // A resumed session would not look at the server's certificate again, so a changed CA would not count.
  curl_easy_setopt(easy_, CURLOPT_SSL_SESSIONID_CACHE, 0L);
  if (config_.insecure) {
    curl_easy_setopt(easy_, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy_, CURLOPT_SSL_VERIFYHOST, 0L);
  }
  // libcurl compares the texts when it looks for a connection to use again, so new ones count at once.
  if (!credential_.tls->ca.empty()) {
    set_blob(easy_, CURLOPT_CAINFO_BLOB, credential_.tls->ca);
    // The blob replaces libcurl's file of CAs only. Its folder, compiled in by distributions, has every CA of the
    // machine.
    curl_easy_setopt(easy_, CURLOPT_CAPATH, nullptr);
  }
  const bool has_proxy = !config_.proxy_url.empty() || proxy_of_environment();
  if (const auto file = credential_.tls->ca.empty() || has_proxy ? authority_file() : ""; !file.empty()) {
    if (credential_.tls->ca.empty()) curl_easy_setopt(easy_, CURLOPT_CAINFO, file.c_str());
    curl_easy_setopt(easy_, CURLOPT_PROXY_CAINFO, file.c_str());  // of an https:// proxy
  }
  if (credential_.tls->certificate.empty()) return;
  set_blob(easy_, CURLOPT_SSLCERT_BLOB, credential_.tls->certificate);
  set_blob(easy_, CURLOPT_SSLKEY_BLOB, credential_.tls->key);
}

void curl_transfer::set_headers(const std::vector<std::string>& extra) {
  const auto add = [this](const std::string& line) { headers_ = curl_slist_append(headers_, line.c_str()); };
  add("Accept: " + request_.accept);
  // Never gzip: libcurl cannot read the multi-member bodies of WatchList streams, and on lists it would cost the API
  // server more CPU than a cluster's own network saves.
  add("Accept-Encoding: identity");
  add("User-Agent: quartermaster/" QUARTERMASTER_VERSION);
  add("Expect:");  // no round trip before bodies over 1 MiB
  if (!request_.content_type.empty()) add("Content-Type: " + request_.content_type);
  if (!credential_.authorization.empty()) add("Authorization: " + credential_.authorization);
  if (!config_.tls_server_name.empty()) {
    const auto [host, port] = host_port(config_.server);
    add("Host: " + host + ":" + port);
  }
  for (const auto& line : extra) add(line);
  curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, headers_);
}

void curl_transfer::set_body() {
  const bool has_body = !request_.body.empty();
  if (has_body || request_.verb == method::post) {
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDS, request_.body.data());
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
    count_.bytes_out += request_.body.size();
  }
  switch (request_.verb) {
    case method::get:
      if (!has_body) curl_easy_setopt(easy_, CURLOPT_HTTPGET, 1L);
      break;
    case method::post:
      break;
    case method::put:
      curl_easy_setopt(easy_, CURLOPT_CUSTOMREQUEST, "PUT");
      break;
    case method::patch:
      curl_easy_setopt(easy_, CURLOPT_CUSTOMREQUEST, "PATCH");
      break;
    case method::del:
      curl_easy_setopt(easy_, CURLOPT_CUSTOMREQUEST, "DELETE");
      break;
  }
}

/// The connection is there, and nothing of the request has been sent on it.
int curl_transfer::on_ready(void* self, char*, char*, int, int) {
  auto& transfer = *static_cast<curl_transfer*>(self);
  if (transfer.request_.allowed()) return CURL_PREREQFUNC_OK;
  transfer.stopped_ = stopped::not_allowed;
  return CURL_PREREQFUNC_ABORT;
}

int curl_transfer::on_connect(void* self, curl_socket_t fd, curlsocktype) {
  ++static_cast<curl_transfer*>(self)->count_.connections;
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms, sizeof unacknowledged_ms);
  return CURL_SOCKOPT_OK;
}

std::size_t curl_transfer::on_header(char* data, std::size_t, std::size_t size, void* self) {
  static_cast<curl_transfer*>(self)->header(std::string_view(data, size));
  return size;
}

void curl_transfer::header(std::string_view line) {
  last_byte_ = std::chrono::steady_clock::now();
  if (line.starts_with("HTTP/")) {  // a new answer: what an interim one said does not count
    answer_ = response();
    if (limits_.bodies) limits_.bodies->used -= std::exchange(held_, 0);
    const auto space = line.find(' ');
    if (space != std::string_view::npos)
      std::from_chars(line.data() + space + 1, line.data() + line.size(), answer_.status);
    return;
  }
  const auto colon = line.find(':');
  if (colon == std::string_view::npos) {
    const bool ends = without_blanks(line).empty();
    if (ends && sink_ && answer_.status == 200 && request_.opened) request_.opened();
    return;
  }
  const auto name = line.substr(0, colon);
  const auto value = without_blanks(line.substr(colon + 1));
  if (same_word(name, "content-type")) {
    answer_.content_type = value;
  } else if (same_word(name, "warning")) {
    answer_.warnings.push_back(warning_text(value));
  } else if (same_word(name, "retry-after")) {
    // The API server sends seconds; the date form of the RFC is not used by it and is left alone.
    long seconds = 0;
    const auto [end, wrong] = std::from_chars(value.data(), value.data() + value.size(), seconds);
    if (wrong == std::errc() && end == value.data() + value.size() && seconds >= 0)
      answer_.retry_after = std::chrono::seconds(seconds);
  } else if (same_word(name, "date")) {
    answer_.date = std::max<std::int64_t>(curl_getdate(std::string(value).c_str(), nullptr), 0);  // -1: no date
  } else if (same_word(name, "content-length") && !(sink_ && answer_.status == 200)) {
    std::size_t length = 0;
    std::from_chars(value.data(), value.data() + value.size(), length);
    reserve(std::min(length, limits_.body));  // where there is no memory for it, the body itself will say so
  }
}

std::size_t curl_transfer::on_body(char* data, std::size_t, std::size_t size, void* self) {
  return static_cast<curl_transfer*>(self)->body(std::string_view(data, size)) ? size : 0;
}

bool curl_transfer::body(std::string_view bytes) {
  last_byte_ = std::chrono::steady_clock::now();
  count_.bytes_in += bytes.size();
  if (sink_ && answer_.status == 200) {
    try {
      if ((*sink_)(bytes)) return true;
    } catch (...) {  // not through libcurl's C frames
      thrown_ = std::current_exception();
    }
    stopped_ = stopped::by_sink;
    return false;
  }
  const auto limit = sink_ ? limits_.error_body : limits_.body;
  if (answer_.body.size() + bytes.size() > limit) {
    stopped_ = sink_ ? stopped::cut : stopped::too_big;
    if (stopped_ == stopped::cut) answer_.body.append(bytes.substr(0, limit - answer_.body.size()));
    return false;
  }
  if (!reserve(answer_.body.size() + bytes.size())) {
    stopped_ = stopped::no_memory;
    return false;
  }
  answer_.body.append(bytes);
  return true;
}

bool curl_transfer::reserve(std::size_t size) {
  auto& body = answer_.body;
  if (size <= body.capacity()) return true;
  const auto wanted = std::max(size, std::min(2 * body.capacity(), limits_.body));
  if (!limits_.bodies) {
    body.reserve(wanted);
    return true;
  }
  auto& memory = *limits_.bodies;
  const auto left = memory.most - memory.used;
  if (left < size) return false;
  body.reserve(std::min(wanted, left));
  memory.used += body.capacity() - std::exchange(held_, body.capacity());
  return true;
}

void curl_transfer::finished(CURLcode code) {
  code_ = code;
  done_ = true;
  alarm_.cancel();
}

result<response> curl_transfer::take() {
  if (thrown_) std::rethrow_exception(thrown_);
  switch (stopped_) {
    case stopped::by_sink:
      return std::unexpected(error{errc::cancelled, 0, operation_of(request_) + ": stream ended by its reader", {}});
    case stopped::too_big:
      return std::unexpected(error{errc::decode,
                                   0,
                                   operation_of(request_) + ": the answer is larger than " +
                                       std::to_string(limits_.body >> 20) + " MiB; ask for smaller pages (limit)",
                                   {}});
    case stopped::no_memory: {
      // A page that takes much of it has to become smaller. Another one is not to blame, and comes again.
      const auto most = limits_.bodies->most;
      const bool is_large = held_ >= most / 4;
      const std::string remedy = is_large ? "; ask for smaller pages (limit)" : "; it has to be asked for again";
      return std::unexpected(error{is_large ? errc::decode : errc::too_many_requests,
                                   0,
                                   operation_of(request_) + ": all answers together may take " +
                                       std::to_string(most >> 20) + " MiB while they are received" + remedy,
                                   {}});
    }
    case stopped::cut:
      return std::move(answer_);
    case stopped::not_allowed:
      return std::unexpected(
          error{errc::cancelled, 0, operation_of(request_) + ": no longer allowed, nothing was sent", {}});
    case stopped::no:
      break;
  }
  if (code_ == CURLE_OK) return std::move(answer_);
  ++count_.failures;
  long os_errno = 0;
  curl_easy_getinfo(easy_, CURLINFO_OS_ERRNO, &os_errno);
  return std::unexpected(transfer_error(request_, config_, code_, os_errno, detail_.data(), limits_.connect));
}

}  // namespace kube
