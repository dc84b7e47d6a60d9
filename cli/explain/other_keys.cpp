#include "cli/explain/other_keys.hpp"

#include <algorithm>
#include <bit>
#include <optional>

#include "cli/explain/idle_nodes.hpp"
#include "quota/resource_keys.hpp"
#include "reconcilers/extender/inventory.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

namespace ext = reconcilers::extender;

/// The mode in whose keys a container asks; of several, the one that the engine would take first. None: it asks for no
/// card.
std::optional<quota::mode> mode_of(const quota::limits& container) {
  std::uint16_t modes = UINT16_MAX;
  for (const auto& amount : container)
    if (const auto known = quota::modes_of(amount.key); known != 0) modes &= known;
  if (modes == 0 || modes == UINT16_MAX) return {};
  return static_cast<quota::mode>(1U << std::countr_zero(modes));
}

/// A slot without memory has what its plugin's settings say, which other keys cannot.
bool says_memory(const quota::limits& container) {
  return std::ranges::any_of(container, [](const quota::amount& amount) {
    const auto* key = quota::resource_key_of(amount.key);
    return key && amount.value > 0 && (key->unit_mib > 0 || !key->instead_of.empty());
  });
}

std::optional<quota::need> need_of(quota::limits container, quota::mode mode,
                                   const reconcilers::accelerator_policy* policy) {
  const bool has_slots = mode == quota::mode::slots || mode == quota::mode::volcano;
  if (has_slots && !says_memory(container)) return {};
  auto service = service_in(mode, policy);
  service.one_card = service.plugin_chooses = service.one_replica = false;
  container.init = false;
  quota::demand needs;
  if (quota::read(std::span(&container, 1), service, needs) || needs.needs().size() != 1) return {};
  return needs.needs().front();
}

std::string name_here(std::string_view engine, const std::vector<ext::renamed_key>& renamed) {
  const auto match = std::ranges::find(renamed, engine, &ext::renamed_key::engine);
  return match == renamed.end() ? std::string(engine) : match->here;
}

/// One mode of a node, and how that node reads amounts.
struct target_words {
  quota::mode mode;
  quota::service service;
};

std::vector<target_words> targets_among(std::span<const quota::node_view> nodes) {
  std::vector<target_words> out;
  for (const auto& node : nodes) {
    auto service = node.inventory->serves;
    for (auto modes = service.modes; modes != 0; modes &= static_cast<std::uint16_t>(modes - 1)) {
      const auto mode = static_cast<quota::mode>(1U << std::countr_zero(modes));
      const bool is_there = std::ranges::any_of(
          out, [&](const target_words& target) { return target.mode == mode && target.service == service; });
      if (!is_there) out.push_back({mode, service});
    }
  }
  return out;
}

class rewriting {
 public:
  rewriting(const picture& picture, const kube::pod& pod, const ext::pod_request& request)
      : policy_(picture.policies.find(reconcilers::policy_key)),
        renamed_(ext::renamed_keys(policy_)),
        keys_(picture.book->keys()),
        pod_(pod),
        request_(request) {}

  std::optional<rewritten_pod> into(const target_words& target) const {
    rewritten_pod out{.pod = pod_, .containers = {}};
    for (std::size_t i = 0; i < request_.names().size(); ++i) {
      const auto& limits = request_.containers()[i];
      const auto mode = mode_of(limits);
      if (!mode || *mode == target.mode) continue;
      const auto need = need_of(limits, *mode, policy_);
      const auto words = need ? quota::translated(*need, target.mode, target.service) : std::nullopt;
      if (!words) return {};
      const bool agrees = out.containers.empty() || out.spread_over == words->spread_over;  // one label for all
      if (!agrees) return {};
      out.spread_over = words->spread_over;
      const auto place = request_.names()[i] - pod_.containers.data();
      replace(out.pod.containers[static_cast<std::size_t>(place)], words->limits, out);
    }
    if (out.containers.empty()) return {};
    if (out.spread_over > 1) {
      const auto number = std::to_string(out.spread_over);
      std::vector<kube::packed_map::entry> labels;
      for (const auto entry : pod_.labels) labels.push_back(entry);
      labels.emplace_back(quota::card_count.name, number);
      out.pod.labels = kube::packed_map::of(std::span(labels));
    }
    return out;
  }

 private:
  void replace(kube::container& container, const std::vector<quota::amount>& limits, rewritten_pod& out) const {
    rewritten_container change{.name = container.name, .before = {}, .after = {}};
    std::erase_if(container.limits, [&](const auto& limit) {
      if (!quota::known(keys_.engine_name(limit.first))) return false;
      change.before.push_back(limit);
      return true;
    });
    for (const auto& amount : limits) {
      change.after.emplace_back(name_here(amount.key, renamed_), amount.value);
      container.limits.push_back(change.after.back());
    }
    std::ranges::sort(container.limits);
    out.containers.push_back(std::move(change));
  }

  const reconcilers::accelerator_policy* policy_;
  std::vector<ext::renamed_key> renamed_;
  ext::declared_keys keys_;
  const kube::pod& pod_;
  const ext::pod_request& request_;
};

}  // namespace

std::vector<rewritten_pod> rewritten_pods(const picture& picture, const kube::pod& pod, const ext::pod_request& request,
                                          std::span<const quota::node_view> nodes) {
  std::vector<rewritten_pod> out;
  const rewriting rewriting(picture, pod, request);
  for (const auto& target : targets_among(nodes))
    if (auto other = rewriting.into(target)) out.push_back(std::move(*other));
  return out;
}

std::string amounts_text(const kube::quantities& amounts, const picture& picture) {
  const auto keys = picture.book->keys();
  std::string out;
  for (const auto& [key, amount] : amounts) {
    if (!out.empty()) out += ", ";
    out += text::shown(key, 320) + ": " + std::to_string(amount);
    const auto* known = quota::resource_key_of(keys.engine_name(key));
    if (known && known->unit_mib > 0) out += " (" + std::string(unit_of(*known)) + ")";
  }
  return out;
}

}  // namespace cli
