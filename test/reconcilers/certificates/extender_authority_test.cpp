// A cluster as the two sides see it: what is stored, what the server reads, and kube-schedulers that were started with
// what was stored then and keep it. After every write the same question: do the server and every scheduler that may
// still run trust each other?

#include "reconcilers/certificates/extender_authority.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <functional>
#include <map>
#include <memory>
#include <random>

#include "api/hash.hpp"
#include "controller/x509.hpp"
#include "test/facts_in.hpp"
#include "test/reconcilers/certificates/times.hpp"
#include "test/rounds.hpp"

namespace reconcilers {
namespace {

namespace x509 = controller::x509;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using kind = extender_step::kind;

const std::vector<std::string> names{"quartermaster-extender.ns.svc", "localhost"};

/// What one process has read.
struct party {
  std::string authorities;
  controller::pem_pair leaf;
};

/// Until when who has these authorities takes this leaf; what was asked once is kept.
std::int64_t trusted_until(const std::string& authorities, const controller::pem_pair& leaf) {
  static std::map<std::pair<std::string, std::string>, std::int64_t> known;
  const auto [entry, inserted] = known.try_emplace({authorities, leaf.certificate + leaf.key}, 0);
  if (!inserted) return entry->second;
  const auto certificate = x509::leaf_of(leaf);
  const auto list = x509::read(authorities);
  const auto* signer = certificate ? x509::signer_of(*certificate, list) : nullptr;
  if (signer) entry->second = std::min(signer->until, certificate->until);
  return entry->second;
}

/// An authority of the same name and the same key, with another serial and other dates.
std::string renewed(const controller::pem_pair& authority, std::int64_t not_before, std::int64_t until) {
  const auto reading = [](const std::string& text) {
    return std::unique_ptr<BIO, decltype(&BIO_free_all)>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())),
                                                         &BIO_free_all);
  };
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(reading(authority.key).get(), nullptr, nullptr, nullptr), &EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> made(
      PEM_read_bio_X509(reading(authority.certificate).get(), nullptr, nullptr, nullptr), &X509_free);
  static long serial = 1;
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), ++serial);
  ASN1_TIME_set(X509_getm_notBefore(made.get()), not_before);
  ASN1_TIME_set(X509_getm_notAfter(made.get()), until);
  X509_sign(made.get(), key.get(), EVP_sha256());
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> bio(BIO_new(BIO_s_mem()), &BIO_free_all);
  PEM_write_bio_X509(bio.get(), made.get());
  char* data = nullptr;
  const auto size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

struct world {
  enum class callers { dedicated, by_hand };

  extender_settings settings{.names = names};
  extender_view stored;
  std::int64_t now = start;
  callers caller = callers::dedicated;
  party server;                   ///< the replica that hears of changes last
  std::int64_t server_reads = 0;  ///< again at this time, when it is behind
  std::vector<party> schedulers;
  bool rolls = true;  ///< schedulers are restarted when their Secret changes
  std::int64_t rolled_at = 0;
  extender_step last;
  std::vector<std::string> log;
  std::string taken_out;  ///< in all steps
  int strangers = 0;

  /// As `helm install` makes them; before the key was kept: without.
  explicit world(bool with_key = true) {
    const auto ca = x509::make_authority("quartermaster extender authority", {now, now + 3650 * day});
    if (with_key) stored.keys = {ca.certificate, ca.key, {}};
    stored.server = {ca.certificate, *x509::issue(ca, "quartermaster-extender", names, {now, now + year}), {}};
    stored.client = {
        ca.certificate, *x509::issue(ca, "kube-scheduler", {}, {now, now + year}, x509::usage::client), {}};
    server = {stored.server.authorities, stored.server.leaf};
    schedulers = {{stored.client.authorities, stored.client.leaf}};
  }

