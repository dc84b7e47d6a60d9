#include "reconcilers/nodes/preflight.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "reconcilers/cuda/rules.hpp"
#include "text/messages.hpp"
#include "text/text.hpp"

namespace reconcilers {
namespace {

using api::check, api::check_state;
using text::language;

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

/// The version of the table.
std::string oldest(check check) { return std::string(entry_of(check).version); }

bool is_older(const std::string& text, const std::string& floor) {
  const auto version = of(text);
  return version && *version < *of(floor);
}

/// A judgement of the operator's; the table of checks names it.
preflight_row row(check_state state, std::string found = {}, std::string needed = {}) {
  return {{{}, state, std::move(found)}, false, std::move(needed)};
}
preflight_row not_needed() { return row(check_state::not_needed); }
preflight_row unknown(std::string needed = {}) { return row(check_state::unknown, {}, std::move(needed)); }

/// What the agent says, as it says it.
preflight_row verdict(const api::check_row& reported) { return {reported, true}; }

/// At least `floor`, where a version is known.
preflight_row at_least(const std::string& found, const std::string& floor) {
  if (!of(found)) return unknown(floor + "+");
  return row(is_older(found, floor) ? check_state::failed : check_state::ok, found, floor + "+");
}

preflight_row kubernetes(const node_facts& known, const modules::module_type&) {
  return at_least(known.kubelet, oldest(check::kubernetes));
}

preflight_row platform(const node_facts& known, const modules::module_type& mode) {
  std::string needed;
  bool is_good = false;
  for (const auto architecture : mode.needs.architectures) {
    const auto platform = "linux/" + std::string(architecture);
    (needed += needed.empty() ? "" : ", ") += platform;
    is_good = is_good || known.platform == platform;
  }
  if (known.platform.empty()) return unknown(needed);
  return row(is_good ? check_state::ok : check_state::failed, known.platform, needed);
}

preflight_row driver(const node_facts& known, const modules::module_type&) {
  if (const auto* reported = known.row(check::driver)) return verdict(*reported);
  return at_least(known.driver, oldest(check::driver));
}

/// The agent says which version it is, the mode which one it needs.
preflight_row cuda(const node_facts& known, const modules::module_type& mode) {
  const auto* reported = known.row(check::cuda);
  const int floor = mode.needs.cuda;
  if (floor == 0) return reported && reported->state == check_state::ok ? verdict(*reported) : not_needed();
  const auto found = known.cuda.empty() ? cuda_of_driver(known.driver) : known.cuda;
  const auto needed = dotted(floor, 100);
  // One cause, one failure: without a usable driver its CUDA says nothing new.
  const bool has_driver_failed = driver(known, mode).state == check_state::failed;
  const bool is_vague = !found.contains('.') && of(found) && of(found)->parts[0] == floor / 100;
  if (has_driver_failed || is_vague) return unknown(needed + "+");
  if (found.empty() && of(known.driver)) return row(check_state::failed, "driver " + known.driver, needed + "+");
  if (found.empty() && reported) return verdict(*reported);  // it says why it is not known
  return at_least(found, needed);
}

preflight_row compute_capability(const node_facts& known, const modules::module_type& mode) {
  const int floor = mode.needs.compute_capability;
  return floor == 0 ? not_needed() : at_least(known.compute_capability, dotted(floor, 10));
}

preflight_row mig(const node_facts& known, const modules::module_type& mode) {
  if (mode.needs.mig) return not_needed();
  if (known.mig.empty()) return unknown("none");
  return row(known.mig == "none" ? check_state::ok : check_state::failed, known.mig, "none");
}

preflight_row container_toolkit(const node_facts& known, const modules::module_type&) {
  const auto* reported = known.row(check::container_toolkit);
  return reported ? verdict(*reported) : unknown(oldest(check::container_toolkit) + "+");
}

preflight_row default_runtime(const node_facts& known, const modules::module_type& mode) {
  if (mode.name == "vgpu") return not_needed();  // GPU-Manager injects devices and libraries itself
  const auto* reported = known.row(check::default_runtime);
  return reported ? verdict(*reported) : unknown("nvidia, cdi");
}

/// GPU-Manager finds a pod's processes by paths of cgroup v1 (tkestack/gpu-manager issue 184); an image of another
/// maker may know better, so that is a warning.
preflight_row cgroup(const node_facts& known, const modules::module_type& mode) {
  const bool is_picky = mode.name == "vgpu";
  const std::string needed = is_picky ? "v1" : "v1, v2";
  const auto* reported = known.row(check::cgroup);
  if (!reported) return unknown(needed);
  if (is_picky && reported->state == check_state::ok && reported->found != "v1")
    return row(check_state::warning, reported->found, needed);
  return verdict(*reported);
}

/// Cards work without RDMA, so what is missing for it is a warning. The plugin is seen in the node's resources.
preflight_row rdma(const node_facts& known, const modules::module_type&) {
  const auto* reported = known.row(check::rdma);
  const auto found = reported ? reported->found : known.rdma;
  if (reported && reported->state != check_state::ok) return verdict(*reported);
  if (found.empty() || found == "none") return not_needed();
  if (found != "available") return row(check_state::warning, found, "kernel modules");
  if (!reported && is_older(known.driver, oldest(check::rdma)))
    return row(check_state::warning, "driver " + known.driver, "driver " + oldest(check::rdma) + "+");
  if (known.rdma_resource.empty()) return row(check_state::warning, found, "device plugin");
  return row(check_state::ok, known.rdma_resource);
}

/// NVSwitch machines: eight or more SXM cards of Ampere or newer. A DGX-1 (V100) joins its cards without switches.
bool has_nvswitch(const node_facts& known) {
  if (known.cards < nvswitch_cards || !of(known.compute_capability) || is_older(known.compute_capability, "8.0"))
    return false;
  const auto product = text::lower_case(known.product);
  if (product.contains("pcie") || product.contains("nvl")) return false;
  return product.contains("sxm") || product.contains("hbm3") || product.contains("h200") || product.contains("h20") ||
         product.contains("b200") || product.contains("b300");
}

/// An agent has no row where it sees no NVSwitch.
preflight_row fabric_manager(const node_facts& known, const modules::module_type&) {
  if (const auto* reported = known.row(check::fabric_manager)) return verdict(*reported);
  return known.reported.empty() && has_nvswitch(known) ? unknown("active") : not_needed();
}

struct judge {
  check id;
  preflight_row (*call)(const node_facts&, const modules::module_type&);
};
constexpr judge judges[] = {
    {check::kubernetes, kubernetes},
    {check::platform, platform},
    {check::driver, driver},
    {check::cuda, cuda},
    {check::compute_capability, compute_capability},
    {check::mig, mig},
    {check::container_toolkit, container_toolkit},
    {check::default_runtime, default_runtime},
    {check::cgroup, cgroup},
    {check::rdma, rdma},
    {check::fabric_manager, fabric_manager},
};

bool is_judged(std::string_view name) {
  return std::ranges::any_of(judges, [&](const judge& judge) { return to_string(judge.id) == name; });
}

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
  return text::message("preflight." + row.name + "." + std::string(part), locale,
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

const api::check_row* node_facts::row(check check) const {
  const auto match = std::ranges::find(reported, to_string(check), &api::check_row::name);
  return match == reported.end() ? nullptr : &*match;
}

void take_in(node_facts& known, std::vector<api::check_row> reported) {
  known.reported = std::move(reported);
  const auto has_found = [](const api::check_row* row) {
    return row && row->state != check_state::unknown && !row->found.empty();
  };
  if (const auto* row = known.row(check::driver); has_found(row)) known.driver = row->found;
  if (const auto* row = known.row(check::cuda); has_found(row)) known.cuda = row->found;
}

std::vector<preflight_row> preflight(const node_facts& known, const modules::module_type& type,
                                     std::string_view runtime_class) {
  std::vector<preflight_row> out;
  for (const auto& judge : judges) {
    auto row = judge.call(known, type);
    row.name = to_string(judge.id);
    // With a RuntimeClass it does not matter what the others run with.
    if (judge.id == check::default_runtime && !runtime_class.empty()) row.state = check_state::not_needed;
    if (row.state != check_state::not_needed) out.push_back(std::move(row));
  }
  for (const auto& row : known.reported)
    if (!is_judged(row.name)) out.push_back(verdict(row));
  return out;
}

std::string text_of(const preflight_row& row, language locale) {
  if (!is_judged(row.name))
    return text::message("verify.step.reported", locale, {{"check", row.name}, {"found", found_text(row, locale)}});
  auto out = words_of(row, "title", locale);
  if (row.state == check_state::unknown) out += text::message("preflight.not_reported", locale);
  if (const auto found = found_text(row, locale); !found.empty())
    out += text::message("preflight.detail", locale, {{"text", found}});
  if (row.state != check_state::ok && !row.needed.empty())
    out += text::message("preflight.needs", locale, {{"needed", needed_in_words(row, locale)}});
  return out;
}

std::string remedy_of(const preflight_row& row, language locale) {
  if (row.is_by_agent) return remedy_text(row, locale);
  if (row.state != check_state::failed && row.state != check_state::warning) return {};
  return words_of(row, "remedy", locale);
}

}  // namespace reconcilers
