// MIG mode, MIG devices, GPU instances and compute instances. Instances are changed in the fixture, not by calls.
#include "mig.hpp"

#include <algorithm>

using namespace nvml;

namespace {

json gpu_instance_of(const subject& subject) {
  for (const auto& instance : mig_instances(subject.card))
    if (instance.gpu["id"] == subject.handle.gpu_instance) return instance.gpu;
  throw failure{not_found};
}

unsigned profile_id(const json& card, const json& name) {
  for (const auto& profile : profiles_of(card))
    if (profile["name"] == name) return profile["id"];
  throw failure{not_found};
}

// The compute profiles' ids are their indexes: 1, 2, 3, 4, 7, 8 and 6 slices.
unsigned compute_profile_id(unsigned slices) {
  constexpr unsigned by_index[] = {1, 2, 3, 4, 7, 8, 6};
  const auto* const place = std::ranges::find(by_index, slices);
  if (place == std::end(by_index)) throw failure{invalid_argument};
  return static_cast<unsigned>(place - by_index);
}

return_code instance_id(const char* function, device device, unsigned handle::* member, unsigned* id) {
  return answer([&] {
    const auto found = find(function, device);
    require(id);
    if (!found.is_mig_device()) throw failure{not_supported};
    *id = found.handle.*member;
  });
}

}  // namespace

NVML_EXPORT nvmlDeviceGetMigMode(device device, unsigned* current, unsigned* pending) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetMigMode", device);
    require(current, pending);
    const auto mig = found.fact("mig");
    *current = mig.value("enabled", false);
    *pending = mig.value("pending", mig.value("enabled", false));
  });
}

NVML_EXPORT nvmlDeviceIsMigDeviceHandle(device device, unsigned* is_mig) {
  return answer([&] {
    const auto found = find("nvmlDeviceIsMigDeviceHandle", device);
    require(is_mig);
    *is_mig = found.is_mig_device();
  });
}

NVML_EXPORT nvmlDeviceGetMaxMigDeviceCount(device device, unsigned* count) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetMaxMigDeviceCount", device);
    require(count);
    *count = found.card.contains("mig_profiles") ? 7 : 0;
  });
}

NVML_EXPORT nvmlDeviceGetMigDeviceHandleByIndex(device device, unsigned index, const handle** target) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetMigDeviceHandleByIndex", device);
    require(target);
    const auto instances = mig_instances(found.card);
    if (index >= instances.size()) throw failure{not_found};
    *target = session::instance().intern(
        {handle_kind::mig_device, found.handle.uuid, instances[index].gpu["id"], instances[index].compute["id"]});
  });
}

NVML_EXPORT nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device device, const handle** target) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", device);
    require(target);
    if (!found.is_mig_device()) throw failure{invalid_argument};
    *target = session::instance().intern({.uuid = found.handle.uuid});
  });
}

NVML_EXPORT nvmlDeviceGetGpuInstanceId(device device, unsigned* id) {
  return instance_id("nvmlDeviceGetGpuInstanceId", device, &handle::gpu_instance, id);
}
NVML_EXPORT nvmlDeviceGetComputeInstanceId(device device, unsigned* id) {
  return instance_id("nvmlDeviceGetComputeInstanceId", device, &handle::compute_instance, id);
}

NVML_EXPORT nvmlDeviceGetAttributes_v2(device device, attributes* target) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetAttributes_v2", device);
    require(target);
    if (!found.is_mig_device()) throw failure{not_supported};
    const auto instance = instance_of(found);
    const auto& profile = instance.profile;
    const unsigned slices = instance.compute["slices"], whole = profile["slices"];
    const auto engines = [&profile](const char* key) { return profile.value(key, 0U); };
    *target = {engines("multiprocessors") * slices / whole,
               engines("copy_engines"),
               engines("decoders"),
               0,
               engines("jpeg"),
               engines("ofa"),
               whole,
               slices,
               profile["memory_mib"]};
  });
}

NVML_EXPORT nvmlDeviceGetGpuInstanceById(device device, unsigned id, const handle** target) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetGpuInstanceById", device);
    require(target);
    const handle wanted{handle_kind::gpu_instance, found.handle.uuid, id, no_instance};
    gpu_instance_of({found.now, found.card, wanted});
    *target = session::instance().intern(wanted);
  });
}

NVML_EXPORT nvmlDeviceGetGpuInstances(device device, unsigned profile, const handle** instances, unsigned* count) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetGpuInstances", device);
    std::vector<const handle*> handles;
    if (!found.is_cut()) throw failure{not_supported};
    for (const auto& gpu : found.fact("mig").value("instances", json::array()))
      if (profile_id(found.card, gpu["profile"]) == profile)
        handles.push_back(
            session::instance().intern({handle_kind::gpu_instance, found.handle.uuid, gpu["id"], no_instance}));
    require(count, instances);
    *count = static_cast<unsigned>(handles.size());  // the caller gives room for all instances of a profile
    std::ranges::copy(handles, instances);
  });
}

NVML_EXPORT nvmlGpuInstanceGetInfo(device instance, gpu_instance_info* target) {
  return answer([&] {
    const auto found = find("nvmlGpuInstanceGetInfo", instance, handle_kind::gpu_instance);
    require(target);
    const auto gpu = gpu_instance_of(found);
    unsigned size = 0;
    for (const auto& profile : profiles_of(found.card))
      if (profile["name"] == gpu["profile"]) size = profile.value("size", profile["slices"].get<unsigned>());
    *target = {session::instance().intern({.uuid = found.handle.uuid}),
               found.handle.gpu_instance,
               profile_id(found.card, gpu["profile"]),
               {gpu.value("start", 0U), size}};
  });
}

NVML_EXPORT nvmlGpuInstanceGetComputeInstanceById(device instance, unsigned id, const handle** target) {
  return answer([&] {
    const auto found = find("nvmlGpuInstanceGetComputeInstanceById", instance, handle_kind::gpu_instance);
    require(target);
    const handle wanted{handle_kind::compute_instance, found.handle.uuid, found.handle.gpu_instance, id};
    instance_of({found.now, found.card, wanted});
    *target = session::instance().intern(wanted);
  });
}

NVML_EXPORT nvmlGpuInstanceGetComputeInstances(device instance, unsigned profile, const handle** instances,
                                               unsigned* count) {
  return answer([&] {
    const auto found = find("nvmlGpuInstanceGetComputeInstances", instance, handle_kind::gpu_instance);
    const auto gpu = gpu_instance_of(found);
    require(count, instances);
    std::vector<const handle*> handles;
    for (const auto& compute : gpu["compute"])
      if (compute_profile_id(compute["slices"]) == profile)
        handles.push_back(session::instance().intern(
            {handle_kind::compute_instance, found.handle.uuid, found.handle.gpu_instance, compute["id"]}));
    *count = static_cast<unsigned>(handles.size());
    std::ranges::copy(handles, instances);
  });
}

NVML_EXPORT nvmlComputeInstanceGetInfo_v2(device instance, compute_instance_info* target) {
  return answer([&] {
    const auto found = find("nvmlComputeInstanceGetInfo_v2", instance, handle_kind::compute_instance);
    require(target);
    const auto compute = instance_of(found).compute;
    auto& session = session::instance();
    *target = {session.intern({.uuid = found.handle.uuid}),
               session.intern({handle_kind::gpu_instance, found.handle.uuid, found.handle.gpu_instance, no_instance}),
               found.handle.compute_instance,
               compute_profile_id(compute["slices"]),
               {compute.value("start", 0U), compute["slices"]}};
  });
}
