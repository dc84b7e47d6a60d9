#include "quota/limits.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace quota {
namespace {

// So that no sum overflows: MiB of one part of a card, parts of one container, and a limit that is as good as none.
constexpr std::int64_t largest_mib = std::int64_t{1} << 40, max_parts = 512, endless = std::int64_t{1} << 46;

std::size_t at(resource resource) { return static_cast<std::size_t>(resource); }

bool counts(const charge& charge, std::string_view model, const scope& only) {
  return (model.empty() || charge.model == model) && only.counts(charge);
}

bool among(const std::optional<std::vector<std::string>>& allowed, const std::string& name) {
  return !allowed || std::ranges::find(*allowed, name) != allowed->end();
}

/// Where the tenant's pods may not be, however little they hold.
std::optional<exceeded_limit> elsewhere(const tenant& tenant, std::span<const charge> charges) {
  for (const charge& charge : charges) {
    if (charge.amounts == amounts_of_cards{}) continue;
    exceeded_limit no{
        .name_space = tenant.name_space, .model = charge.model, .cohort = tenant.cohort, .only = {.pool = charge.pool}};
    if (!among(tenant.only_models, charge.model))
      no.rule = exceeded_limit::kind::model;
    else if (!among(tenant.only_pools, charge.pool))
      no.rule = exceeded_limit::kind::pool;
    else
      continue;
    return no;
  }
  return {};
}

std::optional<std::int64_t> nominal_of(const tenant& tenant, std::string_view model, const scope& only,
                                       resource resource) {
  for (const auto& limit : tenant.limits)
    if (limit.model == model && limit.only == only && limit.nominal[at(resource)]) return limit.nominal[at(resource)];
  return {};
}

std::int64_t asked_of(std::span<const charge> charges, std::string_view model, const scope& only, resource resource) {
  std::int64_t sum = 0;
  for (const charge& charge : charges)
    if (counts(charge, model, only)) sum += charge.amounts[at(resource)];
  return sum;
}

}  // namespace

isolation isolation_of(const need& need) {
  if (need.whole) return isolation::exclusive;
  switch (need.node_mode) {
    case mode::mps:
      return isolation::mps;
    case mode::vgpu:
    case mode::slots:
    case mode::volcano:
    case mode::qgpu:
      return isolation::soft;
    default:
      return isolation::none;
  }
}

isolation isolation_of(const service& service) {
  if (service.held_by) return *service.held_by;
  if (service.has(mode::mps)) return isolation::mps;
  for (const auto entry : {mode::vgpu, mode::slots, mode::volcano, mode::qgpu})
    if (service.has(entry)) return isolation::soft;
  return isolation::none;
}

namespace {

/// A whole card is its holder's alone. Where nothing is known of a pod's isolation its whole cards are not told apart
/// either.
std::optional<isolation> isolation_in(bool whole, const traits& pod) {
  return pod.isolated && whole ? std::optional{isolation::exclusive} : pod.isolated;
}

}  // namespace

std::vector<charge> charges_of(const holding& holding, const node_inventory* node, const traits& pod) {
  std::map<std::pair<std::string_view, std::optional<isolation>>, amounts_of_cards> sums;
  for (const grant& grant : holding.grants) {
    const card* match = nullptr;
    if (node != nullptr)
      if (const auto found = std::ranges::find(node->cards, grant.card, &card::uuid); found != node->cards.end())
        match = &*found;
    auto& sum =
        sums[{match == nullptr ? std::string_view{} : std::string_view{match->model}, isolation_in(grant.whole, pod)}];
    sum[at(resource::cores)] += grant.whole ? whole_card : std::clamp(grant.cores, 0, whole_card);
    sum[at(resource::memory)] += std::clamp(grant.whole && match != nullptr ? match->memory_mib : grant.memory_mib,
                                            std::int64_t{0}, largest_mib);
    ++sum[at(resource::cards)];
  }
  std::vector<charge> out;
  for (const auto& [key, sum] : sums)
    out.push_back({.model = std::string{key.first},
                   .amounts = sum,
                   .pool = node == nullptr ? std::string{} : node->pool,
                   .priority = pod.priority,
                   .isolated = key.second});
  return out;
}

