// More of the faults a watch must survive: interrupted lists, strange orders, missing bookmarks, refusals.

#include <gtest/gtest.h>

#include "test/kube/watch_rig.hpp"

namespace {

using namespace rig;
using kube::errc;

TEST(watch_machine, F14_a_list_cut_in_the_middle_keeps_the_old_store_and_goes_on_at_its_page) {
  machine m(machine::with_watch_list(false));
  m.asks();
  m.page("5", {{"a", "1"}, {"b", "2"}});
  m.asks();
  m.stream_error(410, "Expired");
  m.changed();
  m.asks();
  m.page("9", {{"b", "2"}}, "token");
  EXPECT_EQ(m.content(), "a@1 b@2");
  EXPECT_EQ(m.asks(), "list token");
  m.fails(errc::connect);
  EXPECT_EQ(m.content(), "a@1 b@2");
  EXPECT_EQ(m.asks(), "list token");
  m.page("9", {{"c", "8"}});
  EXPECT_EQ(m.content(), "b@2 c@8");
  EXPECT_EQ(m.changed(), (std::vector<std::string>{"+c", "-a"}));
}

TEST(watch_machine, F15_duplicates_and_older_versions_do_no_harm) {
  machine m;
  m.syncs("10", {{"a", "5"}});
  m.modified({"a", "12", "new"});
  m.changed();
  m.modified({"a", "12", "new"});
  m.modified({"a", "11", "old"});
  m.deleted({"a", "9"});
  EXPECT_EQ(m.changed(), std::vector<std::string>{});
  EXPECT_EQ(m.content(), "a@12");
  m.deleted({"a", "13"});
  m.deleted({"a", "13"});
  EXPECT_EQ(m.changed(), (std::vector<std::string>{"-a"}));
}

TEST(watch_machine, F15_a_hidden_change_is_repaired_by_the_next_list) {
  machine m;
  m.syncs("10", {{"a", "5"}, {"b", "6"}});
  m.bookmark("20");  // b was deleted and a changed, and no one said so
  m.stream_error(410, "Expired");
  m.changed();
  m.asks();
  m.added({"a", "15", "new"});
  m.bookmark("21", true);
  EXPECT_EQ(m.changed(), (std::vector<std::string>{"~a", "-b"}));
}

TEST(watch_machine, F3_an_object_re_created_under_its_name_is_another_object) {
  machine m;
  m.syncs("10", {{"a", "5"}});
  m.changed();
  m.frame_in(frame(
      "ADDED",
      R"({"kind":"Pod","metadata":{"name":"a","uid":"0a1b2c3d-4e5f-4678-9abc-def012345678","resourceVersion":"4"},"content":"x"})"));
  EXPECT_EQ(m.changed(), (std::vector<std::string>{"~a"}));
}

TEST(watch_machine, F16_works_without_any_bookmark) {
  machine m;
  m.syncs("10");
  for (int version = 11; version < 200; ++version) {
    m.now += 1min;
    m.modified({"a", std::to_string(version), std::to_string(version)});
  }
  m.closes();
  EXPECT_EQ(m.asks(), "watch 199");
}

TEST(watch_machine, F16_takes_a_bookmark_with_unknown_fields_and_ignores_one_without_a_version) {
  machine m;
  m.syncs("10");
  m.frame_in(
      R"({"new":1,"type":"BOOKMARK","object":{"kind":"Pod","x":[{}],"metadata":{"shard":{"a":1},"resourceVersion":"20"}}})");
  EXPECT_EQ(m->resource_version(), "20");
  m.frame_in(frame("BOOKMARK", R"({"kind":"Pod"})"));
  m.frame_in(frame("BOOKMARK", R"({"kind":"Pod","metadata":{"annotations":null}})"));
  EXPECT_EQ(m->resource_version(), "20");
  EXPECT_EQ(m.took(), "");
}

TEST(watch_machine, F16_lists_by_pages_when_initial_events_never_end) {
  machine m;
  m.asks();
  m.added({"a", "1"});
  for (int i = 0; i < 5; ++i) {
    m.now += 10s;
    m.bookmark(std::to_string(10 + i));
  }
  EXPECT_EQ(m.took(), "begin put(a)");
  m.now += 10s;
  m.bookmark("20");  // bookmarks are not progress
  EXPECT_EQ(m.took(), "restart");
  EXPECT_EQ(m.asks(), "list");
  EXPECT_EQ(m.waited, 0ms);
  m.page("21", {{"a", "1"}});
  EXPECT_TRUE(m->synced());
}

TEST(watch_machine, F16_lists_by_pages_when_the_initial_events_fall_silent) {
  machine m;
  m.asks();
  m.fails(errc::timeout);  // the transport's silence deadline
  EXPECT_EQ(m.asks(), "list");
}

TEST(watch_machine, F17_falls_back_at_once_where_the_server_refuses_initial_events) {
  for (const auto code : {errc::invalid, errc::bad_request}) {
    machine m;
    m.asks();
    m.fails(code);
    EXPECT_EQ(m.asks(), "list") << to_string(code);
    EXPECT_EQ(m.waited, 0ms);
  }
}

TEST(watch_machine, F18_waits_what_retry_after_says_and_a_little_more_than_others_do) {
  machine m;
  m.syncs("5");
  m.jitter = 0.5;
  m.closes();
  m.asks();
  m.fails(errc::too_many_requests, 7s);
  EXPECT_EQ(m.asks(), "watch 5");
  EXPECT_EQ(m.waited, 7400ms);
  m.fails(errc::server, 2s);
  EXPECT_EQ(m.asks(), "watch 5");
  EXPECT_EQ(m.waited, 2800ms);
}

TEST(watch_machine, F18_spreads_more_with_each_refusal_until_something_is_heard) {
  machine m;
  m.syncs("5");
  m.jitter = 0.5;
  m.closes();
  m.asks();
  for (const auto waited : {1400ms, 1800ms, 2600ms, 4200ms, 4200ms}) {
    m.fails(errc::too_many_requests, 1s);
    m.asks();
    EXPECT_EQ(m.waited, waited);
  }
  m.bookmark("6");
  m.closes();
  m.asks();
  m.fails(errc::too_many_requests, 1s);
  m.asks();
  EXPECT_EQ(m.waited, 1400ms);
}

TEST(watch_machine, F18_a_list_refused_with_429_or_5xx_is_asked_for_again_with_its_token) {
  machine m(machine::with_watch_list(false));
  m.asks();
  m.page("5", {}, "token");
  m.asks();
  m.fails(errc::too_many_requests, 1s);
  EXPECT_EQ(m.asks(), "list token");
  EXPECT_EQ(m.waited, 1s);
  m.fails(errc::server);
  EXPECT_EQ(m.asks(), "list token");
  EXPECT_EQ(m.waited, 800ms);
}

TEST(watch_machine, F20_tries_again_for_ever_while_it_is_forbidden) {
  machine m;
  for (int i = 0; i < 50; ++i) {
    m.asks();
    m.fails(errc::forbidden);
  }
  m.asks();
  EXPECT_EQ(m.waited, 30s);
  EXPECT_FALSE(m->synced());
}

TEST(watch_machine, F55_an_event_of_an_unknown_type_moves_the_version_and_nothing_else) {
  machine m;
  m.syncs("5", {{"a", "1"}});
  m.frame_in(frame("RENAMED", json_of({"a", "6"})));
  EXPECT_EQ(m.took(), "");
  EXPECT_EQ(m.content(), "a@1");
  EXPECT_EQ(m->resource_version(), "6");
}

}  // namespace
