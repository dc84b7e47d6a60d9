#include "cli/cluster/snapshot.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <span>

#include "api/gpu_quota.hpp"
#include "controller/clock.hpp"
#include "kube/event.hpp"
#include "kube/json_object.hpp"
#include "reconcilers/extender/protocol.hpp"

namespace cli {
namespace {

using json = nlohmann::ordered_json;

constexpr std::string_view kept_annotations[] = {"quartermaster.io/",   "tencent.com/",      "hami.io/",
                                                 "ALIYUN_COM_",         "nvidia.com/",       "aliyun.com/",
                                                 "aliyun.accelerator/", "gaia.tencent.com/", "tkestack.io/"};
constexpr std::string_view version = "quartermaster.io/v1alpha1", kind = "Snapshot";

const json& member(const json& of, const char* name) {
  static const json none;
  const auto at = of.is_object() ? of.find(name) : of.end();
  return of.is_object() && at != of.end() ? *at : none;
}

/// Those of the members that are there.
json only(const json& of, std::initializer_list<const char*> names) {
  json out = json::object();
  for (const auto* name : names)
    if (const auto& one = member(of, name); !one.is_null()) out[name] = one;
  return out;
}

json metadata_of(const json& object) {
  const auto& all = member(object, "metadata");
  auto out = only(all, {"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
                        "deletionTimestamp", "labels"});
  for (const auto& [key, value] : member(all, "annotations").items())
    for (const std::string_view prefix : kept_annotations)
      if (key.starts_with(prefix)) out["annotations"][key] = value;
  return out;
}

json containers_of(const json& list) {
  json out = json::array();
  for (const auto& one : list) out.push_back(only(one, {"name", "resources", "restartPolicy"}));
  return out;
}

json stripped(const kube::resource& type, const json& object) {
  json out{{"metadata", metadata_of(object)}};
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

kube::task<void> save_all(kube::transport& over, const kube::resource& type, kube::list_options what, json& into) {
  what.accept = kube::encoding::json;
  auto& list = into[std::string(type.plural)] = json::array();
  do {
    auto answer = co_await send_patiently(over, "list " + std::string(type.plural), kube::list_page(type, what));
    // Custom resources of a cluster without the operator; kube-system, which few may read.
    if (!answer && (answer.error().code == kube::errc::not_found || !what.ns.empty())) break;
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    const auto read = kube::read_list(answer->body, what.accept, [&](std::string_view bytes) {
      if (const auto one = json::parse(bytes, nullptr, false); one.is_object()) list.push_back(stripped(type, one));
    });
    if (!read) co_return std::unexpected(read.error());
    what.continue_token = read->next;
  } while (!what.continue_token.empty());
  co_return kube::result<void>();
}

kube::quantities extended(kube::json::value of) {
  kube::quantities out;
  kube::json::each_member(of, [&](std::string_view key, kube::json::value amount) {
    if (!kube::is_extended_resource(key)) return;
    if (const auto read = kube::parse_quantity(kube::json::text_or(amount))) out.emplace_back(std::string(key), *read);
  });
  std::ranges::sort(out);
  return out;
}

kube::taint taint_of(kube::json::value of) {
  kube::taint out;
  kube::json::each_member(of, [&](std::string_view name, kube::json::value inner) {
    if (name == "key") out.key = kube::json::text_or(inner);
    if (name == "value") out.value = kube::json::text_or(inner);
    if (name == "effect") out.effect = kube::json::text_or(inner);
  });
  return out;
}

kube::result<kube::node> node_of(std::string_view text) {
  static constexpr std::string_view annotations[] = {"quartermaster.io/", "hami.io/"};
  return kube::json::decode<kube::node>(
      text, kube::keep{annotations}, [](kube::node& into, std::string_view key, kube::json::value field) {
        kube::json::each_member(field, [&](std::string_view name, kube::json::value inner) {
          if (key == "spec" && name == "unschedulable") into.unschedulable = kube::json::flag_or(inner, false);
          if (key == "spec" && name == "taints")
            kube::json::each_item(inner, [&](kube::json::value taint) { into.taints.push_back(taint_of(taint)); });
          if (key == "status" && name == "allocatable") into.allocatable = extended(inner);
          if (key == "status" && name == "capacity") into.capacity = extended(inner);
        });
      });
}

kube::result<kube::config_map> config_map_of(std::string_view text) {
  return kube::json::decode<kube::config_map>(
      text, kube::keep_none, [](kube::config_map& into, std::string_view key, kube::json::value field) {
        if (key != "data") return;
        std::vector<kube::packed_map::entry> all;
        kube::json::each_member(field, [&](std::string_view name, kube::json::value value) {
          all.emplace_back(std::string(name), std::string(kube::json::text_or(value)));
        });
        into.data = kube::packed_map::of(all);
      });
}

template <class T, class Decode>
std::expected<void, std::string> fill(const json& from, controller::store<T>& into, Decode decode) {
  const std::string list(T::of().plural);
  const auto& all = member(from, list.c_str());
  if (!all.is_array()) return std::unexpected(list + " is no list");
  into.begin();
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto one = decode(all[i].dump(-1, ' ', false, json::error_handler_t::replace));
    if (!one) return std::unexpected(list + "[" + std::to_string(i) + "]: " + one.error().what);
    into.put(std::move(*one));
  }
  into.commit();
  return {};
}
template <class T>
std::expected<void, std::string> fill(const json& from, controller::store<T>& into) {
  return fill(from, into, [](const std::string& text) { return T::decode(text); });
}

}  // namespace

kube::task<void> take_snapshot(kube::transport& over, json& into) {
  into = {
      {"apiVersion", version}, {"kind", kind}, {"taken", controller::rfc3339_millis(std::chrono::system_clock::now())}};
  kube::list_options old_quota;
  old_quota.ns = reconcilers::gpu_quota_namespace;
  old_quota.field_selector = "metadata.name=" + std::string(reconcilers::gpu_quota_name);
  const std::pair<const kube::resource*, kube::list_options> all[] = {{&kube::node::of(), {}},
                                                                      {&kube::pod::of(), {}},
                                                                      {&reconcilers::accelerator_policy::of(), {}},
                                                                      {&reconcilers::compiled_rules::of(), {}},
                                                                      {&reconcilers::accelerator_quota::of(), {}},
                                                                      {&reconcilers::accelerator_node::of(), {}},
                                                                      {&kube::config_map::of(), old_quota}};
  for (const auto& [type, what] : all) {
    auto done = co_await save_all(over, *type, what, into);
    if (!done) co_return std::unexpected(std::move(done.error()));
  }
  co_return kube::result<void>();
}

std::expected<void, std::string> read_snapshot(std::string_view text, placements& into) {
  const auto from = json::parse(text, nullptr, false);
  if (!from.is_object() || member(from, "kind") != kind || member(from, "apiVersion") != version)
    return std::unexpected("no Snapshot of " + std::string(version) + "; quartermaster inspect --save FILE makes one");
  for (auto done : {fill(from, into.policies), fill(from, into.rules), fill(from, into.quotas), fill(from, into.cards),
                    fill(from, into.old_quotas, config_map_of), fill(from, into.nodes, node_of),
                    fill(from, into.pods, [](const std::string& one) { return reconcilers::extender::pod_of(one); })})
    if (!done) return done;
  into.finish();
  return {};
}

}  // namespace cli
