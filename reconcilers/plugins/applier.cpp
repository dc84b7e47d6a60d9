#include "reconcilers/plugins/applier.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>

#include "api/hash.hpp"
#include "api/names.hpp"
#include "kube/json_text.hpp"
#include "reconcilers/declarations/custom_resource.hpp"
#include "reconcilers/declarations/parse.hpp"
#include "reconcilers/declarations/registry.hpp"
#include "reconcilers/plugins/covers.hpp"

namespace reconcilers {
namespace {

using namespace std::chrono_literals;
using controller::event_type;
using kube::text_at;
using nlohmann::json;

/// Between two writes of one object, however often others change it.
constexpr auto between_writes = 500ms;
/// How long a store may be behind our own write before the object is read.
constexpr auto lag_allowed = 2s;
/// What the API server refuses is tried again this much later, for the reason may be somewhere else than in the policy.
constexpr auto refused_again = 60s;

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

/// Someone else wrote what the object says, not only next to it.
bool data_of_others(const json& object) {
  const auto fields = object.value("/metadata/managedFields"_json_pointer, json::array());
  return std::ranges::any_of(fields, [](const json& entry) {
    return entry.is_object() && entry.value("manager", "") != api::names::field_owner &&
           entry.value("fieldsV1", json::object()).contains("f:data");
  });
}

std::string label_at(const json& object, std::string_view key) { return value_at(object, "/metadata/labels", key); }

/// Of what we may have an opinion about: the data, and the labels by which it is found.
std::uint64_t fingerprint(const kube::config_map& config_map) {
  auto hash = api::fnv1a({});
  for (const auto* map : {&config_map.data, &config_map.labels}) {
    for (const auto& [name, value] : *map) hash = api::fnv1a(value, api::fnv1a(name, hash));
  }
  return hash;
}

std::string called(const kube::resource& type, const std::string& name) { return std::string(type.kind) + " " + name; }

/// Who made an object that has our name, as far as it says.
text::phrase owner_of(const json& object) {
  const auto called_by = [](const char* key, std::string name) {
    return text::phrase{"status.object." + std::string(key), {{"name", std::move(name)}}};
  };
  const auto release = value_at(object, "/metadata/annotations", "meta.helm.sh/release-name");
  if (!release.empty())
    return called_by("helm",
                     value_at(object, "/metadata/annotations", "meta.helm.sh/release-namespace") + "/" + release);
  if (const auto plugin = label_at(object, "cpaas.io/module-name"); !plugin.empty())
    return called_by("acp_plugin", plugin);
  if (const auto owners = object.value("/metadata/ownerReferences"_json_pointer, json::array()); !owners.empty())
    return owners.front().value("kind", "") + " " + owners.front().value("name", "");
  if (const auto manager = label_at(object, api::names::managed_by_label); !manager.empty()) return manager;
  if (const auto chart = label_at(object, "helm.sh/chart"); !chart.empty()) return chart;
  for (const auto& field : object.value("/metadata/managedFields"_json_pointer, json::array())) {
    if (field.is_object() && field.contains("manager") && field.value("subresource", "").empty())
      return called_by("first_writer", field.value("manager", ""));
  }
  return {"status.object.someone"};
}

}  // namespace

applier::applier(stores stores, kube::client& client, controller::recorder& events, places places,
                 std::function<controller::milliseconds()> now)
    : stores_(std::move(stores)), client_(client), events_(events), places_(std::move(places)), now_(std::move(now)) {
  const auto forget = [this](std::string_view kind) {
    return [this, kind](const kube::object* before, const kube::object* after) {
      if (after || !before) return;
      const auto match = spoken_.find({kind, before->key});
      if (match != spoken_.end() && match->second.id == before->id) match->second.hash.clear();
    };
  };
  stores_.daemon_sets.observe(forget(kube::resources::daemon_sets.kind));
  stores_.services.observe(forget(kube::resources::services.kind));
  stores_.service_accounts.observe(forget(kube::resources::service_accounts.kind));
  stores_.config_maps.observe(forget(kube::resources::config_maps.kind));
  for (auto* store : stores_.declared) store->observe(forget(kube::resources::config_maps.kind));
  if (stores_.deployments) stores_.deployments->observe(forget(kube::resources::deployments.kind));
}

bool applier::synced() const {
  return stores_.daemon_sets.synced() && stores_.services.synced() && stores_.service_accounts.synced() &&
         stores_.config_maps.synced() && (!stores_.deployments || stores_.deployments->synced()) &&
         std::ranges::all_of(stores_.declared, [](auto* store) { return store->synced(); });
}

bool applier::is_ours(const kube::object& object) const {
  return (object.key.ns == places_.ns || object.key.ns == places_.declared) &&
         object.labels.value_or(api::names::managed_by_label, "") == api::names::managed_by &&
         object.labels.contains(places_.mark);
}

const kube::config_map* applier::declaration(const kube::object_key& key) const {
  const kube::config_map* out = nullptr;
  for (const auto* store : stores_.declared) {
    const auto* found = store->find(key);
    if (found && (!out || found->resource_version > out->resource_version)) out = found;
  }
  return out;
}

/// Read as the registry reads it, next to those of our own whose keys no one else claims. A declaration in error, alone
/// or between several, does not withdraw our own that is there, or its key would have no rule; nor does it call one
/// back, which would take the place of its last accepted content.
std::set<std::string, std::less<>> applier::declared_by_others() const {
  std::set<std::string, std::less<>> out, broken, managed, claimed;
  std::vector<const kube::config_map*> own;
  std::vector<kube::object_key> object_keys;
  declarations::parse_settings settings;
  settings.ns = places_.declared;
  declarations::registry all(settings);
  const auto take_device = [&](const declarations::config_map_view& view, bool is_own) {
    const auto device = declarations::parse_device(view, settings).value;
    (is_own ? managed : device.sound ? out : broken).insert(device.label_key + "=" + device.label_value);
  };
  for (const auto* store : stores_.declared) {
    for (const auto& object : store->all()) {
      if (object.key.ns != places_.declared || declaration(object.key) != &object) continue;
      const bool is_own = is_ours(object);
      if (!is_own) out.insert(object.key.name);
      const auto view = view_of(object);
      if (declarations::kind_of(view) == declarations::kind::device_config) take_device(view, is_own);
      if (declarations::kind_of(view) != declarations::kind::declaration) continue;
      if (is_own) {
        own.push_back(&object);
        continue;
      }
      all.put(view);
      object_keys.push_back(object.key);
      const auto& match = all.find(object.key)->value;
      if (match.sound || match.switched_off) claimed.insert(match.key);
    }
  }
  for (const auto* object : own) {
    const auto view = view_of(*object);
    const auto key = declarations::parse(view, settings).value.key;
    if (!claimed.contains(key)) all.put(view);
    managed.insert(key);
  }
  for (const auto& name : object_keys) {
    const auto& match = all.find(name)->value;
    const bool counts = match.switched_off || !declarations::has_error(all.judge(name).findings);
    (counts ? out : broken).insert(match.key);
  }
  std::ranges::set_difference(broken, managed, std::inserter(out, out.end()));
  return out;
}

applier::live_object applier::look(const kube::resource& type, const kube::object_key& key) const {
  const auto found = [](const auto* object, auto mark) { return live_object{object, object ? mark(*object) : 0}; };
  const auto content = [](const auto& object) { return object.content; };
  if (type.kind == kube::resources::services.kind) return found(stores_.services.find(key), content);
  if (type.kind == kube::resources::service_accounts.kind) return found(stores_.service_accounts.find(key), content);
  if (type.kind == kube::resources::config_maps.kind) {
    if (const auto* declared = declaration(key)) return found(declared, fingerprint);
    return found(stores_.config_maps.find(key), content);
  }
  const auto generation = [](const kube::object& set) { return static_cast<std::uint64_t>(set.generation); };
  if (type.kind == kube::resources::deployments.kind)
    return found(stores_.deployments ? stores_.deployments->find(key) : nullptr, generation);
  return found(stores_.daemon_sets.find(key), generation);
}

/// The object is as we left it.
bool applier::at_peace(const modules::intent& want, const live_object& is, last_write& spoken) const {
  if (spoken.hash != want.hash || !is.object || is.object->id != spoken.id || is.object->deleting) return false;
  if (is.object->annotations.value_or(api::names::applied_annotation, "") != want.hash || !is_ours(*is.object))
    return false;
  if (!spoken.mark_known && is.version() == spoken.version) {
    spoken.mark = is.mark;
    spoken.mark_known = true;
  }
  return spoken.mark_known && spoken.mark == is.mark;
}

kube::task<applier::outcome> applier::ensure(modules::intent want, controller::object_reference about) {
  outcome out;
  auto& record = spoken_[{want.type->kind, want.key}];
  const auto is = look(*want.type, want.key);
  if (at_peace(want, is, record)) {
    out.settled = true;
    co_return out;
  }
  const auto now = now_();
  const bool behind = record.hash == want.hash && is.version() < record.version;
  if (behind && now - record.looked < lag_allowed) {
    out.settled = true;  // as far as we know; the watch will show it
    out.again_in = lag_allowed;
    co_return out;
  }
  if (now - record.wrote < between_writes) {
    out.again_in = between_writes - (now - record.wrote);
    co_return out;
  }
  co_return co_await compare(std::move(want), std::move(about));
}

kube::task<applier::outcome> applier::compare(modules::intent want, controller::object_reference about) {
  outcome out;
  auto live = co_await client_.get(*want.type, want.key);
  if (!live && live.error().code == kube::errc::not_found) live = json();
  if (!live) {
    out.failed = live.error();
    if (live.error().code == kube::errc::forbidden) {
      out.problem = "Forbidden";
      out.message = live.error().message;
    }
    co_return out;
  }
  const bool foreign = !live->is_null() && label_at(*live, api::names::managed_by_label) != api::names::managed_by;
  if (foreign && want.yields) {
    out.settled = true;
    out.again_in = refused_again;
    co_return out;
  }
  if (foreign && !want.adopt) {
    out.problem = "ForeignObject";
    out.message = {
        places_.mark == api::names::module_label ? "status.object.foreign_of_module" : "status.object.foreign",
        {{"object", called(*want.type, want.key.to_string())}, {"owner", owner_of(*live)}, {"module", want.module}}};
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
kube::task<applier::outcome> applier::hand_over(modules::intent want, controller::object_reference about, json live) {
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

kube::task<applier::outcome> applier::write(modules::intent want, controller::object_reference about, json live) {
  outcome out;
  spoken_[{want.type->kind, want.key}].wrote = now_();
  const auto body = json::parse(want.body);
  kube::write_options options;
  options.field_manager = api::names::field_owner;
  options.force = true;
  auto answer = co_await client_.apply(*want.type, want.key, body, options);
  if (answer) {
    remember(want, *answer);
    out.settled = true;
    const bool edited = value_at(live, "/metadata/annotations", api::names::applied_annotation) == want.hash;
    events_.record(
        about, event_type::normal,
        live.is_null() ? "Created"
        : edited       ? "Restored"
                       : "Updated",
        "Apply",
        called(*want.type, want.key.name) + " of " + whose(want.module) + (edited ? ": someone had changed it" : ""));
    co_return out;
  }
  const auto& wrong = answer.error();
  const bool refused = wrong.code == kube::errc::invalid || wrong.code == kube::errc::bad_request;
  if (refused && !live.is_null() && want.type->kind == kube::resources::services.kind)
    co_return co_await make_room(std::move(want), text_at(live, "/metadata/uid"));
  if (refused) {
    out.problem = "Refused";
    out.message = {"status.object.refused", {{"object", called(*want.type, want.key.name)}, {"error", wrong.message}}};
    out.again_in = refused_again;
  } else if (wrong.code == kube::errc::conflict) {  // written or replaced between our look and our write
    out.again_in = between_writes;
  } else {
    if (wrong.code == kube::errc::forbidden) {
      out.problem = "Forbidden";
      out.message = wrong.message;
    }
    out.failed = wrong;
  }
  co_return out;
}

/// What is someone else's is recreated: the selector of a DaemonSet cannot be changed, an apply would keep whatever
/// containers, node selectors and variables it had, and two plugins on a node would give a card out twice. So its pods
/// have to be gone (foreground) before ours come. Pods that use cards do not notice: the kubelet knows what they have.
kube::task<applier::outcome> applier::take_over(modules::intent want, controller::object_reference about, json live) {
  outcome out;
  spoken_[{want.type->kind, want.key}].wrote = now_();
  kube::preconditions only_if;
  only_if.uid = text_at(live, "/metadata/uid");
  auto done = co_await client_.remove(*want.type, want.key, only_if, kube::propagation::foreground);
  out.again_in = between_writes;
  if (done)
    events_.record(about, event_type::normal, "Adopted", "Delete",
                   called(*want.type, want.key.name) + " of " + words_of(owner_of(live), text::language::en) +
                       " is recreated as " + whose(want.module) + "'s; what installed it must let it be");
  else if (done.error().code != kube::errc::conflict)
    out.failed = done.error();
  co_return out;
}

/// The ports of a Service are distinguished by their numbers, so an apply keeps an edited one next to ours, and the
/// server refuses the two for their one name. Nothing runs in a Service: it is recreated at the next look.
kube::task<applier::outcome> applier::make_room(modules::intent want, std::string uid) {
  outcome out;
  kube::preconditions only_if;
  only_if.uid = std::move(uid);
  auto done = co_await client_.remove(*want.type, want.key, only_if);
  if (!done && done.error().code != kube::errc::conflict) out.failed = done.error();
  out.again_in = between_writes;
  co_return out;
}

void applier::remember(const modules::intent& want, const json& live) {
  auto& record = spoken_[{want.type->kind, want.key}];
  record.hash = want.hash;
  record.id = kube::uid::parse(text_at(live, "/metadata/uid"));
  record.version = number_of(text_at(live, "/metadata/resourceVersion"));
  const auto generation = live.value("/metadata/generation"_json_pointer, json());
  record.mark_known =
      want.type->kind == kube::resources::daemon_sets.kind || want.type->kind == kube::resources::deployments.kind;
  record.mark = generation.is_number_integer() ? generation.get<std::uint64_t>() : 0;
  record.looked = now_();
}

std::vector<applier::victim> applier::victims(const std::set<identity>& kept,
                                              const std::set<std::string>& spared) const {
  std::vector<victim> out;
  const auto collect = [&](const kube::resource& type, const auto& store) {
    for (const auto& object : store.all()) {
      std::string module(object.labels.value_or(places_.mark, ""));
      if (!is_ours(object) || object.deleting || kept.contains({type.kind, object.key}) || spared.contains(module))
        continue;
      if (std::ranges::any_of(out,
                              [&](const victim& victim) { return victim.type == &type && victim.key == object.key; }))
        continue;  // several stores have it
      out.push_back({&type, object.key, object.id.to_string(), std::move(module)});
    }
  };
  collect(kube::resources::daemon_sets, stores_.daemon_sets);
  collect(kube::resources::services, stores_.services);
  collect(kube::resources::service_accounts, stores_.service_accounts);
  collect(kube::resources::config_maps, stores_.config_maps);
  for (const auto* store : stores_.declared) collect(kube::resources::config_maps, *store);
  if (stores_.deployments) collect(kube::resources::deployments, *stores_.deployments);
  return out;
}

kube::task<applier::outcome> applier::prune(std::set<identity> kept, std::set<std::string> spared_modules,
                                            controller::object_reference about) {
  outcome out;
  out.settled = true;
  for (const auto& victim : victims(kept, spared_modules)) {
    kube::preconditions only_if;
    only_if.uid = victim.uid;
    spoken_.erase({victim.type->kind, victim.key});
    auto done = co_await client_.remove(*victim.type, victim.key, only_if);
    if (!done && done.error().code == kube::errc::conflict) {
      out.again_in = between_writes;
    } else if (!done) {
      out.failed = done.error();
    } else if (!about.uid.empty()) {
      events_.record(
          about, event_type::normal, "Removed", "Delete",
          called(*victim.type, victim.key.name) + ": " + whose(victim.module) + " does not want it any more");
    }
  }
  co_return out;
}

}  // namespace reconcilers
