#include "reconcilers/nodes/intent.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <vector>

#include "api/names.hpp"
#include "api/node_words.hpp"
#include "reconcilers/modules/node_sets.hpp"
#include "reconcilers/nodes/preflight.hpp"
#include "reconcilers/nodes/suitable_runtime.hpp"
#include "text/nearest.hpp"
#include "text/text.hpp"

namespace reconcilers {
namespace {

using kind = node_intent::kind;
using modules::module_type;

constexpr std::string_view product_label = "nvidia-device-enable";
constexpr std::string_view our_label = "quartermaster.io/mode";
constexpr std::string_view no_mode = "none";

/// Values of nvidia-device-enable that hand the node to someone else.
struct other_owner {
  std::string_view key, value, product;
};
constexpr other_owner left_alone[] = {{product_label, "pgpu-dra", "the NVIDIA DRA driver"}};
/// A label of another product that asks for one of the catalogue's modules, or for what none can be.
struct product_alias {
  modules::product_label label;
  std::string_view mode;
};
constexpr std::string_view ack_label = "ack.node.gpu.schedule";
const std::vector<product_alias>& aliases() {
  static const auto all = [] {
    std::vector<product_alias> out;
    for (const auto& module : modules::catalogue())
      for (const auto& label : module.labels) out.push_back({label, module.name});
    out.push_back({{ack_label, "mig", "ACK", "intent.label_mig"}, {}});
    std::ranges::sort(out, {},
                      [](const product_alias& alias) { return std::pair(alias.label.key, alias.label.value); });
    return out;
  }();
  return all;
}
constexpr std::string_view foreign_card_labels[] = {
    "nvidia.com/gpu.present",
    "feature.node.kubernetes.io/pci-10de.present",
    "feature.node.kubernetes.io/pci-0300_10de.present",
    "feature.node.kubernetes.io/pci-0302_10de.present",
};

/// One label that asks.
struct claim {
  std::string label;         ///< "nvidia-device-enable=vGPU"
  std::string mode;          ///< a module, "none", or empty when it is not understood
  std::string_view left_to;  ///< someone else
  std::vector<std::string_view> allowed;
  std::string value;
  std::string_view refusal;  ///< the key of why what it asks for cannot be granted
  bool is_vague = false;     ///< people have such a label for purposes of their own, too
};

claim product_claim(std::string_view written, const modules::offer& offered) {
  claim out{std::string(product_label) + "=" + std::string(written), {}, {}, {}, text::lower_case(written), {}};
  for (const auto& row : offered.rows()) {
    out.allowed.insert(out.allowed.end(), row.label_values.begin(), row.label_values.end());
    if (std::ranges::find(row.label_values, out.value) != row.label_values.end()) out.mode = row.name;
  }
  for (const auto& entry : left_alone) {
    if (out.value == entry.value) out.left_to = entry.product;
  }
  return out;
}

claim our_claim(std::string_view written, const modules::offer& offered) {
  claim out{std::string(our_label) + "=" + std::string(written), {}, {}, {}, text::lower_case(written), {}};
  for (const auto& row : offered.rows()) out.allowed.push_back(row.name);
  out.allowed.push_back(no_mode);
  if (std::ranges::find(out.allowed, out.value) != out.allowed.end()) out.mode = out.value;
  return out;
}

bool on(const accelerator_policy* policy, std::string_view mode) { return policy && policy->enabled(mode); }

/// The module as the node set has it that the node asks for.
module_spec spec_on(const kube::node& node, const module_type& mode, const accelerator_policy& policy) {
  const auto position = policy.modules.find(mode.name);
  if (position == policy.modules.end()) return {};
  return with_set(position->second, wanted_set(&policy, mode.name, node));
}

/// Would the module hold containers within their shares there? A server of MPS that a person runs holds none.
bool holds_shares(const kube::node& node, std::string_view mode, const accelerator_policy* policy) {
  const auto* type = policy ? modules::offered_by(policy).find(mode) : nullptr;
  return type && type->follows_placement && type->follows_placement(spec_on(node, *type, *policy));
}

/// A label of another product. A value of theirs that no one knows is a mistake only where we serve the others.
std::optional<claim> alias_claim(std::string_view key, std::string_view written, const kube::node& node,
                                 const accelerator_policy* policy) {
  claim out{std::string(key) + "=" + std::string(written), {}, {}, {}, text::lower_case(written), {}};
  bool served = false;
  for (const auto& [label, mode] : aliases()) {
    if (label.key != key) continue;
    served = served || on(policy, mode);
    out.allowed.push_back(label.value);
    if (label.value != out.value) continue;
    out.mode = mode;
    out.is_vague = label.is_vague;
    if (label.refusal != modules::no_isolation || !holds_shares(node, mode, policy)) out.refusal = label.refusal;
    if (!mode.empty() && !on(policy, mode)) out.left_to = label.product;
  }
  const bool understood = !out.mode.empty() || !out.refusal.empty();
  if (!understood && (key != ack_label || !served)) return std::nullopt;
  return out;
}

/// Those that a person wrote to the policy or in a device configuration.
void add_declared(const kube::node& node, std::span<const label_alias> declared, std::vector<claim>& out) {
  for (const auto& alias : declared) {
    const auto written = node.labels.find(alias.key);
    if (!written || text::lower_case(*written) != text::lower_case(alias.value)) continue;
    auto label = alias.key + "=" + std::string(*written);
    const auto same = std::ranges::find(out, label, &claim::label);
    if (same == out.end())
      out.push_back({std::move(label), alias.mode, {}, {}, {}, {}});
    else if (same->mode != alias.mode || !same->left_to.empty() || !same->refusal.empty())
      *same = {std::move(label), alias.mode, {}, {}, {}, {}};  // a person's word for it
  }
}

std::vector<claim> claims_of(const kube::node& node, const accelerator_policy* policy,
                             std::span<const label_alias> declared) {
  std::vector<claim> out;
  if (const auto written = node.labels.find(product_label))
    out.push_back(product_claim(*written, modules::offered_by(policy)));
  if (const auto written = node.labels.find(our_label)) out.push_back(our_claim(*written, modules::offered_by(policy)));
  std::string_view last;
  for (const auto& [label, mode] : aliases()) {
    if (label.key == last) continue;
    last = label.key;
    const auto written = node.labels.find(label.key);
    if (!written) continue;
    if (auto made = alias_claim(label.key, *written, node, policy)) out.push_back(*std::move(made));
  }
  // A device configuration may be about a device that is not of our catalogue. A product's published one declares its
  // own label: while our module is off, that is no person's word for us.
  std::vector<label_alias> label_aliases;
  std::ranges::copy_if(declared, std::back_inserter(label_aliases), [&](const label_alias& label_alias) {
    const bool is_products = std::ranges::any_of(aliases(), [&](const product_alias& alias) {
      return alias.label.key == label_alias.key && alias.label.value == text::lower_case(label_alias.value) &&
             alias.mode == label_alias.mode;
    });
    if (is_products && (!policy || !policy->enabled(label_alias.mode))) return false;
    return modules::offered_by(policy).find(label_alias.mode) != nullptr;
  });
  add_declared(node, label_aliases, out);
  if (policy) add_declared(node, policy->enrolment.aliases, out);
  return out;
}

std::string list(const std::vector<std::string_view>& words, std::string_view separator = ", ",
                 std::string_view last = " and ") {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? last : separator;
    out += words[i];
  }
  return out;
}

node_intent refused(const module_type* mode, std::string requested, std::string reason, text::phrase message) {
  return {kind::refused, mode, std::move(requested), std::move(reason), std::move(message)};
}

/// The phrase "intent.KEY".
text::phrase phrase_of(std::string_view key, std::vector<text::phrase_argument> arguments) {
  return {"intent." + std::string(key), std::move(arguments)};
}

/// Next to a label that asks us, a vague one gives the node to the other product only where that product's plugin runs;
/// where it comes later it is a foreign plugin like any other.
bool is_theirs(const claim& claim, const foreign_pods& around) {
  if (!claim.is_vague) return true;
  return std::ranges::find(around.here, claim.left_to, &foreign_pod::product) != around.here.end();
}

std::optional<node_intent> unclear(const std::vector<claim>& claims, const foreign_pods& around) {
  for (const auto& claim : claims) {
    if (!claim.mode.empty() || !claim.left_to.empty() || !claim.refusal.empty()) continue;
    const std::string hint(text::nearest(claim.value, claim.allowed));
    return refused(nullptr, claim.value, "UnknownMode",
                   phrase_of(claim.value.empty() ? "label_without_value"
                             : hint.empty()      ? "label_unknown"
                                                 : "label_unknown_with_hint",
                             {{"label", claim.label},
                              {"allowed", list(claim.allowed), list(claim.allowed, "、", "、")},
                              {"hint", hint}}));
  }
  for (const auto& claim : claims) {
    const auto& first = claims.front();
    if (claim.mode == first.mode && claim.left_to == first.left_to) continue;
    const bool ask_us = !first.mode.empty() && first.left_to.empty();
    if (!claim.left_to.empty() && ask_us && !is_theirs(claim, around)) continue;
    if (!claim.left_to.empty() && ask_us)
      return refused(modules::find(first.mode), first.mode, "ForeignPlugin",
                     phrase_of("label_of_other", {{"label", claim.label}, {"product", std::string(claim.left_to)}}));
    return refused(nullptr, first.value.empty() ? first.mode : first.value, "ConflictingLabels",
                   phrase_of("labels_disagree", {{"label", first.label}, {"other", claim.label}}));
  }
  return std::nullopt;
}

/// Has one of our modes already, and is not on its way to another.
bool settled_with_us(const kube::node& node) {
  const auto switching = [](const kube::taint& taint) { return taint.key == api::names::switching_taint; };
  return node.labels.contains(api::names::module_label) && std::ranges::none_of(node.taints, switching);
}

/// Plugins of others that are in the way of `mode`. All that we know of are for NVIDIA's cards, and so are the modules
/// that are built in; what a module of the policy's own is for, no one knows.
std::vector<foreign_plugin> in_the_way(const kube::node& node, const module_type& mode,
                                       const accelerator_policy* policy, const foreign_pods& around) {
  return modules::find(mode.name) ? foreign_plugins(node, around, policy) : std::vector<foreign_plugin>();
}

node_intent not_alone(const kube::node& node, const module_type& mode, std::vector<foreign_plugin> others,
                      bool may_take_over) {
  const auto& first = others.front();
  text::phrase more, way;
  if (others.size() > 1) more = phrase_of("plugin.more", {{"number", std::to_string(others.size() - 1)}});
  if (!settled_with_us(node) && !may_take_over) way = phrase_of("plugin.take_over", {});
  auto message = phrase_of("plugin.wrong",
                           {{"finding", first.finding}, {"remedy", first.remedy}, {"more", more}, {"take_over", way}});
  auto out = refused(&mode, std::string(mode.name), "ForeignPlugin", std::move(message));
  out.foreign = std::move(others);
  return out;
}

/// What of preflight a mode is refused for; the rest can be put right on the node.
bool is_of_cards(std::string_view check) {
  return check == to_string(api::check::compute_capability) || check == to_string(api::check::cuda) ||
         check == to_string(api::check::mig);
}

std::optional<node_intent> unsuitable(const kube::node& node, const module_type& mode) {
  for (const auto& row : preflight(facts_of(node), mode)) {
    const bool is_platform = row.name == to_string(api::check::platform);
    if (row.state != api::check_state::failed || (!is_platform && !is_of_cards(row.name))) continue;
    const std::string name(mode.name);
    return refused(
        &mode, name, is_platform ? "UnsuitableNode" : "UnsuitableCards",
        phrase_of("unsuitable", {{"mode", name},
                                 {"text", text_of(row, text::language::en), text_of(row, text::language::zh)},
                                 {"remedy", remedy_of(row, text::language::en), remedy_of(row, text::language::zh)}}));
  }
  return std::nullopt;
}

/// What the tested image cannot talk to. An image that the policy names may be another build, so it is not judged.
std::optional<node_intent> unsuitable_runtime(const kube::node& node, const module_type& mode,
                                              const accelerator_policy& policy) {
  constexpr std::string_view containerd = "containerd://";
  const auto& runtime = node.container_runtime;
  const auto spec = policy.modules.find(mode.name);
  const bool own_image = spec != policy.modules.end() && !spec->second.image.empty();
  if (mode.follows_placement && mode.follows_placement(spec_on(node, mode, policy))) return std::nullopt;
  if (mode.needs.containerd_below == 0 || own_image || !runtime.starts_with(containerd)) return std::nullopt;
  const auto version = parse_version(runtime.substr(containerd.size()));
  if (!version || version->parts[0] < mode.needs.containerd_below) return std::nullopt;
  const std::string name(mode.name);
  return refused(&mode, name, "UnsuitableRuntime",
                 phrase_of("runtime", {{"mode", name},
                                       {"below", std::to_string(mode.needs.containerd_below) + ".0"},
                                       {"version", std::string(runtime.substr(containerd.size()))}}));
}

/// A plugin that follows placements says which cards a container gets when that is made, by CDI. containerd takes CDI
/// names by default since 2.0, CRI-O always; Docker does not.
std::optional<node_intent> without_cdi(const kube::node& node, const module_type& mode,
                                       const accelerator_policy& policy) {
  if (!mode.follows_placement || !mode.follows_placement(spec_on(node, mode, policy))) return std::nullopt;
  constexpr std::string_view containerd = "containerd://";
  const std::string_view runtime = node.container_runtime;
  const auto version =
      runtime.starts_with(containerd) ? parse_version(runtime.substr(containerd.size())) : std::nullopt;
  if (!runtime.starts_with("docker://") && !(version && version->parts[0] < 2)) return std::nullopt;
  const std::string name(mode.name);
  return refused(&mode, name, "UnsuitableRuntime",
                 {std::string(api::no_cdi), {{"mode", name}, {"runtime", std::string(runtime)}}});
}

node_intent judged(const kube::node& node, const module_type& mode, const accelerator_policy* policy,
                   const foreign_pods& around) {
  if (auto no = unsuitable(node, mode)) return *std::move(no);
  auto others = in_the_way(node, mode, policy, around);
  const bool may_take_over = policy && policy->enrolment.take_over;
  if (!others.empty() && (!may_take_over || settled_with_us(node)))
    return not_alone(node, mode, std::move(others), may_take_over);
  const std::string name(mode.name);
  if (!policy) return refused(&mode, name, "NoPolicy", phrase_of("no_policy", {{"mode", name}}));
  if (policy->removing) return refused(&mode, name, std::string(module_disabled), phrase_of("removing", {}));
  if (!policy->enabled(mode.name))
    return refused(&mode, name, std::string(module_disabled), phrase_of("off", {{"mode", name}}));
  if (auto no = unsuitable_runtime(node, mode, *policy)) return *std::move(no);
  if (auto no = without_cdi(node, mode, *policy)) return *std::move(no);
  return {kind::mode, &mode, name, {}, {}, std::move(others)};
}

/// A mode that no one on this node asked for is not worth a refusal, and takes nothing from anyone.
node_intent by_default(const kube::node& node, const accelerator_policy* policy, const foreign_pods& around) {
  if (!policy || !has_cards(node)) return {};
  const auto* mode = modules::offered_by(policy).find(policy->enrolment.default_mode);
  if (!mode) return {};
  auto out = judged(node, *mode, policy, around);
  return out.type == kind::mode && out.foreign.empty() ? out : node_intent();
}

}  // namespace

