#include "cli/cluster/snapshot.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "api/gpu_quota.hpp"
#include "api/names.hpp"
#include "cli/cluster/declaration_registry.hpp"
#include "cli/cluster/declared_document.hpp"
#include "cli/cluster/refusal.hpp"
#include "controller/clock.hpp"
#include "kube/event.hpp"
#include "kube/json_text.hpp"
#include "kube/projections/from_json.hpp"
#include "kube/projections/kept.hpp"
#include "kube/rfc3339.hpp"
#include "reconcilers/declarations/custom_resource.hpp"
#include "reconcilers/declarations/parse.hpp"
#include "text/input_file.hpp"
#include "text/list.hpp"
#include "text/resource_name.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using nlohmann::ordered_json;

/// Which fields of pods a file has: older ones lack what pods say of nodes and schedulers of them.
constexpr auto pod_fields = "podFields", pod_fields_saved = "scheduling";
constexpr std::string_view version = "quartermaster.io/v1alpha1", kind = "Snapshot";

const ordered_json& member(const ordered_json& object, const char* name) {
  static const ordered_json none;
  const auto match = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && match != object.end() ? *match : none;
}

/// Those of the members that are there.
ordered_json only(const ordered_json& object, std::initializer_list<const char*> names) {
  ordered_json out = ordered_json::object();
  for (const auto* name : names)
    if (const auto& field = member(object, name); !field.is_null()) out[name] = field;
  return out;
}

