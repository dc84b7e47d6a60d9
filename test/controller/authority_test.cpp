// A cluster as the authority sees it: what is stored, what callers know, what a replica shows. Each step is taken
// by hand; after each the same question: does every caller trust what is shown?

#include "controller/authority.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/x509.hpp"

namespace controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using kind = authority_step::kind;

constexpr std::int64_t start = 1'800'000'000, day = 86'400;

struct world {
  authority_settings settings;
  authority_keys stored;
  std::vector<std::string> bundles{"", ""};
  pem_pair served;
  leaf_gate gate;
  std::int64_t now = start;
  std::vector<std::string> log;  ///< what was done, and why
  int untrusted = 0;             ///< looks at which a caller did not trust what is shown

  world() {
    settings.name = "webhook";
    settings.names = {"webhook.ns.svc", "10.0.0.1"};
  }

  bool trusted() const {
    if (served.certificate.empty()) return true;
    const auto leaf = x509::read(served.certificate).at(0);
    return leaf.until > now && std::ranges::all_of(bundles, [&](const auto& list) {
             return std::ranges::any_of(x509::read(list), [&](const auto& authority) {
               return x509::signed_by(leaf, authority) && authority.until > now;
             });
           });
  }
  void replica() {
    // `spread` has passed between any two looks at one time of the test.
    for (int i = 0; i < 2; ++i) {
      const milliseconds boot = std::chrono::seconds(now - start) + (i ? leaf_gate::spread : milliseconds(0));
      if (stored.leaf != served && gate.look(stored, bundles, !served.certificate.empty(), boot, now).show)
        served = stored.leaf;
      if (!trusted()) ++untrusted;
    }
  }
  authority_step step() {
    auto out = next_step(stored, bundles, now, settings);
    if (out.action == kind::store) {
      log.push_back("store: " + std::string(out.reason));
      stored = out.keys;
    } else if (out.action == kind::tell) {
      log.emplace_back("tell");
      // One after the other: a replica may look in between.
      for (auto& entry : bundles) {
        entry = out.keys.authorities;
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
      if (done.action == kind::rest) return done.again.count();
    }
    ADD_FAILURE() << "it never rests: " << testing::PrintToString(log);
    return 0;
  }
  std::vector<std::string> take_log() { return std::exchange(log, {}); }
};

struct authority : testing::Test, world {};

TEST_F(authority, F23_a_leaf_is_signed_only_when_callers_know_its_authority) {
  const auto first = step();
  EXPECT_EQ(first.action, kind::store);
  EXPECT_TRUE(first.keys.leaf.certificate.empty() && first.keys.leaf.key.empty());
  EXPECT_THAT(x509::read(stored.authorities), SizeIs(1));
  bundles[0] = stored.authorities;
  EXPECT_EQ(next_step(stored, bundles, now, settings).action, kind::tell) << "one caller knows, the other does not";
  settle();
  EXPECT_THAT(take_log(), ElementsAre("store: no authority", "tell", "store: no usable leaf"));
  EXPECT_EQ(served, stored.leaf);
  EXPECT_EQ(untrusted, 0);
  const auto leaf = x509::read(stored.leaf.certificate).at(0);
  EXPECT_THAT(leaf.names, ElementsAre("10.0.0.1", "webhook.ns.svc"));
  EXPECT_FALSE(leaf.authority);
  EXPECT_EQ(leaf.until, start + 90 * day);
  EXPECT_LT(leaf.not_before, start) << "clocks differ";
}

TEST_F(authority, without_callers_no_leaf_is_signed) {
  bundles.clear();
  step();
  EXPECT_EQ(step().action, kind::rest);
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
  EXPECT_EQ(served, stored.leaf);
  EXPECT_EQ(untrusted, 0);
}

TEST_F(authority, F22_a_new_authority_stands_beside_the_old_one_until_a_day_after_the_last_leaf_of_it) {
  settle();
  take_log();
  now += 250 * day;  // no one looked for long, and the leaf has ended; that is all that was lost
  served = {};
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
    for (const auto& entry : take_log()) stores += entry.starts_with("store");
    ASSERT_EQ(untrusted, 0) << (now - start) / day;
  }
  EXPECT_GT(stores, 18);
  EXPECT_LT(stores, 40);
}

