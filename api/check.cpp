#include "api/check.hpp"

#include <algorithm>
#include <array>

#include "text/escape.hpp"
#include "text/fact.hpp"

namespace api {
namespace {

constexpr std::array<std::string_view, 5> states{"ok", "warning", "failed", "unknown", "not_needed"};

constexpr check_ends nobody{}, reports{true, false, false}, warns{true, true, false}, fails{true, false, true},
    both{true, true, true};

/// Kubernetes: the product's promise. Driver and toolkit: prerequisites of NVIDIA's k8s-device-plugin. RDMA and limits
/// of memory: from this branch of the driver on. peermem: from this Linux on DMA-BUF does its work (NVIDIA, GPUDirect
/// RDMA).
constexpr std::array<check_entry, static_cast<std::size_t>(check::vgpu_license) + 1> check_table{{
    {check::kubernetes, "kubernetes", "1.25", nobody, fails},
    {check::platform, "platform", {}, nobody, fails},
    {check::cards, "cards", {}, both, nobody},
    {check::nouveau, "nouveau", {}, both, nobody},
    {check::kernel, "kernel", {}, fails, nobody},
    {check::driver, "driver", "384.81", fails, fails},
    {check::driver_library, "driver_library", {}, both, nobody},
    {check::driver_branch, "driver_branch", {}, fails, nobody},
    {check::kernel_module, "kernel_module", {}, fails, nobody},
    {check::cuda, "cuda", {}, reports, fails},
    {check::compute_capability, "compute_capability", {}, nobody, fails},
    {check::mig, "mig", {}, nobody, fails},
    {check::device_nodes, "device_nodes", {}, both, nobody},
    {check::nvidia_uvm, "nvidia_uvm", {}, both, nobody},
    {check::dev_char, "dev_char", {}, warns, nobody},
    {check::persistence, "persistence", {}, warns, nobody},
    {check::fabric_manager, "fabric_manager", {}, fails, reports},
    {check::fabric, "fabric", {}, both, nobody},
    {check::container_toolkit, "container_toolkit", "1.7.0", fails, reports},
    {check::container_runtime, "container_runtime", {}, both, nobody},
    {check::default_runtime, "default_runtime", {}, warns, reports},
    {check::visible_devices, "visible_devices", {}, warns, nobody},
    {check::cdi, "cdi", {}, both, nobody},
    {check::cgroup, "cgroup", {}, reports, warns},
    {check::memory_limits, "memory_limits", "615", warns, nobody},
    {check::kubelet_device_plugins, "kubelet_device_plugins", {}, fails, nobody},
    {check::kubelet_pod_resources, "kubelet_pod_resources", {}, fails, nobody},
    {check::rdma, "rdma", "471", warns, warns},
    {check::rdma_ports, "rdma_ports", {}, warns, nobody},
    {check::peermem, "peermem", "5.12", warns, nobody},
    {check::rdma_affinity, "rdma_affinity", {}, warns, nobody},
    {check::machine, "machine", {}, warns, nobody},
    {check::vgpu_license, "vgpu_license", {}, fails, nobody},
}};
static_assert(
    [] {
      for (std::size_t i = 0; i < check_table.size(); ++i)
        if (check_table[i].id != static_cast<check>(i)) return false;
      return true;
    }(),
    "one entry per check, in the order of the enumeration");

constexpr std::string_view cause_table = "preflight_cause";

/// Parameters whose value is a code with words of its own, in which the other parameters may stand.
struct worded_parameter {
  std::string_view name, table, part;
};
constexpr worded_parameter advice_words{"advice", "preflight_advice", "remedy"};
constexpr std::array worded{advice_words, worded_parameter{"problem", "config_problem", "found"}};

/// Words of a cause have as much room as the row's own text, and twice more: a Chinese character has three bytes.
constexpr std::size_t longest_words = 3 * longest_check_text;

/// Whether every {name} of a pattern has a value. A newer agent may know other parameters for a cause.
bool is_complete(std::string_view pattern, std::span<const text::parameter> parameters) {
  return std::ranges::all_of(text::placeholders_of(pattern), [&](std::string_view name) {
    return std::ranges::find(parameters, name, &text::parameter::name) != parameters.end();
  });
}

std::string_view pattern_of(const worded_parameter& parameter, std::string_view code, text::language locale) {
  return text::pattern_of({.table = parameter.table, .code = code, .level = {}, .parameters = {}}, parameter.part,
                          locale);
}

text::fact fact_of(const check_row& row, text::language locale) {
  text::fact out{.table = cause_table, .code = row.cause, .level = text::severity::warning, .parameters = {}};
  for (const auto& [name, value] : row.parameters) {
    if (out.parameters.size() == most_check_parameters) break;
    out.parameters.push_back({name, text::utf8_clean(value, longest_check_parameter)});
  }
  for (const auto& parameter : worded) {
    const auto match = std::ranges::find(out.parameters, parameter.name, &text::parameter::name);
    if (match == out.parameters.end()) continue;
    const auto pattern = pattern_of(parameter, match->value, locale);
    if (pattern.empty() || !is_complete(pattern, out.parameters))
      out.parameters.erase(match);  // of a newer agent: then the row's own text is complete
    else
      match->value = text::filled(pattern, out.parameters);
  }
  return out;
}

/// The words of one part of the row's cause; `own` where there are none.
std::string words_of(const check_row& row, std::string_view part, const std::string& own, text::language locale) {
  if (row.cause.empty()) return own;
  const auto fact = fact_of(row, locale);
  const auto pattern = text::pattern_of(fact, part, locale);
  if (pattern.empty() || !is_complete(pattern, fact.parameters)) return own;
  return text::utf8_clean(text::filled(pattern, fact.parameters), longest_words);
}

text::phrase phrase_of(const explained_cause& cause, std::string_view part) {
  text::phrase out{std::string(cause_table) + "." + std::string(to_string(cause.code)) + "." + std::string(part)};
  std::vector<std::pair<std::string_view, text::phrase>> phrases;
  for (const auto& [name, value] : cause.parameters) {
    const auto match = std::ranges::find(worded, name, &worded_parameter::name);
    if (match == worded.end())
      out.arguments.push_back({name, text::utf8_clean(value, longest_check_parameter)});
    else
      phrases.emplace_back(name,
                           text::phrase{std::string(match->table) + "." + value + "." + std::string(match->part)});
  }
  const auto plain = out.arguments;
  for (auto& [name, phrase] : phrases) {
    phrase.arguments = plain;
    out.arguments.push_back({name, std::move(phrase)});
  }
  return out;
}

check_row row_of(const explained_cause& cause) {
  check_row out;
  out.cause = to_string(cause.code);
  for (const auto& [name, value] : cause.parameters)
    out.parameters[std::string(name)] = text::utf8_clean(value, longest_check_parameter);
  return out;
}

}  // namespace

std::string_view to_string(check_state state) noexcept { return states[static_cast<std::size_t>(state)]; }

check_state check_state_in(std::string_view word) noexcept {
  const auto match = std::ranges::find(states, word);
  return match == states.end() ? check_state::unknown : static_cast<check_state>(match - states.begin());
}

std::span<const check_entry> checks() noexcept { return check_table; }
const check_entry& entry_of(check check) noexcept { return check_table[static_cast<std::size_t>(check)]; }
std::string_view to_string(check check) noexcept { return entry_of(check).name; }

check_row row_of(check check, check_state state, std::string found, const explained_cause& cause) {
  auto out = row_of(cause);
  out.name = to_string(check);
  out.state = state;
  out.found = std::move(found);
  // Names and contents of files may be anything.
  out.found = text::utf8_clean(out.found.empty() ? found_text(out, text::language::en) : out.found, longest_check_text);
  out.remedy = text::utf8_clean(remedy_text(out, text::language::en), longest_check_text);
  return out;
}

std::string found_text(const check_row& row, text::language locale) {
  return words_of(row, "found", row.found, locale);
}
std::string remedy_text(const check_row& row, text::language locale) {
  return words_of(row, "remedy", row.remedy, locale);
}
std::string found_text(const explained_cause& cause) { return found_text(row_of(cause), text::language::en); }
std::string remedy_text(const explained_cause& cause) { return remedy_text(row_of(cause), text::language::en); }
text::phrase remedy_phrase(check_advice advice) {
  return {std::string(advice_words.table) + "." + std::string(to_string(advice)) + ".remedy"};
}
text::phrase found_phrase(const explained_cause& cause) { return phrase_of(cause, "found"); }
text::phrase remedy_phrase(const explained_cause& cause) { return phrase_of(cause, "remedy"); }
std::string remedy_text(check_advice advice) {
  return std::string(pattern_of(advice_words, to_string(advice), text::language::en));
}

}  // namespace api
