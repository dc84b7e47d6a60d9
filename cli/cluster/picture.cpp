#include "cli/cluster/picture.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "api/gpu_quota.hpp"
#include "api/names.hpp"
#include "cli/cluster/operator_lease.hpp"
#include "cli/cluster/refusal.hpp"
#include "cli/cluster/snapshot.hpp"
#include "kube/client.hpp"
#include "kube/json_text.hpp"
#include "kube/reason.hpp"
#include "kube/status.hpp"
#include "reconcilers/declarations/custom_resource.hpp"
#include "reconcilers/declarations/declared_config_map.hpp"
#include "reconcilers/declarations/parse.hpp"
#include "text/input_file.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

namespace ext = reconcilers::extender;
using kube::text_in;
using nlohmann::json;

constexpr auto group_path = "/apis/quartermaster.io/v1alpha1";
constexpr std::array our_types{&kube::resources::accelerator_policies, &kube::resources::accelerator_nodes,
                               &kube::resources::resource_rules};

/// The server names a type that was deleted for a moment longer than it serves it.
kube::result<void> unless_gone(kube::result<void> listed, const kube::resource& type, picture& picture) {
  if (listed || listed.error().http != 404) return listed;
  if (std::ranges::find(our_types, &type) != our_types.end() && picture.knows(type))
    picture.missing_types.emplace_back(type.plural);
  return {};
}

template <class T>
kube::task<void> read_into(kube::transport& transport, picture& picture, controller::store<T>& store,
                           kube::list_options options = {}) {
  store.begin();
  if (picture.knows(T::of())) {
    auto done = co_await list_each<T>(transport, std::move(options), [&](T item) { store.put(std::move(item)); });
    done = unless_gone(std::move(done), T::of(), picture);
    if (!done) co_return std::unexpected(std::move(done.error()));
  }
  store.commit();
  co_return kube::result<void>();
}

kube::task<void> read_types(kube::transport& transport, picture& picture) {
  kube::client api(transport);
  const auto answer = co_await api.raw(group_path);
  if (!answer) co_return std::unexpected(answer.error());
  if (!kube::succeeded(answer->status) && answer->status != 404)
    co_return std::unexpected(kube::error_of("ask for the types of quartermaster.io", *answer));
  const auto list = answer->status == 200 ? json::parse(answer->body, nullptr, false) : json();
  const bool is_list = list.is_object() && list.contains("resources") && list["resources"].is_array();
  if (answer->status == 200 && !is_list)
    co_return std::unexpected(
        kube::error{kube::errc::decode, 200, "ask for the types of quartermaster.io: there is no list of them", {}});
  for (const auto* type : our_types) {
    const auto known = [&](const json& object) { return text_in(object, "name") == type->plural; };
    const bool there = is_list && std::ranges::any_of(list["resources"], known);
    if (!there) picture.missing_types.emplace_back(type->plural);
  }
  co_return kube::result<void>();
}

kube::task<void> read_accelerator_nodes(kube::transport& transport, picture& picture, kube::list_options options) {
  picture.cards.begin();
  if (picture.knows(kube::resources::accelerator_nodes)) {
    const std::function<void(api::reported_node)> keep = [&](api::reported_node node) {
      picture.reports.insert_or_assign(node.key.name, std::move(node.report));
      picture.cards.put(std::move(node));
    };
    auto done = co_await list_each<api::reported_node>(transport, std::move(options), keep);
    done = unless_gone(std::move(done), kube::resources::accelerator_nodes, picture);
    if (!done) co_return std::unexpected(std::move(done.error()));
  }
  picture.cards.commit();
  co_return kube::result<void>();
}

kube::list_options field_selected(std::string_view field, const std::string& value) {
  kube::list_options out;
  if (!value.empty()) out.field_selector = std::string(field) + "=" + value;
  return out;
}

kube::task<void> read_nodes(kube::transport& transport, picture& picture, const std::string& only) {
  auto done = co_await read_into(transport, picture, picture.nodes, field_selected("metadata.name", only));
  if (done && !only.empty() && picture.nodes.size() == 0)
    co_return std::unexpected(
        kube::error{kube::errc::not_found, 404, "there is no node " + text::shown(only), std::nullopt});
  co_return done;
}

kube::task<void> read_device_labels(kube::transport& transport, picture& picture) {
  auto options = selection_of(part::device_labels);
  using reconcilers::declarations::declared_config_map;
  options.limit = declared_config_map::page;
  const std::function<void(declared_config_map)> keep = [&](const declared_config_map& config_map) {
    const auto parsed = reconcilers::declarations::parse_device(reconcilers::view_of(config_map));
    if (parsed.value.sound) picture.declared.push_back(reconcilers::alias_of(parsed.value));
  };
  co_return co_await list_each<declared_config_map>(transport, options, keep);
}

