#include "quota/limits.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace quota {
namespace {

// So that no sum overflows: MiB of one part of a card, parts of one container, and a limit that is as good as none.
constexpr std::int64_t most = std::int64_t{1} << 40, max_parts = 512, endless = std::int64_t{1} << 46;

std::size_t at(resource of) { return static_cast<std::size_t>(of); }

std::optional<std::int64_t> nominal_of(const tenant& of, std::string_view model, resource which) {
  for (const auto& one : of.limits)
    if (one.model == model && one.nominal[at(which)]) return one.nominal[at(which)];
  return {};
}

std::int64_t asked_of(std::span<const charge> what, std::string_view model, resource which) {
  std::int64_t sum = 0;
  for (const charge& one : what)
    if (model.empty() || one.model == model) sum += one.of[at(which)];
  return sum;
}

}  // namespace

std::vector<charge> charges_of(const holding& what, const node* on) {
  std::map<std::string_view, amounts_of_cards> sums;
  for (const grant& one : what.grants) {
    const card* of = nullptr;
    if (on != nullptr)
      if (const auto found = std::ranges::find(on->cards, one.card, &card::uuid); found != on->cards.end())
        of = &*found;
    auto& sum = sums[of == nullptr ? std::string_view{} : std::string_view{of->model}];
    sum[at(resource::cores)] += one.whole ? whole_card : std::clamp(one.cores, 0, whole_card);
    sum[at(resource::memory)] +=
        std::clamp(one.whole && of != nullptr ? of->memory_mib : one.memory_mib, std::int64_t{0}, most);
    ++sum[at(resource::cards)];
  }
  std::vector<charge> out;
  for (const auto& [model, sum] : sums) out.push_back({std::string{model}, sum});
  return out;
}

charge charge_of(const demand& what) {
  charge out;
  for (const need& one : what.needs()) {
    out.of[at(resource::cores)] += std::int64_t{one.cards} * (one.whole ? whole_card : one.cores);
    if (!one.whole && one.memory_percent == 0)
      out.of[at(resource::memory)] += std::min<std::int64_t>(one.cards, max_parts) * std::min(one.memory_mib, most);
    out.of[at(resource::cards)] += one.cards;
  }
  return out;
}

void allowances::put(tenant what) {
  for (auto& one : what.limits)
    for (bounds* of : {&one.nominal, &one.borrowing})
      for (auto& value : *of)
        if (value) value = std::clamp(*value, std::int64_t{0}, endless);
  auto name = what.name_space;
  tenants_.insert_or_assign(std::move(name), std::move(what));
}

void allowances::remove(std::string_view name_space) {
  if (const auto found = tenants_.find(name_space); found != tenants_.end()) tenants_.erase(found);
}

void allowances::clear() {
  bookings_.clear();
  used_.clear();
}

void allowances::count(const booking& of, int sign) {
  const auto add = [&](std::string_view model, const amounts_of_cards& what) {
    auto& sums = used_[of.name_space];
    auto found = sums.find(model);
    if (found == sums.end()) found = sums.emplace(std::string{model}, amounts_of_cards{}).first;
    for (std::size_t i = 0; i < what.size(); ++i) found->second[i] += sign * what[i];
    if (found->second == amounts_of_cards{}) sums.erase(found);
    if (sums.empty()) used_.erase(of.name_space);
  };
  for (const charge& one : of.what) {
    add("", one.of);
    if (!one.model.empty()) add(one.model, one.of);
  }
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

amounts_of_cards allowances::used(std::string_view name_space, std::string_view model) const {
  const auto sums = used_.find(name_space);
  if (sums == used_.end()) return {};
  const auto found = sums->second.find(model);
  return found == sums->second.end() ? amounts_of_cards{} : found->second;
}

std::vector<allowances::member> allowances::members(std::string_view cohort, std::string_view model,
                                                    resource of) const {
  std::vector<member> out;
  for (const auto& [name, one] : tenants_)
    if (one.cohort == cohort)
      if (const auto nominal = nominal_of(one, model, of)) out.push_back({&one, *nominal, used(name, model)[at(of)]});
  return out;
}

std::optional<exceeded> allowances::check(std::string_view pod_uid, std::string_view name_space,
                                          std::span<const charge> what) const {
  const auto found = tenants_.find(name_space);
  if (found == tenants_.end()) return {};
  const tenant& who = found->second;
  const auto before = bookings_.find(pod_uid);
  const auto its_own = [&](const tenant& of, std::string_view model, resource which) -> std::int64_t {
    if (before == bookings_.end() || before->second.name_space != of.name_space) return 0;
    return asked_of(before->second.what, model, which);
  };
  for (const auto& limit : who.limits)
    for (const resource which : resources) {
      const auto nominal = limit.nominal[at(which)];
      const auto asked = asked_of(what, limit.model, which);
      if (!nominal || asked <= 0) continue;
      exceeded no{.of = which,
                  .name_space = who.name_space,
                  .model = limit.model,
                  .cohort = who.cohort,
                  .asked = asked,
                  .used = used(name_space, limit.model)[at(which)] - its_own(who, limit.model, which),
                  .limit = *nominal};
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
      for (const member& one : members(who.cohort, limit.model, which)) {
        no.used += one.used - its_own(*one.who, limit.model, which);
        no.limit += one.nominal;
      }
      if (asked > no.limit - no.used) return no;
    }
  return {};
}

std::vector<loan> allowances::loans(std::string_view cohort, std::string_view model, resource of) const {
  std::vector<loan> out;
  if (cohort.empty()) return out;
  auto all = members(cohort, model, of);
  for (member& borrower : all)
    for (member& lender : all) {
      const auto amount = std::min(borrower.used - borrower.nominal, lender.nominal - lender.used);
      if (amount <= 0) continue;
      out.push_back({borrower.who->name_space, lender.who->name_space, std::string{model}, of, amount});
      borrower.used -= amount;
      lender.used += amount;
    }
  return out;
}

std::vector<loan> allowances::loans(std::string_view cohort) const {
  std::set<std::string_view> models;
  for (const auto& [name, one] : tenants_)
    for (const auto& limit : one.limits)
      if (one.cohort == cohort) models.insert(limit.model);
  std::vector<loan> out;
  for (const auto model : models)
    for (const resource of : resources) std::ranges::move(loans(cohort, model, of), std::back_inserter(out));
  return out;
}

std::vector<standing> allowances::standings(std::string_view name_space) const {
  std::vector<standing> out;
  const auto found = tenants_.find(name_space);
  if (found == tenants_.end()) return out;
  for (const auto& limit : found->second.limits)
    for (const resource of : resources) {
      const auto nominal = limit.nominal[at(of)];
      if (!nominal) continue;
      const auto now = used(name_space, limit.model)[at(of)];
      standing one{limit.model, of, *nominal, now, std::max<std::int64_t>(now - *nominal, 0), 0};
      for (const loan& given : loans(found->second.cohort, limit.model, of))
        if (given.lender == name_space) one.lent += given.amount;
      out.push_back(std::move(one));
    }
  return out;
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
  std::string what{text_of(of.of)};
  if (!of.model.empty()) what += " of model " + of.model;
  std::string out = of.what == exceeded::kind::cohort ? "cohort " + of.cohort + " of namespace " : "namespace ";
  out += of.name_space + " may use " + std::to_string(of.limit) + " " + what;
  if (of.what == exceeded::kind::borrowing) out += " with what it may borrow";
  return out + ", uses " + std::to_string(of.used) + ", asks for " + std::to_string(of.asked);
}

}  // namespace quota
