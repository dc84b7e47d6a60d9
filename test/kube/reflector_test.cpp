// The tests of client-go's reflector (tools/cache/reflector_test.go), one by one, against our machine. Each names its
// model. Where we differ on purpose the test says how.

#include <gtest/gtest.h>

#include "test/kube/watch_rig.hpp"

namespace {

using namespace rig;
using kube::errc;

// TestReflectorListAndWatch
TEST(watch_machine, reflector_lists_and_then_watches_from_the_version_of_the_list) {
  machine m(machine::with_watch_list(false));
  EXPECT_FALSE(m->synced());
  EXPECT_EQ(m.asks(), "list");
  m.page("3", {{"foo", "2"}});
  EXPECT_EQ(m.took(), "begin put(foo) commit");
  EXPECT_TRUE(m->synced());
  EXPECT_EQ(m.asks(), "watch 3");
  m.added({"bar", "4"});
  m.modified({"foo", "5", "y"});
  m.deleted({"bar", "6"});
  EXPECT_EQ(m.took(), "put(bar) put(foo) erase(bar)");
  EXPECT_EQ(m.content(), "foo@5");
  EXPECT_EQ(m->resource_version(), "6");
  m.closes();
  EXPECT_EQ(m.asks(), "watch 6");
}

// TestReflectorListAndWatchWithErrors. Differs: an error of a watch that says nothing of its version resumes, it does
// not list.
TEST(watch_machine, reflector_keeps_what_it_has_through_errors_of_list_and_watch) {
  machine m(machine::with_watch_list(false));
  m.asks();
  m.fails(errc::server);
  EXPECT_EQ(m.content(), "");
  EXPECT_EQ(m.asks(), "list");
  m.page("3", {{"foo", "2"}, {"bar", "3"}});
  EXPECT_EQ(m.asks(), "watch 3");
  m.deleted({"foo", "4"});
  m.added({"qux", "5"});
  m.fails(errc::connect);
  EXPECT_EQ(m.content(), "bar@3 qux@5");
  EXPECT_EQ(m.asks(), "watch 5");
  m.fails(errc::server);
  EXPECT_EQ(m.asks(), "watch 5");
  m.added({"baz", "6"});
  EXPECT_EQ(m.content(), "bar@3 baz@6 qux@5");
  EXPECT_EQ(m->count().lists, 2u) << "the one that failed, and the one that did not";
}

// TestReflectorListAndWatchInitConnBackoff
TEST(watch_machine, reflector_backs_off_up_to_30_seconds_from_a_server_that_refuses_connections) {
  machine m;
  const ms expected[] = {800ms, 1600ms, 3200ms, 6400ms, 12800ms, 25600ms, 30s, 30s};
  m.asks();
  for (const auto wait : expected) {
    m.fails(errc::connect);
    m.asks();
    EXPECT_EQ(m.waited, wait);
  }
  m.jitter = 0.999;  // up to twice as long
  m.fails(errc::connect);
  m.asks();
  EXPECT_GT(m.waited, 59s);
  EXPECT_LT(m.waited, 60s);
}

// TestReflectorListAndWatchInitConnBackoff, TestNewReflectorWithCustomBackoff (reset)
TEST(watch_machine, reflector_forgets_its_backoff_after_two_quiet_minutes) {
  machine m;
  m.syncs("1");
  for (int i = 0; i < 4; ++i) {
    m.fails(errc::connect);
    m.asks();
  }
  EXPECT_EQ(m.waited, 6400ms);
  m.now += 119s;
  m.fails(errc::connect);
  m.asks();
  EXPECT_EQ(m.waited, 800ms) << "the wait itself counts: 6.4 s + 119 s";
  m.now += 60s;
  m.fails(errc::connect);
  m.asks();
  EXPECT_EQ(m.waited, 1600ms);
}

// TestCloseWatchChannelOnError
TEST(watch_machine, reflector_closes_the_watch_on_an_error_event) {
  machine m;
  m.syncs("1");
  m.stream_error(500, "Whatever");
  EXPECT_EQ(m.took(), "restart");
  m.added({"late", "9"});
  EXPECT_EQ(m.took(), "restart") << "frames behind it are not believed";
  EXPECT_EQ(m.content(), "");
}

// TestReflectorWatchStoppedBefore, TestReflectorWatchStoppedAfter
TEST(watch_machine, reflector_that_was_stopped_asks_for_the_same_again) {
  machine m;
  m.asks();
  m.fails(errc::cancelled);
  EXPECT_EQ(m.asks(), "watch-list");
  EXPECT_EQ(m.waited, 0ms);
  m.bookmark("7", true);
  m.fails(errc::cancelled);
  EXPECT_EQ(m.asks(), "watch 7");
  EXPECT_EQ(m.waited, 0ms);
  EXPECT_EQ(m->count().errors, 0u);
}

// TestReflectorHandleWatchResultChanClosedBefore
TEST(watch_machine, reflector_takes_a_watch_closed_at_once_without_events_for_an_error) {
  machine m;
  m.syncs("1");
  m.closes();
  m.asks();
  m.closes(999ms);
  EXPECT_EQ(m.asks(), "watch 1");
  EXPECT_EQ(m.waited, 800ms);
  m.closes(1s);
  EXPECT_EQ(m.asks(), "watch 1");
  EXPECT_EQ(m.waited, 0ms);
}

// TestReflectorHandleWatchResultChanClosedAfter
TEST(watch_machine, reflector_resumes_at_once_when_a_watch_is_closed_after_an_event) {
  machine m;
  m.syncs("1");
  m.closes();
  m.asks();
  m.bookmark("2");
  m.closes(1ms);
  EXPECT_EQ(m.asks(), "watch 2");
  EXPECT_EQ(m.waited, 0ms);
  EXPECT_EQ(m->count().errors, 0u);
}

// TestReflectorExpiredExactResourceVersion, TestReflectorFullListIfExpired. Differs: a list carries no version, so only
// a continue token can be expired; the list then starts over.
TEST(watch_machine, reflector_starts_a_list_over_when_its_continue_token_has_expired) {
  machine m(machine::with_watch_list(false));
  EXPECT_EQ(m.asks(), "list");
  m.page("10", {{"a", "1"}}, "token");
  EXPECT_EQ(m.asks(), "list token");
  m.fails(errc::gone);
  EXPECT_EQ(m.asks(), "list");
  EXPECT_EQ(m.waited, 0ms);
  m.page("20", {{"b", "2"}}, "token2");
  m.asks();
  m.fails(errc::gone);
  EXPECT_EQ(m.asks(), "list");
  EXPECT_EQ(m.waited, 800ms) << "twice in one list is trouble";
  m.page("30", {{"c", "3"}});
  EXPECT_EQ(m.content(), "c@3") << "what earlier tries put and the last did not has vanished";
  EXPECT_EQ(m.asks(), "watch 30");
}

TEST(watch_machine, a_page_that_names_itself_as_the_next_is_no_list) {
  machine m(machine::with_watch_list(false));
  EXPECT_EQ(m.asks(), "list");
  m.page("10", {{"a", "1"}}, "token");
  EXPECT_EQ(m.asks(), "list token");
  m.page("10", {{"b", "1"}}, "token");
  EXPECT_EQ(m.asks(), "list") << "from its start, and later";
  EXPECT_EQ(m.waited, 800ms);
  EXPECT_FALSE(m->synced());
  m.page("30", {{"c", "3"}});
  EXPECT_EQ(m.content(), "c@3");
  EXPECT_TRUE(m->synced());
}

// TestReflectorFullListIfTooLarge
TEST(watch_machine, reflector_lists_anew_when_its_version_is_too_large_for_the_server) {
  machine m;
  m.syncs("1000", {{"a", "900"}, {"ghost", "1000"}});
  m.closes();
  EXPECT_EQ(m.asks(), "watch 1000");
  m.fails(errc::version_too_large, 1s);
  EXPECT_EQ(m.asks(), "watch-list");
  EXPECT_EQ(m.waited, 1s);
  m.added({"a", "5"});
  m.bookmark("50", true);
  EXPECT_EQ(m.content(), "a@5") << "F7: versions went back with a restored etcd";
  EXPECT_EQ(m->resource_version(), "50");
}

// TestBackoffOnTooManyRequests
TEST(watch_machine, reflector_backs_off_on_429_as_an_answer_and_in_the_stream) {
  machine m;
  m.syncs("1");
  m.closes();
  m.asks();
  m.fails(errc::too_many_requests);
  EXPECT_EQ(m.asks(), "watch 1");
  EXPECT_EQ(m.waited, 800ms);
  m.stream_error(429, "TooManyRequests", R"(,"details":{"retryAfterSeconds":5})");
  EXPECT_EQ(m.took(), "restart");
  EXPECT_EQ(m.asks(), "watch 1");
  EXPECT_EQ(m.waited, 5s);
}

// TestNoRelistOnTooManyRequests
TEST(watch_machine, reflector_does_not_list_again_on_429_of_a_watch) {
  machine m;
  m.syncs("1");
  m.closes();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(m.asks(), "watch 1");
    m.fails(errc::too_many_requests, 1s);
  }
  EXPECT_EQ(m->count().lists + m->count().watch_lists, 1u);
}