  bool behind() const {
    return std::ranges::any_of(schedulers, [&](const party& party) {
      return party.authorities != stored.client.authorities || party.leaf != stored.client.leaf;
    });
  }
  bool server_behind() const {
    return server.authorities != stored.server.authorities || server.leaf != stored.server.leaf;
  }
  extender_view seen() const {
    auto out = stored;
    out.callers.any = caller == callers::dedicated;
    if (out.callers.any && behind()) out.callers.behind = "the scheduler";
    return out;
  }
  void check(std::string_view stage) {
    for (const auto& scheduler : schedulers) {
      if (std::min(trusted_until(scheduler.authorities, server.leaf),
                   trusted_until(server.authorities, scheduler.leaf)) > now)
        continue;
      if (strangers++ == 0)
        ADD_FAILURE() << "day " << (now - start) / day << ", " << stage << ": " << testing::PrintToString(log);
    }
  }
  /// What happens by itself: Secrets arrive in every replica within two minutes, schedulers are started next to the old
  /// ones.
  void others() {
    check("before others move");
    if (!server_behind()) server_reads = now + 2 * minute;
    if (server_behind() && now >= server_reads) server = {stored.server.authorities, stored.server.leaf};
    check("the server has read");
    const party fresh{stored.client.authorities, stored.client.leaf};
    if (behind() && rolls) {
      schedulers.push_back(fresh);
      check("a new scheduler next to the old");
      schedulers = {fresh};
    }
    check("others moved");
  }
  kind step() {
    last = next_step(seen(), now, settings);
    if (last.action == kind::store_keys) stored.keys = last.keys;
    if (last.action == kind::server) stored.server = last.side;
    if (last.action == kind::client) stored.client = last.side;
    if (last.action != kind::rest) log.emplace_back(last.reason);
    taken_out += last.taken_out;
    check(last.reason);
    return last.action;
  }
  /// Steps without time, until there is nothing to do; then what it says of it.
  extender_step settle() {
    for (int i = 0; i < 20; ++i) {
      if (step() == kind::rest) return last;
    }
    ADD_FAILURE() << "it never rests: " << testing::PrintToString(log);
    return {};
  }
  void pass(std::int64_t time, std::int64_t interval = minute) {
    for (const auto end = now + time; now < end; now += interval) {
      settle();
      others();
    }
  }
  std::vector<std::string> take_log() { return std::exchange(log, {}); }
  std::size_t authorities() const { return x509::read(stored.keys.authorities).size(); }
  bool of_one() const {
    const auto all = x509::read(stored.keys.authorities);
    return all.size() == 1 && x509::signed_by(*x509::leaf_of(stored.server.leaf), all[0]) &&
           x509::signed_by(*x509::leaf_of(stored.client.leaf), all[0]) &&
           stored.server.authorities == stored.keys.authorities &&
           stored.client.authorities == stored.keys.authorities && stored.keys.older_key.empty();
  }
};

TEST(extender_authority, what_helm_made_is_left_alone) {
  world world;
  const auto rest = world.settle();
  EXPECT_THAT(world.log, IsEmpty());
  EXPECT_EQ(rest.waiting, "");
  EXPECT_NEAR(static_cast<double>(rest.again.count()), 2.0 / 3 * year, day);
  const auto ends = ends_of(world.stored);
  EXPECT_EQ(ends.authority, start + 3650 * day);
  EXPECT_EQ(ends.server, start + year);
  EXPECT_EQ(ends.client, start + year);
}

TEST(extender_authority, a_leaf_is_renewed_by_the_same_authority_when_two_thirds_are_over) {
  world world;
  const auto before = world.stored;
  world.now += world.settle().again.count() + minute;
  world.settle();
  EXPECT_THAT(world.take_log(), ElementsAre("its certificate is renewed", "its certificate is renewed"));
  EXPECT_EQ(world.stored.keys, before.keys);
  EXPECT_EQ(world.stored.server.authorities, before.server.authorities);
  const auto server = *x509::leaf_of(world.stored.server.leaf);
  EXPECT_THAT(server.names, ElementsAre("localhost", "quartermaster-extender.ns.svc"));
  EXPECT_EQ(server.until, world.now + year);
  EXPECT_LT(server.not_before, world.now) << "clocks differ";
  world.pass(10 * minute);
  EXPECT_THAT(world.take_log(), IsEmpty());
}

