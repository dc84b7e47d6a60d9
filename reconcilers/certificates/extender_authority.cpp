#include "reconcilers/certificates/extender_authority.hpp"

#include <algorithm>
#include <array>
#include <ranges>
#include <span>

#include "api/hash.hpp"
#include "api/names.hpp"
#include "controller/clock.hpp"
#include "controller/x509.hpp"
#include "text/list.hpp"

namespace reconcilers {
namespace {

using std::chrono::seconds;
namespace x509 = controller::x509;
using x509::info;
using kind = extender_step::kind;

constexpr seconds while_changing{15};  // files are polled: no one reports their changes

bool holds(std::span<const info> list, const info& certificate) {
  return std::ranges::find(list, certificate) != list.end();
}

/// One of the two leaves, as it is stored.
struct stored_leaf {
  std::optional<info> leaf;
  const info* signer = nullptr;

  stored_leaf(const extender_side& extender_side, std::span<const info> authorities, std::int64_t now,
              x509::usage usage) {
    leaf = x509::leaf_of(extender_side.leaf);
    const bool taken = leaf && leaf->until > now && (usage == x509::usage::server ? leaf->server : leaf->client);
    if (!taken) leaf.reset();
    if (leaf) signer = x509::signer_of(*leaf, authorities);
  }
  bool usable() const { return signer != nullptr; }
};

/// One look at what is stored.
class look {
 public:
  look(const extender_view& is, std::int64_t now, const extender_settings& settings)
      : is_(is),
        now_(now),
        settings_(settings),
        authorities_(x509::living(is.keys.authorities, now)),
        list_(x509::joined(authorities_)),
        server_(is.server, authorities_, now, x509::usage::server),
        client_(is.client, authorities_, now, x509::usage::client) {}

  extender_step next() const {
    if (!can_sign())
      return store(with_another(), authorities_.empty() ? "a new authority, because there was none that can sign"
                                                        : "a new authority next to the old");
    if (!has_all(is_.keys.authorities)) return store(with(list_), "ended authorities are left out");
    if (const auto lost = left_out(); !lost.empty())
      return store(with(x509::joined(lost) + list_), "both sides know others");
    if (!told(is_.server))
      return tell(kind::server, with_authorities(is_.server), is_.server,
                  "ca.crt of the server has the authorities that count now");
    if (!told(is_.client)) {
      auto told_too = with_authorities(is_.client);
      told_too.by_hand = changing() && by_hand();
      return tell(kind::client, std::move(told_too), is_.client,
                  "ca.crt of kube-schedulers has the authorities that count now");
    }
    if (const auto reason = wanted(server_, settings_.names); !reason.empty()) {
      if (auto made = with_leaf(is_.server, server_, "quartermaster-extender", settings_.names, x509::usage::server))
        return write(kind::server, std::move(*made), reason);
    }
    if (const auto reason = wanted(client_, {}); !reason.empty()) {
      if (auto made = with_leaf(is_.client, client_, "kube-scheduler", {}, x509::usage::client))
        return write(kind::client, std::move(*made), reason);
    }
    if (changing() && forgettable()) return store(with_newest_alone(), "the older authority is forgotten");
    return rest();
  }

 private:
  const info& newest() const { return authorities_.back(); }
  bool changing() const { return authorities_.size() > 1; }
  /// Several may have one key, so who has signed it first in the list says nothing.
  bool of_newest(const stored_leaf& certificate) const {
    return certificate.leaf && x509::signed_by(*certificate.leaf, newest());
  }
  bool can_sign() const {
    return !authorities_.empty() && now_ < x509::due(newest()) && newest().not_before <= now_ &&
           x509::belongs({newest().pem, is_.keys.signer_key});
  }
  /// Another program may have written the same with other line ends.
  bool has_all(const std::string& list) const { return list == list_ || x509::read(list) == authorities_; }
  bool told(const extender_side& side) const { return has_all(side.authorities) && (!changing() || side.since); }

