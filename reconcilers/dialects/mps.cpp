// Shares by NVIDIA's MPS server (module mps): cores and memory of cards, as many clients at once as the card may have.

#include "reconcilers/dialects/dialect.hpp"
#include "reconcilers/dialects/module_settings.hpp"

namespace reconcilers::dialects {
namespace {

class mps_plugin final : public dialect {
 public:
  quota::mode engine_mode() const override { return quota::mode::mps; }
  std::span<const way> ways() const override {
    static constexpr way list[] = {{"mps", cores_key}};
    return list;
  }
  void read_service(quota::service& out, const kube::node&, const accelerator_policy*) const override {
    out.one_card = true;
  }
  offer offered(const kube::node& node, const quota::service&) const override {
    const auto cards = kube::amount(node.allocatable, cores_key) / 100;
    return {.cards = cards,
            .memory_mib = share_of(kube::amount(node.allocatable, "nvidia.com/mps-memory") * 1024, cards),
            .max_sharers = clients_of_mps(node)};
  }

 private:
  static constexpr std::string_view cores_key = "nvidia.com/mps-core";
};

}  // namespace

const dialect& mps() {
  static const mps_plugin plugin;
  return plugin;
}

}  // namespace reconcilers::dialects
