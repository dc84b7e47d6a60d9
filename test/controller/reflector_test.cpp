// The driver around the watch machine: what it does with chunks, bad objects, refusals and cancellation. What list and
// watch mean is the machine's, and tested in test/kube.

#include "controller/reflector.hpp"

#include <nlohmann/json.hpp>

#include "test/controller/rig.hpp"

namespace {

using namespace std::chrono_literals;
using kube::errc;
using kube::method;
using nlohmann::json;

/// A ConfigMap by its JSON, of which "bad" cannot be decoded.
struct thing : kube::object {
  std::string value;
  static const kube::resource& of() { return kube::resources::config_maps; }
  static constexpr kube::encoding wire = kube::encoding::json;
  static kube::result<thing> decode(std::string_view bytes) {
    const auto parsed = json::parse(bytes, nullptr, false);
    if (!parsed.is_object() || parsed.contains("bad"))
      return std::unexpected(kube::error{errc::decode, 0, "ConfigMap cannot be read", {}});
    thing out;
    out.key = {parsed["metadata"].value("namespace", ""), parsed["metadata"].value("name", "")};
    out.resource_version = std::stoull(parsed["metadata"].value("resourceVersion", "0"));
    out.value = parsed.value("value", "");
    return out;
  }
  friend bool operator==(const thing&, const thing&) = default;
};

json object(const std::string& name, int version, const std::string& value = "v") {
  return {{"kind", "ConfigMap"},
          {"apiVersion", "v1"},
          {"metadata", {{"namespace", "ns"}, {"name", name}, {"resourceVersion", std::to_string(version)}}},
          {"value", value}};
}
std::string page(std::vector<json> items, int version, const std::string& next = {}) {
  return json{{"kind", "ConfigMapList"},
              {"metadata", {{"resourceVersion", std::to_string(version)}, {"continue", next}}},
              {"items", items}}
      .dump();
}
std::string event(const std::string& type, const json& object) {
  return json{{"type", type}, {"object", object}}.dump() + "\n";
}

struct reflector : controller_test::rig {
  kube_test::scripted_transport api;
  controller::store<thing> store;
  controller::reflector_metrics reflecting{metrics};
  controller::reflector_state state;
  controller::spawned running;
  int forbidden = 0, broken = 0;
  std::vector<bool> rights;                                    // refused, after each change
  std::vector<std::pair<std::uint64_t, std::uint64_t>> falls;  ///< what was seen, and the lower version
  controller::milliseconds patience{0}, first_backoff{1};

