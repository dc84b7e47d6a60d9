#include "cli/cluster/snapshot.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <span>

#include "api/gpu_quota.hpp"
#include "controller/clock.hpp"
#include "kube/event.hpp"
#include "kube/json_object.hpp"
#include "kube/projections/kept.hpp"
#include "reconcilers/extender/protocol.hpp"

namespace cli {
namespace {

using nlohmann::ordered_json;

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
                        "deletionTimestamp", "labels"});
  for (const auto& [key, value] : member(all, "annotations").items())
    for (const std::string_view prefix : kube::kept_pod_annotations)
      if (key.starts_with(prefix)) out["annotations"][key] = value;
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
  if (type.plural == kube::resources::nodes.plural) {
    out["spec"] = only(spec, {"unschedulable", "taints"});
    out["status"] = only(status, {"allocatable", "capacity"});
  } else if (type.plural == kube::resources::pods.plural) {
    out["spec"] = only(spec, {"nodeName", "schedulerName", "priority"});
    for (const auto* list : {"initContainers", "containers"})
      if (const auto& all = member(spec, list); all.is_array()) out["spec"][list] = containers_of(all);
    out["status"] = only(status, {"phase", "nominatedNodeName"});
  } else {
    out.update(only(object, {"spec", "status", "data"}));
  }
  return out;
}

kube::task<void> save_all(kube::transport& transport, const kube::resource& type, kube::list_options options,
                          ordered_json& object) {
  options.accept = kube::encoding::json;
  auto& list = object[std::string(type.plural)] = ordered_json::array();
  do {
    auto answer =
        co_await send_patiently(transport, "list " + std::string(type.plural), kube::list_page(type, options));
    // Custom resources of a cluster without the operator; kube-system, which few may read.
    if (!answer && (answer.error().code == kube::errc::not_found || !options.ns.empty())) break;
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    const auto read = kube::read_list(answer->body, options.accept, [&](std::string_view bytes) {
      if (const auto item = ordered_json::parse(bytes, nullptr, false); item.is_object())
        list.push_back(stripped(type, item));
    });
    if (!read) co_return std::unexpected(read.error());
    options.continue_token = read->next;
  } while (!options.continue_token.empty());
  co_return kube::result<void>();
}

kube::quantities extended(kube::on_demand::value object) {
  kube::quantities out;
  kube::on_demand::each_member(object, [&](std::string_view key, kube::on_demand::value amount) {
    if (!kube::is_extended_resource(key)) return;
    if (const auto read = kube::parse_quantity(kube::on_demand::text_or(amount)))
      out.emplace_back(std::string(key), *read);
  });
  std::ranges::sort(out);
  return out;
}

kube::taint taint_of(kube::on_demand::value object) {
  kube::taint out;
  kube::on_demand::each_member(object, [&](std::string_view name, kube::on_demand::value inner) {
    if (name == "key") out.key = kube::on_demand::text_or(inner);
    if (name == "value") out.value = kube::on_demand::text_or(inner);
    if (name == "effect") out.effect = kube::on_demand::text_or(inner);
  });
  return out;
}

kube::result<kube::node> node_of(std::string_view text) {
  return kube::on_demand::decode<kube::node>(
      text, kube::keep{kube::kept_node_annotations},
      [](kube::node& node, std::string_view key, kube::on_demand::value field) {
        kube::on_demand::each_member(field, [&](std::string_view name, kube::on_demand::value inner) {
          if (key == "spec" && name == "unschedulable") node.unschedulable = kube::on_demand::flag_or(inner, false);
          if (key == "spec" && name == "taints")
            kube::on_demand::each_item(inner,
                                       [&](kube::on_demand::value taint) { node.taints.push_back(taint_of(taint)); });
          if (key == "status" && name == "allocatable") node.allocatable = extended(inner);
          if (key == "status" && name == "capacity") node.capacity = extended(inner);
        });
      });
}

kube::result<kube::config_map> config_map_of(std::string_view text) {
  return kube::on_demand::decode<kube::config_map>(
      text, kube::keep_none, [](kube::config_map& config_map, std::string_view key, kube::on_demand::value field) {
        if (key != "data") return;
        std::vector<kube::packed_map::entry> all;
        kube::on_demand::each_member(field, [&](std::string_view name, kube::on_demand::value value) {
          all.emplace_back(std::string(name), std::string(kube::on_demand::text_or(value)));
        });
        config_map.data = kube::packed_map::of(all);
      });
}

template <class T, class Decode>
std::expected<void, std::string> fill(const ordered_json& object, controller::store<T>& store, Decode decode) {
  const std::string list(T::of().plural);
  const auto& all = member(object, list.c_str());
  if (!all.is_array()) return std::unexpected(list + " is no list");
  store.begin();
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto item = decode(all[i].dump(-1, ' ', false, ordered_json::error_handler_t::replace));
    if (!item) return std::unexpected(list + "[" + std::to_string(i) + "]: " + item.error().message);
    store.put(std::move(*item));
  }
  store.commit();
  return {};
}
template <class T>
std::expected<void, std::string> fill(const ordered_json& object, controller::store<T>& store) {
  return fill(object, store, [](const std::string& text) { return T::decode(text); });
}

}  // namespace

kube::task<void> take_snapshot(kube::transport& transport, ordered_json& object) {
  object = {
      {"apiVersion", version}, {"kind", kind}, {"taken", controller::rfc3339_millis(std::chrono::system_clock::now())}};
  kube::list_options old_quota;
  old_quota.ns = api::gpu_quota_namespace;
  old_quota.field_selector = "metadata.name=" + std::string(api::gpu_quota_name);
  const std::pair<const kube::resource*, kube::list_options> all[] = {{&kube::node::of(), {}},
                                                                      {&kube::pod::of(), {}},
                                                                      {&reconcilers::accelerator_policy::of(), {}},
                                                                      {&api::compiled_rules::of(), {}},
                                                                      {&api::accelerator_quota::of(), {}},
                                                                      {&api::accelerator_node::of(), {}},
                                                                      {&kube::config_map::of(), old_quota}};
  for (const auto& [type, options] : all) {
    auto done = co_await save_all(transport, *type, options, object);
    if (!done) co_return std::unexpected(std::move(done.error()));
  }
  co_return kube::result<void>();
}

std::expected<void, std::string> read_snapshot(std::string_view text, placements& placements) {
  const auto snapshot = ordered_json::parse(text, nullptr, false);
  if (!snapshot.is_object() || member(snapshot, "kind") != kind || member(snapshot, "apiVersion") != version)
    return std::unexpected("no Snapshot of " + std::string(version) + "; quartermaster inspect --save FILE makes one");
  for (auto done :
       {fill(snapshot, placements.policies), fill(snapshot, placements.rules), fill(snapshot, placements.quotas),
        fill(snapshot, placements.cards), fill(snapshot, placements.old_quotas, config_map_of),
        fill(snapshot, placements.nodes, node_of),
        fill(snapshot, placements.pods, [](const std::string& bytes) { return reconcilers::extender::pod_of(bytes); })})
    if (!done) return done;
  placements.finish();
  return {};
}

}  // namespace cli
