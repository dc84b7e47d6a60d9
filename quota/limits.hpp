#pragma once
// How much of all cards a namespace may hold: nominal limits on cores, memory and cards, over all models or for one,
// and borrowing within a cohort. Apart from the ledger, which knows cards and not namespaces: each pod is booked here
// with what it is charged. One thread.
//
// In a cohort what one does not use of its nominal may be used by the others, by each up to its own borrowing limit, as
// long as all together stay within the sum of the nominals; for each model and resource by itself. A namespace that has
// no nominal there neither lends nor borrows there, and is not bound. What is lent is not taken back here: its owner is
// refused until someone leaves (or is preempted), and `loans` says who holds it.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quota/ledger.hpp"
#include "quota/vocabulary.hpp"

namespace quota {

enum class resource : std::uint8_t {
  cores,   ///< hundredths of a card
  memory,  ///< MiB; a whole card's is all of it
  cards,   ///< parts held: a whole card is one, and a share of one is one
};
inline constexpr std::array resources{resource::cores, resource::memory, resource::cards};

/// By `resource`.
using amounts_of_cards = std::array<std::int64_t, resources.size()>;
using bounds = std::array<std::optional<std::int64_t>, resources.size()>;

/// As people write it in an AcceleratorQuota.
std::string_view text_of(isolation isolation);
/// Of what a vocabulary gives.
isolation isolation_of(const need& need);
/// Of a share on such a node.
isolation isolation_of(const service& service);

/// What is known of a pod apart from its cards.
struct traits {
  std::int32_t priority = 0;
  std::optional<isolation> isolated{};  ///< of its shares; none: not known. A whole card is always exclusive.
};

/// What a pod is charged for cards of one model and pool.
struct charge {
  std::string model;  ///< empty: not known
  amounts_of_cards amounts{};
  std::string pool{};  ///< empty: none, or not known
  std::int32_t priority = 0;
  std::optional<isolation> isolated{};

  friend bool operator==(const charge&, const charge&) = default;
};
/// One a model and isolation, sorted. A card the node does not have is charged as it was granted, without a model.
std::vector<charge> charges_of(const holding& holding, const node_inventory* node, const traits& pod = {});
/// Before a node is chosen, one an isolation: no model and pool, and no memory for shares in percent and for whole
/// cards. At most what will be charged in the end, so what is refused for it is refused everywhere.
std::vector<charge> charges_of(const demand& demand, const traits& pod = {});

/// Which charges a limit counts, apart from the model. What is not said holds for all.
struct scope {
  std::string pool{};
  std::optional<std::int32_t> priority_from{}, priority_to{};  ///< both inclusive
  std::optional<isolation> isolated{};                         ///< exactly this

  bool counts(const charge& charge) const {
    return (pool.empty() || pool == charge.pool) && (!priority_from || charge.priority >= *priority_from) &&
           (!priority_to || charge.priority <= *priority_to) && (!isolated || charge.isolated == isolated);
  }
  friend auto operator<=>(const scope&, const scope&) = default;
};

struct tenant {
  struct limit {
    std::string model;   ///< empty: over all models, those not known as well
    bounds nominal{};    ///< 0 or more; none: no limit
    bounds borrowing{};  ///< the most beyond nominal, in a cohort; none: what the others leave
    scope only{};        ///< in a cohort the limits of one model and scope belong together
  };
  std::string name_space;
  std::string cohort;                   ///< empty: borrows from no one
  std::vector<limit> limits;            ///< at most one a model and scope
  std::optional<isolation> at_least{};  ///< its pods are isolated so well or better; what is not known is let pass
  /// Cards of these models, on nodes in these pools, and no others; none: any. What has no model or pool is not among
  /// them.
  std::optional<std::vector<std::string>> only_models{}, only_pools{};
};

/// The limit that refuses.
struct exceeded_limit {
  enum class kind : std::uint8_t {
    nominal,    ///< no cohort: `limit` is its own
    borrowing,  ///< `limit` is nominal and borrowing limit together
    cohort,     ///< `limit` and `used` are of the whole cohort
    isolation,  ///< the namespace demands more isolation than the pod would have: `limit` and `requested` are those
    model,      ///< the namespace may not use cards of this model
    pool,       ///< nor nodes of this pool, which is `only.pool`
  };
  kind rule{};
  resource unit{};
  std::string name_space, model, cohort;
  std::int64_t requested = 0, used = 0, limit = 0;
  scope only{};

