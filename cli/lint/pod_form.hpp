#pragma once
// Where an object describes pods. Kinds of Kubernetes have one place each. In an object of any other kind (PyTorchJob,
// InferenceService, RayCluster, ...) what has the form of a pod's spec is taken for one: a mapping with a list
// `containers` of mappings with a name or an image. What stands there under `resources` without a pod around it is
// taken for the resources of a container.

#include <cstdint>
#include <string>
#include <vector>

#include "cli/lint/manifest.hpp"

namespace cli {

struct pod_form {
  std::string path;                   ///< of the spec; "" where it is the object itself
  const text::yaml::node* spec{};     ///< null: the kind has one, and it is missing or no mapping
  std::string holder_path;            ///< of what holds the pods' metadata, with the dot behind it
  const text::yaml::node* holder{};   ///< null: no metadata goes with the spec
  bool alone = false;                 ///< no spec of a pod: `spec` is a mapping with `resources`
  const text::yaml::node* counted{};  ///< of a kind read by its form what may have `replicas`; may be null
  std::vector<const text::yaml::node*> above = {};  ///< as well: all mappings round it, each of which may
};

/// What is known of an object's kind.
enum class kind_knowledge : std::uint8_t {
  makes_pods,  ///< of Kubernetes, or what it describes has the form of a pod
  makes_none,  ///< of Kubernetes, or of the product
  unknown,     ///< of others, and nothing in it has the form of a pod
};

struct pod_forms {
  kind_knowledge knowledge = kind_knowledge::unknown;
  bool by_form = false;         ///< the kind is not known
  std::vector<pod_form> forms;  ///< in the order of the file, at most `most_pod_forms`
};
inline constexpr std::size_t most_pod_forms = 256;

pod_forms pod_forms_of(const manifest& manifest);

/// The kind of Kubernetes that was most likely meant by one that is not known; may be empty.
std::string nearest_kind(const manifest& manifest);
/// An object of DRA: a DeviceClass, a ResourceClaim, a template of claims, or what a driver offers.
bool is_of_dra(const manifest& manifest);
/// The object says that it is of Kubernetes itself (apps/v1, ...), and no API server has such a kind.
bool is_no_kind(const manifest& manifest);
/// The apiVersion in which API servers have this kind of Kubernetes, where the object has another or none; else empty.
std::string_view version_meant(const manifest& manifest);

}  // namespace cli
