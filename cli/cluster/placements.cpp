#include "cli/cluster/placements.hpp"

#include <cstring>
#include <filesystem>
#include <fstream>

#include "api/gpu_quota.hpp"
#include "cli/cluster/snapshot.hpp"

namespace cli {
namespace {

namespace ext = reconcilers::extender;

template <class T>
kube::task<void> read_into(kube::transport& transport, controller::store<T>& store, kube::list_options options = {}) {
  store.begin();
  auto done = co_await list_each<T>(transport, std::move(options), [&](T item) { store.put(std::move(item)); });
  // Custom resources of a cluster without the operator: nothing is declared there.
  if (!done && done.error().code != kube::errc::not_found) co_return std::unexpected(std::move(done.error()));
  store.commit();
  co_return kube::result<void>();
}

/// Few people may read kube-system: the others learn such limits when their pod is refused.
kube::task<void> read_old_quotas(kube::transport& transport, controller::store<kube::config_map>& store) {
  kube::list_options options;
  options.ns = api::gpu_quota_namespace;
  options.field_selector = "metadata.name=" + std::string(api::gpu_quota_name);
  auto done = co_await read_into(transport, store, std::move(options));
  if (!done && done.error().code != kube::errc::forbidden) co_return std::unexpected(std::move(done.error()));
  co_return kube::result<void>();
}

}  // namespace

void placements::finish() {
  book = std::make_unique<ext::account>(ext::account::stores{pods, nodes, policies, rules, quotas, old_quotas, cards},
                                        metrics);
}

kube::task<void> read_placements(kube::transport& transport, placements& placements) {
  for (auto done :
       {co_await read_into(transport, placements.rules), co_await read_into(transport, placements.policies),
        co_await read_into(transport, placements.quotas), co_await read_old_quotas(transport, placements.old_quotas),
        co_await read_into(transport, placements.cards), co_await read_into(transport, placements.nodes),
        co_await read_into(transport, placements.pods)})
    if (!done) co_return std::unexpected(std::move(done.error()));
  placements.finish();
  co_return kube::result<void>();
}

kube::result<void> gather(const cluster_options& options, const std::string& snapshot, placements& placements) {
  if (snapshot.empty())
    return ask_cluster(options, [&](kube::transport& transport) { return read_placements(transport, placements); });
  const auto wrong = [&](const std::string& reason) {
    return std::unexpected(kube::error{kube::errc::config, 0, snapshot + ": " + reason, std::nullopt});
  };
  std::ifstream file(snapshot, std::ios::binary);
  if (!file) return wrong(std::strerror(errno));
  std::error_code unknown;
  if (std::filesystem::is_directory(snapshot, unknown)) return wrong("it is a folder");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (const auto read = read_snapshot(text, placements); !read) return wrong(read.error());
  return {};
}

}  // namespace cli