TEST_F(authority, F23_what_others_do_to_the_callers_is_put_back) {
  settle();
  take_log();
  const auto right = bundles;
  const auto stranger = x509::make_authority("somebody", {now - day, now + day}).certificate;
  for (const auto& list : {std::string(), std::string("garbage"), stranger, right[0] + stranger}) {
    bundles[1] = list;
    settle();
    EXPECT_EQ(bundles, right);
    EXPECT_THAT(take_log(), ElementsAre("tell"));
  }
}

TEST_F(authority, F22_whatever_is_missing_or_broken_in_the_store_is_made_anew_and_nobody_is_cut_off) {
  settle();
  const auto good = stored;
  const auto good_told = bundles;
  const auto good_shown = served;
  authority_keys other;  // of another cluster, say
  std::vector<std::string> nobody;
  other = next_step({}, nobody, now, settings).keys;
  const auto expired =
      x509::issue({good.authorities, good.signer_key}, "x", settings.names, {now - 2 * day, now - day});
  const auto elsewhere = x509::issue({good.authorities, good.signer_key}, "x", {}, {now - day, now + 90 * day});
  const auto half = [](const std::string& text) { return text.substr(0, text.size() / 2); };
  struct broken {
    std::string_view title;
    authority_keys stored;
  };
  const auto alter = [&](auto change) {
    auto out = good;
    change(out);
    return out;
  };
  const broken cases[] = {
      {"everything", {}},
      {"no authority", alter([](auto& keys) { keys.authorities.clear(); })},
      {"half an authority", alter([&](auto& keys) { keys.authorities = half(keys.authorities); })},
      {"garbage for an authority", alter([](auto& keys) { keys.authorities = "garbage\0\xff"; })},
      {"garbage after the authority", alter([](auto& keys) { keys.authorities += "garbage"; })},
      {"no key", alter([](auto& keys) { keys.signer_key.clear(); })},
      {"half a key", alter([&](auto& keys) { keys.signer_key = half(keys.signer_key); })},
      {"key of another", alter([&](auto& keys) { keys.signer_key = other.signer_key; })},
      {"authority of another", alter([&](auto& keys) { keys.authorities = other.authorities; })},
      {"no certificate", alter([](auto& keys) { keys.leaf.certificate.clear(); })},
      {"half a certificate", alter([&](auto& keys) { keys.leaf.certificate = half(keys.leaf.certificate); })},
      {"no leaf key", alter([](auto& keys) { keys.leaf.key.clear(); })},
      {"leaf key of another", alter([&](auto& keys) { keys.leaf.key = keys.signer_key; })},
      {"expired leaf", alter([&](auto& keys) { keys.leaf = *expired; })},
      {"leaf for other names", alter([&](auto& keys) { keys.leaf = *elsewhere; })},
      {"all of another", other},
  };
  for (const auto& entry : cases) {
    stored = entry.stored;
    bundles = good_told;
    served = good_shown;
    untrusted = 0;
    gate = {};
    take_log();
    settle();
    EXPECT_EQ(untrusted, 0) << entry.title << testing::PrintToString(log);
    EXPECT_EQ(served, stored.leaf) << entry.title;
    EXPECT_TRUE(trusted()) << entry.title;
    EXPECT_EQ(bundles[0], stored.authorities) << entry.title;
    EXPECT_LE(log.size(), 5U) << entry.title << testing::PrintToString(log);
  }
}

