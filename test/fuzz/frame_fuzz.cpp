// A stream and the places where it is split: the frames must not depend on them. The first byte says how many split
// lengths follow.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "kube/frame.hpp"

namespace {

constexpr std::size_t limit = 4096;

struct outcome {
  std::vector<std::string> frames;
  bool refused = false;
  friend bool operator==(const outcome&, const outcome&) = default;
};

outcome feed(kube::encoding format, std::string_view stream, const std::vector<std::size_t>& lengths) {
  kube::framer machine(format, limit);
  outcome made;
  const auto each = [&](std::string_view frame) {
    if (frame.size() > limit) std::abort();
    made.frames.emplace_back(frame);
    return true;
  };
  for (std::size_t i = 0; !stream.empty() && !made.refused; ++i) {
    const std::string chunk(stream.substr(0, i < lengths.size() ? lengths[i] : stream.size()));
    made.refused = !machine.feed(chunk, each);
    stream.remove_prefix(chunk.size());
  }
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t count = std::min<std::size_t>(data[0] % 32, size - 1);
  const std::vector<std::size_t> lengths(data + 1, data + 1 + count);
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1 + count, size - 1 - count);
  for (const auto format : {kube::encoding::protobuf, kube::encoding::json}) {
    if (feed(format, stream, {}) != feed(format, stream, lengths)) std::abort();
  }
  return 0;
}