kube::task<void> read_daemon_sets(kube::transport& transport, picture& picture) {
  auto options = selection_of(part::daemon_sets);
  options.ns = picture.leader.ns;
  const std::function<void(kube::daemon_set)> keep = [&](kube::daemon_set set) {
    if (picture.leader.ns.empty()) picture.leader.ns = set.key.ns;
    picture.daemon_sets.push_back(std::move(set));
  };
  co_return co_await list_each<kube::daemon_set>(transport, options, keep);
}

kube::task<void> read_lease(kube::transport& transport, picture& picture) {
  auto& seen = picture.leader;
  auto lease = co_await find_lease(transport, seen.ns);
  if (!lease) co_return std::unexpected(std::move(lease.error()));
  seen.lease = std::move(*lease);
  if (seen.lease && seen.ns.empty()) seen.ns = seen.lease->key.ns;
  co_return kube::result<void>();
}

/// Whether a lease that looks old is renewed all the same: clocks differ.
kube::task<void> look_again(kube::transport& transport, operator_seen& seen) {
  const auto& lease = *seen.lease;
  if (lease.holder.empty() || looks_fresh(lease)) co_return kube::result<void>();
  const auto renewed = co_await is_renewed(transport, lease);
  if (renewed) seen.renewed = *renewed;
  co_return kube::result<void>();
}

/// With a given namespace that is not the operator's, its own DaemonSets would count as foreign.
kube::task<void> sure_of_namespace(kube::transport& transport, const std::string& ns, const picture& picture) {
  if (ns.empty() || picture.leader.lease || !picture.daemon_sets.empty()) co_return kube::result<void>();
  const auto elsewhere = co_await find_lease(transport, {});
  if (!elsewhere || !*elsewhere || (*elsewhere)->key.ns == ns) co_return kube::result<void>();
  co_return std::unexpected(kube::error{kube::errc::config, 0,
                                        "there is no operator in namespace " + ns + "; its lease is in namespace " +
                                            (*elsewhere)->key.ns + " (name that, or none)",
                                        std::nullopt});
}

kube::task<void> read_slices(kube::transport& transport, picture& picture) {
  auto found = co_await read_resource_slices(transport);
  if (!found) co_return std::unexpected(std::move(found.error()));
  picture.claimed = std::move(*found);
  co_return kube::result<void>();
}

/// Everyone may ask which types a group has. Where no such API is installed there is no such group.
kube::task<void> read_view_api(kube::transport& transport, picture& picture) {
  kube::client api(transport);
  const auto answer = co_await api.raw("/apis/view.quartermaster.io/v1alpha1");
  if (!answer) picture.view_api_problem = answer.error().message;
  if (answer && answer->status >= 500) picture.view_api_problem = kube::reason_of(*answer);
  co_return kube::result<void>();
}

kube::task<void> read_part(kube::transport& transport, part part, const picture_request& request, picture& picture) {
  switch (part) {
    case part::types:
      co_return co_await read_types(transport, picture);
    case part::policies:
      co_return co_await read_into(transport, picture, picture.policies);
    case part::rules:
      co_return co_await read_into(transport, picture, picture.rules);
    case part::quotas:
      co_return co_await read_into(transport, picture, picture.quotas);
    case part::old_quotas:
      co_return co_await read_into(transport, picture, picture.old_quotas, selection_of(part));
    case part::accelerator_nodes:
      co_return co_await read_accelerator_nodes(transport, picture, field_selected("metadata.name", request.node));
    case part::nodes:
      co_return co_await read_nodes(transport, picture, request.node);
    case part::pods: {
      auto options = field_selected("spec.nodeName", request.node);
      options.ns = request.pods_in;
      co_return co_await read_into(transport, picture, picture.pods, std::move(options));
    }
    case part::daemon_sets:
      co_return co_await read_daemon_sets(transport, picture);
    case part::device_labels:
      co_return co_await read_device_labels(transport, picture);
    case part::lease:
      co_return co_await read_lease(transport, picture);
    case part::slices:
      co_return co_await read_slices(transport, picture);
    case part::view_api:
      co_return co_await read_view_api(transport, picture);
    case part::classes:  // read by the verbs that are about pods
    case part::claims:   // of one pod (cli/explain/resource_claims)
    case part::limits:   // of the namespaces that a verb is about (cli/explain/namespace_limits)
      break;
  }
  co_return kube::result<void>();
}

/// In which they are read: DaemonSets after the lease, which says in which namespace they are.
constexpr std::array order{part::types,
                           part::rules,
                           part::policies,
                           part::quotas,
                           part::old_quotas,
                           part::device_labels,
                           part::accelerator_nodes,
                           part::nodes,
                           part::lease,
                           part::daemon_sets,
                           part::pods,
                           part::slices,
                           part::view_api};

}  // namespace

/// Where the plugins' pods are looked for, which say what a node is served by. Where nothing that was read says it, it
/// is the chart's.
std::string picture::plugin_namespace() const {
  if (!leader.ns.empty()) return leader.ns;
  return daemon_sets.empty() ? "quartermaster" : daemon_sets.front().key.ns;
}

