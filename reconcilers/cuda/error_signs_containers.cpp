// The container runtime and the kubelet.

#include "reconcilers/cuda/error_signs.hpp"

namespace reconcilers::cuda {
namespace {

constexpr error_signs containers_table[] = {
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
     "nvml insufficient permissions\n"
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
};

}  // namespace

std::span<const error_signs> containers_error_signs() { return containers_table; }

}  // namespace reconcilers::cuda
