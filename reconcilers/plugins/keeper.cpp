#include "reconcilers/plugins/keeper.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>

#include "api/hash.hpp"
#include "api/names.hpp"
#include "reconcilers/declarations/custom_resource.hpp"
#include "reconcilers/declarations/parse.hpp"
#include "reconcilers/declarations/registry.hpp"
#include "reconcilers/plugins/covers.hpp"

namespace reconcilers {
namespace {

using namespace std::chrono_literals;
using controller::event_type;
using nlohmann::json;

/// Between two writes of one object, however often others change it.
constexpr auto between_writes = 500ms;
/// How long a store may be behind our own write before the object is read.
constexpr auto lag_allowed = 2s;
/// What the API server refuses is tried again this much later, for the reason may be somewhere else than in the policy.
constexpr auto refused_again = 60s;

/// Empty as well where there is no object at all (null).
std::string text_at(const json& object, const char* pointer) {
  if (!object.is_object()) return {};
  const auto found = object.value(json::json_pointer(pointer), json());
  return found.is_string() ? found.get<std::string>() : std::string();
}

std::uint64_t number_of(const std::string& text) {
  std::uint64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

/// A label or annotation.
std::string value_at(const json& object, const char* map, std::string_view key) {
  if (!object.is_object()) return {};
  const auto found = object.value(json::json_pointer(map), json::object());
  return found.is_object() ? found.value(std::string(key), std::string()) : std::string();
}

/// Somebody else wrote what the object says, not only beside it.
bool data_of_others(const json& object) {
  const auto fields = object.value("/metadata/managedFields"_json_pointer, json::array());
  return std::ranges::any_of(fields, [](const json& one) {
    return one.is_object() && one.value("manager", "") != names::field_owner &&
           one.value("fieldsV1", json::object()).contains("f:data");
  });
}

std::string label_at(const json& object, std::string_view key) { return value_at(object, "/metadata/labels", key); }

/// Of what we may have an opinion about: the data, and the labels by which it is found.
std::uint64_t fingerprint(const kube::config_map& of) {
  auto hash = fnv1a({});
  for (const auto* map : {&of.data, &of.labels}) {
    for (const auto& [name, value] : *map) hash = fnv1a(value, fnv1a(name, hash));
  }
  return hash;
}

std::string called(const kube::resource& type, const std::string& name) { return std::string(type.kind) + " " + name; }

/// Who made an object that has our name, as far as it says.
std::string owner_of(const json& object) {
  const auto release = value_at(object, "/metadata/annotations", "meta.helm.sh/release-name");
  if (!release.empty())
    return "Helm release " + value_at(object, "/metadata/annotations", "meta.helm.sh/release-namespace") + "/" +
           release;
  if (const auto plugin = label_at(object, "cpaas.io/module-name"); !plugin.empty()) return "ACP plugin " + plugin;
  if (const auto owners = object.value("/metadata/ownerReferences"_json_pointer, json::array()); !owners.empty())
    return owners.front().value("kind", "an owner") + " " + owners.front().value("name", "");
  if (const auto by = label_at(object, names::managed_by_label); !by.empty()) return by;
  if (const auto chart = label_at(object, "helm.sh/chart"); !chart.empty()) return chart;
  for (const auto& field : object.value("/metadata/managedFields"_json_pointer, json::array())) {
    if (field.is_object() && field.contains("manager") && field.value("subresource", "").empty())
      return field.value("manager", "") + " (its first writer)";
  }
  return "somebody else";
}

}  // namespace

keeper::keeper(stores from, kube::client& client, controller::recorder& events, places where,
               std::function<controller::milliseconds()> now)
    : from_(std::move(from)), client_(client), events_(events), where_(std::move(where)), now_(std::move(now)) {
  const auto forget = [this](std::string_view kind) {
    return [this, kind](const kube::object* before, const kube::object* after) {
      if (after || !before) return;
      const auto at = spoken_.find({kind, before->key});
      if (at != spoken_.end() && at->second.id == before->id) at->second.hash.clear();
    };
  };
  from_.daemon_sets.observe(forget(kube::resources::daemon_sets.kind));
  from_.services.observe(forget(kube::resources::services.kind));
  from_.service_accounts.observe(forget(kube::resources::service_accounts.kind));
  from_.config_maps.observe(forget(kube::resources::config_maps.kind));
  for (auto* store : from_.declared) store->observe(forget(kube::resources::config_maps.kind));
  if (from_.deployments) from_.deployments->observe(forget(kube::resources::deployments.kind));
}

bool keeper::synced() const {
  return from_.daemon_sets.synced() && from_.services.synced() && from_.service_accounts.synced() &&
         from_.config_maps.synced() && (!from_.deployments || from_.deployments->synced()) &&
         std::ranges::all_of(from_.declared, [](auto* one) { return one->synced(); });
}

bool keeper::is_ours(const kube::object& object) const {
  return (object.key.ns == where_.ours || object.key.ns == where_.declared) &&
         object.labels.value_or(names::managed_by_label, "") == names::managed_by &&
         object.labels.contains(where_.mark);
}

const kube::config_map* keeper::declaration(const kube::object_key& key) const {
  const kube::config_map* out = nullptr;
  for (const auto* store : from_.declared) {
    const auto* found = store->find(key);
    if (found && (!out || found->resource_version > out->resource_version)) out = found;
  }
  return out;
}

/// Read as the registry reads it, next to those of ours whose keys nobody else claims. A declaration in error, alone or
/// between several, does not withdraw one of ours that is there, or its key would have no rule; nor does it call one of
/// ours back, which would take the place of its last accepted content.
std::set<std::string, std::less<>> keeper::declared_by_others() const {
  std::set<std::string, std::less<>> out, broken, ours, claimed;
  std::vector<const kube::config_map*> own;
  std::vector<kube::object_key> theirs;
  crl::parse_settings settings;
  settings.ns = where_.declared;
  crl::registry all(settings);
  const auto take_device = [&](const crl::config_map_view& view, bool is_own) {
    const auto device = crl::parse_device(view, settings).what;
    (is_own ? ours : device.sound ? out : broken).insert(device.label_key + "=" + device.label_value);
  };
  for (const auto* store : from_.declared) {
    for (const auto& object : store->all()) {
      if (object.key.ns != where_.declared || declaration(object.key) != &object) continue;
      const bool is_own = is_ours(object);
      if (!is_own) out.insert(object.key.name);
      const auto view = view_of(object);
      if (crl::kind_of(view) == crl::kind::device_config) take_device(view, is_own);
      if (crl::kind_of(view) != crl::kind::declaration) continue;
      if (is_own) {
        own.push_back(&object);
        continue;
      }
      all.put(view);
      theirs.push_back(object.key);
      const auto& what = all.find(object.key)->what;
      if (what.sound || what.switched_off) claimed.insert(what.key);
    }
  }
  for (const auto* object : own) {
    const auto view = view_of(*object);
    const auto key = crl::parse(view, settings).what.key;
    if (!claimed.contains(key)) all.put(view);
    ours.insert(key);
  }
  for (const auto& name : theirs) {
    const auto& what = all.find(name)->what;
    const bool counts = what.switched_off || !crl::has_error(all.judge(name).findings);
    (counts ? out : broken).insert(what.key);
  }
  std::ranges::set_difference(broken, ours, std::inserter(out, out.end()));
  return out;
}

keeper::seen keeper::look(const kube::resource& type, const kube::object_key& key) const {
  const auto found = [](const auto* object, auto mark) { return seen{object, object ? mark(*object) : 0}; };
  const auto content = [](const auto& object) { return object.content; };
  if (type.kind == kube::resources::services.kind) return found(from_.services.find(key), content);
  if (type.kind == kube::resources::service_accounts.kind) return found(from_.service_accounts.find(key), content);
  if (type.kind == kube::resources::config_maps.kind) {
    if (const auto* declared = declaration(key)) return found(declared, fingerprint);
    return found(from_.config_maps.find(key), content);
  }
  const auto generation = [](const kube::object& set) { return static_cast<std::uint64_t>(set.generation); };
  if (type.kind == kube::resources::deployments.kind)
    return found(from_.deployments ? from_.deployments->find(key) : nullptr, generation);
  return found(from_.daemon_sets.find(key), generation);
}

/// The object is as we left it.
bool keeper::at_peace(const modules::intent& want, const seen& is, spoken& said) const {
  if (said.hash != want.hash || !is.object || is.object->id != said.id || is.object->deleting) return false;
  if (is.object->annotations.value_or(names::applied_annotation, "") != want.hash || !is_ours(*is.object)) return false;
  if (!said.mark_known && is.version() == said.version) {
    said.mark = is.mark;
    said.mark_known = true;
  }
  return said.mark_known && said.mark == is.mark;
}

kube::task<keeper::outcome> keeper::ensure(modules::intent want, controller::object_reference about) {
  outcome out;
  auto& said = spoken_[{want.type->kind, want.key}];
  const auto is = look(*want.type, want.key);
  if (at_peace(want, is, said)) {
    out.settled = true;
    co_return out;
  }
  const auto now = now_();
  const bool behind = said.hash == want.hash && is.version() < said.version;
  if (behind && now - said.looked < lag_allowed) {
    out.settled = true;  // as far as we know; the watch will show it
    out.again_in = lag_allowed;
    co_return out;
  }
  if (now - said.wrote < between_writes) {
    out.again_in = between_writes - (now - said.wrote);
    co_return out;
  }
  co_return co_await compare(std::move(want), std::move(about));
}

kube::task<keeper::outcome> keeper::compare(modules::intent want, controller::object_reference about) {
  outcome out;
  auto live = co_await client_.get(*want.type, want.key);
  if (!live && live.error().code == kube::errc::not_found) live = json();
  if (!live) {
    out.failed = live.error();
    if (live.error().code == kube::errc::forbidden) {
      out.problem = "Forbidden";
      out.message = live.error().what;
    }
    co_return out;
  }
  const bool foreign = !live->is_null() && label_at(*live, names::managed_by_label) != names::managed_by;
  if (foreign && want.yields) {
    out.settled = true;
    out.again_in = refused_again;
    co_return out;
  }
  if (foreign && !want.adopt) {
    out.problem = "ForeignObject";
    out.message = called(*want.type, want.key.to_string()) + " exists and belongs to " + owner_of(*live) +
                  "; it is left as it is. Remove it" +
                  (where_.mark == names::module_label
                       ? ", or let it be taken over with spec.modules." + want.module + ".adopt: true"
                       : std::string());
    out.again_in = refused_again;
    co_return out;
  }
  if (!text_at(*live, "/metadata/deletionTimestamp").empty()) {
    out.again_in = 1s;
    co_return out;
  }
  if (foreign) co_return co_await take_over(std::move(want), std::move(about), *std::move(live));
  const auto body = json::parse(want.body);
  if (covers(*live, body)) {
    remember(want, *live);
    out.settled = true;
    co_return out;
  }
  if (want.yields && !live->is_null() && data_of_others(*live))
    co_return co_await hand_over(std::move(want), std::move(about), *std::move(live));
  co_return co_await write(std::move(want), std::move(about), *std::move(live));
}

/// A person has written into what we declared: it is theirs from now on, and nothing of it goes with the module.
kube::task<keeper::outcome> keeper::hand_over(modules::intent want, controller::object_reference about, json live) {
  outcome out;
  spoken_[{want.type->kind, want.key}].wrote = now_();
  auto patch = json::array({{{"op", "test"}, {"path", "/metadata/uid"}, {"value", text_at(live, "/metadata/uid")}},
                            {{"op", "remove"}, {"path", "/metadata/labels/app.kubernetes.io~1managed-by"}}});
  for (const auto* path : {"/metadata/labels/quartermaster.io~1module", "/metadata/ownerReferences"}) {
    if (live.contains(json::json_pointer(path))) patch.push_back({{"op", "remove"}, {"path", path}});
  }
  auto done = co_await client_.patch(*want.type, want.key, kube::patch_kind::json, patch);
  out.again_in = between_writes;
  if (done)
    events_.record(
        about, event_type::normal, "HandedOver", "Patch",
        called(*want.type, want.key.to_string()) + " was edited: it is no longer kept by " + whose(want.module));
  else if (done.error().code != kube::errc::not_found && done.error().code != kube::errc::conflict &&
           done.error().code != kube::errc::invalid)
    out.failed = done.error();
  co_return out;
}

kube::task<keeper::outcome> keeper::write(modules::intent want, controller::object_reference about, json live) {
  outcome out;
  spoken_[{want.type->kind, want.key}].wrote = now_();
  const auto body = json::parse(want.body);
  kube::write_options options;
  options.field_manager = names::field_owner;
  options.force = true;
  auto answer = co_await client_.apply(*want.type, want.key, body, options);
  if (answer) {
    remember(want, *answer);
    out.settled = true;
    const bool edited = value_at(live, "/metadata/annotations", names::applied_annotation) == want.hash;
    events_.record(
        about, event_type::normal,
        live.is_null() ? "Created"
        : edited       ? "Restored"
                       : "Updated",
        "Apply",
        called(*want.type, want.key.name) + " of " + whose(want.module) + (edited ? ": somebody had changed it" : ""));
    co_return out;
  }
  const auto& wrong = answer.error();
  const bool refused = wrong.code == kube::errc::invalid || wrong.code == kube::errc::bad_request;
  if (refused && !live.is_null() && want.type->kind == kube::resources::services.kind)
    co_return co_await make_room(std::move(want), text_at(live, "/metadata/uid"));
  if (refused) {
    out.problem = "Refused";
    out.message = "the API server does not accept " + called(*want.type, want.key.name) + ": " + wrong.what;
    out.again_in = refused_again;
  } else if (wrong.code == kube::errc::conflict) {  // written or replaced between our look and our write
    out.again_in = between_writes;
  } else {
    if (wrong.code == kube::errc::forbidden) {
      out.problem = "Forbidden";
      out.message = wrong.what;
    }
    out.failed = wrong;
  }
  co_return out;
}

/// What is somebody else's is made anew: the selector of a DaemonSet cannot be changed, an apply would keep whatever
/// containers, node selectors and variables it had, and two plugins on a node would give a card out twice. So its pods
/// have to be gone (foreground) before ours come. Pods that use cards do not notice: the kubelet knows what they have.
kube::task<keeper::outcome> keeper::take_over(modules::intent want, controller::object_reference about, json live) {
  outcome out;
  spoken_[{want.type->kind, want.key}].wrote = now_();
  kube::preconditions only_if;
  only_if.uid = text_at(live, "/metadata/uid");
  auto done = co_await client_.remove(*want.type, want.key, only_if, kube::propagation::foreground);
  out.again_in = between_writes;
  if (done)
    events_.record(about, event_type::normal, "Adopted", "Delete",
                   called(*want.type, want.key.name) + " of " + owner_of(live) + " is made anew as " +
                       whose(want.module) + "'s; what installed it must let it be");
  else if (done.error().code != kube::errc::conflict)
    out.failed = done.error();
  co_return out;
}

/// The ports of a Service are told apart by their numbers, so an apply keeps an edited one beside ours, and the server
/// refuses the two for their one name. Nothing runs in a Service: it is made anew at the next look.
kube::task<keeper::outcome> keeper::make_room(modules::intent want, std::string uid) {
  outcome out;
  kube::preconditions only_if;
  only_if.uid = std::move(uid);
  auto done = co_await client_.remove(*want.type, want.key, only_if);
  if (!done && done.error().code != kube::errc::conflict) out.failed = done.error();
  out.again_in = between_writes;
  co_return out;
}

void keeper::remember(const modules::intent& want, const json& live) {
  auto& said = spoken_[{want.type->kind, want.key}];
  said.hash = want.hash;
  said.id = kube::uid::parse(text_at(live, "/metadata/uid"));
  said.version = number_of(text_at(live, "/metadata/resourceVersion"));
  const auto generation = live.value("/metadata/generation"_json_pointer, json());
  said.mark_known =
      want.type->kind == kube::resources::daemon_sets.kind || want.type->kind == kube::resources::deployments.kind;
  said.mark = generation.is_number_integer() ? generation.get<std::uint64_t>() : 0;
  said.looked = now_();
}

std::vector<keeper::victim> keeper::victims(const std::set<identity>& kept, const std::set<std::string>& spared) const {
  std::vector<victim> out;
  const auto collect = [&](const kube::resource& type, const auto& store) {
    for (const auto& object : store.all()) {
      std::string of(object.labels.value_or(where_.mark, ""));
      if (!is_ours(object) || object.deleting || kept.contains({type.kind, object.key}) || spared.contains(of))
        continue;
      if (std::ranges::any_of(out, [&](const victim& one) { return one.type == &type && one.key == object.key; }))
        continue;  // several stores have it
      out.push_back({&type, object.key, object.id.to_string(), std::move(of)});
    }
  };
  collect(kube::resources::daemon_sets, from_.daemon_sets);
  collect(kube::resources::services, from_.services);
  collect(kube::resources::service_accounts, from_.service_accounts);
  collect(kube::resources::config_maps, from_.config_maps);
  for (const auto* store : from_.declared) collect(kube::resources::config_maps, *store);
  if (from_.deployments) collect(kube::resources::deployments, *from_.deployments);
  return out;
}

kube::task<keeper::outcome> keeper::prune(std::set<identity> kept, std::set<std::string> spared_modules,
                                          controller::object_reference about) {
  outcome out;
  out.settled = true;
  for (const auto& one : victims(kept, spared_modules)) {
    kube::preconditions only_if;
    only_if.uid = one.uid;
    spoken_.erase({one.type->kind, one.key});
    auto done = co_await client_.remove(*one.type, one.key, only_if);
    if (!done && done.error().code == kube::errc::conflict) {
      out.again_in = between_writes;
    } else if (!done) {
      out.failed = done.error();
    } else if (!about.uid.empty()) {
      events_.record(about, event_type::normal, "Removed", "Delete",
                     called(*one.type, one.key.name) + ": " + whose(one.module) + " does not want it any more");
    }
  }
  co_return out;
}

}  // namespace reconcilers