  /// Authorities that are not stored and yet count: what was stored is lost, or was put back from a copy. A side alone
  /// may have them from anyone; what both have was written by us, or stood there before the authority was stored.
  std::vector<info> left_out() const {
    if (has_all(is_.server.authorities) && has_all(is_.client.authorities)) return {};
    const auto server = x509::living(is_.server.authorities, now_), client = x509::living(is_.client.authorities, now_);
    std::vector<info> out;
    for (const auto* list : {&server, &client}) {
      for (const auto& entry : *list) {
        const bool known = holds(authorities_, entry) || holds(out, entry),
                   lost = authorities_.empty() && holds(server, entry) && holds(client, entry);
        if (!known && (lost || needed(entry))) out.push_back(entry);
      }
    }
    return out;
  }
  /// It has signed what is shown, and no one whom we know has: several may have one key.
  bool needed(const info& info) const {
    return std::ranges::any_of(std::array{&server_, &client_}, [&](const stored_leaf* certificate) {
      return certificate->leaf && !certificate->signer && x509::signed_by(*certificate->leaf, info);
    });
  }
  /// Those whom it knows and who do not count, for people.
  std::string not_ours(const extender_side& side) const {
    auto others = x509::living(side.authorities, now_);
    std::erase_if(others, [&](const info& info) { return holds(authorities_, info); });
    return text::some_of(others | std::views::transform([](const info& entry) {
                           return "'" + entry.name + "' (until " + controller::rfc3339_seconds(entry.until) + ")";
                         }));
  }

  // The wait.
  std::int64_t since() const { return std::max(is_.server.since.value_or(now_), is_.client.since.value_or(now_)); }
  bool arrived() const { return now_ - since() >= settings_.arrival.count(); }
  /// A scheduler that becomes known later takes nothing from those that people have set up.
  bool by_hand() const { return is_.client.by_hand || !is_.callers.any; }
  bool callers_ready() const {
    return is_.callers.behind.empty() && (!by_hand() || now_ - since() >= settings_.by_hand.count());
  }
  /// Every running scheduler trusts the newest authority, and so does the server. Once it has signed, that was so.
  bool ready() const { return !changing() || (arrived() && (of_newest(server_) || callers_ready())); }

  /// The authority by which schedulers know us while they do not know the newest.
  const info* older() const {
    const auto match = std::ranges::find_if(authorities_, [&](const info& info) {
      return &info != &newest() && x509::belongs({info.pem, is_.keys.older_key});
    });
    return match == authorities_.end() ? nullptr : &*match;
  }

  std::string_view wanted(const stored_leaf& certificate, std::vector<std::string> names) const {
    if (!certificate.usable()) return "a certificate in place of one that cannot be used";
    if (now_ >= x509::due(*certificate.leaf) || certificate.leaf->not_before > now_)
      return "its certificate is renewed";
    std::ranges::sort(names);
    if (!std::ranges::includes(certificate.leaf->names, names)) return "its certificate gets the names it is called by";
    if (ready() && !of_newest(certificate)) return "its certificate is signed by the new authority";
    return {};
  }
  /// Nothing where the present signer is no better than what there is.
  std::optional<extender_side> with_leaf(const extender_side& side, const stored_leaf& present, const std::string& name,
                                         const std::vector<std::string>& names, x509::usage usage) const {
    const bool by_newest = ready() || (!present.usable() && !older());  // without any leaf no one is cut off
    const auto* issuer = by_newest ? &newest() : older();
    if (!issuer) return std::nullopt;
    const x509::validity validity{now_ - x509::backdated, std::min(now_ + settings_.leaf_life.count(), issuer->until)};
    const bool longer = !present.usable() || validity.until > present.leaf->until || of_other(present, *issuer, names);
    if (!longer) return std::nullopt;
    auto made =
        x509::issue({issuer->pem, by_newest ? is_.keys.signer_key : is_.keys.older_key}, name, names, validity, usage);
    if (!made) return std::nullopt;
    auto out = side;
    out.leaf = std::move(*made);
    return out;
  }
  static bool of_other(const stored_leaf& present, const info& info, std::vector<std::string> names) {
    std::ranges::sort(names);
    return !x509::signed_by(*present.leaf, info) || !std::ranges::includes(present.leaf->names, names);
  }

  /// Both leaves are of the newest, and no one shows or knows only what was before.
  bool forgettable() const {
    if (!of_newest(server_) || !of_newest(client_) || !arrived() || now_ < forget_at()) return false;
    return !is_.callers.any || is_.callers.behind.empty();
  }
  std::int64_t forget_at() const {
    const auto signed_at = std::max(server_.leaf->not_before, client_.leaf->not_before) + x509::backdated;
    return signed_at + (by_hand() ? std::max(settings_.overlap, settings_.by_hand) : settings_.overlap).count();
  }