// TestRetryInternalError. Differs: one retry from the same version, then a list (client-go's limit is a duration that
// no one sets).
TEST(watch_machine, reflector_resumes_after_an_internal_error_and_lists_when_it_stays) {
  machine m;
  m.syncs("1");
  m.stream_error(500, "InternalError");
  EXPECT_EQ(m.asks(), "watch 1");
  m.bookmark("2");
  m.stream_error(500, "InternalError");
  EXPECT_EQ(m.asks(), "watch 2") << "an event in between proves that the version works";
  m.stream_error(500, "InternalError");
  EXPECT_EQ(m.asks(), "watch-list");
  EXPECT_GT(m.waited, 0ms);
}

// reflector.go, ListAndWatch: what is not a refused connection, 429 or an internal error of the moment ends in a list.
// Differs: the third in a row does, so that a server that restarts is not listed by everyone.
TEST(watch_machine, lists_where_watches_are_refused_and_lists_are_not) {
  for (const auto code : {errc::server, errc::forbidden, errc::unauthorized, errc::not_found}) {
    machine m;
    m.syncs("1", {{"gone", "1"}, {"old", "1"}});
    m.fails(code);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(m.asks(), "watch 1");
      m.fails(code);
    }
    EXPECT_EQ(m.asks(), "list") << "a WatchList is a watch, too";
    m.page("9", {{"new", "8"}, {"old", "7"}});
    EXPECT_EQ(m.content(), "new@8 old@7");
    EXPECT_EQ(m.asks(), "watch 9");
    EXPECT_EQ(m->count().broken, 1u);
    m.added({"later", "10"});
    for (int i = 0; i < 2; ++i) {
      m.fails(code);
      EXPECT_EQ(m.asks(), "watch 10") << "an event in between proves that the watch works";
    }
  }
}

