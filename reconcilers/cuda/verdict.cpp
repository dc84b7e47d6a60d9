#include "reconcilers/cuda/verdict.hpp"

#include <array>
#include <utility>

namespace reconcilers::cuda {
namespace {

using text::language;

struct rule_row {
  rule is;
  outcome gives;
  std::string_view name, source, en, zh;
};

// {runtime} {cuda} {driver} {capability} {floor} {needed} {first} {shim} {baseline} {package}
// clang-format off
constexpr std::array<rule_row, 12> rule_table{{
  {rule::backward, outcome::works, "backward", sources::compatibility,
   "The driver knows CUDA {cuda} and runs every older runtime, so CUDA {runtime} works.",
   "驱动支持 CUDA {cuda}，并可运行所有更早的运行时，因此 CUDA {runtime} 可以使用。"},
  {rule::backward_by_ptx, outcome::works, "backward-by-ptx", sources::compatibility,
   "The driver knows CUDA {cuda} and runs every older runtime. Toolkits before {first} do not build for compute capability {capability}: an image of CUDA {runtime} works only where it carries PTX, which is compiled at its first start.",
   "驱动支持 CUDA {cuda}，并可运行所有更早的运行时。早于 {first} 的工具包不能为计算能力 {capability} 编译：CUDA {runtime} 的镜像只有带有 PTX 时才能运行，首次启动时即时编译。"},
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
  {rule::capability_removed, outcome::fails, "capability-removed", sources::release_notes,
   "CUDA {removed} and newer have no code for cards below compute capability {below}, and this one has {capability}. Use an image of an older major version.",
   "CUDA {removed} 及更新版本不再支持计算能力低于 {below} 的卡，而该卡为 {capability}。请使用更早主版本的镜像。"},
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

/// Of the removal that concerns this card; null where none does.
const removal_row* removal_for(const version& runtime, const machine& machine) {
  for (const auto& removal : removals()) {
    if (machine.capability && runtime >= removal.removed_in && *machine.capability < removal.below) return &removal;
  }
  return nullptr;
}

bool within_family(const version& runtime, const version& cuda, const machine& machine) {
  const auto* family = family_of(runtime.major);
  if (!family) return false;
  return machine.driver ? *machine.driver >= family->floor : cuda.major == runtime.major;
}

}  // namespace

std::string_view to_string(outcome outcome) noexcept {
  static constexpr std::array<std::string_view, 5> words{"works", "works-by-minor-version", "needs-forward-package",
                                                         "fails", "unknown"};
  return words[static_cast<std::size_t>(outcome)];
}

std::string_view name_of(rule rule) noexcept { return row_of(rule).name; }

machine machine_of(const node_facts& node) { return {node.cuda, node.driver, node.capability, node.card, node.mig}; }

verdict judge(const version& runtime, const machine& machine) {
  if (removal_for(runtime, machine)) return made(rule::capability_removed, runtime, machine);
  const auto cuda = machine.known_cuda();
  // A driver older than the whole rule_table, and a runtime that is older as well: NVIDIA's documents end there.
  if (!cuda && (!machine.driver || runtime < toolkits().back().cuda))
    return made(rule::nothing_known, runtime, machine);
  if (cuda && runtime <= *cuda) {
    const auto first = machine.capability ? first_toolkit_for(*machine.capability) : std::nullopt;
    return made(first && runtime < *first ? rule::backward_by_ptx : rule::backward, runtime, machine);
  }
  if (cuda && within_family(runtime, *cuda, machine)) return made(rule::minor_version, runtime, machine);
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
  const auto* removed = removal_for(verdict.runtime, verdict.host);
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
      {"{first}", first ? to_string(*first) : unknown},
      {"{removed}", removed ? to_string(removed->removed_in) : unknown},
      {"{below}", removed ? to_string(removed->below) : unknown},
      {"{shim}", verdict.shim ? std::string(locale == language::zh ? verdict.shim->zh : verdict.shim->name) : unknown},
      {"{baseline}", verdict.shim ? to_string(verdict.shim->baseline) : unknown},
      {"{package}", package},
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
  static constexpr std::array<std::array<std::string_view, 2>, 5> words{{
      {"works", "可以运行"},
      {"works by minor version compatibility", "依靠次版本兼容可以运行"},
      {"needs the forward compatibility package", "需要前向兼容包"},
      {"does not work", "不能运行"},
      {"not known", "未知"},
  }};
  return words[static_cast<std::size_t>(outcome)][locale == language::zh ? 1 : 0];
}

}  // namespace reconcilers::cuda
