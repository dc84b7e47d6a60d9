#include "reconcilers/modules/catalogue.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "reconcilers/hash.hpp"
#include "reconcilers/names.hpp"

namespace reconcilers::modules {
namespace {

using nlohmann::json;

constexpr const kube::resource* types[] = {&kube::resources::service_accounts, &kube::resources::services,
                                           &kube::resources::daemon_sets};

std::string hex(std::uint64_t number) {
  std::string out(16, '0');
  for (auto digit = out.rbegin(); digit != out.rend(); ++digit, number >>= 4) *digit = "0123456789abcdef"[number & 15];
  return out;
}

const kube::resource& type_of(const json& object) {
  const auto& kind = object.at("kind").get_ref<const std::string&>();
  for (const auto* type : types) {
    if (type->kind == kind) return *type;
  }
  throw std::logic_error("no module may make a " + kind);
}

/// What all our objects have: a namespace, labels to be found by, an owner to go with, and the mark of this intent.
intent stamped(json object, const module_type& of, const facts& known) {
  intent out;
  out.type = &type_of(object);
  out.module = of.name;
  auto& metadata = object["metadata"];
  metadata["namespace"] = known.ns;
  metadata["labels"][names::managed_by_label] = names::managed_by;
  metadata["labels"][names::module_label] = of.name;
  if (!known.policy_uid.empty()) {
    const auto& owner = kube::resources::accelerator_policies;
    metadata["ownerReferences"] = json::array({{{"apiVersion", owner.api_version()},
                                                {"kind", owner.kind},
                                                {"name", known.policy_name},
                                                {"uid", known.policy_uid},
                                                {"controller", true}}});
  }
  out.key = {known.ns, metadata.at("name").get<std::string>()};
  out.hash = hex(fnv1a(object.dump()));
  metadata["annotations"][names::applied_annotation] = out.hash;
  out.body = object.dump();
  return out;
}

}  // namespace

std::span<const module_type> catalogue() {
  static const module_type table[] = {
      pgpu,
      vgpu,
      mps,
  };
  return table;
}

const module_type* find(std::string_view name) {
  const auto all = catalogue();
  const auto at = std::ranges::find(all, name, &module_type::name);
  return at == all.end() ? nullptr : &*at;
}

const module_type* advertiser(std::string_view resource) {
  const auto all = catalogue();
  const auto at = std::ranges::find_if(
      all, [&](const module_type& one) { return std::ranges::find(one.resources, resource) != one.resources.end(); });
  return at == all.end() ? nullptr : &*at;
}

std::string names_for_people() {
  std::string out;
  const auto all = catalogue();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0) out += i + 1 == all.size() ? " and " : ", ";
    out += all[i].name;
  }
  return out;
}

std::vector<intent> intents_of(const module_type& of, const module_spec& spec, const facts& known) {
  std::vector<intent> made, out;
  for (auto& object : of.objects(spec, known)) made.push_back(stamped(std::move(object), of, known));
  for (const auto* type : types) {
    std::ranges::copy_if(made, std::back_inserter(out), [&](const intent& one) { return one.type == type; });
  }
  return out;
}

std::span<const kube::resource* const> object_types() { return types; }

}  // namespace reconcilers::modules
