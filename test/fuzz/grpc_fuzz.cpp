// Both sides of gRPC, given any bytes in pieces of any size. The first byte says which side, and how many split lengths
// follow. A server answers every call; nothing is kept beyond the limits.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "agent/grpc/session.hpp"

namespace {

using namespace agent::grpc;

constexpr session_limits limits{.message = 4'096, .unsent = 8'192, .headers = 2'048, .calls = 8};

struct answering final : session_listener {
  session* served = nullptr;
  std::vector<call_id> open;

  void called(call_id id, std::string_view method, std::string_view message) override {
    if (message.size() > limits.message || method.size() > limits.headers) std::abort();
    open.push_back(id);
    if (open.size() % 3 == 0) return;  // answered when another comes
    for (const auto each : open) {
      served->send(each, message);
      served->finish(each, {});
    }
    open.clear();
  }
  void answered(call_id, std::string_view message) override {
    if (message.size() > limits.message) std::abort();
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto side = data[0] % 2 == 0 ? role::server : role::client;
  const std::size_t count = std::min<std::size_t>(data[0] / 2 % 32, size - 1);
  std::string stream(reinterpret_cast<const char*>(data) + 1 + count, size - 1 - count);
  if (side == role::server) stream.insert(0, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  answering listener;
  session session(side, listener, limits);
  listener.served = &session;
  if (side == role::client) session.call("/a.B/C", "question");
  session.output();
  std::string_view rest = stream;
  for (std::size_t i = 0; !rest.empty(); ++i) {
    const auto piece = rest.substr(0, i < count ? data[1 + i] + std::size_t{1} : rest.size());
    if (!session.receive(piece)) break;
    rest.remove_prefix(piece.size());
    session.output();
  }
  session.lost("the end");
  if (session.open_calls() != 0) std::abort();
  return 0;
}
