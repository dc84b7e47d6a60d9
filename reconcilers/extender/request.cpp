#include "reconcilers/extender/request.hpp"

#include <algorithm>

#include "quota/resource_keys.hpp"

namespace reconcilers::extender {
namespace {

/// The amount that is written on the pod beside this limit of a container.
std::optional<quota::amount> written_beside(const std::pair<std::string, std::int64_t>& limit,
                                            const kube::container& one, const kube::pod& of) {
  const auto* key = limit.second > 0 ? quota::resource_key_of(limit.first) : nullptr;
  if (!key || key->on_pod.name.empty() || kube::amount(one.limits, key->on_pod.name) > 0) return std::nullopt;
  const auto text = (key->on_pod.label ? of.labels : of.annotations).find(key->on_pod.name);
  if (!text) return std::nullopt;
  return quota::amount{key->on_pod.name, quota::pod_amount_in(*text).value_or(quota::not_a_number)};
}

bool ours(const std::pair<std::string, std::int64_t>& limit, const declared_keys& declared) {
  return limit.second != 0 && (quota::known(declared.engine_name(limit.first)) || declared(limit.first));
}

bool asks(const kube::container& one, const declared_keys& declared) {
  return std::ranges::any_of(one.limits, [&](const auto& limit) { return ours(limit, declared); });
}

}  // namespace

bool asks(const kube::pod& of, const declared_keys& declared) {
  return std::ranges::any_of(of.containers, [&](const kube::container& one) { return asks(one, declared); });
}

asked::asked(const kube::pod& of, const declared_keys& declared) {
  std::size_t most = 0;
  for (const auto& one : of.containers) most += 2 * one.limits.size();
  amounts_.reserve(most);  // spans point into it
  spans_.reserve(of.containers.size());
  named_.reserve(of.containers.size());
  for (const auto [key, value] : of.annotations) only_.read(key, value);
  for (const auto& one : of.containers) {
    if (!asks(one, declared)) continue;
    const auto from = amounts_.size();
    for (const auto& each : one.limits)
      if (ours(each, declared)) amounts_.push_back({declared.engine_name(each.first), each.second});
    for (const auto& each : one.limits)
      if (const auto written = written_beside(each, one, of)) amounts_.push_back(*written);
    spans_.emplace_back(amounts_.data() + from, amounts_.size() - from).init = one.as == kube::container::role::init;
    named_.push_back(&one);
  }
}

}  // namespace reconcilers::extender
