// The program, and what follows an error of another rank or of the card.

#include "reconcilers/cuda/error_signs.hpp"

namespace reconcilers::cuda {
namespace {

constexpr error_signs program_table[] = {
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

std::span<const error_signs> program_error_signs() { return program_table; }

}  // namespace reconcilers::cuda