TEST(extender_authority, schedulers_start_with_a_new_authority_before_anything_is_signed_by_it) {
  world world;
  const auto first = world.stored.client.leaf;
  world.stored.keys = {};
  world.rolls = false;
  world.pass(30 * day, 2 * day);
  EXPECT_THAT(world.take_log(), ElementsAre(HasSubstr("a new authority, because"), HasSubstr("ca.crt of the server"),
                                            HasSubstr("ca.crt of kube-schedulers")))
      << "a scheduler that is not restarted holds everything up";
  EXPECT_EQ(world.settle().waiting, "the scheduler");
  world.rolls = true;
  world.others();
  world.settle();
  EXPECT_THAT(world.take_log(),
              ElementsAre(HasSubstr("signed by the new authority"), HasSubstr("signed by the new authority")));
  world.pass(20 * 60 * minute, 4 * 60 * minute);
  EXPECT_THAT(world.take_log(), IsEmpty());
  EXPECT_EQ(world.authorities(), 2U);
  EXPECT_THAT(world.settle().waiting, HasSubstr("is trusted until"));
  // One that still shows the older leaf.
  world.rolls = false;
  world.schedulers = {{world.stored.client.authorities, first}};
  world.pass(3 * day, 12 * 60 * minute);
  EXPECT_EQ(world.settle().waiting, "the scheduler");
  EXPECT_THAT(world.take_log(), IsEmpty());
  world.rolls = true;
  world.pass(3 * minute);
  EXPECT_THAT(world.take_log(), ElementsAre("the older authority is forgotten", HasSubstr("ca.crt of the server"),
                                            HasSubstr("ca.crt of kube-schedulers")));
  EXPECT_TRUE(world.of_one());
  EXPECT_EQ(world.strangers, 0);
}

TEST(extender_authority, nothing_is_signed_before_written_authorities_have_arrived) {
  world cluster;
  cluster.stored.keys = {};
  cluster.settle();
  cluster.take_log();
  cluster.schedulers = {{cluster.stored.client.authorities, cluster.stored.client.leaf}};
  cluster.now += 3 * minute - 1;
  cluster.server.authorities = cluster.stored.server.authorities;
  EXPECT_THAT(cluster.settle().waiting, HasSubstr("every replica"));
  EXPECT_THAT(cluster.take_log(), IsEmpty());
  cluster.now += 1;
  cluster.settle();
  EXPECT_THAT(cluster.take_log(), SizeIs(2));
  // The time is lost: it begins again.
  world other;
  other.stored.keys = {};
  other.settle();
  other.stored.client.since.reset();
  other.take_log();
  other.settle();
  EXPECT_THAT(other.take_log(), ElementsAre(HasSubstr("ca.crt of kube-schedulers")));
}

TEST(extender_authority, schedulers_that_nobody_knows_have_a_month_and_are_told_until_when) {
  world cluster;
  cluster.caller = world::callers::by_hand;
  cluster.rolls = false;
  cluster.stored.keys = {};
  cluster.pass(5 * minute);
  cluster.now = start + 30 * day - 5 * minute;
  EXPECT_THAT(cluster.take_log(), SizeIs(3));
  EXPECT_THAT(cluster.settle().waiting,
              words::has_in_order({"by hand", "ca.crt, tls.crt and tls.key of Secret quartermaster-extender-client",
                                   "restarted before 2027-02-14T"}));
  cluster.schedulers = {{cluster.stored.client.authorities, cluster.stored.client.leaf}};  // a person did
  cluster.pass(20 * minute, 5 * minute);
  EXPECT_THAT(cluster.take_log(), SizeIs(2));
  EXPECT_THAT(cluster.settle().waiting, HasSubstr("before 2027-03-16T")) << "and once more, for what it shows";
  cluster.pass(29 * day, 5 * day);
  cluster.schedulers = {{cluster.stored.client.authorities, cluster.stored.client.leaf}};
  cluster.pass(3 * day, 8 * 60 * minute);
  EXPECT_TRUE(cluster.of_one());
  EXPECT_EQ(cluster.strangers, 0);
}