// A proxy that ends every stream in good order.
TEST(watch_machine, lists_where_watches_are_closed_without_an_event) {
  machine m;
  m.syncs("1");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(m.asks(), "watch 1");
    m.closes(0ms);
  }
  EXPECT_EQ(m.asks(), "watch 1");
  m.closes(0ms);
  EXPECT_EQ(m.asks(), "list");
  m.page("9", {});
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(m.asks(), "watch 9");
    m.closes(60s);
  }
  EXPECT_EQ(m.asks(), "watch 9");
  m.closes(60s);
  EXPECT_EQ(m.asks(), "list") << "300 s without a word";
}

TEST(watch_machine, lists_when_a_watch_has_failed_and_nothing_was_heard_for_five_minutes) {
  for (const auto code : {errc::connect, errc::timeout, errc::too_many_requests}) {
    machine m;
    m.syncs("1");
    const auto began = m.now;
    while (m.now - began < 280s) {
      m.now += 30s;
      m.fails(code);
      if (m.now - began < 280s) EXPECT_EQ(m.asks(), "watch 1") << "a server that is away for a minute is not listed";
    }
    m.asks();
    m.now += 30s;
    m.fails(code);
    EXPECT_EQ(m.asks(), "list");
    m.page("9", {});
    EXPECT_EQ(m.asks(), "watch 9");
    m.fails(code);
    EXPECT_EQ(m.asks(), "watch 9") << "the list was heard";
  }
}

// TestWatchTimeout
TEST(watch_machine, reflector_asks_for_watches_of_5_to_10_minutes_at_random) {
  for (const auto& [jitter, seconds] : {std::pair{0.0, "300"}, {0.5, "450"}, {0.999, "599"}}) {
    machine m;
    m.jitter = jitter;
    EXPECT_EQ(machine::query(m.request(), "timeoutSeconds"), seconds);
    m.bookmark("1", true);
    m.closes();
    EXPECT_EQ(machine::query(m.request(), "timeoutSeconds"), seconds);
  }
}

