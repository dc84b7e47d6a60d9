// Finds MIG instances in the fixture.
#include <algorithm>

#include "mig.hpp"

namespace nvml {
namespace {

json profile_named(const json& card, const std::string& name) {
  const auto profiles = profiles_of(card);
  const auto profile = std::ranges::find_if(profiles, [&name](const json& other) { return other["name"] == name; });
  if (profile == profiles.end()) throw failure{not_found};
  return *profile;
}

bool is_same(const mig_instance& instance, const handle& handle) {
  return instance.gpu["id"] == handle.gpu_instance && instance.compute["id"] == handle.compute_instance;
}

}  // namespace

json profiles_of(const json& card) {
  if (!card.contains("mig_profiles") || !card["mig_profiles"].is_array()) throw failure{not_supported};
  return card["mig_profiles"];
}

std::vector<mig_instance> mig_instances(const json& card) {
  std::vector<mig_instance> out;
  if (!card.contains("mig") || !card["mig"].is_object() || !card["mig"].value("enabled", false)) return out;
  for (const auto& gpu : card["mig"].value("instances", json::array()))
    for (const auto& compute : gpu["compute"]) out.push_back({gpu, compute, profile_named(card, gpu["profile"])});
  return out;
}

mig_instance instance_of(const subject& subject) {
  const auto instances = mig_instances(subject.card);
  const auto instance =
      std::ranges::find_if(instances, [&](const mig_instance& other) { return is_same(other, subject.handle); });
  if (instance == instances.end()) throw failure{not_found};  // taken apart since the handle was given out
  return *instance;
}

return_code mig_handle(const char* uuid, device* target) {
  return answer([&] {
    const auto now = session::instance().current();
    require(target);
    for (const auto& card : session::instance().cards())
      for (const auto& instance : mig_instances(card_of(*now, card)))
        if (instance.compute["uuid"] == uuid) {
          *target =
              session::instance().intern({handle_kind::mig_device, card, instance.gpu["id"], instance.compute["id"]});
          return;
        }
    throw failure{not_found};
  });
}

unsigned mig_index(const subject& subject) {
  const auto instances = mig_instances(subject.card);
  const auto instance =
      std::ranges::find_if(instances, [&](const mig_instance& other) { return is_same(other, subject.handle); });
  if (instance == instances.end()) throw failure{not_found};
  return static_cast<unsigned>(instance - instances.begin());
}

std::string mig_uuid(const subject& subject) { return instance_of(subject).compute["uuid"]; }

std::string mig_profile_name(const subject& subject) {
  const auto instance = instance_of(subject);
  const auto slices = instance.compute["slices"].get<unsigned>();
  const auto name = instance.profile["name"].get<std::string>();
  return slices == instance.profile["slices"] ? name : std::to_string(slices) + "c." + name;
}

mig_amount mig_memory(const subject& subject) {
  const auto instance = instance_of(subject);
  return {instance.profile["memory_mib"], instance.compute.value("memory_used_mib", std::uint64_t{0})};
}

}  // namespace nvml
