// Profiles of GPU instances and compute instances, and where instances can lie.
#include <algorithm>
#include <cstdio>

#include "mig.hpp"

using namespace nvml;

namespace {

constexpr unsigned slices_by_index[] = {1, 2, 3, 4, 7, 8, 6};

json profile_at(const json& card, unsigned index) {
  if (index >= gpu_instance_profiles) throw failure{invalid_argument};
  for (const auto& profile : profiles_of(card))
    if (profile["index"] == index) return profile;
  throw failure{not_supported};
}

json profile_with(const json& card, unsigned id) {
  for (const auto& profile : profiles_of(card))
    if (profile["id"] == id) return profile;
  throw failure{invalid_argument};
}

template <class Info>
void fill_profile(const json& profile, Info& target) {
  const auto fact = [&profile](const char* key) { return profile.value(key, 0U); };
  target.id = fact("id");
  target.slices = fact("slices");
  target.instances = fact("instances");
  target.multiprocessors = fact("multiprocessors");
  target.copy_engines = fact("copy_engines");
  target.decoders = fact("decoders");
  target.encoders = 0;
  target.jpeg = fact("jpeg");
  target.ofa = fact("ofa");
}

template <class Info>
void fill_named(const json& profile, Info& target) {
  fill_profile(profile, target);
  target.memory_mib = profile["memory_mib"];
  std::snprintf(target.name, sizeof target.name, "MIG %s", profile["name"].get<std::string>().c_str());
}

// The whole GPU instance's numbers, cut down to the compute instance's slices.
json compute_profile(const subject& subject, unsigned index, unsigned engines) {
  if (index >= compute_instance_profiles || engines != 0) throw failure{invalid_argument};
  for (const auto& instance : mig_instances(subject.card)) {
    if (instance.gpu["id"] != subject.handle.gpu_instance) continue;
    auto profile = instance.profile;
    const unsigned whole = profile["slices"];
    if (index >= std::size(slices_by_index) || slices_by_index[index] > whole) throw failure{not_supported};
    const auto slices = slices_by_index[index];
    profile["id"] = index;
    profile["slices"] = slices;
    profile["instances"] = whole / slices;
    profile["multiprocessors"] = profile.value("multiprocessors", 0U) * slices / whole;
    if (slices != whole) profile["name"] = std::to_string(slices) + "c." + profile["name"].get<std::string>();
    return profile;
  }
  throw failure{not_found};
}

return_code profile_info(const char* function, device device, json (*find_profile)(const json&, unsigned),
                         unsigned number, gpu_instance_profile_v3* target) {
  return answer([&] {
    const auto found = find(function, device);
    require(target);
    const auto profile = find_profile(found.card, number);
    if (target->version == version_word<gpu_instance_profile_v3>(3)) {
      fill_named(profile, *target);
      target->capabilities = 0;
      return;
    }
    auto& older = *reinterpret_cast<gpu_instance_profile_v2*>(target);
    if (older.version != version_word<gpu_instance_profile_v2>(2)) throw failure{argument_version_mismatch};
    fill_named(profile, older);
    older.is_p2p_supported = 0;
  });
}

}  // namespace

NVML_EXPORT nvmlDeviceGetGpuInstanceProfileInfo(device device, unsigned index, gpu_instance_profile* target) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetGpuInstanceProfileInfo", device);
    require(target);
    const auto profile = profile_at(found.card, index);
    fill_profile(profile, *target);
    target->is_p2p_supported = 0;
    target->memory_mib = profile["memory_mib"];
  });
}

NVML_EXPORT nvmlDeviceGetGpuInstanceProfileInfoV(device device, unsigned index, gpu_instance_profile_v3* target) {
  return profile_info("nvmlDeviceGetGpuInstanceProfileInfoV", device, profile_at, index, target);
}
NVML_EXPORT nvmlDeviceGetGpuInstanceProfileInfoByIdV(device device, unsigned id, gpu_instance_profile_v3* target) {
  return profile_info("nvmlDeviceGetGpuInstanceProfileInfoByIdV", device, profile_with, id, target);
}

NVML_EXPORT nvmlDeviceGetGpuInstancePossiblePlacements_v2(device device, unsigned id, placement* placements,
                                                          unsigned* count) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetGpuInstancePossiblePlacements_v2", device);
    const auto profile = profile_with(found.card, id);
    std::vector<placement> out;
    const unsigned size = profile.value("size", profile["slices"].get<unsigned>());
    for (const auto& start : profile.value("starts", json::array())) out.push_back({start, size});
    require(count);
    if (!placements)
      *count = static_cast<unsigned>(out.size());
    else
      fill(out, count, placements);
  });
}
NVML_EXPORT nvmlDeviceGetGpuInstancePossiblePlacements(device device, unsigned id, placement* placements,
                                                       unsigned* count) {
  return nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, id, placements, count);
}

NVML_EXPORT nvmlDeviceGetGpuInstanceRemainingCapacity(device device, unsigned id, unsigned* count) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetGpuInstanceRemainingCapacity", device);
    require(count);
    const auto profile = profile_with(found.card, id);
    if (!found.is_cut()) throw failure{not_supported};
    std::uint32_t busy = 0;  // a bit per memory slice
    for (const auto& gpu : found.fact("mig").value("instances", json::array()))
      for (const auto& other : profiles_of(found.card))
        if (other["name"] == gpu["profile"])
          busy |= ((1U << other.value("size", other["slices"].get<unsigned>())) - 1) << gpu.value("start", 0U);
    const auto mask = (1U << profile.value("size", profile["slices"].get<unsigned>())) - 1;
    *count =
        static_cast<unsigned>(std::ranges::count_if(profile.value("starts", json::array()), [&](const json& start) {
          return !(busy & mask << start.get<unsigned>());
        }));
  });
}

NVML_EXPORT nvmlGpuInstanceGetComputeInstanceProfileInfo(device instance, unsigned index, unsigned engines,
                                                         compute_instance_profile* target) {
  return answer([&] {
    const auto found = find("nvmlGpuInstanceGetComputeInstanceProfileInfo", instance, handle_kind::gpu_instance);
    require(target);
    fill_profile(compute_profile(found, index, engines), *target);
  });
}

NVML_EXPORT nvmlGpuInstanceGetComputeInstanceProfileInfoV(device instance, unsigned index, unsigned engines,
                                                          compute_instance_profile_v3* target) {
  return answer([&] {
    const auto found = find("nvmlGpuInstanceGetComputeInstanceProfileInfoV", instance, handle_kind::gpu_instance);
    require(target);
    const auto profile = compute_profile(found, index, engines);
    const bool is_third = target->version == version_word<compute_instance_profile_v3>(3);
    auto& older = *reinterpret_cast<compute_instance_profile_v2*>(target);
    if (!is_third && older.version != version_word<compute_instance_profile_v2>(2))
      throw failure{argument_version_mismatch};
    fill_profile(profile, older);  // version 3 only appends a member
    std::snprintf(older.name, sizeof older.name, "MIG %s", profile["name"].get<std::string>().c_str());
    if (is_third) target->capabilities = 0;
  });
}