TEST(extender_authority, who_was_promised_a_month_keeps_it_when_a_scheduler_becomes_known) {
  world cluster;
  cluster.caller = world::callers::by_hand;
  cluster.rolls = false;
  cluster.stored.keys = {};
  cluster.pass(5 * minute);
  cluster.take_log();
  cluster.caller = world::callers::dedicated;  // next to the one that no one knows
  cluster.rolls = true;
  const party unknown{cluster.schedulers.at(0)};
  cluster.pass(20 * day, day);
  EXPECT_THAT(cluster.take_log(), IsEmpty());
  EXPECT_GT(trusted_until(unknown.authorities, cluster.server.leaf), cluster.now);
  EXPECT_THAT(cluster.settle().waiting, HasSubstr("set up by hand"));
  cluster.pass(11 * day, day);
  EXPECT_THAT(cluster.take_log(),
              ElementsAre(HasSubstr("signed by the new authority"), HasSubstr("signed by the new authority")));
  cluster.pass(31 * day, 8 * 60 * minute);
  EXPECT_TRUE(cluster.of_one());
  EXPECT_FALSE(cluster.stored.client.by_hand) << "the next change begins again";
}

TEST(extender_authority, of_several_authorities_with_one_key_nothing_is_written_again_and_again) {
  {
    world world;
    world.stored.keys.authorities += x509::read(world.stored.keys.authorities).at(0).pem;
    world.pass(day, 10 * minute);
    world.take_log();
    world.pass(2 * day, 60 * minute);
    EXPECT_LE(world.take_log().size(), 3u);
    EXPECT_EQ(world.strangers, 0);
  }
}

TEST(extender_authority, a_certificate_for_the_other_side_is_replaced) {
  world world;
  world.stored.keys.authorities += "";
  world.now += year * 2 / 3 + day;  // those of the operator are for one side only
  world.pass(5 * minute);
  world.take_log();
  world.stored.client.leaf = world.stored.server.leaf;
  world.settle();
  EXPECT_THAT(world.take_log(), ElementsAre(HasSubstr("a certificate in place")));
  EXPECT_TRUE(x509::leaf_of(world.stored.client.leaf)->client);
  EXPECT_FALSE(x509::leaf_of(world.stored.client.leaf)->server);
}

TEST(extender_authority, what_ends_while_a_change_waits_is_signed_by_the_older_authority) {
  world world;
  world.stored.keys.authorities += "";  // the key is there: an authority past two thirds of its life
  world.now += 3650 * day * 2 / 3 + day;
  const auto leafs = [&] {
    const x509::validity validity{world.now - day, world.now - day + year};
    world.stored.server.leaf =
        *x509::issue({world.stored.keys.authorities, world.stored.keys.signer_key}, "s", names, validity);
    world.stored.client.leaf = *x509::issue({world.stored.keys.authorities, world.stored.keys.signer_key}, "c", {},
                                            validity, x509::usage::client);
  };
  leafs();
  world.server = {world.stored.server.authorities, world.stored.server.leaf};
  world.schedulers = {{world.stored.client.authorities, world.stored.client.leaf}};
  world.settle();
  EXPECT_THAT(world.take_log(), ElementsAre(HasSubstr("a new authority next"), HasSubstr("ca.crt of the server"),
                                            HasSubstr("ca.crt of kube-schedulers")));
  world.rolls = false;
  world.now += year * 2 / 3;
  world.settle();
  EXPECT_THAT(world.take_log(), ElementsAre("its certificate is renewed", "its certificate is renewed"));
  const auto all = x509::read(world.stored.keys.authorities);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_TRUE(x509::signed_by(*x509::leaf_of(world.stored.server.leaf), all[0]));
  EXPECT_TRUE(x509::signed_by(*x509::leaf_of(world.stored.client.leaf), all[0]));
  world.rolls = true;
  world.pass(3 * day, 4 * 60 * minute);
  EXPECT_TRUE(world.of_one());
  EXPECT_EQ(world.strangers, 0);
}

