// Finding cards, and who they are: count, handles, UUID, name, PCI address.
#include <algorithm>
#include <cctype>
#include <cstdio>

#include "../call.hpp"
#include "mig.hpp"
#include "pci.hpp"

using namespace nvml;

namespace {

unsigned index_of(const subject& subject) {
  const auto cards = session::instance().cards();
  const auto place = std::ranges::find(cards, subject.handle.uuid);
  if (place == cards.end()) throw failure{gpu_is_lost};
  return static_cast<unsigned>(place - cards.begin());
}

return_code handle_with(const char* key, const char* value, device* target,
                        bool (*is_match)(const std::string&, const char*)) {
  return answer([&] {
    const auto now = session::instance().current();
    require(value, target);
    for (const auto& uuid : session::instance().cards()) {
      const auto& card = card_of(*now, uuid);
      if (!card.contains(key) || !is_match(card[key].get<std::string>(), value)) continue;
      *target = session::instance().intern({.uuid = uuid});
      return;
    }
    throw failure{not_found};
  });
}

bool is_equal(const std::string& fact, const char* value) { return fact == value; }
bool is_same_bus(const std::string& fact, const char* value) {
  const auto left = parsed_bus_id(fact), right = parsed_bus_id(value);
  return left.domain == right.domain && left.bus == right.bus && left.device == right.device;
}

}  // namespace

NVML_EXPORT nvmlDeviceGetCount_v2(unsigned* count) {
  return answer([&] {
    const auto now = session::instance().current();
    require(count);
    *count = static_cast<unsigned>(session::instance().cards().size());
  });
}
NVML_EXPORT nvmlDeviceGetCount(unsigned* count) { return nvmlDeviceGetCount_v2(count); }

NVML_EXPORT nvmlDeviceGetHandleByIndex_v2(unsigned index, device* target) {
  return answer([&] {
    const auto now = session::instance().current();
    require(target);
    const auto cards = session::instance().cards();
    if (index >= cards.size()) throw failure{invalid_argument};
    card_of(*now, cards[index]);  // the handle of a lost card is refused
    *target = session::instance().intern({.uuid = cards[index]});
  });
}
NVML_EXPORT nvmlDeviceGetHandleByIndex(unsigned index, device* target) {
  return nvmlDeviceGetHandleByIndex_v2(index, target);
}

NVML_EXPORT nvmlDeviceGetHandleByUUID(const char* uuid, device* target) {
  if (uuid && std::string_view(uuid).starts_with("MIG-")) return mig_handle(uuid, target);
  return handle_with("uuid", uuid, target, is_equal);
}
NVML_EXPORT nvmlDeviceGetHandleBySerial(const char* serial, device* target) {
  return handle_with("serial", serial, target, is_equal);
}
NVML_EXPORT nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, device* target) {
  return handle_with("pci_bus_id", bus_id, target, is_same_bus);
}
NVML_EXPORT nvmlDeviceGetHandleByPciBusId(const char* bus_id, device* target) {
  return nvmlDeviceGetHandleByPciBusId_v2(bus_id, target);
}

NVML_EXPORT nvmlDeviceGetIndex(device device, unsigned* index) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetIndex", device);
    require(index);
    *index = found.is_mig_device() ? mig_index(found) : index_of(found);
  });
}

NVML_EXPORT nvmlDeviceGetUUID(device device, char* uuid, unsigned length) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetUUID", device);
    copy(found.is_mig_device() ? mig_uuid(found) : found.handle.uuid, uuid, length);
  });
}

NVML_EXPORT nvmlDeviceGetName(device device, char* name, unsigned length) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetName", device);
    const auto model = found.card["name"].get<std::string>();
    copy(found.is_mig_device() ? model + " MIG " + mig_profile_name(found) : model, name, length);
  });
}

NVML_EXPORT nvmlDeviceGetPciInfo_v3(device device, pci_info* target) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetPciInfo_v3", device);
    require(target);
    *target = pci_of(found.card);
  });
}

// The older forms end where the struct of their time ended: before the subsystem, and before the long address.
NVML_EXPORT nvmlDeviceGetPciInfo(device device, void* target) {
  pci_info info{};
  const auto code = nvmlDeviceGetPciInfo_v3(device, &info);
  if (code == success) std::memcpy(target, &info, offsetof(pci_info, subsystem_id));
  return code;
}
NVML_EXPORT nvmlDeviceGetPciInfo_v2(device device, void* target) {
  pci_info info{};
  const auto code = nvmlDeviceGetPciInfo_v3(device, &info);
  if (code == success) std::memcpy(target, &info, offsetof(pci_info, bus_id));
  return code;
}

NVML_EXPORT nvmlDeviceGetPciInfoExt(device device, pci_info_ext* target) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetPciInfoExt", device);
    require(target);
    if (target->version != version_word<pci_info_ext>(1)) throw failure{argument_version_mismatch};
    const auto info = pci_of(found.card);
    const auto code = static_cast<unsigned>(std::stoul(found.card.value("pci_class", "0x030200"), nullptr, 16));
    *target = {target->version,   info.domain, info.bus,         info.device, info.device_id,
               info.subsystem_id, code >> 16,  code >> 8 & 0xff, {}};
    std::memcpy(target->bus_id, info.bus_id, sizeof target->bus_id);
  });
}

NVML_EXPORT nvmlDeviceGetCudaComputeCapability(device device, int* major, int* minor) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetCudaComputeCapability", device);
    require(major, minor);
    const auto capability = found.card.value("compute_capability", "0.0");
    *major = std::stoi(capability);
    *minor = std::stoi(capability.substr(capability.find('.') + 1));
  });
}
