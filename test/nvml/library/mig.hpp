#pragma once
// A fixture's MIG state: GPU instances, compute instances and profiles by number.

#include <vector>

#include "../abi_mig.hpp"
#include "../call.hpp"

namespace nvml {

/// A compute instance, its GPU instance and the profile of that, as the fixture has them.
struct mig_instance {
  json gpu;
  json compute;
  json profile;
};

struct mig_amount {
  std::uint64_t total_mib, used_mib;
};

/// All compute instances of the card in the order of the fixture; each is a MIG device, and its place is its index.
std::vector<mig_instance> mig_instances(const json& card);
mig_instance instance_of(const subject& subject);

return_code mig_handle(const char* uuid, device* target);
unsigned mig_index(const subject& subject);
std::string mig_uuid(const subject& subject);
/// "3g.40gb", or "1c.3g.40gb" for a part of the GPU instance's compute slices.
std::string mig_profile_name(const subject& subject);
mig_amount mig_memory(const subject& subject);

/// The card's profiles; failure{not_supported} where it has no MIG.
json profiles_of(const json& card);

}  // namespace nvml