TEST(extender_authority, deleted_again_and_again_on_the_way_nobody_is_cut_off) {
  const std::vector<std::int64_t> brief{4 * minute, day + 2 * minute},
      full{0 * minute, 1 * minute, 4 * minute, 10 * minute, day, day + 2 * minute};
  for (const auto entry : test::rounds(brief, full)) {
    for (const bool whole : {true, false}) {
      world world;
      for (int i = 0; i < 3; ++i) {
        if (whole)
          world.stored.keys = {};
        else
          world.stored.keys.signer_key = "garbage";
        world.pass(entry + minute, std::max(minute, entry / 8));
      }
      world.pass(3 * day, 4 * 60 * minute);
      EXPECT_TRUE(world.of_one()) << entry;
      ASSERT_EQ(world.strangers, 0) << entry;
    }
  }
}

TEST(extender_authority, a_store_that_was_put_back_from_a_copy_is_taken_in) {
  world world;
  const auto copy = world.stored.keys;
  world.stored.keys = {};
  world.pass(3 * day, 4 * 60 * minute);
  ASSERT_TRUE(world.of_one());
  world.take_log();
  world.stored.keys = copy;  // neither side knows that authority any more
  world.pass(3 * day, 4 * 60 * minute);
  EXPECT_TRUE(world.of_one());
  EXPECT_THAT(world.take_log()[0], "both sides know others");
  EXPECT_EQ(world.stored.keys.authorities, copy.authorities);
  EXPECT_EQ(world.strangers, 0);
}

TEST(extender_authority, a_store_put_back_while_both_sides_still_know_it_costs_nobody_his_leaf) {
  world world;
  const auto copy = world.stored.keys;
  world.stored.keys = {};
  world.pass(10 * minute);
  ASSERT_EQ(world.authorities(), 2U);
  world.take_log();
  world.stored.keys = copy;  // as an upgrade that was rendered before; what is shown is of the other one
  world.pass(3 * day, 4 * 60 * minute);
  EXPECT_TRUE(world.of_one());
  EXPECT_EQ(world.stored.keys.authorities, copy.authorities);
  EXPECT_EQ(world.strangers, 0);
}

const controller::pem_pair& foreign() {
  static const auto made = x509::make_authority("someone's", {start, start + 30 * year});
  return made;
}

TEST(extender_authority, one_that_somebody_put_into_a_side_is_taken_out_at_the_next_step) {
  const auto& other = foreign().certificate;
  for (const bool server : {true, false}) {
    for (const bool client : {true, false}) {
      for (const std::string string : {"beside", "in front", "in place"}) {
        world world;
        const auto before = world.stored;
        for (auto* side : {&world.stored.server, &world.stored.client}) {
          if (side == &world.stored.server ? !server : !client) continue;
          side->authorities = string == "beside"     ? side->authorities + other
                              : string == "in front" ? other + side->authorities
                                                     : other;
        }
        const auto sides = static_cast<std::size_t>(server) + static_cast<std::size_t>(client);
        world.pass(2 * day, 6 * 60 * minute);
        EXPECT_THAT(world.log, SizeIs(sides)) << string << testing::PrintToString(world.log);
        EXPECT_EQ(world.taken_out.contains("'someone's' (until 20"), sides > 0) << world.taken_out;
        EXPECT_EQ(world.stored.keys, before.keys) << string;
        EXPECT_EQ(world.stored.server.leaf, before.server.leaf);
        EXPECT_EQ(world.stored.client.leaf, before.client.leaf);
        EXPECT_TRUE(world.of_one()) << string;
        EXPECT_EQ(world.strangers, 0) << string;
      }
    }
  }
}

