#include "reconcilers/certificates/extender_authority.hpp"

#include <algorithm>
#include <array>
#include <ranges>
#include <span>

#include "api/hash.hpp"
#include "api/names.hpp"
#include "controller/clock.hpp"
#include "controller/x509.hpp"

namespace reconcilers {
namespace {

using std::chrono::seconds;
namespace x509 = controller::x509;
using x509::info;
using kind = extender_step::kind;

constexpr seconds while_changing{15};  // files are looked at, nobody tells of them

std::string date(std::int64_t at) {
  return controller::rfc3339_seconds(
      controller::wall_time(seconds(std::min<std::int64_t>(at, INT64_MAX / 1'000'000'000))));
}

bool holds(std::span<const info> list, const info& one) { return std::ranges::find(list, one) != list.end(); }

/// One of the two leaves, as it is stored.
struct shown {
  std::optional<info> leaf;
  const info* signer = nullptr;

  shown(const extender_side& of, std::span<const info> authorities, std::int64_t now, x509::usage as) {
    leaf = x509::leaf_of(of.leaf);
    const bool taken = leaf && leaf->until > now && (as == x509::usage::server ? leaf->server : leaf->client);
    if (!taken) leaf.reset();
    if (leaf) signer = x509::signer_of(*leaf, authorities);
  }
  bool usable() const { return signer != nullptr; }
};

/// One look at what is stored.
class look {
 public:
  look(const extender_view& is, std::int64_t now, const extender_settings& how)
      : is_(is),
        now_(now),
        how_(how),
        authorities_(x509::living(is.keys.authorities, now)),
        list_(x509::joined(authorities_)),
        server_(is.server, authorities_, now, x509::usage::server),
        client_(is.client, authorities_, now, x509::usage::client) {}

  extender_step next() const {
    if (!can_sign())
      return store(with_another(), authorities_.empty() ? "a new authority, because there was none that can sign"
                                                        : "a new authority beside the old");
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
    if (const auto why = wanted(server_, how_.names); !why.empty()) {
      if (auto made = with_leaf(is_.server, server_, "quartermaster-extender", how_.names, x509::usage::server))
        return write(kind::server, std::move(*made), why);
    }
    if (const auto why = wanted(client_, {}); !why.empty()) {
      if (auto made = with_leaf(is_.client, client_, "kube-scheduler", {}, x509::usage::client))
        return write(kind::client, std::move(*made), why);
    }
    if (changing() && forgettable()) return store(with_newest_alone(), "the older authority is forgotten");
    return rest();
  }

 private:
  const info& newest() const { return authorities_.back(); }
  bool changing() const { return authorities_.size() > 1; }
  /// Several may have one key, so who has signed it first in the list says nothing.
  bool of_newest(const shown& one) const { return one.leaf && x509::signed_by(*one.leaf, newest()); }
  bool can_sign() const {
    return !authorities_.empty() && now_ < x509::due(newest()) && newest().from <= now_ &&
           x509::belongs({newest().pem, is_.keys.signer_key});
  }
  /// Another program may have written the same with other line ends.
  bool has_all(const std::string& list) const { return list == list_ || x509::read(list) == authorities_; }
  bool told(const extender_side& side) const { return has_all(side.authorities) && (!changing() || side.since); }

  /// Authorities that are not stored and yet count: what was stored is lost, or was put back from a copy. A side alone
  /// may have them from anybody; what both have was written by us, or stood there before the authority was stored.
  std::vector<info> left_out() const {
    if (has_all(is_.server.authorities) && has_all(is_.client.authorities)) return {};
    const auto server = x509::living(is_.server.authorities, now_), client = x509::living(is_.client.authorities, now_);
    std::vector<info> out;
    for (const auto* list : {&server, &client}) {
      for (const auto& one : *list) {
        const bool known = holds(authorities_, one) || holds(out, one),
                   lost = authorities_.empty() && holds(server, one) && holds(client, one);
        if (!known && (lost || needed(one))) out.push_back(one);
      }
    }
    return out;
  }
  /// It has signed what is shown, and nobody whom we know has: several may have one key.
  bool needed(const info& one) const {
    return std::ranges::any_of(std::array{&server_, &client_}, [&](const shown* of) {
      return of->leaf && !of->signer && x509::signed_by(*of->leaf, one);
    });
  }
  /// Those whom it knows and who do not count, for people.
  std::string not_ours(const extender_side& side) const {
    constexpr std::size_t named = 3;
    auto others = x509::living(side.authorities, now_);
    std::erase_if(others, [&](const info& one) { return holds(authorities_, one); });
    std::string out;
    for (const auto& one : others | std::views::take(named))
      out += (out.empty() ? "" : ", ") + ("'" + one.name + "' (until " + date(one.until) + ")");
    return others.size() > named ? out + " and " + std::to_string(others.size() - named) + " more" : out;
  }

  // The wait.
  std::int64_t since() const { return std::max(is_.server.since.value_or(now_), is_.client.since.value_or(now_)); }
  bool arrived() const { return now_ - since() >= how_.arrival.count(); }
  /// A scheduler that becomes known later takes nothing from those that people have set up.
  bool by_hand() const { return is_.client.by_hand || !is_.callers.any; }
  bool callers_ready() const {
    return is_.callers.behind.empty() && (!by_hand() || now_ - since() >= how_.by_hand.count());
  }
  /// Every running scheduler trusts the newest authority, and so does the server. Once it has signed, that was so.
  bool ready() const { return !changing() || (arrived() && (of_newest(server_) || callers_ready())); }

  /// The authority by which schedulers know us while they do not know the newest.
  const info* older() const {
    const auto at = std::ranges::find_if(authorities_, [&](const info& one) {
      return &one != &newest() && x509::belongs({one.pem, is_.keys.older_key});
    });
    return at == authorities_.end() ? nullptr : &*at;
  }

  std::string_view wanted(const shown& one, std::vector<std::string> names) const {
    if (!one.usable()) return "a certificate in place of one that cannot be used";
    if (now_ >= x509::due(*one.leaf) || one.leaf->from > now_) return "its certificate is renewed";
    std::ranges::sort(names);
    if (!std::ranges::includes(one.leaf->names, names)) return "its certificate gets the names it is called by";
    if (ready() && !of_newest(one)) return "its certificate is signed by the new authority";
    return {};
  }
  /// Nothing where whoever may sign now is no better than what there is.
  std::optional<extender_side> with_leaf(const extender_side& side, const shown& present, const std::string& name,
                                         const std::vector<std::string>& names, x509::usage as) const {
    const bool by_newest = ready() || (!present.usable() && !older());  // without any leaf nobody is cut off
    const auto* by = by_newest ? &newest() : older();
    if (!by) return std::nullopt;
    const x509::validity when{now_ - x509::backdated, std::min(now_ + how_.leaf_life.count(), by->until)};
    const bool longer = !present.usable() || when.until > present.leaf->until || of_other(present, *by, names);
    if (!longer) return std::nullopt;
    auto made = x509::issue({by->pem, by_newest ? is_.keys.signer_key : is_.keys.older_key}, name, names, when, as);
    if (!made) return std::nullopt;
    auto out = side;
    out.leaf = std::move(*made);
    return out;
  }
  static bool of_other(const shown& present, const info& by, std::vector<std::string> names) {
    std::ranges::sort(names);
    return !x509::signed_by(*present.leaf, by) || !std::ranges::includes(present.leaf->names, names);
  }

  /// Both leaves are of the newest, and nobody shows or knows only what was before.
  bool forgettable() const {
    if (!of_newest(server_) || !of_newest(client_) || !arrived() || now_ < forget_at()) return false;
    return !is_.callers.any || is_.callers.behind.empty();
  }
  std::int64_t forget_at() const {
    const auto signed_at = std::max(server_.leaf->from, client_.leaf->from) + x509::backdated;
    return signed_at + (by_hand() ? std::max(how_.overlap, how_.by_hand) : how_.overlap).count();
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
    // The key by which what is shown now was signed; a newer one may be known to nobody yet.
    const shown present(is_.server, known, now_, x509::usage::server);
    for (const auto& key : {is_.keys.signer_key, is_.keys.older_key})
      if (present.usable() && x509::belongs({present.signer->pem, key})) out.older_key = key;
    const auto made = x509::make_authority("quartermaster extender authority " + date(now_),
                                           {now_ - x509::backdated, now_ + how_.authority_life.count()});
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
             std::string(names::extender_client_secret) + " and started anew before " + until;
    };
    if (!is_.callers.behind.empty()) return is_.callers.behind;
    const bool by_newest = of_newest(server_) && of_newest(client_);
    if (by_hand()) return read(date(by_newest ? forget_at() : since() + how_.by_hand.count()));
    return by_newest ? "the older authority is trusted until " + date(forget_at())
                     : "what was written has to reach every replica";
  }

  static extender_step store(extender_keys keys, std::string_view why) {
    extender_step out;
    out.what = kind::store_keys;
    out.keys = std::move(keys);
    out.why = why;
    return out;
  }
  static extender_step write(kind what, extender_side side, std::string_view why) {
    extender_step out;
    out.what = what;
    out.side = std::move(side);
    out.why = why;
    return out;
  }
  extender_step tell(kind what, extender_side side, const extender_side& before, std::string_view why) const {
    auto out = write(what, std::move(side), why);
    out.taken_out = not_ours(before);
    return out;
  }
  extender_step rest() const {
    extender_step out;
    out.why = "all is well";
    out.waiting = waiting();
    out.again = while_changing;
    if (changing() || !server_.leaf || !client_.leaf) return out;
    const auto end = std::min({x509::due(*server_.leaf), x509::due(*client_.leaf), x509::due(newest())});
    out.again = seconds(std::max<std::int64_t>(end - now_, while_changing.count()));
    return out;
  }

  const extender_view& is_;
  std::int64_t now_;
  const extender_settings& how_;
  std::vector<info> authorities_;
  std::string list_;  ///< their text
  shown server_, client_;
};

}  // namespace

extender_step next_step(const extender_view& is, std::int64_t now, const extender_settings& how) {
  return look(is, now, how).next();
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
                            const std::vector<extender_master>& masters, const std::string& certificates) {
  extender_callers out;
  if (deployment) {
    out.any = true;
    const bool follows = deployment->annotations.value_or(names::certificates_annotation, "") == content;
    if (!follows || !deployment->rolled_out())
      out.behind = "Deployment " + deployment->key.to_string() + " does not run with the present certificates yet";
  }
  for (const auto& one : masters) {
    if (one.state == "Off") continue;
    out.any = true;
    if (out.behind.empty() && (one.state != "Applied" || one.certificates != certificates))
      out.behind = "the kube-scheduler of master " + one.node + " does not run with the present certificates yet (" +
                   (one.state == "Applied" ? "before" : one.state) + ")";
  }
  return out;
}

}  // namespace reconcilers
