// A watch machine driven by random answers, in both encodings. Each step takes one byte for what happens and, for
// frames and pages, one for a length. Whatever comes: requests make sense, a store gets begin before commit, and
// failures are never answered at once for ever.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "kube/watch_machine.hpp"

namespace {

using namespace std::chrono_literals;
using ms = std::chrono::milliseconds;
using kind = kube::store_op::kind;

class input {
 public:
  input(const std::uint8_t* data, std::size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}
  bool empty() const { return rest_.empty(); }
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const auto value = static_cast<std::uint8_t>(rest_[0]);
    rest_.remove_prefix(1);
    return value;
  }
  std::string bytes() {
    const auto length = std::min<std::size_t>(byte(), rest_.size());
    const std::string taken(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return taken;
  }

 private:
  std::string_view rest_;
};

void require(bool holds) {
  if (!holds) std::abort();
}

class driver {
 public:
  driver(input input, kube::encoding wire, bool watch_list)
      : input_(input), wire_(wire), machine_(kube::resources::pods, settings(wire, watch_list), [] { return 0.5; }) {}

  void run() {
    while (!input_.empty()) {
      auto step = machine_.next(now_);
      if (step.action == kube::watch_step::kind::wait) {
        require(step.wait > 0ms && step.wait <= 300s);
        now_ += step.wait;
        step = machine_.next(now_);
      }
      require(step.action != kube::watch_step::kind::wait);
      const bool watch = step.send.target.find("watch=true") != std::string::npos;
      require(watch == (step.action == kube::watch_step::kind::watch));
      // A plain watch always has a version to start from.
      if (watch && step.send.target.find("sendInitialEvents") == std::string::npos)
        require(!machine_.resource_version().empty());
      watch ? stream() : list();
    }
  }

 private:
  static kube::watch_settings settings(kube::encoding wire, bool watch_list) {
    kube::watch_settings made;
    made.wire = wire;
    made.watch_list = watch_list;
    return made;
  }

  std::string page() {
    if (wire_ == kube::encoding::protobuf || input_.byte() % 2) return input_.bytes();
    return R"({"metadata":{"resourceVersion":"7","continue":")" + std::string(input_.byte() % 2, 'c') +
           R"("},"items":[{},{}]})";
  }
  std::string frame() {
    static constexpr std::string_view types[] = {"ADDED", "DELETED", "BOOKMARK", "ERROR", "X"};
    if (wire_ == kube::encoding::protobuf || input_.byte() % 4 == 0) return input_.bytes();
    const auto type = types[input_.byte() % 5];
    return R"({"type":")" + std::string(type) + R"(","object":{"kind":")" + (type == "ERROR" ? "Status" : "Pod") +
           R"(","code":)" + std::to_string(400 + input_.byte()) + R"(,"metadata":{"resourceVersion":")" +
           std::to_string(input_.byte()) + R"(","annotations":{"k8s.io/initial-events-end":")" +
           (input_.byte() % 2 ? "true" : "") + R"("}}}})";
  }
  kube::error failure() {
    kube::error made;
    made.code = static_cast<kube::errc>(input_.byte() % (static_cast<int>(kube::errc::decode) + 1));
    if (input_.byte() % 4 == 0) made.retry_after = std::chrono::seconds(input_.byte());
    return made;
  }
  void apply(const kube::store_op& op, const std::string& bytes) {
    if (op.action == kind::begin) begun_ = true;
    if (op.action == kind::commit) require(std::exchange(begun_, false));
    if (op.object.empty()) return;
    require(op.object.data() >= bytes.data() && op.object.data() + op.object.size() <= bytes.data() + bytes.size());
  }
  void list() {
    if (input_.byte() % 3 == 0) return machine_.on_error(failure(), now_);
    const auto body = page();
    machine_.on_list_page(body, now_, [&](kube::store_op op) { apply(op, body); });
  }
  void stream() {
    bool open = false;
    while (!input_.empty()) {
      now_ += ms(input_.byte() * 100);
      switch (input_.byte() % 8) {
        case 0:
          return machine_.on_error(failure(), now_);
        case 1:
          return machine_.on_watch_closed(now_);
        case 2:
          if (machine_.on_tick(now_)) return;
          break;
        default: {
          const auto bytes = frame();
          if (!std::exchange(open, true)) apply(machine_.on_watch_open(now_), bytes);
          const auto op = machine_.on_frame(bytes, now_);
          if (op.action == kind::restart) return;
          apply(op, bytes);
        }
      }
    }
  }

  input input_;
  kube::encoding wire_;
  kube::watch_machine machine_;
  ms now_{0};
  bool begun_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input bytes(data, size);
  const auto flags = bytes.byte();
  driver(bytes, flags % 2 ? kube::encoding::json : kube::encoding::protobuf, flags & 2).run();
  return 0;
}
