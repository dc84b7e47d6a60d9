// TKE's qGPU: cores and memory of cards, kept apart by its own driver.

#include "reconcilers/dialects/dialect.hpp"
#include "reconcilers/dialects/module_settings.hpp"

namespace reconcilers::dialects {
namespace {

class qgpu_plugin final : public dialect {
 public:
  quota::mode engine_mode() const override { return quota::mode::qgpu; }
  std::span<const way> ways() const override {
    static constexpr way list[] = {{"", cores_key}};
    return list;
  }
  offer offered(const kube::node& node, const quota::service&) const override {
    const auto cards = kube::amount(node.allocatable, cores_key) / 100;
    return {.cards = cards,
            .memory_mib = share_of(kube::amount(node.allocatable, "tke.cloud.tencent.com/qgpu-memory") * 1024, cards)};
  }

 private:
  static constexpr std::string_view cores_key = "tke.cloud.tencent.com/qgpu-core";
};

}  // namespace

const dialect& qgpu() {
  static const qgpu_plugin plugin;
  return plugin;
}

}  // namespace reconcilers::dialects
