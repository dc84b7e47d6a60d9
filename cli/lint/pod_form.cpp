#include "cli/lint/pod_form.hpp"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "text/nearest.hpp"

namespace cli {
namespace {

using text::yaml::node;

struct workload_kind {
  std::string_view kind, group, path;
};
constexpr std::array<workload_kind, 9> workload_kinds{{
    {"Pod", "", "spec"},
    {"Deployment", "apps", "spec.template.spec"},
    {"StatefulSet", "apps", "spec.template.spec"},
    {"DaemonSet", "apps", "spec.template.spec"},
    {"ReplicaSet", "apps", "spec.template.spec"},
    {"ReplicationController", "", "spec.template.spec"},
    {"Job", "batch", "spec.template.spec"},
    {"CronJob", "batch", "spec.jobTemplate.spec.template.spec"},
    {"PodTemplate", "", "template.spec"},
}};

/// The kind as Kubernetes has it; null for any other. An object that does not say its apiVersion is taken for it.
const workload_kind* workload_kind_of(const manifest& manifest) {
  const auto match = std::ranges::find(workload_kinds, manifest.kind, &workload_kind::kind);
  const bool known = match != workload_kinds.end() &&
                     (manifest.group.empty() || manifest.group == match->group || manifest.group == "extensions");
  return known ? match : nullptr;
}

// Of kube-apiserver's own kinds those that make no pods and say nothing of cards. DRA's (resource.k8s.io) do.
constexpr std::array<std::string_view, 56> kinds_without_pods{"APIService",
                                                              "Binding",
                                                              "CSIDriver",
                                                              "CSINode",
                                                              "CSIStorageCapacity",
                                                              "CertificateSigningRequest",
                                                              "ClusterRole",
                                                              "ClusterRoleBinding",
                                                              "ClusterTrustBundle",
                                                              "ComponentStatus",
                                                              "ConfigMap",
                                                              "ControllerRevision",
                                                              "CustomResourceDefinition",
                                                              "EndpointSlice",
                                                              "Endpoints",
                                                              "Event",
                                                              "Eviction",
                                                              "FlowSchema",
                                                              "HorizontalPodAutoscaler",
                                                              "IPAddress",
                                                              "Ingress",
                                                              "IngressClass",
                                                              "Lease",
                                                              "LimitRange",
                                                              "LocalSubjectAccessReview",
                                                              "MutatingAdmissionPolicy",
                                                              "MutatingAdmissionPolicyBinding",
                                                              "MutatingWebhookConfiguration",
                                                              "Namespace",
                                                              "NetworkPolicy",
                                                              "Node",
                                                              "PersistentVolume",
                                                              "PersistentVolumeClaim",
                                                              "PodDisruptionBudget",
                                                              "PriorityClass",
                                                              "PriorityLevelConfiguration",
                                                              "ResourceQuota",
                                                              "Role",
                                                              "RoleBinding",
                                                              "RuntimeClass",
                                                              "Scale",
                                                              "Secret",
                                                              "SelfSubjectAccessReview",
                                                              "SelfSubjectReview",
                                                              "SelfSubjectRulesReview",
                                                              "Service",
                                                              "ServiceAccount",
                                                              "ServiceCIDR",
                                                              "StorageClass",
                                                              "SubjectAccessReview",
                                                              "TokenRequest",
                                                              "TokenReview",
                                                              "ValidatingAdmissionPolicy",
                                                              "ValidatingAdmissionPolicyBinding",
                                                              "ValidatingWebhookConfiguration",
                                                              "VolumeAttachment"};

/// Groups that are Kubernetes' own beyond doubt. "extensions" ended with 1.21.
bool is_core_group(std::string_view group) {
  static constexpr std::array<std::string_view, 6> short_names{"",       "apps",      "batch", "autoscaling",
                                                               "policy", "extensions"};
  return std::ranges::find(short_names, group) != short_names.end();
}

/// Groups that kube-apiserver serves by itself.
bool is_native_group(std::string_view group) { return is_core_group(group) || group.ends_with(".k8s.io"); }

bool is_without_pods(const manifest& manifest) {
  return is_native_group(manifest.group) &&
         std::ranges::find(kinds_without_pods, manifest.kind) != kinds_without_pods.end();
}

/// The mapping at a path with dots, null where there is none; with "" `node` itself.
const node* mapping_at(const node* node, std::string_view path) {
  while (node && !path.empty()) {
    const auto dot = std::min(path.find('.'), path.size());
    node = text::yaml::find(node, path.substr(0, dot));
    path.remove_prefix(std::min(path.size(), dot + 1));
  }
  return node && node->mapping() ? node : nullptr;
}

bool has_containers(const node& mapping) {
  const auto* list = text::yaml::find(&mapping, "containers");
  return list && list->sequence() && std::ranges::any_of(list->items, [](const node* item) {
           return item->mapping() && (text::yaml::find(item, "name") || text::yaml::find(item, "image"));
         });
}

bool has_amounts(const node& mapping) {
  const auto* resources = text::yaml::find(&mapping, "resources");
  return resources && (mapping_at(resources, "limits") || mapping_at(resources, "requests"));
}

/// Looks through an object whose kind is not known.
class form_search {
 public:
  std::vector<pod_form> run(const node& root) {
    look(root, "", nullptr, nullptr);
    return std::move(out_);
  }

