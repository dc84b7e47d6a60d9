#include "reconcilers/nodes/preflight.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "reconcilers/cuda/rules.hpp"
#include "text/messages.hpp"
#include "text/text.hpp"

namespace reconcilers {
namespace {

using check = preflight_check;
using text::language;

/// Kubernetes: the product's promise. Driver and toolkit: prerequisites of NVIDIA's k8s-device-plugin.
constexpr dotted_version oldest_kubelet{{1, 25, 0}}, oldest_driver{{384, 81, 0}}, oldest_toolkit{{1, 7, 0}};
/// RDMA together with cards: a driver later than 470.
constexpr dotted_version rdma_driver{{470, 0, 0}};
/// Machines whose cards are joined by NVSwitch have eight or more of them.
constexpr int nvswitch_cards = 8;

std::string dotted(int packed, int base) { return std::to_string(packed / base) + "." + std::to_string(packed % base); }

std::optional<dotted_version> of(const std::string& text) { return parse_version(text); }

/// The newest CUDA that a driver runs, where no one has said; empty where it is older than NVIDIA's table.
std::string cuda_of_driver(const std::string& driver) {
  const auto is = of(driver);
  if (!is) return {};
  const auto cuda = cuda::cuda_of({is->parts[0], is->parts[1], is->parts[2]});
  return cuda ? cuda::to_string(*cuda) : std::string();
}

bool older(const std::string& text, const dotted_version& dotted_version) {
  const auto is = of(text);
  return is && *is < dotted_version;
}

preflight_row row(check check, preflight_verdict is, std::string found, std::string needed = {}) {
  return {check, is, std::move(found), std::move(needed)};
}

/// At least `floor`, where a version is known.
preflight_row at_least(check check, const std::string& found, const dotted_version& floor, std::string needed) {
  if (found.empty() || (found != "missing" && !of(found)))
    return row(check, preflight_verdict::unknown, {}, std::move(needed));
  const bool bad = found == "missing" || older(found, floor);
  return row(check, bad ? preflight_verdict::failed : preflight_verdict::passed, found, std::move(needed));
}

preflight_row kubernetes(const node_facts& is, const modules::module_type&) {
  return at_least(check::kubernetes, is.kubelet, oldest_kubelet, "1.25+");
}

preflight_row platform(const node_facts& is, const modules::module_type& mode) {
  std::string needed;
  for (const auto architecture : mode.needs.architectures)
    (needed += needed.empty() ? "linux/" : ", linux/") += architecture;
  if (is.platform.empty()) return row(check::platform, preflight_verdict::unknown, {}, needed);
  const auto matches = [&](std::string_view architecture) {
    return is.platform == "linux/" + std::string(architecture);
  };
  const bool good = std::ranges::any_of(mode.needs.architectures, matches);
  return row(check::platform, good ? preflight_verdict::passed : preflight_verdict::failed, is.platform, needed);
}

preflight_row driver(const node_facts& is, const modules::module_type&) {
  return at_least(check::driver, is.driver, oldest_driver, "384.81+");
}

preflight_row cuda(const node_facts& is, const modules::module_type& mode) {
  const auto found = is.cuda.empty() ? cuda_of_driver(is.driver) : is.cuda;
  const int floor = mode.needs.cuda;
  if (floor == 0)
    return row(check::cuda, found.empty() ? preflight_verdict::not_needed : preflight_verdict::passed, found);
  const auto needed = dotted(floor, 100) + "+";
  // One cause, one failure: without a usable driver its CUDA says nothing new.
  if (is.driver == "missing" || older(is.driver, oldest_driver))
    return row(check::cuda, preflight_verdict::unknown, {}, needed);
  if (found.empty() && of(is.driver)) return row(check::cuda, preflight_verdict::failed, "driver " + is.driver, needed);
  const bool vague = !found.contains('.') && of(found) && of(found)->parts[0] == floor / 100;
  if (vague) return row(check::cuda, preflight_verdict::unknown, {}, needed);
  return at_least(check::cuda, found, {{floor / 100, floor % 100, 0}}, needed);
}

preflight_row compute_capability(const node_facts& is, const modules::module_type& mode) {
  const int floor = mode.needs.compute_capability;
  if (floor == 0) return row(check::compute_capability, preflight_verdict::not_needed, is.compute_capability);
  return at_least(check::compute_capability, is.compute_capability, {{floor / 10, floor % 10, 0}},
                  dotted(floor, 10) + "+");
}

preflight_row mig(const node_facts& is, const modules::module_type& mode) {
  if (mode.needs.mig) return row(check::mig, preflight_verdict::not_needed, is.mig);
  if (is.mig.empty()) return row(check::mig, preflight_verdict::unknown, {}, "none");
  return row(check::mig, is.mig == "none" ? preflight_verdict::passed : preflight_verdict::failed, is.mig, "none");
}

preflight_row container_toolkit(const node_facts& is, const modules::module_type&) {
  return at_least(check::container_toolkit, is.toolkit, oldest_toolkit, "1.7.0+");
}

preflight_row default_runtime(const node_facts& is, const modules::module_type& mode) {
  // GPU-Manager injects devices and libraries itself.
  if (mode.name == "vgpu") return row(check::default_runtime, preflight_verdict::not_needed, is.default_runtime);
  if (is.default_runtime.empty()) return row(check::default_runtime, preflight_verdict::unknown, {}, "nvidia, cdi");
  const bool is_usual = is.default_runtime == "nvidia" || is.default_runtime == "cdi";
  const bool good = is.default_runtime_state.empty() ? is_usual : is.default_runtime_state == "ok";
  return row(check::default_runtime, good ? preflight_verdict::passed : preflight_verdict::failed, is.default_runtime,
             "nvidia, cdi");
}

/// GPU-Manager finds a pod's processes by paths of cgroup v1 (tkestack/gpu-manager issue 184); an image of another
/// maker may know better, so that is a warning.
preflight_row cgroup(const node_facts& is, const modules::module_type& mode) {
  const bool picky = mode.name == "vgpu";
  const std::string needed = picky ? "v1" : "v1, v2";
  if (is.cgroup.empty()) return row(check::cgroup, preflight_verdict::unknown, {}, needed);
  return row(check::cgroup, picky && is.cgroup != "v1" ? preflight_verdict::warning : preflight_verdict::passed,
             is.cgroup, needed);
}

/// Cards work without RDMA, so what is missing for it is a warning.
preflight_row rdma(const node_facts& is, const modules::module_type&) {
  if (is.rdma.empty() || is.rdma == "none") return row(check::rdma, preflight_verdict::not_needed, is.rdma);
  if (is.rdma != "available") return row(check::rdma, preflight_verdict::warning, is.rdma, "kernel modules");
  if (const auto version = of(is.driver); version && *version <= rdma_driver)
    return row(check::rdma, preflight_verdict::warning, "driver " + is.driver, "driver > 470");
  if (is.rdma_resource.empty()) return row(check::rdma, preflight_verdict::warning, is.rdma, "device plugin");
  return row(check::rdma, preflight_verdict::passed, is.rdma_resource);
}

/// NVSwitch machines: eight or more SXM cards of Ampere or newer. A DGX-1 (V100) joins its cards without switches.
bool has_nvswitch(const node_facts& is) {
  if (is.has_switches) return true;
  if (is.cards < nvswitch_cards || !of(is.compute_capability) || older(is.compute_capability, {{8, 0, 0}}))
    return false;
  const auto product = text::lower_case(is.product);
  if (product.contains("pcie") || product.contains("nvl")) return false;
  return product.contains("sxm") || product.contains("hbm3") || product.contains("h200") || product.contains("h20") ||
         product.contains("b200") || product.contains("b300");
}

preflight_row fabric_manager(const node_facts& is, const modules::module_type&) {
  const auto& found = is.fabric_manager;
  if (!has_nvswitch(is)) return row(check::fabric_manager, preflight_verdict::not_needed, found);
  if (found.empty()) return row(check::fabric_manager, preflight_verdict::unknown, {}, "active");
  const auto version = of(found);
  if (!version)
    return row(check::fabric_manager, found == "active" ? preflight_verdict::passed : preflight_verdict::failed, found,
               "active");
  // It refuses to start with a driver of another version.
  const bool same = !of(is.driver) || of(is.driver) == version;
  return row(check::fabric_manager, same ? preflight_verdict::passed : preflight_verdict::failed, found, is.driver);
}

struct entry {
  check id;
  std::string_view name;
  preflight_row (*judge)(const node_facts&, const modules::module_type&);
};
constexpr std::array<entry, preflight_check_count> table{{
    {check::kubernetes, "kubernetes", kubernetes},
    {check::platform, "platform", platform},
    {check::driver, "driver", driver},
    {check::cuda, "cuda", cuda},
    {check::compute_capability, "compute_capability", compute_capability},
    {check::mig, "mig", mig},
    {check::container_toolkit, "container_toolkit", container_toolkit},
    {check::default_runtime, "default_runtime", default_runtime},
    {check::cgroup, "cgroup", cgroup},
    {check::rdma, "rdma", rdma},
    {check::fabric_manager, "fabric_manager", fabric_manager},
}};

const entry& entry_of(check check) { return table[static_cast<std::size_t>(check)]; }

/// "1.7.0+" and "v1, v2" in words.
std::string needed_in_words(const preflight_row& row, language locale) {
  std::string needed = row.needed;
  if (needed.ends_with("+")) {
    needed.pop_back();
    needed = text::message("preflight.or_newer", locale, {{"version", needed}});
  }
  if (const auto last = needed.rfind(", "); last != std::string::npos)  // one of them
    needed.replace(last, 2, text::message("preflight.or", locale));
  return needed;
}

std::string words_of(const preflight_row& row, std::string_view part, language locale) {
  return text::message("preflight." + std::string(to_string(row.check)) + "." + std::string(part), locale,
                       {{"found", row.found}, {"needed", needed_in_words(row, locale)}});
}

/// The modern label, or the one GPU Feature Discovery has given up.
std::string label(const kube::node& node, std::string_view key, std::string_view old = {}) {
  const auto now = node.labels.value_or(key, "");
  return std::string(!now.empty() || old.empty() ? now : node.labels.value_or(old, ""));
}

std::string two_parts(const std::string& major, const std::string& minor) {
  if (major.empty()) return {};
  return minor.empty() ? major : major + "." + minor;
}

std::string driver_label(const kube::node& node) {
  auto whole = label(node, "nvidia.com/cuda.driver-version.full");
  if (!whole.empty()) return whole;
  auto out = two_parts(label(node, "nvidia.com/cuda.driver-version.major", "nvidia.com/cuda.driver.major"),
                       label(node, "nvidia.com/cuda.driver-version.minor", "nvidia.com/cuda.driver.minor"));
  const auto revision = label(node, "nvidia.com/cuda.driver-version.revision", "nvidia.com/cuda.driver.rev");
  return revision.empty() ? out : out + "." + revision;
}

std::string rdma_label(const kube::node& node) {
  if (node.labels.value_or("feature.node.kubernetes.io/rdma.available", "") == "true") return "available";
  if (node.labels.value_or("feature.node.kubernetes.io/rdma.capable", "") == "true") return "capable";
  // Machines of Alibaba Cloud with an eRDMA card, which NFD does not know.
  const auto type = node.labels.value_or("node.kubernetes.io/instance-type", "");
  for (const auto family : {"ebmgn7ex", "ebmgn7ix", "ebmgn8is"}) {
    if (type.contains(family)) return "capable";
  }
  return {};
}

std::string* field_of(node_facts& node_facts, check id) {
  switch (id) {
    case check::kubernetes:
      return &node_facts.kubelet;
    case check::platform:
      return &node_facts.platform;
    case check::driver:
      return &node_facts.driver;
    case check::cuda:
      return &node_facts.cuda;
    case check::compute_capability:
      return &node_facts.compute_capability;
    case check::mig:
      return &node_facts.mig;
    case check::container_toolkit:
      return &node_facts.toolkit;
    case check::default_runtime:
      return &node_facts.default_runtime;
    case check::cgroup:
      return &node_facts.cgroup;
    case check::rdma:
      return &node_facts.rdma;
    case check::fabric_manager:
      return &node_facts.fabric_manager;
  }
  return nullptr;
}

}  // namespace

std::optional<dotted_version> parse_version(std::string_view text) {
  while (!text.empty() && (text.front() < '0' || text.front() > '9')) {
    if (text.front() != 'v' && text.front() != 'V') return std::nullopt;
    text.remove_prefix(1);
  }
  dotted_version out;
  bool any = false;
  for (auto& part : out.parts) {
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), part);
    if (failed != std::errc()) break;
    any = true;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.starts_with(".")) break;
    text.remove_prefix(1);
  }
  return any ? std::optional(out) : std::nullopt;
}

