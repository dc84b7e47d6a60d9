#pragma once
// The fields of KubeSchedulerConfiguration v1 and of the arguments of kube-scheduler's own plugins, as data: Kubernetes
// 1.30 to 1.37, which read no other version. Sources: k8s.io/kube-scheduler config/v1, k8s.io/component-base
// config/v1alpha1; compared with kube-scheduler itself by test/scheduler_config.

#include <cstdint>
#include <span>
#include <string_view>

namespace scheduler_config {

inline constexpr int oldest_minor = 30, newest_minor = 37;

inline constexpr std::string_view group = "kubescheduler.config.k8s.io/";
inline constexpr std::string_view api_version = "kubescheduler.config.k8s.io/v1";

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
  const shape* layout = nullptr;
  int since = 0;  ///< Kubernetes 1.x; 0: every version there is a rule for
};
struct shape {
  std::span<const field> fields;
};

const shape& configuration() noexcept;
const shape& extender() noexcept;
const shape& tls() noexcept;
/// Null for a plugin without arguments of a known form: kube-scheduler takes anything for it.
const shape* args_of(std::string_view plugin, int minor) noexcept;

}  // namespace scheduler_config
