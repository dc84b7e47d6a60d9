#include "reconcilers/declarations/compiled.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "kube/json_text.hpp"
#include "reconcilers/declarations/vocabulary.hpp"
#include "text/messages.hpp"

namespace reconcilers::declarations {
namespace {

using nlohmann::json;

/// The API server says them to people, and has no catalogue.
std::string english(std::string_view key) { return text::message(key, text::language::en); }

json amounts_json(const quota::amounts& amounts) {
  json out = {{"from", amounts.min}, {"to", amounts.max}, {"step", amounts.step}, {"words", english(amounts.words)}};
  if (amounts.whole > 0) out["whole"] = amounts.whole;
  return out;
}

json pod_amount_json(const quota::pod_amount& pod_amount) {
  json out = {{"name", pod_amount.name}, {"label", pod_amount.label}, {"words", english(pod_amount.words)}};
  if (pod_amount.min > 0) out["from"] = pod_amount.min;
  if (pod_amount.max > 0) out["to"] = pod_amount.max;
  if (pod_amount.divides) out["divides"] = true;
  return out;
}

/// Of every key that only takes some amounts, declared or not: what the default of a declaration may be.
json all_amounts() {
  auto out = json::object();
  for (const auto& resource_key : quota::resource_keys) {
    if (resource_key.legal.limited()) out[std::string(resource_key.key)] = amounts_json(resource_key.legal);
  }
  return out;
}

json rule_json(const rule& rule) {
  json out = {{"source", rule.config_map.to_string()}};
  if (!rule.group.empty()) out["group"] = rule.group;
  if (rule.forbidden) out["forbidden"] = true;
  if (rule.must) out["must"] = true;
  if (rule.fill) out["fill"] = std::to_string(*rule.fill);
  if (!rule.related.empty()) out["related"] = rule.related;
  if (!rule.excluded.empty()) out["excluded"] = rule.excluded;
  if (!rule.runtime_class.empty()) out["runtimeClassName"] = rule.runtime_class;
  if (!rule.offered) out["notOffered"] = true;
  if (rule.managed) out["published"] = true;
  if (const auto* words = vocabulary_of(rule.key)) {
    if (words->legal.limited()) out["amounts"] = amounts_json(words->legal);
    if (!words->partner.empty()) out["partner"] = words->partner;
    if (!words->on_pod.name.empty()) out["podAmount"] = pod_amount_json(words->on_pod);
  }
  if (rule.one_only) out["amounts"] = amounts_json(one_share);
  if (const auto waiver = waiver_of(rule.key); !waiver.key.empty()) {
    out["waivedBy"] = waiver.key;
    out["waivedFrom"] = waiver.least;
  }
  return out;
}

bool flag(const json& object, const char* name) {
  const auto match = object.find(name);
  return match != object.end() && match->is_boolean() && match->get<bool>();
}
std::vector<std::string> text_list(const json& object, const char* name) {
  std::vector<std::string> out;
  const auto match = object.find(name);
  if (match == object.end() || !match->is_array()) return out;
  for (const auto& entry : *match) {
    if (entry.is_string()) out.push_back(entry.get<std::string>());
  }
  std::ranges::sort(out);
  return out;
}

kube::object_key source_of(const json& rule) {
  const auto source = kube::text_in(rule, "source");
  const auto slash = source.find('/');
  return slash == std::string::npos ? kube::object_key()
                                    : kube::object_key{source.substr(0, slash), source.substr(slash + 1)};
}

rule rule_of(const std::string& key, const json& object) {
  rule out;
  out.key = key;
  out.config_map = source_of(object);
  out.group = kube::text_in(object, "group");
  out.forbidden = flag(object, "forbidden");
  out.must = flag(object, "must");
  const auto fill = kube::text_in(object, "fill");
  std::int64_t amount = 0;
  const auto [end, wrong] = std::from_chars(fill.data(), fill.data() + fill.size(), amount);
  if (!fill.empty() && wrong == std::errc{} && end == fill.data() + fill.size() && amount > 0) out.fill = amount;
  out.related = text_list(object, "related");
  out.excluded = text_list(object, "excluded");
  out.runtime_class = kube::text_in(object, "runtimeClassName");
  out.offered = !flag(object, "notOffered");
  out.managed = flag(object, "published");
  const auto amounts = object.find("amounts");
  out.one_only = amounts != object.end() && amounts->is_object() && kube::number_in(*amounts, "to", 0) == 1 &&
                 !amounts->contains("whole");
  return out;
}

}  // namespace

json spec_of(const rule_set& rules) {
  json out = {
      {"keys", json::array()}, {"rules", json::object()}, {"groups", json::object()}, {"amounts", all_amounts()}};
  for (const auto& rule : rules.rules) {
    out["keys"].push_back(rule.key);
    out["rules"][rule.key] = rule_json(rule);
  }
  for (const auto& group : rules.groups) out["groups"][group.name] = group.members;
  const auto exclusive = exclusive_keys(rules);
  if (exclusive.size() <= max_exclusive) out["exclusive"] = exclusive;
  return out;
}

rule_set rules_of(const json& spec) {
  rule_set out;
  if (!spec.is_object()) return out;
  if (const auto position = spec.find("rules"); position != spec.end() && position->is_object()) {
    for (const auto& [key, value] : position->items()) {
      if (value.is_object()) out.rules.push_back(rule_of(key, value));
    }
    std::ranges::sort(out.rules, {}, &rule::key);
  }
  if (const auto position = spec.find("groups"); position != spec.end() && position->is_object()) {
    for (const auto& [name, members] : position->items())
      out.groups.push_back({name, text_list(*position, name.c_str())});
    std::ranges::sort(out.groups, {}, &group_rule::name);
  }
  return out;
}

std::vector<kube::object_key> sources_of(std::string_view spec) {
  std::vector<kube::object_key> out;
  const auto all = json::parse(spec, nullptr, false);
  if (!all.is_object() || !all.contains("rules") || !all["rules"].is_object()) return out;
  for (const auto& [key, value] : all["rules"].items()) {
    if (value.is_object()) out.push_back(source_of(value));
  }
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

cut fitting(rule_set rules) {
  cut out;
  std::size_t bytes = 0;
  const auto grows = [&](const rule& rule) {
    bytes += 3 * rule.key.size() + rule.group.size() + rule_json(rule).dump().size() + 32;
    return bytes <= max_spec_bytes;
  };
  const auto end = std::ranges::find_if_not(rules.rules, grows);
  out.left_out = static_cast<std::size_t>(rules.rules.end() - end);
  rules.rules.erase(end, rules.rules.end());
  if (out.left_out > 0) {
    for (auto& group : rules.groups)
      std::erase_if(group.members, [&](const std::string& key) { return !rules.find(key); });
    std::erase_if(rules.groups, [](const group_rule& group_rule) { return group_rule.members.empty(); });
  }
  out.rules = std::move(rules);
  return out;
}

}  // namespace reconcilers::declarations