  void start(bool watch_list = false) {
    kube::watch_settings settings;
    settings.watch_list = watch_list;
    settings.first_backoff = first_backoff;
    controller::reflector_options options;
    options.state = &state;
    options.on_trouble = [this](const kube::error& error) { ++(error.code == errc::forbidden ? forbidden : broken); };
    options.on_restored = [this](std::string_view, const controller::version_fall& fall) {
      falls.emplace_back(fall.seen, fall.version);
    };
    options.on_rights = [this] { rights.push_back(state.refused); };
    options.forbidden_patience = patience;
    running = loop.spawn("reflect", controller::reflect(api, settings, store, reflecting, options));
  }
  void end() {
    running.cancel();
    EXPECT_TRUE(turn([&] { return !running.running(); }));
  }
  const std::string list = "/api/v1/configmaps?*limit=500*", watch = "/api/v1/configmaps?*watch=true*";
};

TEST_F(reflector, lists_page_by_page_then_watches) {
  api.on(method::get, list).answers(200, page({object("a", 1)}, 5, "next"));
  api.on(method::get, "*continue=next*").answers(200, page({object("b", 2)}, 5));
  api.on_stream("*watch=true*resourceVersion=5*")
      .chunk(event("ADDED", object("c", 6)) + event("DELETED", object("a", 7)))
      .hangs();
  start();
  ASSERT_TRUE(turn([&] { return store.size() == 2 && store.find({"ns", "c"}); }));
  EXPECT_TRUE(store.synced());
  EXPECT_TRUE(state.synced);
  EXPECT_EQ(metric(R"(quartermaster_cache_synced{resource="configmaps"})"), 1);
  end();
}

/// The store must not claim a change that is still on its way.
TEST_F(reflector, the_store_knows_which_version_it_has_reached) {
  const json bookmark = {{"kind", "ConfigMap"}, {"metadata", {{"resourceVersion", "9"}}}};
  std::vector<std::uint64_t> while_put;
  store.observe([&](const thing*, const thing*) { while_put.push_back(store.version()); });
  api.on(method::get, list).answers(200, page({object("a", 7)}, 8, "next"));
  api.on(method::get, "*continue=next*").answers(200, page({object("b", 2)}, 8));
  auto& stream = api.on_stream("*watch=true*resourceVersion=8*");
  stream.chunk(event("BOOKMARK", bookmark)).chunk(event("MODIFIED", object("b", 11, "new"))).hangs();
  EXPECT_EQ(store.version(), 0U);
  start();
  ASSERT_TRUE(turn([&] { return store.version() == 11; }));
  EXPECT_EQ(while_put, (std::vector<std::uint64_t>{0, 0, 9})) << "after the list 8, after the bookmark 9";
  end();
}

TEST_F(reflector, F7_a_list_older_than_what_the_watch_sent_shows_that_the_server_was_restored) {
  api.on(method::get, list).answers(200, page({object("a", 7)}, 8));
  auto& stream = api.on_stream("*watch=true*resourceVersion=8*");
  stream.chunk(event("MODIFIED", object("a", 60)))
      .chunk(event("ERROR", {{"kind", "Status"}, {"reason", "Expired"}, {"code", 410}}));
  api.on(method::get, list).answers(200, page({object("a", 7)}, 40));
  api.on_stream("*watch=true*resourceVersion=40*").hangs();
  start();
  ASSERT_TRUE(turn([&] { return !falls.empty() && api.left() == 0; }));
  EXPECT_EQ(falls.front(), std::pair(60UL, 40UL));
  end();
}

// A lagging server and a bad proxy send old events; a list does not come out of an old cache.
TEST_F(reflector, F15_old_events_of_a_watch_are_no_sign_of_a_restored_server) {
  api.on(method::get, list).answers(200, page({object("a", 7)}, 8));
  auto& stream = api.on_stream("*watch=true*resourceVersion=8*");
  stream.chunk(event("MODIFIED", object("a", 60)) + event("MODIFIED", object("a", 20)))
      .chunk(event("ERROR", {{"kind", "Status"}, {"reason", "Expired"}, {"code", 410}}));
  api.on(method::get, list).answers(200, page({object("a", 60)}, 60));
  api.on_stream("*watch=true*resourceVersion=60*").hangs();
  start();
  ASSERT_TRUE(turn([&] { return api.left() == 0; }));
  EXPECT_TRUE(falls.empty());
  end();
}

TEST_F(reflector, a_streamed_list_reaches_a_version_only_when_it_is_complete) {
  json end_of_list = {
      {"kind", "ConfigMap"},
      {"metadata", {{"resourceVersion", "9"}, {"annotations", {{"k8s.io/initial-events-end", "true"}}}}}};
  api.on_stream("*sendInitialEvents=true*")
      .chunk(event("ADDED", object("a", 8)))
      .chunk(event("BOOKMARK", end_of_list))
      .hangs();
  std::vector<std::uint64_t> while_put;
  store.observe([&](const thing*, const thing*) { while_put.push_back(store.version()); });
  start(true);
  ASSERT_TRUE(turn([&] { return store.version() == 9; }));
  EXPECT_EQ(while_put, std::vector<std::uint64_t>{0});
  end();
}

TEST_F(reflector, F10_a_frame_in_pieces_is_one_event_and_half_a_frame_is_none) {
  const auto whole = event("ADDED", object("b", 6)), half = event("ADDED", object("c", 7));
  api.on(method::get, list).answers(200, page({object("a", 1)}, 5));
  auto& cut = api.on_stream(watch);
  for (const char byte : whole) cut.chunk(std::string(1, byte));
  cut.chunk(half.substr(0, half.size() / 2)).fails(errc::connect, "cut");
  first_backoff = 1h;  // no second watch
  start();
  ASSERT_TRUE(turn([&] { return store.find({"ns", "b"}) && !state.trouble.empty(); }));
  EXPECT_FALSE(store.find({"ns", "c"}));
  EXPECT_NE(state.trouble.find("cut"), std::string::npos);
  EXPECT_TRUE(store.synced()) << "what we know stays";
  end();
}

TEST_F(reflector, takes_a_streamed_list) {
  json end_of_list = {
      {"kind", "ConfigMap"},
      {"metadata", {{"resourceVersion", "9"}, {"annotations", {{"k8s.io/initial-events-end", "true"}}}}}};
  api.on_stream("*sendInitialEvents=true*")
      .chunk(event("ADDED", object("a", 3)) + event("ADDED", object("b", 2)))
      .chunk(event("BOOKMARK", end_of_list))
      .hangs();
  start(true);
  ASSERT_TRUE(turn([&] { return store.synced(); }));
  EXPECT_EQ(store.size(), 2U);
  end();
}

TEST_F(reflector, F17_lists_where_the_server_knows_no_streamed_list) {
  api.on_stream("*sendInitialEvents=true*").answers(422, R"({"kind":"Status","reason":"Invalid","code":422})");
  api.on(method::get, list).answers(200, page({object("a", 1)}, 5));
  api.on_stream(watch).hangs();
  start(true);
  ASSERT_TRUE(turn([&] { return store.synced() && api.left() == 0; }));
  EXPECT_FALSE(log.contains(" warn ")) << "an old server is nothing to warn of";
  end();
}

TEST_F(reflector, F11_a_deleted_object_that_cannot_be_read_is_gone_all_the_same) {
  auto bad = object("b", 7);
  bad["bad"] = true;
  api.on(method::get, list).answers(200, page({object("a", 1), object("b", 2)}, 5));
  api.on_stream(watch).chunk(event("MODIFIED", bad) + event("DELETED", bad) + event("ADDED", object("c", 8))).hangs();
  start();
  ASSERT_TRUE(turn([&] { return store.find({"ns", "c"}) != nullptr; }));
  EXPECT_FALSE(store.find({"ns", "b"}));
  EXPECT_EQ(metric(R"(quartermaster_cache_objects{resource="configmaps"})"), 2);
  end();
}

TEST_F(reflector, a_watch_that_does_not_work_is_told_of_and_the_cache_is_listed) {
  api.on(method::get, list).answers(200, page({object("a", 1)}, 5));
  const auto* refused = R"({"kind":"Status","reason":"InternalError","code":500})";
  for (int i = 0; i < 3; ++i) api.on_stream(watch).answers(500, refused);
  api.on(method::get, list).answers(200, page({object("b", 6)}, 7));
  api.on_stream("*watch=true*resourceVersion=7*").hangs();
  start();
  ASSERT_TRUE(turn([&] { return store.find({"ns", "b"}) != nullptr; }));
  EXPECT_FALSE(store.find({"ns", "a"}));
  EXPECT_EQ(broken, 1);
  EXPECT_TRUE(log.contains("the watch does not work"));
  EXPECT_GT(metric(R"(quartermaster_cache_last_contact_timestamp_seconds{resource="configmaps"})"), 1.7e9);
  end();
}

/// Its lists are empty, and its streams throw.
struct throwing_transport final : kube::transport {
  kube::task<kube::response> send(kube::request) override {
    kube::response out;
    out.status = 200;
    out.body = page({}, 5);
    co_return out;
  }
  kube::task<kube::response> stream(kube::request, kube::chunk_sink) override {
    throw std::runtime_error("a bug");
    co_return kube::response();
  }
};

TEST_F(reflector, an_exception_out_of_its_stream_ends_it) {
  throwing_transport bad;
  kube::watch_settings settings;
  settings.watch_list = false;
  std::string fatal;
  loop.on_fatal([&](std::string_view name) { fatal = name; });
  running = loop.spawn_essential("reflect", controller::reflect(bad, settings, store, reflecting));
  ASSERT_TRUE(turn([&] { return !running.running(); }));
  EXPECT_EQ(fatal, "reflect");
  EXPECT_TRUE(log.contains("a bug"));
}

TEST_F(reflector, F11_an_object_that_cannot_be_read_is_counted_logged_once_and_stops_nothing) {
  auto bad = object("b", 2);
  bad["bad"] = true;
  api.on(method::get, list).answers(200, page({object("a", 1), bad, object("c", 3)}, 5));
  api.on_stream(watch).chunk(event("MODIFIED", bad) + event("MODIFIED", bad) + event("ADDED", object("d", 8))).hangs();
  start();
  ASSERT_TRUE(turn([&] { return store.find({"ns", "d"}) != nullptr; }));
  EXPECT_EQ(store.size(), 3U);
  EXPECT_EQ(metric(R"(quartermaster_undecodable_total{resource="configmaps"})"), 3);
  EXPECT_EQ(std::ranges::count_if(log.lines(),
                                  [](const auto& line) { return line.find("cannot be decoded") != std::string::npos; }),
            1);
  end();
}

TEST_F(reflector, F11_an_object_that_becomes_unreadable_has_not_vanished) {
  auto bad = object("b", 7);
  bad["bad"] = true;
  int gone = 0;
  store.observe([&](const thing*, const thing* after) { gone += after == nullptr; });
  api.on(method::get, list).answers(200, page({object("a", 1), object("b", 2, "known")}, 5));
  api.on_stream(watch).answers(410, R"({"kind":"Status","reason":"Expired","code":410})");
  api.on(method::get, list).answers(200, page({object("a", 1), bad}, 9));
  api.on_stream(watch).hangs();
  start();
  ASSERT_TRUE(turn([&] { return api.left() == 0; }));
  settle();
  EXPECT_EQ(gone, 0);
  ASSERT_TRUE(store.find({"ns", "b"}));
  EXPECT_EQ(store.find({"ns", "b"})->value, "known");
  end();
}

TEST_F(reflector, F8_what_vanished_behind_our_back_is_reported_as_deleted) {
  std::vector<std::string> gone;
  store.observe([&](const thing* before, const thing* after) {
    if (!after) gone.push_back(before->key.name);
  });
  api.on(method::get, list).answers(200, page({object("a", 1), object("b", 2)}, 5));
  api.on_stream(watch).chunk(event(
      "ERROR",
      json{{"kind", "Status"}, {"apiVersion", "v1"}, {"status", "Failure"}, {"reason", "Expired"}, {"code", 410}}));
  api.on(method::get, list).answers(200, page({object("a", 1)}, 9));
  api.on_stream("*resourceVersion=9*").hangs();
  start();
  ASSERT_TRUE(turn([&] { return api.left() == 0; }));
  settle();
  EXPECT_EQ(gone, std::vector<std::string>{"b"});
  end();
}

TEST_F(reflector, F20_a_missing_right_is_loud_and_not_final) {
  api.on(method::get, list)
      .answers(403, R"({"kind":"Status","reason":"Forbidden","code":403,"message":"no right to list configmaps"})");
  api.on(method::get, list).answers(200, page({object("a", 1)}, 5));
  api.on_stream(watch).hangs();
  start();
  ASSERT_TRUE(turn([&] { return state.forbidden; }));
  EXPECT_EQ(forbidden, 1);
  EXPECT_TRUE(log.contains("no right to list configmaps"));
  EXPECT_EQ(metric(R"(quartermaster_watch_forbidden{resource="configmaps"})"), 1);
  ASSERT_TRUE(turn([&] { return store.synced(); }));
  EXPECT_FALSE(state.forbidden);
  EXPECT_EQ(metric(R"(quartermaster_watch_forbidden{resource="configmaps"})"), 0);
  end();
}

TEST_F(reflector, F4_a_server_that_has_just_started_refuses_for_a_moment_and_nobody_is_told) {
  patience = controller::milliseconds(60'000);
  api.on(method::get, list)
      .answers(403, R"({"kind":"Status","reason":"Forbidden","code":403,"message":"RBAC is not read yet"})");
  api.on(method::get, list).answers(200, page({object("a", 1)}, 5));
  api.on_stream(watch).hangs();
  start();
  ASSERT_TRUE(turn([&] { return state.forbidden; }));
  EXPECT_EQ(metric(R"(quartermaster_watch_forbidden{resource="configmaps"})"), 1);
  ASSERT_TRUE(turn([&] { return store.synced(); }));
  EXPECT_FALSE(state.forbidden);
  EXPECT_EQ(metric(R"(quartermaster_watch_forbidden{resource="configmaps"})"), 0);
  EXPECT_EQ(forbidden, 0);
  EXPECT_TRUE(rights.empty());
  EXPECT_FALSE(log.contains("RBAC is not read yet"));
  end();
}

TEST_F(reflector, F20_a_right_that_stays_missing_is_told_when_patience_is_over) {
  patience = controller::milliseconds(1);
  const auto* const refusal = R"({"kind":"Status","reason":"Forbidden","code":403,"message":"no right to list"})";
  for (int i = 0; i < 2; ++i) api.on(method::get, list).answers(403, refusal);
  api.on(method::get, list).answers(200, page({object("a", 1)}, 5));
  api.on_stream(watch).hangs();
  start();
  ASSERT_TRUE(turn([&] { return store.synced(); }));
  EXPECT_EQ(forbidden, 1);
  EXPECT_TRUE(log.contains("no right to list"));
  EXPECT_EQ(rights, (std::vector<bool>{true, false}));
  end();
}

TEST_F(reflector, an_exception_of_an_observer_is_counted_and_the_stream_goes_on) {
  store.observe([](const thing*, const thing* after) {
    if (after && after->key.name == "b") throw std::runtime_error("a bug");
  });
  api.on(method::get, list).answers(200, page({object("a", 1)}, 5));
  api.on_stream(watch).chunk(event("ADDED", object("b", 6)) + event("ADDED", object("c", 7))).hangs();
  start();
  ASSERT_TRUE(turn([&] { return store.find({"ns", "c"}) != nullptr; }));
  EXPECT_EQ(metric(R"(quartermaster_watch_errors_total{resource="configmaps",code="exception"})"), 1);
  end();
}

TEST_F(reflector, can_be_cancelled_while_it_lists_waits_or_watches) {
  api.on(method::get, list).hangs();
  start();
  settle();
  end();
  api.on(method::get, list).fails(errc::connect);
  first_backoff = 1h;
  start();
  settle();
  end();
}

/// A server whose answers the test gives by hand, and its clock.
struct driven_transport final : kube::transport {
  struct exchange {
    kube::request request;
    kube::chunk_sink sink;
    std::optional<kube::result<kube::response>> answer;
    std::unique_ptr<boost::asio::steady_timer> woken;
  };
  std::optional<exchange> out;

  kube::task<kube::response> send(kube::request request) override { return stream(std::move(request), {}); }
  kube::task<kube::response> stream(kube::request request, kube::chunk_sink sink) override {
    const auto executor = co_await boost::asio::this_coro::executor;
    out.emplace(std::move(request), std::move(sink), std::nullopt,
                std::make_unique<boost::asio::steady_timer>(executor, boost::asio::steady_timer::time_point::max()));
    auto& open = *out;
    co_await open.woken->async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    auto answer = open.answer.value_or(std::unexpected(kube::error{errc::cancelled, 0, "cancelled", {}}));
    out.reset();
    co_return answer;
  }
  void answers(int status, std::string body = {}) {
    kube::response made;
    made.status = status;
    made.body = std::move(body);
    out->answer = std::move(made);
    out->woken->cancel();
  }
  void cuts() {
    out->answer = std::unexpected(kube::error{errc::connect, 0, "cut", {}});
    out->woken->cancel();
  }
  /// False ends the stream, as in the real transport.
  void sends(const std::string& bytes) {
    if (!out->sink(bytes)) cuts();
  }
};

struct gaps : controller_test::rig {
  driven_transport api;
  controller::store<thing> store;
  controller::reflector_metrics reflecting{metrics};
  controller::spawned running;
  controller::milliseconds now = 1'000s;
  std::string seen;  ///< gaps and changes in their order, "gap@1000 +a -b"
  int breaks = 0;

  void start(bool watch_list = false) {
    store.observe([this](const thing* before, const thing* after) {
      seen += (before ? after ? " ~" : " -" : " +") + (after ? after : before)->key.name;
    });
    kube::watch_settings settings;
    settings.watch_list = watch_list;
    settings.first_backoff = 1ms;
    controller::reflector_options options;
    options.now = [this] { return now; };
    options.on_gap = [this](controller::milliseconds since) { seen += " gap@" + std::to_string(since / 1s); };
    options.on_break = [this] { ++breaks; };
    running = loop.spawn("reflect", controller::reflect(api, settings, store, reflecting, options));
  }
  void end() {
    running.cancel();
    EXPECT_TRUE(turn([&] { return !running.running(); }));
  }
  /// Lets `time` pass, then waits for the next request: "list", "watch-list" or "watch".
  std::string asks(controller::milliseconds time = 0ms) {
    settle();
    now += time;
    if (!turn([&] { return api.out.has_value(); })) return "nothing";
    const auto& target = api.out->request.target;
    return !target.contains("watch=true") ? "list" : target.contains("sendInitialEvents") ? "watch-list" : "watch";
  }
  std::string took() { return std::exchange(seen, {}); }
  /// A list of a, asked for at 1000 s, and a watch that has been open for long, asked for at 1001 s.
  void begin_and_watch() {
    start();
    ASSERT_EQ(asks(), "list");
    now += 1s;
    api.answers(200, page({object("a", 1)}, 5));
    ASSERT_EQ(asks(), "watch");
    api.out->request.opened();
    now += 9s;
    api.sends(event("ADDED", object("b", 6)));
    EXPECT_EQ(took(), " +a +b") << "news of a quiet watch are of now, 1010 s";
  }
};

TEST_F(gaps, are_told_before_the_first_events_of_a_watch_that_follows_one_that_ended) {
  begin_and_watch();
  now += 100s;
  api.answers(200);
  ASSERT_EQ(asks(2s), "watch");
  api.sends(event("DELETED", object("b", 7)));
  now += 4s;
  api.sends(event("ADDED", object("c", 8)));
  now += 2s;
  api.sends(event("ADDED", object("d", 9)));
  EXPECT_EQ(took(), " gap@1110 -b gap@1110 +c +d") << "the watch was whole until its end";
  end();
}

// Between two watches the server may have been given other data.
TEST_F(gaps, F7_a_watch_that_ends_before_its_time_is_a_break) {
  begin_and_watch();
  EXPECT_EQ(breaks, 0);
  now += 200s;
  api.sends(event("ADDED", object("c", 7)));
  now += 100s;
  api.answers(200);
  ASSERT_EQ(asks(2s), "watch");
  EXPECT_EQ(breaks, 0) << "the server ends a watch after the time that was asked for";
  now += 100s;
  api.answers(200);
  ASSERT_EQ(asks(2s), "watch");
  EXPECT_EQ(breaks, 1) << "a server that stops ends its watches in good order";
  api.cuts();
  ASSERT_EQ(asks(20s), "watch");
  EXPECT_EQ(breaks, 2);
  api.answers(503, R"({"kind":"Status","reason":"ServiceUnavailable","code":503})");
  ASSERT_EQ(asks(60s), "watch");
  EXPECT_EQ(breaks, 3);
  api.answers(403, R"({"kind":"Status","reason":"Forbidden","code":403})");
  ASSERT_NE(asks(60s), "nothing");
  EXPECT_EQ(breaks, 3) << "a server that refuses is there";
  end();
}

TEST_F(gaps, begin_with_the_last_word_of_a_stream_that_was_cut) {
  begin_and_watch();
  now += 40s;
  api.cuts();
  ASSERT_EQ(asks(2s), "watch");
  api.cuts();  // the server is away
  ASSERT_EQ(asks(125s), "watch");
  api.answers(503, R"({"kind":"Status","reason":"ServiceUnavailable","code":503})");
  ASSERT_EQ(asks(60s), "watch");
  api.out->request.opened();
  now += 1s;
  api.sends(event("DELETED", object("b", 7)));
  EXPECT_EQ(took(), " gap@1010 -b");
  api.cuts();  // at once: no one knows whether that was all
  ASSERT_EQ(asks(9s), "watch");
  api.sends(event("DELETED", object("a", 8)));
  EXPECT_EQ(took(), " gap@1010 -a");
  now += 10s;
  api.sends(event("ADDED", object("c", 9)));
  EXPECT_EQ(took(), " +c");
  end();
}

TEST_F(gaps, are_told_before_a_list_replaces_what_was_known) {
  begin_and_watch();
  now += 40s;
  api.sends(event("ERROR", {{"kind", "Status"}, {"status", "Failure"}, {"reason", "Expired"}, {"code", 410}}));
  ASSERT_EQ(asks(30s), "list");
  now += 1s;
  api.answers(200, page({object("c", 8)}, 9, "next"));
  ASSERT_EQ(asks(), "list");
  now += 20s;
  api.answers(200, page({object("d", 9)}, 9));
  ASSERT_EQ(asks(), "watch");
  EXPECT_TRUE(seen == " gap@1010 +c gap@1010 +d -a -b" || seen == " gap@1010 +c gap@1010 +d -b -a") << seen;
  took();
  api.sends(event("DELETED", object("c", 10)));
  EXPECT_EQ(took(), " gap@1080 -c") << "the list showed the moment when its first page was asked for";
  end();
}

TEST_F(gaps, end_with_a_streamed_list) {
  const json last = {
      {"kind", "ConfigMap"},
      {"metadata", {{"resourceVersion", "9"}, {"annotations", {{"k8s.io/initial-events-end", "true"}}}}}};
  start(true);
  ASSERT_EQ(asks(), "watch-list");
  now += 3s;
  api.sends(event("ADDED", object("a", 1)) + event("ADDED", object("b", 2)));
  api.sends(event("BOOKMARK", last));
  EXPECT_EQ(took(), " +a +b") << "the first list";
  api.sends(event("DELETED", object("b", 10)));
  EXPECT_EQ(took(), " gap@1000 -b") << "in the backlog of the list";
  now += 100s;
  api.sends(event("ADDED", object("b", 11)));
  api.answers(410, "");
  ASSERT_EQ(asks(20s), "watch-list");
  api.out->request.opened();
  now += 50s;
  api.sends(event("ADDED", object("a", 1)));
  api.cuts();  // a list that is not complete says nothing
  ASSERT_EQ(asks(20s), "watch-list");
  api.sends(event("ADDED", object("a", 1)));
  api.sends(event("BOOKMARK", last));
  EXPECT_EQ(took(), " +b gap@1103 gap@1103 gap@1103 -b");
  end();
}

}  // namespace
