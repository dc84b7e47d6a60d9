#include "cli/explain/made_pods.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/explain/pod_events.hpp"
#include "kube/client.hpp"
#include "kube/json_text.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using kube::text_in;

constexpr std::size_t longest_refusal = 1000;

struct maker {
  kube::resource type;
  std::string_view middle;  ///< the kind that it makes, which makes the pods; empty: it makes them itself
};
constexpr std::array<maker, 6> makers{{{{"apps", "v1", "deployments", "Deployment", true}, "ReplicaSet"},
                                       {{"apps", "v1", "replicasets", "ReplicaSet", true}, ""},
                                       {{"apps", "v1", "statefulsets", "StatefulSet", true}, ""},
                                       {{"apps", "v1", "daemonsets", "DaemonSet", true}, ""},
                                       {{"batch", "v1", "jobs", "Job", true}, ""},
                                       {{"batch", "v1", "cronjobs", "CronJob", true}, "Job"}}};

/// Its status says so: of a Deployment and a ReplicaSet.
std::string failure_in(const nlohmann::json& object) {
  const auto status = object.find("status");
  if (status == object.end() || !status->is_object()) return {};
  const auto conditions = status->find("conditions");
  if (conditions == status->end() || !conditions->is_array()) return {};
  for (const auto& condition : *conditions)
    if (condition.is_object() && text_in(condition, "type") == "ReplicaFailure" &&
        text_in(condition, "status") == "True")
      return text_in(condition, "message");
  return {};
}

/// Whether the event is about the object, or about what it makes, which is named after it with one part more.
bool is_about(const nlohmann::json& event, const pod_target& target, std::string_view middle) {
  const auto about = event.find("involvedObject");
  if (about == event.end() || !about->is_object()) return false;
  const auto kind = text_in(*about, "kind"), name = text_in(*about, "name");
  if (kind == target.kind) return name == target.key.name;
  const auto dash = name.rfind('-');
  return !middle.empty() && kind == middle && dash != name.npos && name.substr(0, dash) == target.key.name;
}

}  // namespace

text::phrase meant_elsewhere(const picture& picture, const pod_target& target) {
  std::set<std::string> namespaces, others;
  for (const auto& pod : picture.pods.all()) namespaces.insert(pod.key.ns);
  namespaces.erase(target.key.ns);
  for (const auto& ns : namespaces) {
    auto there = target;
    there.key.ns = ns;
    const auto chosen = chosen_pod(picture, there, text::language::en);
    if (chosen && picture.pods.find(chosen->key)) others.insert(ns);
  }
  if (others.empty()) return {};
  const auto name = (target.kind.empty() ? "" : text::lower_case(target.kind) + "/") + target.key.name;
  return {"explain.in_other_namespace",
          {{"name", name},
           {"namespace", target.key.ns},
           text::some_of("list", {others.begin(), others.end()}),
           {"command", "quartermaster explain pod " + name + " -n " + *others.begin()}}};
}

kube::task<void> read_refused_pods(kube::transport& transport, pod_target target, text::phrase& out) {
  const auto match = std::ranges::find_if(makers, [&](const maker& maker) { return maker.type.kind == target.kind; });
  if (match == makers.end()) co_return kube::result<void>();
  kube::client api(transport);
  const auto object = co_await api.get(match->type, target.key);
  auto message = object ? failure_in(*object) : std::string();
  if (message.empty()) {
    kube::list_options options;
    options.ns = target.key.ns;
    options.field_selector = "reason=FailedCreate";
    const auto listed = co_await api.list(pod_events::type, options);
    std::string newest;
    for (const auto& event : listed.value_or(std::vector<nlohmann::json>()))
      if (auto time = pod_events::time_of(event); is_about(event, target, match->middle) && time >= newest) {
        newest = std::move(time);
        message = text_in(event, "message");
      }
  }
  if (!message.empty()) out = text::phrase(text::shown(message, longest_refusal));
  co_return kube::result<void>();
}

text::phrase no_pods(const pod_target& target, const text::phrase& refused) {
  text::phrase out{"explain.no_pods_of",
                   {{"kind", target.kind}, {"name", target.key.name}, {"namespace", target.key.ns}}};
  if (refused.empty()) return out;
  return {"explain.pods_refused", {{"sentence", std::move(out)}, {"text", refused}}};
}

}  // namespace cli
