// What the image was built for.

#include "reconcilers/cuda/error_signs.hpp"

namespace reconcilers::cuda {
namespace {

constexpr error_signs image_table[] = {
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
};

}  // namespace

std::span<const error_signs> image_error_signs() { return image_table; }

}  // namespace reconcilers::cuda
