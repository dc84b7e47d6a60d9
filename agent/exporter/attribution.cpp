#include "agent/exporter/attribution.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>

namespace agent::exporter {
namespace {

constexpr int card_cores = 100;

enum class match { none, shared, whole, part };

/// What a device ID says of a card.
match match_of(const cards::card_usage& card, std::string_view id) {
  if (std::ranges::find(card.mig_uuids, id) != card.mig_uuids.end()) return match::part;
  if (!id.starts_with(card.uuid)) return match::none;
  id.remove_prefix(card.uuid.size());
  if (id.empty()) return match::whole;
  return id.starts_with("::") ? match::shared : match::none;
}

const pod* find_pod(const std::vector<const pod*>& pods, const std::string& ns, const std::string& name) {
  const auto match =
      std::ranges::find_if(pods, [&](const pod* pod) { return pod->key.ns == ns && pod->key.name == name; });
  return match == pods.end() ? nullptr : *match;
}

std::vector<given_card> given_by_kubelet(const given_devices& devices, const pod* pod,
                                         std::span<const cards::card_usage> cards) {
  std::vector<given_card> out;
  for (const auto& card : cards) {
    auto found = match::none;
    for (const auto& id : devices.ids) found = std::max(found, match_of(card, id));
    if (found == match::none) continue;
    given_card entry{{devices.ns, devices.pod, devices.container}, card.uuid, {}, {}};
    if (found == match::whole) {
      entry.cores = card_cores;
      entry.memory = card.memory_total;
    } else if (found == match::shared && pod) {
      for (const auto& planned : pod->planned) {
        if (planned.container != devices.container || planned.card != card.uuid) continue;
        entry.cores = planned.cores;
        entry.memory = planned.memory;
      }
    }
    out.push_back(std::move(entry));
  }
  return out;
}

/// The containers of the node's pods, by what /proc says of a process.
class owners {
 public:
  explicit owners(const std::vector<const pod*>& pods) {
    for (const auto* pod : pods) {
      by_uid_.emplace(pod->id.to_string(), pod);
      for (const auto& container : pod->ids)
        if (!container.id.empty()) by_container_.emplace(container.id, std::pair(pod, &container.name));
    }
  }
  std::optional<container_name> find(const cards::process_owner& owner) const {
    if (const auto match = by_container_.find(owner.container); match != by_container_.end())
      return container_name{match->second.first->key.ns, match->second.first->key.name, *match->second.second};
    if (const auto match = by_uid_.find(owner.pod_uid); match != by_uid_.end())
      return container_name{match->second->key.ns, match->second->key.name, {}};
    return std::nullopt;
  }

 private:
  std::unordered_map<std::string, const pod*> by_uid_;
  std::unordered_map<std::string, std::pair<const pod*, const std::string*>> by_container_;
};

/// One quantity of a card, as it is divided up.
struct division {
  std::vector<std::uint64_t> shares;
  unattributed rest;
};

using wide = unsigned __int128;

/// Makes the parts add up to what the card says.
void fit(division& parts, std::uint64_t card) {
  wide all = 0;
  for (const auto amount : {parts.rest.host, parts.rest.mps_server, parts.rest.unknown_pod, parts.rest.unseen})
    all += amount;
  for (const auto share : parts.shares) all += share;
  const auto shrink = [&](std::uint64_t& amount) {
    if (all > card) amount = static_cast<std::uint64_t>(wide{amount} * card / all);
    return amount;
  };
  std::uint64_t left = card;
  for (auto& share : parts.shares) left -= std::min(left, shrink(share));
  for (auto* amount : {&parts.rest.host, &parts.rest.mps_server, &parts.rest.unknown_pod})
    left -= std::min(left, shrink(*amount));
  parts.rest.unseen = left;
}

class dividing {
 public:
  dividing(const cards::card_usage& card, std::span<const given_card> all_given, const owners& owners) : card_(card) {
    for (const auto& entry : all_given)
      if (entry.card == card.uuid) add(entry);
    for (const auto& process : card.processes) add(process, owners);
  }

  attributed_card take() {
    attributed_card out;
    auto memory = divide(card_.memory_used, sees_processes_,
                         [](const seen_process& process) { return process.usage->memory.value_or(0); });
    const auto utilization = divide(card_.utilization_ppm, sees_processes_ && card_.samples_processes,
                                    [](const seen_process& process) { return process.usage->utilization_ppm; });
    std::size_t index = 0;
    for (auto& [name, share] : shares_) {
      share.name = name;
      if (memory && hides_memory_.contains(name))
        memory->rest.unseen += memory->shares[index];
      else if (memory && knows(sees_processes_))
        share.memory_used = memory->shares[index];
      if (utilization && knows(sees_processes_ && card_.samples_processes))
        share.utilization_ppm = utilization->shares[index];
      out.shares.push_back(std::move(share));
      ++index;
    }
    if (memory) out.memory = memory->rest;
    if (utilization) out.utilization = utilization->rest;
    return out;
  }

