#include "cli/lint/pod_values.hpp"

#include <algorithm>
#include <array>

#include "text/list.hpp"
#include "text/nearest.hpp"
#include "text/resource_name.hpp"
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
    restart_policies();
    restarts(spec);
    claims(spec);
    tolerations(spec);
    volumes(spec);
  }

 private:
  /// The entry, where it is a text that is filled in.
  static const node::entry* text_entry(const node* parent, std::string_view name) {
    const auto* entry = text::yaml::find_entry(parent, name);
    return entry && entry->value->scalar() && !entry->value->text.contains("{{") ? entry : nullptr;
  }

  /// Of containers and volumes.
  void name_of_part(const node* item, const std::string& path) {
    const auto* entry = text_entry(item, "name");
    if (!entry || text::yaml::type_of(*entry->value) == text::yaml::type::null ||
        text::is_dns_label(entry->value->text))
      return;
    auto meant = text::lower_case(entry->value->text);
    std::ranges::replace_if(meant, [](char c) { return c == '_' || c == '.' || c == ' '; }, '-');
    pod_.say(lint_code::part_name_malformed, entry->key->location,
             {.field = below(path, "name"),
              .value = entry->value->text,
              .hint = text::is_dns_label(meant) ? std::string_view(meant) : std::string_view()});
  }

  /// Two values that the API server does not take together.
  void together(const node::entry& entry, const std::string& path, std::string_view other,
                std::string_view meant = {}) {
    pod_.say(lint_code::refused_together, entry.key->location,
             {.field = path, .value = entry.value->text, .other = other, .hint = meant});
  }

  void names_of_containers() {
    std::set<std::string_view> names;
    for (const auto& container : pod_.containers) {
      name_of_part(container.item, container.path);
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

  /// Of a container the API server does not tell its words.
  void restart_policies() {
    static const std::vector<std::string_view> words{"Always", "OnFailure", "Never"};
    for (const auto& container : pod_.containers) {
      const auto* entry = text_entry(container.item, "restartPolicy");
      const auto value = entry ? std::string_view(entry->value->text) : std::string_view();
      if (value.empty() || std::ranges::find(words, value) != words.end()) continue;
      const auto place = below(container.path, "restartPolicy");
      pod_.say(lint_code::value_unknown, entry->key->location,
               {.field = place, .value = value, .other = text::joined(words), .hint = text::nearest(value, words)});
    }
  }

  /// Pods of a Job end, and those of a Deployment do not: the API server holds the policy of the template to that.
  void restarts(const node& spec) {
    const bool ends =
        pod_.manifest.group == "batch" && (pod_.manifest.kind == "Job" || pod_.manifest.kind == "CronJob");
    const bool runs_on =
        pod_.manifest.group == "apps" || (pod_.manifest.group.empty() && pod_.manifest.kind == "ReplicationController");
    const auto* entry = text::yaml::find_entry(&spec, "restartPolicy");
    if ((!ends && !runs_on) || (entry && (!entry->value->scalar() || entry->value->text.contains("{{")))) return;
    const bool is_written = entry && !entry->value->text.empty();
    const auto value = is_written ? std::string_view(entry->value->text) : "Always";
    const bool is_known = value == "Always" || value == "OnFailure" || value == "Never";  // fields say the others
    if (!is_known || ends == (value != "Always")) return;
    pod_.say(is_written ? lint_code::restart_policy : lint_code::restart_policy_missing,
             entry ? entry->key->location : spec.location,
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
        const bool is_missing = name.empty() && pod_.known_kind;  // fields say it
        if (!is_missing && std::ranges::find(names, name) == names.end())
          pod_.say(lint_code::claim_missing, item->location,
                   {.field = place, .value = name, .hint = text::nearest(name, names)});
      }
    }
  }

  /// validation.go, ValidateTolerations.
  void tolerations(const node& spec) {
    each_of(&spec, pod_.path, "tolerations", [&](const node* item, const std::string& path) {
      if (!item->mapping()) return;  // of another form, or nothing
      const auto op = text::yaml::text_at(item, "operator"), key = text::yaml::text_at(item, "key");
      const auto* value = text_entry(item, "value");
      const bool is_equal = op.empty() || op == "Equal";
      if (value && op == "Exists" && !value->value->text.empty()) together(*value, path + ".value", "operator: Exists");
      if (value && is_equal && !text::is_label_value(value->value->text))
        pod_.say(lint_code::label_value_malformed, value->key->location,
                 {.field = path + ".value", .value = value->value->text});
      if (key.empty() && is_equal)
        pod_.say(lint_code::refused_together, item->location,
                 {.field = path + ".operator", .value = "Equal", .other = "key: \"\"", .hint = "Exists"});
      if (const auto* named = text_entry(item, "key"); named && !key.empty() && !text::is_label_key(key))
        pod_.say(lint_code::label_key_malformed, named->key->location, {.field = path + ".key", .value = key});
      const auto* seconds = text_entry(item, "tolerationSeconds");
      const auto effect = text::yaml::text_at(item, "effect");
      if (seconds && text::yaml::type_of(*seconds->value) == text::yaml::type::integer && effect != "NoExecute")
        pod_.say(lint_code::refused_together, seconds->key->location,
                 {.field = path + ".effect",
                  .value = effect,
                  .other = "tolerationSeconds: " + seconds->value->text,
                  .hint = "NoExecute"});
    });
  }

  /// Their names, what containers mount of them, and on what they lie.
  void volumes(const node& spec) {
    std::vector<std::string_view> names;
    bool is_whole = true;
    const auto* list = text::yaml::find(&spec, "volumes");
    if (list && list->sequence())
      for (const auto* item : list->items) {
        names.push_back(text::yaml::text_at(item, "name"));
        is_whole = is_whole && item->mapping() && !names.back().contains("{{");
      }
    each_of(&spec, pod_.path, "volumes", [&](const node* item, const std::string& path) {
      name_of_part(item, path);
      medium(text::yaml::find(item, "emptyDir"), path + ".emptyDir");
    });
    // Controllers of other kinds add volumes of their own.
    if (!pod_.known_kind || !is_whole || (list && !list->sequence() && list->is != node::shape::null)) return;
    const auto* claims = text::yaml::find(text::yaml::find(pod_.manifest.root, "spec"), "volumeClaimTemplates");
    if (claims && claims->sequence() && pod_.manifest.kind == "StatefulSet")
      for (const auto* item : claims->items)
        names.push_back(text::yaml::text_at(text::yaml::find(item, "metadata"), "name"));
    for (const auto& container : pod_.containers)
      for (const auto* part : {"volumeMounts", "volumeDevices"})
        each_of(container.item, container.path, part, [&](const node* item, const std::string& path) {
          const auto* entry = text_entry(item, "name");
          const bool is_missing = !entry || entry->value->text.empty();
          if (is_missing || std::ranges::find(names, entry->value->text) != names.end()) return;
          pod_.say(
              lint_code::volume_missing, entry->key->location,
              {.field = path + ".name", .value = entry->value->text, .hint = text::nearest(entry->value->text, names)});
        });
  }

  /// The API server takes any; the kubelet knows these (pkg/volume/emptydir/empty_dir.go, SetUpAt).
  void medium(const node* source, const std::string& path) {
    const auto* entry = text_entry(source, "medium");
    if (!entry || text::yaml::type_of(*entry->value) == text::yaml::type::null) return;
    const std::string_view value = entry->value->text;
    if (value.empty() || value == "Memory" || value == "HugePages" || value.starts_with("HugePages-")) return;
    constexpr std::array<std::string_view, 2> known{"Memory", "HugePages"};
    pod_.say(lint_code::medium_unknown, entry->key->location,
             {.field = path + ".medium", .value = value, .hint = text::nearest(value, known)});
  }

  judged_pod& pod_;
};

}  // namespace

void judge_values(judged_pod& pod) { value_judge(pod).check(); }

}  // namespace cli
