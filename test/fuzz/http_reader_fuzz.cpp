// What a caller of the HTTP server sends, and the places where it is split: what is read must not depend on them, no
// more is kept than the limits allow, and what two readers could take for different requests is not read at all. The
// first byte says how many split lengths follow.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "controller/http_reader.hpp"

namespace {

using controller::http_reading;

constexpr std::size_t header_limit = 512, body_limit = 1024;
/// A buffer grows to twice what it needs, a body to twice its limit.
constexpr std::size_t most_held = 2 * (header_limit + 16 * 1024) + 2 * body_limit + 256;

struct outcome {
  std::vector<std::string> requests;
  http_reading end = http_reading::more;
};

outcome feed(std::string_view stream, const std::vector<std::size_t>& lengths) {
  controller::http_reader reader(header_limit);
  outcome made;
  bool in_body = false;
  std::size_t turn = 0;
  for (;;) {
    made.end = in_body ? reader.read_body(body_limit) : reader.read_head();
    if (reader.held() > most_held) std::abort();
    if (made.end == http_reading::done) {
      if (in_body) {
        const auto head = reader.head();
        auto body = reader.take_body();
        if (body.size() > body_limit || (head.length && *head.length != body.size())) std::abort();
        made.requests.push_back(head.method + " " + head.path + "?" + head.query + " " + head.content_type + "\n" +
                                body);
      }
      in_body = !in_body;
      continue;
    }
    if (made.end != http_reading::more || stream.empty()) return made;
    const auto room = reader.room();
    if (room.empty()) std::abort();
    auto size = std::min(room.size(), stream.size());
    if (turn < lengths.size()) size = std::min(size, std::max<std::size_t>(lengths[turn++], 1));
    std::copy_n(stream.begin(), size, room.begin());
    reader.received(size);
    stream.remove_prefix(size);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t count = std::min<std::size_t>(data[0] % 64, size - 1);
  const std::vector<std::size_t> lengths(data + 1, data + 1 + count);
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1 + count, size - 1 - count);
  const auto whole = feed(stream, {}), split = feed(stream, lengths);
  // What is wrong may be seen later where a line comes in pieces; what was read before is the same.
  if (whole.requests != split.requests) std::abort();
  return 0;
}