  friend bool operator==(const exceeded_limit&, const exceeded_limit&) = default;
};

/// One row of a tenant's limits as it stands.
struct standing {
  std::string model;
  resource unit{};
  std::int64_t nominal = 0, used = 0;
  std::int64_t borrowed = 0;  ///< of others, who lend it
  std::int64_t lent = 0;      ///< of nominal, used by others
  scope only{};

  friend bool operator==(const standing&, const standing&) = default;
};

/// Which lender stands for what of which borrower: borrowers and lenders by name, each from the first lender that has
/// something left. A function of what is used now, no matter who came first.
struct loan {
  std::string borrower, lender, model;
  resource unit{};
  std::int64_t amount = 0;
  scope only{};

  friend bool operator==(const loan&, const loan&) = default;
};

class allowances {
 public:
  /// Replaces the tenant of this name.
  void put(tenant tenant);
  void remove(std::string_view name_space);

  /// What a pod is charged, in place of what was booked for it before.
  void book(std::string_view pod_uid, std::string_view name_space, std::vector<charge> charges);
  void release(std::string_view pod_uid);
  /// Books what the ledger has, and nothing else. `name_space_of(uid)` gives a string; empty: not charged.
  template <class Fn>
  void recount(const ledger& ledger, Fn&& name_space_of) {
    clear();
    ledger.for_each([&](const std::string& uid, const ledger::entry& entry) {
      const std::string name_space{name_space_of(uid)};
      const auto view = ledger.view(entry.held.node);
      if (!name_space.empty()) book(uid, name_space, charges_of(entry.held, view ? view->inventory : nullptr));
    });
  }
  /// As above, with `traits_of(uid)`.
  template <class Fn, class Traits>
  void recount(const ledger& ledger, Fn&& name_space_of, Traits&& traits_of) {
    clear();
    ledger.for_each([&](const std::string& uid, const ledger::entry& entry) {
      const std::string name_space{name_space_of(uid)};
      const auto view = ledger.view(entry.held.node);
      if (!name_space.empty())
        book(uid, name_space, charges_of(entry.held, view ? view->inventory : nullptr, traits_of(uid)));
    });
  }

  /// What is booked for a pod.
  struct booking {
    std::string name_space;
    std::vector<charge> charges;
  };
  /// Null: nothing.
  const booking* find(std::string_view pod_uid) const;

  /// May the pod hold this? What is booked for it already is left out, so the answer stays when it is asked again; so
  /// is what the pods of `gone` hold. The limits in their order, resources in theirs; of what it does not ask for it is
  /// not refused. Linear in the cohort and in `gone`.
  std::optional<exceeded_limit> check(std::string_view pod_uid, std::string_view name_space,
                                      std::span<const charge> charges, std::span<const std::string> gone = {}) const;

  amounts_of_cards used(std::string_view name_space, std::string_view model, const scope& only = {}) const;
  /// Of every nominal limit of the tenant, in its order.
  std::vector<standing> standings(std::string_view name_space) const;
  std::vector<loan> loans(std::string_view cohort) const;

  template <class T>
  using by_name = std::map<std::string, T, std::less<>>;
  /// `standings` of all tenants that share limits with this one: its cohort, or itself alone. Linear in what comes back
  /// times the limits of one.
  by_name<std::vector<standing>> standings_together(std::string_view name_space) const;
  /// Differs when `standings` of the tenant may. O(log n).
  std::uint64_t version_of(std::string_view name_space) const;
  /// Empty: none, or no such tenant.
  std::string_view cohort_of(std::string_view name_space) const;
  /// How many tenants were looked at since the start, for whatever reason: what this costs.
  std::uint64_t looked_at() const { return looked_at_; }

 private:
  struct member {
    const tenant* owner;
    std::int64_t nominal, used;
  };
  /// The limits of one model and scope over the cohort.
  struct shelf {
    std::string_view cohort, model;
    const scope& only;
    resource unit;
  };
  void clear();
  void count(const booking& booking, int sign);
  void touch(std::string_view name_space);
  /// Tenants of the cohort with a nominal for this, by name.
  std::vector<member> members(const shelf& shelf) const;
  std::vector<loan> loans(const shelf& shelf) const;

  by_name<tenant> tenants_;
  by_name<by_name<const tenant*>> cohorts_;  ///< their tenants by name
  // Of cohorts, and of tenants without one. What is not there has never changed.
  by_name<std::uint64_t> cohort_versions_, versions_;
  std::uint64_t changes_ = 0;
  mutable std::uint64_t looked_at_ = 0;
  by_name<booking> bookings_;
  // By namespace, one for each model, pool, priority and isolation that pods of it have.
  by_name<std::vector<charge>> used_;
};

}  // namespace quota
