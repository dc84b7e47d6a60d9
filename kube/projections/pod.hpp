#pragma once
// What we keep of a Pod: where it runs, how it is, which extended resources each container asks for, whether it can
// register with the kubelet, and the annotations in which placement decisions are written. About 0.7 KiB for a pod that
// asks for none.

#include <cstdint>
#include <forward_list>
#include <string>
#include <string_view>
#include <vector>

#include "kube/object.hpp"
#include "kube/quantity.hpp"

namespace kube {

enum class pod_phase : std::uint8_t { unknown, pending, running, succeeded, failed };
std::string_view to_string(pod_phase phase);

struct container {
  enum class role : std::uint8_t {
    main,
    init,     ///< runs to its end before the main ones start: its demand is a maximum, not a sum
    sidecar,  ///< init container with restartPolicy Always: runs next to the main ones
  };
  std::string name;
  role kind = role::main;
  quantities limits;  ///< extended resources only
  /// As well; only where a pod may not be made yet (declarations::read_pod_spec, described_pod.hpp). The API server
  /// holds them to be equal to the limits, so that of a pod it has nothing is kept here.
  quantities requests;
  friend bool operator==(const container&, const container&) = default;
};

struct pod : object {
  // labels: quartermaster.io/, app.kubernetes.io/, name, k8s-app, pod-template-generation, controller-revision-hash and
  // what products read from a label. annotations: kept.hpp.
  std::string node_name;  ///< empty: not bound
  /// Where kube-scheduler makes, or keeps, room for it (status.nominatedNodeName): none or one. This list takes 8
  /// bytes where there is none, less than a string or a vector.
  std::forward_list<std::string> nominated_node;
  std::string scheduler_name;  ///< empty stands for "default-scheduler", which most pods have
  std::string ip;
  std::string reason;  ///< why it is not well: status.reason ("Evicted"), else the first waiting container's
                       ///< ("ImagePullBackOff")
  /// In the order of the spec, init containers first. Empty when no container asks for an extended resource.
  std::vector<container> containers;
  /// When the API server bound it: since when the condition PodScheduled is True. Seconds since 1970, 0: not known.
  std::int64_t scheduled_at = 0;
  /// When the last container of a finished pod ended, init containers included. Seconds since 1970; 0: not finished, or
  /// not known, because the status leaves one container's end out: the node is gone, or nothing of the pod ever ran.
  std::int64_t finished_at = 0;
  std::int32_t priority = 0;
  std::int32_t restarts = 0;  ///< sum over all containers
  pod_phase phase = pod_phase::unknown;
  bool ready = false;  ///< condition Ready is True
  bool host_network = false;
  bool mirror = false;  ///< stands for a static pod of a kubelet; deleting it does nothing
  /// A volume brings the kubelet's folder of device plugins, or a folder above it, from the node. A pod without one
  /// cannot register with the kubelet.
  bool mounts_plugin_folder = false;

  /// Succeeded or Failed: its resources are free again.
  bool finished() const { return phase == pod_phase::succeeded || phase == pod_phase::failed; }

  static const resource& of();
  static constexpr encoding wire = encoding::protobuf;
  static result<pod> decode(std::string_view bytes);
  friend bool operator==(const pod&, const pod&) = default;
};

}  // namespace kube
