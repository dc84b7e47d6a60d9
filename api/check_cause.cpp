#include "api/check_cause.hpp"

#include <algorithm>
#include <array>

namespace api {
namespace {

template <class Code>
struct named_code {
  Code id;
  std::string_view name;
};

constexpr std::array<named_code<check_cause>, check_cause_count> causes{{
    {check_cause::none, ""},
    {check_cause::not_mounted, "not_mounted"},
    {check_cause::unreadable, "unreadable"},
    {check_cause::link_leads_out, "link_leads_out"},
    {check_cause::no_regular_file, "no_regular_file"},
    {check_cause::no_json, "no_json"},
    {check_cause::file_absent, "file_absent"},
    {check_cause::file_empty, "file_empty"},
    {check_cause::toolkit_without_version, "toolkit_without_version"},
    {check_cause::fabric_manager_elsewhere, "fabric_manager_elsewhere"},
    {check_cause::runtime_unseen, "runtime_unseen"},
    {check_cause::runtime_unseen_but_snaps, "runtime_unseen_but_snaps"},
    {check_cause::follows, "follows"},
    {check_cause::driver_follows, "driver_follows"},
    {check_cause::kernel_without_driver, "kernel_without_driver"},
    {check_cause::libraries_unseen, "libraries_unseen"},
    {check_cause::card_unknown, "card_unknown"},
    {check_cause::nvml_pending, "nvml_pending"},
    {check_cause::nvml_failed, "nvml_failed"},
    {check_cause::cuda_unsaid, "cuda_unsaid"},
    {check_cause::runtime_program_absent, "runtime_program_absent"},
    {check_cause::adapters_without_address, "adapters_without_address"},
    {check_cause::config_version_other, "config_version_other"},
    {check_cause::config_too_large, "config_too_large"},
    {check_cause::config_too_many, "config_too_many"},
    {check_cause::import_pattern, "import_pattern"},
    {check_cause::import_not_mounted, "import_not_mounted"},
    {check_cause::other_vendors, "other_vendors"},
    {check_cause::cards_absent, "cards_absent"},
    {check_cause::cards_passed_through, "cards_passed_through"},
    {check_cause::cards_without_driver, "cards_without_driver"},
    {check_cause::nouveau_absent, "nouveau_absent"},
    {check_cause::nouveau_bound, "nouveau_bound"},
    {check_cause::nouveau_loaded, "nouveau_loaded"},
    {check_cause::kernel_other, "kernel_other"},
    {check_cause::driver_too_old, "driver_too_old"},
    {check_cause::driver_not_loaded, "driver_not_loaded"},
    {check_cause::driver_absent, "driver_absent"},
    {check_cause::library_other, "library_other"},
    {check_cause::libraries_mixed, "libraries_mixed"},
    {check_cause::driver_too_old_for_card, "driver_too_old_for_card"},
    {check_cause::driver_too_new_for_card, "driver_too_new_for_card"},
    {check_cause::open_module_unfit, "open_module_unfit"},
    {check_cause::proprietary_module_unfit, "proprietary_module_unfit"},
    {check_cause::devices_missing, "devices_missing"},
    {check_cause::devices_closed, "devices_closed"},
    {check_cause::uvm_closed, "uvm_closed"},
    {check_cause::uvm_device_missing, "uvm_device_missing"},
    {check_cause::uvm_not_loaded, "uvm_not_loaded"},
    {check_cause::links_not_needed, "links_not_needed"},
    {check_cause::links_complete, "links_complete"},
    {check_cause::links_missing, "links_missing"},
    {check_cause::persistence_on, "persistence_on"},
    {check_cause::persistence_off, "persistence_off"},
    {check_cause::fabric_manager_other, "fabric_manager_other"},
    {check_cause::fabric_manager_absent, "fabric_manager_absent"},
    {check_cause::fabric_manager_ended, "fabric_manager_ended"},
    {check_cause::fabric_joining, "fabric_joining"},
    {check_cause::fabric_not_joined, "fabric_not_joined"},
    {check_cause::toolkit_too_old, "toolkit_too_old"},
    {check_cause::config_line, "config_line"},
    {check_cause::config_line_later, "config_line_later"},
    {check_cause::file_of_crio, "file_of_crio"},
    {check_cause::plugin_disabled, "plugin_disabled"},
    {check_cause::plugin_unnamed, "plugin_unnamed"},
    {check_cause::import_missing, "import_missing"},
    {check_cause::section_twice, "section_twice"},
    {check_cause::section_other_version, "section_other_version"},
    {check_cause::runtime_undefined, "runtime_undefined"},
    {check_cause::runtime_misplaced, "runtime_misplaced"},
    {check_cause::runtime_since, "runtime_since"},
    {check_cause::runtime_other_program, "runtime_other_program"},
    {check_cause::runtime_without_program, "runtime_without_program"},
    {check_cause::runtime_program_missing, "runtime_program_missing"},
    {check_cause::runtime_without_type, "runtime_without_type"},
    {check_cause::runtime_other_type, "runtime_other_type"},
    {check_cause::cgroups_quoted, "cgroups_quoted"},
    {check_cause::cgroups_unset, "cgroups_unset"},
    {check_cause::cgroups_other, "cgroups_other"},
    {check_cause::cgroups_misplaced, "cgroups_misplaced"},
    {check_cause::two_containerd, "two_containerd"},
    {check_cause::environment_without_runtime, "environment_without_runtime"},
    {check_cause::environment_closed, "environment_closed"},
    {check_cause::environment_open, "environment_open"},
    {check_cause::default_broken, "default_broken"},
    {check_cause::default_misplaced, "default_misplaced"},
    {check_cause::default_since, "default_since"},
    {check_cause::default_other, "default_other"},
    {check_cause::default_other_written, "default_other_written"},
    {check_cause::default_without_nvidia, "default_without_nvidia"},
    {check_cause::cdi_incomplete, "cdi_incomplete"},
    {check_cause::cdi_other_driver, "cdi_other_driver"},
    {check_cause::cdi_device_missing, "cdi_device_missing"},
    {check_cause::cdi_switched_off, "cdi_switched_off"},
    {check_cause::limits_need_cgroup_v2, "limits_need_cgroup_v2"},
    {check_cause::plugin_socket_missing, "plugin_socket_missing"},
    {check_cause::pods_socket_missing, "pods_socket_missing"},
    {check_cause::rdma_driver_too_old, "rdma_driver_too_old"},
    {check_cause::rdma_not_loaded, "rdma_not_loaded"},
    {check_cause::ports_active, "ports_active"},
    {check_cause::ports_idle, "ports_idle"},
    {check_cause::peermem_missing, "peermem_missing"},
    {check_cause::adapters_far, "adapters_far"},
    {check_cause::machine_physical, "machine_physical"},
    {check_cause::machine_virtual, "machine_virtual"},
    {check_cause::machine_physical_named, "machine_physical_named"},
    {check_cause::machine_virtual_named, "machine_virtual_named"},
    {check_cause::machine_vgpu, "machine_vgpu"},
    {check_cause::license_configured, "license_configured"},
    {check_cause::license_missing, "license_missing"},
}};
constexpr std::array<named_code<check_advice>, check_advice_count> advices{{
    {check_advice::fix_runtime, "fix_runtime"},
    {check_advice::set_default, "set_default"},
    {check_advice::install_toolkit, "install_toolkit"},
    {check_advice::rename_runtime, "rename_runtime"},
    {check_advice::move_cgroups, "move_cgroups"},
    {check_advice::correct_file, "correct_file"},
    {check_advice::replace_link, "replace_link"},
    {check_advice::k3s, "k3s"},
    {check_advice::k0s, "k0s"},
    {check_advice::microk8s, "microk8s"},
}};

constexpr bool is_in_order(const auto& table) {
  for (std::size_t i = 0; i < table.size(); ++i)
    if (static_cast<std::size_t>(table[i].id) != i) return false;
  return true;
}
static_assert(is_in_order(causes) && is_in_order(advices), "one name per code, in the order of the enumeration");

}  // namespace

std::string_view to_string(check_cause cause) noexcept { return causes[static_cast<std::size_t>(cause)].name; }
std::string_view to_string(check_advice advice) noexcept { return advices[static_cast<std::size_t>(advice)].name; }

}  // namespace api
