// The faults a watch must survive (F numbers of the fault table), at the level of the machine.

#include "kube/watch_machine.hpp"

#include <gtest/gtest.h>

#include "kube/projections/pod.hpp"
#include "test/kube/golden.hpp"
#include "test/kube/watch_rig.hpp"

namespace {

using namespace rig;
using kube::encoding;
using kube::errc;

TEST(watch_machine, asks_for_what_its_settings_say) {
  kube::watch_settings settings;
  settings.ns = "kube-public";
  settings.label_selector = "a=b";
  settings.field_selector = "metadata.name=x";
  settings.silence = 90s;
  kube::watch_machine machine(kube::resources::config_maps, settings, [] { return 0.5; });
  const auto first = machine.next(0ms).send;
  EXPECT_EQ(
      first.target,
      "/api/v1/namespaces/kube-public/configmaps?watch=true&allowWatchBookmarks=true&labelSelector=a%3Db&fieldSelector="
      "metadata.name%3Dx&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=450");
  EXPECT_EQ(first.silence, 90s);
  EXPECT_EQ(first.accept, "application/vnd.kubernetes.protobuf;stream=watch");
  machine.on_error({errc::invalid, 422, "", {}}, 0ms);
  EXPECT_EQ(machine.next(0ms).send.target,
            "/api/v1/namespaces/kube-public/configmaps?labelSelector=a%3Db&fieldSelector=metadata.name%3Dx&limit=500");
}

TEST(watch_machine, reads_a_recorded_protobuf_stream_of_the_real_serializer) {
  kube::watch_machine machine(kube::resources::pods, {}, [] { return 0.0; });
  controller::store<kube::pod> store;
  machine.next(0ms);
  ASSERT_EQ(machine.on_watch_open(0ms).action, kube::store_op::kind::begin);
  store.begin();
  std::string log;
  for (const auto& frame : golden::split(golden::read("pods.watch.pb"))) {
    const auto op = machine.on_frame(frame, 0ms);
    log += std::to_string(static_cast<int>(op.action));
    using kind = kube::store_op::kind;
    if (op.action == kind::put) store.put(*kube::pod::decode(op.object));
    if (op.action == kind::erase) store.erase(*kube::pod::decode(op.object));
    if (op.action == kind::commit) store.commit();
  }
  EXPECT_EQ(log, "22423025");  // put put commit put erase - put restart
  EXPECT_EQ(store.size(), 3u);
  EXPECT_EQ(machine.resource_version(), "987701");
  EXPECT_EQ(machine.count().gone, 1u);
}

TEST(watch_machine, reads_a_list_page_of_the_real_serializer_in_both_encodings) {
  for (const auto wire : {encoding::protobuf, encoding::json}) {
    auto settings = machine::with_watch_list(false);
    settings.wire = wire;
    kube::watch_machine machine(kube::resources::pods, settings, [] { return 0.0; });
    machine.next(0ms);
    int puts = 0;
    machine.on_list_page(golden::read(wire == encoding::json ? "pods.list.json" : "pods.list.pb"), 0ms,
                         [&](kube::store_op op) { puts += op.action == kube::store_op::kind::put; });
    EXPECT_EQ(puts, 3);
    EXPECT_TRUE(machine.next(0ms).send.target.ends_with("continue=next-token"));
  }
}

TEST(watch_machine, F7_takes_the_content_of_a_restored_server_whose_versions_went_back) {
  machine m;
  m.syncs("1000", {{"a", "900"}, {"b", "950"}});
  m.stream_error(
      504, "Timeout",
      R"(,"details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]})");
  EXPECT_EQ(m.asks(), "watch-list");
  EXPECT_EQ(m.waited, 1s);
  m.added({"a", "100", "old content"});
  m.bookmark("120", true);
  EXPECT_EQ(m.content(), "a@100");
}

TEST(watch_machine, F8_lists_exactly_once_on_410_as_an_answer_and_in_the_stream) {
  for (const bool in_stream : {false, true}) {
    machine m;
    m.syncs("5", {{"a", "1"}, {"gone", "2"}});
    m.closes();
    EXPECT_EQ(m.asks(), "watch 5");
    if (in_stream) {
      m.stream_error(410, "Expired");
      m.fails(errc::cancelled);  // the stream we ended ourselves
    } else {
      m.fails(errc::gone);
    }
    m.changed();
    EXPECT_EQ(m.asks(), "watch-list");
    m.added({"a", "1"});
    m.bookmark("9", true);
    EXPECT_EQ(m.changed(), (std::vector<std::string>{"-gone"})) << "what vanished meanwhile is reported";
    m.closes();
    EXPECT_EQ(m.asks(), "watch 9");
    EXPECT_EQ(m->count().watch_lists, 2u);
    EXPECT_EQ(m->count().gone, 1u);
  }
}

