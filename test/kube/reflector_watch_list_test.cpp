// The tests of client-go's WatchList (tools/cache/reflector_watchlist_test.go) and of its retry watcher
// (tools/watch/retrywatcher_test.go), one by one, against our machine. Where we differ on purpose the test says how.

#include <gtest/gtest.h>

#include "test/kube/watch_rig.hpp"

namespace {

using namespace rig;
using kube::errc;

// TestWatchListResourceVersion
TEST(watch_machine, reflector_begins_a_watch_list_without_a_version_and_takes_that_of_the_bookmark) {
  machine m;
  const auto made = m.request();
  EXPECT_EQ(machine::query(made, "resourceVersion"), "");
  EXPECT_EQ(machine::query(made, "resourceVersionMatch"), "NotOlderThan");
  EXPECT_EQ(machine::query(made, "allowWatchBookmarks"), "true");
  m.added({"a", "9"});
  EXPECT_EQ(m->resource_version(), "");
  m.bookmark("2", true);
  EXPECT_EQ(m->resource_version(), "2");
}

// TestWatchList: "prove that the reflector is synced after receiving a bookmark event", "... checking the value of the
// annotation"
TEST(watch_machine, reflector_is_synced_by_the_annotated_bookmark_and_goes_on_with_the_same_stream) {
  machine m;
  m.asks();
  m.added({"p1", "1"});
  m.added({"p2", "2"});
  m.bookmark("2");
  EXPECT_FALSE(m->synced());
  m.frame_in(frame(
      "BOOKMARK",
      R"({"kind":"Pod","metadata":{"resourceVersion":"2","annotations":{"k8s.io/initial-events-end":"false"}}})"));
  EXPECT_FALSE(m->synced());
  m.bookmark("2", true);
  EXPECT_EQ(m.took(), "begin put(p1) put(p2) commit");
  EXPECT_TRUE(m->synced());
  m.added({"p3", "3"});
  EXPECT_EQ(m.content(), "p1@1 p2@2 p3@3");
  EXPECT_EQ(m->count().watches, 0u);
}

// TestWatchList: "check if Updates and Deletes events are propagated during streaming"
TEST(watch_machine, reflector_takes_updates_and_deletes_among_the_initial_events) {
  machine m;
  m.asks();
  m.added({"p1", "1"});
  m.added({"p2", "2"});
  m.modified({"p1", "3"});
  m.added({"p3", "4"});
  m.deleted({"p3", "5"});
  m.bookmark("5", true);
  EXPECT_EQ(m.content(), "p1@3 p2@2");
  EXPECT_EQ(m->resource_version(), "5");
}

// TestWatchList: "the reflector can fall back to old LIST/WATCH semantics when a server doesn't support streaming"
TEST(watch_machine, reflector_falls_back_to_pages_for_good_when_the_server_knows_no_watch_list) {
  machine m;
  EXPECT_EQ(m.asks(), "watch-list");
  m.fails(errc::invalid);
  EXPECT_EQ(m.asks(), "list");
  EXPECT_EQ(m.waited, 0ms);
  m.page("1", {{"p1", "1"}});
  EXPECT_EQ(m.asks(), "watch 1");
  m.added({"p2", "2"});
  m.stream_error(410, "Expired");
  EXPECT_EQ(m.asks(), "list") << "remembered";
  EXPECT_EQ(m->count().watch_lists, 1u);
}

// TestWatchList: "returning any other error than apierrors.NewInvalid forces fallback". Differs: the second time, not
// the first.
TEST(watch_machine, reflector_falls_back_to_pages_for_one_list_when_watch_lists_keep_failing) {
  machine m;
  m.asks();
  m.added({"p1", "1"});
  m.fails(errc::server);
  EXPECT_EQ(m.asks(), "watch-list");
  m.closes();
  EXPECT_EQ(m.asks(), "list");
  m.page("1", {{"p1", "1"}});
  m.asks();
  m.stream_error(410, "Expired");
  EXPECT_EQ(m.asks(), "watch-list") << "tried again for the next list";
}

// TestWatchList: "checks if the reflector retries 429"
TEST(watch_machine, reflector_repeats_a_watch_list_on_429) {
  machine m;
  m.asks();
  for (int i = 0; i < 4; ++i) {
    m.fails(errc::too_many_requests, 1s);
    EXPECT_EQ(m.asks(), "watch-list");
    EXPECT_EQ(m.waited, 1s);
  }
  m.stream_error(429, "TooManyRequests");
  EXPECT_EQ(m.asks(), "watch-list");
}

// TestWatchList: "check if stopping a watcher before sync results in creating a new watch-list request"
TEST(watch_machine, reflector_starts_the_watch_list_over_when_it_was_closed_before_its_end) {
  machine m;
  m.asks();
  m.added({"gone", "1"});
  m.closes();
  EXPECT_EQ(m.asks(), "watch-list");
  m.added({"p1", "2"});
  m.bookmark("2", true);
  EXPECT_EQ(m.content(), "p1@2");
}

// TestWatchList: "stopping a watcher after synchronization results in creating a new watch request"
TEST(watch_machine, reflector_watches_from_the_last_event_after_a_watch_list_was_closed) {
  machine m;
  m.syncs("2", {{"p1", "1"}, {"p2", "2"}});
  m.added({"p3", "3"});
  m.closes();
  EXPECT_EQ(m.asks(), "watch 3");
  EXPECT_EQ(m.waited, 0ms);
}

// TestWatchList: "expiring an established watcher results in returning an error from the reflector"
TEST(watch_machine, reflector_lists_again_when_an_established_watch_expires) {
  machine m;
  m.syncs("2", {{"p1", "1"}});
  m.added({"p3", "3"});
  m.closes();
  EXPECT_EQ(m.asks(), "watch 3");
  m.fails(errc::gone);
  EXPECT_EQ(m.content(), "p1@1 p3@3");
  EXPECT_EQ(m.asks(), "watch-list");
}

// TestWatchList: "the reflector won't be synced if the bookmark event has been received" (watch ended without one)
TEST(watch_machine, reflector_is_not_synced_without_the_bookmark) {
  machine m;
  m.asks();
  m.added({"p1", "1"});
  m.fails(errc::cancelled);
  EXPECT_FALSE(m->synced());
  EXPECT_FALSE(m.store.synced());
}

// TestInitialEventsEndBookmarkTicker. Differs: client-go warns, we LIST.
TEST(watch_machine, reflector_watches_over_the_arrival_of_the_initial_events) {
  machine m;
  m.asks();
  m.now += 59s;
  EXPECT_FALSE(m->on_tick(m.now));
  m.added({"p1", "1"});
  m.now += 59s;
  EXPECT_FALSE(m->on_tick(m.now)) << "an event is progress";
  m.now += 1s;
  EXPECT_TRUE(m->on_tick(m.now));
  m.added({"p2", "2"});
  EXPECT_EQ(m.took(), "begin put(p1) restart");
  EXPECT_EQ(m.asks(), "list");
  m.page("9", {{"p2", "2"}});
  m.asks();
  m.now += 10min;
  EXPECT_FALSE(m->on_tick(m.now)) << "a plain watch may be quiet";
}

// TestNewReflectorWithDisablementWatchList
TEST(watch_machine, reflector_uses_no_watch_list_when_it_is_switched_off) {
  machine m(machine::with_watch_list(false));
  EXPECT_EQ(m.asks(), "list");
  m.page("1", {});
  m.asks();
  m.stream_error(410, "Expired");
  EXPECT_EQ(m.asks(), "list");
  EXPECT_EQ(m->count().watch_lists, 0u);
}

// TestNewRetryWatcher: "empty RV should fail", "RV \"0\" should fail"
TEST(watch_machine, reflector_never_watches_without_a_version) {
  machine m(machine::with_watch_list(false));
  m.asks();
  m.raw_page(R"({"kind":"PodList","metadata":{"resourceVersion":""},"items":[]})");
  EXPECT_EQ(m.took(), "");
  EXPECT_EQ(m.asks(), "list");
  machine streaming;
  streaming.asks();
  streaming.bookmark("", true);
  EXPECT_EQ(streaming.took(), "begin restart");
  EXPECT_EQ(streaming.asks(), "watch-list");
}

// TestRetryWatcher: "recovers if watchClient returns error", "... from timeout error", "... internal server error",
// "... unexpected error code"
TEST(watch_machine, reflector_recovers_from_every_answer_that_leaves_its_version_good) {
  for (const auto code : {errc::connect, errc::timeout, errc::server, errc::unauthorized, errc::forbidden, errc::tls,
                          errc::not_found, errc::conflict, errc::config}) {
    machine m;
    m.syncs("5");
    m.closes();
    m.asks();
    m.fails(code);
    EXPECT_EQ(m.asks(), "watch 5") << to_string(code);
    EXPECT_EQ(m.waited, 800ms);
  }
  for (const auto* reason : {"Timeout", "ServerTimeout", "InternalError", "ServiceUnavailable"}) {
    machine m;
    m.syncs("5");
    m.stream_error(504, reason);
    EXPECT_EQ(m.asks(), "watch 5") << reason;
  }
}

// TestRetryWatcher: "fails on Gone (RV too old error)", "fails on Forbidden", "fails on Unauthorized". Differs: we list
// instead of giving up.
TEST(watch_machine, reflector_lists_after_stream_errors_that_are_not_passing) {
  for (const auto& [code, reason] :
       {std::pair{410, "Gone"}, {410, "Expired"}, {403, "Forbidden"}, {401, "Unauthorized"}, {418, ""}}) {
    machine m;
    m.syncs("5");
    m.stream_error(code, reason);
    EXPECT_EQ(m.asks(), "watch-list") << reason;
    EXPECT_EQ(m.waited, 800ms);
  }
}

// TestRetryWatcher: "recovers from unexpected error type", "recovers if watchClient returns nil watcher"
TEST(watch_machine, reflector_recovers_from_an_error_event_that_is_no_status) {
  machine m;
  m.syncs("5");
  m.frame_in(frame("ERROR", R"({"kind":"Pod"})"));
  EXPECT_EQ(m.took(), "restart");
  EXPECT_EQ(m.asks(), "watch 5");
  EXPECT_EQ(m->count().undecodable, 1u);
}

// TestRetryWatcher: "survives 4 closed watches and reads 4 items for nonconsecutive, spread RVs"
TEST(watch_machine, reflector_survives_closed_watches_and_reads_every_item_once) {
  machine m;
  m.syncs("2");
  const std::string versions[] = {"5", "6", "7", "11"};
  std::string position = "2";
  m.closes();
  for (const auto& version : versions) {
    EXPECT_EQ(m.asks(), "watch " + position);
    m.added({"v" + version, version});
    m.closes(1ms);
    position = version;
  }
  EXPECT_EQ(m.asks(), "watch 11");
  EXPECT_EQ(m.changed(), (std::vector<std::string>{"+v5", "+v6", "+v7", "+v11"}));
}

// TestRetryWatcherToFinishWithUnreadEvents
TEST(watch_machine, reflector_can_be_stopped_in_the_middle_of_a_stream) {
  machine m;
  m.syncs("1");
  m.added({"a", "2"});
  m.fails(errc::cancelled);
  m.added({"b", "3"});
  EXPECT_EQ(m.took(), "put(a) restart");
  EXPECT_EQ(m->resource_version(), "2");
}

}  // namespace
