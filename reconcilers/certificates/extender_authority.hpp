#pragma once
// The certificates by which the extender and kube-schedulers know each other. Decisions only: what is stored, what
// runs with it and the time go in, the next step comes out.
//
// A kube-scheduler reads its certificates when it starts and keeps them, and both sides ask for one of the other. So
// this is not controller/authority.hpp, whose callers get changes while they run: here the wait is for schedulers to
// start again, and until they have, what ends is signed by the older authority, whose key is kept for that.
//
// The invariant: what the server shows is signed by an authority that every scheduler was started with, and what any
// scheduler shows is signed by one that the server has. When a replica is killed between two steps, the next one goes
// on from what is stored.
//
//   a leaf past two thirds of its year -> another, by the same authority: no side waits for the other
//   an authority past two thirds of its ten years, or without a key -> store a second next to it -> both into ca.crt of
//   the server and of the schedulers -> (every scheduler has started with them, every replica has them) -> sign both
//   leaves by the second -> (every scheduler has started with its own, and a day) forget the first
//
// Whom a side trusts is what is stored, and no one else: an authority that someone put into ca.crt is taken out. It
// stays until the change is over where it signed a leaf that is shown, and, with nothing stored, where both sides have
// it.
//
// Ten years for the authority: each change of it starts every kube-scheduler three times.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/certificate.hpp"
#include "kube/projections/deployment.hpp"

namespace reconcilers {

/// What is in Secret quartermaster-extender-authority, PEM. Anything may be missing or broken.
struct extender_keys {
  std::string authorities;  ///< what both sides are to trust, oldest first
  std::string signer_key;   ///< of the newest of them
  std::string older_key;    ///< of the one whose leaves are shown until schedulers know the newest
  friend bool operator==(const extender_keys&, const extender_keys&) = default;
};

/// What is in the Secret of the server, or of its callers.
struct extender_side {
  std::string authorities;            ///< whom its reader trusts
  controller::pem_pair leaf;          ///< what its reader shows
  std::optional<std::int64_t> since;  ///< `authorities` was written, seconds since 1970
  bool by_hand = false;               ///< no scheduler was known then: people were promised their time
  friend bool operator==(const extender_side&, const extender_side&) = default;
};

/// What is known of the kube-schedulers that ask us.
struct extender_callers {
  bool any = false;    ///< some are known; otherwise they may have been set up by hand
  std::string behind;  ///< one line: who does not run yet with what is in the Secret; empty: all do
};

/// A kube-scheduler in the files of a control-plane node, as its agent reports.
struct extender_scheduler {
  std::string node, state;
  std::string certificates;  ///< api::certificates_of what is in place
};

/// `deployment`: of the scheduler that the operator runs; null: none. `content`: hash of the callers' Secret, as its
/// annotation has it. `certificates`: api::certificates_of that Secret.
extender_callers callers_of(const kube::deployment* deployment, const std::string& content,
                            const std::vector<extender_scheduler>& schedulers, const std::string& certificates);

struct extender_view {
  extender_keys keys;
  extender_side server, client;
  extender_callers callers;
};

struct extender_settings {
  std::vector<std::string> names;  ///< DNS names the server is called by
  std::chrono::seconds authority_life = std::chrono::days(3650);
  std::chrono::seconds leaf_life = std::chrono::days(365);
  std::chrono::seconds arrival = std::chrono::minutes(3);  ///< of a changed Secret in every replica
  std::chrono::seconds by_hand = std::chrono::days(30);    ///< for people, where no scheduler is known
  std::chrono::seconds overlap = std::chrono::days(1);     ///< an older authority stays after the last leaf of it
};

struct extender_step {
  enum class kind : std::uint8_t {
    rest,        ///< until `again`, or a change
    store_keys,  ///< `keys`
    server,      ///< write `side` into the Secret of the server, then ask again
    client,      ///< the same of its callers
  } action = kind::rest;
  extender_keys keys;
  extender_side side;
  std::string_view reason;       ///< constant, for the log
  std::string taken_out;         ///< server, client: authorities that leave ca.crt, for people; empty: none
  std::chrono::seconds again{};  ///< rest: until there is something to do
  std::string waiting;           ///< rest: what a change of authority waits for, for people; empty: there is none
};

/// `now` is seconds since 1970.
extender_step next_step(const extender_view& is, std::int64_t now, const extender_settings& settings);

/// Ends of what is stored, seconds since 1970; zero: there is none.
struct extender_ends {
  std::int64_t authority = 0, server = 0, client = 0;
};
extender_ends ends_of(const extender_view& is);

}  // namespace reconcilers
