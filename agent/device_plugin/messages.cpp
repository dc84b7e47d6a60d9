#include "agent/device_plugin/messages.hpp"

#include <protozero/pbf_writer.hpp>

#include "kube/wire.hpp"

namespace agent::device_plugin {
namespace {

using kube::wire::each_field, kube::wire::field;
using protozero::pbf_writer;

void read_ids(std::string_view message, device_ids& target) {
  each_field(message, field<1>([&](std::string_view id) { target.emplace_back(id); }));
}

}  // namespace

std::string list_of(const std::vector<device>& devices) {
  std::string out;
  pbf_writer list(out);
  for (const auto& device : devices) {
    pbf_writer entry(list, 1);
    entry.add_string(1, device.id);
    entry.add_string(2, device.is_healthy ? "Healthy" : "Unhealthy");
  }
  return out;
}

std::string options_message() {
  std::string out;
  pbf_writer(out).add_bool(1, true);
  return out;
}

std::string registration_of(std::string_view endpoint, std::string_view resource) {
  std::string out;
  pbf_writer request(out);
  request.add_string(1, "v1beta1");
  request.add_string(2, endpoint.data(), endpoint.size());
  request.add_string(3, resource.data(), resource.size());
  request.add_message(4, options_message());
  return out;
}

kube::result<std::vector<device_ids>> allocations_in(std::string_view message) {
  return kube::wire::guarded("AllocateRequest", [message] {
    std::vector<device_ids> out;
    each_field(message, field<1>([&](std::string_view container) { read_ids(container, out.emplace_back()); }));
    return out;
  });
}

kube::result<device_ids> started_devices_in(std::string_view message) {
  return kube::wire::guarded("PreStartContainerRequest", [message] {
    device_ids out;
    read_ids(message, out);
    return out;
  });
}

std::string allocations_of(const std::vector<allocation_answer>& answers) {
  std::string out;
  pbf_writer message(out);
  for (const auto& answer : answers) {
    pbf_writer container(message, 1);
    for (const auto& [name, value] : answer.environment) {
      pbf_writer entry(container, 1);
      entry.add_string(1, name);
      entry.add_string(2, value);
    }
    for (const auto& name : answer.cdi_names) {
      pbf_writer device(container, 5);
      device.add_string(1, name);
    }
  }
  return out;
}

}  // namespace agent::device_plugin