std::vector<charge> charges_of(const demand& demand, const traits& pod) {
  std::map<std::optional<isolation>, amounts_of_cards> sums;
  for (const need& need : demand.needs()) {
    auto& sum = sums[isolation_in(need.whole, pod)];
    sum[at(resource::cores)] += std::int64_t{need.cards} * (need.whole ? whole_card : need.cores);
    if (!need.whole && need.memory_percent == 0)
      sum[at(resource::memory)] +=
          std::min<std::int64_t>(need.cards, max_parts) * std::min(need.memory_mib, largest_mib);
    sum[at(resource::cards)] += need.cards;
  }
  std::vector<charge> out;
  for (const auto& [isolated, sum] : sums)
    out.push_back({.model = {}, .amounts = sum, .priority = pod.priority, .isolated = isolated});
  return out;
}

void allowances::put(tenant tenant) {
  for (auto& limit : tenant.limits)
    for (bounds* bounds : {&limit.nominal, &limit.borrowing})
      for (auto& value : *bounds)
        if (value) value = std::clamp(*value, std::int64_t{0}, endless);
  remove(tenant.name_space);
  auto name = tenant.name_space;
  const auto& now = tenants_.emplace(std::move(name), std::move(tenant)).first->second;
  if (!now.cohort.empty()) cohorts_[now.cohort][now.name_space] = &now;
  touch(now.name_space);
}

void allowances::remove(std::string_view name_space) {
  const auto found = tenants_.find(name_space);
  if (found == tenants_.end()) return;
  touch(name_space);
  if (const auto cohort = cohorts_.find(found->second.cohort); cohort != cohorts_.end()) {
    cohort->second.erase(found->second.name_space);
    if (cohort->second.empty()) cohorts_.erase(cohort);
  }
  tenants_.erase(found);
}

/// Namespaces that share limits with this one have other free amounts now.
void allowances::touch(std::string_view name_space) {
  const auto found = tenants_.find(name_space);
  if (found == tenants_.end()) return;
  ++changes_;
  if (found->second.cohort.empty())
    versions_[found->first] = changes_;
  else
    cohort_versions_[found->second.cohort] = changes_;
}

std::string_view allowances::cohort_of(std::string_view name_space) const {
  const auto found = tenants_.find(name_space);
  return found == tenants_.end() ? std::string_view() : std::string_view(found->second.cohort);
}

std::uint64_t allowances::version_of(std::string_view name_space) const {
  const auto found = tenants_.find(name_space);
  if (found == tenants_.end()) return 0;
  const bool alone = found->second.cohort.empty();
  const auto& versions = alone ? versions_ : cohort_versions_;
  const auto match = versions.find(alone ? name_space : std::string_view(found->second.cohort));
  return match == versions.end() ? 0 : match->second;
}

void allowances::clear() {
  for (const auto& [name, sums] : used_) touch(name);
  bookings_.clear();
  used_.clear();
}

void allowances::count(const booking& booking, int sign) {
  auto& sums = used_[booking.name_space];
  for (const charge& entry : booking.charges) {
    auto found = std::ranges::find_if(sums, [&](const charge& other) {
      return other.model == entry.model && other.pool == entry.pool && other.priority == entry.priority &&
             other.isolated == entry.isolated;
    });
    if (found == sums.end()) {
      found = sums.insert(found, entry);
      found->amounts = {};
    }
    for (std::size_t i = 0; i < entry.amounts.size(); ++i) found->amounts[i] += sign * entry.amounts[i];
    if (found->amounts == amounts_of_cards{}) sums.erase(found);
  }
  if (sums.empty()) used_.erase(booking.name_space);
  touch(booking.name_space);
}