 private:
  struct seen_process {
    const cards::process_usage* usage;
    std::optional<container_name> name;
  };

  void add(const given_card& card) {
    const auto [entry, is_new] = shares_.try_emplace(card.name);
    auto& share = entry->second;
    const auto sum = [is_new](auto& target, const auto& amount) {
      if (is_new)
        target = amount;
      else if (target && amount)
        *target += *amount;
      else
        target.reset();
    };
    sum(share.cores, card.cores);
    sum(share.memory_given, card.memory);
  }

  void add(const cards::process_usage& process, const owners& owners) {
    seen_process seen{&process, {}};
    if (process.owner.kind == cards::owner_kind::pod) seen.name = owners.find(process.owner);
    sees_processes_ = sees_processes_ || process.owner.kind != cards::owner_kind::unseen;
    has_others_ = has_others_ || process.owner.kind == cards::owner_kind::host ||
                  (process.owner.kind == cards::owner_kind::pod && !seen.name);
    if (seen.name) {
      auto& share = shares_[*seen.name];
      ++share.processes;
      share.mps_clients += process.is_mps_client ? 1 : 0;
      if (!process.memory) hides_memory_.insert(*seen.name);
    }
    processes_.push_back(std::move(seen));
  }

  bool is_alone() const { return shares_.size() == 1 && !has_others_; }
  /// What each share uses is known.
  bool knows(bool sees) const { return sees || is_alone(); }

  std::optional<division> divide(std::optional<std::uint64_t> card, bool sees,
                                 const std::function<std::uint64_t(const seen_process&)>& amount) const {
    if (!card) return std::nullopt;
    division out;
    out.shares.resize(shares_.size());
    if (!sees) {
      (is_alone() ? out.shares.front() : out.rest.unseen) = *card;
      return out;
    }
    const auto add = [](std::uint64_t& target, std::uint64_t more) {
      if (__builtin_add_overflow(target, more, &target)) target = ~std::uint64_t{0};
    };
    for (const auto& process : processes_) {
      const auto more = amount(process);
      if (process.name)
        add(out.shares[static_cast<std::size_t>(std::distance(shares_.begin(), shares_.find(*process.name)))], more);
      else if (process.usage->owner.kind == cards::owner_kind::mps_server)
        add(shares_.size() == 1 ? out.shares.front() : out.rest.mps_server, more);
      else if (process.usage->owner.kind == cards::owner_kind::host)
        add(out.rest.host, more);
      else if (process.usage->owner.kind == cards::owner_kind::pod)
        add(out.rest.unknown_pod, more);
      else
        add(out.rest.unseen, more);
    }
    fit(out, *card);
    return out;
  }

  const cards::card_usage& card_;
  std::map<container_name, share> shares_;
  std::set<container_name> hides_memory_;  ///< a process of theirs does not say how much it has
  std::vector<seen_process> processes_;
  bool sees_processes_ = false;
  bool has_others_ = false;  ///< processes that are of none of the shares
};

}  // namespace

std::vector<given_card> given_cards(std::span<const given_devices> devices, const std::vector<const pod*>* pods,
                                    std::span<const cards::card_usage> cards) {
  std::vector<given_card> out;
  std::set<container_name> confirmed;
  for (const auto& entry : devices) {
    const pod* known = pods ? find_pod(*pods, entry.ns, entry.pod) : nullptr;
    if (pods && (!known || known->finished())) continue;
    auto found = given_by_kubelet(entry, known, cards);
    if (found.empty()) continue;
    confirmed.insert({entry.ns, entry.pod, entry.container});
    std::ranges::move(found, std::back_inserter(out));
  }
  if (!pods) return out;
  for (const auto* pod : *pods) {
    if (pod->finished()) continue;
    for (const auto& planned : pod->planned) {
      container_name name{pod->key.ns, pod->key.name, planned.container};
      if (confirmed.contains(name)) continue;
      out.push_back({std::move(name), planned.card, planned.cores, planned.memory});
    }
  }
  return out;
}

std::vector<attributed_card> attribute(std::span<const cards::card_usage> usage, std::span<const given_devices> devices,
                                       const std::vector<const pod*>* pods) {
  const auto all_given = given_cards(devices, pods, usage);
  const owners owners(pods ? *pods : std::vector<const pod*>());
  std::vector<attributed_card> out;
  out.reserve(usage.size());
  for (const auto& card : usage) out.push_back(dividing(card, all_given, owners).take());
  return out;
}

}  // namespace agent::exporter
