// What is to be said between declarations. Each function depends on the declaration and its neighbours
// (registry::neighbours) only; a finding that looked further would go stale unseen.

#include <algorithm>
#include <array>
#include <tuple>

#include "reconcilers/declarations/reader.hpp"
#include "reconcilers/declarations/registry.hpp"
#include "text/nearest.hpp"
#include "text/text.hpp"

namespace reconcilers::crl {
namespace {

constexpr std::size_t named = 8;  ///< findings of one kind a declaration can get

finding& say(std::vector<finding>& to, const declaration& of, code what, std::string field, std::string_view value) {
  auto& f = to.emplace_back();
  f.what = what;
  f.config_map = of.config_map;
  f.field = std::move(field);
  f.value = shown(value);
  return f;
}

std::string name_of(const kube::object_key& config_map) { return shown(config_map.to_string(), 160); }

/// One of two that exclude each other is required beside the other. Alternatives within a group are fine.
bool contradict(const declaration& a, const declaration& b) {
  return a.group == b.group && !a.group.empty() && (a.required() || b.required());
}

/// Of two whose exclusion stands on one side only, is it the one that names the other who is told? The later one is;
/// never the operator's own, which people do not write. Files have no age: there it is the one where something is
/// missing.
bool told(const declaration& naming, const declaration& other) {
  return naming.ours != other.ours ? other.ours : naming.created > other.created;
}

std::string enabled_path(const declaration& of) {
  return label_path(std::string(of.written_in == dialect::alauda ? names::alauda : names::cpaas) + "enabled");
}

}  // namespace

/// Said of those that do not count: the one that does is in order.
void registry::say_duplicates(const declaration& of, std::vector<finding>& to) const {
  const auto* first = first_with_key(of.key);
  if (!first || first == &of || !of.enabled || !first->enabled) return;
  say(to, of, code::duplicate_key, "data.key", of.key).other = name_of(first->config_map);
}

/// A member that the group asks for is switched off: a finding of its own.
bool registry::is_missed(const declaration& of) const {
  const auto at = by_group_.find(of.group);
  return at != by_group_.end() && of.sound && !of.enabled && of.required() && (*at->second.begin())->in_force();
}

/// A key of the group that cannot be read may be the one that is named.
bool registry::has_unreadable_neighbour(const declaration& of) const {
  const auto at = by_group_.find(of.group);
  const auto is = [&](const declaration* other) { return other != &of && other->key.empty(); };
  return at != by_group_.end() && std::ranges::any_of(at->second, is);
}

void registry::say_related(const declaration& of, std::vector<finding>& to) const {
  std::size_t count = 0;
  for (const auto& key : of.related) {
    const auto* other = first_with_key(key);
    // What only follows from a finding of the other's own is not said.
    if (other ? other->enabled || !other->sound || (other->group == of.group && is_missed(*other))
              : has_unreadable_neighbour(of))
      continue;
    if (++count > named) return;
    auto& f = say(to, of, other ? code::related_not_in_force : code::related_unknown, "data.relatedResources", key);
    if (other) {
      f.other = name_of(other->config_map);
    } else if (const auto group = by_group_.find(of.group); group != by_group_.end()) {
      std::vector<std::string_view> candidates;
      for (const auto* member : group->second) {
        if (member != &of && !member->key.empty() && candidates.size() < 64) candidates.push_back(member->key);
      }
      std::ranges::sort(candidates);
      f.hint = nearest(key, candidates);
    }
  }
}

void registry::say_exclusions(const declaration& of, std::vector<finding>& to) const {
  std::size_t count = 0;
  for (const auto& key : of.excluded) {
    const auto* other = first_with_key(key);
    if (!other || !other->in_force() || !of.in_force() || !contradict(of, *other)) continue;
    if (++count > named) break;
    say(to, of, code::group_excludes_member, "data.excludeResources", key).other = of.group;
  }
  if (first_with_key(of.key) == &of) say_unanswered(of, to);
  // The manual's dialect has no field to answer in.
  const auto mention = by_mention_.find(of.key);
  if (mention == by_mention_.end() || of.written_in == dialect::alauda || first_with_key(of.key) != &of) return;
  std::map<std::string_view, const declaration*> excluders;  // by key; of several that declare one key the first
  for (const auto* other : mention->second) {
    if (other->in_force() && other->key != of.key && std::ranges::binary_search(other->excluded, of.key)) {
      excluders.try_emplace(other->key, other);
    }
  }
  count = 0;
  for (const auto& [key, other] : excluders) {
    // Within a group that asks for one of the two the exclusion itself is the mistake, said where it was made.
    if (std::ranges::binary_search(of.excluded, key) || contradict(of, *other) || told(*other, of)) continue;
    if (++count > named) break;
    say(to, of, code::exclusion_not_mutual, "data.excludeResources", key).other = name_of(other->config_map);
  }
}

void registry::say_unanswered(const declaration& of, std::vector<finding>& to) const {
  std::size_t count = 0;
  for (const auto& key : of.excluded) {
    const auto* other = first_with_key(key);
    if (!other || !of.in_force() || other->key == of.key || other->written_in == dialect::alauda ||
        std::ranges::binary_search(other->excluded, of.key) || contradict(of, *other) || !told(of, *other))
      continue;
    if (++count > named) return;
    say(to, of, code::exclusion_not_answered, "data.excludeResources", key).other = name_of(other->config_map);
  }
}

void registry::say_group(const declaration& of, std::vector<finding>& to) const {
  const auto at = by_group_.find(of.group);
  if (at == by_group_.end()) return;
  const auto& first = **at->second.begin();
  if (&first == &of || !first.in_force()) return;
  const auto other = name_of(first.config_map);
  const bool both_named = !of.group_en.empty() && !first.group_en.empty();
  if (both_named && (of.group_en != first.group_en || of.group_zh != first.group_zh)) {
    say(to, of, code::group_names_differ, "data.groupI18n", of.group_en + " / " + of.group_zh).other = other;
  }
  if (!of.runtime_class.empty() && !first.runtime_class.empty() && of.runtime_class != first.runtime_class) {
    say(to, of, code::group_runtime_differs, "data.runtimeClassName", of.runtime_class).other = other;
  }
  if (is_missed(of)) say(to, of, code::group_member_off, enabled_path(of), "false").other = other;
}

void registry::say_runtime_class(const declaration& of, std::vector<finding>& to) const {
  if (of.runtime_class.empty() || !runtime_classes_ || runtime_classes_->contains(of.runtime_class)) return;
  auto& f = say(to, of, code::runtime_class_unknown, "data.runtimeClassName", of.runtime_class);
  std::vector<std::string_view> candidates(runtime_classes_->begin(), runtime_classes_->end());
  if (candidates.size() > 64) candidates.resize(64);
  f.hint = nearest(of.runtime_class, candidates);
}

std::vector<finding> registry::between(const declaration& of) const {
  std::vector<finding> out;
  say_duplicates(of, out);
  say_related(of, out);
  say_exclusions(of, out);
  say_group(of, out);
  say_runtime_class(of, out);
  return out;
}

judgement registry::judge(const device_item& of) const {
  const auto& what = of.about.what;
  judgement out{kind::device_config, what.config_map, what.sound ? what.label_key + "=" + what.label_value : "",
                of.about.findings, of.observed};
  const auto age = [](const device_config& one) { return std::tie(one.created, one.config_map); };
  for (const auto& [key, other] : devices_) {
    const auto& its = other.about.what;
    const bool before = age(its) < age(what);  // of two the later is told
    if (!what.sound || !its.sound || its.label_key != what.label_key || its.label_value != what.label_value ||
        its.name == what.name || !before)
      continue;
    auto& f = out.findings.emplace_back();
    f.what = code::device_label_shared;
    f.config_map = what.config_map;
    f.field = "data.nodeLabelKey";
    f.value = shown(out.key);
    f.other = name_of(key);
    break;
  }
  sort(out.findings);
  return out;
}

}  // namespace reconcilers::crl
