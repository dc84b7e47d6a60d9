#include "cli/lint/unoffered.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "quota/vocabulary.hpp"
#include "text/messages.hpp"
#include "text/nearest.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

// As the vendors' own plugins name them.
constexpr std::array<std::string_view, 17> keys_of_vendors{
    "amd.com/gpu",     "aws.amazon.com/neuron", "aws.amazon.com/neuroncore", "cambricon.com/mlu",
    "enflame.com/gcu", "google.com/tpu",        "gpu.intel.com/i915",        "gpu.intel.com/xe",
    "habana.ai/gaudi", "huawei.com/Ascend310",  "huawei.com/Ascend310P",     "huawei.com/Ascend910",
    "hygon.com/dcu",   "iluvatar.com/gpu",      "kunlunxin.com/xpu",         "metax-tech.com/gpu",
    "mthreads.com/gpu"};

std::size_t digits_at(std::string_view text, std::size_t begin) {
  return std::min(text.find_first_not_of("0123456789", begin), text.size()) - begin;
}

/// "nvidia.com/mig-1g.10gb", with "+me" as ".me" behind it.
bool is_slice(std::string_view key) {
  constexpr std::string_view prefix = "nvidia.com/mig-";
  if (!key.starts_with(prefix)) return false;
  key.remove_prefix(prefix.size());
  const auto slices = digits_at(key, 0);
  if (slices == 0 || !key.substr(slices).starts_with("g.")) return false;
  const auto memory = digits_at(key, slices + 2);
  const auto rest = key.substr(slices + 2 + memory);
  return memory > 0 && rest.starts_with("gb") && (rest.size() == 2 || rest[2] == '.');
}

}  // namespace

bool is_vendor_key(std::string_view key) {
  return is_slice(key) || std::ranges::find(keys_of_vendors, key) != keys_of_vendors.end();
}

std::span<const std::string_view> vendor_keys() { return keys_of_vendors; }

void add_offered(const kube::node& node, key_set& key_set) {
  for (const auto& [key, amount] : node.allocatable)
    if (amount > 0) key_set.insert(key);
}

std::string_view card_of_native_domain(std::string_view key) {
  const auto slash = key.find('/');
  if (slash == std::string_view::npos || !class_in_name(key).empty()) return {};
  const auto domain = key.substr(0, slash);
  if (domain != "kubernetes.io" && !domain.ends_with(".kubernetes.io")) return {};
  const auto name = text::lower_case(key.substr(slash + 1));
  return name.contains("gpu") ? "nvidia.com/gpu" : std::string_view();
}

std::string nearest_key(std::string_view key, std::span<const std::string_view> known) {
  const auto slash = key.find('/');
  if (slash == std::string_view::npos) return {};
  const auto domain = key.substr(0, slash), name = key.substr(slash + 1);
  std::vector<std::string_view> names, domains;
  for (const auto other : known) {
    const auto end = other.find('/');
    const auto its_domain = other.substr(0, end), its_name = other.substr(end + 1);
    if (its_domain == domain) names.push_back(its_name);
    if (its_name != name) continue;
    domains.push_back(its_domain);
    if (its_domain.starts_with(std::string(domain) + ".")) return std::string(other);
  }
  if (const auto near = text::nearest(name, names); !near.empty()) return std::string(domain) + "/" + std::string(near);
  if (const auto near = text::nearest(domain, domains); !near.empty())
    return std::string(near) + "/" + std::string(name);
  return {};
}

std::string_view known_resources::class_of(std::string_view key) const {
  if (const auto name = class_in_name(key); !name.empty()) return name;
  const auto match = offered.contains(key) ? classes.end() : classes.find(key);
  return match == classes.end() ? std::string_view() : std::string_view(match->second);
}

bool known_resources::lacks(std::string_view key) const {
  return !offered.contains(key) && class_of(key).empty() && !declared.contains(key) && !quota::known(key);
}

std::string known_resources::nearest(std::string_view key) const {
  std::vector<std::string_view> candidates(offered.begin(), offered.end());
  candidates.insert(candidates.end(), declared.begin(), declared.end());
  return std::string(text::nearest(key, candidates));
}

void known_resources::add_refused(std::span<const reconcilers::declarations::refused_declaration> declarations) {
  for (const auto& declaration : declarations)
    if (!declaration.key.empty()) refused.try_emplace(declaration.key, declaration);
}

std::string known_resources::text_of(std::string_view key, text::language locale) const {
  if (const auto match = refused.find(key); match != refused.end())
    return text::message("explain.no_offer_as_refused", locale,
                         {{"key", text::shown(key, 320)},
                          {"configmap", match->second.config_map.to_string()},
                          {"text", text::shown(match->second.reason_in(locale), 1000)}});
  const auto meant = nearest(key);
  return text::message(meant.empty() ? "explain.no_offer" : "explain.no_offer_with_hint", locale,
                       {{"key", text::shown(key, 320)}, {"hint", meant}});
}

}  // namespace cli
