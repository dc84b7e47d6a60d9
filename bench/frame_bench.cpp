// Cutting a watch stream into frames, in chunks as a socket gives them, and reading each frame as an event.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>

#include "kube/event.hpp"
#include "kube/frame.hpp"

namespace {

/// 1,000 events of `size` bytes each.
std::string stream(kube::encoding format, std::size_t size) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) {
    const std::string filler(size, 'x');
    if (format == kube::encoding::json) {
      bytes +=
          R"({"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":")" +
          std::to_string(i) + R"("},"spec":{"x":")" + filler + "\"}}}\n";
      continue;
    }
    const auto field = [](int number, const std::string& content) {
      std::string made(1, static_cast<char>(number << 3 | 2));
      for (auto length = content.size();; length >>= 7) {
        made += static_cast<char>((length & 0x7f) | (length > 0x7f ? 0x80 : 0));
        if (length <= 0x7f) break;
      }
      return made + content;
    };
    const auto object = field(1, field(1, "a") + field(6, std::to_string(i))) + field(2, field(1, filler));
    const auto event =
        field(1, "MODIFIED") +
        field(2, field(1, std::string("k8s\0", 4) + field(1, field(1, "v1") + field(2, "Pod")) + field(2, object)));
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(event.size() >> shift);
    bytes += event;
  }
  return bytes;
}

void frames(benchmark::State& state, kube::encoding format) {
  const auto bytes = stream(format, static_cast<std::size_t>(state.range(0)));
  const auto chunk = static_cast<std::size_t>(state.range(1));
  std::size_t events = 0;
  for (auto _ : state) {
    kube::framer machine(format);
    for (std::size_t index = 0; index < bytes.size(); index += chunk) {
      const auto fed = machine.feed(std::string_view(bytes).substr(index, chunk), [&](std::string_view frame) {
        events += kube::read_event(frame, format).has_value();
        return true;
      });
      if (!fed) state.SkipWithError("refused");
    }
  }
  if (events != static_cast<std::size_t>(state.iterations()) * 1000) state.SkipWithError("events are missing");
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes.size()));
  state.SetItemsProcessed(static_cast<std::int64_t>(events));
}

BENCHMARK_CAPTURE(frames, protobuf, kube::encoding::protobuf)
    ->Args({1000, 16384})
    ->Args({10000, 16384})
    ->Args({10000, 1 << 20});
BENCHMARK_CAPTURE(frames, json, kube::encoding::json)
    ->Args({1000, 16384})
    ->Args({10000, 16384})
    ->Args({10000, 1 << 20});

}  // namespace
