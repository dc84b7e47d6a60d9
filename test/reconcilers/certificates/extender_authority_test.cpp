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

namespace reconcilers {
namespace {

namespace x509 = controller::x509;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using kind = extender_step::kind;

constexpr std::int64_t start = 1'800'000'000, minute = 60, day = 86'400, year = 365 * day;
const std::vector<std::string> names{"quartermaster-extender.ns.svc", "localhost"};

/// What one process has read.
struct party {
  std::string authorities;
  controller::pem_pair leaf;
};

/// Until when who has these authorities takes this leaf; what was asked once is kept.
std::int64_t trusted_until(const std::string& authorities, const controller::pem_pair& leaf) {
  static std::map<std::pair<std::string, std::string>, std::int64_t> known;
  const auto [at, asked] = known.try_emplace({authorities, leaf.certificate + leaf.key}, 0);
  if (!asked) return at->second;
  const auto shown = x509::leaf_of(leaf);
  const auto list = x509::read(authorities);
  const auto* by = shown ? x509::signer_of(*shown, list) : nullptr;
  if (by) at->second = std::min(by->until, shown->until);
  return at->second;
}

/// An authority of the same name and the same key, with another serial and other dates.
std::string renewed(const controller::pem_pair& authority, std::int64_t from, std::int64_t until) {
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
  ASN1_TIME_set(X509_getm_notBefore(made.get()), from);
  ASN1_TIME_set(X509_getm_notAfter(made.get()), until);
  X509_sign(made.get(), key.get(), EVP_sha256());
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> to(BIO_new(BIO_s_mem()), &BIO_free_all);
  PEM_write_bio_X509(to.get(), made.get());
  char* data = nullptr;
  const auto size = BIO_get_mem_data(to.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

struct world {
  enum class callers { dedicated, by_hand };

  extender_settings how{.names = names};
  extender_view stored;
  std::int64_t now = start;
  callers who = callers::dedicated;
  party server;                   ///< the replica that hears of changes last
  std::int64_t server_reads = 0;  ///< again at this time, when it is behind
  std::vector<party> schedulers;
  bool rolls = true;  ///< schedulers are started anew when their Secret changes
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
    return std::ranges::any_of(schedulers, [&](const party& one) {
      return one.authorities != stored.client.authorities || one.leaf != stored.client.leaf;
    });
  }
  bool server_behind() const {
    return server.authorities != stored.server.authorities || server.leaf != stored.server.leaf;
  }
  extender_view seen() const {
    auto out = stored;
    out.callers.any = who == callers::dedicated;
    if (out.callers.any && behind()) out.callers.behind = "the scheduler";
    return out;
  }
  void check(std::string_view when) {
    for (const auto& one : schedulers) {
      if (std::min(trusted_until(one.authorities, server.leaf), trusted_until(server.authorities, one.leaf)) > now)
        continue;
      if (strangers++ == 0)
        ADD_FAILURE() << "day " << (now - start) / day << ", " << when << ": " << testing::PrintToString(log);
    }
  }
  /// What happens by itself: Secrets arrive in every replica within two minutes, schedulers are started beside the old
  /// ones.
  void others() {
    check("before others move");
    if (!server_behind()) server_reads = now + 2 * minute;
    if (server_behind() && now >= server_reads) server = {stored.server.authorities, stored.server.leaf};
    check("the server has read");
    const party fresh{stored.client.authorities, stored.client.leaf};
    if (behind() && rolls) {
      schedulers.push_back(fresh);
      check("a new scheduler beside the old");
      schedulers = {fresh};
    }
    check("others moved");
  }
  kind step() {
    last = next_step(seen(), now, how);
    if (last.what == kind::store_keys) stored.keys = last.keys;
    if (last.what == kind::server) stored.server = last.side;
    if (last.what == kind::client) stored.client = last.side;
    if (last.what != kind::rest) log.emplace_back(last.why);
    taken_out += last.taken_out;
    check(last.why);
    return last.what;
  }
  /// Steps without time, until there is nothing to do; then what it says of it.
  extender_step settle() {
    for (int i = 0; i < 20; ++i) {
      if (step() == kind::rest) return last;
    }
    ADD_FAILURE() << "it never rests: " << testing::PrintToString(log);
    return {};
  }
  void pass(std::int64_t time, std::int64_t by = minute) {
    for (const auto end = now + time; now < end; now += by) {
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
  world it;
  const auto rest = it.settle();
  EXPECT_THAT(it.log, IsEmpty());
  EXPECT_EQ(rest.waiting, "");
  EXPECT_NEAR(static_cast<double>(rest.again.count()), 2.0 / 3 * year, day);
  const auto ends = ends_of(it.stored);
  EXPECT_EQ(ends.authority, start + 3650 * day);
  EXPECT_EQ(ends.server, start + year);
  EXPECT_EQ(ends.client, start + year);
}

TEST(extender_authority, a_leaf_is_renewed_by_the_same_authority_when_two_thirds_are_over) {
  world it;
  const auto before = it.stored;
  it.now += it.settle().again.count() + minute;
  it.settle();
  EXPECT_THAT(it.take_log(), ElementsAre("its certificate is renewed", "its certificate is renewed"));
  EXPECT_EQ(it.stored.keys, before.keys);
  EXPECT_EQ(it.stored.server.authorities, before.server.authorities);
  const auto server = *x509::leaf_of(it.stored.server.leaf);
  EXPECT_THAT(server.names, ElementsAre("localhost", "quartermaster-extender.ns.svc"));
  EXPECT_EQ(server.until, it.now + year);
  EXPECT_LT(server.from, it.now) << "clocks differ";
  it.pass(10 * minute);
  EXPECT_THAT(it.take_log(), IsEmpty());
}

TEST(extender_authority, schedulers_start_with_a_new_authority_before_anything_is_signed_by_it) {
  world it;
  const auto first = it.stored.client.leaf;
  it.stored.keys = {};
  it.rolls = false;
  it.pass(30 * day, 2 * day);
  EXPECT_THAT(it.take_log(), ElementsAre("a new authority, because there was none that can sign",
                                         "ca.crt of the server has the authorities that count now",
                                         "ca.crt of kube-schedulers has the authorities that count now"))
      << "a scheduler that is not started anew holds everything up";
  EXPECT_EQ(it.settle().waiting, "the scheduler");
  it.rolls = true;
  it.others();
  it.settle();
  EXPECT_THAT(it.take_log(), ElementsAre("its certificate is signed by the new authority",
                                         "its certificate is signed by the new authority"));
  it.pass(20 * 60 * minute, 4 * 60 * minute);
  EXPECT_THAT(it.take_log(), IsEmpty());
  EXPECT_EQ(it.authorities(), 2U);
  EXPECT_THAT(it.settle().waiting, HasSubstr("is trusted until"));
  // One that still shows the older leaf.
  it.rolls = false;
  it.schedulers = {{it.stored.client.authorities, first}};
  it.pass(3 * day, 12 * 60 * minute);
  EXPECT_EQ(it.settle().waiting, "the scheduler");
  EXPECT_THAT(it.take_log(), IsEmpty());
  it.rolls = true;
  it.pass(3 * minute);
  EXPECT_THAT(it.take_log(),
              ElementsAre("the older authority is forgotten", "ca.crt of the server has the authorities that count now",
                          "ca.crt of kube-schedulers has the authorities that count now"));
  EXPECT_TRUE(it.of_one());
  EXPECT_EQ(it.strangers, 0);
}

TEST(extender_authority, nothing_is_signed_before_written_authorities_have_arrived) {
  world it;
  it.stored.keys = {};
  it.settle();
  it.take_log();
  it.schedulers = {{it.stored.client.authorities, it.stored.client.leaf}};
  it.now += 3 * minute - 1;
  it.server.authorities = it.stored.server.authorities;
  EXPECT_THAT(it.settle().waiting, HasSubstr("every replica"));
  EXPECT_THAT(it.take_log(), IsEmpty());
  it.now += 1;
  it.settle();
  EXPECT_THAT(it.take_log(), SizeIs(2));
  // The time is lost: it begins anew.
  world other;
  other.stored.keys = {};
  other.settle();
  other.stored.client.since.reset();
  other.take_log();
  other.settle();
  EXPECT_THAT(other.take_log(), ElementsAre("ca.crt of kube-schedulers has the authorities that count now"));
}

TEST(extender_authority, schedulers_that_nobody_knows_have_a_month_and_are_told_until_when) {
  world it;
  it.who = world::callers::by_hand;
  it.rolls = false;
  it.stored.keys = {};
  it.pass(5 * minute);
  it.now = start + 30 * day - 5 * minute;
  EXPECT_THAT(it.take_log(), SizeIs(3));
  EXPECT_THAT(it.settle().waiting, HasSubstr("set up by hand has to be given ca.crt, tls.crt and tls.key of Secret "
                                             "quartermaster-extender-client and started anew before 2027-02-14T"));
  it.schedulers = {{it.stored.client.authorities, it.stored.client.leaf}};  // a person did
  it.pass(20 * minute, 5 * minute);
  EXPECT_THAT(it.take_log(), SizeIs(2));
  EXPECT_THAT(it.settle().waiting, HasSubstr("before 2027-03-16T")) << "and once more, for what it shows";
  it.pass(29 * day, 5 * day);
  it.schedulers = {{it.stored.client.authorities, it.stored.client.leaf}};
  it.pass(3 * day, 8 * 60 * minute);
  EXPECT_TRUE(it.of_one());
  EXPECT_EQ(it.strangers, 0);
}

TEST(extender_authority, who_was_promised_a_month_keeps_it_when_a_scheduler_becomes_known) {
  world it;
  it.who = world::callers::by_hand;
  it.rolls = false;
  it.stored.keys = {};
  it.pass(5 * minute);
  it.take_log();
  it.who = world::callers::dedicated;  // beside the one that nobody knows
  it.rolls = true;
  const party unknown{it.schedulers.at(0)};
  it.pass(20 * day, day);
  EXPECT_THAT(it.take_log(), IsEmpty());
  EXPECT_GT(trusted_until(unknown.authorities, it.server.leaf), it.now);
  EXPECT_THAT(it.settle().waiting, HasSubstr("set up by hand"));
  it.pass(11 * day, day);
  EXPECT_THAT(it.take_log(), ElementsAre("its certificate is signed by the new authority",
                                         "its certificate is signed by the new authority"));
  it.pass(31 * day, 8 * 60 * minute);
  EXPECT_TRUE(it.of_one());
  EXPECT_FALSE(it.stored.client.by_hand) << "the next change begins anew";
}

TEST(extender_authority, of_several_authorities_with_one_key_nothing_is_written_again_and_again) {
  {
    world it;
    it.stored.keys.authorities += x509::read(it.stored.keys.authorities).at(0).pem;
    it.pass(day, 10 * minute);
    it.take_log();
    it.pass(2 * day, 60 * minute);
    EXPECT_LE(it.take_log().size(), 3u);
    EXPECT_EQ(it.strangers, 0);
  }
}

TEST(extender_authority, a_certificate_for_the_other_side_is_replaced) {
  world it;
  it.stored.keys.authorities += "";
  it.now += year * 2 / 3 + day;  // those of the operator are for one side only
  it.pass(5 * minute);
  it.take_log();
  it.stored.client.leaf = it.stored.server.leaf;
  it.settle();
  EXPECT_THAT(it.take_log(), ElementsAre("a certificate in place of one that cannot be used"));
  EXPECT_TRUE(x509::leaf_of(it.stored.client.leaf)->client);
  EXPECT_FALSE(x509::leaf_of(it.stored.client.leaf)->server);
}

TEST(extender_authority, what_ends_while_a_change_waits_is_signed_by_the_older_authority) {
  world it;
  it.stored.keys.authorities += "";  // the key is there: an authority past two thirds of its life
  it.now += 3650 * day * 2 / 3 + day;
  const auto leafs = [&] {
    const x509::validity when{it.now - day, it.now - day + year};
    it.stored.server.leaf = *x509::issue({it.stored.keys.authorities, it.stored.keys.signer_key}, "s", names, when);
    it.stored.client.leaf =
        *x509::issue({it.stored.keys.authorities, it.stored.keys.signer_key}, "c", {}, when, x509::usage::client);
  };
  leafs();
  it.server = {it.stored.server.authorities, it.stored.server.leaf};
  it.schedulers = {{it.stored.client.authorities, it.stored.client.leaf}};
  it.settle();
  EXPECT_THAT(it.take_log(),
              ElementsAre("a new authority beside the old", "ca.crt of the server has the authorities that count now",
                          "ca.crt of kube-schedulers has the authorities that count now"));
  it.rolls = false;
  it.now += year * 2 / 3;
  it.settle();
  EXPECT_THAT(it.take_log(), ElementsAre("its certificate is renewed", "its certificate is renewed"));
  const auto all = x509::read(it.stored.keys.authorities);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_TRUE(x509::signed_by(*x509::leaf_of(it.stored.server.leaf), all[0]));
  EXPECT_TRUE(x509::signed_by(*x509::leaf_of(it.stored.client.leaf), all[0]));
  it.rolls = true;
  it.pass(3 * day, 4 * 60 * minute);
  EXPECT_TRUE(it.of_one());
  EXPECT_EQ(it.strangers, 0);
}

TEST(extender_authority, deleted_again_and_again_on_the_way_nobody_is_cut_off) {
  for (const auto when : {0 * minute, 1 * minute, 4 * minute, 10 * minute, day, day + 2 * minute}) {
    for (const bool whole : {true, false}) {
      world it;
      for (int i = 0; i < 3; ++i) {
        if (whole)
          it.stored.keys = {};
        else
          it.stored.keys.signer_key = "garbage";
        it.pass(when + minute, std::max(minute, when / 8));
      }
      it.pass(3 * day, 4 * 60 * minute);
      EXPECT_TRUE(it.of_one()) << when;
      ASSERT_EQ(it.strangers, 0) << when;
    }
  }
}

TEST(extender_authority, a_store_that_was_put_back_from_a_copy_is_taken_in) {
  world it;
  const auto copy = it.stored.keys;
  it.stored.keys = {};
  it.pass(3 * day, 4 * 60 * minute);
  ASSERT_TRUE(it.of_one());
  it.take_log();
  it.stored.keys = copy;  // neither side knows that authority any more
  it.pass(3 * day, 4 * 60 * minute);
  EXPECT_TRUE(it.of_one());
  EXPECT_THAT(it.take_log()[0], "both sides know others");
  EXPECT_EQ(it.stored.keys.authorities, copy.authorities);
  EXPECT_EQ(it.strangers, 0);
}

TEST(extender_authority, a_store_put_back_while_both_sides_still_know_it_costs_nobody_his_leaf) {
  world it;
  const auto copy = it.stored.keys;
  it.stored.keys = {};
  it.pass(10 * minute);
  ASSERT_EQ(it.authorities(), 2U);
  it.take_log();
  it.stored.keys = copy;  // as an upgrade that was rendered before; what is shown is of the other one
  it.pass(3 * day, 4 * 60 * minute);
  EXPECT_TRUE(it.of_one());
  EXPECT_EQ(it.stored.keys.authorities, copy.authorities);
  EXPECT_EQ(it.strangers, 0);
}

const controller::pem_pair& foreign() {
  static const auto made = x509::make_authority("somebody's", {start, start + 30 * year});
  return made;
}

TEST(extender_authority, one_that_somebody_put_into_a_side_is_taken_out_at_the_next_step) {
  const auto& other = foreign().certificate;
  for (const bool server : {true, false}) {
    for (const bool client : {true, false}) {
      for (const std::string how : {"beside", "in front", "in place"}) {
        world it;
        const auto before = it.stored;
        for (auto* side : {&it.stored.server, &it.stored.client}) {
          if (side == &it.stored.server ? !server : !client) continue;
          side->authorities = how == "beside"     ? side->authorities + other
                              : how == "in front" ? other + side->authorities
                                                  : other;
        }
        const auto sides = static_cast<std::size_t>(server) + static_cast<std::size_t>(client);
        it.pass(2 * day, 6 * 60 * minute);
        EXPECT_THAT(it.log, SizeIs(sides)) << how << testing::PrintToString(it.log);
        EXPECT_EQ(it.taken_out.contains("'somebody's' (until 20"), sides > 0) << it.taken_out;
        EXPECT_EQ(it.stored.keys, before.keys) << how;
        EXPECT_EQ(it.stored.server.leaf, before.server.leaf);
        EXPECT_EQ(it.stored.client.leaf, before.client.leaf);
        EXPECT_TRUE(it.of_one()) << how;
        EXPECT_EQ(it.strangers, 0) << how;
      }
    }
  }
}

TEST(extender_authority, many_that_somebody_put_into_a_side_are_not_all_named) {
  world it;
  for (int i = 0; i < 5; ++i)
    it.stored.client.authorities += x509::make_authority(std::to_string(i), {start, start + year}).certificate;
  it.settle();
  EXPECT_THAT(it.taken_out, testing::MatchesRegex("'0' \\(until [^)]*\\), '1' .*, '2' .*\\) and 2 more"));
}

TEST(extender_authority, with_nothing_stored_what_both_sides_have_stays_until_the_change_is_over) {
  for (const bool both : {true, false}) {
    world it(false);  // as before the key was kept: its authority is in ca.crt alone
    it.stored.client.authorities += foreign().certificate;
    if (both) it.stored.server.authorities += foreign().certificate;
    it.server.authorities = it.stored.server.authorities;
    it.settle();
    EXPECT_EQ(it.authorities(), both ? 3U : 2U);
    EXPECT_EQ(it.taken_out.contains("somebody's"), !both) << it.taken_out;
    it.pass(3 * day, 4 * 60 * minute);
    EXPECT_TRUE(it.of_one());
    EXPECT_THAT(it.taken_out, HasSubstr("somebody's"));
    EXPECT_THAT(it.taken_out, HasSubstr("quartermaster extender authority"));
    EXPECT_EQ(it.strangers, 0);
  }
}

TEST(extender_authority, one_that_signed_what_is_shown_stays_until_nothing_of_it_is_shown) {
  world it;
  const auto before = it.stored.keys;
  it.stored.server.authorities += foreign().certificate;
  it.stored.client.leaf = *x509::issue(foreign(), "c", {}, {start, start + year}, x509::usage::client);
  it.server.authorities = it.stored.server.authorities;
  it.schedulers = {{it.stored.client.authorities, it.stored.client.leaf}};
  it.settle();
  EXPECT_EQ(it.authorities(), 2U);
  it.pass(3 * day, 4 * 60 * minute);
  EXPECT_TRUE(it.of_one());
  EXPECT_EQ(it.stored.keys, before);
  EXPECT_EQ(it.strangers, 0);
}

TEST(extender_authority, one_renewed_with_the_same_key_is_taken_as_it_is_and_nobody_is_cut_off) {
  using put = std::function<void(extender_view&, const std::string&)>;
  const std::vector<std::pair<const char*, put>> places{
      {"stored", [](auto& of, auto& again) { of.keys.authorities = again; }},
      {"stored beside", [](auto& of, auto& again) { of.keys.authorities += again; }},
      {"stored in front", [](auto& of, auto& again) { of.keys.authorities = again + of.keys.authorities; }},
      {"server", [](auto& of, auto& again) { of.server.authorities = again; }},
      {"client", [](auto& of, auto& again) { of.client.authorities = again; }},
      {"server, beside", [](auto& of, auto& again) { of.server.authorities += again; }},
      {"client, in front", [](auto& of, auto& again) { of.client.authorities = again + of.client.authorities; }},
      {"both sides", [](auto& of, auto& again) { of.server.authorities = of.client.authorities = again; }},
      {"stored, and the server", [](auto& of, auto& again) { of.keys.authorities = of.server.authorities = again; }},
      {"everywhere",
       [](auto& of, auto& again) { of.keys.authorities = of.server.authorities = of.client.authorities = again; }},
      {"both sides, nothing stored",
       [](auto& of, auto& again) { of.keys = {}, of.server.authorities = of.client.authorities += again; }},
      {"without its key", [](auto& of, auto& again) { of.keys.signer_key.clear(), of.keys.authorities += again; }},
  };
  for (const auto& [where, put_in] : places) {
    world it;
    it.now += 100 * day;
    const auto from = it.now - day;
    put_in(it.stored, renewed({it.stored.keys.authorities, it.stored.keys.signer_key}, from, from + 10 * year));
    it.pass(5 * minute);
    it.pass(3 * day, 8 * 60 * minute);
    EXPECT_TRUE(it.of_one()) << where << testing::PrintToString(it.log);
    EXPECT_LE(it.log.size(), 9U) << where << testing::PrintToString(it.log);
    it.take_log();
    it.pass(day, 8 * 60 * minute);
    EXPECT_THAT(it.take_log(), IsEmpty()) << where;
    it.pass(year, 60 * day);
    EXPECT_THAT(it.take_log(), testing::Each(HasSubstr("its certificate is renewed"))) << where;
    EXPECT_TRUE(it.of_one()) << where;
    EXPECT_EQ(it.strangers, 0) << where;
  }
}

TEST(extender_authority, what_is_broken_is_made_anew) {
  const auto half = [](const std::string& of) { return of.substr(0, of.size() / 2); };
  const auto other = x509::make_authority("another", {start, start + year});
  const std::vector<std::function<void(extender_view&)>> breaks{
      [](auto& of) { of.server.leaf = {}; },
      [](auto& of) { of.client.leaf = {}; },
      [](auto& of) { of.server.leaf.key = of.client.leaf.key; },
      [&](auto& of) { of.server.leaf.certificate = half(of.server.leaf.certificate); },
      [](auto& of) { of.server.leaf = of.client.leaf; },
      [&](auto& of) { of.client.leaf = *x509::issue(other, "c", {}, {start, start + year}, x509::usage::client); },
      [](auto& of) { of.server.authorities.clear(); },
      [](auto& of) { of.client.authorities = "garbage"; },
      [](auto& of) { of.keys.signer_key.clear(); },
      [&](auto& of) { of.keys.signer_key = other.key; },
      [&](auto& of) { of.keys.authorities = half(of.keys.authorities); },
      [&](auto& of) { of.keys = {other.certificate, other.key, {}}; },
      [](auto& of) { of = {}; },
  };
  for (std::size_t i = 0; i < breaks.size(); ++i) {
    world it;
    breaks[i](it.stored);
    for (int looks = 0; looks < 15; ++looks, it.now += 5 * 60 * minute) {
      for (int steps = 0; steps < 10; ++steps) {
        const auto done = next_step(it.seen(), it.now, it.how);
        if (done.what == kind::rest) break;
        if (done.what == kind::store_keys) it.stored.keys = done.keys;
        if (done.what == kind::server) it.stored.server = done.side;
        if (done.what == kind::client) it.stored.client = done.side;
        it.log.emplace_back(done.why);
      }
      it.server = {it.stored.server.authorities, it.stored.server.leaf};
      it.schedulers = {{it.stored.client.authorities, it.stored.client.leaf}};
    }
    EXPECT_TRUE(it.of_one()) << i << testing::PrintToString(it.log);
    EXPECT_LT(it.log.size(), 10U) << i << testing::PrintToString(it.log);
    it.check("in the end");
    EXPECT_EQ(it.strangers, 0) << i;
  }
}

/// Fifteen years: leaves, two changes of authority by age and others by force, at every length of sleep, the leader
/// killed between any two writes: it then stays away for a while, and the world moves.
TEST(extender_authority, fifteen_years_with_kills_between_any_two_writes) {
  std::mt19937 dice(7);
  const auto roll = [&](int sides) { return static_cast<int>(dice() % static_cast<unsigned>(sides)); };
  int changes = 0, kills = 0, leaves = 0;
  for (const auto who : {world::callers::dedicated, world::callers::by_hand}) {
    world it(who == world::callers::dedicated);
    it.who = who;
    it.rolls = who == world::callers::dedicated;
    while (it.now < start + 15 * year) {
      const bool dies = roll(3) == 0;
      const int writes = dies ? roll(4) : 20;
      kind did = kind::store_keys;
      for (int i = 0; i < writes && did != kind::rest; ++i) did = it.step();
      kills += dies && did != kind::rest && writes > 0;
      if (it.authorities() == 1 && roll(60) == 0) it.stored.keys = {};
      // People put in what is not ours, and what is: ours, with other dates.
      if (roll(80) == 0) (roll(2) ? it.stored.server : it.stored.client).authorities += foreign().certificate;
      if (it.authorities() == 1 && it.stored.keys.older_key.empty() && roll(80) == 0) {
        const auto again =
            renewed({it.stored.keys.authorities, it.stored.keys.signer_key}, it.now - minute, it.now + 10 * year);
        const int where = roll(3);
        if (where == 0) it.stored.keys.authorities += again;
        if (where == 1) it.stored.keys.authorities = again;
        if (where == 2) it.stored.client.authorities += again;
      }
      // A person who was told brings the Secret to the scheduler in time; where it is ours, nobody has to.
      const bool late = x509::leaf_of(it.schedulers.at(0).leaf)->until < it.now + 45 * day ||
                        it.now > it.stored.client.since.value_or(it.now) + 20 * day;
      if (who == world::callers::by_hand && (late || roll(4) == 0) && it.behind())
        it.schedulers = {{it.stored.client.authorities, it.stored.client.leaf}};
      it.others();
      const std::int64_t waits[] = {10, minute, 5 * minute, day, 5 * day, 40 * day};
      it.now += it.server_behind() ? minute : waits[roll(it.authorities() > 1 ? 5 : 6)];
      ASSERT_EQ(it.strangers, 0);
    }
    EXPECT_THAT(it.taken_out, HasSubstr("somebody's"));
    const auto done = it.take_log();
    changes += static_cast<int>(std::ranges::count(done, "the older authority is forgotten"));
    leaves += static_cast<int>(std::ranges::count(done, "its certificate is renewed"));
  }
  EXPECT_GT(changes, 4);
  EXPECT_GT(kills, 20);
  EXPECT_GT(leaves, 30);
}

TEST(extender_authority, who_runs_with_what_is_seen_by_the_deployment_and_by_rows) {
  kube::deployment set;
  set.key = {"ns", "quartermaster-scheduler"};
  set.generation = set.observed_generation = 3;
  set.desired = set.replicas = set.updated = set.available = 2;
  const std::vector<kube::packed_map::entry> entries{{"quartermaster.io/certificates", "present"}};
  auto held = entries;
  set.annotations = kube::packed_map::of(held);
  const auto of = [&](const std::vector<extender_master>& masters, const kube::deployment* one) {
    return callers_of(one, "present", masters, "c");
  };
  EXPECT_FALSE(of({}, nullptr).any);
  EXPECT_TRUE(of({}, &set).any);
  EXPECT_EQ(of({}, &set).behind, "");
  auto rolling = set;
  rolling.updated = 1;
  EXPECT_THAT(of({}, &rolling).behind, HasSubstr("ns/quartermaster-scheduler"));
  EXPECT_THAT(callers_of(&set, "other", {}, "c").behind, HasSubstr("does not run with")) << "the Secret is newer";
  EXPECT_FALSE(of({{"m1", "Off", ""}}, nullptr).any);
  EXPECT_EQ(of({{"m1", "Applied", "c"}, {"m2", "Off", ""}}, nullptr).behind, "");
  EXPECT_THAT(of({{"m1", "Applied", "c"}, {"m2", "Applied", "b"}}, &set).behind, HasSubstr("master m2"));
  EXPECT_THAT(of({{"m1", "RolledBack", "c"}}, nullptr).behind, HasSubstr("RolledBack"));
  EXPECT_EQ(certificates_of("a", "b"), certificates_of("a", "b"));
  EXPECT_NE(certificates_of("a", "b"), certificates_of("b", "a"));
}

}  // namespace
}  // namespace reconcilers
