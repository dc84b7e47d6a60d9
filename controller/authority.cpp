#include "controller/authority.hpp"

#include <algorithm>
#include <optional>

#include "controller/x509.hpp"

namespace controller {
namespace {

using std::chrono::seconds;
using x509::backdated, x509::due, x509::info, x509::joined, x509::living, x509::signer_of;

bool holds(std::string_view list, const info& authority) {
  return std::ranges::any_of(x509::read(list), [&](const info& info) { return info.pem == authority.pem; });
}

bool told_all(std::span<const std::string> bundles, const info& authority) {
  return !bundles.empty() && std::ranges::all_of(bundles, [&](const auto& list) { return holds(list, authority); });
}

/// One look at what is stored.
class state {
 public:
  state(const authority_keys& stored, std::span<const std::string> bundles, std::int64_t now,
        const authority_settings& settings)
      : stored_(stored),
        bundles_(bundles),
        now_(now),
        settings_(settings),
        authorities_(living(stored.authorities, now)) {
    leaf_ = x509::leaf_of(stored.leaf);
    if (leaf_) signer_ = signer_of(*leaf_, authorities_);
  }

  authority_step next() const {
    if (!can_sign()) return store(with_new_authority(), authorities_.empty() ? "no authority" : "a new authority");
    if (joined(authorities_) != stored_.authorities) return store(with(authorities_), "ended authorities are left out");
    if (const auto lost = told_before(); !lost.empty())
      return store(with_older(lost), "callers know others of our own");
    if (!all_know(stored_.authorities)) return step(authority_step::kind::tell, stored_, "callers are to be told");
    if (bundles_.empty()) return rest(seconds(3600));
    if (const auto reason = leaf_wanted(); !reason.empty()) return store(with_new_leaf(), reason);
    if (authorities_.size() > 1 && now_ >= forget_at())
      return store(with({&authorities_.back(), 1}), "overlap is over");
    auto end = std::min(due(*leaf_), due(authorities_.back()));
    if (authorities_.size() > 1) end = std::min(end, forget_at());
    return rest(seconds(std::max<std::int64_t>(end - now_, 1)));
  }

 private:
  bool can_sign() const {
    return !authorities_.empty() && now_ < due(authorities_.back()) && authorities_.back().not_before <= now_ &&
           x509::belongs({authorities_.back().pem, stored_.signer_key});
  }
  bool all_know(const std::string& list) const {
    return std::ranges::all_of(bundles_, [&](const auto& bundle) { return bundle == list; });
  }
  std::string_view leaf_wanted() const {
    if (!leaf_ || !signer_) return "no usable leaf";
    if (now_ >= due(*leaf_) || leaf_->not_before > now_) return "the leaf ends";
    if (!std::ranges::includes(leaf_->names, sorted_names())) return "the leaf is for other names";
    if (signer_ != &authorities_.back()) return "the leaf is of an older authority";
    return {};
  }
  std::int64_t forget_at() const { return leaf_->not_before + backdated + settings_.overlap.count(); }
  std::vector<std::string> sorted_names() const {
    auto out = settings_.names;
    std::ranges::sort(out);
    return out;
  }

  authority_keys with(std::span<const info> authorities) const {
    auto out = stored_;
    out.authorities = joined(authorities);
    return out;
  }
  /// What is stored was lost or replaced by hand: replicas still show leaves of authorities that callers know
  /// and that are stored no more. Once callers know the newest one, the others were left out on purpose.
  std::vector<info> told_before() const {
    std::vector<info> out;
    if (!authorities_.empty() && told_all(bundles_, authorities_.back())) return out;
    for (const auto& list : bundles_) {
      for (auto& entry : living(list, now_)) {
        const bool is_own =
            entry.name.starts_with(settings_.name + " authority ") || settings_.earlier.contains(entry.pem);
        const bool known =
            std::ranges::find(authorities_, entry) != authorities_.end() || std::ranges::find(out, entry) != out.end();
        if (is_own && !known && out.size() < 4) out.push_back(std::move(entry));
      }
    }
    return out;
  }
  authority_keys with_older(std::span<const info> older) const {
    auto out = stored_;
    out.authorities = joined(older) + joined(authorities_);
    return out;
  }
  authority_keys with_new_authority() const {
    const auto name = settings_.name + " authority " + rfc3339_seconds(wall_time(seconds(now_)));
    const auto made = x509::make_authority(name, {now_ - backdated, now_ + settings_.authority_life.count()});
    auto out = with_older(told_before());
    out.authorities += joined(x509::read(made.certificate));
    out.signer_key = made.key;
    return out;
  }
  authority_keys with_new_leaf() const {
    const auto& authority = authorities_.back();
    auto out = stored_;
    const x509::validity validity{now_ - backdated, std::min(now_ + settings_.leaf_life.count(), authority.until)};
    if (auto made = x509::issue({authority.pem, stored_.signer_key}, settings_.name, settings_.names, validity))
      out.leaf = std::move(*made);
    return out;
  }

  static authority_step step(authority_step::kind kind, authority_keys keys, std::string_view reason) {
    authority_step out;
    out.action = kind;
    out.keys = std::move(keys);
    out.reason = reason;
    return out;
  }
  static authority_step store(authority_keys keys, std::string_view reason) {
    return step(authority_step::kind::store, std::move(keys), reason);
  }
  authority_step rest(seconds until) const {
    auto out = step(authority_step::kind::rest, stored_, "all is well");
    out.again = until;
    return out;
  }

  const authority_keys& stored_;
  std::span<const std::string> bundles_;
  std::int64_t now_;
  const authority_settings& settings_;
  std::vector<info> authorities_;
  std::optional<info> leaf_;      ///< whose key is stored too
  const info* signer_ = nullptr;  ///< of the leaf
};

}  // namespace

authority_step next_step(const authority_keys& stored, std::span<const std::string> bundles, std::int64_t now,
                         const authority_settings& settings) {
  return state(stored, bundles, now, settings).next();
}

leaf_gate::answer leaf_gate::look(const authority_keys& stored, std::span<const std::string> bundles, bool showing,
                                  milliseconds now, std::int64_t wall) {
  if (stored.leaf.certificate.empty() && stored.leaf.key.empty()) return {};
  const auto leaf = x509::leaf_of(stored.leaf);
  if (!leaf) return {false, {}, "the stored key does not belong to the certificate"};
  if (leaf->until <= wall) return {false, {}, "the stored certificate has expired"};
  const auto authorities = living(stored.authorities, wall);
  const auto* signer = signer_of(*leaf, authorities);
  if (!signer) return {false, {}, "the stored certificate is not signed by a stored authority"};
  if (!told_all(bundles, *signer)) {
    signer_.clear();
    return {};
  }
  if (signer_ != signer->pem) {
    signer_ = signer->pem;
    since_ = now;
  }
  const auto waited = now - since_;
  if (showing && waited < spread) return {false, spread - waited, {}};
  return {true, {}, {}};
}

}  // namespace controller
