#include "reconcilers/cuda/verdict.hpp"

#include <array>
#include <string>
#include <utility>

#include "text/text.hpp"

namespace reconcilers::cuda {
namespace {

using text::language;

struct rule_row {
  rule is;
  outcome gives;
  std::string_view name, source, en, zh;
};

// {runtime} {major} {cuda} {driver} {card} {capability} {floor} {needed} {first} {codes} {first_branch} {last_branch}
// {removed} {below} {shim} {baseline} {package}
// clang-format off
constexpr std::array<rule_row, 16> rule_table{{
  {rule::backward, outcome::works, "backward", sources::compatibility,
   "The driver knows CUDA {cuda} and runs every older runtime, so CUDA {runtime} works.",
   "驱动支持 CUDA {cuda}，并可运行所有更早的运行时，因此 CUDA {runtime} 可以使用。"},
  {rule::backward_by_older_code, outcome::works, "backward-by-older-code", sources::binary_code,
   "The driver knows CUDA {cuda} and runs every older runtime. Toolkits before {first} do not build for compute capability {capability}, but code for {codes} runs on it: an image of CUDA {runtime} works where it carries code for {codes}, or PTX.",
   "驱动支持 CUDA {cuda}，并可运行所有更早的运行时。早于 {first} 的工具包不能为计算能力 {capability} 编译，但为 {codes} 编译的代码可以在该卡上运行：CUDA {runtime} 的镜像带有 {codes} 的代码或 PTX 时即可运行。"},
  {rule::backward_by_ptx, outcome::ptx_only, "backward-by-ptx", sources::binary_code,
   "The driver knows CUDA {cuda} and runs every older runtime. Toolkits before {first} do not build for compute capability {capability}: an image of CUDA {runtime} works only where it carries PTX, which is compiled at its first start. The usual images (PyTorch, vLLM) lack it: use an image of CUDA {first} or newer.",
   "驱动支持 CUDA {cuda}，并可运行所有更早的运行时。早于 {first} 的工具包不能为计算能力 {capability} 编译：CUDA {runtime} 的镜像只有带有 PTX 时才能运行，首次启动时即时编译。常用镜像（PyTorch、vLLM）不带 PTX：请使用 CUDA {first} 或更新的镜像。"},
  {rule::minor_version, outcome::minor_version, "minor-version", sources::minor_version,
   "The driver knows CUDA {cuda}; within major version {major} newer toolkits run from driver {floor} on. Limits: nothing that needs a newer driver interface, and no PTX that has to be compiled at start (CUDA_ERROR_UNSUPPORTED_PTX_VERSION). The container runtime may still refuse an image that says NVIDIA_REQUIRE_CUDA=cuda>={runtime}.",
   "驱动支持 CUDA {cuda}；在主版本 {major} 内，驱动不低于 {floor} 即可运行更新的工具包。限制：不能使用更新的驱动接口，也不能在启动时编译 PTX（CUDA_ERROR_UNSUPPORTED_PTX_VERSION）。若镜像声明 NVIDIA_REQUIRE_CUDA=cuda>={runtime}，容器运行时仍可能拒绝启动。"},
  {rule::forward_package, outcome::forward_package, "forward-package", sources::forward,
   "The driver knows CUDA {cuda} only, which is another major version or below the floor of minor version compatibility. This is a data-centre card: the package {package} in the image makes it work on the driver branches NVIDIA lists for it; otherwise install driver {needed} or newer.",
   "驱动只支持 CUDA {cuda}，主版本不同或低于次版本兼容的下限。该卡是数据中心卡：在镜像中加入 {package} 包，并且驱动分支在 NVIDIA 所列范围内，即可运行；否则请安装 {needed} 或更新的驱动。"},
  {rule::forward_package_if_data_centre, outcome::forward_package, "forward-package-if-data-centre", sources::forward,
   "The driver knows CUDA {cuda} only, which is another major version or below the floor of minor version compatibility. Only on data-centre cards and selected RTX cards the package {package} in the image makes it work; whether this is one is not known. Otherwise install driver {needed} or newer.",
   "驱动只支持 CUDA {cuda}，主版本不同或低于次版本兼容的下限。只有数据中心卡和部分 RTX 卡可以在镜像中加入 {package} 包来运行；该卡是否属于此类未知。否则请安装 {needed} 或更新的驱动。"},
  {rule::driver_too_old, outcome::fails, "driver-too-old", sources::release_notes,
   "The driver knows CUDA {cuda} only, and the forward compatibility package is not for this card. Install driver {needed} or newer, or use an image of a CUDA it knows.",
   "驱动只支持 CUDA {cuda}，而前向兼容包不适用于该卡。请安装 {needed} 或更新的驱动，或使用该驱动支持的 CUDA 的镜像。"},
  {rule::driver_dropped_card, outcome::fails, "driver-dropped-card", sources::drivers,
   "Drivers after branch {last_branch} do not drive cards of compute capability {capability}, and this driver is {driver}. CUDA {removed} and newer have no code for cards below {below}. Install a driver of branch {last_branch}, and use an image of a CUDA older than {removed}.",
   "{last_branch} 分支之后的驱动不再支持计算能力 {capability} 的卡，而该驱动为 {driver}。CUDA {removed} 及更新版本不再支持计算能力低于 {below} 的卡。请安装 {last_branch} 分支的驱动，并使用早于 CUDA {removed} 的镜像。"},
  {rule::driver_before_card, outcome::fails, "driver-before-card", sources::drivers,
   "Drivers before branch {first_branch} do not drive cards of compute capability {capability}, and this driver is {driver}. Install a driver of branch {first_branch} or newer.",
   "{first_branch} 分支之前的驱动不支持计算能力 {capability} 的卡，而该驱动为 {driver}。请安装 {first_branch} 或更新分支的驱动。"},
  {rule::capability_removed, outcome::fails, "capability-removed", sources::release_notes,
   "CUDA {removed} and newer have no code for cards below compute capability {below}, and this one has {capability}. Use an image of a CUDA older than {removed}.",
   "CUDA {removed} 及更新版本不再支持计算能力低于 {below} 的卡，而该卡为 {capability}。请使用早于 CUDA {removed} 的镜像。"},
  {rule::card_not_known, outcome::unknown, "card-not-known", sources::cards,
   "The driver is right for CUDA {runtime}, but the card was not judged: no compute capability is known of the name \"{card}\". Pass --compute-capability, for example 8.0; nvidia-smi --query-gpu=name,compute_cap --format=csv prints it.",
   "驱动满足 CUDA {runtime} 的要求，但未对该卡作出判断：无法从名称“{card}”得知计算能力。请指定 --compute-capability，例如 8.0；nvidia-smi --query-gpu=name,compute_cap --format=csv 可以查看。"},
  {rule::shim_covers, outcome::works, "shared-covered", "",
   "The driver knows CUDA {cuda}, and {shim} (baseline CUDA {baseline}) knows the runtime {runtime} of the same major version.",
   "驱动支持 CUDA {cuda}，{shim}（基线 CUDA {baseline}）支持同一主版本的运行时 {runtime}。"},
  {rule::shim_too_old, outcome::fails, "shared-baseline-too-old", "",
   "{shim} wraps the driver interface of CUDA {baseline}, which is older than the runtime {runtime}. Use an image of CUDA {baseline} or older, or ask for whole cards, which do not go through it.",
   "{shim} 封装的是 CUDA {baseline} 的驱动接口，早于运行时 {runtime}。请使用 CUDA {baseline} 或更早的镜像，或申请整卡（整卡不经过该库）。"},
  {rule::shim_other_major, outcome::fails, "shared-other-major", "",
   "With {shim} driver, runtime and baseline must have the same major version; they are CUDA {cuda}, {runtime} and {baseline}. Whole cards do not go through it.",
   "使用 {shim} 时，驱动、运行时与基线的主版本必须相同；现在分别为 CUDA {cuda}、{runtime} 和 {baseline}。整卡不经过该库。"},
  {rule::shim_mig, outcome::fails, "shared-mig", "",
   "{shim} does not share a card that is cut by MIG. Turn MIG off, or use whole cards.",
   "{shim} 不能在已用 MIG 切分的卡上共享。请关闭 MIG，或使用整卡。"},
  {rule::nothing_known, outcome::unknown, "nothing-known", "",
   "Nothing is known of the driver: the node has neither cuda-major-version nor the labels of GPU Feature Discovery.",
   "驱动版本未知：节点既没有 cuda-major-version 标签，也没有 GPU Feature Discovery 的标签。"},
}};
// clang-format on

const rule_row& row_of(rule rule) {
  for (const auto& entry : rule_table) {
    if (entry.is == rule) return entry;
  }
  std::unreachable();
}

verdict made(rule rule, const version& runtime, const machine& machine, const shim_row* shim = nullptr) {
  return {row_of(rule).gives, rule, runtime, machine, shim};
}

/// The first removal of this card, from whichever toolkit on; null where none is known.
const removal_row* removal_of(const machine& machine) {
  if (!machine.capability) return nullptr;
  for (const auto& removal : removals()) {
    if (*machine.capability < removal.below) return &removal;
  }
  return nullptr;
}

const driver_branches_row* branches_of(const machine& machine) {
  return machine.driver && machine.capability ? driver_branches_for(*machine.capability) : nullptr;
}

/// Of an image that the driver knows: what of its code runs on the card.
rule code_rule(const version& runtime, const machine& machine) {
  const auto first = machine.capability ? first_toolkit_for(*machine.capability) : std::nullopt;
  if (!first || runtime >= *first) return rule::backward;
  return runnable_code(*machine.capability, runtime).empty() ? rule::backward_by_ptx : rule::backward_by_older_code;
}

std::string joined_codes(const verdict& verdict, language locale) {
  if (!verdict.host.capability) return {};
  const auto codes = runnable_code(*verdict.host.capability, verdict.runtime);
  std::string out;
  for (const auto& code : codes) {
    if (!out.empty()) out += locale == language::zh ? " 或 " : " or ";
    out += to_string(code);
  }
  return out;
}

bool within_family(const version& runtime, const version& cuda, const machine& machine) {
  const auto* family = family_of(runtime.major);
  if (!family) return false;
  return machine.driver ? *machine.driver >= family->floor : cuda.major == runtime.major;
}

}  // namespace

std::string_view to_string(outcome outcome) noexcept {
  static constexpr std::array<std::string_view, 6> words{
      "works", "works-only-with-ptx", "works-by-minor-version", "needs-forward-package", "fails", "unknown"};
  return words[static_cast<std::size_t>(outcome)];
}

std::string_view name_of(rule rule) noexcept { return row_of(rule).name; }

machine machine_of(const node_facts& node) {
  return {node.cuda, node.driver, node.capability ? node.capability : capability_of(node.product),
          node.card, node.mig,    node.product};
}

verdict judge(const version& runtime, const machine& machine) {
  const auto* branches = branches_of(machine);
  if (branches && branches->last != 0 && machine.driver->major > branches->last)
    return made(rule::driver_dropped_card, runtime, machine);
  if (const auto* removal = removal_of(machine); removal && runtime >= removal->removed_in)
    return made(rule::capability_removed, runtime, machine);
  if (branches && machine.driver->major < branches->first) return made(rule::driver_before_card, runtime, machine);
  const auto cuda = machine.known_cuda();
  // A driver older than the whole rule_table, and a runtime that is older as well: NVIDIA's documents end there.
  if (!cuda && (!machine.driver || runtime < toolkits().back().cuda))
    return made(rule::nothing_known, runtime, machine);
  const bool is_backward = cuda && runtime <= *cuda;
  if (is_backward || (cuda && within_family(runtime, *cuda, machine))) {
    if (!machine.capability && !machine.product.empty()) return made(rule::card_not_known, runtime, machine);
    return made(is_backward ? code_rule(runtime, machine) : rule::minor_version, runtime, machine);
  }
  switch (machine.card) {
    case card_class::data_centre:
      return made(rule::forward_package, runtime, machine);
    case card_class::unknown:
      return made(rule::forward_package_if_data_centre, runtime, machine);
    case card_class::other:
      break;
  }
  return made(rule::driver_too_old, runtime, machine);
}

verdict judge_shared(const version& runtime, const machine& machine, const shim_row& shim_row) {
  if (machine.mig) return made(rule::shim_mig, runtime, machine, &shim_row);
  if (runtime.major != shim_row.baseline.major) return made(rule::shim_other_major, runtime, machine, &shim_row);
  if (runtime > shim_row.baseline) return made(rule::shim_too_old, runtime, machine, &shim_row);
  auto alone = judge(runtime, machine);
  if (alone.is != outcome::works) return alone;
  if (machine.known_cuda()->major != runtime.major) return made(rule::shim_other_major, runtime, machine, &shim_row);
  return made(rule::shim_covers, runtime, machine, &shim_row);
}

std::string text_of(const verdict& verdict, language locale) {
  const auto& row = row_of(verdict.reason);
  const auto cuda = verdict.host.known_cuda();
  const auto* family = family_of(verdict.runtime.major);
  const auto* removed = removal_of(verdict.host);
  const auto* branches = branches_of(verdict.host);
  const auto needed = driver_for(verdict.runtime);
  const auto first = verdict.host.capability ? first_toolkit_for(*verdict.host.capability) : std::nullopt;
  const auto package =
      "cuda-compat-" + std::to_string(verdict.runtime.major) + "-" + std::to_string(verdict.runtime.minor);
  const auto unknown = locale == language::zh ? std::string("未知") : std::string("unknown");
  const auto newest = locale == language::zh ? "支持 CUDA " + to_string(verdict.runtime) + " 的版本"
                                             : "of CUDA " + to_string(verdict.runtime);
  const auto oldest = to_string(toolkits().back().cuda);
  const auto before = !verdict.host.driver     ? unknown
                      : locale == language::zh ? oldest + " 以前的版本"
                                               : "before " + oldest;
  const std::pair<std::string_view, std::string> values[] = {
      {"{runtime}", to_string(verdict.runtime)},
      {"{major}", std::to_string(verdict.runtime.major)},
      {"{cuda}", cuda ? to_string(*cuda) : before},
      {"{capability}", verdict.host.capability ? to_string(*verdict.host.capability) : unknown},
      {"{floor}", family ? to_string(family->floor) : unknown},
      {"{needed}", needed ? to_string(*needed) : newest},
      {"{driver}", verdict.host.driver ? to_string(*verdict.host.driver) : unknown},
      {"{codes}", joined_codes(verdict, locale)},
      {"{first_branch}", branches ? std::to_string(branches->first) : unknown},
      {"{last_branch}", branches ? std::to_string(branches->last) : unknown},
      {"{first}", first ? to_string(*first) : unknown},
      {"{removed}", removed ? to_string(removed->removed_in) : unknown},
      {"{below}", removed ? to_string(removed->below) : unknown},
      {"{shim}", verdict.shim ? std::string(locale == language::zh ? verdict.shim->zh : verdict.shim->name) : unknown},
      {"{baseline}", verdict.shim ? to_string(verdict.shim->baseline) : unknown},
      {"{package}", package},
      {"{card}", text::shown(verdict.host.product, 63)},
  };
  std::string out(locale == language::zh ? row.zh : row.en);
  for (const auto& [name, value] : values) {
    for (auto match = out.find(name); match != std::string::npos; match = out.find(name, match + value.size()))
      out.replace(match, name.size(), value);
  }
  return out;
}

std::string_view source_of(const verdict& verdict) noexcept {
  return verdict.shim ? verdict.shim->source : row_of(verdict.reason).source;
}

std::string_view title_of(outcome outcome, language locale) noexcept {
  static constexpr std::array<std::array<std::string_view, 2>, 6> words{{
      {"works", "可以运行"},
      {"works only where it carries PTX", "只有带有 PTX 时才能运行"},
      {"works by minor version compatibility", "依靠次版本兼容可以运行"},
      {"needs the forward compatibility package", "需要前向兼容包"},
      {"does not work", "不能运行"},
      {"not known", "未知"},
  }};
  return words[static_cast<std::size_t>(outcome)][locale == language::zh ? 1 : 0];
}

}  // namespace reconcilers::cuda
