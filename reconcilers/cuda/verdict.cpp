#include "reconcilers/cuda/verdict.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "text/messages.hpp"
#include "text/text.hpp"

namespace reconcilers::cuda {
namespace {

using text::language;

struct rule_row {
  rule is;
  outcome gives;
  std::string_view name, source;
};

constexpr std::array<rule_row, 22> rule_table{{
    {rule::backward, outcome::works, "backward", sources::compatibility},
    {rule::backward_by_older_code, outcome::works, "backward-by-older-code", sources::binary_code},
    {rule::backward_by_ptx, outcome::ptx_only, "backward-by-ptx", sources::binary_code},
    {rule::minor_version, outcome::minor_version, "minor-version", sources::minor_version},
    {rule::forward_package, outcome::forward_package, "forward-package", sources::forward},
    {rule::forward_package_if_data_centre, outcome::forward_package, "forward-package-if-data-centre",
     sources::forward},
    {rule::driver_too_old, outcome::fails, "driver-too-old", sources::release_notes},
    {rule::driver_dropped_card, outcome::fails, "driver-dropped-card", sources::drivers},
    {rule::driver_before_card, outcome::fails, "driver-before-card", sources::drivers},
    {rule::capability_removed, outcome::fails, "capability-removed", sources::release_notes},
    {rule::card_not_known, outcome::unknown, "card-not-known", sources::cards},
    {rule::toolkit_not_known, outcome::unknown, "toolkit-not-known", sources::release_notes},
    {rule::driver_not_known, outcome::unknown, "driver-not-known", sources::drivers},
    {rule::driver_not_released, outcome::unknown, "driver-not-released", sources::drivers},
    {rule::capability_not_known, outcome::unknown, "capability-not-known", sources::cards},
    {rule::other_vendor, outcome::unknown, "other-vendor", sources::cards},
    {rule::tegra_driver, outcome::unknown, "tegra-driver", sources::jetson},
    {rule::shim_covers, outcome::works, "shared-covered", ""},
    {rule::shim_too_old, outcome::fails, "shared-baseline-too-old", ""},
    {rule::shim_other_major, outcome::fails, "shared-other-major", ""},
    {rule::shim_mig, outcome::fails, "shared-mig", ""},
    {rule::nothing_known, outcome::unknown, "nothing-known", ""},
}};

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
    if (!out.empty()) out += text::message("cuda.or", locale);
    out += to_string(code);
  }
  return out;
}

/// "cuda.rule.forward_package"
std::string key_of(std::string_view table, std::string_view name) {
  std::string out = "cuda." + std::string(table) + "." + std::string(name);
  std::ranges::replace(out, '-', '_');
  return out;
}

bool is_released(const driver_version& driver) { return std::ranges::binary_search(released_branches(), driver.major); }

/// The released branches below and above that of a driver; empty where there is none.
std::pair<std::string, std::string> neighbours_of(const driver_version& driver) {
  const auto all = released_branches();
  const auto above = std::ranges::upper_bound(all, driver.major), below = std::ranges::lower_bound(all, driver.major);
  return {below == all.begin() ? std::string() : std::to_string(*(below - 1)),
          above == all.end() ? std::string() : std::to_string(*above)};
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

bool is_beyond_table(const driver_version& driver) { return driver.major > toolkits().front().driver.major; }

verdict doubted(const verdict& judged) {
  const auto& host = judged.host;
  if (is_of_other_vendor(host.product)) return made(rule::other_vendor, judged.runtime, host);
  if (host.capability && is_tegra(*host.capability)) return made(rule::tegra_driver, judged.runtime, host);
  const bool is_sure = judged.is == outcome::fails || judged.is == outcome::unknown;
  if (is_sure) return judged;
  if (!is_toolkit(judged.runtime)) return made(rule::toolkit_not_known, judged.runtime, host);
  if (host.driver && is_beyond_table(*host.driver)) return made(rule::driver_not_known, judged.runtime, host);
  if (host.driver && !is_released(*host.driver)) return made(rule::driver_not_released, judged.runtime, host);
  if (host.capability && !is_capability_of_cards(*host.capability))
    return made(rule::capability_not_known, judged.runtime, host);
  return judged;
}

std::string text_of(const verdict& verdict, language locale) {
  const auto cuda = verdict.host.known_cuda();
  const auto* family = family_of(verdict.runtime.major);
  const auto* removed = removal_of(verdict.host);
  const auto* branches = branches_of(verdict.host);
  const auto needed = driver_for(verdict.runtime);
  const auto first = verdict.host.capability ? first_toolkit_for(*verdict.host.capability) : std::nullopt;
  const auto package =
      "cuda-compat-" + std::to_string(verdict.runtime.major) + "-" + std::to_string(verdict.runtime.minor);
  const auto unknown = text::message("cuda.unknown", locale);
  const auto [branch_below, branch_above] = neighbours_of(verdict.host.driver.value_or(driver_version()));
  const auto newest = text::message("cuda.driver_of", locale, {{"cuda", to_string(verdict.runtime)}});
  const auto before = verdict.host.driver
                          ? text::message("cuda.before", locale, {{"cuda", to_string(toolkits().back().cuda)}})
                          : unknown;
  return text::message(
      key_of("rule", name_of(verdict.reason)), locale,
      {
          {"runtime", to_string(verdict.runtime)},
          {"newest", to_string(toolkits().front().cuda)},
          {"newest_branch", std::to_string(toolkits().front().driver.major)},
          {"major", std::to_string(verdict.runtime.major)},
          {"branch", std::to_string(verdict.host.driver.value_or(driver_version()).major)},
          {"branch_below", branch_below.empty() ? unknown : branch_below},
          {"branch_above", branch_above.empty() ? unknown : branch_above},
          {"cuda", cuda ? to_string(*cuda) : before},
          {"capability", verdict.host.capability ? to_string(*verdict.host.capability) : unknown},
          {"floor", family ? to_string(family->floor) : unknown},
          {"needed", needed ? to_string(*needed) : newest},
          {"driver", verdict.host.driver ? to_string(*verdict.host.driver) : unknown},
          {"codes", joined_codes(verdict, locale)},
          {"first_branch", branches ? std::to_string(branches->first) : unknown},
          {"last_branch", branches ? std::to_string(branches->last) : unknown},
          {"first", first ? to_string(*first) : unknown},
          {"removed", removed ? to_string(removed->removed_in) : unknown},
          {"below", removed ? to_string(removed->below) : unknown},
          {"shim",
           verdict.shim ? std::string(locale == language::zh ? verdict.shim->zh : verdict.shim->name) : unknown},
          {"baseline", verdict.shim ? to_string(verdict.shim->baseline) : unknown},
          {"package", package},
          {"card", text::shown(verdict.host.product, 63)},
      });
}

std::string_view source_of(const verdict& verdict) noexcept {
  return verdict.shim ? verdict.shim->source : row_of(verdict.reason).source;
}

std::string_view title_of(outcome outcome, language locale) {
  return text::pattern_of(key_of("outcome", to_string(outcome)), locale);
}

}  // namespace reconcilers::cuda
