#include "kube/projections/pod.hpp"

#include <algorithm>

#include "kube/wire.hpp"

namespace kube {
namespace {

using wire::bytes_field, wire::number_field, wire::reader, wire::text;

constexpr std::string_view label_patterns[] = {
    "quartermaster.io/",        "app.kubernetes.io/",  "name", "k8s-app", "pod-template-generation",
    "controller-revision-hash", "aliyun.com/gpu-count"};
constexpr std::string_view mirror_annotation = "kubernetes.io/config.mirror";
constexpr std::string_view annotation_patterns[] = {"quartermaster.io/", "tencent.com/", "hami.io/",
                                                    "ALIYUN_COM_",       "nvidia.com/",  "aliyun.accelerator/",
                                                    "gaia.tencent.com/", "tkestack.io/", mirror_annotation};

container read_container(std::string_view bytes, container::role as) {
  container made;
  made.as = as;
  reader message(bytes.data(), bytes.size());
  while (message.next()) {
    switch (message.tag_and_type()) {
      case bytes_field(1):
        made.name = text(message);
        break;
      case bytes_field(8): {
        const std::string_view raw = text(message);
        reader resources(raw.data(), raw.size());
        while (resources.next()) {
          if (resources.tag_and_type() == bytes_field(1))
            wire::add_extended_resource(made.limits, text(resources));
          else
            resources.skip();
        }
        break;
      }
      case bytes_field(24):
        if (text(message) == "Always" && as == container::role::init) made.as = container::role::sidecar;
        break;
      default:
        message.skip();
    }
  }
  return made;
}

void read_spec(std::string_view bytes, pod& into) {
  std::vector<container> main;
  const auto asks = [](const container& one) { return !one.limits.empty(); };
  reader spec(bytes.data(), bytes.size());
  while (spec.next()) {
    switch (spec.tag_and_type()) {
      case bytes_field(2):
        main.push_back(read_container(text(spec), container::role::main));
        break;
      case bytes_field(20):
        into.containers.push_back(read_container(text(spec), container::role::init));
        break;
      case bytes_field(10):
        into.node_name = text(spec);
        break;
      case number_field(11):
        into.host_network = wire::flag(spec);
        break;
      case bytes_field(19):
        if (const auto name = text(spec); name != "default-scheduler") into.scheduler_name = name;
        break;
      case number_field(25):
        into.priority = spec.get_int32();
        break;
      default:
        spec.skip();
    }
  }
  if (std::ranges::any_of(main, asks) || std::ranges::any_of(into.containers, asks)) {
    std::ranges::move(main, std::back_inserter(into.containers));
    into.containers.shrink_to_fit();
  } else {
    into.containers = {};
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
void read_container_status(std::string_view bytes, pod& into, std::string_view& waiting) {
  std::string_view reason;
  bool ready = false;
  reader status(bytes.data(), bytes.size());
  while (status.next()) {
    switch (status.tag_and_type()) {
      case bytes_field(2):
        reason = read_waiting_reason(text(status));
        break;
      case number_field(4):
        ready = wire::flag(status);
        break;
      case number_field(5):
        if (__builtin_add_overflow(into.restarts, status.get_int32(), &into.restarts)) into.restarts = 0;
        break;
      default:
        status.skip();
    }
  }
  if (!ready && waiting.empty()) waiting = reason;
}

void read_status(std::string_view bytes, pod& into) {
  std::string_view reason, waiting_init, waiting_main;
  reader status(bytes.data(), bytes.size());
  while (status.next()) {
    switch (status.tag_and_type()) {
      case bytes_field(1):
        into.phase = read_phase(text(status));
        break;
      case bytes_field(2):
        if (const auto found = wire::read_condition(text(status), 4); found.type == "Ready") {
          into.ready = found.status == "True";
        }
        break;
      case bytes_field(4):
        reason = text(status);
        break;
      case bytes_field(6):
        into.ip = text(status);
        break;
      case bytes_field(8):
        read_container_status(text(status), into, waiting_main);
        break;
      case bytes_field(10):
        read_container_status(text(status), into, waiting_init);
        break;
      case bytes_field(11):
        if (const auto name = text(status); !name.empty()) into.nominated_node.assign(1, std::string(name));
        break;
      default:
        status.skip();
    }
  }
  into.reason = !reason.empty() ? reason : !waiting_init.empty() ? waiting_init : waiting_main;
}

void read(std::string_view bytes, pod& into) {
  reader message(bytes.data(), bytes.size());
  while (message.next()) {
    switch (message.tag_and_type()) {
      case bytes_field(1):
        wire::read_metadata(text(message), into, {label_patterns}, {annotation_patterns});
        break;
      case bytes_field(2):
        read_spec(text(message), into);
        break;
      case bytes_field(3):
        read_status(text(message), into);
        break;
      default:
        message.skip();
    }
  }
  into.mirror = into.annotations.contains(mirror_annotation);
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

result<pod> pod::decode(std::string_view bytes) {
  pod made;
  const auto done = wire::guarded("protobuf", [&] { read(bytes, made); });
  return wire::named(std::move(made), done);
}

}  // namespace kube
