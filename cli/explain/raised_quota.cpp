#include "cli/explain/raised_quota.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "api/gpu_quota.hpp"
#include "quota/filter.hpp"

namespace cli {
namespace {

namespace ext = reconcilers::extender;
using limit_rule = quota::exceeded_limit::kind;

bool has_number(const quota::exceeded_limit& limit) {
  return limit.rule == limit_rule::nominal || limit.rule == limit_rule::borrowing || limit.rule == limit_rule::cohort;
}

/// The old ConfigMap says something of the namespace, or cannot be read.
bool has_old_limit(const picture& picture, std::string_view ns) {
  for (const auto& entry : picture.old_quotas.all()) {
    const auto tenants = api::read_gpu_quota(entry.data.value_or(api::gpu_quota_key, ""));
    if (!tenants || std::ranges::find(*tenants, ns, &quota::tenant::name_space) != tenants->end()) return true;
  }
  return false;
}

bool raise(quota::tenant& tenant, const quota::exceeded_limit& limit, std::int64_t amount) {
  const auto unit = static_cast<std::size_t>(limit.unit);
  for (auto& row : tenant.limits) {
    if (row.model != limit.model || row.only != limit.only) continue;
    auto& bound = limit.rule == limit_rule::borrowing ? row.borrowing[unit] : row.nominal[unit];
    if (!bound) continue;
    *bound += amount;
    return true;
  }
  return false;
}

quota::traits traits_on(const kube::pod& pod, const quota::node_inventory& node) {
  return {.priority = pod.priority, .isolated = quota::isolation_of(node.serves)};
}

/// All limits and what counts against them, with one of them raised. False: that limit is not there.
bool copy_raised(const picture& picture, const quota::exceeded_limit& limit, std::int64_t amount,
                 quota::allowances& out) {
  std::map<std::string, std::vector<const api::accelerator_quota*>> objects;
  for (const auto& entry : picture.quotas.all()) objects[entry.key.ns].push_back(&entry);
  bool is_raised = false;
  for (auto& [ns, list] : objects) {
    auto tenant = api::tenant_of(ns, std::move(list));
    if (ns == limit.name_space) is_raised = raise(tenant, limit, amount);
    out.put(std::move(tenant));
  }
  std::unordered_map<std::string, const kube::pod*> pods;
  for (const auto& pod : picture.pods.all()) pods.emplace(pod.id.to_string(), &pod);
  const auto& book = picture.book->book();
  out.recount(
      book,
      [&](const std::string& uid) {
        const auto match = pods.find(uid);
        return match == pods.end() ? std::string() : match->second->key.ns;
      },
      [&](const std::string& uid) {
        const auto* entry = book.find(uid);
        const auto view = entry ? book.view(entry->held.node) : std::nullopt;
        const auto match = pods.find(uid);
        return view && match != pods.end() ? traits_on(*match->second, *view->inventory) : quota::traits();
      });
  return is_raised;
}

}  // namespace

std::optional<std::int64_t> enough_quota(const picture& picture, const kube::pod& pod, const ext::pod_request& request,
                                         std::span<const quota::node_view> nodes, const quota::exceeded_limit& limit) {
  const auto amount = limit.requested + limit.used - limit.limit;
  if (!has_number(limit) || amount <= 0 || has_old_limit(picture, pod.key.ns)) return {};
  quota::allowances raised;
  if (!copy_raised(picture, limit, amount, raised)) return {};
  for (const auto& node : nodes) {
    quota::demand needs;
    quota::placement placement;
    if (quota::read(request.containers(), node.inventory->serves, needs)) continue;
    if (!quota::place(needs, node, {.only = request.only()}, placement).fits()) continue;
    const auto held = quota::holding_of(needs, placement, *node.inventory);
    const auto charges = quota::charges_of(held, node.inventory, traits_on(pod, *node.inventory));
    if (!raised.check(pod.id.to_string(), pod.key.ns, charges)) return amount;
  }
  return {};
}

}  // namespace cli
