#pragma once
// The part of NVML's binary interface that is used here: the structs that cross it and the values of its enums. These
// are our own declarations; only sizes, order and numbers are NVML's (API 13, driver branch R580, and the limits of
// memory of R615). Handles are pointers.

#include <cstdint>

namespace nvml {

enum return_code : int {
  success = 0,
  uninitialized = 1,
  invalid_argument = 2,
  not_supported = 3,
  no_permission = 4,
  already_initialized = 5,
  not_found = 6,
  insufficient_size = 7,
  insufficient_power = 8,
  driver_not_loaded = 9,
  timeout = 10,
  irq_issue = 11,
  library_not_found = 12,
  function_not_found = 13,
  corrupted_inforom = 14,
  gpu_is_lost = 15,
  reset_required = 16,
  operating_system = 17,
  version_mismatch = 18,
  in_use = 19,
  memory_error = 20,
  no_data = 21,
  argument_version_mismatch = 25,
  not_ready = 27,
  gpu_not_found = 28,
  invalid_state = 29,
  unknown = 999,
};

struct handle;  // a card, a MIG device, a GPU instance or a compute instance
struct event_set;
using device = const handle*;

inline constexpr std::uint32_t no_instance = 0xffffffff;      // "no GPU or compute instance" in processes and events
inline constexpr std::uint64_t no_value = ~std::uint64_t{0};  // "not available" in processes
inline constexpr unsigned all_links = 0xffffffff;             // the scope of a field that sums over NVLinks
inline constexpr unsigned field_nvlink_transmitted = 138, field_nvlink_received = 139;  // KiB since the driver's start
inline constexpr unsigned max_links = 36;
inline constexpr unsigned gpu_instance_profiles = 0x12;
inline constexpr unsigned compute_instance_profiles = 9;

/// The version word that callers put into a struct: its size and the number of its version.
template <class T>
constexpr unsigned version_word(unsigned version) {
  return static_cast<unsigned>(sizeof(T)) | version << 24;
}

enum event_bit : std::uint64_t {
  event_single_bit_ecc = 1,
  event_double_bit_ecc = 2,
  event_performance_state = 4,
  event_xid = 8,
  event_clock = 0x10,
};

/// Why clocks are lower than they could be.
enum throttle_bit : std::uint64_t {
  throttle_idle = 1,
  throttle_applications_clocks = 2,
  throttle_sw_power_cap = 4,
  throttle_hw_slowdown = 8,
  throttle_sync_boost = 0x10,
  throttle_sw_thermal = 0x20,
  throttle_hw_thermal = 0x40,
  throttle_hw_power_brake = 0x80,
  throttle_display_clocks = 0x100,
};

/// Which processes may use a card.
enum compute_mode : int { compute_default = 0, compute_prohibited = 2, compute_exclusive_process = 3 };

enum ecc_error : unsigned { corrected = 0, uncorrected = 1 };
enum ecc_counter : unsigned { since_load = 0, for_life = 1 };

enum topology_level : int {
  internal = 0,
  single = 10,
  multiple = 20,
  host_bridge = 30,
  same_node = 40,
  across_nodes = 50
};
enum link_peer : int { peer_gpu = 0, peer_npu = 1, peer_switch = 2, peer_unknown = 0xff };
enum p2p_index : int { p2p_read = 0, p2p_write = 1, p2p_nvlink = 2, p2p_atomics = 3, p2p_pci = 4 };
enum p2p_status : int { p2p_ok = 0, p2p_chipset = 1, p2p_gpu = 2, p2p_not_supported = 5 };

struct pci_info {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

struct pci_info_ext {
  unsigned version, domain, bus, device, device_id, subsystem_id, base_class, sub_class;
  char bus_id[32];
};

/// In bytes, like all amounts of memory below without another unit in their name.
struct memory {
  std::uint64_t total, free, used;
};

struct memory_v2 {
  unsigned version;
  std::uint64_t total, reserved, free, used;
};

/// No limit.
inline constexpr std::uint64_t no_memory_limit = ~std::uint64_t{0};

/// Of one card for one cgroup, which is named by its full path. `reserved` is the soft limit. Seen in NVIDIA's header
/// as go-nvml v0.13.4-1 has it, and in nvidia-ml-py 13.615.71.
struct memory_limits {
  const char* cgroup;
  std::uint64_t reserved, most;
};

struct memory_limits_in_use {
  const char* cgroup;
  std::uint64_t reserved, most, used;
};

/// In percent of the last sample period.
struct utilization {
  unsigned gpu, memory;
};

struct process_v1 {
  unsigned pid;
  std::uint64_t used_memory;
};

struct process {
  unsigned pid;
  std::uint64_t used_memory;
  unsigned gpu_instance, compute_instance;
};

/// `time` in microseconds since 1970; the rest in percent.
struct process_sample {
  unsigned pid;
  std::uint64_t time;
  unsigned sm, memory, encoder, decoder;
};

/// `time` in microseconds since 1970; the rest but `pid` in percent.
struct process_info {
  std::uint64_t time;
  unsigned pid, sm, memory, encoder, decoder, jpeg, ofa;
};

struct process_info_list {
  unsigned version, count;
  std::uint64_t last_seen;
  process_info* samples;
};

/// Numbers of errors.
struct ecc_counts {
  std::uint64_t l1_cache, l2_cache, device_memory, register_file;
};

/// Numbers of memory banks, by how many spare rows they have left.
struct remap_histogram {
  unsigned max, high, partial, low, none;
};

struct addressing_mode {
  unsigned version, value;
};

struct temperature {
  unsigned version;
  int sensor, celsius;
};

union field_data {
  double real;
  int signed_int;
  unsigned unsigned_int;
  std::uint64_t unsigned_long;
};

/// Which member of `field_data` counts.
enum value_type : int { value_real = 0, value_unsigned_int = 1, value_unsigned_long = 2, value_unsigned_long_long = 3 };

/// `time` in microseconds since 1970; `type` says which member of `value` counts.
struct field_value {
  unsigned field, scope;
  std::int64_t time, latency_us;
  int type;
  return_code status;
  field_data value;
};

enum fabric_state : unsigned char {
  fabric_not_supported = 0,
  fabric_not_started = 1,
  fabric_in_progress = 2,
  fabric_completed = 3,
};

struct fabric_info {
  unsigned char cluster[16];
  return_code status;
  unsigned clique;
  unsigned char state;
};

struct fabric_info_v2 {
  unsigned version;
  unsigned char cluster[16];
  return_code status;
  unsigned clique;
  unsigned char state;
  unsigned health_mask;
};

struct fabric_info_v3 {
  unsigned version;
  unsigned char cluster[16];
  return_code status;
  unsigned clique;
  unsigned char state;
  unsigned health_mask;
  unsigned char health_summary;
};

struct event_data {
  device card;
  std::uint64_t type, data;
  unsigned gpu_instance, compute_instance;
};

struct driver_branch {
  unsigned version;
  char branch[80];
};

}  // namespace nvml
