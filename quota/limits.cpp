#include "quota/limits.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace quota {
namespace {

// So that no sum overflows: MiB of one part of a card, parts of one container, and a limit that is as good as none.
constexpr std::int64_t most = std::int64_t{1} << 40, max_parts = 512, endless = std::int64_t{1} << 46;

std::size_t at(resource of) { return static_cast<std::size_t>(of); }

bool counts(const charge& of, std::string_view model, const scope& only) {
  return (model.empty() || of.model == model) && only.counts(of);
}

bool among(const std::optional<std::vector<std::string>>& allowed, const std::string& one) {
  return !allowed || std::ranges::find(*allowed, one) != allowed->end();
}

/// Where the tenant's pods may not be, however little they hold.
std::optional<exceeded> elsewhere(const tenant& who, std::span<const charge> what) {
  for (const charge& one : what) {
    if (one.of == amounts_of_cards{}) continue;
    exceeded no{.name_space = who.name_space, .model = one.model, .cohort = who.cohort, .only = {.pool = one.pool}};
    if (!among(who.only_models, one.model))
      no.what = exceeded::kind::model;
    else if (!among(who.only_pools, one.pool))
      no.what = exceeded::kind::pool;
    else
      continue;
    return no;
  }
  return {};
}

std::optional<std::int64_t> nominal_of(const tenant& of, std::string_view model, const scope& only, resource which) {
  for (const auto& one : of.limits)
    if (one.model == model && one.only == only && one.nominal[at(which)]) return one.nominal[at(which)];
  return {};
}

std::int64_t asked_of(std::span<const charge> what, std::string_view model, const scope& only, resource which) {
  std::int64_t sum = 0;
  for (const charge& one : what)
    if (counts(one, model, only)) sum += one.of[at(which)];
  return sum;
}

}  // namespace

isolation isolation_of(const need& what) {
  if (what.whole) return isolation::exclusive;
  switch (what.by) {
    case mode::mps:
      return isolation::mps;
    case mode::vgpu:
    case mode::hami:
    case mode::volcano:
    case mode::qgpu:
      return isolation::soft;
    default:
      return isolation::none;
  }
}

isolation isolation_of(const service& of) {
  if (of.held_by) return *of.held_by;
  if (of.has(mode::mps)) return isolation::mps;
  for (const auto one : {mode::vgpu, mode::hami, mode::volcano, mode::qgpu})
    if (of.has(one)) return isolation::soft;
  return isolation::none;
}

namespace {

/// A whole card is its holder's alone. Where nothing is known of a pod's isolation its whole cards are not told apart
/// either.
std::optional<isolation> isolation_in(bool whole, const traits& pod) {
  return pod.isolated && whole ? std::optional{isolation::exclusive} : pod.isolated;
}

}  // namespace

std::vector<charge> charges_of(const holding& what, const node* on, const traits& pod) {
  std::map<std::pair<std::string_view, std::optional<isolation>>, amounts_of_cards> sums;
  for (const grant& one : what.grants) {
    const card* of = nullptr;
    if (on != nullptr)
      if (const auto found = std::ranges::find(on->cards, one.card, &card::uuid); found != on->cards.end())
        of = &*found;
    auto& sum = sums[{of == nullptr ? std::string_view{} : std::string_view{of->model}, isolation_in(one.whole, pod)}];
    sum[at(resource::cores)] += one.whole ? whole_card : std::clamp(one.cores, 0, whole_card);
    sum[at(resource::memory)] +=
        std::clamp(one.whole && of != nullptr ? of->memory_mib : one.memory_mib, std::int64_t{0}, most);
    ++sum[at(resource::cards)];
  }
  std::vector<charge> out;
  for (const auto& [key, sum] : sums)
    out.push_back({.model = std::string{key.first},
                   .of = sum,
                   .pool = on == nullptr ? std::string{} : on->pool,
                   .priority = pod.priority,
                   .isolated = key.second});
  return out;
}

std::vector<charge> charges_of(const demand& what, const traits& pod) {
  std::map<std::optional<isolation>, amounts_of_cards> sums;
  for (const need& one : what.needs()) {
    auto& sum = sums[isolation_in(one.whole, pod)];
    sum[at(resource::cores)] += std::int64_t{one.cards} * (one.whole ? whole_card : one.cores);
    if (!one.whole && one.memory_percent == 0)
      sum[at(resource::memory)] += std::min<std::int64_t>(one.cards, max_parts) * std::min(one.memory_mib, most);
    sum[at(resource::cards)] += one.cards;
  }
  std::vector<charge> out;
  for (const auto& [isolated, sum] : sums)
    out.push_back({.model = {}, .of = sum, .priority = pod.priority, .isolated = isolated});
  return out;
}