// What a server answers to every watch for two minutes; lists succeed.
int lists_in_a_storm(machine& m, const std::function<void()>& refuse) {
  const auto start = m.now;
  int lists = 0;
  ms longest{0};
  while (m.now - start < 2min && lists < 100) {
    const auto ask = m.asks();
    longest = std::max(longest, m.waited);
    if (ask == "list") {
      ++lists;
      m.page("5", {});
    } else if (ask == "watch-list") {
      ++lists;
      m.bookmark("5", true);
      refuse();
    } else {
      refuse();
    }
  }
  EXPECT_EQ(longest, 30s) << "the back-off reaches its cap";
  return lists;
}

TEST(watch_machine, F8_a_server_that_is_back_and_knows_no_version_of_before_is_listed_soon) {
  for (const bool in_stream : {false, true}) {
    machine m;
    m.syncs("5", {{"a", "1"}});
    m.closes();
    for (int away = 0; away < 5; ++away) {
      EXPECT_EQ(m.asks(), "watch 5");
      m.fails(errc::connect);
    }
    EXPECT_EQ(m.asks(), "watch 5");
    EXPECT_EQ(m.waited, 12800ms);
    for (const auto wait : {800ms, 1600ms, 3200ms}) {
      in_stream ? m.stream_error(410, "Expired") : m.fails(errc::gone);
      EXPECT_EQ(m.asks(), "watch-list");
      EXPECT_EQ(m.waited, wait) << "only what follows the absence is soon";
      m.bookmark("9", true);
      EXPECT_EQ(m.asks(), "watch 9");
    }
  }
}

TEST(watch_machine, F9_lists_at_most_ten_times_in_a_two_minute_storm_of_410) {
  for (const bool streaming : {false, true}) {
    machine in_stream(machine::with_watch_list(streaming)), answered(machine::with_watch_list(streaming));
    EXPECT_LE(lists_in_a_storm(in_stream, [&] { in_stream.stream_error(410, "Expired"); }), 10);
    EXPECT_LE(lists_in_a_storm(answered, [&] { answered.fails(errc::gone, 1s); }), 10) << "whatever Retry-After says";
  }
}

TEST(watch_machine, F9_lists_at_most_ten_times_while_watches_reach_a_server_that_lags_behind) {
  machine m(machine::with_watch_list(false));
  EXPECT_LE(lists_in_a_storm(m, [&] { m.fails(errc::version_too_large, 1s); }), 10);
}

// A server of 12 changes; the stream is cut after every possible number of bytes, then the watch resumes.
TEST(watch_machine, F10_a_stream_cut_at_any_byte_loses_no_event_and_applies_none_twice) {
  std::vector<std::string> frames;
  for (int version = 11; version <= 22; ++version) {
    const auto name = std::string("pod-") + static_cast<char>('a' + version % 3);
    const item item{name, std::to_string(version), "content-" + std::to_string(version)};
    frames.push_back(frame(version < 14       ? "ADDED"
                           : version % 5 == 0 ? "DELETED"
                           : version % 5 == 1 ? "ADDED"
                                              : "MODIFIED",
                           json_of(item)) +
                     "\n");
  }
  const auto replay = [&](const std::string& version) {
    std::string bytes;
    for (std::size_t i = static_cast<std::size_t>(std::stoi(version)) - 10; i < frames.size(); ++i) bytes += frames[i];
    return bytes;
  };
  const auto feed = [](machine& m, std::string_view bytes) {
    kube::framer cutter(encoding::json);
    return cutter.feed(bytes, [&](std::string_view frame) { return m.frame_in(std::string(frame)), true; }).has_value();
  };
  machine straight;
  straight.syncs("10");
  ASSERT_TRUE(feed(straight, replay("10")));
  const auto expected = straight.changed();
  ASSERT_GE(expected.size(), 12u);
  const auto whole = replay("10");
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    machine m;
    m.syncs("10");
    ASSERT_TRUE(feed(m, std::string_view(whole).substr(0, cut)));
    m.fails(errc::connect);
    m.asks();
    ASSERT_TRUE(feed(m, replay(m->resource_version())));
    ASSERT_EQ(m.changed(), expected) << cut;
    ASSERT_EQ(m.content(), straight.content()) << cut;
    ASSERT_EQ(m->count().watch_lists, 1u);
  }
}

