// ACK's whole cards by topology: its own scheduler chooses them.

#include "reconcilers/dialects/dialect.hpp"

namespace reconcilers::dialects {
namespace {

class ack_topology_plugin final : public dialect {
 public:
  quota::mode engine_mode() const override { return quota::mode::topology; }
  std::span<const way> ways() const override {
    static constexpr way list[] = {{"", "aliyun.com/gpu"}};
    return list;
  }
  offer offered(const kube::node& node, const quota::service&) const override {
    return {.cards = kube::amount(node.allocatable, "aliyun.com/gpu")};
  }
};

}  // namespace

const dialect& ack_topology() {
  static const ack_topology_plugin plugin;
  return plugin;
}

}  // namespace reconcilers::dialects
