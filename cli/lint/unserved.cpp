#include "cli/lint/unserved.hpp"

#include <algorithm>
#include <map>

#include "api/names.hpp"
#include "reconcilers/modules/catalogue.hpp"
#include "reconcilers/verify/verify.hpp"
#include "text/list.hpp"
#include "text/messages.hpp"

namespace cli {
namespace {

namespace modules = reconcilers::modules;

/// Of several modules with that resource the first that is on; else the first.
const modules::module_type* offering(const reconcilers::accelerator_policy* policy, std::string_view resource) {
  const modules::module_type* out = nullptr;
  for (const auto& module : modules::offered_by(policy).rows()) {
    if (!modules::advertises(module, resource)) continue;
    if (policy && policy->enabled(module.name)) return &module;
    if (!out) out = &module;
  }
  return out;
}

std::string unserved_words(const std::string& key, text::language locale,
                           std::initializer_list<text::parameter> parameters) {
  return text::message("explain.unserved." + key, locale, parameters);
}

std::string remedy_of(const modules::module_type& module, const known_modules& known, text::language locale) {
  const std::string name(module.name);
  const auto label = module.label_values.empty()
                         ? unserved_words("any_label", locale, {})
                         : unserved_words("label", locale, {{"value", std::string(module.label_values.front())}});
  if (!known.policy || !known.policy->enabled(module.name))
    return unserved_words("off", locale, {{"module", name}, {"label", label}});
  const auto match = known.nodes.find(module.name);
  const auto nodes = match == known.nodes.end() ? 0 : match->second;
  if (nodes == 0) return unserved_words("on_no_node", locale, {{"label", label}});
  return unserved_words(nodes == 1 ? "on_one_node" : "on_nodes", locale, {{"number", std::to_string(nodes)}});
}

}  // namespace

known_modules modules_of(const reconcilers::accelerator_policy* policy, std::span<const kube::node* const> nodes) {
  known_modules out{policy, {}};
  for (const auto* node : nodes)
    if (const auto module = node->labels.find(api::names::module_label)) ++out.nodes[std::string(*module)];
  return out;
}

std::vector<std::string> unserved_resources(const known_modules& around, const known_resources& known,
                                            const kube::quantities& request, text::language locale) {
  std::map<const modules::module_type*, std::vector<std::string>> lacking;
  for (const auto& [key, amount] : request) {
    if (amount <= 0 || known.offered.contains(key)) continue;
    if (const auto* module = offering(around.policy, key)) lacking[module].emplace_back(key);
  }
  std::vector<std::string> out;
  for (const auto& [module, keys] : lacking)
    out.push_back(unserved_words(keys.size() == 1 ? "offers_one" : "offers_several", locale,
                                 {{"keys", text::joined(keys, text::message("engine.or", locale))},
                                  {"module", std::string(module->name)},
                                  {"remedy", remedy_of(*module, around, locale)}}));
  return out;
}

std::vector<std::string> unserved_resources(const picture& picture, const known_resources& known, const kube::pod& pod,
                                            text::language locale) {
  std::vector<const kube::node*> nodes;
  for (const auto& node : picture.nodes.all()) nodes.push_back(&node);
  return unserved_resources(modules_of(picture.policies.find(reconcilers::policy_key), nodes), known,
                            reconcilers::verify::asked_by(pod), locale);
}

}  // namespace cli
