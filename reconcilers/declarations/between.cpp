// What is to be said between declarations. Each function depends on the declaration and its neighbours
// (registry::neighbours) only; a finding that looked further would go stale unseen.

#include <algorithm>
#include <array>
#include <tuple>

#include "reconcilers/declarations/reader.hpp"
#include "reconcilers/declarations/registry.hpp"
#include "text/nearest.hpp"
#include "text/text.hpp"

namespace reconcilers::declarations {
namespace {

constexpr std::size_t named = 8;  ///< findings of one kind a declaration can get

finding& say(std::vector<finding>& findings, const declaration& declaration, error_code code, std::string field,
             std::string_view value) {
  auto& f = findings.emplace_back();
  f.kind = code;
  f.config_map = declaration.config_map;
  f.field = std::move(field);
  f.value = text::shown(value);
  return f;
}

std::string name_of(const kube::object_key& config_map) { return text::shown(config_map.to_string(), 160); }

/// One of two that exclude each other is required next to the other. Alternatives within a group are fine.
bool contradict(const declaration& a, const declaration& b) {
  return a.group == b.group && !a.group.empty() && (a.required() || b.required());
}

/// Of two whose exclusion stands on one side only, does the one that names the other get the finding? The later one is;
/// never the operator's own, which people do not write. Files have no age: there it is the one where something is
/// missing.
bool told(const declaration& naming, const declaration& other) {
  return naming.managed != other.managed ? other.managed : naming.created > other.created;
}

std::string enabled_path(const declaration& declaration) {
  return label_path(std::string(declaration.written_in == dialect::alauda ? names::alauda : names::cpaas) + "enabled");
}

}  // namespace

/// Said of those that do not count: the one that does is in order.
void registry::say_duplicates(const declaration& declaration, std::vector<finding>& findings) const {
  const auto* first = first_with_key(declaration.key);
  if (!first || first == &declaration || !declaration.enabled || !first->enabled) return;
  say(findings, declaration, error_code::duplicate_key, "data.key", declaration.key).other = name_of(first->config_map);
}

/// A member that the group asks for is switched off: a finding of its own.
bool registry::is_missed(const declaration& declaration) const {
  const auto match = by_group_.find(declaration.group);
  return match != by_group_.end() && declaration.sound && !declaration.enabled && declaration.required() &&
         (*match->second.begin())->in_force();
}

/// A key of the group that cannot be read may be the one that is named.
bool registry::has_unreadable_neighbour(const declaration& subject) const {
  const auto match = by_group_.find(subject.group);
  const auto is = [&](const declaration* other) { return other != &subject && other->key.empty(); };
  return match != by_group_.end() && std::ranges::any_of(match->second, is);
}

void registry::say_related(const declaration& declaration, std::vector<finding>& findings) const {
  std::size_t count = 0;
  for (const auto& key : declaration.related) {
    const auto* other = first_with_key(key);
    // What only follows from a finding of the other's own is not said.
    if (other ? other->enabled || !other->sound || (other->group == declaration.group && is_missed(*other))
              : has_unreadable_neighbour(declaration))
      continue;
    if (++count > named) return;
    auto& f = say(findings, declaration, other ? error_code::related_not_in_force : error_code::related_unknown,
                  "data.relatedResources", key);
    if (other) {
      f.other = name_of(other->config_map);
    } else if (const auto group = by_group_.find(declaration.group); group != by_group_.end()) {
      std::vector<std::string_view> candidates;
      for (const auto* member : group->second) {
        if (member != &declaration && !member->key.empty() && candidates.size() < 64) candidates.push_back(member->key);
      }
      std::ranges::sort(candidates);
      f.hint = text::nearest(key, candidates);
    }
  }
}

void registry::say_exclusions(const declaration& subject, std::vector<finding>& findings) const {
  std::size_t count = 0;
  for (const auto& key : subject.excluded) {
    const auto* other = first_with_key(key);
    if (!other || !other->in_force() || !subject.in_force() || !contradict(subject, *other)) continue;
    if (++count > named) break;
    say(findings, subject, error_code::group_excludes_member, "data.excludeResources", key).other = subject.group;
  }
  if (first_with_key(subject.key) == &subject) say_unanswered(subject, findings);
  // The manual's dialect has no field to answer in.
  const auto mention = by_mention_.find(subject.key);
  if (mention == by_mention_.end() || subject.written_in == dialect::alauda || first_with_key(subject.key) != &subject)
    return;
  std::map<std::string_view, const declaration*> excluders;  // by key; of several that declare one key the first
  for (const auto* other : mention->second) {
    if (other->in_force() && other->key != subject.key && std::ranges::binary_search(other->excluded, subject.key)) {
      excluders.try_emplace(other->key, other);
    }
  }
  count = 0;
  for (const auto& [key, other] : excluders) {
    // Within a group that asks for one of the two the exclusion itself is the mistake, said where it was made.
    if (std::ranges::binary_search(subject.excluded, key) || contradict(subject, *other) || told(*other, subject))
      continue;
    if (++count > named) break;
    say(findings, subject, error_code::exclusion_not_mutual, "data.excludeResources", key).other =
        name_of(other->config_map);
  }
}

void registry::say_unanswered(const declaration& declaration, std::vector<finding>& findings) const {
  std::size_t count = 0;
  for (const auto& key : declaration.excluded) {
    const auto* other = first_with_key(key);
    if (!other || !declaration.in_force() || other->key == declaration.key || other->written_in == dialect::alauda ||
        std::ranges::binary_search(other->excluded, declaration.key) || contradict(declaration, *other) ||
        !told(declaration, *other))
      continue;
    if (++count > named) return;
    say(findings, declaration, error_code::exclusion_not_answered, "data.excludeResources", key).other =
        name_of(other->config_map);
  }
}

void registry::say_group(const declaration& declaration, std::vector<finding>& findings) const {
  const auto match = by_group_.find(declaration.group);
  if (match == by_group_.end()) return;
  const auto& first = **match->second.begin();
  if (&first == &declaration || !first.in_force()) return;
  const auto other = name_of(first.config_map);
  const bool both_named = !declaration.group_en.empty() && !first.group_en.empty();
  if (both_named && (declaration.group_en != first.group_en || declaration.group_zh != first.group_zh)) {
    say(findings, declaration, error_code::group_names_differ, "data.groupI18n",
        declaration.group_en + " / " + declaration.group_zh)
        .other = other;
  }
  if (!declaration.runtime_class.empty() && !first.runtime_class.empty() &&
      declaration.runtime_class != first.runtime_class) {
    say(findings, declaration, error_code::group_runtime_differs, "data.runtimeClassName", declaration.runtime_class)
        .other = other;
  }
  if (is_missed(declaration))
    say(findings, declaration, error_code::group_member_off, enabled_path(declaration), "false").other = other;
}

void registry::say_runtime_class(const declaration& declaration, std::vector<finding>& findings) const {
  if (declaration.runtime_class.empty() || !runtime_classes_ || runtime_classes_->contains(declaration.runtime_class))
    return;
  auto& f =
      say(findings, declaration, error_code::runtime_class_unknown, "data.runtimeClassName", declaration.runtime_class);
  std::vector<std::string_view> candidates(runtime_classes_->begin(), runtime_classes_->end());
  if (candidates.size() > 64) candidates.resize(64);
  f.hint = text::nearest(declaration.runtime_class, candidates);
}

std::vector<finding> registry::between(const declaration& declaration) const {
  std::vector<finding> out;
  say_duplicates(declaration, out);
  say_related(declaration, out);
  say_exclusions(declaration, out);
  say_group(declaration, out);
  say_runtime_class(declaration, out);
  return out;
}

judgement registry::judge(const device_item& device_item) const {
  const auto& device = device_item.about.value;
  judgement out{kind::device_config, device.config_map, device.sound ? device.label_key + "=" + device.label_value : "",
                device_item.about.findings, device_item.observed};
  const auto age = [](const device_config& config) { return std::tie(config.created, config.config_map); };
  for (const auto& [key, other] : devices_) {
    const auto& neighbour = other.about.value;
    const bool before = age(neighbour) < age(device);  // of two the later gets the finding
    if (!device.sound || !neighbour.sound || neighbour.label_key != device.label_key ||
        neighbour.label_value != device.label_value || neighbour.name == device.name || !before)
      continue;
    auto& f = out.findings.emplace_back();
    f.kind = error_code::device_label_shared;
    f.config_map = device.config_map;
    f.field = "data.nodeLabelKey";
    f.value = text::shown(out.key);
    f.other = name_of(key);
    break;
  }
  sort(out.findings);
  return out;
}

}  // namespace reconcilers::declarations
