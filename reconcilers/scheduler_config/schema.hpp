#pragma once
// The fields of KubeSchedulerConfiguration and of the arguments of kube-scheduler's own plugins, as data: v1beta1 to
// v1, Kubernetes 1.22 to 1.36. Sources: k8s.io/kube-scheduler config/v1 and its predecessors, k8s.io/component-base
// config/v1alpha1; compared with kube-scheduler itself by test/scheduler_config.

#include <cstdint>
#include <span>
#include <string_view>

namespace reconcilers::scheduler_config {

inline constexpr int oldest_minor = 22, newest_minor = 36;

/// Of kubescheduler.config.k8s.io; `last` is the last Kubernetes 1.x that reads it.
struct api_version {
  std::string_view name;
  int first, last;
};
inline constexpr api_version api_versions[] = {
    {"v1beta1", 19, 22}, {"v1beta2", 22, 27}, {"v1beta3", 23, 28}, {"v1", 25, 99}};
inline constexpr std::string_view group = "kubescheduler.config.k8s.io/";
/// The newest that kube-scheduler of this version reads.
const api_version& best_for(int minor) noexcept;

enum class type : std::uint8_t {
  text,
  boolean,
  int32,
  int64,
  real,
  duration,           ///< null is refused: Go's UnmarshalJSON is called with it
  optional_duration,  ///< a pointer
  bytes,              ///< base64
  object,
  texts,    ///< a list
  objects,  ///< a list
  labels,   ///< a mapping to text
  any,
};

struct shape;
struct field {
  std::string_view name;
  type is;
  const shape* of = nullptr;
  std::string_view apis = {};  ///< versions that have it, by blanks; empty: all
  int since = 0;               ///< Kubernetes 1.x
};
struct shape {
  std::span<const field> fields;
};

const shape& configuration() noexcept;
const shape& extender() noexcept;
const shape& tls() noexcept;
/// Null for a plugin without arguments of a known form: kube-scheduler takes anything for it.
const shape* args_of(std::string_view plugin, std::string_view api, int minor) noexcept;

}  // namespace reconcilers::scheduler_config
