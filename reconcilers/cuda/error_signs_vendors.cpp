// Cards of other vendors.

#include "reconcilers/cuda/error_signs.hpp"

namespace reconcilers::cuda {
namespace {

constexpr error_signs vendors_table[] = {
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
};

}  // namespace

std::span<const error_signs> vendors_error_signs() { return vendors_table; }

}  // namespace reconcilers::cuda
