// Our side of the calls of test/grpc, whose other side is grpc-go.
//   grpc_peer serve SOCKET            the service below, until its standard input ends
//   grpc_peer call SOCKET METHOD      one call with the message of standard input; prints the answer
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

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
  std::cerr << "usage: grpc_peer serve SOCKET | call SOCKET METHOD\n";
  return 2;
}
