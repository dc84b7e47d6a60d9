#include "api/accelerator_quota.hpp"

#include <algorithm>
#include <tuple>

#include "kube/json_object.hpp"

namespace api {
namespace {

namespace on_demand = kube::on_demand;

std::optional<quota::isolation> isolation_named(std::string_view text) {
  for (const auto entry : {quota::isolation::none, quota::isolation::soft, quota::isolation::mps,
                           quota::isolation::driver, quota::isolation::mig, quota::isolation::exclusive})
    if (quota::text_of(entry) == text) return entry;
  return {};
}

std::optional<std::size_t> unit_named(std::string_view text) {
  for (const auto resource : quota::resources)
    if (unit_of(resource) == text) return static_cast<std::size_t>(resource);
  return {};
}

void read_limit(on_demand::value object, std::vector<quota::tenant::limit>& limits) {
  quota::tenant::limit out;
  std::optional<std::size_t> unit;
  std::optional<std::int64_t> most, borrow;
  on_demand::each_member(object, [&](std::string_view key, on_demand::value field) {
    if (key == "units") unit = unit_named(on_demand::text_or(field));
    if (key == "max") most = on_demand::number_or(field, -1);
    if (key == "borrow") borrow = on_demand::number_or(field, 0);
    if (key == "model") out.model = on_demand::text_or(field);
    if (key == "pool") out.only.pool = on_demand::text_or(field);
    if (key == "priorityFrom") out.only.priority_from = static_cast<std::int32_t>(on_demand::number_or(field, 0));
    if (key == "priorityTo") out.only.priority_to = static_cast<std::int32_t>(on_demand::number_or(field, 0));
    if (key == "isolation") out.only.isolated = isolation_named(on_demand::text_or(field));
  });
  if (!unit || !most || *most < 0) return;  // the schema of the CRD refuses it
  out.nominal[*unit] = *most;
  out.borrowing[*unit] = borrow;
  limits.push_back(std::move(out));
}

std::optional<std::int64_t> smaller(const std::optional<std::int64_t>& a, const std::optional<std::int64_t>& b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

}  // namespace

const kube::resource& accelerator_quota::of() {
  static constexpr kube::resource type{.group = "quartermaster.io",
                                       .version = "v1alpha1",
                                       .plural = "acceleratorquotas",
                                       .kind = "AcceleratorQuota",
                                       .namespaced = true};
  return type;
}

kube::result<accelerator_quota> accelerator_quota::decode(std::string_view bytes) {
  return on_demand::decode<accelerator_quota>(
      bytes, kube::keep_none, [](accelerator_quota& quota, std::string_view key, on_demand::value field) {
        std::string_view raw;
        if (key == "status" && simdjson::to_json_string(field).get(raw) == simdjson::SUCCESS) quota.status = raw;
        if (key != "spec") return;
        on_demand::each_member(field, [&](std::string_view name, on_demand::value inner) {
          if (name == "cohort") quota.cohort = on_demand::text_or(inner);
          if (name == "isolation") quota.at_least = isolation_named(on_demand::text_or(inner));
          if (name == "hard")
            on_demand::each_item(inner, [&](on_demand::value value) { read_limit(value, quota.hard); });
        });
      });
}

std::string_view unit_of(quota::resource resource) {
  switch (resource) {
    case quota::resource::cores:
      return "cores";
    case quota::resource::memory:
      return "memory";
    case quota::resource::cards:
      return "cards";
  }
  return "";
}

void add(quota::tenant& tenant, const quota::tenant& more) {
  if (tenant.cohort.empty()) tenant.cohort = more.cohort;
  if (more.at_least) tenant.at_least = std::max(tenant.at_least.value_or(quota::isolation::none), *more.at_least);
  if (more.only_models) tenant.only_models = more.only_models;
  if (more.only_pools) tenant.only_pools = more.only_pools;
  for (const auto& entry : more.limits) {
    const auto same = std::ranges::find_if(tenant.limits, [&](const quota::tenant::limit& other) {
      return other.model == entry.model && other.only == entry.only;
    });
    if (same == tenant.limits.end()) {
      tenant.limits.push_back(entry);
      continue;
    }
    for (std::size_t i = 0; i < entry.nominal.size(); ++i) {
      same->nominal[i] = smaller(same->nominal[i], entry.nominal[i]);
      same->borrowing[i] = smaller(same->borrowing[i], entry.borrowing[i]);
    }
  }
}

quota::tenant tenant_of(const std::string& name_space, std::vector<const accelerator_quota*> objects) {
  std::ranges::sort(objects, {}, [](const accelerator_quota* quota) -> const std::string& { return quota->key.name; });
  quota::tenant out;
  out.name_space = name_space;
  for (const auto* object : objects)
    add(out,
        {.name_space = name_space, .cohort = object->cohort, .limits = object->hard, .at_least = object->at_least});
  return out;
}

}  // namespace api
