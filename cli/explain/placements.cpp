#include "cli/explain/placements.hpp"

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "api/gpu_quota.hpp"
#include "cli/cluster/snapshot.hpp"

namespace cli {
namespace {

namespace ext = reconcilers::extender;
using json = nlohmann::ordered_json;

template <class T>
kube::task<void> read_into(kube::transport& over, controller::store<T>& into, kube::list_options what = {}) {
  into.begin();
  auto done = co_await list_each<T>(over, std::move(what), [&](T one) { into.put(std::move(one)); });
  // Custom resources of a cluster without the operator: nothing is declared there.
  if (!done && done.error().code != kube::errc::not_found) co_return std::unexpected(std::move(done.error()));
  into.commit();
  co_return kube::result<void>();
}

/// Few people may read kube-system: to them such limits are told when their pod is refused.
kube::task<void> read_old_quotas(kube::transport& over, controller::store<kube::config_map>& into) {
  kube::list_options what;
  what.ns = reconcilers::gpu_quota_namespace;
  what.field_selector = "metadata.name=" + std::string(reconcilers::gpu_quota_name);
  auto done = co_await read_into(over, into, std::move(what));
  if (!done && done.error().code != kube::errc::forbidden) co_return std::unexpected(std::move(done.error()));
  co_return kube::result<void>();
}

}  // namespace

void placements::finish() {
  book = std::make_unique<ext::account>(ext::account::stores{pods, nodes, policies, rules, quotas, old_quotas, cards},
                                        metrics);
}

kube::task<void> read_placements(kube::transport& over, placements& into) {
  for (auto done : {co_await read_into(over, into.rules), co_await read_into(over, into.policies),
                    co_await read_into(over, into.quotas), co_await read_old_quotas(over, into.old_quotas),
                    co_await read_into(over, into.cards), co_await read_into(over, into.nodes),
                    co_await read_into(over, into.pods)})
    if (!done) co_return std::unexpected(std::move(done.error()));
  into.finish();
  co_return kube::result<void>();
}

kube::result<void> gather(const cluster_options& from, const std::string& snapshot, placements& into) {
  if (snapshot.empty()) return ask_cluster(from, [&](kube::transport& over) { return read_placements(over, into); });
  const auto wrong = [&](const std::string& why) {
    return std::unexpected(kube::error{kube::errc::config, 0, snapshot + ": " + why, std::nullopt});
  };
  std::ifstream file(snapshot, std::ios::binary);
  if (!file) return wrong(std::strerror(errno));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (const auto read = read_snapshot(text, into); !read) return wrong(read.error());
  return {};
}

known_resources resources_of(const placements& in) {
  known_resources out;
  for (const auto& node : in.nodes.all()) add_offered(node, out.offered);
  if (const auto* rules = in.rules.find(reconcilers::compiled_rules::only()))
    for (auto& key : rules->keys()) out.declared.insert(std::move(key));
  return out;
}
/// What is said of the keys of a pod that nobody knows; empty: it has none.
std::string unknown_keys(const kube::pod& pod, const known_resources& known) {
  std::set<std::string> texts;
  for (const auto& container : pod.containers)
    for (const auto& [key, amount] : container.limits)
      if (amount != 0 && known.lacks(key)) texts.insert(known.text_of(key));
  std::string out;
  for (const auto& text : texts) out += (out.empty() ? "" : "; ") + text;
  return out;
}

std::vector<held_row> rows_of(const quota::holding& held, const ext::asked& by) {
  std::vector<held_row> out;
  for (const auto& one : held.grants) {
    const auto name = one.container < by.names().size() ? by.names()[one.container]->name : "?";
    const auto amount = one.whole ? std::string("whole card")
                                  : std::to_string(one.cores) + " cores, " + std::to_string(one.memory_mib) + " MiB";
    out.push_back({name, one.card, amount});
  }
  for (const auto& one : held.counts) out.push_back({"", one.key, std::to_string(one.amount)});
  return out;
}
json json_of(const quota::holding& held, const ext::asked& by) {
  json out = json::array();
  for (const auto& one : held.grants)
    out.push_back({{"container", one.container < by.names().size() ? by.names()[one.container]->name : ""},
                   {"card", one.card},
                   {"whole", one.whole},
                   {"cores", one.cores},
                   {"memoryMiB", one.memory_mib}});
  for (const auto& one : held.counts) out.push_back({{"key", one.key}, {"count", one.amount}});
  return out;
}

std::string plural(std::size_t count, std::string_view one, std::string_view many) {
  return std::to_string(count) + " " + std::string(count == 1 ? one : many);
}

}  // namespace cli