// TestReflectorResourceVersionUpdate
TEST(watch_machine, reflector_moves_its_version_with_every_event_but_the_initial_ones) {
  machine m;
  m.asks();
  m.added({"a", "30"});
  m.modified({"b", "31"});
  m.bookmark("32");
  EXPECT_EQ(m->resource_version(), "") << "initial events come in no order of versions";
  m.bookmark("40", true);
  EXPECT_EQ(m->resource_version(), "40");
  m.added({"c", "41"});
  EXPECT_EQ(m->resource_version(), "41");
  m.modified({"c", "42"});
  EXPECT_EQ(m->resource_version(), "42");
  m.deleted({"c", "43"});
  EXPECT_EQ(m->resource_version(), "43");
  m.bookmark("50");
  EXPECT_EQ(m->resource_version(), "50");
}

// TestReflectorResyncWithResourceVersion. Differs: a re-list asks for the most recent state, not for one at least as
// new as ours.
TEST(watch_machine, reflector_lists_again_without_a_version) {
  machine m(machine::with_watch_list(false));
  m.asks();
  m.page("10", {});
  m.asks();
  m.stream_error(410, "Expired");
  const auto again = m.request();
  EXPECT_EQ(machine::query(again, "resourceVersion"), "");
  EXPECT_EQ(machine::query(again, "resourceVersionMatch"), "");
  EXPECT_EQ(machine::query(again, "limit"), "500");
}

// TestReflectorPaginatingNonConsistentReadsIfWatchCacheDisabled, TestReflectorNotPaginatingNotConsistentReads,
// TestReflectorWatchListPageSize. Differs: every list comes in pages, so the size of one answer is bounded.
TEST(watch_machine, reflector_lists_in_pages_with_one_begin_and_one_commit) {
  auto settings = machine::with_watch_list(false);
  settings.page = 4;
  machine m(settings);
  const auto first = m.request();
  EXPECT_EQ(machine::query(first, "limit"), "4");
  m.page("10", {{"a", "1"}, {"b", "2"}}, "C1");
  EXPECT_EQ(m.took(), "begin put(a) put(b)");
  EXPECT_FALSE(m->synced());
  EXPECT_EQ(m.asks(), "list C1");
  m.page("10", {{"c", "3"}}, "C2");
  EXPECT_EQ(m.took(), "put(c)");
  EXPECT_EQ(m.asks(), "list C2");
  m.page("10", {});
  EXPECT_EQ(m.took(), "commit");
  EXPECT_EQ(m.asks(), "watch 10");
  EXPECT_EQ(m->count().lists, 1u);
}

// TestReflectorReplacesStoreOnUnsafeDelete
TEST(watch_machine, reflector_replaces_the_store_when_an_unreadable_object_was_deleted) {
  machine m;
  m.syncs("3", {{"foo-1", "1"}, {"foo-2", "2"}, {"foo-3", "3"}});
  m.added({"foo", "4"});
  m.changed();
  m.stream_error(500, "StoreReadError");
  EXPECT_EQ(m.content(), "foo-1@1 foo-2@2 foo-3@3 foo@4") << "until the new list is complete";
  EXPECT_EQ(m.asks(), "watch-list");
  for (const auto& entry : {item{"foo-1", "1"}, {"foo-2", "2"}, {"foo-3", "3"}}) m.added(entry);
  m.bookmark("5", true);
  EXPECT_EQ(m.content(), "foo-1@1 foo-2@2 foo-3@3");
  EXPECT_EQ(m.changed(), (std::vector<std::string>{"-foo"}));
  EXPECT_EQ(m->resource_version(), "5");
}

// TestReflectorRespectStoreTransformer: what a projection drops is dropped on every path.
TEST(watch_machine, reflector_hands_objects_to_the_same_projection_on_every_path) {
  machine m;
  m.syncs("3", {{"a", "1"}});
  m.changed();
  m.modified({"a", "4"});
  m.stream_error(410, "Expired");
  m.asks();
  m.added({"a", "5"});
  m.bookmark("6", true);
  machine plain(machine::with_watch_list(false));
  plain.asks();
  plain.page("6", {{"a", "5"}});
  EXPECT_EQ(m.changed(), std::vector<std::string>{}) << "only the version moved";
  EXPECT_EQ(m.content(), "a@5");
  EXPECT_TRUE(*m.store.find({"", "a"}) == *plain.store.find({"", "a"}));
}

}  // namespace
