#pragma once
// Why a row of preflight ended as it did: a stable code and what its words are about. The words are those of the
// catalogue (text/messages.hpp), under `preflight_cause` and `preflight_advice`, so each reader has them in their own
// language. A code is never given another meaning: programs of other versions read it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/messages.hpp"

namespace api {

/// What a row finds and, unless it is in order, what to do. In brackets: the parameters of its words.
enum class check_cause : std::uint8_t {
  none,  ///< `found` of the row is a fact that needs no words, and nothing is to be done
  // what could not be seen
  not_mounted,               ///< {path} {place}
  unreadable,                ///< {path} {error}
  link_leads_out,            ///< {path}
  no_regular_file,           ///< {path}
  no_json,                   ///< {path}: of an older agent
  file_absent,               ///< {path}
  file_empty,                ///< {path}
  toolkit_without_version,   ///< {path}
  fabric_manager_elsewhere,  ///< in the driver's container
  runtime_unseen,
  runtime_unseen_but_snaps,  ///< and MicroK8s would not be seen
  follows,                   ///< {value} {check}: another check that failed is the cause
  driver_follows,            ///< {check}
  kernel_without_driver,     ///< {kernel}
  libraries_unseen,
  card_unknown,  ///< {card}
  nvml_pending,
  nvml_failed,  ///< {error}
  cuda_unsaid,
  runtime_program_absent,
  adapters_without_address,
  config_version_other,  ///< {path} {line} {version}
  config_too_large,      ///< {path} {limit} in KiB
  config_too_many,       ///< {path}
  import_pattern,        ///< {pattern}
  import_not_mounted,    ///< {path} {pattern}
  // cards and what drives them
  other_vendors,  ///< {cards}
  cards_absent,
  cards_passed_through,  ///< {cards}
  cards_without_driver,  ///< {cards}
  nouveau_absent,
  nouveau_bound,  ///< {cards}
  nouveau_loaded,
  kernel_other,    ///< {kernel} {kernels}
  driver_too_old,  ///< {needed}
  driver_not_loaded,
  driver_absent,
  library_other,             ///< {loaded} {libraries}
  libraries_mixed,           ///< {libraries}
  driver_too_old_for_card,   ///< {driver} {card} {architecture} {needed}
  driver_too_new_for_card,   ///< {driver} {card} {architecture} {branch}
  open_module_unfit,         ///< {card} {architecture}
  proprietary_module_unfit,  ///< {card} {architecture}
  // what containers open
  devices_missing,  ///< {devices}
  devices_closed,
  uvm_closed,
  uvm_device_missing,
  uvm_not_loaded,
  links_not_needed,
  links_complete,
  links_missing,  ///< {links}
  persistence_on,
  persistence_off,        ///< {number} {total}
  fabric_manager_other,   ///< {branch} {driver}
  fabric_manager_absent,  ///< {branch} {driver}
  fabric_manager_ended,   ///< {driver}
  fabric_joining,
  fabric_not_joined,
  // how cards come into containers; {names} are the runtimes of the node
  toolkit_too_old,          ///< {needed}
  config_line,              ///< {path} {line} {problem} {value}: the runtime does not load it
  config_line_later,        ///< {path} {line} {problem} {value}: containerd 2 does not load it, and containerd 1 does
  file_of_crio,             ///< {path} {line}
  plugin_disabled,          ///< {path} {line} {plugin}
  plugin_unnamed,           ///< {path} {line} {plugin}
  import_missing,           ///< {path} {line} {pattern}
  section_twice,            ///< {path} {table}
  section_other_version,    ///< {path} {line} {table} {version} {needed}
  runtime_undefined,        ///< {names} {advice}
  runtime_misplaced,        ///< {names} {path} {line} {key} {table} {advice}
  runtime_since,            ///< {names} {path} {line} {key} {table} {since} {advice}
  runtime_other_program,    ///< {names} {program} {advice}
  runtime_without_program,  ///< {names} {runtime} {key} {advice}
  runtime_program_missing,  ///< {names} {runtime} {program} {advice}
  runtime_without_type,     ///< {names} {runtime} {advice}
  runtime_other_type,       ///< {names} {runtime} {type} {needed} {advice}
  cgroups_quoted,           ///< {names} {runtime} {value} {advice}
  cgroups_unset,            ///< {names} {runtime} {source} {needed} {advice}
  cgroups_other,            ///< {names} {runtime} {value} {source} {needed} {advice}
  cgroups_misplaced,        ///< {names} {runtime} {path} {line} {key} {table} {advice}
  two_containerd,
  environment_without_runtime,
  environment_closed,
  environment_open,   ///< {path}
  default_broken,     ///< {advice}
  default_misplaced,  ///< {path} {line} {key} {table} {advice}
  default_since,      ///< {path} {line} {key} {table} {since} {advice}
  default_other,
  default_other_written,   ///< {advice}: a distribution writes the file
  default_without_nvidia,  ///< {advice}
  cdi_incomplete,          ///< {path}
  cdi_other_driver,        ///< {path} {drivers} {driver}
  cdi_device_missing,      ///< {path} {device}
  cdi_switched_off,
  limits_need_cgroup_v2,  ///< {driver}
  plugin_socket_missing,  ///< {path}
  pods_socket_missing,    ///< {path}
  // network and machine
  rdma_driver_too_old,  ///< {needed}
  rdma_not_loaded,
  ports_active,
  ports_idle,
  peermem_missing,
  adapters_far,  ///< {cards}
  machine_physical,
  machine_virtual,
  machine_physical_named,  ///< {machine}
  machine_virtual_named,   ///< {machine}
  machine_vgpu,            ///< {model}
  license_configured,
  license_missing,
};
inline constexpr std::size_t check_cause_count = static_cast<std::size_t>(check_cause::license_missing) + 1;
/// The code; empty for `none`.
std::string_view to_string(check_cause cause) noexcept;

/// What several causes have in common to be done: {advice} of their words.
enum class check_advice : std::uint8_t {
  fix_runtime,      ///< `quartermaster agent fix-runtime`
  set_default,      ///< the same with --set-default
  install_toolkit,  ///< the program of the runtime is missing
  rename_runtime,   ///< another program is called nvidia
  move_cgroups,     ///< SystemdCgroup of another runtime
  correct_file,     ///< a person has to: the runtime does not read it as it is
  replace_link,     ///< fix-runtime writes over no link
  k3s,              ///< these write containerd's configuration themselves
  k0s,
  microk8s,
};
inline constexpr std::size_t check_advice_count = static_cast<std::size_t>(check_advice::microk8s) + 1;
std::string_view to_string(check_advice advice) noexcept;

/// A cause with what its words are about.
struct explained_cause {
  check_cause code = check_cause::none;
  std::vector<text::parameter> parameters = {};
  friend bool operator==(const explained_cause&, const explained_cause&) = default;
};

}  // namespace api