node_facts facts_of(const kube::node& node) {
  node_facts out;
  out.kubelet = node.kubelet_version;
  if (!node.operating_system.empty() && !node.architecture.empty())
    out.platform = node.operating_system + "/" + node.architecture;
  out.driver = driver_label(node);
  out.cuda = two_parts(label(node, "nvidia.com/cuda.runtime-version.major", "nvidia.com/cuda.runtime.major"),
                       label(node, "nvidia.com/cuda.runtime-version.minor", "nvidia.com/cuda.runtime.minor"));
  out.compute_capability =
      two_parts(label(node, "nvidia.com/gpu.compute.major"), label(node, "nvidia.com/gpu.compute.minor"));
  out.mig = label(node, "nvidia.com/mig.strategy");
  // GPU Feature Discovery writes its strategy on every node; a card that cannot be cut is not.
  if (node.labels.value_or("nvidia.com/mig.capable", "") == "false") out.mig = "none";
  out.product = label(node, "nvidia.com/gpu.product");
  out.rdma = rdma_label(node);
  for (const auto& [name, amount] : node.allocatable) {
    if (amount > 0 && (name.starts_with("rdma/") || name.starts_with("aliyun/erdma"))) out.rdma_resource = name;
  }
  const auto count = label(node, "nvidia.com/gpu.count");
  std::from_chars(count.data(), count.data() + count.size(), out.cards);
  return out;
}

