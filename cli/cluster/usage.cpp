#include "cli/cluster/usage.hpp"

#include "cli/cluster/cluster.hpp"
#include "reconcilers/usage/keeper.hpp"

namespace cli {

kube::task<std::vector<api::accelerator_usage>> read_usage(kube::transport& transport, std::string month) {
  std::vector<api::accelerator_usage> out;
  kube::list_options options;
  options.label_selector = std::string(reconcilers::usage::month_label) + "=" + month;
  const std::function<void(api::accelerator_usage)> keep = [&](api::accelerator_usage usage) {
    const bool is_ours = usage.key.name == api::usage_name(month, usage.name_space);
    if (usage.month == month && is_ours) out.push_back(std::move(usage));
  };
  auto listed = co_await list_each<api::accelerator_usage>(transport, options, keep);
  if (!listed) co_return std::unexpected(std::move(listed.error()));
  co_return out;
}

}  // namespace cli
