#include "reconcilers/extender/request.hpp"

#include <algorithm>
#include <charconv>

namespace reconcilers::extender {
namespace {

constexpr std::string_view vcuda_core = "tencent.com/vcuda-core", burst = "tencent.com/vcuda-core-limit",
                           gpu_mem = "aliyun.com/gpu-mem", gpu_count = "aliyun.com/gpu-count";

/// What is no number is refused as such.
std::int64_t number_of(std::string_view text) {
  std::int64_t value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
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
  for (const auto& one : of.containers) most += one.limits.size() + 2;
  amounts_.reserve(most);  // spans point into it
  spans_.reserve(of.containers.size());
  named_.reserve(of.containers.size());
  const auto limit = of.annotations.find(burst), cards = of.labels.find(gpu_count);
  for (const auto [key, value] : of.annotations) only_.read(key, value);
  for (const auto& one : of.containers) {
    if (!asks(one, declared)) continue;
    const auto from = amounts_.size();
    for (const auto& each : one.limits)
      if (ours(each, declared)) amounts_.push_back({declared.engine_name(each.first), each.second});
    if (limit && kube::amount(one.limits, vcuda_core) > 0) amounts_.push_back({burst, number_of(*limit)});
    // ACK says by a label of the pod over how many cards its memory is spread.
    if (cards && kube::amount(one.limits, gpu_mem) > 0 && kube::amount(one.limits, gpu_count) == 0)
      amounts_.push_back({gpu_count, number_of(*cards)});
    spans_.emplace_back(amounts_.data() + from, amounts_.size() - from).init = one.as == kube::container::role::init;
    named_.push_back(&one);
  }
}

}  // namespace reconcilers::extender
