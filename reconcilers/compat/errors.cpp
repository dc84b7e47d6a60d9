#include "reconcilers/compat/errors.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "reconcilers/compat/rules.hpp"
#include "reconcilers/crl/text.hpp"

namespace reconcilers::compat {
namespace {

constexpr std::string_view driver_api = "https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html";

// clang-format off
constexpr std::array<known_error, 16> table{{
  {"unsatisfied-condition", "", 0,
   "unsatisfied condition",
   sources::toolkit,
   {"unsatisfied condition: cuda>=X.Y",
    "The container does not start. The container runtime compares what the image says it needs (NVIDIA_REQUIRE_CUDA, or CUDA_VERSION of an old image) with the newest CUDA the driver of the node knows, and refuses it. The check is strict: it refuses images that minor version compatibility would let run.",
    "See what the driver knows: `quartermaster explain compat --cuda X.Y --node NODE`, or `nvidia-smi` on the node (\"CUDA Version\" at the top right).\n"
    "See what the image asks for: `docker inspect IMAGE` or `skopeo inspect --config docker://IMAGE`, entries NVIDIA_REQUIRE_CUDA and CUDA_VERSION.",
    "Put the pod on a node whose driver knows that CUDA: the annotation `quartermaster.io/cuda: \">=X.Y\"` has the right node affinity written, or the pod refused before it starts.\n"
    "Or update the driver of the node, or use an image of an older CUDA.\n"
    "Only where the verdict is \"works by minor version compatibility\": `NVIDIA_DISABLE_REQUIRE=true` in the container's environment switches the check off."},
   {"unsatisfied condition: cuda>=X.Y（容器运行时拒绝启动）",
    "容器无法启动。容器运行时将镜像声明的要求（NVIDIA_REQUIRE_CUDA，旧镜像为 CUDA_VERSION）与节点驱动支持的最高 CUDA 版本比较，不满足即拒绝。该检查比较严格：依靠次版本兼容本可运行的镜像也会被拒绝。",
    "查看驱动支持的版本：`quartermaster explain compat --cuda X.Y --node NODE`，或在节点上执行 `nvidia-smi`（右上角“CUDA Version”）。\n"
    "查看镜像的要求：`docker inspect IMAGE` 或 `skopeo inspect --config docker://IMAGE`，查看 NVIDIA_REQUIRE_CUDA 与 CUDA_VERSION。",
    "将 Pod 调度到驱动支持该 CUDA 的节点：添加注解 `quartermaster.io/cuda: \">=X.Y\"`，会自动写入正确的节点亲和性，或在启动前拒绝该 Pod。\n"
    "或升级节点驱动，或使用更早 CUDA 的镜像。\n"
    "仅当结论为“依靠次版本兼容可以运行”时：在容器环境变量中设置 `NVIDIA_DISABLE_REQUIRE=true` 可关闭该检查。"}},

  {"invalid-image", "CUDA_ERROR_INVALID_IMAGE", 200,
   "cudaerrorinvalidkernelimage\ndevice kernel image is invalid",
   driver_api,
   {"CUDA_ERROR_INVALID_IMAGE (200)",
    "The driver was given GPU code it cannot load. Usually the program was built with a newer CUDA than the driver, or the vGPU library between them, knows; seldom a file is damaged.",
    "Compare runtime and driver: `quartermaster explain compat --cuda X.Y --node NODE` (for shares of a card add `--mode vgpu`).\n"
    "The runtime of the image, in the container: `nvcc --version`, or for PyTorch `python -c 'import torch; print(torch.version.cuda, torch.cuda.get_arch_list())'`.",
    "In vGPU mode use an image whose CUDA is not newer than the baseline of the library and has the same major version, or ask for whole cards (tencent.com/vcuda-core in multiples of 100).\n"
    "Otherwise update the driver, or use an image of an older CUDA."},
   {"CUDA_ERROR_INVALID_IMAGE (200)（内核镜像无效）",
    "驱动无法加载程序中的 GPU 代码。通常是程序所用的 CUDA 比驱动（或中间的 vGPU 库）支持的更新；少数情况下是文件损坏。",
    "比较运行时与驱动：`quartermaster explain compat --cuda X.Y --node NODE`（申请共享卡时加 `--mode vgpu`）。\n"
    "在容器内查看运行时版本：`nvcc --version`，PyTorch 可用 `python -c 'import torch; print(torch.version.cuda, torch.cuda.get_arch_list())'`。",
    "vGPU 模式下，使用 CUDA 不高于该库基线且主版本相同的镜像，或申请整卡（tencent.com/vcuda-core 为 100 的倍数）。\n"
    "其他情况：升级驱动，或使用更早 CUDA 的镜像。"}},

  {"no-binary-for-gpu", "CUDA_ERROR_NO_BINARY_FOR_GPU", 209,
   "cudaerrornokernelimagefordevice\nno kernel image is available for execution",
   driver_api,
   {"CUDA_ERROR_NO_BINARY_FOR_GPU (209)",
    "The program holds no code for this card: it was built for other compute capabilities, for example before the card existed, or after CUDA gave its generation up.",
    "The card: `nvidia-smi --query-gpu=name,compute_cap --format=csv`.\n"
    "What the program was built for: for PyTorch `python -c 'import torch; print(torch.cuda.get_arch_list())'`, otherwise `cuobjdump --list-elf FILE`.",
    "Use an image that was built for this compute capability (8.9 and 9.0 from CUDA 11.8, 10.0 and 12.0 from CUDA 12.8; below 7.5 up to CUDA 12).\n"
    "Or say what the image needs, `quartermaster.io/compute-capability: \">=8.0\"`, and the pod goes to cards that have it."},
   {"CUDA_ERROR_NO_BINARY_FOR_GPU (209)（没有适用于该卡的代码）",
    "程序不含该卡的代码：它是为其他计算能力编译的，例如编译时该卡尚未发布，或 CUDA 已不再支持这一代卡。",
    "查看卡：`nvidia-smi --query-gpu=name,compute_cap --format=csv`。\n"
    "查看程序的编译目标：PyTorch 用 `python -c 'import torch; print(torch.cuda.get_arch_list())'`，其他程序用 `cuobjdump --list-elf FILE`。",
    "使用为该计算能力编译的镜像（8.9 与 9.0 自 CUDA 11.8 起，10.0 与 12.0 自 CUDA 12.8 起；低于 7.5 的卡到 CUDA 12 为止）。\n"
    "或声明镜像的要求 `quartermaster.io/compute-capability: \">=8.0\"`，Pod 会被调度到符合的卡。"}},

  {"illegal-address", "CUDA_ERROR_ILLEGAL_ADDRESS", 700,
   "cudaerrorillegaladdress\nillegal memory access was encountered",
   driver_api,
   {"CUDA_ERROR_ILLEGAL_ADDRESS (700)",
    "A kernel read or wrote an address that is not its own. Everything after it in the same process fails as well, so only the first report counts. Mostly an error of the program; in vGPU mode also of a framework whose allocator the library does not know, or of a runtime newer than its baseline.",
    "Which kernel: run once with `CUDA_LAUNCH_BLOCKING=1`, or under `compute-sanitizer`.\n"
    "The card: `dmesg | grep -i xid` on the node; 13 and 31 are the program's, 48, 63, 64, 79 and 94, 95 the card's.\n"
    "In vGPU mode: does the same image run with a whole card?",
    "Restart the process: its context is lost.\n"
    "If it runs with a whole card only: use an image of a CUDA that is not newer than the baseline of the vGPU library, with Paddle set FLAGS_allocator_strategy=naive_best_fit, or stay with whole cards.\n"
    "If the card reports errors, take it out of use."},
   {"CUDA_ERROR_ILLEGAL_ADDRESS (700)（非法访问显存）",
    "内核访问了不属于它的地址。此后同一进程的所有调用都会失败，因此只有第一条报错有意义。多数是程序错误；vGPU 模式下也可能是该库不支持框架的显存分配方式，或运行时高于其基线。",
    "定位内核：设置 `CUDA_LAUNCH_BLOCKING=1` 运行一次，或使用 `compute-sanitizer`。\n"
    "检查卡：在节点上执行 `dmesg | grep -i xid`；13、31 属于程序，48、63、64、79、94、95 属于硬件。\n"
    "vGPU 模式：同一镜像使用整卡能否运行？",
    "重启进程：其上下文已失效。\n"
    "若只有整卡可以运行：使用 CUDA 不高于 vGPU 库基线的镜像；Paddle 请设置 FLAGS_allocator_strategy=naive_best_fit；或继续使用整卡。\n"
    "若卡报告硬件错误，请停用该卡。"}},

  {"unsupported-ptx-version", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", 222,
   "cudaerrorunsupportedptxversion\nptx was compiled with an unsupported toolchain",
   sources::minor_version,
   {"CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222)",
    "The program carries PTX that the driver has to compile at start, and it comes from a toolkit the driver is too old for. This is the limit of minor version compatibility: finished code of a newer toolkit runs, its PTX does not.",
    "`quartermaster explain compat --cuda X.Y --node NODE`: \"works by minor version compatibility\" with this error means that the image needs PTX.\n"
    "Is there finished code for the card: `cuobjdump --list-elf FILE`; for PyTorch `torch.cuda.get_arch_list()`.",
    "Ask for a driver that knows the toolkit: `quartermaster.io/cuda: \">=X.Y\"`.\n"
    "Or update the driver, build for the card itself (sm_NN beside compute_NN), or, on data-centre cards, put the package cuda-compat-X-Y into the image."},
   {"CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222)（PTX 版本过新）",
    "程序带有需要驱动在启动时编译的 PTX，而生成它的工具包比驱动支持的更新。这正是次版本兼容的限制：更新工具包编译好的代码可以运行，其 PTX 不可以。",
    "`quartermaster explain compat --cuda X.Y --node NODE`：若结论为“依靠次版本兼容可以运行”而仍出现此错误，说明镜像依赖 PTX。\n"
    "是否有该卡的机器码：`cuobjdump --list-elf FILE`；PyTorch 用 `torch.cuda.get_arch_list()`。",
    "要求支持该工具包的驱动：`quartermaster.io/cuda: \">=X.Y\"`。\n"
    "或升级驱动，或直接为该卡编译（在 compute_NN 之外加 sm_NN），或在数据中心卡上将 cuda-compat-X-Y 包加入镜像。"}},

  {"insufficient-driver", "cudaErrorInsufficientDriver", 35,
   "driver version is insufficient for cuda runtime version",
   sources::compatibility,
   {"cudaErrorInsufficientDriver (35)",
    "The runtime of the image is newer than the driver allows, by another major version, or the container sees no driver library at all.",
    "`quartermaster explain compat --cuda X.Y --node NODE`.\n"
    "Is there a driver in the container: `ldconfig -p | grep libcuda.so`, `nvidia-smi`.",
    "Put the pod on a node with a newer driver (`quartermaster.io/cuda: \">=X.Y\"`), or use an image of an older CUDA.\n"
    "If the library is missing: the pod asked for no card, or the node's container runtime is not set up for NVIDIA."},
   {"cudaErrorInsufficientDriver (35)（驱动版本过低）",
    "镜像的运行时高于驱动允许的版本（主版本不同），或容器中根本没有驱动库。",
    "`quartermaster explain compat --cuda X.Y --node NODE`。\n"
    "容器中是否有驱动：`ldconfig -p | grep libcuda.so`，`nvidia-smi`。",
    "将 Pod 调度到驱动更新的节点（`quartermaster.io/cuda: \">=X.Y\"`），或使用更早 CUDA 的镜像。\n"
    "若缺少驱动库：Pod 没有申请卡，或节点的容器运行时未配置 NVIDIA。"}},

  {"unknown-error", "CUDA_ERROR_UNKNOWN", 999,
   "cudaerrorunknown\ncuda error: unknown error\ncuda unknown error",
   driver_api,
   {"CUDA_ERROR_UNKNOWN (999)",
    "The driver failed inside and does not say why. The platform's guide names a driver that is older than the runtime; as often the kernel module and the libraries are of different versions after an update, or a device file is missing.",
    "`quartermaster explain compat --cuda X.Y --node NODE`.\n"
    "On the node: `nvidia-smi` (\"Driver/library version mismatch\"?), `cat /proc/driver/nvidia/version`, `dmesg | grep -iE 'nvrm|xid'`.\n"
    "Device files: `ls -l /dev/nvidia*`, on the node and in the container; nvidia-uvm must be there.",
    "If the driver is too old for the image: update it, or use an image of an older CUDA.\n"
    "If module and libraries differ: load the module again, or restart the node.\n"
    "If nvidia-uvm is missing: `nvidia-modprobe -u -c=0` on the node, then start the pod again."},
   {"CUDA_ERROR_UNKNOWN (999)（未知错误）",
    "驱动内部失败，未说明原因。平台手册给出的原因是驱动低于运行时；同样常见的是升级后内核模块与库版本不一致，或缺少设备文件。",
    "`quartermaster explain compat --cuda X.Y --node NODE`。\n"
    "在节点上：`nvidia-smi`（是否提示“Driver/library version mismatch”）、`cat /proc/driver/nvidia/version`、`dmesg | grep -iE 'nvrm|xid'`。\n"
    "设备文件：在节点和容器内执行 `ls -l /dev/nvidia*`；必须有 nvidia-uvm。",
    "若驱动低于镜像要求：升级驱动，或使用更早 CUDA 的镜像。\n"
    "若内核模块与库不一致：重新加载模块，或重启节点。\n"
    "若缺少 nvidia-uvm：在节点上执行 `nvidia-modprobe -u -c=0`，然后重建 Pod。"}},

  {"system-not-ready", "CUDA_ERROR_SYSTEM_NOT_READY", 802,
   "cudaerrorsystemnotready\nsystem not yet initialized",
   "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html",
   {"Error 802: system not yet initialized",
    "On machines with NVSwitch (HGX and DGX with A100, H100, H200, B200) the cards are not usable until the fabric manager has set the switches up. It is missing, not running, or of another version than the driver. Cards without NVSwitch do not need it.",
    "Is there a switch: `nvidia-smi -q | grep -A2 Fabric`, `lspci -d 10de: | grep -i bridge`.\n"
    "Service and version: `systemctl status nvidia-fabricmanager`, `nv-fabricmanager --version`, `cat /proc/driver/nvidia/version`; the two versions must be the same.",
    "Install the fabric manager of exactly the driver's version and start it: `systemctl enable --now nvidia-fabricmanager`.\n"
    "Then start the pods again; a restart of the node is not needed."},
   {"Error 802: system not yet initialized（系统尚未初始化）",
    "带 NVSwitch 的机器（配 A100、H100、H200、B200 的 HGX 与 DGX）在 fabric manager 完成交换芯片初始化之前不能使用卡。该服务未安装、未运行，或版本与驱动不同。没有 NVSwitch 的卡不需要它。",
    "是否有交换芯片：`nvidia-smi -q | grep -A2 Fabric`，`lspci -d 10de: | grep -i bridge`。\n"
    "服务与版本：`systemctl status nvidia-fabricmanager`、`nv-fabricmanager --version`、`cat /proc/driver/nvidia/version`；两个版本必须相同。",
    "安装与驱动版本完全一致的 fabric manager 并启动：`systemctl enable --now nvidia-fabricmanager`。\n"
    "然后重建 Pod；不需要重启节点。"}},

  {"driver-mismatch", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", 803,
   "cudaerrorsystemdrivermismatch\nunsupported display driver / cuda driver combination",
   sources::compatibility,
   {"Error 803: unsupported display driver / cuda driver combination",
    "The driver library that the program found is not of the version of the kernel module: an image that carries its own libcuda or a compatibility package that does not fit, or a node whose driver was updated without loading the module again.",
    "In the container: `ldconfig -p | grep libcuda`, `ls /usr/local/cuda*/compat`, `echo $LD_LIBRARY_PATH`.\n"
    "On the node: `cat /proc/driver/nvidia/version` and `nvidia-smi`.",
    "Take the foreign library or the compat folder out of LD_LIBRARY_PATH, or the package out of the image.\n"
    "If the node itself differs: load the module again, or restart the node."},
   {"Error 803: unsupported display driver / cuda driver combination（驱动库与内核模块不匹配）",
    "程序找到的驱动库与内核模块版本不同：镜像自带 libcuda 或不适用的兼容包，或节点升级驱动后没有重新加载模块。",
    "容器内：`ldconfig -p | grep libcuda`、`ls /usr/local/cuda*/compat`、`echo $LD_LIBRARY_PATH`。\n"
    "节点上：`cat /proc/driver/nvidia/version` 与 `nvidia-smi`。",
    "从 LD_LIBRARY_PATH 中去掉外来的库或 compat 目录，或从镜像中移除兼容包。\n"
    "若节点本身不一致：重新加载模块，或重启节点。"}},

  {"forward-package-not-supported", "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", 804,
   "cudaerrorcompatnotsupportedondevice\nforward compatibility was attempted on non supported hw",
   sources::forward,
   {"Error 804: forward compatibility was attempted on non supported HW",
    "The image carries a forward compatibility package (cuda-compat), and the card is not one it is for: data-centre cards and selected RTX cards only. It is also reported when the module on the node was updated and not loaded again.",
    "The card: `nvidia-smi -L`.\n"
    "The package, in the container: `ls /usr/local/cuda*/compat`, `ldconfig -p | grep compat`.",
    "Take the package out of the image or out of LD_LIBRARY_PATH, and use an image whose CUDA the driver knows (`quartermaster explain compat --cuda X.Y --node NODE`).\n"
    "Or update the driver."},
   {"Error 804: forward compatibility was attempted on non supported HW（该卡不支持前向兼容）",
    "镜像带有前向兼容包（cuda-compat），而该卡不在支持范围内：仅数据中心卡和部分 RTX 卡可用。节点升级内核模块后未重新加载时也会出现。",
    "查看卡：`nvidia-smi -L`。\n"
    "容器内查看该包：`ls /usr/local/cuda*/compat`，`ldconfig -p | grep compat`。",
    "从镜像或 LD_LIBRARY_PATH 中移除该包，并使用驱动支持的 CUDA 的镜像（`quartermaster explain compat --cuda X.Y --node NODE`）。\n"
    "或升级驱动。"}},

  {"vllm-bf16", "", 0,
   "bfloat16 is only supported on gpus with compute capability",
   "https://github.com/vllm-project/vllm/issues/946",
   {"vLLM: Bfloat16 is only supported on GPUs with compute capability of at least 8.0",
    "The model is stored in bfloat16, which cards before Ampere do not compute: V100 has 7.0, T4 has 7.5. A100, A10, L4, L40S and H100 do.",
    "The card: `nvidia-smi --query-gpu=name,compute_cap --format=csv`.\n"
    "The nodes: `kubectl get nodes -L nvidia.com/gpu.product,nvidia.com/gpu.compute.major,nvidia.com/gpu.compute.minor`.",
    "Put the pod on cards that do it: the annotation `quartermaster.io/compute-capability: \">=8.0\"`.\n"
    "Or compute in float16: `--dtype=half`."},
   {"vLLM：Bfloat16 is only supported on GPUs with compute capability of at least 8.0",
    "模型以 bfloat16 存储，Ampere 之前的卡不支持该类型：V100 为 7.0，T4 为 7.5。A100、A10、L4、L40S 与 H100 支持。",
    "查看卡：`nvidia-smi --query-gpu=name,compute_cap --format=csv`。\n"
    "查看节点：`kubectl get nodes -L nvidia.com/gpu.product,nvidia.com/gpu.compute.major,nvidia.com/gpu.compute.minor`。",
    "将 Pod 调度到支持的卡：添加注解 `quartermaster.io/compute-capability: \">=8.0\"`。\n"
    "或使用 float16 计算：`--dtype=half`。"}},

  {"paddle-auto-growth", "", 0,
   "autogrowthbestfitallocator\nauto_growth\nautogrow",
   sources::gpu_manager,
   {"Paddle fails with a share of a card (auto_growth allocator)",
    "PaddlePaddle's default allocator, auto_growth, takes memory in a way the vGPU library does not count, and the program ends with an error of its allocator or an illegal address. Whole cards are not concerned.",
    "Is it a share: `kubectl get pod POD -o jsonpath='{.spec.containers[*].resources.limits}'`, tencent.com/vcuda-core below 100.\n"
    "Which allocator: `kubectl exec POD -- printenv FLAGS_allocator_strategy`; nothing means auto_growth.",
    "Set `FLAGS_allocator_strategy=naive_best_fit` in the container's environment.\n"
    "Or have it written into every such pod: `spec.compatibility.paddleAllocator: true` of the AcceleratorPolicy, with `spec.compatibility.enforcement` Warn or Deny."},
   {"Paddle 使用共享卡时失败（auto_growth 分配器）",
    "PaddlePaddle 默认的 auto_growth 分配器申请显存的方式不在 vGPU 库的统计之内，程序以分配器错误或非法地址结束。整卡不受影响。",
    "是否为共享卡：`kubectl get pod POD -o jsonpath='{.spec.containers[*].resources.limits}'`，tencent.com/vcuda-core 小于 100。\n"
    "使用的分配器：`kubectl exec POD -- printenv FLAGS_allocator_strategy`；没有输出即为 auto_growth。",
    "在容器环境变量中设置 `FLAGS_allocator_strategy=naive_best_fit`。\n"
    "或让系统为此类 Pod 自动写入：AcceleratorPolicy 的 `spec.compatibility.paddleAllocator: true`，且 `spec.compatibility.enforcement` 为 Warn 或 Deny。"}},

  {"out-of-memory", "CUDA_ERROR_OUT_OF_MEMORY", 0,
   "cuda out of memory\ncuda error: out of memory\ncudaerrormemoryallocation\ncuda failure 2: out of memory\nmemory allocation error: out of memory\noom when allocating tensor",
   driver_api,
   {"CUDA out of memory",
    "The container asked for more device memory than it may have. With a share of a card the limit is the share's, not the card's, and everything in the container counts against it: every process, the CUDA context of each (some hundred MiB), and what a framework keeps in its cache. In modes without isolation of memory (share, gpushare) it is the card's, and a neighbour may have used it up.",
    "What the pod asked for: `kubectl get pod POD -o jsonpath='{.spec.containers[*].resources.limits}'`. tencent.com/vcuda-memory counts units of 256 MiB, nvidia.com/gpumem MiB, aliyun.com/gpu-mem GiB or MiB, as memoryUnit of the module says.\n"
    "Who has the same card: `quartermaster inspect pods -A -o wide`; on the node `nvidia-smi`.\n"
    "What the program uses: for PyTorch `torch.cuda.memory_summary()`; more reserved than allocated means a cache in pieces.",
    "Ask for more memory in the pod's limits, or for a whole card. `quartermaster simulate -f POD.yaml` says whether it fits.\n"
    "Or use less: a smaller batch, a shorter context (vLLM: `--max-model-len`, `--gpu-memory-utilization`), fewer processes in the container.\n"
    "For a cache in pieces in PyTorch: `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`. That needs a driver API that a vGPU library between may not know: try it with a whole card first."},
   {"CUDA out of memory（显存不足）",
    "容器申请的显存超过了它的上限。使用共享卡时，上限是所申请的份额，而不是整张卡；容器内的一切都计入：每个进程、每个进程的 CUDA 上下文（数百 MiB），以及框架缓存的显存。在不隔离显存的模式（share、gpushare）下，上限是整张卡，可能已被同卡的其他 Pod 用完。",
    "查看 Pod 的申请：`kubectl get pod POD -o jsonpath='{.spec.containers[*].resources.limits}'`。tencent.com/vcuda-memory 以 256 MiB 为单位，nvidia.com/gpumem 以 MiB 为单位，aliyun.com/gpu-mem 以 GiB 或 MiB 为单位（由模块的 memoryUnit 决定）。\n"
    "查看同卡的 Pod：`quartermaster inspect pods -A -o wide`；在节点上执行 `nvidia-smi`。\n"
    "查看程序的用量：PyTorch 用 `torch.cuda.memory_summary()`；reserved 明显大于 allocated 说明缓存有碎片。",
    "在 Pod 的 limits 中申请更多显存，或申请整卡。`quartermaster simulate -f POD.yaml` 可查看能否放下。\n"
    "或减少用量：减小 batch，缩短上下文（vLLM：`--max-model-len`、`--gpu-memory-utilization`），减少容器内的进程。\n"
    "PyTorch 缓存碎片：设置 `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`。它使用的驱动接口 vGPU 库可能不支持：请先用整卡验证。"}},

  {"nvml-unknown-error", "", 0,
   "failed to initialize nvml: unknown error",
   "https://github.com/NVIDIA/nvidia-container-toolkit/issues/48",
   {"Failed to initialize NVML: Unknown Error",
    "A container that had its card lost the right to the device files while it ran. Where systemd manages the containers' cgroups, it writes their list of devices again at `systemctl daemon-reload` (a package update is enough), and drops the cards, because it did not put them there. On the node itself `nvidia-smi` works.",
    "On the node: `nvidia-smi` works, `kubectl exec POD -- nvidia-smi` does not, and did when the pod started.\n"
    "Was there a reload: `journalctl -b | grep -i reloading`.\n"
    "Links that runc needs: `ls -l /dev/char | grep nvidia` on the node; none is a cause.",
    "Delete the pod: a new container has the card again.\n"
    "So that it stays: hand devices over by CDI, which puts them on the list that systemd keeps. In mode pgpu `spec.modules.pgpu.settings` says DEVICE_LIST_STRATEGY: cdi-cri, or PASS_DEVICE_SPECS: \"true\" (the plugin is privileged then).\n"
    "Without CDI: make the links, `nvidia-ctk system create-dev-char-symlinks --create-all`, at every start of the node (a udev rule)."},
   {"Failed to initialize NVML: Unknown Error（运行中失去设备）",
    "容器原本可以使用卡，运行中失去了设备文件的权限。当 systemd 管理容器的 cgroup 时，`systemctl daemon-reload`（升级软件包即会触发）会重写设备列表，不是由它加入的卡会被去掉。节点上的 `nvidia-smi` 仍然正常。",
    "节点上 `nvidia-smi` 正常，`kubectl exec POD -- nvidia-smi` 失败，而 Pod 启动时正常。\n"
    "是否发生过 reload：`journalctl -b | grep -i reloading`。\n"
    "runc 需要的链接：在节点上执行 `ls -l /dev/char | grep nvidia`；没有输出即为原因之一。",
    "删除该 Pod：新的容器可以重新使用卡。\n"
    "避免再次发生：使用 CDI 交付设备，设备会进入 systemd 维护的列表。pgpu 模式下在 `spec.modules.pgpu.settings` 中设置 DEVICE_LIST_STRATEGY: cdi-cri，或 PASS_DEVICE_SPECS: \"true\"（此时插件为特权容器）。\n"
    "不使用 CDI 时：在节点每次启动时创建链接 `nvidia-ctk system create-dev-char-symlinks --create-all`（udev 规则）。"}},

  {"xid-79", "Xid 79", 0,
   "fallen off the bus",
   "https://docs.nvidia.com/deploy/xid-errors/index.html",
   {"Xid 79: GPU has fallen off the bus",
    "The node does not reach the card over PCIe any more. It is the card, its power, its heat or its slot; hardly ever the program. All programs on that card fail, and the plugin may go on offering it until it is started again.",
    "On the node: `dmesg | grep -i xid` names the card by its PCI address, `nvidia-smi -L` shows which one is missing.\n"
    "Who is on the node: `quartermaster inspect pods -A`.",
    "Take the node out of scheduling, `kubectl cordon NODE`, or only the card, `kubectl annotate node NODE quartermaster.io/cordon=UUID` (where the extender places pods).\n"
    "Let pods end or delete them, then restart the node with the power off: a reset of the driver alone seldom brings the card back.\n"
    "If it comes again: have power supply, cooling and seat of the card looked at, and hand it to its vendor."},
   {"Xid 79: GPU has fallen off the bus（卡从 PCIe 总线上消失）",
    "节点无法再通过 PCIe 访问该卡。原因是卡、供电、散热或插槽，几乎不会是程序。该卡上的所有程序都会失败；插件在重启之前可能仍会上报它。",
    "在节点上：`dmesg | grep -i xid` 给出该卡的 PCI 地址，`nvidia-smi -L` 可看出缺少哪一张。\n"
    "查看节点上的 Pod：`quartermaster inspect pods -A`。",
    "停止调度该节点：`kubectl cordon NODE`；或只停用该卡：`kubectl annotate node NODE quartermaster.io/cordon=UUID`（由扩展器放置 Pod 时有效）。\n"
    "等待或删除 Pod，然后断电重启节点：仅重置驱动很少能恢复。\n"
    "若再次出现：检查供电、散热与卡的安装，并联系厂商。"}},

  {"no-cuda-device", "CUDA_ERROR_NO_DEVICE", 100,
   "torch.cuda.is_available() false\ntorch.cuda.is_available() is false\ntorch.cuda.is_available(): false\ntorch.cuda.is_available() returns false\ntorch.cuda.is_available() returned false\ntorch.cuda.is_available() -> false\ntorch.cuda.is_available() == false\ntorch.cuda.is_available()) false\nno cuda gpus are available\nno cuda-capable device is detected\nfound no nvidia driver on your system\ntorch not compiled with cuda enabled",
   driver_api,
   {"torch.cuda.is_available() is False, no CUDA-capable device is detected",
    "The program sees no card. In this order: the pod asked for none, the image was built without CUDA, the container runtime did not put the driver and the device files into the container, or the driver of the node is too old for the image.",
    "Did it ask: `kubectl get pod POD -o jsonpath='{.spec.containers[*].resources.limits}'` names a card for this very container.\n"
    "Is the card in it: `kubectl exec POD -- nvidia-smi`; `kubectl exec POD -- printenv NVIDIA_VISIBLE_DEVICES CUDA_VISIBLE_DEVICES` (empty, `void` or `-1` hide every card).\n"
    "Was it built with CUDA: `python -c 'import torch; print(torch.version.cuda)'` prints None for a build without it.\n"
    "Does the node give cards at all: `quartermaster verify NODE --allocate`.",
    "Put the card into `resources.limits` of the container that computes.\n"
    "Install a build with CUDA (for PyTorch the index of the wanted CUDA), or take an image that has one.\n"
    "If `verify --allocate` sees no card: set up the node's container runtime for NVIDIA (`nvidia-ctk runtime configure`), then restart it.\n"
    "If the driver is too old: `quartermaster explain compat --cuda X.Y --node NODE`."},
   {"torch.cuda.is_available() 为 False，no CUDA-capable device is detected（程序看不到卡）",
    "程序看不到卡。依次可能是：Pod 没有申请卡；镜像不是 CUDA 版本；容器运行时没有把驱动和设备文件放入容器；节点驱动低于镜像的要求。",
    "是否申请：`kubectl get pod POD -o jsonpath='{.spec.containers[*].resources.limits}'` 中该容器须有卡。\n"
    "容器中是否有卡：`kubectl exec POD -- nvidia-smi`；`kubectl exec POD -- printenv NVIDIA_VISIBLE_DEVICES CUDA_VISIBLE_DEVICES`（为空、`void` 或 `-1` 会隐藏所有卡）。\n"
    "是否为 CUDA 版本：`python -c 'import torch; print(torch.version.cuda)'`，非 CUDA 版本输出 None。\n"
    "节点能否提供卡：`quartermaster verify NODE --allocate`。",
    "在进行计算的容器的 `resources.limits` 中申请卡。\n"
    "安装 CUDA 版本（PyTorch 请使用对应 CUDA 的安装源），或使用包含它的镜像。\n"
    "若 `verify --allocate` 看不到卡：为节点的容器运行时配置 NVIDIA（`nvidia-ctk runtime configure`），然后重启它。\n"
    "若驱动过低：`quartermaster explain compat --cuda X.Y --node NODE`。"}},
}};
// clang-format on

bool is_figure(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_figure(c) || (c >= 'a' && c <= 'z') || c == '_'; }

/// Calls `each` for the parts of `text` between separators that are not empty.
template <class Each>
void each_part(std::string_view text, std::string_view separators, Each each) {
  while (!text.empty()) {
    const auto end = std::min(text.find_first_of(separators), text.size());
    if (end > 0) each(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// `word` as a whole word of `text`.
bool has_word(std::string_view text, std::string_view word) {
  for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const auto after = at + word.size();
    if ((at == 0 || !is_word(text[at - 1])) && (after == text.size() || !is_word(text[after]))) return true;
  }
  return false;
}

/// Nothing but a number and the words people put before it.
bool is_code(std::string_view text, std::string_view code) {
  bool found = false, other = false;
  each_part(text, " \t\r\n:=()#", [&](std::string_view word) {
    if (word == code)
      found = true;
    else if (word != "cuda" && word != "error" && word != "code")
      other = true;
  });
  return found && !other;
}

/// A log line that speaks of CUDA and has the number right behind a word for an error.
bool line_has_code(std::string_view line, std::string_view code) {
  if (!line.contains("cuda") && !line.contains("cuinit")) return false;
  for (auto at = line.find(code); at != std::string_view::npos; at = line.find(code, at + 1)) {
    const auto after = at + code.size();
    if ((at > 0 && (is_word(line[at - 1]) || line[at - 1] == '.')) ||
        (after < line.size() && (is_figure(line[after]) || line[after] == '.')))
      continue;
    const auto before = line.substr(at > 20 ? at - 20 : 0, std::min<std::size_t>(at, 20));
    for (const auto* word : {"error", "err", "code", "returned", "status"}) {
      if (has_word(before, word)) return true;
    }
  }
  return false;
}

std::string with_single_blanks(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  each_part(text, " \t\r\n", [&](std::string_view word) {
    if (!out.empty()) out += ' ';
    out += word;
  });
  return out;
}

/// `flat`: the text with single blanks only, because terminals break lines where they like.
bool names(std::string_view text, std::string_view flat, const known_error& one) {
  const auto trimmed = crl::trimmed(text);
  if (trimmed == one.id) return true;
  bool found = false;
  each_part(one.phrases, "\n", [&](std::string_view phrase) { found = found || flat.contains(phrase); });
  if (found) return true;
  if (!one.name.empty()) {
    const auto name = crl::lower_case(one.name);
    constexpr std::string_view prefix = "cuda_error_";
    if (has_word(text, name)) return true;
    // "INVALID_IMAGE" alone; a word like "unknown" within a log says nothing.
    if (name.starts_with(prefix) && name.substr(prefix.size()).contains('_') &&
        trimmed == std::string_view(name).substr(prefix.size()))
      return true;
  }
  if (one.code == 0) return false;
  const auto code = std::to_string(one.code);
  if (is_code(trimmed, code)) return true;
  each_part(text, "\n", [&](std::string_view line) { found = found || line_has_code(line, code); });
  return found;
}

}  // namespace

std::span<const known_error> known_errors() { return table; }

std::vector<const known_error*> errors_in(std::string_view text) {
  const auto lower = crl::lower_case(text);
  const auto flat = with_single_blanks(lower);
  std::vector<const known_error*> out;
  for (const auto& one : table) {
    if (names(lower, flat, one)) out.push_back(&one);
  }
  return out;
}

}  // namespace reconcilers::compat
