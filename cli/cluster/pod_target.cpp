#include "cli/cluster/pod_target.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "text/messages.hpp"
#include "text/resource_name.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

struct pod_maker {
  std::string_view kind;
  std::vector<std::string_view> names;  ///< as kubectl takes them
  std::string_view middle;              ///< the kind that it makes, which makes the pods; empty: it makes them itself
};
const std::vector<pod_maker>& pod_makers() {
  static const std::vector<pod_maker> all{{"Deployment", {"deploy", "deployment", "deployments"}, "ReplicaSet"},
                                          {"ReplicaSet", {"rs", "replicaset", "replicasets"}, ""},
                                          {"StatefulSet", {"sts", "statefulset", "statefulsets"}, ""},
                                          {"DaemonSet", {"ds", "daemonset", "daemonsets"}, ""},
                                          {"Job", {"job", "jobs"}, ""},
                                          {"CronJob", {"cj", "cronjob", "cronjobs"}, "Job"}};
  return all;
}

/// What a controller makes is named after it, with one part more.
bool is_made_by(const kube::owner_ref& owner, const pod_target& target, std::string_view middle) {
  if (middle.empty()) return owner.kind == target.kind && owner.name == target.key.name;
  const auto dash = owner.name.rfind('-');
  return owner.kind == middle && dash != std::string::npos && owner.name.substr(0, dash) == target.key.name;
}

bool waits(const kube::pod& pod) { return pod.node_name.empty() && !pod.finished(); }

}  // namespace

std::expected<pod_target, text::phrase> pod_named(const std::string& text, const std::string& ns,
                                                  const std::string& otherwise) {
  const auto wrong = [&](const char* key, std::vector<text::phrase_argument> arguments = {}) {
    arguments.push_back({"text", text::shown(text)});
    return std::unexpected(text::phrase{std::string("explain.pod_name.") + key, std::move(arguments)});
  };
  const auto slash = text.find('/');
  const auto first = slash == std::string::npos ? std::string() : text.substr(0, slash);
  const auto name = slash == std::string::npos ? text : text.substr(slash + 1);
  if (!text::is_object_name(name) || (slash != std::string::npos && first.empty())) return wrong("none");
  const kube::object_key key{ns.empty() ? otherwise : ns, name};
  // As kubectl has it: pod/NAME. A namespace of that name is meant with -n.
  if (first.empty() || first == "pod" || first == "pods" || first == "po") return pod_target{key, {}};
  for (const auto& maker : pod_makers())
    if (std::ranges::find(maker.names, first) != maker.names.end()) return pod_target{key, std::string(maker.kind)};
  if (first == "node" || first == "nodes" || first == "no") return wrong("a_node", {{"node", name}});
  if (!ns.empty() && ns != first) return wrong("two_namespaces", {{"namespace", text::shown(first)}, {"other", ns}});
  return pod_target{{first, name}, {}};
}

std::expected<std::string, text::phrase> plain_pod_names(std::vector<std::string>& names, const std::string& ns) {
  std::optional<std::string> meant;
  for (auto& name : names) {
    auto target = pod_named(name, ns, "");
    if (!target) return std::unexpected(std::move(target.error()));
    if (!target->kind.empty())
      return std::unexpected(text::phrase{"explain.pod_name.pods_of", {{"text", text::shown(name)}}});
    if (meant && *meant != target->key.ns)
      return std::unexpected(text::phrase{"explain.pod_name.one_namespace", {{"text", text::shown(name)}}});
    meant = target->key.ns;
    name = target->key.name;
  }
  return meant.value_or(ns);
}

std::expected<pod_choice, text::phrase> chosen_pod(const picture& picture, const pod_target& target,
                                                   text::language locale) {
  if (target.kind.empty()) return pod_choice{target.key, {}};
  const auto maker = std::ranges::find(pod_makers(), target.kind, &pod_maker::kind);
  std::vector<const kube::pod*> pods;
  for (const auto& pod : picture.pods.all())
    if (pod.key.ns == target.key.ns &&
        std::ranges::any_of(pod.owners, [&](const auto& owner) { return is_made_by(owner, target, maker->middle); }))
      pods.push_back(&pod);
  const auto &kind = target.kind, &name = target.key.name, &ns = target.key.ns;
  if (pods.empty())
    return std::unexpected(text::phrase{"explain.no_pods_of", {{"kind", kind}, {"name", name}, {"namespace", ns}}});
  const auto rank = [](const kube::pod* pod) {
    return std::pair(waits(*pod) ? 0 : pod->finished() ? 2 : 1, pod->key.name);
  };
  const auto* best = *std::ranges::min_element(pods, {}, rank);
  const auto waiting = std::ranges::count_if(pods, [](const auto* pod) { return waits(*pod); });
  return pod_choice{best->key, text::message("explain.one_of", locale,
                                             {{"kind", kind},
                                              {"name", name},
                                              {"number", std::to_string(pods.size())},
                                              {"waiting", std::to_string(waiting)},
                                              {"pod", best->key.name}})};
}

}  // namespace cli
