#pragma once
// What the API server and the kubelet send, written by hand: numbers of fields are those of their .proto files.

#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

namespace agent::exporter {

struct sent_container {
  std::string name, id;  ///< id: "" has not started
  std::string policy;    ///< restartPolicy of an init container
  bool is_init = false;
};

struct sent_pod {
  std::string ns, name, uid, phase, placement;
  std::vector<sent_container> containers;
};

inline std::string wire_of(const sent_pod& pod) {
  std::string out, meta, annotation, spec, status;
  protozero::pbf_writer entry(annotation);
  entry.add_string(1, "quartermaster.io/placement");
  entry.add_string(2, pod.placement);
  protozero::pbf_writer metadata(meta);
  metadata.add_string(1, pod.name);
  metadata.add_string(3, pod.ns);
  metadata.add_string(5, pod.uid);
  metadata.add_string(6, "7");
  if (!pod.placement.empty()) metadata.add_message(12, annotation);
  protozero::pbf_writer spec_writer(spec), status_writer(status);
  status_writer.add_string(1, pod.phase);
  for (const auto& container : pod.containers) {
    std::string in_spec, in_status;
    protozero::pbf_writer spec_item(in_spec), status_item(in_status);
    spec_item.add_string(1, container.name);
    if (!container.policy.empty()) spec_item.add_string(24, container.policy);
    spec_writer.add_message(container.is_init ? 20 : 2, in_spec);
    status_item.add_string(1, container.name);
    if (!container.id.empty()) status_item.add_string(8, "containerd://" + container.id);
    status_writer.add_message(container.is_init ? 10 : 8, in_status);
  }
  protozero::pbf_writer writer(out);
  writer.add_message(1, meta);
  writer.add_message(2, spec);
  writer.add_message(3, status);
  return out;
}

struct sent_devices {
  std::string ns, pod, container, resource;
  std::vector<std::string> ids;
};

inline std::string wire_of(const std::vector<sent_devices>& all) {
  std::string out;
  protozero::pbf_writer writer(out);
  for (const auto& entry : all) {
    std::string pod, container, devices;
    protozero::pbf_writer devices_writer(devices), container_writer(container), pod_writer(pod);
    devices_writer.add_string(1, entry.resource);
    for (const auto& id : entry.ids) devices_writer.add_string(2, id);
    container_writer.add_string(1, entry.container);
    if (!entry.ids.empty()) container_writer.add_message(2, devices);
    pod_writer.add_string(1, entry.pod);
    pod_writer.add_string(2, entry.ns);
    pod_writer.add_message(3, container);
    writer.add_message(1, pod);
  }
  return out;
}

}  // namespace agent::exporter
