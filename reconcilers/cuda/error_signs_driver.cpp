// The driver of the node.

#include "reconcilers/cuda/error_signs.hpp"

namespace reconcilers::cuda {
namespace {

constexpr error_signs driver_table[] = {
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
     "kernel module failed: module verification failed\n"
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
};

}  // namespace

std::span<const error_signs> driver_error_signs() { return driver_table; }

}  // namespace reconcilers::cuda
