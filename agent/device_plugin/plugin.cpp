#include "agent/device_plugin/plugin.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstring>
#include <utility>

#include "agent/grpc/client.hpp"
#include "controller/log.hpp"

namespace agent::device_plugin {
namespace {

namespace asio = boost::asio;
namespace log = controller::log;
using std::chrono::milliseconds;
using clock = std::chrono::steady_clock;

constexpr milliseconds shortest_pause{10}, longest_pause{1'000}, kubelet_deadline{5'000};
/// How long a kubelet that has taken the plugin may take to listen to it.
constexpr milliseconds until_stream{2'000};
/// A stream that lived so long was no quarrel with another plugin of this resource.
constexpr milliseconds settled{5'000};
constexpr std::string_view kubelet_socket = "kubelet.sock", service_path = "/v1beta1.DevicePlugin/";

}  // namespace

plugin::plugin(asio::any_io_executor executor, allocator& allocator, plugin_options options)
    : executor_(executor),
      allocator_(allocator),
      options_(std::move(options)),
      folder_events_(executor),
      event_bytes_(4'096, '\0'),
      wake_(executor),
      pause_(shortest_pause) {}

plugin::~plugin() { *alive_ = false; }

std::string plugin::path_of(std::string_view name) const { return options_.folder + "/" + std::string(name); }

void plugin::offer(std::vector<device> devices) {
  if (devices == devices_) return;
  devices_ = std::move(devices);
  const auto list = list_of(devices_);
  for (const auto& call : watching_) call->send(list);
}

void plugin::serve(std::shared_ptr<grpc::served_call> call, std::string_view message) {
  const std::string_view path = call->method();
  const auto method = path.starts_with(service_path) ? path.substr(service_path.size()) : std::string_view();
  if (method == "Allocate") return allocate(call, message);
  if (method == "PreStartContainer") return prepare(std::move(call), message);
  if (method == "ListAndWatch") return watch(std::move(call));
  if (method != "GetDevicePluginOptions")
    return call->finish({grpc::status_code::unimplemented, "there is no " + call->method()});
  call->send(options_message());
  call->finish();
}

void plugin::allocate(const std::shared_ptr<grpc::served_call>& call, std::string_view message) {
  const auto containers = allocations_in(message);
  if (!containers) return call->finish({grpc::status_code::invalid_argument, containers.error().message});
  std::vector<allocation_answer> out;
  for (const auto& devices : *containers) {
    auto answer = allocator_.answer_for(devices);
    if (!answer) return call->finish({grpc::status_code::failed_precondition, answer.error()});
    out.push_back(std::move(*answer));
  }
  call->send(allocations_of(out));
  call->finish();
}

void plugin::prepare(std::shared_ptr<grpc::served_call> call, std::string_view message) {
  auto devices = started_devices_in(message);
  if (!devices) return call->finish({grpc::status_code::invalid_argument, devices.error().message});
  allocator_.prepare(std::move(*devices), [call = std::move(call)](const grpc::status& status) {
    if (status.good()) call->send({});
    call->finish(status);
  });
}

void plugin::watch(std::shared_ptr<grpc::served_call> call) {
  call->on_given_up([this, alive = alive_, raw = call.get(), since = clock::now()] {
    if (!*alive) return;
    std::erase_if(watching_, [raw](const auto& entry) { return entry.get() == raw; });
    if (clock::now() - since > settled) pause_ = shortest_pause;
    wake_.cancel();
  });
  call->send(list_of(devices_));
  watching_.push_back(std::move(call));
  trouble_.clear();
  wake_.cancel();
}

/// Who makes kubelet.sock is a kubelet that has just started, and has removed the sockets of all plugins.
void plugin::see_folder() {
  const int events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (events < 0 || inotify_add_watch(events, options_.folder.c_str(), IN_CREATE | IN_MOVED_TO) < 0) {
    trouble_ = options_.folder + " cannot be watched: " + std::strerror(errno);
    if (events >= 0) ::close(events);
    return;
  }
  boost::system::error_code ignored;
  folder_events_.close(ignored);
  folder_events_.assign(events, ignored);
  read_events();
}

void plugin::read_events() {
  folder_events_.async_read_some(
      asio::buffer(event_bytes_), [this, alive = alive_](boost::system::error_code problem, std::size_t size) {
        if (problem || !*alive) return;
        for (std::size_t place = 0; place + sizeof(inotify_event) <= size;) {
          inotify_event event{};
          std::memcpy(&event, event_bytes_.data() + place, sizeof event);
          const std::string_view name(event_bytes_.data() + place + sizeof event, event.len);
          is_new_kubelet_ = is_new_kubelet_ || name.substr(0, name.find('\0')) == kubelet_socket;
          place += sizeof event + event.len;
        }
        if (is_new_kubelet_) wake_.cancel();
        read_events();
      });
}

/// Whether the kubelet took it.
asio::awaitable<bool> plugin::register_with_kubelet() {
  if (!server_) server_.emplace(executor_, *this, grpc::server_options{.socket = path_of(options_.endpoint)});
  const bool is_new = std::exchange(is_new_kubelet_, false);
  if (is_new) {
    // Its socket is there before it listens, and it admits the pods that it finds whether we are back or not.
    pause_ = shortest_pause;
    for (const auto& call : std::exchange(watching_, {})) call->finish();  // who listened was the one before
  }
  if (is_new || ::access(path_of(options_.endpoint).c_str(), F_OK) != 0) {
    if (const auto done = server_->listen(); !done) {
      trouble_ = done.error().message;
      co_return false;
    }
  }
  auto answer =
      co_await grpc::call(executor_, {.socket = path_of(kubelet_socket), .deadline = kubelet_deadline},
                          "/v1beta1.Registration/Register", registration_of(options_.endpoint, options_.resource));
  auto problem = !answer ? answer.error().message : answer->is.good() ? std::string() : to_string(answer->is);
  if (!problem.empty()) problem = "the kubelet does not take " + options_.resource + ": " + problem;
  if (!problem.empty() && problem != trouble_) log::warn("device plugin", {{"error", problem}});
  if (problem.empty()) log::info("the kubelet took the device plugin", {{"resource", options_.resource}});
  trouble_ = std::move(problem);
  co_return trouble_.empty();
}

/// False where it was cancelled.
asio::awaitable<bool> plugin::pause(milliseconds how_long) {
  if (is_new_kubelet_) co_return true;
  wake_.expires_after(how_long);
  co_await wake_.async_wait(asio::as_tuple(asio::use_awaitable));
  const auto state = co_await asio::this_coro::cancellation_state;
  co_return state.cancelled() == asio::cancellation_type::none;
}

asio::awaitable<void> plugin::run() {
  constexpr auto for_long = std::chrono::hours(1);
  see_folder();
  for (bool goes_on = true; goes_on;) {
    if (!is_new_kubelet_ && !watching_.empty()) {
      goes_on = co_await pause(for_long);
      if (goes_on && watching_.empty() && !is_new_kubelet_) {
        goes_on = co_await pause(pause_);
        pause_ = std::min(2 * pause_, longest_pause);
      }
      continue;
    }
    const bool is_taken = co_await register_with_kubelet();
    const auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none) co_return;
    if (!watching_.empty()) continue;
    goes_on = co_await pause(is_taken ? until_stream : pause_);
    if (!is_taken) pause_ = std::min(2 * pause_, longest_pause);
  }
}

}  // namespace agent::device_plugin