bool has_unsuitable_runtime(const kube::node& node, const module_type& mode, const accelerator_policy& policy) {
  return unsuitable_runtime(node, mode, policy) || without_cdi(node, mode, policy);
}

bool has_cards(const kube::node& node) {
  return std::ranges::any_of(foreign_card_labels, [&](auto key) { return node.labels.value_or(key, "") == "true"; });
}

node_intent intent_of(const kube::node& node, const accelerator_policy* policy, std::span<const label_alias> declared,
                      const foreign_pods& foreign) {
  const auto claims = claims_of(node, policy, declared);
  if (claims.empty()) return by_default(node, policy, foreign);
  if (auto no = unclear(claims, foreign)) return *std::move(no);
  const auto& claim = claims.front();
  if (!claim.left_to.empty())
    return {kind::left_alone, nullptr, claim.value, "LeftAlone",
            phrase_of(claim.mode.empty() ? "left_alone" : "left_alone_until",
                      {{"label", claim.label}, {"product", std::string(claim.left_to)}, {"mode", claim.mode}})};
  if (!claim.refusal.empty())
    return refused(modules::find(claim.mode), claim.value, "NotOffered",
                   {std::string(claim.refusal), {{"label", claim.label}}});
  if (claim.mode == no_mode) return {};
  const auto* mode = modules::offered_by(policy).find(claim.mode);
  if (!mode)  // an alias of a policy made for a newer version
    return refused(nullptr, claim.mode, "UnknownMode",
                   phrase_of("label_of_newer_mode", {{"label", claim.label}, {"mode", claim.mode}}));
  return judged(node, *mode, policy, foreign);
}

}  // namespace reconcilers