void take_in(node_facts& node_facts, std::span<const agent_row> reported) {
  for (const auto& row : reported) {
    const auto match = std::ranges::find(table, row.check, &entry::name);
    if (match != table.end() && match->id == check::fabric_manager) node_facts.has_switches = true;
    if (match != table.end() && match->id == check::default_runtime && row.state != "unknown")
      node_facts.default_runtime_state = row.state;
    if (match == table.end() || row.state == "unknown")
      node_facts.reported.push_back(row);
    else if (!row.found.empty())
      *field_of(node_facts, match->id) = row.found;
  }
}

std::vector<preflight_row> preflight(const node_facts& known, const modules::module_type& of_module) {
  std::vector<preflight_row> out;
  for (const auto& entry : table) {
    out.push_back(entry.judge(known, of_module));
    const auto match = std::ranges::find(known.reported, entry.name, &agent_row::check);
    if (out.back().is == preflight_verdict::unknown && match != known.reported.end()) out.back().reason = match->found;
  }
  return out;
}

std::vector<agent_row> agent_checks(const node_facts& known) {
  std::vector<agent_row> out;
  std::ranges::copy_if(known.reported, std::back_inserter(out), [](const agent_row& row) {
    return std::ranges::find(table, row.check, &entry::name) == table.end();
  });
  return out;
}

std::string_view to_string(check check) noexcept { return entry_of(check).name; }

std::string_view to_string(preflight_verdict is) noexcept {
  constexpr std::array<std::string_view, 5> names{"passed", "failed", "warning", "unknown", "not_needed"};
  return names[static_cast<std::size_t>(is)];
}

std::string text_of(const preflight_row& of_row, language locale) {
  auto out = words_of(of_row, "title", locale);
  if (of_row.found.empty()) out += text::message("preflight.not_reported", locale);
  if (const auto& detail = of_row.found.empty() ? of_row.reason : of_row.found; !detail.empty())
    out += text::message("preflight.detail", locale, {{"text", detail}});
  if ((of_row.is == preflight_verdict::failed || of_row.is == preflight_verdict::warning ||
       of_row.is == preflight_verdict::unknown) &&
      !of_row.needed.empty())
    out += text::message("preflight.needs", locale, {{"needed", needed_in_words(of_row, locale)}});
  return out;
}

std::string remedy_of(const preflight_row& of_row, language locale) {
  if (of_row.is != preflight_verdict::failed && of_row.is != preflight_verdict::warning) return {};
  return words_of(of_row, "remedy", locale);
}

}  // namespace reconcilers
