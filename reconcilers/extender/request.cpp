#include "reconcilers/extender/request.hpp"

#include <algorithm>

#include "quota/resource_keys.hpp"

namespace reconcilers::extender {
namespace {

/// The amount that is written on the pod next to this limit of a container.
std::optional<quota::amount> written_beside(const std::pair<std::string, std::int64_t>& limit,
                                            const kube::container& container, const kube::pod& pod) {
  const auto* key = limit.second > 0 ? quota::resource_key_of(limit.first) : nullptr;
  if (!key || key->on_pod.name.empty() || kube::amount(container.limits, key->on_pod.name) > 0) return std::nullopt;
  const auto text = (key->on_pod.label ? pod.labels : pod.annotations).find(key->on_pod.name);
  if (!text) return std::nullopt;
  return quota::amount{key->on_pod.name, quota::pod_amount_in(*text).value_or(quota::not_a_number)};
}

bool ours(const std::pair<std::string, std::int64_t>& limit, const declared_keys& declared) {
  return limit.second != 0 && (quota::known(declared.engine_name(limit.first)) || declared(limit.first));
}

bool asks(const kube::container& container, const declared_keys& declared) {
  return std::ranges::any_of(container.limits, [&](const auto& limit) { return ours(limit, declared); });
}

}  // namespace

bool asks(const kube::pod& pod, const declared_keys& declared) {
  return std::ranges::any_of(pod.containers,
                             [&](const kube::container& container) { return asks(container, declared); });
}

pod_request::pod_request(const kube::pod& pod, const declared_keys& declared) {
  std::size_t most = 0;
  for (const auto& container : pod.containers) most += 2 * container.limits.size();
  amounts_.reserve(most);  // spans point into it
  spans_.reserve(pod.containers.size());
  named_.reserve(pod.containers.size());
  for (const auto [key, value] : pod.annotations) only_.read(key, value);
  for (const auto& entry : pod.containers) {
    if (!asks(entry, declared)) continue;
    const auto start = amounts_.size();
    for (const auto& each : entry.limits)
      if (ours(each, declared)) amounts_.push_back({declared.engine_name(each.first), each.second});
    for (const auto& each : entry.limits)
      if (const auto written = written_beside(each, entry, pod)) amounts_.push_back(*written);
    spans_.emplace_back(amounts_.data() + start, amounts_.size() - start).init =
        entry.kind == kube::container::role::init;
    named_.push_back(&entry);
  }
}

}  // namespace reconcilers::extender
