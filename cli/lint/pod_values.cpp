#include "cli/lint/pod_values.hpp"

#include <algorithm>

#include "text/list.hpp"
#include "text/nearest.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using text::yaml::node;

class value_judge {
 public:
  explicit value_judge(judged_pod& pod) : pod_(pod) {}

  void check() {
    const auto& spec = *pod_.form.spec;
    names_of_containers();
    operators(spec);
    choices(spec);
    restarts(spec);
    claims(spec);
  }

 private:
  void names_of_containers() {
    std::set<std::string_view> names;
    for (const auto& container : pod_.containers) {
      const auto* entry = text::yaml::find_entry(container.item, "name");
      if (entry && entry->value->scalar() && !names.insert(entry->value->text).second)
        pod_.say(lint_code::container_twice, entry->key->location,
                 {.field = below(container.path, "name"), .value = entry->value->text});
    }
  }

  /// `check(item, "PATH[2]")` for each item of the list that `parent` has under this name.
  template <class Check>
  static void each_of(const node* parent, const std::string& path, std::string_view name, Check check) {
    const auto* list = text::yaml::find(parent, name);
    if (!list || !list->sequence()) return;
    std::size_t index = 0;
    for (const auto* item : list->items) check(item, below(path, name) + "[" + std::to_string(index++) + "]");
  }

  /// Operators by which the pod chooses nodes and tolerates their taints.
  void operators(const node& spec) {
    const auto check = [this](const node* item, const std::string& path, std::vector<std::string_view> legal) {
      const auto* entry = text::yaml::find_entry(item, "operator");
      if (entry && (!entry->value->scalar() || entry->value->text.contains("{{"))) return;
      const auto value = entry ? std::string_view(entry->value->text) : std::string_view();
      if (std::ranges::find(legal, value) != legal.end()) return;
      std::erase(legal, "");
      pod_.say(lint_code::operator_unknown, entry ? entry->key->location : item->location,
               {.field = path + ".operator",
                .value = value,
                .other = text::joined(legal),
                .hint = text::nearest(value, legal)});
    };
    const auto term = [&](const node* item, const std::string& path) {
      for (const auto* part : {"matchExpressions", "matchFields"})
        each_of(item, path, part, [&](const node* requirement, const std::string& place) {
          check(requirement, place, {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"});
        });
    };
    const auto* affinity = text::yaml::find(text::yaml::find(&spec, "affinity"), "nodeAffinity");
    const auto path = pod_.path + ".affinity.nodeAffinity";
    constexpr auto required = "requiredDuringSchedulingIgnoredDuringExecution",
                   preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    each_of(text::yaml::find(affinity, required), below(path, required), "nodeSelectorTerms", term);
    each_of(affinity, path, preferred, [&](const node* item, const std::string& place) {
      term(text::yaml::find(item, "preference"), place + ".preference");
    });
    each_of(&spec, pod_.path, "tolerations", [&](const node* item, const std::string& place) {
      check(item, place, {"", "Exists", "Equal", "Lt", "Gt"});
    });
  }

  /// Fields of which the API server takes a few words only, and by which a pod lives, starts or is placed.
  void choices(const node& spec) {
    const auto check = [this](const node* item, const std::string& path, std::string_view name,
                              std::initializer_list<std::string_view> legal) {
      const auto* entry = text::yaml::find_entry(item, name);
      if (!entry || !entry->value->scalar() || entry->value->text.contains("{{")) return;
      const std::string_view value = entry->value->text;
      if (value.empty() || std::ranges::find(legal, value) != legal.end()) return;
      const std::vector<std::string_view> words(legal);
      const auto field_path = below(path, name);
      pod_.say(
          lint_code::value_unknown, entry->key->location,
          {.field = field_path, .value = value, .other = text::joined(words), .hint = text::nearest(value, words)});
    };
    check(&spec, pod_.path, "restartPolicy", {"Always", "OnFailure", "Never"});
    check(&spec, pod_.path, "preemptionPolicy", {"PreemptLowerPriority", "Never"});
    check(&spec, pod_.path, "dnsPolicy", {"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"});
    for (const auto& container : pod_.containers) {
      check(container.item, container.path, "restartPolicy", {"Always", "OnFailure", "Never"});
      check(container.item, container.path, "imagePullPolicy", {"Always", "IfNotPresent", "Never"});
    }
    each_of(&spec, pod_.path, "tolerations", [&](const node* item, const std::string& place) {
      check(item, place, "effect", {"NoSchedule", "PreferNoSchedule", "NoExecute"});
    });
  }

  /// Pods of a Job end, and those of a Deployment do not: the API server holds the policy of the template to that.
  void restarts(const node& spec) {
    const bool ends =
        pod_.manifest.group == "batch" && (pod_.manifest.kind == "Job" || pod_.manifest.kind == "CronJob");
    const bool runs_on =
        pod_.manifest.group == "apps" || (pod_.manifest.group.empty() && pod_.manifest.kind == "ReplicationController");
    const auto* entry = text::yaml::find_entry(&spec, "restartPolicy");
    if ((!ends && !runs_on) || (entry && (!entry->value->scalar() || entry->value->text.contains("{{")))) return;
    const auto value = entry && !entry->value->text.empty() ? std::string_view(entry->value->text) : "Always";
    const bool is_known = value == "Always" || value == "OnFailure" || value == "Never";  // choices says the others
    if (!is_known || ends == (value != "Always")) return;
    pod_.say(lint_code::restart_policy, entry ? entry->key->location : spec.location,
             {.field = pod_.path + ".restartPolicy",
              .value = value,
              .key = pod_.manifest.kind,
              .other = ends ? "OnFailure, Never" : "Always"});
  }

  /// Devices of DRA: a container names a claim of the pod.
  void claims(const node& spec) {
    const auto* entry = text::yaml::find_entry(&spec, "resourceClaims");
    std::vector<std::string_view> names;
    if (entry && entry->value->sequence())
      for (const auto* item : entry->value->items) names.push_back(text::yaml::text_at(item, "name"));
    if (!names.empty())
      pod_.say(lint_code::claims_not_judged, entry->key->location, {.field = pod_.path + ".resourceClaims"});
    for (const auto& container : pod_.containers) {
      const auto* list = text::yaml::find(text::yaml::find(container.item, "resources"), "claims");
      if (!list || !list->sequence()) continue;
      std::size_t index = 0;
      for (const auto* item : list->items) {
        const auto name = text::yaml::text_at(item, "name");
        const auto place = below(container.path, "resources.claims[") + std::to_string(index++) + "].name";
        if (std::ranges::find(names, name) == names.end())
          pod_.say(lint_code::claim_missing, item->location,
                   {.field = place, .value = name, .hint = text::nearest(name, names)});
      }
    }
  }

  judged_pod& pod_;
};

}  // namespace

void judge_values(judged_pod& pod) { value_judge(pod).check(); }

}  // namespace cli
