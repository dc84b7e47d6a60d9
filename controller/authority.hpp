#pragma once
// Decides when a server's certificates are issued and replaced. The server's callers are of one kind and trust a given
// list of authorities (API servers and the caBundle of a webhook configuration). No I/O: stored state, the callers'
// lists and the time go in, the next step comes out. The caller of `next_step` carries it out.
//
// The invariant: a leaf is signed only after all callers trust its authority. An authority is removed only a day after
// a leaf of the next authority is signed. So every connection finds an authority it knows, at any moment of a change.
// When a replica is killed between two steps, the next replica goes on from the stored state.
//
//   no authority -> store one -> tell -> sign a leaf -> (60 days) sign a new leaf with the same authority
//   two thirds of the authority's year over -> store a second authority next to the first -> tell both
//     -> sign a leaf with the second -> (a day) forget the first -> tell
//
// An authority lives one year. It is trusted for one name by one kind of caller, and its key is stored next to it, so a
// longer life gains nothing. Every cluster replaces its authority every eight months, so replacement is known to work.

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "controller/certificate.hpp"
#include "controller/clock.hpp"

namespace controller {

/// What is stored, all of it PEM. Anything may be missing or broken.
struct authority_keys {
  std::string authorities;  ///< what callers are to trust, oldest first
  std::string signer_key;   ///< of the newest authority
  pem_pair leaf;

  friend bool operator==(const authority_keys&, const authority_keys&) = default;
};

struct authority_settings {
  std::string name;                ///< authorities are named "<name> authority <time>", leaves <name>
  std::vector<std::string> names;  ///< DNS names and IP addresses the leaf is for
  std::string earlier;             ///< authorities stored at the last `rest`; count as our own, no matter who made them
  std::chrono::seconds authority_life = std::chrono::days(365);
  std::chrono::seconds leaf_life = std::chrono::days(90);
  std::chrono::seconds overlap = std::chrono::days(1);  ///< how long older authorities stay after a newer one signs
};

struct authority_step {
  enum class kind : std::uint8_t {
    rest,   ///< do nothing for `again`
    store,  ///< store `keys`, then call next_step again
    tell,   ///< tell all callers `keys.authorities`, then call next_step again
  } action = kind::rest;
  authority_keys keys;           ///< store: what to store; otherwise: what is stored
  std::chrono::seconds again{};  ///< rest: how long, unless something changes
  std::string_view reason;       ///< constant, for the log
};

/// `bundles` is the current text of every caller's list. Without a list there is no caller, and no leaf is signed.
/// `now` is in seconds since 1970.
authority_step next_step(const authority_keys& stored, std::span<const std::string> bundles, std::int64_t now,
                         const authority_settings& settings);

/// When a replica may serve a stored leaf: once every caller's list holds the leaf's authority. A replica that already
/// serves another leaf then waits for `spread`, so that all API servers have read the list.
class leaf_gate {
 public:
  static constexpr milliseconds spread{10'000};

  struct answer {
    bool show = false;
    milliseconds again{0};    ///< ask again after this; zero: at the next change
    std::string_view reason;  ///< constant; what is wrong with the stored leaf; empty: nothing is
  };
  /// `showing`: the replica serves another leaf. `now` is on the boot clock, `wall` seconds since 1970.
  answer look(const authority_keys& stored, std::span<const std::string> bundles, bool showing, milliseconds now,
              std::int64_t wall);

 private:
  std::string signer_;     ///< PEM of the last leaf's authority; empty: not in every caller's list
  milliseconds since_{0};  ///< when `signer_` was first in every list
};

}  // namespace controller