TEST_F(authority, F23_a_store_that_was_replaced_by_hand_does_not_cut_off_what_is_shown) {
  settle();
  const auto before = bundles[0];
  world other;
  other.settle();
  stored = other.stored;  // leaf before bundle
  EXPECT_FALSE(gate.look(stored, bundles, true, milliseconds(0), now).show);
  settle();
  EXPECT_EQ(untrusted, 0);
  EXPECT_EQ(served, stored.leaf);
  EXPECT_NE(bundles[0].find(x509::read(before)[0].pem), std::string::npos) << "the old one stays for a day";
  // And then all of that is lost, too: its authority was not made by us.
  const auto by_hand = x509::make_authority("by hand", {now - 10, now + 300 * day});
  stored = {by_hand.certificate, by_hand.key, *x509::issue(by_hand, "x", settings.names, {now - 10, now + 80 * day})};
  settle();
  settings.earlier = stored.authorities;
  stored = {};
  settle();
  EXPECT_EQ(untrusted, 0);
  EXPECT_EQ(served, stored.leaf);
}

TEST_F(authority, F23_a_replica_waits_until_every_caller_has_been_told) {
  settle();
  // What a leader would have stored: a new authority, and a leaf of it that callers cannot know yet.
  const auto made = x509::make_authority("webhook authority 2", {now - 10, now + 365 * day});
  stored = {stored.authorities + made.certificate, made.key,
            *x509::issue(made, "x", settings.names, {now - 10, now + day})};
  leaf_gate new_gate;
  const auto look = [&](std::int64_t ms, bool showing = true) {
    return new_gate.look(stored, bundles, showing, milliseconds(ms), now);
  };
  EXPECT_FALSE(look(0).show);
  bundles[0] = stored.authorities;
  EXPECT_FALSE(look(1000, false).show) << "one of two, and nothing is shown yet";
  bundles[1] = stored.authorities;
  EXPECT_TRUE(leaf_gate(new_gate).look(stored, bundles, false, milliseconds(2000), now).show)
      << "no one loses anything";
  EXPECT_EQ(look(2000).again, leaf_gate::spread);
  EXPECT_EQ(look(7000).again, milliseconds(5000));
  bundles[1].clear();
  EXPECT_FALSE(look(8000).show);
  bundles[1] = stored.authorities;
  EXPECT_EQ(look(9000).again, leaf_gate::spread) << "and the time begins again";
  EXPECT_TRUE(look(19'000).show);
}

TEST_F(authority, F22_a_replica_refuses_what_is_no_pair_and_says_why) {
  settle();
  const auto good = stored;
  const auto refuse = [&](auto change) {
    auto keys = good;
    change(keys);
    const auto out = leaf_gate().look(keys, bundles, true, milliseconds(0), now);
    EXPECT_FALSE(out.show);
    return out.reason;
  };
  EXPECT_THAT(refuse([](auto& keys) { keys.leaf.key = keys.signer_key; }), HasSubstr("key does not belong"));
  EXPECT_THAT(refuse([](auto& keys) { keys.leaf.certificate = "garbage"; }), HasSubstr("key does not belong"));
  EXPECT_THAT(refuse([](auto& keys) { keys.leaf.key.clear(); }), HasSubstr("key does not belong"));
  EXPECT_THAT(refuse([](auto& keys) { keys.authorities.clear(); }), HasSubstr("not signed by"));
  EXPECT_EQ(refuse([](auto& keys) { keys.leaf = {}; }), "") << "not made yet";
  now += 91 * day;
  EXPECT_EQ(refuse([](auto&) {}), "the stored certificate has expired");
}

TEST(x509, reads_what_it_makes) {
  const auto authority = x509::make_authority("an authority", {start, start + day});
  const std::vector<std::string> names{"a.example.com", "192.0.2.1", "2001:db8::1"};
  const auto leaf = x509::issue(authority, "a", names, {start, start + 60});
  ASSERT_TRUE(leaf);
  const auto both = x509::read("text before\n" + authority.certificate + "between\n" + leaf->certificate);
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
  EXPECT_FALSE(x509::belongs({leaf->certificate, authority.key}));
  EXPECT_FALSE(x509::issue({authority.certificate, leaf->key}, "a", names, {start, start + 60}));
  for (const auto* text :
       {"", "-----BEGIN CERTIFICATE-----", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"})
    EXPECT_TRUE(x509::read(text).empty());
}

}  // namespace
}  // namespace controller