  extender_keys with(std::string authorities) const {
    auto out = is_.keys;
    out.authorities = std::move(authorities);
    return out;
  }
  extender_keys with_another() const {
    auto known = left_out();
    known.insert(known.end(), authorities_.begin(), authorities_.end());
    extender_keys out;
    // The key by which what is shown now was signed; a newer one may be known to no one yet.
    const stored_leaf present(is_.server, known, now_, x509::usage::server);
    for (const auto& key : {is_.keys.signer_key, is_.keys.older_key})
      if (present.usable() && x509::belongs({present.signer->pem, key})) out.older_key = key;
    const auto made = x509::make_authority("quartermaster extender authority " + controller::rfc3339_seconds(now_),
                                           {now_ - x509::backdated, now_ + settings_.authority_life.count()});
    out.authorities = x509::joined(known) + made.certificate;
    out.signer_key = made.key;
    return out;
  }
  extender_keys with_newest_alone() const { return {newest().pem, is_.keys.signer_key, {}}; }
  extender_side with_authorities(const extender_side& side) const {
    auto out = side;
    out.authorities = list_;
    out.since = now_;
    return out;
  }

  std::string waiting() const {
    if (!changing()) return {};
    const auto read = [](const std::string& until) {
      return "A kube-scheduler that was set up by hand has to be given ca.crt, tls.crt and tls.key of Secret " +
             std::string(api::names::extender_client_secret) + " and restarted before " + until;
    };
    if (!is_.callers.behind.empty()) return is_.callers.behind;
    const bool by_newest = of_newest(server_) && of_newest(client_);
    if (by_hand())
      return read(controller::rfc3339_seconds(by_newest ? forget_at() : since() + settings_.by_hand.count()));
    return by_newest ? "the older authority is trusted until " + controller::rfc3339_seconds(forget_at())
                     : "what was written has to reach every replica";
  }

  static extender_step store(extender_keys keys, std::string_view reason) {
    extender_step out;
    out.action = kind::store_keys;
    out.keys = std::move(keys);
    out.reason = reason;
    return out;
  }
  static extender_step write(kind kind, extender_side side, std::string_view reason) {
    extender_step out;
    out.action = kind;
    out.side = std::move(side);
    out.reason = reason;
    return out;
  }
  extender_step tell(kind kind, extender_side side, const extender_side& before, std::string_view reason) const {
    auto out = write(kind, std::move(side), reason);
    out.taken_out = not_ours(before);
    return out;
  }
  extender_step rest() const {
    extender_step out;
    out.reason = "all is well";
    out.waiting = waiting();
    out.again = while_changing;
    if (changing() || !server_.leaf || !client_.leaf) return out;
    const auto end = std::min({x509::due(*server_.leaf), x509::due(*client_.leaf), x509::due(newest())});
    out.again = seconds(std::max<std::int64_t>(end - now_, while_changing.count()));
    return out;
  }

  const extender_view& is_;
  std::int64_t now_;
  const extender_settings& settings_;
  std::vector<info> authorities_;
  std::string list_;  ///< their text
  stored_leaf server_, client_;
};

}  // namespace

extender_step next_step(const extender_view& is, std::int64_t now, const extender_settings& settings) {
  return look(is, now, settings).next();
}

extender_ends ends_of(const extender_view& is) {
  const auto last = [](const std::string& pem) {
    const auto all = x509::read(pem);
    return all.empty() ? std::int64_t(0) : all.back().until;
  };
  const auto first = [](const std::string& pem) {
    const auto all = x509::read(pem);
    return all.empty() ? std::int64_t(0) : all.front().until;
  };
  return {last(is.keys.authorities), first(is.server.leaf.certificate), first(is.client.leaf.certificate)};
}

extender_callers callers_of(const kube::deployment* deployment, const std::string& content,
                            const std::vector<extender_scheduler>& schedulers, const std::string& certificates) {
  extender_callers out;
  if (deployment) {
    out.any = true;
    const bool follows = deployment->annotations.value_or(api::names::certificates_annotation, "") == content;
    if (!follows || !deployment->rolled_out())
      out.behind = "Deployment " + deployment->key.to_string() + " does not run with the present certificates yet";
  }
  for (const auto& scheduler : schedulers) {
    if (scheduler.state == "Off") continue;
    out.any = true;
    if (out.behind.empty() && (scheduler.state != "Applied" || scheduler.certificates != certificates))
      out.behind = "the kube-scheduler of control-plane node " + scheduler.node +
                   " does not run with the present certificates yet (" +
                   (scheduler.state == "Applied" ? "before" : scheduler.state) + ")";
  }
  return out;
}

}  // namespace reconcilers