TEST(extender_authority, many_that_somebody_put_into_a_side_are_not_all_named) {
  world world;
  for (int i = 0; i < 5; ++i)
    world.stored.client.authorities += x509::make_authority(std::to_string(i), {start, start + year}).certificate;
  world.settle();
  EXPECT_THAT(world.taken_out, testing::MatchesRegex("'0' \\(until [^)]*\\), '1' .*, '2' .*\\) and 2 more"));
}

TEST(extender_authority, with_nothing_stored_what_both_sides_have_stays_until_the_change_is_over) {
  for (const bool both : {true, false}) {
    world world(false);  // as before the key was kept: its authority is in ca.crt alone
    world.stored.client.authorities += foreign().certificate;
    if (both) world.stored.server.authorities += foreign().certificate;
    world.server.authorities = world.stored.server.authorities;
    world.settle();
    EXPECT_EQ(world.authorities(), both ? 3U : 2U);
    EXPECT_EQ(world.taken_out.contains("someone's"), !both) << world.taken_out;
    world.pass(3 * day, 4 * 60 * minute);
    EXPECT_TRUE(world.of_one());
    EXPECT_THAT(world.taken_out, HasSubstr("someone's"));
    EXPECT_THAT(world.taken_out, HasSubstr("quartermaster extender authority"));
    EXPECT_EQ(world.strangers, 0);
  }
}

TEST(extender_authority, one_that_signed_what_is_shown_stays_until_nothing_of_it_is_shown) {
  world world;
  const auto before = world.stored.keys;
  world.stored.server.authorities += foreign().certificate;
  world.stored.client.leaf = *x509::issue(foreign(), "c", {}, {start, start + year}, x509::usage::client);
  world.server.authorities = world.stored.server.authorities;
  world.schedulers = {{world.stored.client.authorities, world.stored.client.leaf}};
  world.settle();
  EXPECT_EQ(world.authorities(), 2U);
  world.pass(3 * day, 4 * 60 * minute);
  EXPECT_TRUE(world.of_one());
  EXPECT_EQ(world.stored.keys, before);
  EXPECT_EQ(world.strangers, 0);
}

TEST(extender_authority, one_renewed_with_the_same_key_is_taken_as_it_is_and_nobody_is_cut_off) {
  using put = std::function<void(extender_view&, const std::string&)>;
  const std::vector<std::pair<const char*, put>> places{
      {"stored", [](auto& view, auto& again) { view.keys.authorities = again; }},
      {"stored next to", [](auto& view, auto& again) { view.keys.authorities += again; }},
      {"stored in front", [](auto& view, auto& again) { view.keys.authorities = again + view.keys.authorities; }},
      {"server", [](auto& view, auto& again) { view.server.authorities = again; }},
      {"client", [](auto& view, auto& again) { view.client.authorities = again; }},
      {"server, next to", [](auto& view, auto& again) { view.server.authorities += again; }},
      {"client, in front", [](auto& view, auto& again) { view.client.authorities = again + view.client.authorities; }},
      {"both sides", [](auto& view, auto& again) { view.server.authorities = view.client.authorities = again; }},
      {"stored, and the server",
       [](auto& view, auto& again) { view.keys.authorities = view.server.authorities = again; }},
      {"everywhere",
       [](auto& view, auto& again) {
         view.keys.authorities = view.server.authorities = view.client.authorities = again;
       }},
      {"both sides, nothing stored",
       [](auto& view, auto& again) { view.keys = {}, view.server.authorities = view.client.authorities += again; }},
      {"without its key",
       [](auto& view, auto& again) { view.keys.signer_key.clear(), view.keys.authorities += again; }},
  };
  for (const auto& [place, put_in] : places) {
    world world;
    world.now += 100 * day;
    const auto not_before = world.now - day;
    put_in(world.stored,
           renewed({world.stored.keys.authorities, world.stored.keys.signer_key}, not_before, not_before + 10 * year));
    world.pass(5 * minute);
    world.pass(3 * day, 8 * 60 * minute);
    EXPECT_TRUE(world.of_one()) << place << testing::PrintToString(world.log);
    EXPECT_LE(world.log.size(), 9U) << place << testing::PrintToString(world.log);
    world.take_log();
    world.pass(day, 8 * 60 * minute);
    EXPECT_THAT(world.take_log(), IsEmpty()) << place;
    world.pass(year, 60 * day);
    EXPECT_THAT(world.take_log(), testing::Each(HasSubstr("its certificate is renewed"))) << place;
    EXPECT_TRUE(world.of_one()) << place;
    EXPECT_EQ(world.strangers, 0) << place;
  }
}

