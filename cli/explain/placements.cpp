#include "cli/explain/placements.hpp"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "api/gpu_quota.hpp"
#include "cli/cluster/snapshot.hpp"

namespace cli {
namespace {

namespace ext = reconcilers::extender;
using nlohmann::ordered_json;

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

known_resources resources_of(const placements& placements) {
  known_resources out;
  for (const auto& node : placements.nodes.all()) add_offered(node, out.offered);
  if (const auto* rules = placements.rules.find(api::compiled_rules::only()))
    for (auto& key : rules->keys()) out.declared.insert(std::move(key));
  return out;
}
/// The sentence about keys of a pod that no one knows; empty: it has none.
std::string unknown_keys(const kube::pod& pod, const known_resources& known) {
  std::set<std::string> texts;
  for (const auto& container : pod.containers)
    for (const auto& [key, amount] : container.limits)
      if (amount != 0 && known.lacks(key)) texts.insert(known.text_of(key));
  std::string out;
  for (const auto& text : texts) out += (out.empty() ? "" : "; ") + text;
  return out;
}

std::vector<held_row> rows_of(const quota::holding& held, const ext::pod_request& request) {
  std::vector<held_row> out;
  for (const auto& grant : held.grants) {
    const auto name = grant.container < request.names().size() ? request.names()[grant.container]->name : "?";
    const auto amount = grant.whole
                            ? std::string("whole card")
                            : std::to_string(grant.cores) + " cores, " + std::to_string(grant.memory_mib) + " MiB";
    out.push_back({name, grant.card, amount});
  }
  for (const auto& count : held.counts) out.push_back({"", count.key, std::to_string(count.amount)});
  return out;
}
ordered_json json_of(const quota::holding& held, const ext::pod_request& request) {
  ordered_json out = ordered_json::array();
  for (const auto& grant : held.grants)
    out.push_back(
        {{"container", grant.container < request.names().size() ? request.names()[grant.container]->name : ""},
         {"card", grant.card},
         {"whole", grant.whole},
         {"cores", grant.cores},
         {"memoryMiB", grant.memory_mib}});
  for (const auto& count : held.counts) out.push_back({{"key", count.key}, {"count", count.amount}});
  return out;
}

std::string plural(std::size_t count, std::string_view singular, std::string_view many) {
  return std::to_string(count) + " " + std::string(count == 1 ? singular : many);
}

}  // namespace cli
