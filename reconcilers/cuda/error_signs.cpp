#include "reconcilers/cuda/error_signs.hpp"

namespace reconcilers::cuda {
namespace {

// The XIDs of a log are read by number (api/xid.hpp); here stand the other lines about the same defects.
constexpr error_signs table[] = {
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
    {"xid-program", "", "", "", ""},
    {"xid-154", "", "", "gpu recovery action",
     "gpu recovery action changed\n"
     "gpu recovery action : reset\n"
     "gpu recovery action : reboot\n"
     "gpu recovery action : drain*"},
    {"xid-other", "", "", "xid", ""},

    // The driver of the node
    {"gpushare-refused", "", "", "",
     "no-gpu-has-*-to-run\n"
     "invalid allocation requst\n"
     "request gpu memory # can't be satisfied\n"
     "is not for gpu share, need skip"},
    {"driver-library-version", "", "", "version mismatch\ndriver library version mismatch",
     "driver/library version mismatch\n"
     "driver/library_version_mismatch\n"
     "nvml_error_lib_rm_version_mismatch\n"
     "nvrm: api mismatch\n"
     "kernel version * does not match dso version"},
    {"driver-not-loaded", "", "",
     "driver not loaded\n"
     "nvidia-smi has failed",
     "nvidia-smi has failed because it couldn't communicate with the nvidia driver\n"
     "couldn't communicate with the nvidia driver\n"
     "failed to initialize nvml: driver not loaded\n"
     "nvml: driver not loaded\n"
     "nvml error: driver not loaded\n"
     "driver error: failed to process request\n"
     "driver rpc error\n"
     "nvml_error_driver_not_loaded\n"
     "nvidia kernel module not loaded\n"
     "nvidia driver is not loaded\n"
     "kernel driver not installed\n"
     "kernel driver does not appear to be running on this host\n"
     "module nvidia not found\n"
     "could not insert 'nvidia*':\n"
     "nvrm: no nvidia gpu found\n"
     "nvrm: no nvidia devices probed\n"
     "nvrm: the nvidia probe routine was not called\n"
     "loaded and obtained ownership of the nvidia device\n"
     "nouveau kernel driver is currently in use\n"
     "nouveau * drm: vram: # mib\n"
     "nvrm: the nvidia probe routine failed\n"
     "nvidia: disagrees about version of symbol\n"
     "nvidia': key was rejected by service\n"
     "nvidia': required key not available\n"
     "error_driver_not_loaded"},
    {"driver-libraries-missing", "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", "303 34 221",
     "libcuda.so.1\n"
     "libnvidia-ml.so.1\n"
     "nvidia-smi not found",
     "cuda_error_shared_object_init_failed\n"
     "cudaerrorsharedobjectinitfailed\n"
     "cuda_error_stub_library\n"
     "cudaerrorstublibrary\n"
     "cuda_error_jit_compiler_not_found\n"
     "cudaerrorjitcompilernotfound\n"
     "shared object initialization failed\n"
     "cuda driver is a stub library\n"
     "ptx jit compiler library not found\n"
     "libcuda.so*: cannot open shared object file\n"
     "libcuda.so* not found\n"
     "libcuda.so*' not found\n"
     "could not find libcuda\n"
     "unable to find libcuda\n"
     "libcuda.so cannot found\n"
     "cannot find -lcuda\n"
     "could not load dynamic library 'libcuda.so\n"
     "error while loading shared libraries: libcuda.so\n"
     "libnvidia-ml.so*: cannot open shared object file\n"
     "libnvidia-ml.so* not found\n"
     "libnvcuvid.so*: cannot open shared object file\n"
     "libnvidia-encode.so*: cannot open shared object file\n"
     "libnvidia-ptxjitcompiler.so*: cannot open\n"
     "cannot load libcuda\n"
     "unable to load cuda driver library\n"
     "could not load nvml library\n"
     "nvml library not found\n"
     "nvml shared library not found\n"
     "failed to initialize nvml: library not found\n"
     "nvml: error_library_not_found\n"
     "error_library_not_found\n"
     "nvml_error_library_not_found\n"
     "nvmlerror_librarynotfound\n"
     "dcgm_st_library_not_found\n"
     "if this is a gpu node, did you set the docker default runtime to 'nvidia'\n"
     "if this is a gpu node, did you configure the nvidia container toolkit\n"
     "incompatible platform detected\n"
     "detected non-nvml platform\n"
     "incompatible strategy detected\n"
     "nvidia-smi': executable file not found\n"
     "nvidia-smi: command not found\n"
     "nvidia-smi: not found\n"
     "nvidia-smi': no such file or directory\n"
     "no such file or directory: 'nvidia-smi\n"
     "nvidia-smi couldn't find libnvidia-ml.so\n"
     "command not found: nvidia-smi\n"
     "nvidia-smi: no such file or directory\n"
     "command 'nvidia-smi' not found\n"
     "libcuda.so*: file too short\n"
     "because of: libcuda.so"},
    {"unsatisfied-condition", "", "", "", "unsatisfied condition"},
    {"insufficient-driver", "cudaErrorInsufficientDriver", "35 36", "",
     "cudaerrorinsufficientdriver\n"
     "driver version is insufficient for cuda runtime version\n"
     "nvidia driver on your system is too old\n"
     "nvidia driver is too old\n"
     "cuda driver version is too old\n"
     "your cuda driver is too old\n"
     "requires nvidia driver version * or newer\n"
     "nvidia driver too old\n"
     "api call is not supported in the installed cuda driver\n"
     "cudaerrorcallrequiresnewerdriver"},
    {"system-not-ready", "CUDA_ERROR_SYSTEM_NOT_READY", "802",
     "fabric manager\n"
     "fabricmanager",
     "cuda_error_system_not_ready\n"
     "cudaerrorsystemnotready\n"
     "system not yet initialized\n"
     "fabric manager nvidia gpu driver interface version * don't match\n"
     "failed to start nvidia fabric manager\n"
     "failed to start nvidia-fabricmanager\n"
     "nvidia-fabricmanager.service: failed\n"
     "request to query nvswitch device information * failed\n"
     "fabric manager is not running\n"
     "nvidia-fabricmanager.service: main process exited\n"
     "failed to initialize nvswitch\n"
     "failed to initialize nvlink fabric"},
    {"driver-mismatch", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "803", "",
     "cuda_error_system_driver_mismatch\n"
     "cudaerrorsystemdrivermismatch\n"
     "unsupported display driver / cuda driver combination"},
    {"forward-package-not-supported", "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "804", "forward compatibility",
     "cuda_error_compat_not_supported_on_device\n"
     "cudaerrorcompatnotsupportedondevice\n"
     "forward compatibility was attempted on non supported hw"},
    {"persistence-daemon", "", "", "nvidia-persistenced\npersistence daemon",
     "nvidia-persistenced failed to initialize\n"
     "failed to query nvidia devices. please ensure that the nvidia device files\n"
     "nvidia-persistenced.service: failed\n"
     "failed to start nvidia persistence daemon\n"
     "failed to open libnvidia-cfg.so.1\n"
     "nvidia-persistenced/socket: no such file\n"
     "nvidia-persistenced/socket: no such device or address\n"
     "driver error: timed out"},
    {"vgpu-license", "", "", "unlicensed",
     "license status : unlicensed\n"
     "vgpu license: unlicensed\n"
     "nvidia-gridd: * unlicensed\n"
     "nvidia-gridd: failed to acquire license\n"
     "nvidia-gridd: failed to acquire/renew license\n"
     "nvidia-gridd: mismatch between client and server\n"
     "nvidia-gridd: * license * expired"},

    // The container runtime and the kubelet
    {"no-runtime-nvidia", "", "", "",
     "no runtime for 'nvidia' is configured\n"
     "runtimehandler 'nvidia' not supported\n"
     "failed to find runtime handler nvidia\n"
     "unknown or invalid runtime name: nvidia\n"
     "unknown runtime specified nvidia\n"
     "runtimeclass * 'nvidia' not found\n"
     "runtimeclass 'nvidia' not found\n"
     "runtimeclass.node.k8s.io 'nvidia' not found\n"
     "could not select device driver * with capabilities: [[gpu\n"
     "could not select device driver * with capabilities: *gpu\n"
     "exec: 'nvidia-container-runtime': executable file not found\n"
     "nvidia-container-runtime-hook': executable file not found\n"
     "nvidia-container-runtime did not terminate successfully\n"
     "nvidia-container-runtime': no such file or directory\n"
     "nvidia-container-runtime: no such file or directory\n"
     "nvidia-container-runtime: executable file not found\n"
     "unable to locate any config files or nvidia-container-runtime"},
    {"runtime-hook-refused", "", "", "",
     "invoking the nvidia container runtime hook directly\n"
     "insufficient privileges to read device list from nvidia_visible_devices"},
    {"cdi-unresolvable", "", "", "",
     "unresolvable cdi device\n"
     "unresolvable cdi devices\n"
     "cdi device injection failed\n"
     "failed to inject cdi devices\n"
     "cdi devices from * unresolvable\n"
     "no cdi devices found\n"
     "cdi --device not supported\n"
     "failed to inject devices: unresolvable\n"
     "failed to create cdi spec modifier"},
    {"unknown-device", "", "", "",
     "nvidia-container-cli: device error: *unknown device\n"
     "nvidia-container-cli: mig error"},
    {"cgroup-device-rules", "", "", "",
     "failed to add device rules\n"
     "bpf_prog_query(bpf_cgroup_device) failed\n"
     "unable to find any existing device filters attached to the cgroup\n"
     "cgroup subsystem devices not found"},
    {"driver-files-in-image", "", "", "",
     "nvidia-container-cli: mount error: file creation failed: *: file exists\n"
     "nvidia-container-cli: ldcache error\n"
     "nvidia-container-cli: detection error"},
    {"nvml-unknown-error", "", "", "",
     "failed to initialize nvml: unknown error\n"
     "nvml: unknown error\n"
     "nvmlerror_unknown\n"
     "nvml_error_unknown\n"
     "nvml error: unknown error\n"
     "nvml init failed: unknown error\n"
     "nvml init failed: error_unknown\n"
     "failed to get handle: error_unknown"},
    {"device-files", "CUDA_ERROR_OPERATING_SYSTEM", "304", "insufficient permissions",
     "cuda_error_operating_system\n"
     "cudaerroroperatingsystem\n"
     "os call failed or operation not supported on this os\n"
     "failed to initialize nvml: insufficient permissions\n"
     "nvml: insufficient permissions\n"
     "nvml_error_no_permission\n"
     "failed to initialize nvml: driver is not accessible\n"
     "could not open the device file /dev/nvidia*\n"
     "dev/nvidia*: operation not permitted\n"
     "dev/nvidia*: permission denied\n"
     "dev/nvidia*: no such file or directory\n"
     "dev/nvidia*': no such file or directory\n"
     "dev/nvidia*: no such device\n"
     "dev/nvidia*: input/output error\n"
     "failed to open /dev/nvidia*\n"
     "dev/nvidia* does not exist\n"
     "stat failed: /dev/nvidia*\n"
     "nvml error: insufficient permissions"},
    {"no-devices-found", "", "", "",
     "no devices were found\n"
     "no devices found. waiting indefinitely\n"
     "nvml: not found\n"
     "nvml: invalid argument\n"
     "nvmlerror_notfound\n"
     "nvml_error_not_found"},
    {"webhook-failed", "", "", "",
     "failed calling webhook\n"
     "failed calling admission webhook\n"
     "failed to call webhook\n"
     "http: tls handshake error * remote error: tls: bad certificate"},
    {"hami-no-decision", "", "", "",
     "no binding pod found on node\n"
     "device number not matched\n"
     "device request not found\n"
     "no pending device allocation found"},
    {"gpu-manager-refused", "", "", "",
     "nvidia node mismatch for pod\n"
     "failed to find predicate idx for pod\n"
     "predicate idx * invalid\n"
     "failed to get predicate node\n"
     "can not find evaluator *\n"
     "cores are greater than 100, must be multiple of\n"
     "cores or memory is zero is not permitted in share mode\n"
     "allocate failed due to * no free node\n"
     "allocate failed due to * request memory # is larger than"},
    {"unexpected-admission-error", "", "", "",
     "unexpectedadmissionerror\n"
     "pod was rejected: allocate failed due to\n"
     "allocate failed due to\n"
     "no healthy devices present; cannot allocate unhealthy devices\n"
     "requested number of devices unavailable for\n"
     "cannot allocate unhealthy devices\n"
     "invalid allocation request*unknown device\n"
     "can't allocate unregistered device"},
    {"topology-affinity", "", "", "",
     "topologyaffinityerror\n"
     "resources cannot be allocated with topology locality"},
    {"insufficient-cards", "", "", "insufficient nvidia.com/gpu",
     "insufficient nvidia.com/*\n"
     "insufficient tencent.com/vcuda*\n"
     "insufficient aliyun.com/gpu*\n"
     "insufficient volcano.sh/*\n"
     "no available vgpu node found\n"
     "no available node, # nodes do not meet\n"
     "can fulfill resource request {'gpu'*\n"
     "cardinsufficientmemory\n"
     "cardinsufficientcore\n"
     "cardtimeslicingexhausted\n"
     "cardcomputeunitsexhausted\n"
     "nodeinsufficientdevice\n"
     "insufficient gpu memory in one device\n"
     "not enough gpu fitted on this node\n"
     "allocatedcardsinsufficientrequest\n"
     "insufficient huawei.com/*\n"
     "insufficient amd.com/gpu*\n"
     "insufficient mthreads.com/*\n"
     "insufficient cambricon.com/*\n"
     "insufficient hygon.com/*\n"
     "insufficient metax-tech.com/*\n"
     "insufficient iluvatar.ai/*\n"
     "insufficient enflame.com/*\n"
     "insufficient kunlunxin.com/*\n"
     "insufficient gpu.intel.com/*"},
    {"hami-node-unregistered", "", "", "",
     "node unregistered\n"
     "nodes unregistered\n"
     "node usage unavailable"},
    {"hami-refused", "", "", "",
     "cardtypemismatch\n"
     "carduuidmismatch\n"
     "numanotfit\n"
     "modenotfit\n"
     "cardnothealth\n"
     "cardcordoned\n"
     "exclusivedeviceallocateconflict\n"
     "cardnotfoundcustomfilterrule\n"
     "cardmigtopologyinfeasible\n"
     "nodeunfitpod"},
    {"hami-node-lock", "", "", "",
     "has been locked within 5 minutes\n"
     "node * has been locked within\n"
     "nodelock failed\n"
     "node lock failed\n"
     "failed to lock node\n"
     "node lock contention\n"
     "failed to set node lock"},
    {"taint-or-selector", "", "", "",
     "had untolerated taint {nvidia.com/*\n"
     "had untolerated taint {quartermaster.io/*\n"
     "had untolerated taint {gpu*\n"
     "didn't match pod's node affinity/selector\n"
     "had taint {nvidia.com/*"},
    {"quota-exceeded", "", "", "",
     "exceeded quota: *nvidia.com/*\n"
     "exceeded quota: *tencent.com/*\n"
     "exceeded quota: *aliyun.com/*\n"
     "exceeded quota: *volcano.sh/*\n"
     "must specify *requests.nvidia.com/*\n"
     "resourcequotanotfit\n"
     "exceeded quota: *huawei.com/*\n"
     "exceeded quota: *amd.com/*\n"
     "exceeded quota: *mthreads.com/*"},
    {"amount-refused", "", "", "",
     "resources.*[*.*/*]: invalid value: *: must be an integer\n"
     "must be equal to * limit of *\n"
     "must be equal to nvidia.com/* limit\n"
     "must be less than or equal to * limit of nvidia.com/*\n"
     "limit must be set for non overcommitable resources"},
    {"dra-claims", "", "", "",
     "cannot allocate all claims\n"
     "failed to prepare dynamic resources\n"
     "failedpreparedynamicresources\n"
     "nodeprepareresources failed\n"
     "nodeprepareresources: *\n"
     "dra driver * is not registered\n"
     "not found in the list of registered dra plugins\n"
     "resourceclaim not created yet\n"
     "waiting for resourceclaim *\n"
     "resourceclaim * not found\n"
     "running 'dynamicresources' filter plugin: *"},
    {"kueue-quota", "", "", "",
     "couldn't assign flavors to pod set *\n"
     "insufficient unused quota for *\n"
     "insufficient quota for *.com/* in flavor *\n"
     "unavailable in clusterqueue"},
    {"kubelet-socket", "", "", "",
     "device-plugins/kubelet.sock: connect: no such file or directory\n"
     "device-plugins/kubelet.sock: connect: connection refused\n"
     "kubelet.sock: no such file or directory\n"
     "could not register device plugin: *\n"
     "failed to register with kubelet: *"},
    {"mig-layout", "", "", "",
     "more than 1 mig device types present on node\n"
     "has an invalid mig configuration\n"
     "invalid mig configuration\n"
     "all devices on the node must be configured with the same migenabled value\n"
     "error getting mig devices*\n"
     "error visiting mig devices*"},
    {"mig-in-use", "", "", "in use by another client",
     "unable to destroy gpu instance*\n"
     "unable to destroy compute instance*\n"
     "failed to destroy gpu instances\n"
     "failed to destroy compute instances\n"
     "gpu * in use by another client\n"
     "is currently being used by one or more other processes\n"
     "mig mode is in pending enable state\n"
     "mig mode is in pending disable state\n"
     "unable to enable mig mode for gpu\n"
     "unable to disable mig mode for gpu\n"
     "nvml_error_in_use\n"
     "compute instance * in use by another client\n"
     "gpu instance * in use by another client"},
    {"inotify-limit", "", "", "",
     "failed to create fs watcher\n"
     "inotify_init*: too many open files\n"
     "inotify instances: too many open files\n"
     "failed to create fsnotify watcher: too many open files"},

    // Cards of other vendors
    {"ascend-device", "", "", "npu-smi",
     "dcmi model initialized failed\n"
     "dcmi module initialize failed\n"
     "npu-smi: command not found\n"
     "npu-smi: not found\n"
     "npu-smi': executable file not found\n"
     "npu-smi': no such file or directory\n"
     "can not use command npu-smi\n"
     "libascend_hal.so*: cannot open shared object file\n"
     "libdcmi.so*: cannot open shared object file\n"
     "libascendcl.so*: cannot open shared object file\n"
     "libhccl.so*: cannot open shared object file\n"
     "can't get ascend_hal device count\n"
     "drvmnggetconsoleloglevel failed\n"
     "drvretcode=87\n"
     "drverr=87\n"
     "drvret=87\n"
     "errcode=507899\n"
     "error code is 507899\n"
     "runtime result = 507899\n"
     "el0005"},
    {"ascend-memory", "", "", "",
     "npu out of memory\n"
     "el0004\n"
     "aclrtmalloc failed\n"
     "rtmalloc failed\n"
     "rtmalloc*errcode=207001\n"
     "error code is 207001\n"
     "errcode=207001\n"
     "acl_error_rt_memory_allocation"},
    {"ascend-hccl", "", "", "",
     "ei0002\n"
     "ei0004\n"
     "ei0005\n"
     "ei0006\n"
     "ei#: [pid\n"
     "ej0001\n"
     "ej0003\n"
     "ej#: [pid\n"
     "call hccl api failed\n"
     "hccl_e_*"},
    {"ascend-cann", "", "", "cann",
     "ez9999\n"
     "ee9999\n"
     "ez#: [pid\n"
     "ez#[pid\n"
     "ee#: [pid\n"
     "ee#[pid\n"
     "eh#: [pid\n"
     "e#: inner error\n"
     "e#: [pid\n"
     "call acl api failed\n"
     "npu function error: *\n"
     "npu error, error code is #\n"
     "aicore exception\n"
     "aivec error exception\n"
     "vector core exception\n"
     "err99999 unknown\n"
     "e#: #-#-#-#:#"},
    {"amd-no-binary", "", "", "",
     "hiperrornobinaryforgpu\n"
     "hiperrorinvaliddevicefunction\n"
     "hiperrorinvalidimage\n"
     "hiperrorinvalidkernelfile\n"
     "hip error: invalid device function\n"
     "hip error: no kernel image\n"
     "hip error: device kernel image is invalid\n"
     "rocblas error: cannot read\n"
     "rocblas error: could not initialize tensile\n"
     "unable to find code object for all current devices"},
    {"amd-memory", "", "", "",
     "hip out of memory\n"
     "hiperroroutofmemory\n"
     "hiperrormemoryallocation\n"
     "hip error: out of memory"},
    {"amd-device", "", "", "rocm-smi\namd-smi\nrocminfo",
     "unable to open /dev/kfd*\n"
     "rock module is not loaded\n"
     "no hip gpus are available\n"
     "no rocm-capable device is detected\n"
     "hiperrornodevice\n"
     "hsa_status_error_out_of_resources\n"
     "dev/kfd*: permission denied\n"
     "dev/kfd*: no such file or directory\n"
     "libamdhip64.so*: cannot open shared object file\n"
     "libhsa-runtime64.so*: cannot open shared object file\n"
     "rocm-smi: command not found\n"
     "rocm-smi: not found\n"
     "rocm-smi': executable file not found\n"
     "amd-smi: command not found\n"
     "amd-smi: not found\n"
     "hip error: no rocm-capable device"},
    {"amd-fault", "", "", "",
     "memory access fault by gpu node\n"
     "hw exception by gpu node\n"
     "hsa_status_error_exception\n"
     "hsa_status_error_memory_aperture_violation\n"
     "hsa_status_error_memory_fault\n"
     "hsa_status_error_illegal_instruction\n"
     "hiperrorillegaladdress\n"
     "hiperrorlaunchfailure\n"
     "hip error: an illegal memory access\n"
     "hip error: unspecified launch failure\n"
     "amdgpu: ring * timeout\n"
     "amdgpu_job_timedout\n"
     "amdgpu: gpu reset begin\n"
     "amdgpu: * page fault (src_id\n"
     "amdgpu: uncorrectable hardware errors\n"
     "gcvm_l2_protection_fault_status\n"
     "mmvm_l2_protection_fault_status\n"
     "vm_l2_protection_fault_status\n"
     "unrecoverable state, issue a gpu reset"},
    {"moore-threads", "", "", "musa\nmthreads-gmi",
     "musa error: *\n"
     "musa out of memory\n"
     "musaerror*\n"
     "no musa gpus are available\n"
     "musa driver version is insufficient\n"
     "libmusa.so*: cannot open shared object file\n"
     "libmusart.so*: cannot open shared object file\n"
     "mthreads-gmi: command not found\n"
     "mthreads-gmi: not found\n"
     "mthreads-gmi': executable file not found"},
    {"jetson", "", "", "jetson",
     "nvrmmeminitnvmap failed\n"
     "nvmapmemallocinternaltagged: *\n"
     "nvmapmemhandlealloc: error"},

    // Which cards the program has
    {"no-cuda-device", "CUDA_ERROR_NO_DEVICE", "100 38", "no gpu\nno cuda device",
     "cuda_error_no_device\n"
     "cudaerrornodevice\n"
     "torch.cuda.is_available() false\n"
     "torch.cuda.is_available() is false\n"
     "torch.cuda.is_available(): false\n"
     "torch.cuda.is_available() returns false\n"
     "torch.cuda.is_available() returned false\n"
     "torch.cuda.is_available() -> false\n"
     "torch.cuda.is_available() == false\n"
     "torch.cuda.is_available()) false\n"
     "no cuda gpus are available\n"
     "no cuda-capable device is detected\n"
     "no cuda-capable device is available\n"
     "no cuda devices available\n"
     "no cuda devices are available\n"
     "no cuda device is available\n"
     "found no nvidia driver on your system\n"
     "torch not compiled with cuda enabled\n"
     "failed to infer device type\n"
     "could not find cuda drivers on your machine\n"
     "could not find any cuda\n"
     "no visible gpu devices\n"
     "no gpu/tpu found, falling back to cpu\n"
     "unable to initialize backend 'cuda'\n"
     "unable to initialize backend 'gpu'\n"
     "a cuda-enabled jaxlib is not installed\n"
     "cuda-enabled jaxlib is not installed\n"
     "no compatible gpus were discovered\n"
     "no usable gpu found\n"
     "no nvidia gpu detected\n"
     "no accelerator (cuda*) is available\n"
     "gpu support is not available\n"
     "not compiled with gpu support\n"
     "compiled without gpu support\n"
     "no gpu available\n"
     "no gpus available\n"
     "no gpus found\n"
     "cuda is not available\n"
     "cuda not available\n"
     "torch.cuda.is_available() = false\n"
     "torch.cuda.is_available()=false\n"
     "cuda available: false\n"
     "cuda is available: false\n"
     "list_physical_devices('gpu') []\n"
     "list_physical_devices('gpu')) []\n"
     "num gpus available: 0"},
    {"invalid-device", "CUDA_ERROR_INVALID_DEVICE", "101", "",
     "cuda_error_invalid_device\n"
     "cudaerrorinvaliddevice\n"
     "invalid device ordinal\n"
     "invalid cuda device\n"
     "invalid cuda 'device=#\n"
     "assertionerror: invalid device id\n"
     "duplicate gpu detected\n"
     "multiple ranks are using the same gpu\n"
     "attempting to deserialize object on cuda device #"},
    {"parallel-size", "", "", "tensor-parallel-size\ntensor_parallel_size",
     "world size (#) is larger than the number of available gpus\n"
     "world size is larger than the number of available gpus\n"
     "local rank is larger than the number of available gpus\n"
     "number of required gpus exceeds the total number of available gpus\n"
     "tensor parallel size (#) cannot be larger than the number of available\n"
     "must be divisible by tensor parallel size\n"
     "must be divisible by tensor_parallel_size\n"
     "must be divisible by tp_size\n"
     "must be divisible by 'num_shards'\n"
     "is not divisible by tensor parallel size\n"
     "sharded is true but only found # cuda devices"},
    {"devices-unavailable", "CUDA_ERROR_DEVICE_UNAVAILABLE", "46", "devices unavailable\ndevice unavailable",
     "cuda_error_device_unavailable\n"
     "cudaerrordevicesunavailable\n"
     "cudaerrordeviceunavailable\n"
     "cuda-capable device(s) is/are busy or unavailable\n"
     "cuda-capable devices are busy or unavailable\n"
     "cuda-capable device is busy or unavailable\n"
     "devices are busy or unavailable\n"
     "failed to get device properties, error code: 46"},
    {"mps", "CUDA_ERROR_MPS_CONNECTION_FAILED", "805 806 807 808 809 810", "mps",
     "cuda_error_mps_connection_failed\n"
     "cudaerrormpsconnectionfailed\n"
     "cuda_error_mps_rpc_failure\n"
     "cudaerrormpsrpcfailure\n"
     "cuda_error_mps_server_not_ready\n"
     "cudaerrormpsservernotready\n"
     "cuda_error_mps_max_clients_reached\n"
     "cudaerrormpsmaxclientsreached\n"
     "cuda_error_mps_max_connections_reached\n"
     "cudaerrormpsmaxconnectionsreached\n"
     "cuda_error_mps_client_terminated\n"
     "cudaerrormpsclientterminated\n"
     "mps client failed to connect to the mps control daemon\n"
     "mps client failed to connect\n"
     "mps server is not ready\n"
     "the mps server is not ready to accept new mps client requests\n"
     "the remote procedural call between the mps server and the mps client failed\n"
     "the hardware resources required to create mps client have been exhausted\n"
     "the hardware resources required to support device connections have been exhausted\n"
     "the mps client has been terminated by the server\n"
     "cannot find mps control daemon process\n"
     "failed to start mps daemon\n"
     "error getting daemons: *mps\n"
     "mps daemon * not healthy\n"
     "an instance of this daemon is already running\n"
     "mps daemon is not ready\n"
     "mps control daemon * not running\n"
     "failed to connect to mps control daemon\n"
     "mps server is not running\n"
     "error waiting for mps daemon\n"
     "error checking mps daemon health\n"
     "mps daemon is not running"},

    // Memory
    {"vllm-memory", "", "",
     "gpu_memory_utilization\n"
     "gpu-memory-utilization",
     "free memory on device * is less than desired gpu memory utilization\n"
     "no available memory for the cache blocks\n"
     "error in memory profiling\n"
     "is larger than the maximum number of tokens that can be stored in kv cache\n"
     "larger than the available kv cache memory\n"
     "larger than available kv cache memory\n"
     "try to increase --mem-fraction-static\n"
     "kv cache is too small\n"
     "not enough memory to handle # prefill tokens\n"
     "insufficient gpu memory for kv cache\n"
     "not enough gpu memory to load the model\n"
     "not enough memory. please try * --mem-fraction-static"},
    {"out-of-memory", "CUDA_ERROR_OUT_OF_MEMORY", "2",
     "out of memory\n"
     "oom\n"
     "gpu out of memory\n"
     "outofmemoryerror\n"
     "torch.outofmemoryerror\n"
     "torch.cuda.outofmemoryerror",
     "cuda_error_out_of_memory\n"
     "cudaerrormemoryallocation\n"
     "cuda out of memory\n"
     "cuda error: out of memory\n"
     "cuda driver error: out of memory\n"
     "cuda runtime error: out of memory\n"
     "cuda runtime error (#) : out of memory\n"
     "cuda failure 2: out of memory\n"
     "cuda failure 'out of memory'\n"
     "cuda failure: out of memory\n"
     "cuda error # 'out of memory'\n"
     "cuda oom\n"
     "outofmemoryerror: cuda\n"
     "cudamalloc failed: out of memory\n"
     "cudamalloc*: out of memory\n"
     "cumem*: out of memory\n"
     "cumemalloc* out_of_memory\n"
     "memory allocation error: out of memory\n"
     "cudasuccess (# vs. #) out of memory\n"
     "cudasuccess (2 vs. 0)\n"
     "oom when allocating tensor\n"
     "ran out of memory trying to allocate\n"
     "out of memory while trying to allocate\n"
     "out of memory trying to allocate\n"
     "resource_exhausted: out of memory\n"
     "resourceexhaustederror: out of memory\n"
     "resource exhausted: oom\n"
     "out of memory error on gpu\n"
     "failed to allocate memory for requested buffer of size\n"
     "failed to allocate request for #* on device ordinal\n"
     "dst tensor is not initialized\n"
     "cannot allocate memory on gpu\n"
     "defaultallocator: *out of memory\n"
     "std::bad_alloc: out_of_memory: cuda error\n"
     "std::bad_alloc: cuda error\n"
     "device # oom # / #\n"
     "device # oom #\n"
     "cumemoryallocate failed res=#\n"
     "hami-core error * oom\n"
     "hami-core error * out of memory\n"
     "hami-core error * cumem* failed\n"
     "unable to allocate cuda# buffer\n"
     "failed to allocate cuda# buffer\n"
     "requires more vram than is available\n"
     "cuda runtime (out of memory)\n"
     "outofmemoryerror: out of memory allocating\n"
     "cuda error *'out of memory'\n"
     "cuda out_of_memory"},
    {"preload-failed", "", "", "",
     "libvgpu*' from * cannot be preloaded\n"
     "libcuda-control*' from * cannot be preloaded\n"
     "libvgpu*: undefined symbol\n"
     "libvgpu*: cannot open shared object file\n"
     "libvgpu*: no such file or directory"},
    {"glibc-too-old", "", "", "",
     "version 'glibc_*' not found\n"
     "version 'glibcxx_*' not found\n"
     "version 'cxxabi_*' not found"},
    {"vcuda-library", "", "", "vcuda",
     "register.c:# can't register to manager\n"
     "register.c:# rpc client exit with #\n"
     "register.c:# create pipe failed\n"
     "register.c:# waitpid failed\n"
     "loader.c:# can't find library\n"
     "loader.c:# can't get config file path\n"
     "loader.c:# can't open /etc/vcuda*\n"
     "loader.c:# can't open *vcuda.config\n"
     "hijack_call.c:# can't *\n"
     "hijack_call.c:# cuinit error\n"
     "fail to get response from manager, error\n"
     "can't dial /etc/vcuda/*"},
    {"hami-library", "", "", "",
     "unified_lock* waiting\n"
     "fail to lock shrreg\n"
     "failed to lock shrreg\n"
     "fail to init shrreg\n"
     "host pid is error\n"
     "set_task_pid failed"},
    {"shared-memory-too-small", "", "", "shm\n/dev/shm",
     "creating shared memory segment /dev/shm\n"
     "bus error (core dumped)\n"
     "error while creating shared memory segment\n"
     "error while attaching to shared memory segment\n"
     "dev/shm/nccl* no space left on device\n"
     "posix_fallocate failed*no space left on device\n"
     "call to posix_fallocate failed\n"
     "call to ftruncate failed*no space left on device\n"
     "workers are out of shared memory\n"
     "dataloader worker (pid*) is killed by signal: bus error\n"
     "insufficient shared memory (shm)\n"
     "unable to write to file </torch_*\n"
     "unable to open shared memory object </torch_*\n"
     "unable to mmap # bytes from file </torch_*\n"
     "no space left on device: '/dev/shm\n"
     "dev/shm' has only # bytes available\n"
     "object store is using /tmp instead of /dev/shm\n"
     "shmget failed\n"
     "failed to extend /dev/shm"},
    {"dataloader-worker", "", "", "dataloader",
     "dataloader worker (pid(s) *) exited unexpectedly\n"
     "dataloader worker (pid *) exited unexpectedly\n"
     "dataloader worker (pid *) is killed by signal: segmentation fault\n"
     "dataloader worker (pid *) is killed by signal: aborted\n"
     "dataloader worker (pid *) is killed by signal: terminated\n"
     "dataloader timed out after # seconds"},
    {"locked-memory", "", "", "memlock\nmax locked memory",
     "ibv_reg_mr* failed * cannot allocate memory\n"
     "ibv_create_cq* cannot allocate memory\n"
     "ibv_reg_dmabuf_mr* failed * cannot allocate memory\n"
     "could not create qp * cannot allocate memory\n"
     "memlock limit is too low\n"
     "the total amount of memory that may be pinned\n"
     "ulimit -l * too low"},

    // What the image was built for
    {"invalid-image", "CUDA_ERROR_INVALID_IMAGE", "200", "",
     "cuda_error_invalid_image\n"
     "cudaerrorinvalidkernelimage\n"
     "device kernel image is invalid"},
    {"no-binary-for-gpu", "CUDA_ERROR_NO_BINARY_FOR_GPU", "209 98", "no kernel image",
     "cuda_error_no_binary_for_gpu\n"
     "cudaerrornokernelimagefordevice\n"
     "cudaerrorinvaliddevicefunction\n"
     "no kernel image is available for execution\n"
     "no kernel image is available for this device\n"
     "with cuda capability sm_* is not compatible with the current pytorch installation\n"
     "is not compatible with the current pytorch installation\n"
     "current pytorch install supports cuda capabilities\n"
     "no longer supports this gpu because it is too old\n"
     "supports cuda capabilities * minimum cuda capability\n"
     "invalid device function\n"
     "not compiled for sm_*\n"
     "sm_* is not supported\n"
     "sm_* not supported\n"
     "could not load ptx or cubin"},
    {"toolkit-too-old", "", "", "",
     "value 'sm_*' is not defined for option\n"
     "value 'compute_*' is not defined for option\n"
     "unsupported gpu architecture 'compute_*\n"
     "unsupported gpu architecture 'sm_*\n"
     "unsupported architecture for sm_*\n"
     "unrecognized option for gpu-name\n"
     "invalid value for --gpu-architecture\n"
     "unknown cuda arch"},
    {"unsupported-ptx-version", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "222 218 223", "",
     "cuda_error_unsupported_ptx_version\n"
     "cudaerrorunsupportedptxversion\n"
     "cuda_error_invalid_ptx\n"
     "cudaerrorinvalidptx\n"
     "a ptx jit compilation failed\n"
     "ptx was compiled with an unsupported toolchain\n"
     "unsupported .version *; current version is\n"
     "cudaerrorjitcompilationdisabled\n"
     "cuda_error_jit_compilation_disabled"},
    {"compute-capability-too-low", "", "", "",
     "flashattention only supports ampere gpus or newer\n"
     "flashattention only supports * gpus\n"
     "requires .target sm_* or higher\n"
     "fp8e4nv data type is not supported on cuda arch\n"
     "fp8e4nv not supported in this architecture\n"
     "requires compute capability >= #\n"
     "requires gpus with compute capability\n"
     "requires device with capability\n"
     "is not supported on gpus with compute capability\n"
     "not supported for the current gpu. minimum capability\n"
     "minimum capability: #. current capability: #"},
    {"vllm-bf16", "", "", "bf16", "bfloat16 is only supported on gpus with compute capability"},
    {"cuda-library-missing", "", "", "",
     "libcudart.so*: cannot open shared object file\n"
     "libcudnn*.so*: cannot open shared object file\n"
     "libcublas*.so*: cannot open shared object file\n"
     "libcufft.so*: cannot open shared object file\n"
     "libcurand.so*: cannot open shared object file\n"
     "libcusparse*.so*: cannot open shared object file\n"
     "libcusolver.so*: cannot open shared object file\n"
     "libcupti.so*: cannot open shared object file\n"
     "libnvinfer*.so*: cannot open shared object file\n"
     "libnvonnxparser.so*: cannot open shared object file\n"
     "libnvrtc*.so*: cannot open shared object file\n"
     "libnccl.so*: cannot open shared object file\n"
     "libnvjitlink.so*: cannot open shared object file\n"
     "could not load dynamic library 'libcudart*\n"
     "could not load dynamic library 'libcudnn*\n"
     "could not load dynamic library 'libcublas*\n"
     "could not load dynamic library 'libcufft*\n"
     "could not load dynamic library 'libcurand*\n"
     "could not load dynamic library 'libcusparse*\n"
     "could not load dynamic library 'libcusolver*\n"
     "could not load dynamic library 'libnvinfer*\n"
     "could not load library libcudnn*\n"
     "unable to load any of {libcudnn\n"
     "cannot dlopen some gpu libraries\n"
     "loaded runtime cudnn library: * but source was compiled with\n"
     "outdated cudnn installation found\n"
     "cudnn version incompatibility\n"
     "cudnn_status_version_mismatch\n"
     "libnvjitlink.so*: undefined symbol\n"
     "undefined symbol: __nvjitlink\n"
     "failed to create cudaexecutionprovider\n"
     "failed to load library libonnxruntime_providers_cuda.so"},
    {"tensorrt-engine", "", "", "",
     "engine plan file is generated on an incompatible device\n"
     "engine plan file is not compatible with this version of tensorrt\n"
     "using an engine plan file across different models of devices\n"
     "serialization assertion * failed\n"
     "version tag does not match\n"
     "failed to deserialize cuda engine\n"
     "failed due to an old deserialization call"},

    // The program
    {"device-assert", "CUDA_ERROR_ASSERT", "710 59", "device-side assert",
     "cuda_error_assert\n"
     "cudaerrorassert\n"
     "device-side assert triggered\n"
     "cuda error: device-side assert\n"
     "assertion 'srcindex < srcselectdimsize' failed\n"
     "assertion 't >= 0 && t < n_classes' failed\n"
     "block: [#,#,#], thread: [#,#,#] assertion"},
    {"illegal-address", "CUDA_ERROR_ILLEGAL_ADDRESS", "700 77", "illegal memory access",
     "cuda_error_illegal_address\n"
     "cudaerrorillegaladdress\n"
     "illegal memory access was encountered\n"
     "illegal memory access encountered"},
    {"launch-failure", "CUDA_ERROR_LAUNCH_FAILED", "719", "",
     "cuda_error_launch_failed\n"
     "cudaerrorlaunchfailure\n"
     "unspecified launch failure"},
    {"misaligned-address", "CUDA_ERROR_MISALIGNED_ADDRESS", "716 714 715 717 718", "misaligned address",
     "cuda_error_misaligned_address\n"
     "cudaerrormisalignedaddress\n"
     "cuda_error_illegal_instruction\n"
     "cudaerrorillegalinstruction\n"
     "cuda_error_hardware_stack_error\n"
     "cudaerrorhardwarestackerror\n"
     "cuda_error_invalid_address_space\n"
     "cudaerrorinvalidaddressspace\n"
     "cuda_error_invalid_pc\n"
     "cudaerrorinvalidpc\n"
     "cuda error: misaligned address\n"
     "misaligned address$\n"
     "an illegal instruction was encountered\n"
     "operation not supported on global/shared address space\n"
     "invalid program counter\n"
     "cuda error: hardware stack error"},
    {"launch-timeout", "CUDA_ERROR_LAUNCH_TIMEOUT", "702", "launch timeout",
     "cuda_error_launch_timeout\n"
     "cudaerrorlaunchtimeout\n"
     "the launch timed out and was terminated"},
    {"launch-out-of-resources", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "701", "",
     "cuda_error_launch_out_of_resources\n"
     "cudaerrorlaunchoutofresources\n"
     "too many resources requested for launch\n"
     "outofresources: out of resource: shared memory\n"
     "out of resource: shared memory, required"},
    {"initialization-error", "CUDA_ERROR_NOT_INITIALIZED", "3", "",
     "cuda_error_not_initialized\n"
     "cudaerrorinitializationerror\n"
     "cuda error: initialization error\n"
     "cuda initialization error\n"
     "cuda failure 3: initialization error\n"
     "cuda failure 'initialization error'\n"
     "cannot re-initialize cuda in forked subprocess\n"
     "cannot re-initialize cuda\n"
     "cuda_error_deinitialized\n"
     "driver shutting down$\n"
     "cudaerrorcudartunloading\n"
     "cuda error *'initialization error'"},
    {"cublas-failure", "", "", "",
     "cublas_status_alloc_failed\n"
     "cublas_status_not_initialized\n"
     "cublas_status_execution_failed\n"
     "cublas_status_internal_error\n"
     "cublas_status_invalid_value\n"
     "cublas_status_arch_mismatch\n"
     "cublas_status_not_supported\n"
     "cudnn_status_not_initialized\n"
     "cudnn_status_alloc_failed\n"
     "cudnn_status_internal_error*\n"
     "cudnn_status_execution_failed*\n"
     "cudnn_status_mapping_error\n"
     "cudnn_status_bad_param\n"
     "cudnn_status_arch_mismatch\n"
     "cudnn_status_not_supported\n"
     "cusolver_status_internal_error\n"
     "cusolver_status_not_initialized\n"
     "cusparse_status_alloc_failed\n"
     "cufft_alloc_failed\n"
     "cufft_internal_error\n"
     "curand_status_initialization_failed\n"
     "failed to create cublas handle\n"
     "could not create cublas handle\n"
     "could not create cudnn handle\n"
     "failed to get convolution algorithm. this is probably because cudnn failed to initialize\n"
     "unable to find a valid cudnn algorithm\n"
     "unable to find an engine to execute this computation\n"
     "the resource allocation failed\n"
     "dnn library initialization failed"},
    {"symbol-not-found", "CUDA_ERROR_NOT_FOUND", "500 302", "",
     "cuda_error_not_found\n"
     "cudaerrorsymbolnotfound\n"
     "cuda_error_shared_object_symbol_not_found\n"
     "cudaerrorsharedobjectsymbolnotfound\n"
     "cuda error: named symbol not found\n"
     "named symbol not found\n"
     "undefined symbol: cuda*\n"
     "undefined symbol: cumem*\n"
     "undefined symbol: cudevice*\n"
     "undefined symbol: cuctx*\n"
     "undefined symbol: cuget*\n"
     "undefined symbol: nvml*"},
    {"not-supported", "CUDA_ERROR_NOT_SUPPORTED", "801 800", "",
     "cuda_error_not_supported\n"
     "cudaerrornotsupported\n"
     "cuda_error_not_permitted\n"
     "cudaerrornotpermitted\n"
     "cuda error: operation not supported\n"
     "cuda error: operation not permitted$\n"
     "cuda failure 'operation not supported'\n"
     "pidfd_getfd syscall * operation not permitted\n"
     "nvml_error_not_supported\n"
     "cuda driver library failed to get device context 800"},
    {"program-call", "CUDA_ERROR_INVALID_VALUE",
     "400 201 205 206 207 208 210 211 212 213 216 219 300 301 401 704 705 "
     "708 709 711 712 713 720 900 901 902 903 904 905 906 907 908 909",
     "invalid argument\ninvalid resource handle",
     "cuda_error_invalid_value\n"
     "cudaerrorinvalidvalue\n"
     "cuda_error_invalid_context\n"
     "cudaerrordeviceuninitialized\n"
     "cuda_error_invalid_handle\n"
     "cudaerrorinvalidresourcehandle\n"
     "cudaerrorinvalidconfiguration\n"
     "cuda_error_map_failed\n"
     "cuda_error_unmap_failed\n"
     "cuda_error_already_mapped\n"
     "cuda_error_context_already_in_use\n"
     "cuda_error_file_not_found\n"
     "cudaerrorfilenotfound\n"
     "cuda_error_illegal_state\n"
     "cudaerrorillegalstate\n"
     "cuda_error_peer_access_already_enabled\n"
     "cudaerrorpeeraccessalreadyenabled\n"
     "cuda_error_peer_access_not_enabled\n"
     "cudaerrorpeeraccessnotenabled\n"
     "cuda_error_context_is_destroyed\n"
     "cudaerrorcontextisdestroyed\n"
     "cuda_error_host_memory_already_registered\n"
     "cudaerrorhostmemoryalreadyregistered\n"
     "cuda_error_host_memory_not_registered\n"
     "cudaerrorhostmemorynotregistered\n"
     "cuda_error_cooperative_launch_too_large\n"
     "cudaerrorcooperativelaunchtoolarge\n"
     "cuda_error_stream_capture_unsupported\n"
     "cudaerrorstreamcaptureunsupported\n"
     "cuda_error_stream_capture_invalidated\n"
     "cudaerrorstreamcaptureinvalidated\n"
     "cuda_error_captured_event\n"
     "cudaerrorcapturedevent\n"
     "operation not permitted when stream is capturing\n"
     "operation failed due to a previous error during capture\n"
     "cuda error: invalid argument\n"
     "cuda error: invalid configuration argument\n"
     "cuda error: invalid resource handle\n"
     "cuda error: invalid device context\n"
     "cuda failure 'invalid argument'\n"
     "cuda failure 'invalid resource handle'\n"
     "cuda error: part or all of the requested memory range is already mapped\n"
     "cuda error: context is destroyed\n"
     "cuda_error_too_many_peers\n"
     "cudaerrortoomanypeers\n"
     "peer mapping resources exhausted\n"
     "cuda error *'invalid argument'\n"
     "cuda error *'invalid resource handle'\n"
     "cuda_error_timeout\n"
     "cudaerrortimeout\n"
     "cuda_error_external_device\n"
     "cudaerrorexternaldevice\n"
     "cudaerrorinvaliddevicepointer\n"
     "cudaerrorinvalidmemcpydirection\n"
     "cudaerrorinvalidsymbol\n"
     "cudaerrorinvalidtexture\n"
     "cudaerrorlaunchmaxdepthexceeded\n"
     "cudaerrorgraphexecupdatefailure\n"
     "cuda_error_graph_exec_update_failure"},

    // What follows an error of another rank or of the card
    {"nccl-network", "", "", "nccl error\nnccl",
     "ncclsystemerror\n"
     "ncclremoteerror\n"
     "unhandled system error\n"
     "remote process exited or there was a network error\n"
     "no socket interface found\n"
     "no interface found in the same subnet\n"
     "nccl warn net/socket\n"
     "nccl warn net/ib\n"
     "nccl warn call to connect\n"
     "nccl warn socket*\n"
     "socketstartconnect: connect to *\n"
     "nccl warn bootstrap*\n"
     "nccl warn connect to * failed\n"
     "net/ib : got completion from peer * with * error\n"
     "net/ib: got completion from peer *\n"
     "call to ibv_*failed\n"
     "call to recv from * failed"},
    {"nccl-usage", "", "", "",
     "ncclinvalidusage\n"
     "ncclinvalidargument\n"
     "ncclinternalerror\n"
     "nccl * unhandled internal error\n"
     "nccl * invalid usage\n"
     "nccl * internal error\n"
     "mismatched nccl version\n"
     "nccl warn * mismatched*"},
    {"nccl-cuda-error", "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "217", "",
     "cuda_error_peer_access_unsupported\n"
     "cudaerrorpeeraccessunsupported\n"
     "ncclunhandledcudaerror\n"
     "unhandled cuda error\n"
     "nccl warn cuda failure\n"
     "peer access is not supported between these two devices"},
    {"nccl-timeout", "", "", "nccl timeout",
     "watchdog caught collective operation timeout\n"
     "some nccl operations have failed or timed out\n"
     "nccl communicator was aborted\n"
     "timed out waiting for nccl\n"
     "wait timeout after #ms when waiting for\n"
     "heartbeatmonitor * unable to * hang\n"
     "c10d key-value store * got error\n"
     "diststoreerror: timed out\n"
     "timed out after # seconds waiting for clients"},
    {"vllm-engine-failed", "", "", "",
     "engine core initialization failed\n"
     "enginecore failed to start\n"
     "enginecore encountered a fatal error\n"
     "enginedeaderror\n"
     "asyncenginedeaderror\n"
     "mqenginedeaderror\n"
     "engine process failed to start\n"
     "background loop has errored already"},
    {"program-signal", "", "", "",
     "signals.sigsegv: 11\n"
     "signals.sigabrt: 6\n"
     "signals.sigbus: 7\n"
     "signal 11 (sigsegv)\n"
     "signal 6 (sigabrt)\n"
     "signal 7 (sigbus)\n"
     "terminated with signal sigsegv\n"
     "terminated with signal sigabrt\n"
     "terminated with signal sigbus",
     "139 134 135 143 -11 -6 -7 -15"},
    {"paddle-auto-growth", "", "", "auto_growth\nautogrowth", "autogrowthbestfitallocator"},
    {"dcgm-profiling", "", "", "",
     "third-party profiling module returned an unrecoverable error\n"
     "profiling module returned an unrecoverable error\n"
     "profiling module *not supported\n"
     "dcgm_st_profiling_*\n"
     "dcgm_st_module_not_loaded\n"
     "this request is serviced by a module of dcgm that is not currently loaded\n"
     "the gpu/driver doesn't support profiling\n"
     "err_nvgpuctrperm"},
    {"dcgm-connection", "", "", "",
     "host engine connection invalid/disconnected\n"
     "unable to connect to host engine\n"
     "error connecting to nv-hostengine\n"
     "error starting nv-hostengine\n"
     "dcgm_st_connection_not_valid\n"
     "dcgm initialization error\n"
     "libdcgm.so not found\n"
     "libdcgm.so*: cannot open shared object file"},
    {"unknown-error", "CUDA_ERROR_UNKNOWN", "999 30", "",
     "cuda_error_unknown\n"
     "cudaerrorunknown\n"
     "cuda error: unknown error\n"
     "cuda unknown error\n"
     "cuda failure 'unknown error'\n"
     "failed to get device properties, error code: 999\n"
     "cuda driver library failed to get device context 999"},
};

}  // namespace

std::span<const error_signs> all_error_signs() { return table; }

}  // namespace reconcilers::cuda
