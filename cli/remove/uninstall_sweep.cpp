#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <ranges>
#include <set>

#include "api/accelerator_quota.hpp"
#include "api/memory.hpp"
#include "api/names.hpp"
#include "cli/remove/uninstall.hpp"
#include "controller/sleep.hpp"
#include "kube/json_text.hpp"
#include "kube/projections/pod.hpp"
#include "reconcilers/admission/webhook_objects.hpp"
#include "reconcilers/certificates/extender_certificates.hpp"
#include "reconcilers/cuda/facts.hpp"
#include "reconcilers/cuda/labels.hpp"
#include "reconcilers/declarations/declaration.hpp"
#include "reconcilers/declarations/verdict.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"
#include "reconcilers/modules/node_sets.hpp"
#include "reconcilers/nodes/card_labeler.hpp"
#include "reconcilers/views/view_certificates.hpp"
#include "text/list.hpp"
#include "text/messages.hpp"

namespace cli {
namespace {

using kube::text_at;
using nlohmann::json;

constexpr kube::resource types{"apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition",
                               false};
constexpr std::array<std::string_view, 5> our_types{
    "acceleratorpolicies.quartermaster.io", "acceleratornodes.quartermaster.io", "acceleratorquotas.quartermaster.io",
    "acceleratorusages.quartermaster.io", "resourcerules.quartermaster.io"};
/// What the API server calls goes first; what pods run from goes before what they read.
constexpr std::array<const kube::resource*, 10> swept_types{&kube::resources::mutating_webhook_configurations,
                                                            &kube::resources::validating_webhook_configurations,
                                                            &kube::resources::resource_rules,
                                                            &kube::resources::deployments,
                                                            &kube::resources::daemon_sets,
                                                            &kube::resources::services,
                                                            &kube::resources::config_maps,
                                                            &kube::resources::secrets,
                                                            &kube::resources::service_accounts,
                                                            &kube::resources::accelerator_nodes};
constexpr std::array<std::string_view, 5> own_secrets{
    reconcilers::names::extender_server_secret, api::names::extender_client_secret,
    reconcilers::names::extender_authority_secret, reconcilers::names::webhook, reconcilers::names::views};
constexpr int looks = 180;

text::phrase counted(std::size_t number, const kube::resource& type) {
  const std::string name(type.kind);
  const bool is_plural = number != 1 && !name.ends_with("s");
  return {"uninstall.objects", {{"number", std::to_string(number)}, {"kind", is_plural ? name + "s" : name, name}}};
}

/// A pod that has a node needs no scheduler, even while its phase is Pending.
std::string waiting_pods() {
  return "spec.schedulerName=" + std::string(api::names::scheduler_name) + ",spec.nodeName=,status.phase=Pending";
}

json removal_of(std::string path) { return {{"op", "remove"}, {"path", std::move(path)}}; }
json test_of(std::string path, json value) {
  return {{"op", "test"}, {"path", std::move(path)}, {"value", std::move(value)}};
}

/// Gone meanwhile is as good as removed.
bool gone(const kube::error& error) {
  return error.code == kube::errc::not_found || error.code == kube::errc::conflict;
}

/// Where the operator may write, for accounts that may not look in all namespaces.
struct operator_namespaces {
  std::string own, declarations;
};

bool forbidden(const kube::error& error) { return error.code == kube::errc::forbidden; }

/// The operator's Secrets, one by one: an account that only removes them need not list those of others.
kube::task<std::vector<json>> read_secrets(kube::client& api, std::string ns) {
  std::vector<json> out;
  for (const auto name : own_secrets) {
    const kube::object_key key{ns, std::string(name)};
    auto secret = co_await api.get(kube::resources::secrets, key);
    if (!secret && secret.error().code == kube::errc::not_found) continue;
    if (!secret) co_return std::unexpected(secret.error());
    if (text_at(*secret, "/metadata/labels/app.kubernetes.io~1managed-by") == api::names::managed_by)
      out.push_back(std::move(*secret));
  }
  co_return out;
}

kube::task<std::vector<json>> list_ours(kube::client& api, const kube::resource& type, operator_namespaces namespaces) {
  kube::list_options options;
  options.label_selector = std::string(api::names::managed_by_label) + "=" + std::string(api::names::managed_by);
  auto everywhere = co_await api.list(type, options);
  if (everywhere || !forbidden(everywhere.error()) || !type.namespaced || namespaces.own.empty()) co_return everywhere;
  options.ns = namespaces.own;
  auto out = co_await api.list(type, options);
  if (!out && forbidden(out.error()) && type.plural == kube::resources::secrets.plural)
    co_return co_await read_secrets(api, namespaces.own);
  if (!out || namespaces.declarations == namespaces.own) co_return out;
  options.ns = namespaces.declarations;
  auto declared = co_await api.list(type, options);
  if (declared)
    std::ranges::move(*declared, std::back_inserter(*out));
  else if (!forbidden(declared.error()))  // the operator writes only some types there
    co_return std::unexpected(declared.error());
  co_return out;
}

kube::task<std::size_t> sweep_type(kube::client& api, const kube::resource& type, operator_namespaces namespaces) {
  const auto found = co_await list_ours(api, type, std::move(namespaces));
  if (!found) {
    if (found.error().code == kube::errc::not_found) co_return std::size_t{0};
    co_return std::unexpected(found.error());
  }
  std::size_t removed = 0;
  for (const auto& entry : *found) {
    const auto done = co_await remove_seen(api, type, entry);
    if (!done) co_return std::unexpected(done.error());
    removed += *done ? 1 : 0;
  }
  co_return removed;
}

/// Until the garbage collector has taken the plugins' pods too.
kube::task<void> wait_for_plugins(kube::client& api, std::string ns) {
  kube::list_options options;
  options.ns = std::move(ns);
  options.label_selector = std::string(api::names::module_label);
  for (int i = 0; i < looks; ++i) {
    const auto pods = co_await api.list(kube::resources::pods, options);
    if (!pods) co_return std::unexpected(pods.error());
    if (pods->empty()) co_return kube::result<void>();
    co_await controller::sleep_for(std::chrono::seconds(1));
  }
  co_return std::unexpected(kube::error{kube::errc::timeout, 0,
                                        "pods of device plugins are still there after three minutes: kubectl get pods "
                                        "-A -l " +
                                            std::string(api::names::module_label),
                                        std::nullopt});
}

kube::task<std::size_t> tidy_nodes(kube::transport& transport, kube::client& api) {
  std::vector<std::pair<std::string, json>> patches;
  std::vector<kube::node> labelled;
  std::set<std::string> tidied;
  const std::function<void(kube::node)> look = [&](kube::node node) {
    if (auto patch = tidy_patch(node); !patch.empty()) patches.emplace_back(node.key.name, std::move(patch));
    if (node.annotations.contains(reconcilers::card_labels_annotation)) labelled.push_back(std::move(node));
  };
  const auto listed = co_await list_each<kube::node>(transport, kube::list_options(), look);
  if (!listed) co_return std::unexpected(listed.error());
  kube::write_options options;
  options.field_manager = api::names::field_owner;
  for (const auto& [name, patch] : patches) {
    const auto done =
        co_await api.patch(kube::resources::nodes, {{}, name}, kube::patch_kind::json, patch, {}, options);
    if (!done && !gone(done.error())) co_return std::unexpected(done.error());
    tidied.insert(name);
  }
  for (auto& node : labelled) {
    tidied.insert(node.key.name);
    const auto done = co_await reconcilers::write_card_labels(api, std::move(node), {});
    if (!done && !gone(done.error())) co_return std::unexpected(done.error());
  }
  co_return tidied.size();
}

/// Our verdicts on declarations, which stay: they are people's.
kube::task<std::size_t> tidy_declarations(kube::transport& transport, kube::client& api, std::string ns) {
  auto found = co_await read_declared(transport, "");
  if (!found && forbidden(found.error())) found = co_await read_declared(transport, ns);
  if (!found) co_return std::unexpected(found.error());
  const std::string path = "/metadata/annotations/quartermaster.io~1verdict";
  kube::write_options options;
  options.field_manager = api::names::field_owner;
  std::size_t tidied = 0;
  for (const auto& config_map : found->config_maps) {
    if (!config_map.annotations.contains(reconcilers::declarations::verdict_annotation)) continue;
    const auto patch = json::array({test_of("/metadata/uid", config_map.id.to_string()), removal_of(path)});
    const auto key = config_map.key;
    const auto done = co_await api.patch(kube::resources::config_maps, key, kube::patch_kind::json, patch, {}, options);
    if (!done && !gone(done.error())) co_return std::unexpected(done.error());
    ++tidied;
  }
  co_return tidied;
}

}  // namespace

bool enrolled(const kube::node& node) {
  return node.labels.contains(api::names::module_label) ||
         std::ranges::any_of(node.taints, [](const auto& taint) { return taint.key == api::names::switching_taint; });
}

json tidy_patch(const kube::node& node) {
  auto out = json::array({test_of("/metadata/uid", node.id.to_string())});
  if (node.labels.contains(api::names::module_label))
    out.push_back(removal_of("/metadata/labels/quartermaster.io~1module"));
  if (node.labels.contains(api::names::taken_over_label))
    out.push_back(removal_of("/metadata/labels/quartermaster.io~1taken-over"));
  if (node.labels.contains(api::names::static_pod_label))
    out.push_back(removal_of("/metadata/labels/quartermaster.io~1static-pod"));
  reconcilers::patch_set(node, {}, out);
  for (auto i = node.taints.size(); i-- > 0;) {  // from the end: what goes moves what follows
    const auto& key = node.taints[i].key;
    if (key != api::names::switching_taint && key != api::names::accelerator_taint) continue;
    const auto path = "/spec/taints/" + std::to_string(i);
    out.push_back(test_of(path + "/key", key));
    out.push_back(removal_of(path));
  }
  if (const auto wrote = api::remembered(node.annotations, reconcilers::cuda::names::written_annotation)) {
    const auto says = std::string(node.labels.value_or(reconcilers::cuda::keys::cuda_major, "")) + "." +
                      std::string(node.labels.value_or(reconcilers::cuda::keys::cuda_minor, ""));
    if (says == *wrote) {
      out.push_back(removal_of("/metadata/labels/cuda-major-version"));
      out.push_back(removal_of("/metadata/labels/cuda-minor-version"));
    }
    const bool former = !node.annotations.contains(reconcilers::cuda::names::written_annotation);
    out.push_back(removal_of(former ? "/metadata/annotations/quartermaster.io~1cuda-labels"
                                    : "/metadata/annotations/state.quartermaster.io~1cuda-labels"));
  }
  return out.size() == 1 ? json::array() : out;
}

kube::task<bool> remove_seen(kube::client& api, const kube::resource& type, const json& object) {
  const kube::object_key key{text_at(object, "/metadata/namespace"), text_at(object, "/metadata/name")};
  kube::preconditions only_if;
  only_if.uid = text_at(object, "/metadata/uid");
  if (only_if.uid.empty()) {
    co_return std::unexpected(kube::error{kube::errc::decode,
                                          0,
                                          "the answer for " + std::string(type.plural) + " \"" + key.to_string() +
                                              "\" is no object of an API server: it has no uid; it was not deleted",
                                          {}});
  }
  const auto done = co_await api.remove(type, key, only_if);
  if (!done && !gone(done.error())) co_return std::unexpected(done.error());
  co_return done.has_value();
}

kube::task<std::vector<removed_objects>> sweep(kube::transport& transport, std::string ns, std::string declarations) {
  kube::client api(transport);
  std::vector<removed_objects> out;
  const operator_namespaces namespaces{ns, declarations};
  for (const auto* type : swept_types) {
    const auto removed = co_await sweep_type(api, *type, namespaces);
    if (!removed) co_return std::unexpected(removed.error());
    if (*removed > 0) out.push_back({counted(*removed, *type)});
  }
  const auto left = co_await wait_for_plugins(api, ns);
  if (!left) co_return std::unexpected(left.error());
  const auto nodes = co_await tidy_nodes(transport, api);
  if (!nodes) co_return std::unexpected(nodes.error());
  if (*nodes > 0) out.push_back({{"uninstall.on_nodes", {{"objects", counted(*nodes, kube::resources::nodes)}}}});
  const auto verdicts = co_await tidy_declarations(transport, api, declarations);
  if (!verdicts) co_return std::unexpected(verdicts.error());
  if (*verdicts > 0)
    out.push_back({{"uninstall.verdicts", {{"objects", counted(*verdicts, kube::resources::config_maps)}}}});
  if (!ns.empty()) {
    const auto lease = co_await api.get(kube::resources::leases, {ns, "quartermaster"});
    if (lease) {
      const auto done = co_await remove_seen(api, kube::resources::leases, *lease);
      if (!done) co_return std::unexpected(done.error());
      out.push_back({counted(1, kube::resources::leases)});
    } else if (lease.error().code != kube::errc::not_found) {
      co_return std::unexpected(lease.error());
    }
  }
  co_return out;
}

kube::task<written_objects> read_written(kube::transport& transport) {
  written_objects out;
  const auto is_error = [](const kube::result<void>& listed) {
    return !listed && listed.error().code != kube::errc::not_found;
  };
  const std::function<void(reconcilers::accelerator_policy)> keep_policy = [&](reconcilers::accelerator_policy policy) {
    out.policies.push_back(std::move(policy.key.name));
  };
  const auto policies =
      co_await list_each<reconcilers::accelerator_policy>(transport, kube::list_options(), keep_policy);
  if (is_error(policies)) co_return std::unexpected(policies.error());
  const std::function<void(api::accelerator_quota)> keep_quota = [&](api::accelerator_quota quota) {
    out.quotas.push_back(std::move(quota.key));
  };
  const auto quotas = co_await list_each<api::accelerator_quota>(transport, kube::list_options(), keep_quota);
  if (is_error(quotas)) co_return std::unexpected(quotas.error());
  std::ranges::sort(out.policies);
  std::ranges::sort(out.quotas);
  co_return out;
}

text::phrase summary_of(const written_objects& written) {
  text::phrase policies, quotas;
  if (!written.policies.empty()) policies = {"uninstall.policies", {{"names", text::joined(written.policies)}}};
  if (!written.quotas.empty()) {
    std::set<std::string_view> namespaces;
    for (const auto& quota : written.quotas) namespaces.insert(quota.ns);
    quotas = text::counted_phrase(namespaces.size(), "uninstall.quotas");
    quotas.arguments.push_back({"objects", counted(written.quotas.size(), api::accelerator_quota::of())});
  }
  if (policies.empty() || quotas.empty()) return policies.empty() ? quotas : policies;
  return {"uninstall.both", {{"first", std::move(policies)}, {"second", std::move(quotas)}}};
}

std::string list_of_quotas(const written_objects& written, text::language locale) {
  constexpr std::size_t most_namespaces = 20;
  std::map<std::string_view, std::string> names;
  for (const auto& quota : written.quotas) {
    auto& line = names[quota.ns];
    line += (line.empty() ? "" : ", ") + quota.name;
  }
  std::string out;
  std::size_t index = 0;
  for (const auto& [ns, line] : names) {
    if (index++ == most_namespaces)
      return out + "  " +
             text::message("uninstall.more_namespaces", locale,
                           {{"number", std::to_string(names.size() - most_namespaces)}}) +
             "\n";
    out += "  " + std::string(ns) + ": " + line + "\n";
  }
  return out;
}

kube::task<std::vector<kube::object_key>> read_waiting(kube::transport& transport) {
  std::vector<kube::object_key> out;
  const std::function<void(kube::pod)> keep = [&](kube::pod pod) {
    if (!pod.deleting) out.push_back(std::move(pod.key));
  };
  kube::list_options options;
  options.field_selector = waiting_pods();
  const auto listed = co_await list_each<kube::pod>(transport, options, keep);
  if (!listed) co_return std::unexpected(listed.error());
  std::ranges::sort(out);
  co_return out;
}

std::string note_of_waiting(const std::vector<kube::object_key>& pods, text::language locale) {
  constexpr std::size_t named_at_most = 10;
  if (pods.empty()) return {};
  const auto line = [locale](const text::phrase& words) { return words_of(words, locale) + "\n"; };
  auto note = text::counted_phrase(pods.size(), "uninstall.waiting");
  note.arguments.push_back({"scheduler", std::string(api::names::scheduler_name)});
  auto out = line(note);
  for (const auto& pod : pods | std::views::take(named_at_most)) out += "  " + pod.to_string() + "\n";
  if (pods.size() > named_at_most)
    out += "  " + line({"uninstall.more_pods", {{"number", std::to_string(pods.size() - named_at_most)}}});
  return out +
         line({"uninstall.all_waiting", {{"command", "kubectl get pods -A --field-selector " + waiting_pods()}}}) +
         line({"uninstall.waiting_remedy"});
}

kube::task<std::vector<removed_objects>> remove_types(kube::transport& transport) {
  kube::client api(transport);
  std::size_t removed = 0;
  for (const auto name : our_types) {
    const kube::object_key key{{}, std::string(name)};
    const auto type = co_await api.get(types, key);
    if (!type && type.error().code == kube::errc::not_found) continue;
    if (!type) co_return std::unexpected(type.error());
    const auto done = co_await remove_seen(api, types, *type);
    if (!done) co_return std::unexpected(done.error());
    removed += *done ? 1 : 0;
  }
  std::vector<removed_objects> out;
  if (removed > 0) out.push_back({counted(removed, types)});
  co_return out;
}

}  // namespace cli