void picture::finish() {
  book = std::make_unique<ext::account>(ext::account::stores{pods, nodes, policies, rules, quotas, old_quotas, cards},
                                        metrics, plugin_namespace());
}

bool picture::knows(const kube::resource& type) const {
  return std::ranges::find(missing_types, type.plural) == missing_types.end();
}

text::phrase picture::reason_unseen(part part) const {
  const auto match = unseen.find(part);
  return match == unseen.end() ? text::phrase() : match->second;
}

kube::list_options selection_of(part part) {
  kube::list_options out;
  if (part == cli::part::old_quotas) {
    out.ns = api::gpu_quota_namespace;
    out.field_selector = "metadata.name=" + std::string(api::gpu_quota_name);
  } else if (part == cli::part::device_labels) {  // of the namespace the operator reads them in
    out.ns = reconcilers::declarations::parse_settings().ns;
    out.label_selector = reconcilers::declarations::names::device_selector;
  } else if (part == cli::part::daemon_sets) {
    out.label_selector = std::string(api::names::managed_by_label) + "=" + std::string(api::names::managed_by);
  } else if (part == cli::part::lease) {
    out.field_selector = operator_lease_selector;
  }
  return out;
}

picture_request ledger_parts() {
  return {{part::rules, part::policies, part::quotas, part::accelerator_nodes, part::nodes, part::pods},
          {part::old_quotas}};
}

bool sees_ledger(const picture& picture) {
  return std::ranges::all_of(ledger_parts().needed, [&](part part) { return picture.reason_unseen(part).empty(); });
}

kube::task<void> read_picture(kube::transport& transport, picture_request request, picture& picture) {
  picture.leader.ns = request.ns;
  for (const auto part : order) {
    const bool is_needed = request.needed.contains(part);
    if (!is_needed && !request.wished.contains(part)) continue;
    auto done = co_await read_part(transport, part, request, picture);
    const bool is_tolerable =
        !is_needed && !done && (part == part::lease || done.error().code == kube::errc::forbidden);
    if (!done && !is_tolerable) co_return std::unexpected(std::move(done.error()));
    if (!done) picture.unseen.emplace(part, phrase_of(done.error()));
  }
  if (request.needed.contains(part::daemon_sets)) {
    const auto sure = co_await sure_of_namespace(transport, request.ns, picture);
    if (!sure) co_return std::unexpected(sure.error());
  }
  if (picture.leader.lease) co_return co_await look_again(transport, picture.leader);
  co_return kube::result<void>();
}

kube::task<void> read_ledger(kube::transport& transport, picture& picture) {
  auto done = co_await read_picture(transport, ledger_parts(), picture);
  if (done) picture.finish();
  co_return done;
}

/// A file that never ends is refused, too. Its values take several times as much memory as its text.
constexpr std::size_t largest_snapshot = std::size_t{256} << 20;

std::expected<void, text::phrase> gather(const cluster_options& options, const std::string& snapshot, picture& picture,
                                         picture_request request) {
  if (snapshot.empty()) {
    auto done =
        ask_cluster(options, [&](kube::transport& transport) { return read_picture(transport, request, picture); });
    const bool has_ledger = std::ranges::includes(request.needed, ledger_parts().needed);
    if (done && has_ledger) picture.finish();
    if (!done && done.error().code == kube::errc::not_found && !request.node.empty())
      return std::unexpected(text::phrase{"transport.no_node", {{"node", text::shown(request.node)}}});
    return in_words(done);
  }
  const auto wrong = [&](text::phrase problem) {
    return std::unexpected(
        text::phrase{"snapshot.of_file", {{"file", text::shown(snapshot, 4096)}, {"problem", std::move(problem)}}});
  };
  if (const auto fault = text::fault_of_input(snapshot); !fault.empty()) return wrong({fault});
  std::ifstream file(snapshot, std::ios::binary);
  if (!file) return wrong(std::string(std::strerror(errno)));
  std::error_code unknown;
  if (std::filesystem::is_directory(snapshot, unknown)) return wrong({"snapshot.folder"});
  const text::phrase too_large{"snapshot.too_large", {{"size", std::to_string(largest_snapshot >> 20)}}};
  if (const auto size = std::filesystem::file_size(snapshot, unknown); !unknown && size > largest_snapshot)
    return wrong(too_large);
  std::string text;
  for (std::string block(1 << 20, '\0'); file && text.size() <= largest_snapshot;) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    text.append(block, 0, static_cast<std::size_t>(file.gcount()));
    if (const auto first = text.find_first_not_of(" \t\r\n"); first < text.size() && text[first] != '{') break;
  }
  if (text.size() > largest_snapshot) return wrong(too_large);
  if (auto read = read_snapshot(text, picture); !read) return wrong(std::move(read.error()));
  return {};
}

}  // namespace cli
