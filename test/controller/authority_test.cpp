// A cluster as the authority sees it: what is stored, what callers were told, what a replica shows. Each step is taken
// by hand; after each the same question: does every caller trust what is shown?

#include "controller/authority.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/x509.hpp"

namespace controller {
namespace {

using testing::ElementsAre;
using testing::SizeIs;
using kind = authority_step::kind;

constexpr std::int64_t start = 1'800'000'000, day = 86'400;

struct world {
  authority_settings how;
  authority_keys stored;
  std::vector<std::string> told{"", ""};
  pem_pair shown;
  leaf_gate gate;
  std::int64_t now = start;
  std::vector<std::string> log;  ///< what was done, and why
  int untrusted = 0;             ///< looks at which a caller did not trust what is shown

  world() {
    how.name = "webhook";
    how.names = {"webhook.ns.svc", "10.0.0.1"};
  }

  bool trusted() const {
    if (shown.certificate.empty()) return true;
    const auto leaf = x509::read(shown.certificate).at(0);
    return leaf.until > now && std::ranges::all_of(told, [&](const auto& list) {
             return std::ranges::any_of(x509::read(list),
                                        [&](const auto& one) { return x509::signed_by(leaf, one) && one.until > now; });
           });
  }
  void replica() {
    // `spread` has passed between any two looks at one time of the test.
    for (int i = 0; i < 2; ++i) {
      const milliseconds boot = std::chrono::seconds(now - start) + (i ? leaf_gate::spread : milliseconds(0));
      if (stored.leaf != shown && gate.look(stored, told, !shown.certificate.empty(), boot, now).show)
        shown = stored.leaf;
      if (!trusted()) ++untrusted;
    }
  }
  authority_step step() {
    auto out = next_step(stored, told, now, how);
    if (out.what == kind::store) {
      log.push_back("store: " + std::string(out.why));
      stored = out.keys;
    } else if (out.what == kind::tell) {
      log.emplace_back("tell");
      // One after the other: a replica may look in between.
      for (auto& one : told) {
        one = out.keys.authorities;
        replica();
      }
    }
    replica();
    return out;
  }
  /// Until there is nothing more to do; the seconds it may wait then.
  std::int64_t settle() {
    for (int i = 0; i < 10; ++i) {
      const auto done = step();
      if (done.what == kind::rest) return done.again.count();
    }
    ADD_FAILURE() << "it never rests: " << testing::PrintToString(log);
    return 0;
  }
  std::vector<std::string> take_log() { return std::exchange(log, {}); }
};

struct authority : testing::Test, world {};

TEST_F(authority, F23_a_leaf_is_signed_only_when_callers_know_its_authority) {
  const auto first = step();
  EXPECT_EQ(first.what, kind::store);
  EXPECT_TRUE(first.keys.leaf.certificate.empty() && first.keys.leaf.key.empty());
  EXPECT_THAT(x509::read(stored.authorities), SizeIs(1));
  told[0] = stored.authorities;
  EXPECT_EQ(next_step(stored, told, now, how).what, kind::tell) << "one caller knows, the other does not";
  settle();
  EXPECT_THAT(take_log(), ElementsAre("store: no authority", "tell", "store: no usable leaf"));
  EXPECT_EQ(shown, stored.leaf);
  EXPECT_EQ(untrusted, 0);
  const auto leaf = x509::read(stored.leaf.certificate).at(0);
  EXPECT_THAT(leaf.names, ElementsAre("10.0.0.1", "webhook.ns.svc"));
  EXPECT_FALSE(leaf.authority);
  EXPECT_EQ(leaf.until, start + 90 * day);
  EXPECT_LT(leaf.from, start) << "clocks differ";
}

TEST_F(authority, without_callers_no_leaf_is_signed) {
  told.clear();
  step();
  EXPECT_EQ(step().what, kind::rest);
  EXPECT_TRUE(stored.leaf.certificate.empty());
}

TEST_F(authority, F22_a_leaf_is_renewed_by_the_same_authority_when_two_thirds_are_over) {
  const auto wait = settle();
  EXPECT_NEAR(static_cast<double>(wait), 60 * day, day);
  take_log();
  const auto before = stored;
  now += wait - 10;
  settle();
  EXPECT_THAT(take_log(), SizeIs(0));
  now += 20;
  settle();
  EXPECT_THAT(take_log(), ElementsAre("store: the leaf ends"));
  EXPECT_EQ(stored.authorities, before.authorities);
  EXPECT_NE(stored.leaf, before.leaf);
  EXPECT_EQ(shown, stored.leaf);
  EXPECT_EQ(untrusted, 0);
}

TEST_F(authority, F22_a_new_authority_stands_beside_the_old_one_until_a_day_after_the_last_leaf_of_it) {
  settle();
  take_log();
  now += 250 * day;  // nobody looked for long, and the leaf has ended; that is all that was lost
  shown = {};
  settle();
  EXPECT_THAT(take_log(), ElementsAre("store: a new authority", "tell", "store: the leaf ends"));
  EXPECT_THAT(x509::read(stored.authorities), SizeIs(2));
  now += day - 60;
  settle();
  EXPECT_THAT(take_log(), SizeIs(0));
  now += 120;
  settle();
  EXPECT_THAT(take_log(), ElementsAre("store: overlap is over", "tell"));
  EXPECT_THAT(x509::read(stored.authorities), SizeIs(1));
  EXPECT_EQ(untrusted, 0);
}

TEST_F(authority, F22_F23_three_years_without_a_moment_in_which_a_caller_is_refused) {
  settle();
  const auto end = start + 3 * 365 * day;
  int stores = 0;
  while (now < end) {
    now += std::min<std::int64_t>(settle(), 40 * day);
    for (const auto& one : take_log()) stores += one.starts_with("store");
    ASSERT_EQ(untrusted, 0) << (now - start) / day;
  }
  EXPECT_GT(stores, 18);
  EXPECT_LT(stores, 40);
}

TEST_F(authority, F23_what_others_do_to_the_callers_is_put_back) {
  settle();
  take_log();
  const auto right = told;
  const auto stranger = x509::make_authority("somebody", {now - day, now + day}).certificate;
  for (const auto& list : {std::string(), std::string("garbage"), stranger, right[0] + stranger}) {
    told[1] = list;
    settle();
    EXPECT_EQ(told, right);
    EXPECT_THAT(take_log(), ElementsAre("tell"));
  }
}

TEST_F(authority, F22_whatever_is_missing_or_broken_in_the_store_is_made_anew_and_nobody_is_cut_off) {
  settle();
  const auto good = stored;
  const auto good_told = told;
  const auto good_shown = shown;
  authority_keys other;  // of another cluster, say
  std::vector<std::string> nobody;
  other = next_step({}, nobody, now, how).keys;
  const auto expired = x509::issue({good.authorities, good.signer_key}, "x", how.names, {now - 2 * day, now - day});
  const auto elsewhere = x509::issue({good.authorities, good.signer_key}, "x", {}, {now - day, now + 90 * day});
  const auto half = [](const std::string& of) { return of.substr(0, of.size() / 2); };
  struct broken {
    std::string_view what;
    authority_keys stored;
  };
  const auto with = [&](auto change) {
    auto out = good;
    change(out);
    return out;
  };
  const broken cases[] = {
      {"everything", {}},
      {"no authority", with([](auto& of) { of.authorities.clear(); })},
      {"half an authority", with([&](auto& of) { of.authorities = half(of.authorities); })},
      {"garbage for an authority", with([](auto& of) { of.authorities = "garbage\0\xff"; })},
      {"garbage after the authority", with([](auto& of) { of.authorities += "garbage"; })},
      {"no key", with([](auto& of) { of.signer_key.clear(); })},
      {"half a key", with([&](auto& of) { of.signer_key = half(of.signer_key); })},
      {"key of another", with([&](auto& of) { of.signer_key = other.signer_key; })},
      {"authority of another", with([&](auto& of) { of.authorities = other.authorities; })},
      {"no certificate", with([](auto& of) { of.leaf.certificate.clear(); })},
      {"half a certificate", with([&](auto& of) { of.leaf.certificate = half(of.leaf.certificate); })},
      {"no leaf key", with([](auto& of) { of.leaf.key.clear(); })},
      {"leaf key of another", with([&](auto& of) { of.leaf.key = of.signer_key; })},
      {"expired leaf", with([&](auto& of) { of.leaf = *expired; })},
      {"leaf for other names", with([&](auto& of) { of.leaf = *elsewhere; })},
      {"all of another", other},
  };
  for (const auto& one : cases) {
    stored = one.stored;
    told = good_told;
    shown = good_shown;
    untrusted = 0;
    gate = {};
    take_log();
    settle();
    EXPECT_EQ(untrusted, 0) << one.what << testing::PrintToString(log);
    EXPECT_EQ(shown, stored.leaf) << one.what;
    EXPECT_TRUE(trusted()) << one.what;
    EXPECT_EQ(told[0], stored.authorities) << one.what;
    EXPECT_LE(log.size(), 5U) << one.what << testing::PrintToString(log);
  }
}

TEST_F(authority, F23_a_store_that_was_replaced_by_hand_does_not_cut_off_what_is_shown) {
  settle();
  const auto before = told[0];
  world other;
  other.settle();
  stored = other.stored;  // leaf before bundle
  EXPECT_FALSE(gate.look(stored, told, true, milliseconds(0), now).show);
  settle();
  EXPECT_EQ(untrusted, 0);
  EXPECT_EQ(shown, stored.leaf);
  EXPECT_NE(told[0].find(x509::read(before)[0].pem), std::string::npos) << "the old one stays for a day";
  // And then all of that is lost, too: its authority was not made by us.
  const auto by_hand = x509::make_authority("by hand", {now - 10, now + 300 * day});
  stored = {by_hand.certificate, by_hand.key, *x509::issue(by_hand, "x", how.names, {now - 10, now + 80 * day})};
  settle();
  how.earlier = stored.authorities;
  stored = {};
  settle();
  EXPECT_EQ(untrusted, 0);
  EXPECT_EQ(shown, stored.leaf);
}

TEST_F(authority, F23_a_replica_waits_until_every_caller_has_been_told) {
  settle();
  // What a leader would have stored: a new authority, and a leaf of it that callers cannot know yet.
  const auto made = x509::make_authority("webhook authority 2", {now - 10, now + 365 * day});
  stored = {stored.authorities + made.certificate, made.key, *x509::issue(made, "x", how.names, {now - 10, now + day})};
  leaf_gate one;
  const auto look = [&](std::int64_t ms, bool showing = true) {
    return one.look(stored, told, showing, milliseconds(ms), now);
  };
  EXPECT_FALSE(look(0).show);
  told[0] = stored.authorities;
  EXPECT_FALSE(look(1000, false).show) << "one of two, and nothing is shown yet";
  told[1] = stored.authorities;
  EXPECT_TRUE(leaf_gate(one).look(stored, told, false, milliseconds(2000), now).show) << "nobody loses anything";
  EXPECT_EQ(look(2000).again, leaf_gate::spread);
  EXPECT_EQ(look(7000).again, milliseconds(5000));
  told[1].clear();
  EXPECT_FALSE(look(8000).show);
  told[1] = stored.authorities;
  EXPECT_EQ(look(9000).again, leaf_gate::spread) << "and the time begins again";
  EXPECT_TRUE(look(19'000).show);
}

TEST_F(authority, F22_a_replica_refuses_what_is_no_pair_and_says_why) {
  settle();
  const auto good = stored;
  const auto said = [&](auto change) {
    auto keys = good;
    change(keys);
    const auto out = leaf_gate().look(keys, told, true, milliseconds(0), now);
    EXPECT_FALSE(out.show);
    return out.reason;
  };
  EXPECT_EQ(said([](auto& of) { of.leaf.key = of.signer_key; }), "the stored key does not belong to the certificate");
  EXPECT_EQ(said([](auto& of) { of.leaf.certificate = "garbage"; }),
            "the stored key does not belong to the certificate");
  EXPECT_EQ(said([](auto& of) { of.leaf.key.clear(); }), "the stored key does not belong to the certificate");
  EXPECT_EQ(said([](auto& of) { of.authorities.clear(); }),
            "the stored certificate is not signed by a stored authority");
  EXPECT_EQ(said([](auto& of) { of.leaf = {}; }), "") << "not made yet";
  now += 91 * day;
  EXPECT_EQ(said([](auto&) {}), "the stored certificate has expired");
}

TEST(x509, reads_what_it_makes) {
  const auto by = x509::make_authority("an authority", {start, start + day});
  const std::vector<std::string> names{"a.example.com", "192.0.2.1", "2001:db8::1"};
  const auto leaf = x509::issue(by, "a", names, {start, start + 60});
  ASSERT_TRUE(leaf);
  const auto both = x509::read("text before\n" + by.certificate + "between\n" + leaf->certificate);
  ASSERT_EQ(both.size(), 2U);
  EXPECT_TRUE(both[0].authority);
  EXPECT_EQ(both[0].name, "an authority");
  EXPECT_EQ(both[1].until, start + 60);
  EXPECT_THAT(both[1].names, ElementsAre("192.0.2.1", "2001:db8::1", "a.example.com"));
  EXPECT_TRUE(x509::signed_by(both[1], both[0]));
  EXPECT_FALSE(
      x509::signed_by(both[1], x509::read(x509::make_authority("an authority", {start, start + day}).certificate)[0]))
      << "the same name, another key";
  EXPECT_TRUE(x509::belongs(*leaf));
  EXPECT_FALSE(x509::belongs({leaf->certificate, by.key}));
  EXPECT_FALSE(x509::issue({by.certificate, leaf->key}, "a", names, {start, start + 60}));
  for (const auto* text :
       {"", "-----BEGIN CERTIFICATE-----", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"})
    EXPECT_TRUE(x509::read(text).empty());
}

}  // namespace
}  // namespace controller
