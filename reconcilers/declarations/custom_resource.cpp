#include "reconcilers/declarations/custom_resource.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>

#include "reconcilers/declarations/compiled.hpp"
#include "reconcilers/declarations/verdict.hpp"
#include "text/text.hpp"

namespace reconcilers {
namespace {

using namespace std::chrono_literals;
using controller::action;
using nlohmann::json;

constexpr auto verdict_path = "/metadata/annotations/quartermaster.io~1verdict";
constexpr auto look_again = action{250ms};
constexpr auto young = 10s;

json test(const char* path, json value) { return {{"op", "test"}, {"path", path}, {"value", std::move(value)}}; }

/// The projection does not tell an object without annotations from one with annotations of others, so this is tried
/// first: it fails on the former and can overwrite nothing.
json add_verdict(const std::string& uid, const std::string& version, const std::string& text) {
  return json::array({test("/metadata/uid", uid),
                      test("/metadata/resourceVersion", version),
                      {{"op", "add"}, {"path", verdict_path}, {"value", text}}});
}

/// For an object without any annotation. `test` for null is true where the member is absent (evanphx/json-patch, which
/// the API server uses), so annotations of others that came in between are never lost.
json add_annotations(const std::string& uid, const std::string& version, const std::string& text) {
  return json::array(
      {test("/metadata/uid", uid),
       test("/metadata/resourceVersion", version),
       test("/metadata/annotations", nullptr),
       {{"op", "add"}, {"path", "/metadata/annotations"}, {"value", {{declarations::verdict_annotation, text}}}}});
}

json remove_verdict(const std::string& uid, const std::string& text) {
  return json::array(
      {test("/metadata/uid", uid), test(verdict_path, text), {{"op", "remove"}, {"path", verdict_path}}});
}

/// A module's declarations name each other and are written one after the other: while one of them is young, a partner
/// that is not there yet is no one's mistake. `created` is wall time; a clock that is far off waits for nothing.
bool waits_for_related(const declarations::registry& all, const declarations::judgement& judged, std::int64_t created) {
  const auto* found = all.find(judged.config_map);
  const auto is_unknown = [](const declarations::finding& finding) {
    return finding.kind == declarations::error_code::related_unknown;
  };
  if (!found || !found->value.managed || std::ranges::none_of(judged.findings, is_unknown)) return false;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto age = std::chrono::duration_cast<std::chrono::seconds>(now) - std::chrono::seconds(created);
  return age > -young && age < young;
}

std::string_view reason_of(declarations::verdict v) {
  return v == declarations::verdict::accepted  ? "Accepted"
         : v == declarations::verdict::warning ? "Questionable"
                                               : "Refused";
}

}  // namespace

declarations::config_map_view view_of(const kube::config_map& config_map) {
  declarations::config_map_view out;
  out.key = config_map.key;
  out.created = config_map.created;
  out.labels.assign(config_map.labels.begin(), config_map.labels.end());
  out.data.assign(config_map.data.begin(), config_map.data.end());
  out.binary = config_map.binary.size();
  out.left_out = config_map.left_out;
  return out;
}

bool is_other_content(const kube::config_map* before, const kube::config_map* after) {
  return !before || !after || before->created != after->created || before->labels != after->labels ||
         before->data != after->data || before->binary != after->binary || before->left_out != after->left_out;
}

label_alias alias_of(const declarations::device_config& config) {
  return {config.label_key, config.label_value, text::lower_case(config.name)};
}

custom_resource::custom_resource(std::vector<config_maps*> stores, kube::client& client, controller::recorder& events,
                                 declarations::parse_settings settings,
                                 controller::store<api::owned_runtime_class>* runtime_classes,
                                 controller::store<api::compiled_rules>* compiled)
    : stores_(std::move(stores)),
      runtime_classes_(runtime_classes),
      compiled_(compiled),
      client_(client),
      events_(events),
      registry_(std::move(settings)) {
  for (auto* store : stores_) {
    for (const auto& entry : store->all()) take_in(nullptr, &entry);
    store->observe([this](const auto* before, const auto* after) { take_in(before, after); });
  }
  if (runtime_classes_) {
    take_in_runtime_classes();
    runtime_classes_->observe([this](const auto*, const auto*) { take_in_runtime_classes(); });
  }
  if (compiled_) {
    take_in(compiled_->find(api::compiled_rules::only()));
    compiled_->observe([this](const api::compiled_rules* before, const api::compiled_rules* after) {
      const bool same = before && after && before->spec == after->spec;
      if (!same && (after ? after : before)->key == api::compiled_rules::only()) take_in(after);
    });
  }
}

void custom_resource::take_in(const api::compiled_rules* now) {
  sources_ = now ? declarations::sources_of(now->spec) : std::vector<kube::object_key>();
}

/// resource_rules keeps the rule of a declaration that was edited into an error; the object says whether there is one.
bool custom_resource::kept(const declarations::judgement& refused) const {
  const auto* found = registry_.find(refused.config_map);
  return found && !found->value.switched_off && std::ranges::binary_search(sources_, refused.config_map);
}

void custom_resource::take_in_runtime_classes() {
  std::set<std::string, std::less<>> names;
  for (const auto& runtime_class : runtime_classes_->all()) names.insert(runtime_class.key.name);
  registry_.set_runtime_classes(std::move(names));
}

const kube::config_map* custom_resource::newest(const kube::object_key& key) const {
  const kube::config_map* out = nullptr;
  for (const auto* store : stores_) {
    const auto* found = store->find(key);
    if (found && (!out || found->resource_version > out->resource_version)) out = found;
  }
  return out;
}

bool custom_resource::synced() const {
  return (!runtime_classes_ || runtime_classes_->synced()) && (!compiled_ || compiled_->synced()) &&
         std::ranges::all_of(stores_, [](const config_maps* store) { return store->synced(); });
}

void custom_resource::take_in(const kube::config_map* before, const kube::config_map* after) {
  const auto& key = after ? after->key : before->key;
  if (const auto* now = newest(key)) {
    leftovers_.erase(key);
    const auto view = view_of(*now);
    // The same object out of another store, or nothing but our own annotation.
    if (registry_.holds(view)) return;
    registry_.put(view);
  } else {
    registry_.erase(key);
    const auto text = before ? before->annotations.find(declarations::verdict_annotation) : std::nullopt;
    if (text) leftovers_[key] = leftover{before->id.to_string(), std::string(*text)};
  }
}

std::vector<kube::object_key> custom_resource::affected_by(const kube::config_map* before,
                                                           const kube::config_map* after) const {
  std::set<kube::object_key> out;
  for (const auto* entry : {before, after}) {
    if (entry) out.insert(entry->key);
  }
  const bool changed = is_other_content(before, after);
  for (const auto* entry : {before, after}) {
    if (entry && changed) std::ranges::move(registry_.neighbours(view_of(*entry)), std::inserter(out, out.end()));
  }
  return {out.begin(), out.end()};
}

std::vector<kube::object_key> custom_resource::affected_by(const api::owned_runtime_class* before,
                                                           const api::owned_runtime_class* after) const {
  if (before && after) return {};
  return registry_.with_runtime_class();
}

std::vector<kube::object_key> custom_resource::affected_by(const api::compiled_rules* before,
                                                           const api::compiled_rules* after) const {
  if (before && after && before->spec == after->spec) return {};
  const auto sources = [](const api::compiled_rules* compiled_rules) {
    return compiled_rules ? declarations::sources_of(compiled_rules->spec) : std::vector<kube::object_key>();
  };
  std::vector<kube::object_key> out;
  std::ranges::set_symmetric_difference(sources(before), sources(after), std::back_inserter(out));
  return out;
}

kube::task<action> custom_resource::reconcile(kube::object_key key) {
  // Half a picture would find fault with keys that are declared in the other half.
  if (!synced()) co_return look_again;
  const auto* now = newest(key);
  if (!now) co_return co_await clean_up(std::move(key));
  auto judged = registry_.judge(key);
  judged.kept = declarations::verdict_of(judged) == declarations::verdict::refused && kept(judged);
  if (judged.type == declarations::kind::none || now->deleting) co_return action::await_change();
  auto text = declarations::annotation_of(judged);
  const std::string before(now->annotations.value_or(declarations::verdict_annotation, ""));
  if (before == text) co_return action::await_change();

  if (before.empty() && waits_for_related(registry_, judged, now->created)) co_return look_again;

  const controller::object_reference about(kube::resources::config_maps, *now);
  auto done = co_await write(*now, text);
  if (!done) co_return std::unexpected(std::move(done.error()));
  if (!done->written || declarations::same_words(before, text)) co_return done->next;
  const auto verdict = declarations::verdict_of(judged);
  const auto type =
      verdict == declarations::verdict::accepted ? controller::event_type::normal : controller::event_type::warning;
  events_.record(about, type, reason_of(verdict), "Validate", declarations::note_of(judged));
  co_return action::await_change();
}

kube::task<custom_resource::outcome> custom_resource::write(const kube::config_map& now, std::string text) {
  const auto key = now.key;
  const auto uid = now.id.to_string();
  const auto version_judged = now.resource_version;
  const auto version = std::to_string(version_judged);
  const bool has_annotations = !now.annotations.empty();
  const auto add = add_verdict(uid, version, text);
  auto answer = co_await client_.patch(kube::resources::config_maps, key, kube::patch_kind::json, add);
  if (!answer && answer.error().code == kube::errc::invalid && !has_annotations) {
    const auto add_all = add_annotations(uid, version, text);
    answer = co_await client_.patch(kube::resources::config_maps, key, kube::patch_kind::json, add_all);
  }
  if (answer) co_return outcome{true, action::await_change()};
  const auto code = answer.error().code;
  const auto* later = newest(key);
  // Gone: the watch says so too.
  if (code == kube::errc::not_found || !later) co_return outcome{false, action::await_change()};
  // A failed test reads like any other 422: only where the object has moved on is it the one we expect.
  const bool lost_the_race =
      code == kube::errc::conflict || (code == kube::errc::invalid && later->resource_version != version_judged);
  if (lost_the_race) co_return outcome{false, look_again};
  co_return std::unexpected(std::move(answer.error()));
}

/// The label was taken away, or the object deleted: a watch does not say which. One request settles it; it names the
/// uid and our own text. What is lost when we are killed between the two is a stale annotation on an object no one
/// judges any more.
kube::task<action> custom_resource::clean_up(kube::object_key key) {
  const auto match = leftovers_.find(key);
  if (match == leftovers_.end()) co_return action::await_change();
  const auto patch = remove_verdict(match->second.uid, match->second.text);
  const auto answer = co_await client_.patch(kube::resources::config_maps, key, kube::patch_kind::json, patch);
  const bool final_word = answer || answer.error().code == kube::errc::not_found ||
                          answer.error().code == kube::errc::invalid || answer.error().code == kube::errc::conflict ||
                          answer.error().code == kube::errc::forbidden;
  if (!final_word) co_return std::unexpected(answer.error());
  leftovers_.erase(key);
  co_return action::await_change();
}

}  // namespace reconcilers
