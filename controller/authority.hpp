#pragma once
// The certificates of a server that one kind of caller trusts through a list of authorities that it gets (an API server
// and the caBundle of a webhook configuration). Decisions only: what is stored, what the callers know and the time
// go in, the next step comes out; who stores and tells is elsewhere.
//
// The invariant: a leaf is signed only when the callers have been told of its authority, and an authority is forgotten
// only when no leaf of it has been shown for a day. So every connection, at any moment of a change, finds an authority
// it knows; and when a replica is killed between two steps, the next one goes on from what is stored.
//
//   no authority -> store one -> tell -> sign a leaf -> (60 days) sign another, by the same authority
//   an authority past two thirds of its year -> store a second next to it -> tell both -> sign by the second -> (a day)
//   forget the first -> tell
//
// A year for the authority: it is trusted for one name by one kind of caller and its key lies next to it, so a longer
// life gains nothing, and a change-over that every cluster goes through every eight months is one that is known to
// work.

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
  std::string signer_key;   ///< of the newest of them
  pem_pair leaf;

  friend bool operator==(const authority_keys&, const authority_keys&) = default;
};

struct authority_settings {
  std::string name;                ///< authorities are named "<name> authority <time>", leaves <name>
  std::vector<std::string> names;  ///< DNS names and IP addresses the leaf is for
  std::string earlier;             ///< authorities that were stored when all was well last, no matter who made them
  std::chrono::seconds authority_life = std::chrono::days(365);
  std::chrono::seconds leaf_life = std::chrono::days(90);
  std::chrono::seconds overlap = std::chrono::days(1);  ///< an older authority stays told after the last leaf of it
};

struct authority_step {
  enum class kind : std::uint8_t {
    rest,   ///< all is well until `again`
    store,  ///< `keys`, then ask again
    tell,   ///< `keys.authorities` to all callers, then ask again
  } action = kind::rest;
  authority_keys keys;           ///< what is to be stored, or is
  std::chrono::seconds again{};  ///< rest: until there is something to do
  std::string_view reason;       ///< constant, for the log
};

/// `bundles` has the text each list of callers holds now; without any no one calls, and no leaf is signed. `now` is
/// seconds since 1970.
authority_step next_step(const authority_keys& stored, std::span<const std::string> bundles, std::int64_t now,
                         const authority_settings& settings);

/// When a replica may show a stored leaf: as soon as every caller has been told of its authority, and, where it shows
/// another one already, long enough after that for all API servers to have heard.
class leaf_gate {
 public:
  static constexpr milliseconds spread{10'000};

  struct answer {
    bool show = false;
    milliseconds again{0};    ///< zero: at the next change
    std::string_view reason;  ///< constant; why it is not shown although something is wrong with it
  };
  /// `showing`: another leaf is in use. `now` is on the boot clock, `wall` seconds since 1970.
  answer look(const authority_keys& stored, std::span<const std::string> bundles, bool showing, milliseconds now,
              std::int64_t wall);

 private:
  std::string signer_;  ///< of the leaf looked at last, while all have been told of it
  milliseconds since_{0};
};

}  // namespace controller
