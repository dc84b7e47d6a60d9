#include "reconcilers/declarations/compiled.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "reconcilers/declarations/vocabulary.hpp"

namespace reconcilers::crl {
namespace {

using nlohmann::json;

json amounts_json(const quota::amounts& of) {
  json out = {{"from", of.from}, {"to", of.to}, {"step", of.step}, {"words", of.words}};
  if (of.whole > 0) out["whole"] = of.whole;
  return out;
}

json pod_amount_json(const quota::pod_amount& of) {
  json out = {{"name", of.name}, {"label", of.label}, {"words", of.words}};
  if (of.from > 0) out["from"] = of.from;
  if (of.to > 0) out["to"] = of.to;
  if (of.divides) out["divides"] = true;
  return out;
}

/// Of every key that only takes some amounts, declared or not: what the default of a declaration may be.
json all_amounts() {
  auto out = json::object();
  for (const auto& one : quota::resource_keys) {
    if (one.legal.limited()) out[std::string(one.key)] = amounts_json(one.legal);
  }
  return out;
}

json rule_json(const rule& of) {
  json out = {{"source", of.config_map.to_string()}};
  if (!of.group.empty()) out["group"] = of.group;
  if (of.forbidden) out["forbidden"] = true;
  if (of.must) out["must"] = true;
  if (of.fill) out["fill"] = std::to_string(*of.fill);
  if (!of.related.empty()) out["related"] = of.related;
  if (!of.excluded.empty()) out["excluded"] = of.excluded;
  if (!of.runtime_class.empty()) out["runtimeClassName"] = of.runtime_class;
  if (!of.offered) out["notOffered"] = true;
  if (of.ours) out["published"] = true;
  if (const auto* words = vocabulary_of(of.key)) {
    if (words->legal.limited()) out["amounts"] = amounts_json(words->legal);
    if (!words->partner.empty()) out["partner"] = words->partner;
    if (!words->on_pod.name.empty()) out["podAmount"] = pod_amount_json(words->on_pod);
  }
  if (const auto* words = partner_of(of.key)) {
    out["waivedBy"] = words->key;
    out["waivedFrom"] = words->legal.whole;
  }
  return out;
}

std::string text(const json& in, const char* name) {
  const auto at = in.find(name);
  return at != in.end() && at->is_string() ? at->get<std::string>() : std::string();
}
bool flag(const json& in, const char* name) {
  const auto at = in.find(name);
  return at != in.end() && at->is_boolean() && at->get<bool>();
}
std::vector<std::string> texts(const json& in, const char* name) {
  std::vector<std::string> out;
  const auto at = in.find(name);
  if (at == in.end() || !at->is_array()) return out;
  for (const auto& one : *at) {
    if (one.is_string()) out.push_back(one.get<std::string>());
  }
  std::ranges::sort(out);
  return out;
}

kube::object_key source_of(const json& rule) {
  const auto source = text(rule, "source");
  const auto slash = source.find('/');
  return slash == std::string::npos ? kube::object_key()
                                    : kube::object_key{source.substr(0, slash), source.substr(slash + 1)};
}

rule rule_of(const std::string& key, const json& in) {
  rule out;
  out.key = key;
  out.config_map = source_of(in);
  out.group = text(in, "group");
  out.forbidden = flag(in, "forbidden");
  out.must = flag(in, "must");
  const auto fill = text(in, "fill");
  std::int64_t amount = 0;
  const auto [end, wrong] = std::from_chars(fill.data(), fill.data() + fill.size(), amount);
  if (!fill.empty() && wrong == std::errc{} && end == fill.data() + fill.size() && amount > 0) out.fill = amount;
  out.related = texts(in, "related");
  out.excluded = texts(in, "excluded");
  out.runtime_class = text(in, "runtimeClassName");
  out.offered = !flag(in, "notOffered");
  out.ours = flag(in, "published");
  return out;
}

}  // namespace

json spec_of(const rule_set& rules) {
  json out = {
      {"keys", json::array()}, {"rules", json::object()}, {"groups", json::object()}, {"amounts", all_amounts()}};
  for (const auto& one : rules.rules) {
    out["keys"].push_back(one.key);
    out["rules"][one.key] = rule_json(one);
  }
  for (const auto& one : rules.groups) out["groups"][one.name] = one.members;
  const auto exclusive = exclusive_keys(rules);
  if (exclusive.size() <= max_exclusive) out["exclusive"] = exclusive;
  return out;
}

rule_set rules_of(const json& spec) {
  rule_set out;
  if (!spec.is_object()) return out;
  if (const auto at = spec.find("rules"); at != spec.end() && at->is_object()) {
    for (const auto& [key, of] : at->items()) {
      if (of.is_object()) out.rules.push_back(rule_of(key, of));
    }
    std::ranges::sort(out.rules, {}, &rule::key);
  }
  if (const auto at = spec.find("groups"); at != spec.end() && at->is_object()) {
    for (const auto& [name, members] : at->items()) out.groups.push_back({name, texts(*at, name.c_str())});
    std::ranges::sort(out.groups, {}, &group_rule::name);
  }
  return out;
}

std::vector<kube::object_key> sources_of(std::string_view spec) {
  std::vector<kube::object_key> out;
  const auto all = json::parse(spec, nullptr, false);
  if (!all.is_object() || !all.contains("rules") || !all["rules"].is_object()) return out;
  for (const auto& [key, of] : all["rules"].items()) {
    if (of.is_object()) out.push_back(source_of(of));
  }
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

cut fitting(rule_set rules) {
  cut out;
  std::size_t bytes = 0;
  const auto grows = [&](const rule& of) {
    bytes += 3 * of.key.size() + of.group.size() + rule_json(of).dump().size() + 32;
    return bytes <= max_spec_bytes;
  };
  const auto end = std::ranges::find_if_not(rules.rules, grows);
  out.left_out = static_cast<std::size_t>(rules.rules.end() - end);
  rules.rules.erase(end, rules.rules.end());
  if (out.left_out > 0) {
    for (auto& group : rules.groups)
      std::erase_if(group.members, [&](const std::string& key) { return !rules.find(key); });
    std::erase_if(rules.groups, [](const group_rule& of) { return of.members.empty(); });
  }
  out.rules = std::move(rules);
  return out;
}

}  // namespace reconcilers::crl
