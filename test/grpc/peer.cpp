// Our side of the calls of test/grpc, whose other side is grpc-go.
//   grpc_peer serve SOCKET            the service below, until its standard input ends
//   grpc_peer call SOCKET METHOD      one call with the message of standard input; prints the answer
//   grpc_peer plugin FOLDER RESOURCE  a device plugin at the kubelet in that folder. Each line of standard input is
//   what it
//                                     offers from then on: "a b !c" are three devices, of which one is not healthy
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "agent/device_plugin/plugin.hpp"
#include "agent/grpc/client.hpp"
#include "agent/grpc/server.hpp"

namespace {

using namespace agent::grpc;

struct test_service final : call_handler {
  std::vector<std::shared_ptr<served_call>> held;
  long given_up = 0;

  void serve(std::shared_ptr<served_call> call, std::string_view message) override {
    const std::string text(message);
    if (call->method() == "/test.Peer/Echo") {
      call->send(message);
      call->finish();
    } else if (call->method() == "/test.Peer/Fail") {
      call->finish({status_code::failed_precondition, text});
    } else if (call->method() == "/test.Peer/Count") {  // "N SIZE": N messages of that size
      char* rest = nullptr;
      const auto number = std::strtoul(text.c_str(), &rest, 10), size = std::strtoul(rest, nullptr, 10);
      for (unsigned long i = 0; i < number; ++i) call->send(std::string(size, static_cast<char>('a' + i % 26)));
      call->finish();
    } else if (call->method() == "/test.Peer/Hold") {
      call->on_given_up([this] { ++given_up; });
      call->send("held");
      std::erase_if(held, [](const auto& entry) { return !entry->is_open(); });
      held.push_back(std::move(call));
    } else if (call->method() == "/test.Peer/GivenUp") {
      call->send(std::to_string(given_up));
      call->finish();
    } else {
      call->finish({status_code::unimplemented, "there is no " + call->method()});
    }
  }
};

/// Devices that begin with "bad" are refused, for good or before each start ("bad-start").
struct test_allocator final : agent::device_plugin::allocator {
  using device_ids = agent::device_plugin::device_ids;
  static std::string joined(const device_ids& devices) {
    std::string out;
    for (const auto& id : devices) out += (out.empty() ? "" : "-") + id;
    return out;
  }
  std::expected<agent::device_plugin::allocation_answer, std::string> answer_for(const device_ids& devices) override {
    const auto list = joined(devices);
    if (list.starts_with("bad") && !list.starts_with("bad-start")) return std::unexpected("no card for " + list);
    return agent::device_plugin::allocation_answer{.cdi_names = {"test.example/share=" + list}, .environment = {}};
  }
  void prepare(device_ids devices, std::function<void(status)> done) override {
    const auto list = joined(devices);
    done(list.starts_with("bad") ? status(status_code::failed_precondition, "not placed: " + list) : status());
  }
};

int offer(const std::string& folder, const std::string& resource) {
  boost::asio::io_context loop;
  test_allocator allocator;
  agent::device_plugin::plugin plugin(loop.get_executor(), allocator,
                                      {.folder = folder, .endpoint = "peer.sock", .resource = resource});
  boost::asio::posix::stream_descriptor input(loop, dup(STDIN_FILENO));
  std::string line;
  char byte = 0;
  std::function<void()> read_on = [&] {
    input.async_read_some(boost::asio::buffer(&byte, 1), [&](boost::system::error_code problem, std::size_t) {
      if (problem) return loop.stop();
      if (byte != '\n') {
        line += byte;
        return read_on();
      }
      std::vector<agent::device_plugin::device> devices;
      std::istringstream words(std::exchange(line, {}));
      for (std::string word; words >> word;)
        devices.push_back({word.starts_with('!') ? word.substr(1) : word, !word.starts_with('!')});
      plugin.offer(std::move(devices));
      read_on();
    });
  };
  read_on();
  boost::asio::co_spawn(loop, plugin.run(), [](auto&&...) {});
  std::cout << "ready" << std::endl;
  loop.run();
  return 0;
}

int serve(const std::string& socket) {
  boost::asio::io_context loop;
  test_service service;
  server server(loop.get_executor(), service, {.socket = socket});
  if (const auto done = server.listen(); !done) {
    std::cerr << done.error().message << "\n";
    return 1;
  }
  boost::asio::posix::stream_descriptor input(loop, dup(STDIN_FILENO));
  char byte = 0;
  input.async_read_some(boost::asio::buffer(&byte, 1), [&](auto&&...) { loop.stop(); });
  std::cout << "ready" << std::endl;
  loop.run();
  return 0;
}

int ask(const std::string& socket, const std::string& method) {
  boost::asio::io_context loop;
  std::string message{std::istreambuf_iterator<char>(std::cin), {}};
  int code = 1;
  boost::asio::co_spawn(loop, call(loop.get_executor(), {.socket = socket}, method, std::move(message)),
                        [&](const std::exception_ptr&, kube::result<reply> answer) {
                          if (!answer)
                            std::cout << "error: " << answer.error().message;
                          else if (!answer->is.good())
                            std::cout << to_string(answer->is);
                          else
                            std::cout << answer->message;
                          code = answer && answer->is.good() ? 0 : 3;
                        });
  loop.run();
  return code;
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::string> arguments(words + 1, words + count);
  if (arguments.size() == 2 && arguments[0] == "serve") return serve(arguments[1]);
  if (arguments.size() == 3 && arguments[0] == "call") return ask(arguments[1], arguments[2]);
  if (arguments.size() == 3 && arguments[0] == "plugin") return offer(arguments[1], arguments[2]);
  std::cerr << "usage: grpc_peer plugin FOLDER RESOURCE | serve SOCKET | call SOCKET METHOD\n";
  return 2;
}
