#include "controller/event_book.hpp"

#include <gtest/gtest.h>

namespace {

using controller::event_settings;
using controller::event_type;
using controller::event_write;
using controller::milliseconds;
using namespace std::chrono_literals;

controller::object_reference pod(std::string name, std::string ns = "team-a") {
  controller::object_reference out;
  out.api_version = "v1";
  out.kind = "Pod";
  out.key = {std::move(ns), std::move(name)};
  out.uid = "11111111-2222-3333-4444-555555555555";
  return out;
}

struct event_book : testing::Test {
  static event_settings settings() {
    event_settings out;
    out.reporting_instance = "host_1234";
    return out;
  }
  controller::event_book book{settings()};
  controller::wall_time wall{std::chrono::seconds(1767225600)};

  void record(const controller::object_reference& about, std::string_view note, milliseconds now) {
    book.record(about, event_type::warning, "Refused", "Validate", note, now, wall + now);
  }
};

TEST_F(event_book, writes_an_event_the_api_server_accepts) {
  record(pod("p"), "no card is free", 0ms);
  const auto out = book.next(0ms);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->action, event_write::kind::create);
  const auto& e = out->body;
  EXPECT_EQ(e["apiVersion"], "events.k8s.io/v1");
  EXPECT_EQ(e["kind"], "Event");
  EXPECT_EQ(e["metadata"]["namespace"], "team-a");
  EXPECT_EQ(e["metadata"]["name"], out->key.name);
  EXPECT_EQ(e["eventTime"], "2026-01-01T00:00:00.000000Z");
  EXPECT_EQ(e["reportingController"], "quartermaster.io/controller");
  EXPECT_EQ(e["reportingInstance"], "host_1234");
  EXPECT_EQ(e["type"], "Warning");
  EXPECT_EQ(e["reason"], "Refused");
  EXPECT_EQ(e["action"], "Validate");
  EXPECT_EQ(e["note"], "no card is free");
  EXPECT_EQ(e["regarding"]["name"], "p");
  EXPECT_FALSE(book.next(1000ms));
}

TEST_F(event_book, events_of_cluster_scoped_objects_live_in_default) {
  record(pod("gpu-1", ""), "x", 0ms);
  const auto out = book.next(0ms);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->key.ns, "default");
  EXPECT_FALSE(out->body["regarding"].contains("namespace"));
}

TEST_F(event_book, equal_events_become_one_with_a_series) {
  record(pod("p"), "x", 0ms);
  const auto first = *book.next(0ms);
  book.on_result(first, true, false);
  for (auto now = 1000ms; now <= 5000ms; now += 1000ms) record(pod("p"), "x", now);
  EXPECT_FALSE(book.next(9'999ms)) << "a series is not updated with every occurrence";
  EXPECT_EQ(book.next_due(6'000ms), 10'000ms);
  const auto update = book.next(10'000ms);
  ASSERT_TRUE(update);
  EXPECT_EQ(update->action, event_write::kind::patch);
  EXPECT_EQ(update->key, first.key);
  EXPECT_EQ(update->body,
            nlohmann::json::parse(R"({"series":{"count":6,"lastObservedTime":"2026-01-01T00:00:05.000000Z"}})"));
}

TEST_F(event_book, the_pace_of_a_series_slows_down) {
  int patches = 0;
  for (auto now = 0ms; now < 3'600'000ms; now += 1000ms) {
    record(pod("p"), "x", now);
    while (const auto out = book.next(now)) {
      patches += out->action == event_write::kind::patch;
      book.on_result(*out, true, false);
    }
  }
  EXPECT_GE(patches, 5);
  EXPECT_LE(patches, 15) << "an hour of one event a second";
}

TEST_F(event_book, what_differs_or_comes_late_is_an_event_of_its_own) {
  record(pod("p"), "x", 0ms);
  record(pod("p"), "y", 0ms);
  record(pod("q"), "x", 0ms);
  record(pod("p"), "x", 600'001ms);
  int created = 0;
  while (const auto out = book.next(600'001ms)) created += out->action == event_write::kind::create;
  EXPECT_EQ(created, 3) << "the first of the late pair had not been written yet and is replaced";
  record(pod("p"), "x", 1'300'000ms);
  const auto again = book.next(1'300'000ms);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->action, event_write::kind::create);
}

TEST_F(event_book, a_series_whose_event_is_gone_begins_anew) {
  record(pod("p"), "x", 0ms);
  book.on_result(*book.next(0ms), true, false);
  record(pod("p"), "x", 1000ms);
  book.on_result(*book.next(20'000ms), false, true);
  record(pod("p"), "x", 21'000ms);
  const auto again = book.next(21'000ms);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->action, event_write::kind::create);
  EXPECT_EQ(book.dropped(), 0U);
}

TEST_F(event_book, is_bounded_and_drops_the_oldest) {
  for (int i = 0; i < 5000; ++i) record(pod("p" + std::to_string(i)), "x", 0ms);
  EXPECT_LE(book.queued(), 256U);
  EXPECT_EQ(book.dropped(), 5000U - 256U);
  const auto out = book.next(0ms);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->body["regarding"]["name"], "p4744");
}

TEST_F(event_book, is_bounded_in_rate) {
  for (int i = 0; i < 200; ++i) record(pod("p" + std::to_string(i)), "x", 0ms);
  int at_once = 0;
  while (book.next(0ms)) ++at_once;
  EXPECT_EQ(at_once, 25);
  const auto due = book.next_due(0ms);
  ASSERT_TRUE(due);
  EXPECT_GT(*due, 0ms);
  EXPECT_TRUE(book.next(*due)) << "what is reported as due is due";
  int in_ten_seconds = 0;
  for (auto now = *due; now < 10'000ms; now += 10ms) in_ten_seconds += book.next(now).has_value();
  EXPECT_NEAR(in_ten_seconds, 49, 2);
}

TEST_F(event_book, F37_a_note_is_cut_on_a_character_edge_and_is_always_utf8) {
  std::string note;
  for (int i = 0; i < 500; ++i) note += "声";
  record(pod("p"), note, 0ms);
  record(pod("q"), "\xff\xfe bad", 0ms);
  const auto cut = book.next(0ms)->body["note"].get<std::string>();
  EXPECT_EQ(cut.size(), 999U);
  EXPECT_NO_THROW(static_cast<void>(book.next(0ms)->body.dump()));
}

TEST_F(event_book, names_are_unique_and_short_enough) {
  const std::string longest(253, 'a');
  record(pod(longest), "x", 0ms);
  record(pod(longest), "y", 0ms);
  const auto first = book.next(0ms)->key.name, two = book.next(0ms)->key.name;
  EXPECT_NE(first, two);
  EXPECT_LE(first.size(), 253U);
}

}  // namespace