ordered_json metadata_of(const ordered_json& object) {
  const auto& all = member(object, "metadata");
  auto out = only(all, {"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
                        "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "finalizers"});
  for (const auto& [key, value] : member(all, "annotations").items())
    for (const std::string_view prefix : kube::kept_pod_annotations)
      if (key.starts_with(prefix)) out["annotations"][key] = value;
  return out;
}

/// Of a list of objects those of the members that are there.
ordered_json each_only(const ordered_json& list, std::initializer_list<const char*> names) {
  ordered_json out = ordered_json::array();
  if (!list.is_array()) return out;
  for (const auto& entry : list) out.push_back(only(entry, names));
  return out;
}

/// Of volumes the folders of the node alone.
ordered_json host_paths_of(const ordered_json& volumes) {
  ordered_json out = ordered_json::array();
  if (!volumes.is_array()) return out;
  for (const auto& volume : volumes)
    if (const auto& folder = member(volume, "hostPath"); !folder.is_null())
      out.push_back({{"hostPath", only(folder, {"path"})}});
  return out;
}

/// Statuses of containers. The message of one that has ended is left out: it is the container's own words. Of one that
/// waits it is the kubelet's.
ordered_json statuses_of(const ordered_json& list) {
  ordered_json out = ordered_json::array();
  if (!list.is_array()) return out;
  for (const auto& entry : list) {
    auto& status = out.emplace_back(only(entry, {"name", "ready", "restartCount"}));
    for (const auto* part : {"state", "lastState"})
      for (const auto& [name, state] : member(entry, part).items()) {
        status[part][name] = only(state, {"reason", "startedAt", "exitCode", "finishedAt"});
        if (const auto& message = member(state, "message"); name == "waiting" && !message.is_null())
          status[part][name]["message"] = message;
      }
  }
  return out;
}

ordered_json containers_of(const ordered_json& list) {
  ordered_json out = ordered_json::array();
  for (const auto& entry : list) out.push_back(only(entry, {"name", "resources", "restartPolicy"}));
  return out;
}

ordered_json stripped(const kube::resource& type, const ordered_json& object) {
  ordered_json out{{"metadata", metadata_of(object)}};
  const auto &spec = member(object, "spec"), &status = member(object, "status");
  static constexpr auto condition_fields = {"type", "status", "reason", "lastTransitionTime"};
  if (type.plural == kube::resources::nodes.plural) {
    out["spec"] = only(spec, {"unschedulable", "taints"});
    out["status"] = only(status, {"allocatable", "capacity", "addresses"});
    out["status"]["conditions"] = each_only(member(status, "conditions"), condition_fields);
    out["status"]["nodeInfo"] = only(member(status, "nodeInfo"),
                                     {"containerRuntimeVersion", "kubeletVersion", "operatingSystem", "architecture"});
  } else if (type.plural == kube::resources::pods.plural) {
    out["spec"] = only(spec, {"nodeName", "schedulerName", "priority", "hostNetwork", "nodeSelector", "tolerations",
                              "schedulingGates", "resourceClaims"});
    if (const auto& affinity = member(member(spec, "affinity"), "nodeAffinity"); !affinity.is_null())
      out["spec"]["affinity"]["nodeAffinity"] = affinity;
    out["spec"]["volumes"] = host_paths_of(member(spec, "volumes"));
    for (const auto* list : {"initContainers", "containers"})
      if (const auto& all = member(spec, list); all.is_array()) out["spec"][list] = containers_of(all);
    // Messages of the kubelet and of the scheduler, not of containers.
    out["status"] =
        only(status, {"phase", "reason", "message", "nominatedNodeName", "startTime", "resourceClaimStatuses"});
    out["status"]["conditions"] =
        each_only(member(status, "conditions"), {"type", "status", "reason", "message", "lastTransitionTime"});
    for (const auto* list : {"containerStatuses", "initContainerStatuses"})
      out["status"][list] = statuses_of(member(status, list));
  } else if (type.plural == kube::resources::daemon_sets.plural) {
    const auto& containers = member(member(member(spec, "template"), "spec"), "containers");
    out["spec"]["template"]["spec"]["containers"] = each_only(containers, {"image"});
    out["status"] = status;
  } else if (type.plural == resource_slices.plural) {
    out["spec"] = only(spec, {"nodeName", "driver"});
    out["spec"]["devices"] = each_only(member(spec, "devices"), {"name"});
  } else if (type.plural == resource_claims.plural) {
    out["spec"] = only(spec, {"devices"});
    out["status"] = only(status, {"allocation"});
  } else if (type.plural == device_classes.plural) {
    out["spec"] = only(spec, {"extendedResourceName"});
  } else {
    if (&type == &resource_quotas || &type == &limit_ranges) out["kind"] = type.kind;
    out.update(only(object, {"spec", "status", "data"}));
  }
  return out;
}

/// A list of the snapshot: its name, what it is of, and what it is for.
struct saved_list {
  const char* name;
  const kube::resource* type;
  part purpose;
  bool optional = false;                  ///< who may not see it does without
  const kube::resource* older = nullptr;  ///< what it is of in a server that has no `type`
};

std::vector<saved_list> saved_lists() {
  return {{"nodes", &kube::node::of(), part::nodes},
          {"pods", &kube::pod::of(), part::pods},
          {"acceleratorpolicies", &reconcilers::accelerator_policy::of(), part::policies},
          {"resourcerules", &api::compiled_rules::of(), part::rules},
          {"acceleratorquotas", &api::accelerator_quota::of(), part::quotas},
          {"acceleratornodes", &api::accelerator_node::of(), part::accelerator_nodes},
          {"configmaps", &kube::config_map::of(), part::old_quotas, true},
          {"deviceConfigs", &kube::config_map::of(), part::device_labels, true},
          {"resourcequotas", &resource_quotas, part::limits, true},
          {"limitranges", &limit_ranges, part::limits, true},
          {"resourceslices", &resource_slices, part::slices, true, &older_resource_slices},
          {"resourceclaims", &resource_claims, part::claims, true, &older_resource_claims},
          {"deviceclasses", &device_classes, part::classes, true, &older_device_classes},
          {"leases", &kube::lease::of(), part::lease, true},
          {"daemonsets", &kube::daemon_set::of(), part::daemon_sets, true}};
}

kube::task<void> save(kube::transport& transport, saved_list saved, ordered_json& object) {
  const auto& [name, newest, purpose, optional, older] = saved;
  const auto* type = newest;
  auto options = selection_of(purpose);
  options.accept = kube::encoding::json;
  auto list = ordered_json::array();
  const std::string operation = "list " + std::string(newest->plural);
  kube::page_walk pages(operation);
  for (bool is_open = true; is_open;) {
    auto answer = co_await send_patiently(transport, operation, kube::list_page(*type, options));
    if (!answer && answer.error().code == kube::errc::forbidden && optional) {
      object["unseen"][name] = answer.error().message;
      co_return kube::result<void>();
    }
    if (!answer && answer.error().code == kube::errc::not_found && older && type != older) {
      type = older;
      continue;
    }
    // Custom resources of a cluster without the operator.
    if (!answer && answer.error().code == kube::errc::not_found) break;
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    const auto read = kube::read_list(answer->body, options.accept, [&](std::string_view bytes) {
      if (const auto item = ordered_json::parse(bytes, nullptr, false); item.is_object())
        list.push_back(stripped(*type, item));
    });
    if (!read) co_return std::unexpected(read.error());
    const auto more = pages.next(read->next, options);
    if (!more) co_return std::unexpected(more.error());
    is_open = *more;
  }
  object[name] = std::move(list);
  co_return kube::result<void>();
}

constexpr auto declarations_saved = "declarations", runtime_classes_saved = "runtimeClasses";

/// What the labels and fields of their ConfigMaps declare, and nothing else of them.
kube::task<void> save_declarations(kube::transport& transport, ordered_json& object) {
  const auto declared = co_await read_declared(transport, reconcilers::declarations::parse_settings().ns);
  if (!declared && declared.error().code == kube::errc::forbidden)
    object["unseen"][declarations_saved] = declared.error().message;
  else if (!declared)
    co_return std::unexpected(declared.error());
  else
    object[declarations_saved] = ordered_json::parse(document_of(*declared))["configMaps"];
  if (declared && declared->runtime_classes) object[runtime_classes_saved] = *declared->runtime_classes;
  co_return kube::result<void>();
}

using result_of_read = std::expected<void, text::phrase>;

/// `take(item)` for each item of a list, as JSON text.
template <class T, class Take>
result_of_read each_in(const ordered_json& snapshot, const char* list, kube::result<T> (*decode)(std::string_view),
                       Take take) {
  const auto& all = member(snapshot, list);
  if (!all.is_array()) return std::unexpected(text::phrase{"snapshot.no_list", {{"name", std::string(list)}}});
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto item = decode(all[i].dump(-1, ' ', false, ordered_json::error_handler_t::replace));
    if (!item)
      return std::unexpected(text::phrase{
          "snapshot.item",
          {{"name", std::string(list)}, {"number", std::to_string(i)}, {"problem", item.error().message}}});
    take(std::move(*item));
  }
  return {};
}

template <class T>
result_of_read fill(const ordered_json& snapshot, const char* list, controller::store<T>& store,
                    kube::result<T> (*decode)(std::string_view)) {
  store.begin();
  std::string repeated;
  std::set<kube::object_key> keys;
  auto done = each_in<T>(snapshot, list, decode, [&](T item) {
    if (!keys.insert(item.key).second && repeated.empty()) repeated = item.key.to_string();
    store.put(std::move(item));
  });
  if (!repeated.empty())
    return std::unexpected(
        text::phrase{"snapshot.twice", {{"name", std::string(list)}, {"value", text::shown(repeated)}}});
  if (done) store.commit();
  return done;
}

/// A Node whose name an API server takes.
kube::result<kube::node> read_node(std::string_view bytes) {
  auto out = kube::from_json<kube::node>(bytes);
  if (out && !text::is_object_name(out->key.name))
    return kube::config_error("\"" + text::shown(out->key.name) +
                              "\" is no name of a Node; allowed: lower-case letters, figures, - and .");
  return out;
}

/// What the file has that no Snapshot of this version has.
std::vector<std::string> unknown_members(const ordered_json& snapshot) {
  std::set<std::string, std::less<>> known{
      "apiVersion", "kind", "taken", "missingTypes", "unseen", pod_fields, declarations_saved, runtime_classes_saved};
  for (const auto& saved : saved_lists()) known.insert(saved.name);
  std::vector<std::string> out;
  for (const auto& [name, value] : snapshot.items())
    if (!known.contains(name)) out.push_back(text::shown(name));
  return out;
}

result_of_read fill_reports(const ordered_json& snapshot, agent_reports& reports) {
  for (const auto& node : member(snapshot, "acceleratornodes")) {
    auto known = api::reported_node::decode(node.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
    if (known) reports.insert_or_assign(known->key.name, std::move(known->report));
  }
  return {};
}

/// Of a file that has neither lease nor DaemonSets: where most pods of modules are. Empty: there are none.
std::string namespace_of_plugins(const controller::store<kube::pod>& pods) {
  std::map<std::string, int> count;
  for (const auto& pod : pods.all())
    if (pod.labels.contains(api::names::module_label)) ++count[pod.key.ns];
  const auto most = std::ranges::max_element(count, {}, &std::pair<const std::string, int>::second);
  return most == count.end() ? std::string() : most->first;
}

/// For `explain pod`: fields that a store of pods does not keep.
void keep_whole_pods(const ordered_json& snapshot, picture& picture) {
  const auto& version_of_pods = member(snapshot, pod_fields);
  if (version_of_pods != pod_fields_saved) return;
  for (const auto& pod : member(snapshot, "pods")) {
    const nlohmann::json whole(pod);
    picture.whole_pods.insert_or_assign(
        {kube::text_at(whole, "/metadata/namespace"), kube::text_at(whole, "/metadata/name")},
        pod.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
  }
}

/// Why a file lacks a part.
text::phrase unseen_of(const ordered_json& snapshot, const char* name) {
  const auto& reason = member(member(snapshot, "unseen"), name);
  if (!reason.is_string()) return {"snapshot.lacks", {{"name", std::string(name)}}};
  return phrase_of({kube::errc::forbidden, 403, reason.get<std::string>(), {}});
}

result_of_read fill_declarations(const ordered_json& snapshot, picture& picture) {
  const auto& all = member(snapshot, declarations_saved);
  if (all.is_null()) {
    picture.declarations_unseen = unseen_of(snapshot, declarations_saved);
    return {};
  }
  auto declared = declared_in(nlohmann::json{{"configMaps", nlohmann::json(all)}}.dump());
  if (!declared) return std::unexpected(text::phrase{"snapshot.no_list", {{"name", declarations_saved}}});
  if (const auto& classes = member(snapshot, runtime_classes_saved); classes.is_array()) {
    auto& known = declared->runtime_classes.emplace();
    for (const auto& name : classes)
      if (name.is_string()) known.insert(name.get<std::string>());
  }
  const auto ns = reconcilers::declarations::parse_settings().ns;
  picture.refused_declarations = refused_declarations(registry_of(*declared, ns));
  return {};
}

/// What only some snapshots have: older ones, and those of a person who may not read all, lack a part.
result_of_read fill_optional(const ordered_json& snapshot, picture& picture) {
  for (const auto& saved : saved_lists()) {
    if (!saved.optional || member(snapshot, saved.name).is_array()) continue;
    picture.unseen.emplace(saved.purpose, unseen_of(snapshot, saved.name));
  }
  const auto has = [&](part part) { return !picture.unseen.contains(part); };
  auto done = fill_declarations(snapshot, picture);
  if (done && has(part::old_quotas))
    done = fill(snapshot, "configmaps", picture.old_quotas, kube::from_json<kube::config_map>);
  if (done && has(part::device_labels))
    done = each_in<kube::config_map>(
        snapshot, "deviceConfigs", kube::from_json<kube::config_map>, [&](const kube::config_map& config_map) {
          const auto parsed = reconcilers::declarations::parse_device(reconcilers::view_of(config_map));
          if (parsed.value.sound) picture.declared.push_back(reconcilers::alias_of(parsed.value));
        });
  std::vector<nlohmann::json> slices;
  for (const auto& slice : member(snapshot, "resourceslices")) slices.emplace_back(slice);
  picture.claimed = cards_in(slices);
  for (const auto& device_class : member(snapshot, "deviceclasses")) add_class(device_class, picture.classes);
  for (const auto& claim : member(snapshot, "resourceclaims")) {
    const nlohmann::json whole(claim);
    picture.claims.insert_or_assign(
        {kube::text_at(whole, "/metadata/namespace"), kube::text_at(whole, "/metadata/name")},
        claim.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
  }
  for (const auto* list : {"resourcequotas", "limitranges"})
    for (const auto& object : member(snapshot, list))
      picture.limits.push_back(object.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
  auto& [ns, lease, renewed] = picture.leader;
  if (done && has(part::lease))
    done = each_in<kube::lease>(snapshot, "leases", kube::from_json<kube::lease>, [&](kube::lease found) {
      if (!lease || lease->renewed_us < found.renewed_us) lease = std::move(found);
    });
  if (lease) ns = lease->key.ns;
  if (done && has(part::daemon_sets))
    done =
        each_in<kube::daemon_set>(snapshot, "daemonsets", kube::from_json<kube::daemon_set>, [&](kube::daemon_set set) {
          if (ns.empty()) ns = set.key.ns;
          if (set.key.ns == ns) picture.daemon_sets.push_back(std::move(set));
        });
  if (ns.empty() && !has(part::daemon_sets)) ns = namespace_of_plugins(picture.pods);
  return done;
}

}  // namespace

kube::task<void> take_snapshot(kube::transport& transport, ordered_json& object) {
  object = {
      {"apiVersion", version}, {"kind", kind}, {"taken", controller::rfc3339_millis(std::chrono::system_clock::now())}};
  picture known;
  if (auto done = co_await read_picture(transport, {{part::types}, {}}, known); !done)
    co_return std::unexpected(std::move(done.error()));
  object[pod_fields] = pod_fields_saved;
  object["missingTypes"] = known.missing_types;
  for (const auto& saved : saved_lists()) {
    auto done = co_await save(transport, saved, object);
    if (!done) co_return std::unexpected(std::move(done.error()));
  }
  co_return co_await save_declarations(transport, object);
}

namespace {

/// Values that are read by functions which call themselves: a file of a stranger must not end the stack.
constexpr int deepest_nesting = 200;

struct nesting {
  int deepest = 0;
  bool is_open = false;  ///< at the end of the text a list, a mapping or a string has not ended
};

nesting nesting_of(std::string_view text) {
  nesting out;
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') ++i;
    if (c == '"') in_string = !in_string;
    if (in_string) continue;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    out.deepest = std::max(out.deepest, depth);
  }
  out.is_open = depth > 0 || in_string;
  return out;
}

/// A mapping of JSON, or what keeps the text from being one.
std::expected<ordered_json, text::phrase> mapping_in(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == text.npos) return std::unexpected(text::phrase{"snapshot.empty"});
  if (text::is_utf16(text)) return std::unexpected(text::phrase{"snapshot.utf16"});
  const text::phrase none{"snapshot.none", {{"version", std::string(version)}}};
  const auto [deepest, is_open] = nesting_of(text);
  if (deepest > deepest_nesting) return std::unexpected(none);
  try {
    auto out = ordered_json::parse(text);
    if (out.is_object()) return out;
  } catch (const ordered_json::parse_error& problem) {
    const auto place = std::min(problem.byte > 0 ? problem.byte - 1 : 0, text.size());
    const auto before = text.substr(0, place);
    const auto line = std::to_string(1 + std::ranges::count(before, '\n'));
    const auto byte = std::to_string(std::min(problem.byte, text.size()));
    if (is_open && problem.byte >= text.size())
      return std::unexpected(text::phrase{"snapshot.cut", {{"line", line}, {"byte", byte}}});
    if (text.substr(text.find_first_not_of(" \t\r\n")).starts_with('{'))
      return std::unexpected(text::phrase{"snapshot.no_json", {{"line", line}, {"byte", byte}}});
  }
  return std::unexpected(none);
}

}  // namespace

std::expected<void, text::phrase> read_snapshot(std::string_view text, picture& picture) {
  const auto read = mapping_in(text);
  if (!read) return std::unexpected(read.error());
  const auto& snapshot = *read;
  if (member(snapshot, "kind") != kind || member(snapshot, "apiVersion") != version)
    return std::unexpected(text::phrase{"snapshot.none", {{"version", std::string(version)}}});
  if (const auto unknown = unknown_members(snapshot); !unknown.empty())
    return std::unexpected(text::phrase{"snapshot.unknown", {text::some_of("list", unknown)}});
  if (const auto& taken = member(snapshot, "taken"); taken.is_string())
    if (const auto micros = kube::parse_rfc3339_micros(taken.get<std::string>()))
      picture.taken = std::chrono::system_clock::time_point(std::chrono::microseconds(*micros));
  for (const auto& type : member(snapshot, "missingTypes"))
    if (type.is_string()) picture.missing_types.push_back(type.get<std::string>());
  for (auto done : {fill(snapshot, "acceleratorpolicies", picture.policies, reconcilers::accelerator_policy::decode),
                    fill(snapshot, "resourcerules", picture.rules, api::compiled_rules::decode),
                    fill(snapshot, "acceleratorquotas", picture.quotas, api::accelerator_quota::decode),
                    fill(snapshot, "acceleratornodes", picture.cards, api::accelerator_node::decode),
                    fill_reports(snapshot, picture.reports), fill(snapshot, "nodes", picture.nodes, read_node),
                    fill(snapshot, "pods", picture.pods, kube::from_json<kube::pod>), fill_optional(snapshot, picture)})
    if (!done) return done;
  keep_whole_pods(snapshot, picture);
  picture.finish();
  return {};
}

}  // namespace cli