TEST(watch_machine, F11_garbage_in_the_stream_resumes_once_and_then_lists) {
  std::string deep = R"({"type":"ADDED","object":{"kind":"Pod","x":)" + std::string(5000, '[');
  for (const auto& garbage : {std::string("{"), std::string("\xff\xfe garbage"),
                              std::string(R"({"type":"ADDED","object":7})"), deep, std::string()}) {
    machine m;
    m.syncs("5", {{"a", "1"}});
    m.frame_in(garbage);
    EXPECT_EQ(m.took(), "restart");
    EXPECT_EQ(m.asks(), "watch 5");
    EXPECT_EQ(m.waited, 800ms);
    m.frame_in(garbage);
    EXPECT_EQ(m.took(), "restart");
    EXPECT_EQ(m.asks(), "watch-list") << "the same place is broken twice: go around it";
    EXPECT_EQ(m->count().undecodable, 2u);
    EXPECT_EQ(m.content(), "a@1");
    m.added({"a", "9"});
    m.bookmark("10", true);
    EXPECT_EQ(m.content(), "a@9");
  }
}

TEST(watch_machine, F11_garbage_after_good_events_resumes_behind_them) {
  machine m;
  m.syncs("5");
  m.frame_in("garbage");
  m.asks();
  m.added({"a", "6"});
  m.frame_in("garbage");
  EXPECT_EQ(m.asks(), "watch 6");
}

TEST(watch_machine, F11_garbage_among_the_initial_events_ends_in_a_list_by_pages) {
  machine m;
  m.asks();
  m.frame_in("garbage");
  EXPECT_EQ(m.asks(), "watch-list");
  m.frame_in("garbage");
  EXPECT_EQ(m.asks(), "list");
}

TEST(watch_machine, F11_a_frame_above_the_limit_is_treated_like_garbage) {
  machine m;
  m.syncs("5");
  m.fails(errc::decode);  // what the driver says when the framer refuses
  EXPECT_EQ(m.asks(), "watch 5");
  m.fails(errc::decode);
  EXPECT_EQ(m.asks(), "watch-list");
}

TEST(watch_machine, F11_an_object_of_another_kind_is_passed_over) {
  machine m;
  m.syncs("5");
  m.frame_in(frame("ADDED", R"({"kind":"Table","metadata":{"name":"x","resourceVersion":"6"},"rows":[]})"));
  EXPECT_EQ(m.took(), "");
  EXPECT_EQ(m->count().undecodable, 1u);
  m.added({"a", "7"});
  EXPECT_EQ(m.content(), "a@7");
}

TEST(watch_machine, F11_a_list_that_cannot_be_read_leaves_the_store_alone_and_is_asked_for_again) {
  machine m(machine::with_watch_list(false));
  m.asks();
  m.page("5", {{"a", "1"}}, "token");
  m.asks();
  m.took();
  m.raw_page(R"({"kind":"PodList","metadata":{"resourceVersion":"5"},"items":[{"metadata")");
  EXPECT_EQ(m.took(), "");
  EXPECT_EQ(m.asks(), "list") << "from its beginning: the answer to the token is what is broken";
  EXPECT_EQ(m.waited, 800ms);
  m.page("6", {{"a", "1"}});
  EXPECT_EQ(m.took(), "begin put(a) commit");
}

TEST(watch_machine, a_page_that_is_too_large_is_asked_for_in_smaller_ones) {
  machine m(machine::with_watch_list(false));
  const auto limit = [&] { return machine::query(m.request(), "limit"); };
  std::string limits;
  for (int i = 0; i < 11; ++i) {
    limits += limit() + " ";
    m.fails(errc::decode);  // what the driver says of an answer beyond its limit
  }
  EXPECT_EQ(limits, "500 250 125 62 31 15 7 3 1 1 1 ");
  EXPECT_EQ(limit(), "1");
  m.page("5", {{"a", "1"}}, "token");
  EXPECT_EQ(limit(), "1") << "the rest of the list is no smaller";
  m.page("5", {{"b", "1"}});
  EXPECT_EQ(m.content(), "a@1 b@1");
}

TEST(watch_machine, errors_behind_a_restart_are_ignored) {
  machine m;
  m.syncs("5");
  m.stream_error(410, "Expired");
  const auto errors = m->count().errors;
  m.fails(errc::connect);
  m->on_watch_closed(m.now);
  EXPECT_EQ(m->count().errors, errors);
  EXPECT_EQ(m.asks(), "watch-list");
  EXPECT_EQ(m.waited, 800ms);
}

TEST(watch_machine, waits_again_when_asked_too_early) {
  machine m;
  m.asks();
  m.fails(errc::connect);
  EXPECT_EQ(m.step().wait, 800ms);
  m.now += 300ms;
  EXPECT_EQ(m.step().wait, 500ms);
  m.now += 500ms;
  EXPECT_EQ(m.step().action, kube::watch_step::kind::watch);
}

}  // namespace
