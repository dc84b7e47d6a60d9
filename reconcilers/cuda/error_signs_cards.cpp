// The card and its links, who ended a program, and what the driver says of it.

#include "reconcilers/cuda/error_signs.hpp"

namespace reconcilers::cuda {
namespace {

// The XIDs of a log are read by number (api/xid.hpp); here stand the other lines about the same defects.
constexpr error_signs cards_table[] = {
    // The card and its links
    {"xid-79", "", "",
     "fallen off the bus\n"
     "gpu has fallen off the bus\n"
     "gpu fallen off the bus",
     "nvrm: * fallen off the bus"},
    {"xid-memory", "", "",
     "double bit ecc error\n"
     "row remap failure",
     "nvrm: * row remapper: *\n"
     "nvrm: * double bit error\n"
     "remapping failure occurred : yes\n"
     "detected # volatile double-bit ecc error\n"
     "detected # uncorrectable remapped row\n"
     "gpu had uncorrectable memory errors\n"
     "retired pages pending : yes\n"
     "pending page blacklist : yes\n"
     "has pending page retirements\n"
     "row remapping failure\n"
     "row remap pending\n"
     "detected # dbe\n"
     "double bit ecc error * detected"},
    {"xid-nvlink", "", "", "nvlink error",
     "sxid (pci:*\n"
     "nvrm: * nvlink: fatal error\n"
     "detected nvswitch fatal error #\n"
     "nvlink is currently down\n"
     "nvlink * is down between gpu"},
    {"xid-gsp", "", "", "gsp error\ngsp timeout",
     "timeout waiting for rpc from gsp\n"
     "timeout after #s of waiting for rpc response from gpu# gsp\n"
     "nvrm: * waiting for rpc response from gpu# gsp\n"
     "cannot initialize gsp firmware rm\n"
     "nvrm: _kgsp*"},
    {"xid-card", "", "", "",
     "gpu requires reset\n"
     "nvml_error_reset_required"},
    {"ecc-error", "CUDA_ERROR_ECC_UNCORRECTABLE", "214", "uncorrectable ecc error",
     "cuda_error_ecc_uncorrectable\n"
     "cudaerroreccuncorrectable\n"
     "uncorrectable ecc error encountered\n"
     "uncorrectable ecc error detected\n"
     "cuda_error_contained\n"
     "cudaerrorcontained\n"
     "invalid access of peer gpu memory over nvlink or a hardware error"},
    {"nvlink-error", "CUDA_ERROR_NVLINK_UNCORRECTABLE", "220", "uncorrectable nvlink error",
     "cuda_error_nvlink_uncorrectable\n"
     "cudaerrornvlinkuncorrectable\n"
     "uncorrectable nvlink error detected"},
    {"gpu-lost", "", "", "gpu lost",
     "gpu is lost\n"
     "gpu_is_lost\n"
     "nvml_error_gpu_is_lost\n"
     "dcgm_st_gpu_is_lost\n"
     "unable to determine the device handle for gpu*\n"
     "err! err!\n"
     "error getting device handle * unknown error"},
    {"card-does-not-start", "", "", "",
     "rminitadapter failed\n"
     "rm_init_adapter failed\n"
     "nvrm: * rminitadapter: *\n"
     "nvrm: * failed to copy vbios to system memory\n"
     "nvrm: none of the nvidia * were initialized\n"
     "nvrm: this pci i/o region assigned to your nvidia device is invalid\n"
     "nvrm: *bar1 is 0m\n"
     "nvrm: the system bios may have misconfigured your gpu"},
    {"inforom-corrupted", "", "", "",
     "inforom is corrupted\n"
     "corrupted inforom\n"
     "inforom storage is corrupted\n"
     "nvml_error_corrupted_inforom"},
    {"pcie-error", "", "", "pcie bus error",
     "pcie bus error: severity=uncorrected\n"
     "pcie bus error: severity=uncorrectable\n"
     "aer: uncorrected (fatal) error received\n"
     "aer: uncorrected (non-fatal) error received\n"
     "aer: uncorrectable (fatal) error message received\n"
     "aer: uncorrectable (non-fatal) error message received\n"
     "dpc: containment event"},
    {"card-not-supported-by-driver", "", "", "",
     "nvrm: * is not supported by the nvidia\n"
     "nvrm: * is not supported by open\n"
     "nvrm: * requires use of the nvidia open kernel modules\n"
     "nvrm: * legacy drivers"},

    // Who ended the program, and what the driver says of it
    {"container-killed", "", "", "oomkilled\noom killed",
     "^killed$\n"
     "reason: oomkilled\n"
     "reason:oomkilled\n"
     "reason=oomkilled\n"
     "reason': 'oomkilled\n"
     "reason':'oomkilled\n"
     "oomkilled': true\n"
     "oomkilled':true\n"
     "oomkilled=true\n"
     "oomkilled # (\n"
     "oomkilled # #\n"
     "oomkilled，\n"
     "oomkilled。\n"
     "was oomkilled\n"
     "been oomkilled\n"
     "terminated (oomkilled)\n"
     "out of memory: killed process\n"
     "memory cgroup out of memory: kill process\n"
     "invoked oom-killer\n"
     "oom-kill:constraint=*\n"
     "killed by signal: killed\n"
     "signals.sigkill: 9\n"
     "signal 9 (sigkill)\n"
     "signal: killed\n"
     "code=killed, status=9/kill\n"
     "terminated with signal sigkill\n"
     "make: *** [*] error 137\n"
     "line #: # killed\n"
     "detected # oom_kill event\n"
     "srun: error: * out of memory",
     "137 -9"},
    {"pod-evicted", "", "", "evicted",
     "node was low on resource\n"
     "node had condition: [*pressure\n"
     "reason: evicted\n"
     "reason:evicted\n"
     "reason=evicted\n"
     "reason': 'evicted\n"
     "reason':'evicted\n"
     "evicted # (\n"
     "evicted # #\n"
     "exceeded its local ephemeral storage limit\n"
     "pod ephemeral local storage usage exceeds the total limit of containers\n"
     "usage of emptydir volume '*' exceeds the limit"},
    {"program-not-started", "", "", "starterror\ncontainercannotrun",
     "reason: starterror\n"
     "reason: containercannotrun",
     "127 126 128"},
    {"xid-program", "", "", "", ""},
    {"xid-154", "", "", "gpu recovery action",
     "gpu recovery action changed\n"
     "gpu recovery action : reset\n"
     "gpu recovery action : reboot\n"
     "gpu recovery action : drain*"},
    {"xid-other", "", "", "xid", ""},
};

}  // namespace

std::span<const error_signs> cards_error_signs() { return cards_table; }

}  // namespace reconcilers::cuda
