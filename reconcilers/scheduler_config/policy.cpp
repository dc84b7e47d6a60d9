#include "reconcilers/scheduler_config/policy.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reconcilers/yaml/writer.hpp"

namespace reconcilers::scheduler_config {
namespace {

using json = nlohmann::ordered_json;
using yaml::node;

/// A time.Duration is a number of nanoseconds in JSON.
std::string duration_text(std::int64_t nanoseconds) {
  constexpr std::int64_t milli = 1'000'000, second = 1'000 * milli;
  if (nanoseconds % second == 0) return std::to_string(nanoseconds / second) + "s";
  if (nanoseconds % milli == 0) return std::to_string(nanoseconds / milli) + "ms";
  return std::to_string(nanoseconds) + "ns";
}

json value_of(const node& of) {
  const auto read = yaml::to_json(of);
  return read ? json::parse(read->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)) : json();
}

/// Fields of today's names; others are told.
json extender_of(const node& of, std::vector<std::string>& not_carried) {
  for (const auto& one : of.entries) {
    const bool known = one.key->text == "enableHttps" ||
                       std::ranges::find(extender().fields, one.key->text, &field::name) != extender().fields.end();
    if (!known) not_carried.push_back("extenders." + one.key->text);
  }
  json out = json::object();
  for (const auto& one : extender().fields) {
    const auto name = std::string(one.name);
    const auto* at = yaml::find(&of, name == "enableHTTPS" ? "enableHttps" : name);
    if (!at || at->is == node::shape::null) continue;
    const auto number = name == "httpTimeout" ? integer_of(at) : std::nullopt;
    out[name] = number ? json(duration_text(*number)) : value_of(*at);
  }
  return out;
}

}  // namespace

bool is_policy(const document& of) {
  return yaml::text_at(of.root, "kind") == "Policy" && !yaml::text_at(of.root, "apiVersion").starts_with(group);
}

std::expected<converted_policy, finding> convert_policy(const document& of, std::string_view kubeconfig, int minor) {
  converted_policy out;
  json config = {{"apiVersion", std::string(group) + std::string(best_for(minor).name)},
                 {"kind", "KubeSchedulerConfiguration"}};
  if (!kubeconfig.empty()) config["clientConnection"] = {{"kubeconfig", kubeconfig}};
  json profile = {{"schedulerName", "default-scheduler"}};
  if (const auto weight = integer_of(yaml::find(of.root, "hardPodAffinitySymmetricWeight"))) {
    json args = {{"name", "InterPodAffinity"}, {"args", {{"hardPodAffinityWeight", *weight}}}};
    profile["pluginConfig"] = json::array({std::move(args)});
  }
  config["profiles"] = json::array({std::move(profile)});
  if (const auto* all = yaml::find(of.root, "extenders"); all && all->sequence() && !all->items.empty()) {
    config["extenders"] = json::array();
    for (const auto* one : all->items) config["extenders"].push_back(extender_of(*one, out.not_carried));
  }
  for (const auto* list : {"predicates", "priorities"}) {
    const auto* all = yaml::find(of.root, list);
    if (!all || !all->sequence()) continue;
    for (const auto* one : all->items) out.not_carried.emplace_back(yaml::text_at(one, "name"));
  }
  out.text = yaml::write(config);
  server on;
  on.minor = minor;
  on.in_cluster = kubeconfig.empty();
  for (const auto& one : judge(out.text, on)) {
    if (effect_of(one.what) == effect::ends) {
      auto wrong = one;
      const auto* at = yaml::find_entry(of.root, "extenders");
      wrong.at = at ? at->key->at : of.root->at;
      return std::unexpected(std::move(wrong));
    }
  }
  return out;
}

}  // namespace reconcilers::scheduler_config