TEST(extender_authority, what_is_broken_is_made_anew) {
  const auto half = [](const std::string& text) { return text.substr(0, text.size() / 2); };
  const auto other = x509::make_authority("another", {start, start + year});
  const std::vector<std::function<void(extender_view&)>> breaks{
      [](auto& view) { view.server.leaf = {}; },
      [](auto& view) { view.client.leaf = {}; },
      [](auto& view) { view.server.leaf.key = view.client.leaf.key; },
      [&](auto& view) { view.server.leaf.certificate = half(view.server.leaf.certificate); },
      [](auto& view) { view.server.leaf = view.client.leaf; },
      [&](auto& view) { view.client.leaf = *x509::issue(other, "c", {}, {start, start + year}, x509::usage::client); },
      [](auto& view) { view.server.authorities.clear(); },
      [](auto& view) { view.client.authorities = "garbage"; },
      [](auto& view) { view.keys.signer_key.clear(); },
      [&](auto& view) { view.keys.signer_key = other.key; },
      [&](auto& view) { view.keys.authorities = half(view.keys.authorities); },
      [&](auto& view) { view.keys = {other.certificate, other.key, {}}; },
      [](auto& view) { view = {}; },
  };
  for (std::size_t i = 0; i < breaks.size(); ++i) {
    world world;
    breaks[i](world.stored);
    for (int looks = 0; looks < 15; ++looks, world.now += 5 * 60 * minute) {
      for (int steps = 0; steps < 10; ++steps) {
        const auto done = next_step(world.seen(), world.now, world.settings);
        if (done.action == kind::rest) break;
        if (done.action == kind::store_keys) world.stored.keys = done.keys;
        if (done.action == kind::server) world.stored.server = done.side;
        if (done.action == kind::client) world.stored.client = done.side;
        world.log.emplace_back(done.reason);
      }
      world.server = {world.stored.server.authorities, world.stored.server.leaf};
      world.schedulers = {{world.stored.client.authorities, world.stored.client.leaf}};
    }
    EXPECT_TRUE(world.of_one()) << i << testing::PrintToString(world.log);
    EXPECT_LT(world.log.size(), 10U) << i << testing::PrintToString(world.log);
    world.check("in the end");
    EXPECT_EQ(world.strangers, 0) << i;
  }
}