 private:
  /// `parent` has `mapping` below its last key; `grandparent` has that.
  void look(const node& value, const std::string& path, const node* parent, const node* grandparent) {
    if (out_.size() == most_pod_forms || !seen_.insert(&value).second) return;
    if (value.sequence()) {
      std::size_t index = 0;
      for (const auto* item : value.items) look(*item, path + "[" + std::to_string(index++) + "]", nullptr, parent);
      return;
    }
    if (!value.mapping()) return;
    if (has_containers(value)) return found(value, path, parent, grandparent);
    const bool amounts = has_amounts(value);
    above_.push_back(&value);
    if (amounts) out_.push_back({path, &value, {}, nullptr, true, nullptr, above_});
    for (const auto& [key, part] : value.entries) {
      if (amounts && key->text == "resources") continue;
      look(*part, path.empty() ? key->text : path + "." + key->text, &value, parent);
    }
    above_.pop_back();
  }

  void found(const node& spec, const std::string& path, const node* parent, const node* grandparent) {
    pod_form form{path, &spec, {}, nullptr, false, nullptr, above_};
    if (parent && parent->mapping() && text::yaml::find(parent, "spec") == &spec) {
      form.holder = parent;
      form.holder_path = path.substr(0, path.size() - std::string_view("spec").size());
      form.counted = grandparent;
    }
    out_.push_back(std::move(form));
  }

  std::vector<pod_form> out_;
  std::vector<const node*> above_;        ///< mappings round what is looked at
  std::unordered_set<const node*> seen_;  ///< aliases multiply
};

}  // namespace

pod_forms pod_forms_of(const manifest& manifest) {
  pod_forms out;
  if (const auto* known = workload_kind_of(manifest)) {
    const std::string path(known->path);
    const auto holder_path = path.substr(0, path.size() - std::string_view("spec").size());
    const auto* holder = mapping_at(
        manifest.root, std::string_view(holder_path).substr(0, holder_path.empty() ? 0 : holder_path.size() - 1));
    const auto* spec = mapping_at(manifest.root, path);
    out.knowledge = kind_knowledge::makes_pods;
    out.forms.push_back({path, spec, holder_path, holder, false, nullptr});
    return out;
  }
  if (is_without_pods(manifest)) {
    out.knowledge = kind_knowledge::makes_none;
    return out;
  }
  out.by_form = true;
  out.forms = form_search().run(*manifest.root);
  out.knowledge = out.forms.empty() ? kind_knowledge::unknown : kind_knowledge::makes_pods;
  return out;
}

std::string nearest_kind(const manifest& manifest) {
  if (!is_native_group(manifest.group)) return {};
  std::vector<std::string_view> kinds(kinds_without_pods.begin(), kinds_without_pods.end());
  for (const auto& known : workload_kinds) kinds.push_back(known.kind);
  const auto near = text::nearest(manifest.kind, kinds);
  return near == manifest.kind ? std::string() : std::string(near);  // its group is what is not known
}

bool is_of_dra(const manifest& manifest) { return manifest.group == "resource.k8s.io"; }

bool is_no_kind(const manifest& manifest) {
  const bool known = std::ranges::find(workload_kinds, manifest.kind, &workload_kind::kind) != workload_kinds.end();
  if (!is_core_group(manifest.group) || known || is_without_pods(manifest)) return false;
  return !text::yaml::text_at(manifest.root, "apiVersion").empty() && !manifest.kind.ends_with("List");
}

std::string_view version_meant(const manifest& manifest) {
  const auto version = text::yaml::text_at(manifest.root, "apiVersion");
  if (!is_core_group(manifest.group)) return {};
  std::string_view meant;
  if (const auto known = std::ranges::find(workload_kinds, manifest.kind, &workload_kind::kind);
      known != workload_kinds.end())
    meant = known->group == "apps" ? "apps/v1" : known->group == "batch" ? "batch/v1" : "v1";
  for (const auto* kind : {"ConfigMap", "LimitRange", "ResourceQuota"})
    if (manifest.kind == kind) meant = "v1";
  return version == meant ? std::string_view() : meant;
}

}  // namespace cli
