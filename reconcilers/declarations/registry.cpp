#include "reconcilers/declarations/registry.hpp"

#include <algorithm>
#include <tuple>

#include "reconcilers/declarations/verdict.hpp"

namespace reconcilers::crl {

bool registry::by_rank::operator()(const declaration* a, const declaration* b) const {
  const auto rank = [](const declaration& d) { return std::tuple(!d.in_force(), d.created, std::cref(d.config_map)); };
  const auto ra = rank(*a);
  const auto rb = rank(*b);
  return std::tie(std::get<0>(ra), std::get<1>(ra), std::get<2>(ra).get()) <
         std::tie(std::get<0>(rb), std::get<1>(rb), std::get<2>(rb).get());
}

void registry::index(const declaration& what) {
  if (!what.key.empty()) by_key_[what.key].insert(&what);
  for (const auto* list : {&what.related, &what.excluded}) {
    for (const auto& key : *list) by_mention_[key].insert(&what);
  }
  if (!what.group.empty()) by_group_[what.group].insert(&what);
}

void registry::forget(const declaration& what) {
  const auto drop = [&](auto& from, const std::string& name) {
    const auto at = from.find(name);
    if (at == from.end()) return;
    at->second.erase(&what);
    if (at->second.empty()) from.erase(at);
  };
  drop(by_key_, what.key);
  for (const auto* list : {&what.related, &what.excluded}) {
    for (const auto& key : *list) drop(by_mention_, key);
  }
  drop(by_group_, what.group);
}

void registry::put(const config_map_view& from) {
  erase(from.key);
  switch (kind_of(from)) {
    case kind::declaration:
      index(items_.emplace(from.key, item{parse(from, settings_), content_hash(from)}).first->second.about.what);
      break;
    case kind::device_config:
      devices_.emplace(from.key, device_item{parse_device(from, settings_), content_hash(from)});
      break;
    case kind::none:
      break;
  }
}

void registry::erase(const kube::object_key& config_map) {
  devices_.erase(config_map);
  const auto at = items_.find(config_map);
  if (at == items_.end()) return;
  forget(at->second.about.what);
  items_.erase(at);
}

const parsed* registry::find(const kube::object_key& config_map) const {
  const auto at = items_.find(config_map);
  return at == items_.end() ? nullptr : &at->second.about;
}

bool registry::holds(const config_map_view& of) const {
  if (const auto at = items_.find(of.key); at != items_.end()) {
    return at->second.about.what.created == of.created && at->second.observed == content_hash(of);
  }
  const auto at = devices_.find(of.key);
  return at != devices_.end() && at->second.about.what.created == of.created && at->second.observed == content_hash(of);
}

const registry::ranked* registry::with_key(const std::string& key) const {
  const auto at = by_key_.find(key);
  return at == by_key_.end() ? nullptr : &at->second;
}

const declaration* registry::first_with_key(const std::string& key) const {
  const auto* all = with_key(key);
  return all ? *all->begin() : nullptr;
}

judgement registry::judge(const kube::object_key& config_map) const {
  if (const auto at = items_.find(config_map); at != items_.end()) return judge(at->second);
  if (const auto at = devices_.find(config_map); at != devices_.end()) return judge(at->second);
  judgement out;
  out.config_map = config_map;
  return out;
}

judgement registry::judge(const item& of) const {
  judgement out{kind::declaration, of.about.what.config_map, of.about.what.key, of.about.findings, of.observed};
  std::ranges::move(between(of.about.what), std::back_inserter(out.findings));
  sort(out.findings);
  return out;
}

std::vector<judgement> registry::judge_all() const {
  std::vector<judgement> out;
  for (const auto& [key, of] : items_) out.push_back(judge(of));
  for (const auto& [key, of] : devices_) out.push_back(judge(of));
  std::ranges::sort(out, {}, &judgement::config_map);
  return out;
}

void registry::add_neighbours(const declaration& of, std::set<kube::object_key>& to) const {
  const auto add = [&](const ranked* these) {
    if (these) std::ranges::transform(*these, std::inserter(to, to.end()), &declaration::config_map);
  };
  add(with_key(of.key));
  for (const auto* list : {&of.related, &of.excluded}) {
    for (const auto& key : *list) add(with_key(key));
  }
  if (const auto mention = by_mention_.find(of.key); mention != by_mention_.end()) add(&mention->second);
  if (const auto group = by_group_.find(of.group); group != by_group_.end()) add(&group->second);
}

std::vector<kube::object_key> registry::neighbours(const config_map_view& of) const {
  std::set<kube::object_key> out;
  const auto of_kind = kind_of(of);
  if (of_kind == kind::declaration) add_neighbours(parse(of, settings_).what, out);
  if (of_kind == kind::device_config) {
    const auto what = parse_device(of, settings_).what;
    for (const auto& [key, other] : devices_) {
      if (other.about.what.label_key == what.label_key) out.insert(key);
    }
  }
  out.erase(of.key);
  return {out.begin(), out.end()};
}

std::vector<kube::object_key> registry::with_runtime_class() const {
  std::vector<kube::object_key> out;
  for (const auto& [key, of] : items_) {
    if (!of.about.what.runtime_class.empty()) out.push_back(key);
  }
  return out;
}

namespace {

std::optional<std::int64_t> fill_of(const declaration& of, bool fill_optional) {
  const bool wanted = of.limits == use::required || (of.limits == use::optional && fill_optional);
  return wanted && of.default_value.value_or(0) > 0 ? of.default_value : std::nullopt;
}

rule compiled(const declaration& of, const compile_options& how) {
  rule out;
  out.key = of.key;
  out.config_map = of.config_map;
  out.ours = of.ours;
  out.group = of.group;
  out.forbidden = of.limits == use::disabled;
  out.must = of.required();
  out.fill = fill_of(of, how.fill_optional);
  out.related = of.related;
  out.excluded = of.excluded;
  out.offered = of.ignore_node_check || !how.offered || how.offered->contains(of.key);
  return out;
}

}  // namespace

/// Rules of declarations that are in error now and were not when `how.last` was compiled. What the policy and the nodes
/// have a say in is as they say now.
void registry::keep_last_good(rule_set& into, const compile_options& how) const {
  std::set<kube::object_key> compiled;
  for (const auto& one : into.rules) compiled.insert(one.config_map);
  for (const auto& old : how.last->rules) {
    const auto at = items_.find(old.config_map);
    if (at == items_.end() || at->second.about.what.switched_off || into.find(old.key) ||
        !compiled.insert(old.config_map).second)
      continue;
    const auto place = std::ranges::lower_bound(into.rules, old.key, {}, &rule::key);
    auto& kept = *into.rules.insert(place, old);
    if (!kept.must && !how.fill_optional) kept.fill.reset();
    if (runtime_classes_ && !runtime_classes_->contains(kept.runtime_class)) kept.runtime_class.clear();
    if (!kept.offered) kept.offered = !how.offered || how.offered->contains(kept.key);
  }
}

rule_set registry::compile(const compile_options& how) const {
  rule_set out;
  for (const auto& [key, all] : by_key_) {
    const auto& of = **all.begin();
    if (!of.in_force() || has_error(between(of))) continue;
    out.rules.push_back(compiled(of, how));
    if (!runtime_classes_ || runtime_classes_->contains(of.runtime_class))
      out.rules.back().runtime_class = of.runtime_class;
  }
  if (how.last) keep_last_good(out, how);
  std::map<std::string, group_rule> groups;
  std::map<std::string, std::vector<std::string>> also;  // exclusions hold both ways
  for (auto& of : out.rules) {
    std::erase_if(of.related, [&](const std::string& key) { return !out.find(key); });
    for (const auto& key : of.excluded) {
      if (out.find(key)) also[key].push_back(of.key);
    }
    if (!of.group.empty()) groups[of.group].members.push_back(of.key);
  }
  for (auto& [key, excluders] : also) {
    auto& to = const_cast<rule*>(out.find(key))->excluded;
    std::ranges::move(excluders, std::back_inserter(to));
    std::ranges::sort(to);
    to.erase(std::ranges::unique(to).begin(), to.end());
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
  for (const auto& [key, of] : devices_) {
    if (of.about.what.sound) out.push_back(of.about.what);
  }
  return out;
}

std::vector<judgement> judge_all(std::span<const config_map_view> config_maps, const parse_settings& settings) {
  registry all(settings);
  for (const auto& from : config_maps) all.put(from);
  return all.judge_all();
}

}  // namespace reconcilers::crl
