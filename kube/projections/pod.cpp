#include "kube/projections/pod.hpp"

#include <algorithm>

#include "kube/wire.hpp"

namespace kube {
namespace {

using wire::each_field, wire::field;

constexpr std::string_view label_patterns[] = {
    "quartermaster.io/",        "app.kubernetes.io/",  "name", "k8s-app", "pod-template-generation",
    "controller-revision-hash", "aliyun.com/gpu-count"};
constexpr std::string_view mirror_annotation = "kubernetes.io/config.mirror";
constexpr std::string_view annotation_patterns[] = {
    "quartermaster.io/", "state.quartermaster.io/", "tencent.com/",      "hami.io/",     "ALIYUN_COM_",
    "nvidia.com/",       "aliyun.accelerator/",     "gaia.tencent.com/", "tkestack.io/", mirror_annotation};

container read_container(std::string_view bytes, container::role role) {
  container made;
  made.kind = role;
  const auto add_limit = [&](std::string_view entry) { wire::add_extended_resource(made.limits, entry); };
  each_field(bytes, field<1>(made.name),
             field<8>([&](std::string_view resources) { each_field(resources, field<1>(add_limit)); }),
             field<24>([&](std::string_view policy) {
               if (policy == "Always" && role == container::role::init) made.kind = container::role::sidecar;
             }));
  return made;
}

void read_spec(std::string_view bytes, pod& pod) {
  std::vector<container> main;
  const auto asks = [](const container& container) { return !container.limits.empty(); };
  each_field(
      bytes, field<2>([&](std::string_view item) { main.push_back(read_container(item, container::role::main)); }),
      field<20>([&](std::string_view item) { pod.containers.push_back(read_container(item, container::role::init)); }),
      field<10>(pod.node_name), field<11>(pod.host_network), field<19>([&](std::string_view name) {
        if (name != "default-scheduler") pod.scheduler_name = name;
      }),
      field<25>(pod.priority));
  if (std::ranges::any_of(main, asks) || std::ranges::any_of(pod.containers, asks)) {
    std::ranges::move(main, std::back_inserter(pod.containers));
    pod.containers.shrink_to_fit();
  } else {
    pod.containers = {};
  }
}

pod_phase read_phase(std::string_view phase) {
  if (phase == "Running") return pod_phase::running;
  if (phase == "Pending") return pod_phase::pending;
  if (phase == "Succeeded") return pod_phase::succeeded;
  if (phase == "Failed") return pod_phase::failed;
  return pod_phase::unknown;
}

/// ContainerState.waiting.reason: both are field 1.
std::string_view read_waiting_reason(std::string_view state) {
  return wire::read_entry(wire::read_entry(state).key).key;
}

/// Counts restarts, and keeps the first reason why a container that is not ready waits.
void read_container_status(std::string_view bytes, pod& pod, std::string_view& waiting) {
  std::string_view reason;
  bool ready = false;
  each_field(bytes, field<2>([&](std::string_view state) { reason = read_waiting_reason(state); }), field<4>(ready),
             field<5>([&](std::int32_t count) {
               if (__builtin_add_overflow(pod.restarts, count, &pod.restarts)) pod.restarts = 0;
             }));
  if (!ready && waiting.empty()) waiting = reason;
}

void read_status(std::string_view bytes, pod& pod) {
  std::string_view reason, waiting_init, waiting_main;
  each_field(bytes, field<1>([&](std::string_view phase) { pod.phase = read_phase(phase); }),
             field<2>([&](std::string_view condition) {
               if (const auto found = wire::read_condition(condition); found.type == "Ready")
                 pod.ready = found.status == "True";
             }),
             field<4>(reason), field<6>(pod.ip),
             field<8>([&](std::string_view item) { read_container_status(item, pod, waiting_main); }),
             field<10>([&](std::string_view item) { read_container_status(item, pod, waiting_init); }),
             field<11>([&](std::string_view name) {
               if (!name.empty()) pod.nominated_node.assign(1, std::string(name));
             }));
  pod.reason = !reason.empty() ? reason : !waiting_init.empty() ? waiting_init : waiting_main;
}

void read(std::string_view bytes, pod& pod) {
  each_field(bytes, field<1>([&](std::string_view meta) {
               wire::read_metadata(meta, pod, {label_patterns}, {annotation_patterns});
             }),
             field<2>([&](std::string_view spec) { read_spec(spec, pod); }),
             field<3>([&](std::string_view status) { read_status(status, pod); }));
  pod.mirror = pod.annotations.contains(mirror_annotation);
}

}  // namespace

std::string_view to_string(pod_phase phase) {
  switch (phase) {
    case pod_phase::unknown:
      return "Unknown";
    case pod_phase::pending:
      return "Pending";
    case pod_phase::running:
      return "Running";
    case pod_phase::succeeded:
      return "Succeeded";
    case pod_phase::failed:
      return "Failed";
  }
  return "Unknown";
}

const resource& pod::of() { return resources::pods; }

result<pod> pod::decode(std::string_view bytes) { return wire::decode<pod>(bytes, read); }

}  // namespace kube