void allowances::put(tenant what) {
  for (auto& one : what.limits)
    for (bounds* of : {&one.nominal, &one.borrowing})
      for (auto& value : *of)
        if (value) value = std::clamp(*value, std::int64_t{0}, endless);
  remove(what.name_space);
  auto name = what.name_space;
  const auto& now = tenants_.emplace(std::move(name), std::move(what)).first->second;
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

/// Whoever shares limits with this namespace stands otherwise now.
void allowances::touch(std::string_view name_space) {
  const auto found = tenants_.find(name_space);
  if (found == tenants_.end()) return;
  ++changes_;
  if (found->second.cohort.empty())
    versions_[found->first] = changes_;
  else
    cohort_versions_[found->second.cohort] = changes_;
}

std::uint64_t allowances::version_of(std::string_view name_space) const {
  const auto found = tenants_.find(name_space);
  if (found == tenants_.end()) return 0;
  const bool alone = found->second.cohort.empty();
  const auto& versions = alone ? versions_ : cohort_versions_;
  const auto at = versions.find(alone ? name_space : std::string_view(found->second.cohort));
  return at == versions.end() ? 0 : at->second;
}

void allowances::clear() {
  for (const auto& [name, sums] : used_) touch(name);
  bookings_.clear();
  used_.clear();
}

void allowances::count(const booking& of, int sign) {
  auto& sums = used_[of.name_space];
  for (const charge& one : of.what) {
    auto found = std::ranges::find_if(sums, [&](const charge& other) {
      return other.model == one.model && other.pool == one.pool && other.priority == one.priority &&
             other.isolated == one.isolated;
    });
    if (found == sums.end()) {
      found = sums.insert(found, one);
      found->of = {};
    }
    for (std::size_t i = 0; i < one.of.size(); ++i) found->of[i] += sign * one.of[i];
    if (found->of == amounts_of_cards{}) sums.erase(found);
  }
  if (sums.empty()) used_.erase(of.name_space);
  touch(of.name_space);
}

void allowances::book(std::string_view pod_uid, std::string_view name_space, std::vector<charge> what) {
  release(pod_uid);
  const auto here = bookings_.emplace(std::string{pod_uid}, booking{std::string{name_space}, std::move(what)}).first;
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
  for (const charge& one : sums->second)
    if (counts(one, model, only))
      for (std::size_t i = 0; i < out.size(); ++i) out[i] += one.of[i];
  return out;
}

std::vector<allowances::member> allowances::members(const shelf& of) const {
  std::vector<member> out;
  const auto cohort = cohorts_.find(of.cohort);
  if (cohort == cohorts_.end()) return out;
  looked_at_ += cohort->second.size();
  for (const auto& [name, one] : cohort->second)
    if (const auto nominal = nominal_of(*one, of.model, of.only, of.of))
      out.push_back({one, *nominal, used(name, of.model, of.only)[at(of.of)]});
  return out;
}

std::optional<exceeded> allowances::check(std::string_view pod_uid, std::string_view name_space,
                                          std::span<const charge> what, std::span<const std::string> gone) const {
  const auto found = tenants_.find(name_space);
  if (found == tenants_.end()) return {};
  const tenant& who = found->second;
  const auto of_pod = [&](std::string_view uid, const tenant& of, const tenant::limit& limit, resource which) {
    const auto* booked = find(uid);
    return booked && booked->name_space == of.name_space ? asked_of(booked->what, limit.model, limit.only, which)
                                                         : std::int64_t{0};
  };
  const auto left_out = [&](const tenant& of, const tenant::limit& limit, resource which) {
    auto sum = of_pod(pod_uid, of, limit, which);
    for (const auto& uid : gone)
      if (uid != pod_uid) sum += of_pod(uid, of, limit, which);
    return sum;
  };
  for (const charge& one : what)
    if (who.at_least && one.isolated && *one.isolated < *who.at_least)
      return exceeded{.what = exceeded::kind::isolation,
                      .name_space = who.name_space,
                      .model = one.model,
                      .cohort = who.cohort,
                      .asked = static_cast<std::int64_t>(*one.isolated),
                      .limit = static_cast<std::int64_t>(*who.at_least)};
  if (auto no = elsewhere(who, what)) return no;
  for (const auto& limit : who.limits)
    for (const resource which : resources) {
      const auto nominal = limit.nominal[at(which)];
      const auto asked = asked_of(what, limit.model, limit.only, which);
      if (!nominal || asked <= 0) continue;
      exceeded no{.of = which,
                  .name_space = who.name_space,
                  .model = limit.model,
                  .cohort = who.cohort,
                  .asked = asked,
                  .used = used(name_space, limit.model, limit.only)[at(which)] - left_out(who, limit, which),
                  .limit = *nominal,
                  .only = limit.only};
      if (who.cohort.empty()) {
        no.what = exceeded::kind::nominal;
        if (asked > no.limit - no.used) return no;
        continue;
      }
      if (const auto more = limit.borrowing[at(which)]) {
        no.what = exceeded::kind::borrowing;
        no.limit = *nominal + *more;
        if (asked > no.limit - no.used) return no;
      }
      no.what = exceeded::kind::cohort;
      no.used = no.limit = 0;
      for (const member& one : members({who.cohort, limit.model, limit.only, which})) {
        no.used += one.used - left_out(*one.who, limit, which);
        no.limit += one.nominal;
      }
      if (asked > no.limit - no.used) return no;
    }
  return {};
}

/// Both lists by name, each lender until it has nothing left: one way through both.
std::vector<loan> allowances::loans(const shelf& of) const {
  std::vector<loan> out;
  if (of.cohort.empty()) return out;
  auto all = members(of);
  auto lender = all.begin();
  for (member& borrower : all)
    while (borrower.used > borrower.nominal && lender != all.end()) {
      const auto amount = std::min(borrower.used - borrower.nominal, lender->nominal - lender->used);
      if (amount <= 0) {
        ++lender;
        continue;
      }
      out.push_back({borrower.who->name_space, lender->who->name_space, std::string{of.model}, of.of, amount, of.only});
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
  for (const auto& [name, one] : members_of->second)
    for (const auto& limit : one->limits) shelves.emplace(limit.model, limit.only);
  for (const auto& [model, only] : shelves)
    for (const resource of : resources)
      std::ranges::move(loans(shelf{members_of->first, model, only, of}), std::back_inserter(out));
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
  using row = std::tuple<std::string_view, std::string_view, scope, resource>;  // lender, model
  std::map<row, std::int64_t> lent;
  const auto lend = [&](const std::vector<loan>& loans) {
    for (const loan& one : loans) {
      const auto lender = tenants_.find(one.lender);
      const auto limit = std::ranges::find_if(lender->second.limits, [&](const tenant::limit& each) {
        return each.model == one.model && each.only == one.only;
      });
      lent[{lender->first, limit->model, one.only, one.of}] += one.amount;
    }
  };
  const auto add = [&](const tenant& who) {
    ++looked_at_;
    auto& rows = out[who.name_space];
    for (const auto& limit : who.limits)
      for (const resource of : resources) {
        const auto nominal = limit.nominal[at(of)];
        if (!nominal) continue;
        const auto now = used(who.name_space, limit.model, limit.only)[at(of)];
        const auto given = lent.find({who.name_space, limit.model, limit.only, of});
        rows.push_back({limit.model, of, *nominal, now, std::max<std::int64_t>(now - *nominal, 0),
                        given == lent.end() ? 0 : given->second, limit.only});
      }
  };
  if (found->second.cohort.empty()) {
    add(found->second);
    return out;
  }
  const auto& all = *cohorts_.find(found->second.cohort);
  lend(loans(std::string_view(all.first)));
  for (const auto& [name, one] : all.second) add(*one);
  return out;
}

std::string_view text_of(isolation of) {
  switch (of) {
    case isolation::none:
      return "none";
    case isolation::soft:
      return "soft";
    case isolation::mps:
      return "mps";
    case isolation::mig:
      return "mig";
    case isolation::exclusive:
      return "exclusive";
  }
  return "";
}

std::string_view text_of(resource of) {
  switch (of) {
    case resource::cores:
      return "cores";
    case resource::memory:
      return "MiB of card memory";
    case resource::cards:
      return "cards";
  }
  return "";
}

std::string text_of(const exceeded& of) {
  if (of.what == exceeded::kind::model)
    return "namespace " + of.name_space + " may not use cards of " +
           (of.model.empty() ? "an unknown model" : "model " + of.model);
  if (of.what == exceeded::kind::pool)
    return "namespace " + of.name_space + " may not use nodes of " +
           (of.only.pool.empty() ? "no pool" : "pool " + of.only.pool);
  if (of.what == exceeded::kind::isolation)
    return "namespace " + of.name_space + " demands isolation " +
           std::string{text_of(static_cast<isolation>(of.limit))} + " or better, the pod would have " +
           std::string{text_of(static_cast<isolation>(of.asked))};
  std::string what{text_of(of.of)};
  if (!of.model.empty()) what += " of model " + of.model;
  if (!of.only.pool.empty()) what += " in pool " + of.only.pool;
  if (of.only.isolated) what += " with isolation " + std::string{text_of(*of.only.isolated)};
  if (of.only.priority_from) what += " for priorities from " + std::to_string(*of.only.priority_from);
  if (of.only.priority_to)
    what += (of.only.priority_from ? " to " : " for priorities up to ") + std::to_string(*of.only.priority_to);
  std::string out = of.what == exceeded::kind::cohort ? "cohort " + of.cohort + " of namespace " : "namespace ";
  out += of.name_space + " may use " + std::to_string(of.limit) + " " + what;
  if (of.what == exceeded::kind::borrowing) out += " with what it may borrow";
  return out + ", uses " + std::to_string(of.used) + ", asks for " + std::to_string(of.asked);
}

}  // namespace quota
