#pragma once
// Which annotations of pods and nodes are kept, by name or by the start of it: ours, and those by which device plugins
// and their schedulers say which cards a pod has. One list for every reader: watch, scheduler's question and file.

#include <string_view>

namespace kube {

/// The kubelet's, on the object that stands for a static pod.
inline constexpr std::string_view mirror_annotation = "kubernetes.io/config.mirror";

inline constexpr std::string_view kept_pod_annotations[] = {
    "quartermaster.io/", "state.quartermaster.io/", "tencent.com/",      "hami.io/",     "ALIYUN_COM_",
    "nvidia.com/",       "aliyun.accelerator/",     "gaia.tencent.com/", "tkestack.io/", mirror_annotation};
inline constexpr std::string_view kept_node_annotations[] = {"quartermaster.io/", "state.quartermaster.io/",
                                                             "hami.io/"};

}  // namespace kube
