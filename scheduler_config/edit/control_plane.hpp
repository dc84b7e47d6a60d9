#pragma once
// Both files of a control-plane node, on which kubeadm's kube-scheduler runs as a static pod: how they are to be with
// our extender, and without it. Pure; the result for files that are right already is those files.

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "scheduler_config/edit/render.hpp"

namespace scheduler_config {

struct control_plane_files {
  std::optional<std::string> config;  ///< /etc/kubernetes/scheduler-config.yaml; nothing: there is none
  std::string manifest;               ///< /etc/kubernetes/manifests/kube-scheduler.yaml
};

/// Where there is no configuration, one is made that says what the manifest's flags said, because kube-scheduler passes
/// these over once it reads a file. `otherwise`: its minor version, where the image does not tell. The error is one
/// line with the place: it is older than 1.30, it would not start, a place is not safe, or someone else's extender
/// manages the same.
std::expected<control_plane_files, text::phrase> with_extender(const control_plane_files& now,
                                                               const extender_settings& settings,
                                                               std::int64_t generation, int otherwise);

/// The bytes from before; what others have added since stays. `alone`: the configuration is ours as a whole, and goes.
/// `url` as of unmerge.
std::expected<control_plane_files, text::phrase> without_extender(const control_plane_files& now, bool alone,
                                                                  std::string_view url = {});

/// What the manifest says of the kube-scheduler that it starts.
struct scheduler_pod_facts {
  std::string name = "kube-scheduler";  ///< of the pod, before "-NODE"
  std::string checksum;                 ///< our annotation; empty: not ours
  std::int64_t generation = 0;
  std::string version;  ///< the image's tag
  std::string healthz;  ///< https://HOST:PORT
  bool elects = true;   ///< it takes part in the election for the lease kube-system/kube-scheduler
};
/// `config`: what it reads; a flag wins over it. What cannot be read is as kubeadm has it.
scheduler_pod_facts facts_of(std::string_view manifest, const std::optional<std::string>& config = std::nullopt);

}  // namespace scheduler_config