void allowances::book(std::string_view pod_uid, std::string_view name_space, std::vector<charge> charges) {
  release(pod_uid);
  const auto here = bookings_.emplace(std::string{pod_uid}, booking{std::string{name_space}, std::move(charges)}).first;
  count(here->second, 1);
}

void allowances::release(std::string_view pod_uid) {
  const auto found = bookings_.find(pod_uid);
  if (found == bookings_.end()) return;
  count(found->second, -1);
  bookings_.erase(found);
}

const allowances::booking* allowances::find(std::string_view pod_uid) const {
  const auto found = bookings_.find(pod_uid);
  return found == bookings_.end() ? nullptr : &found->second;
}

amounts_of_cards allowances::used(std::string_view name_space, std::string_view model, const scope& only) const {
  amounts_of_cards out{};
  const auto sums = used_.find(name_space);
  if (sums == used_.end()) return out;
  for (const charge& charge : sums->second)
    if (counts(charge, model, only))
      for (std::size_t i = 0; i < out.size(); ++i) out[i] += charge.amounts[i];
  return out;
}

std::vector<allowances::member> allowances::members(const shelf& shelf) const {
  std::vector<member> out;
  const auto cohort = cohorts_.find(shelf.cohort);
  if (cohort == cohorts_.end()) return out;
  looked_at_ += cohort->second.size();
  for (const auto& [name, tenant] : cohort->second)
    if (const auto nominal = nominal_of(*tenant, shelf.model, shelf.only, shelf.unit))
      out.push_back({tenant, *nominal, used(name, shelf.model, shelf.only)[at(shelf.unit)]});
  return out;
}

std::optional<exceeded_limit> allowances::check(std::string_view pod_uid, std::string_view name_space,
                                                std::span<const charge> charges,
                                                std::span<const std::string> gone) const {
  const auto found = tenants_.find(name_space);
  if (found == tenants_.end()) return {};
  const tenant& owner = found->second;
  const auto of_pod = [&](std::string_view uid, const tenant& tenant, const tenant::limit& limit, resource resource) {
    const auto* booked = find(uid);
    return booked && booked->name_space == tenant.name_space
               ? asked_of(booked->charges, limit.model, limit.only, resource)
               : std::int64_t{0};
  };
  const auto left_out = [&](const tenant& tenant, const tenant::limit& limit, resource resource) {
    auto sum = of_pod(pod_uid, tenant, limit, resource);
    for (const auto& uid : gone)
      if (uid != pod_uid) sum += of_pod(uid, tenant, limit, resource);
    return sum;
  };
  for (const charge& charge : charges)
    if (owner.at_least && charge.isolated && *charge.isolated < *owner.at_least)
      return exceeded_limit{.rule = exceeded_limit::kind::isolation,
                            .name_space = owner.name_space,
                            .model = charge.model,
                            .cohort = owner.cohort,
                            .requested = static_cast<std::int64_t>(*charge.isolated),
                            .limit = static_cast<std::int64_t>(*owner.at_least)};
  if (auto no = elsewhere(owner, charges)) return no;
  for (const auto& limit : owner.limits)
    for (const resource resource : resources) {
      const auto nominal = limit.nominal[at(resource)];
      const auto requested = asked_of(charges, limit.model, limit.only, resource);
      if (!nominal || requested <= 0) continue;
      exceeded_limit no{
          .unit = resource,
          .name_space = owner.name_space,
          .model = limit.model,
          .cohort = owner.cohort,
          .requested = requested,
          .used = used(name_space, limit.model, limit.only)[at(resource)] - left_out(owner, limit, resource),
          .limit = *nominal,
          .only = limit.only};
      if (owner.cohort.empty()) {
        no.rule = exceeded_limit::kind::nominal;
        if (requested > no.limit - no.used) return no;
        continue;
      }
      if (const auto more = limit.borrowing[at(resource)]) {
        no.rule = exceeded_limit::kind::borrowing;
        no.limit = *nominal + *more;
        if (requested > no.limit - no.used) return no;
      }
      no.rule = exceeded_limit::kind::cohort;
      no.used = no.limit = 0;
      for (const member& member : members({owner.cohort, limit.model, limit.only, resource})) {
        no.used += member.used - left_out(*member.owner, limit, resource);
        no.limit += member.nominal;
      }
      if (requested > no.limit - no.used) return no;
    }
  return {};
}