/// Years: leaves, changes of authority by age (in fifteen years two) and others by force, at every length of sleep, the
/// leader killed between any two writes: it then stays away for a while, and the world moves.
TEST(extender_authority, years_with_kills_between_any_two_writes) {
  const int years = test::rounds(2, 15);
  std::mt19937 dice(7);
  const auto roll = [&](int sides) { return static_cast<int>(dice() % static_cast<unsigned>(sides)); };
  int changes = 0, kills = 0, leaves = 0;
  for (const auto entry : {world::callers::dedicated, world::callers::by_hand}) {
    world cluster(entry == world::callers::dedicated);
    cluster.caller = entry;
    cluster.rolls = entry == world::callers::dedicated;
    while (cluster.now < start + years * year) {
      const bool dies = roll(3) == 0;
      const int writes = dies ? roll(4) : 20;
      kind did = kind::store_keys;
      for (int i = 0; i < writes && did != kind::rest; ++i) did = cluster.step();
      kills += dies && did != kind::rest && writes > 0;
      if (cluster.authorities() == 1 && roll(60) == 0) cluster.stored.keys = {};
      // People put in what is not ours, and what is: ours, with other dates.
      if (roll(80) == 0) (roll(2) ? cluster.stored.server : cluster.stored.client).authorities += foreign().certificate;
      if (cluster.authorities() == 1 && cluster.stored.keys.older_key.empty() && roll(80) == 0) {
        const auto again = renewed({cluster.stored.keys.authorities, cluster.stored.keys.signer_key},
                                   cluster.now - minute, cluster.now + 10 * year);
        const int place = roll(3);
        if (place == 0) cluster.stored.keys.authorities += again;
        if (place == 1) cluster.stored.keys.authorities = again;
        if (place == 2) cluster.stored.client.authorities += again;
      }
      // A person who got the event brings the Secret to the scheduler in time; where it is ours, no one has to.
      const bool late = x509::leaf_of(cluster.schedulers.at(0).leaf)->until < cluster.now + 45 * day ||
                        cluster.now > cluster.stored.client.since.value_or(cluster.now) + 20 * day;
      if (entry == world::callers::by_hand && (late || roll(4) == 0) && cluster.behind())
        cluster.schedulers = {{cluster.stored.client.authorities, cluster.stored.client.leaf}};
      cluster.others();
      const std::int64_t waits[] = {10, minute, 5 * minute, day, 5 * day, 40 * day};
      cluster.now += cluster.server_behind() ? minute : waits[roll(cluster.authorities() > 1 ? 5 : 6)];
      ASSERT_EQ(cluster.strangers, 0);
    }
    EXPECT_THAT(cluster.taken_out, HasSubstr("someone's"));
    const auto done = cluster.take_log();
    changes += static_cast<int>(std::ranges::count(done, "the older authority is forgotten"));
    leaves += static_cast<int>(std::ranges::count(done, "its certificate is renewed"));
  }
  EXPECT_GT(changes, years / 3);
  EXPECT_GT(kills, years);
  EXPECT_GT(leaves, 2 * years);
}

TEST(extender_authority, who_runs_with_what_is_seen_by_the_deployment_and_by_rows) {
  kube::deployment set;
  set.key = {"ns", "quartermaster-scheduler"};
  set.generation = set.observed_generation = 3;
  set.desired = set.replicas = set.updated = set.available = 2;
  const std::vector<kube::packed_map::entry> entries{{"quartermaster.io/certificates", "present"}};
  auto held = entries;
  set.annotations = kube::packed_map::of(held);
  const auto find_callers = [&](const std::vector<extender_scheduler>& schedulers, const kube::deployment* deployment) {
    return callers_of(deployment, "present", schedulers, "c");
  };
  EXPECT_FALSE(find_callers({}, nullptr).any);
  EXPECT_TRUE(find_callers({}, &set).any);
  EXPECT_EQ(find_callers({}, &set).behind, "");
  auto rolling = set;
  rolling.updated = 1;
  EXPECT_THAT(find_callers({}, &rolling).behind, HasSubstr("ns/quartermaster-scheduler"));
  EXPECT_THAT(callers_of(&set, "other", {}, "c").behind, HasSubstr("does not run with")) << "the Secret is newer";
  EXPECT_FALSE(find_callers({{"m1", "Off", ""}}, nullptr).any);
  EXPECT_EQ(find_callers({{"m1", "Applied", "c"}, {"m2", "Off", ""}}, nullptr).behind, "");
  EXPECT_THAT(find_callers({{"m1", "Applied", "c"}, {"m2", "Applied", "b"}}, &set).behind,
              HasSubstr("control-plane node m2"));
  EXPECT_THAT(find_callers({{"m1", "RolledBack", "c"}}, nullptr).behind, HasSubstr("RolledBack"));
  EXPECT_EQ(api::certificates_of("a", "b"), api::certificates_of("a", "b"));
  EXPECT_NE(api::certificates_of("a", "b"), api::certificates_of("b", "a"));
}

}  // namespace
}  // namespace reconcilers
