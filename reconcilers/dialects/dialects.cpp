#include <algorithm>

#include "reconcilers/dialects/dialect.hpp"
#include "reconcilers/dialects/plugin_names.hpp"

namespace reconcilers::dialects {

const dialect& whole_cards();
const dialect& time_slices();
const dialect& mps();
const dialect& gpu_manager();
const dialect& hami();
const dialect& gpushare();
const dialect& ack_topology();
const dialect& volcano();
const dialect& qgpu();

std::vector<plugin_name> hami_plugins();
std::vector<plugin_name> volcano_plugins();
std::vector<plugin_name> gpushare_plugins();
std::vector<plugin_name> gpu_manager_plugins();
std::vector<plugin_name> nvidia_plugins();

const std::vector<plugin_name>& plugin_names() {
  static const auto names = [] {
    std::vector<plugin_name> out;
    for (const auto& product :
         {hami_plugins(), volcano_plugins(), gpushare_plugins(), gpu_manager_plugins(), nvidia_plugins()})
      out.insert(out.end(), product.begin(), product.end());
    return out;
  }();
  return names;
}

std::span<const dialect* const> all() {
  // Whose key is its own comes before those who share one; of those, the one that is certain comes first.
  static const dialect* const list[] = {&gpu_manager(),  &mps(),     &hami(),        &gpushare(),   &qgpu(),
                                        &ack_topology(), &volcano(), &time_slices(), &whole_cards()};
  return list;
}

std::vector<const dialect*> serving(const quota::service& serves) {
  std::vector<const dialect*> out;
  for (const auto* product : all())
    if (serves.has(product->engine_mode())) out.push_back(product);
  return out;
}

const lock_words* lock_of(const quota::service& serves) {
  if (serves.one_card) return nullptr;  // our own plugin, which knows each pod
  for (const auto* product : serving(serves))
    if (const auto* words = product->lock()) return words;
  return nullptr;
}

bool finds_pods_by_time(const quota::service& serves) {
  if (serves.one_card) return false;
  return std::ranges::any_of(serving(serves), [](const dialect* product) { return product->finds_pods_by_time(); });
}

}  // namespace reconcilers::dialects
