#pragma once
// The structs of NVML's MIG functions.

#include "agent/cards/nvml_abi.hpp"

namespace nvml {

struct attributes {
  unsigned multiprocessors, copy_engines, decoders, encoders, jpeg, ofa, gpu_slices, compute_slices;
  std::uint64_t memory_mib;
};

struct placement {
  unsigned start, size;
};

struct gpu_instance_profile {
  unsigned id, is_p2p_supported, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpeg, ofa;
  std::uint64_t memory_mib;
};

struct gpu_instance_profile_v2 {
  unsigned version;
  unsigned id, is_p2p_supported, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpeg, ofa;
  std::uint64_t memory_mib;
  char name[96];
};

struct gpu_instance_profile_v3 {
  unsigned version;
  unsigned id, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpeg, ofa;
  std::uint64_t memory_mib;
  char name[96];
  unsigned capabilities;
};

struct gpu_instance_info {
  device card;
  unsigned id, profile;
  nvml::placement placement;
};

struct compute_instance_profile {
  unsigned id, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpeg, ofa;
};

struct compute_instance_profile_v2 {
  unsigned version;
  unsigned id, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpeg, ofa;
  char name[96];
};

struct compute_instance_profile_v3 {
  unsigned version;
  unsigned id, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpeg, ofa;
  char name[96];
  unsigned capabilities;
};

struct compute_instance_info {
  device card;
  device gpu_instance;
  unsigned id, profile;
  nvml::placement placement;
};

}  // namespace nvml