/// Both lists by name, each lender until it has nothing left: one way through both.
std::vector<loan> allowances::loans(const shelf& shelf) const {
  std::vector<loan> out;
  if (shelf.cohort.empty()) return out;
  auto all = members(shelf);
  auto lender = all.begin();
  for (member& borrower : all)
    while (borrower.used > borrower.nominal && lender != all.end()) {
      const auto amount = std::min(borrower.used - borrower.nominal, lender->nominal - lender->used);
      if (amount <= 0) {
        ++lender;
        continue;
      }
      out.push_back({borrower.owner->name_space, lender->owner->name_space, std::string{shelf.model}, shelf.unit,
                     amount, shelf.only});
      borrower.used -= amount;
      lender->used += amount;
    }
  return out;
}

std::vector<loan> allowances::loans(std::string_view cohort) const {
  std::vector<loan> out;
  const auto members_of = cohorts_.find(cohort);
  if (members_of == cohorts_.end()) return out;
  std::set<std::pair<std::string_view, scope>> shelves;
  for (const auto& [name, tenant] : members_of->second)
    for (const auto& limit : tenant->limits) shelves.emplace(limit.model, limit.only);
  for (const auto& [model, only] : shelves)
    for (const resource resource : resources)
      std::ranges::move(loans(shelf{members_of->first, model, only, resource}), std::back_inserter(out));
  return out;
}

std::vector<standing> allowances::standings(std::string_view name_space) const {
  auto all = standings_together(name_space);
  const auto found = all.find(name_space);
  return found == all.end() ? std::vector<standing>() : std::move(found->second);
}

allowances::by_name<std::vector<standing>> allowances::standings_together(std::string_view name_space) const {
  by_name<std::vector<standing>> out;
  const auto found = tenants_.find(name_space);
  if (found == tenants_.end()) return out;
  using row = std::tuple<std::string, std::string, scope, resource>;  // namespace, model
  std::map<row, std::int64_t> lent, borrowed;
  const auto lend = [&](const std::vector<loan>& loans) {
    for (const loan& loan : loans) {
      lent[{loan.lender, loan.model, loan.only, loan.unit}] += loan.amount;
      borrowed[{loan.borrower, loan.model, loan.only, loan.unit}] += loan.amount;
    }
  };
  const auto amount_in = [](const std::map<row, std::int64_t>& amounts, const row& key) {
    const auto match = amounts.find(key);
    return match == amounts.end() ? 0 : match->second;
  };
  const auto add = [&](const tenant& tenant) {
    ++looked_at_;
    auto& rows = out[tenant.name_space];
    for (const auto& limit : tenant.limits)
      for (const resource resource : resources) {
        const auto nominal = limit.nominal[at(resource)];
        if (!nominal) continue;
        const auto now = used(tenant.name_space, limit.model, limit.only)[at(resource)];
        const row key{tenant.name_space, limit.model, limit.only, resource};
        rows.push_back(
            {limit.model, resource, *nominal, now, amount_in(borrowed, key), amount_in(lent, key), limit.only});
      }
  };
  if (found->second.cohort.empty()) {
    add(found->second);
    return out;
  }
  const auto& all = *cohorts_.find(found->second.cohort);
  lend(loans(std::string_view(all.first)));
  for (const auto& [name, tenant] : all.second) add(*tenant);
  return out;
}

std::string_view text_of(isolation isolation) {
  switch (isolation) {
    case isolation::none:
      return "none";
    case isolation::soft:
      return "soft";
    case isolation::mps:
      return "mps";
    case isolation::driver:
      return "driver";
    case isolation::mig:
      return "mig";
    case isolation::exclusive:
      return "exclusive";
  }
  return "";
}

}  // namespace quota
