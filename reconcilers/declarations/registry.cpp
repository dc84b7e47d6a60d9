#include "reconcilers/declarations/registry.hpp"

#include <algorithm>
#include <tuple>

#include "reconcilers/declarations/verdict.hpp"

namespace reconcilers::declarations {

bool registry::by_rank::operator()(const declaration* a, const declaration* b) const {
  const auto rank = [](const declaration& d) { return std::tuple(!d.in_force(), d.created, std::cref(d.config_map)); };
  const auto ra = rank(*a);
  const auto rb = rank(*b);
  return std::tie(std::get<0>(ra), std::get<1>(ra), std::get<2>(ra).get()) <
         std::tie(std::get<0>(rb), std::get<1>(rb), std::get<2>(rb).get());
}

void registry::index(const declaration& declaration) {
  if (!declaration.key.empty()) by_key_[declaration.key].insert(&declaration);
  for (const auto* list : {&declaration.related, &declaration.excluded}) {
    for (const auto& key : *list) by_mention_[key].insert(&declaration);
  }
  if (!declaration.group.empty()) by_group_[declaration.group].insert(&declaration);
}

void registry::forget(const declaration& declaration) {
  const auto drop = [&](auto& map, const std::string& name) {
    const auto match = map.find(name);
    if (match == map.end()) return;
    match->second.erase(&declaration);
    if (match->second.empty()) map.erase(match);
  };
  drop(by_key_, declaration.key);
  for (const auto* list : {&declaration.related, &declaration.excluded}) {
    for (const auto& key : *list) drop(by_mention_, key);
  }
  drop(by_group_, declaration.group);
}

void registry::put(const config_map_view& config_map) {
  erase(config_map.key);
  switch (kind_of(config_map)) {
    case kind::declaration:
      index(items_.emplace(config_map.key, item{parse(config_map, settings_), content_hash(config_map)})
                .first->second.about.value);
      break;
    case kind::device_config:
      devices_.emplace(config_map.key, device_item{parse_device(config_map, settings_), content_hash(config_map)});
      break;
    case kind::none:
      break;
  }
}

void registry::erase(const kube::object_key& config_map) {
  devices_.erase(config_map);
  const auto match = items_.find(config_map);
  if (match == items_.end()) return;
  forget(match->second.about.value);
  items_.erase(match);
}

const parsed* registry::find(const kube::object_key& config_map) const {
  const auto match = items_.find(config_map);
  return match == items_.end() ? nullptr : &match->second.about;
}

bool registry::holds(const config_map_view& config_map) const {
  if (const auto match = items_.find(config_map.key); match != items_.end()) {
    return match->second.about.value.created == config_map.created &&
           match->second.observed == content_hash(config_map);
  }
  const auto position = devices_.find(config_map.key);
  return position != devices_.end() && position->second.about.value.created == config_map.created &&
         position->second.observed == content_hash(config_map);
}

const registry::ranked* registry::with_key(const std::string& key) const {
  const auto match = by_key_.find(key);
  return match == by_key_.end() ? nullptr : &match->second;
}

const declaration* registry::first_with_key(const std::string& key) const {
  const auto* all = with_key(key);
  return all ? *all->begin() : nullptr;
}

judgement registry::judge(const kube::object_key& config_map) const {
  if (const auto match = items_.find(config_map); match != items_.end()) return judge(match->second);
  if (const auto match = devices_.find(config_map); match != devices_.end()) return judge(match->second);
  judgement out;
  out.config_map = config_map;
  return out;
}

judgement registry::judge(const item& item) const {
  judgement out{kind::declaration, item.about.value.config_map, item.about.value.key, item.about.findings,
                item.observed};
  std::ranges::move(between(item.about.value), std::back_inserter(out.findings));
  sort(out.findings);
  return out;
}

std::vector<judgement> registry::judge_all() const {
  std::vector<judgement> out;
  for (const auto& [key, entry] : items_) out.push_back(judge(entry));
  for (const auto& [key, entry] : devices_) out.push_back(judge(entry));
  std::ranges::sort(out, {}, &judgement::config_map);
  return out;
}

void registry::add_neighbours(const declaration& subject, std::set<kube::object_key>& object_keys) const {
  const auto add = [&](const ranked* these) {
    if (these) std::ranges::transform(*these, std::inserter(object_keys, object_keys.end()), &declaration::config_map);
  };
  add(with_key(subject.key));
  for (const auto* list : {&subject.related, &subject.excluded}) {
    for (const auto& key : *list) add(with_key(key));
  }
  if (const auto mention = by_mention_.find(subject.key); mention != by_mention_.end()) add(&mention->second);
  if (const auto group = by_group_.find(subject.group); group != by_group_.end()) add(&group->second);
}

std::vector<kube::object_key> registry::neighbours(const config_map_view& config_map) const {
  std::set<kube::object_key> out;
  const auto of_kind = kind_of(config_map);
  if (of_kind == kind::declaration) add_neighbours(parse(config_map, settings_).value, out);
  if (of_kind == kind::device_config) {
    const auto device = parse_device(config_map, settings_).value;
    for (const auto& [key, other] : devices_) {
      if (other.about.value.label_key == device.label_key) out.insert(key);
    }
  }
  out.erase(config_map.key);
  return {out.begin(), out.end()};
}

std::vector<kube::object_key> registry::with_runtime_class() const {
  std::vector<kube::object_key> out;
  for (const auto& [key, entry] : items_) {
    if (!entry.about.value.runtime_class.empty()) out.push_back(key);
  }
  return out;
}

namespace {

std::optional<std::int64_t> fill_of(const declaration& declaration, bool fill_optional) {
  const bool wanted = declaration.limits == use::required || (declaration.limits == use::optional && fill_optional);
  return wanted && declaration.default_value.value_or(0) > 0 ? declaration.default_value : std::nullopt;
}

rule compiled(const declaration& declaration, const compile_options& options) {
  rule out;
  out.key = declaration.key;
  out.config_map = declaration.config_map;
  out.managed = declaration.managed;
  out.group = declaration.group;
  out.forbidden = declaration.limits == use::disabled;
  out.must = declaration.required();
  out.fill = fill_of(declaration, options.fill_optional);
  out.related = declaration.related;
  out.excluded = declaration.excluded;
  out.one_only = declaration.key == options.one_only;
  out.offered = declaration.ignore_node_check || !options.offered || options.offered->contains(declaration.key);
  return out;
}

}  // namespace

/// Rules of declarations that are in error now and were not when `how.last` was compiled. What the policy and the nodes
/// have a say in is as they say now.
void registry::keep_last_good(rule_set& rule_set, const compile_options& options) const {
  std::set<kube::object_key> compiled;
  for (const auto& rule : rule_set.rules) compiled.insert(rule.config_map);
  for (const auto& old : options.last->rules) {
    const auto match = items_.find(old.config_map);
    if (match == items_.end() || match->second.about.value.switched_off || rule_set.find(old.key) ||
        !compiled.insert(old.config_map).second)
      continue;
    const auto place = std::ranges::lower_bound(rule_set.rules, old.key, {}, &rule::key);
    auto& kept = *rule_set.rules.insert(place, old);
    if (!kept.must && !options.fill_optional) kept.fill.reset();
    if (runtime_classes_ && !runtime_classes_->contains(kept.runtime_class)) kept.runtime_class.clear();
    kept.one_only = kept.key == options.one_only;
    if (!kept.offered) kept.offered = !options.offered || options.offered->contains(kept.key);
  }
}

rule_set registry::compile(const compile_options& options) const {
  rule_set out;
  for (const auto& [key, all] : by_key_) {
    const auto& declaration = **all.begin();
    if (!declaration.in_force() || has_error(between(declaration))) continue;
    out.rules.push_back(compiled(declaration, options));
    if (!runtime_classes_ || runtime_classes_->contains(declaration.runtime_class))
      out.rules.back().runtime_class = declaration.runtime_class;
  }
  if (options.last) keep_last_good(out, options);
  std::map<std::string, group_rule> groups;
  std::map<std::string, std::vector<std::string>> also;  // exclusions hold both ways
  for (auto& rule : out.rules) {
    std::erase_if(rule.related, [&](const std::string& key) { return !out.find(key); });
    for (const auto& key : rule.excluded) {
      if (out.find(key)) also[key].push_back(rule.key);
    }
    if (!rule.group.empty()) groups[rule.group].members.push_back(rule.key);
  }
  for (auto& [key, excluders] : also) {
    auto& match = const_cast<rule*>(out.find(key))->excluded;
    std::ranges::move(excluders, std::back_inserter(match));
    std::ranges::sort(match);
    match.erase(std::ranges::unique(match).begin(), match.end());
  }
  for (auto& [name, group] : groups) {
    const auto asks = [&](const std::string& key) { return out.find(key)->must || out.find(key)->fill; };
    if (std::ranges::none_of(group.members, asks)) continue;
    group.name = name;
    out.groups.push_back(std::move(group));
  }
  return out;
}

std::vector<device_config> registry::devices() const {
  std::vector<device_config> out;
  for (const auto& [key, entry] : devices_) {
    if (entry.about.value.sound) out.push_back(entry.about.value);
  }
  return out;
}

std::vector<judgement> judge_all(std::span<const config_map_view> config_maps, const parse_settings& settings) {
  registry all(settings);
  for (const auto& config_map : config_maps) all.put(config_map);
  return all.judge_all();
}

}  // namespace reconcilers::declarations
