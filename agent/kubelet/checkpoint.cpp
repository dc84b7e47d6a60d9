#include "agent/kubelet/checkpoint.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace agent::kubelet {
namespace {

using nlohmann::json;

std::unexpected<kube::error> malformed(std::string_view detail) {
  return std::unexpected(
      kube::error{kube::errc::decode, 0, "the kubelet's checkpoint of devices " + std::string(detail), std::nullopt});
}

bool read_text(const json& entry, const char* name, std::string& target) {
  const auto match = entry.find(name);
  if (match == entry.end() || !match->is_string()) return false;
  target = match->get<std::string>();
  return true;
}

/// {"-1": ["a", "b"]}: IDs by NUMA node.
bool read_ids(const json& entry, std::vector<std::string>& target) {
  const auto nodes = entry.find("DeviceIDs");
  if (nodes == entry.end() || !nodes->is_object()) return false;
  for (const auto& ids : *nodes) {
    if (!ids.is_array()) return false;
    for (const auto& id : ids) {
      if (!id.is_string()) return false;
      target.push_back(id.get<std::string>());
    }
  }
  std::ranges::sort(target);
  return true;
}

}  // namespace

kube::result<std::vector<recorded_devices>> devices_recorded_in(std::string_view checkpoint) {
  const auto whole = json::parse(checkpoint, nullptr, false);
  if (!whole.is_object()) return malformed("is no JSON object");
  const auto data = whole.find("Data");
  if (data == whole.end() || !data->is_object()) return malformed("has no Data");
  const auto list = data->find("PodDeviceEntries");
  std::vector<recorded_devices> out;
  if (list == data->end() || list->is_null()) return out;  // as Go writes an empty list
  if (!list->is_array()) return malformed("has PodDeviceEntries that are no list");
  for (const auto& entry : *list) {
    auto& devices = out.emplace_back();
    if (!entry.is_object() || !read_text(entry, "PodUID", devices.pod_uid) ||
        !read_text(entry, "ContainerName", devices.container) || !read_text(entry, "ResourceName", devices.resource) ||
        !read_ids(entry, devices.ids))
      return malformed("has an entry of another form: PodUID, ContainerName, ResourceName and DeviceIDs are expected");
  }
  return out;
}

}  // namespace agent::kubelet
