#include "controller/elector.hpp"

#include "controller/fenced_transport.hpp"
#include "controller/leader_label.hpp"
#include "kube/client.hpp"
#include "test/controller/rig.hpp"
#include "test/facts_in.hpp"

namespace {

using kube::errc;
using kube::method;
using namespace std::chrono_literals;
using nlohmann::json;

using controller::milliseconds;

constexpr const char* lease_path = "/apis/coordination.k8s.io/v1/namespaces/quartermaster/leases/quartermaster*";
constexpr const char* leases_path = "/apis/coordination.k8s.io/v1/namespaces/quartermaster/leases?*";

std::string lease_of(const std::string& holder, const std::string& version, int transitions = 3) {
  return json{{"apiVersion", "coordination.k8s.io/v1"},
              {"kind", "Lease"},
              {"metadata",
               {{"name", "quartermaster"},
                {"namespace", "quartermaster"},
                {"resourceVersion", version},
                {"labels", {{"theirs", "kept"}}}}},
              {"spec",
               {{"holderIdentity", holder},
                {"leaseDurationSeconds", 15},
                {"leaseTransitions", transitions},
                {"acquireTime", "2026-01-01T00:00:00.000000Z"},
                {"renewTime", "2026-01-01T00:00:00.000000Z"}}}}
      .dump();
}

struct elector : controller_test::rig {
  kube_test::scripted_transport api;
  std::string lost;
  std::optional<controller::version_fall> fall;
  int acquired = 0;

  controller::elector::options options(milliseconds retry = 10ms) {
    controller::elector::options out;
    out.lease = {"quartermaster", "quartermaster"};
    out.timing.identity = "me";
    out.timing.retry = retry;
    out.on_acquired = [this] { ++acquired; };
    out.on_lost = [this](std::string_view reason) { lost = reason; };
    out.on_restored = [this](std::string_view, const controller::version_fall& seen) { fall = seen; };
    return out;
  }
};

TEST_F(elector, makes_the_lease_when_there_is_none_and_renews_it) {
  controller::elector under_test(api, options(), metrics);
  api.on(method::get, lease_path).answers(404);
  api.on(method::post, leases_path)
      .body_has(R"("holderIdentity":"me")")
      .body_has(R"("leaseDurationSeconds":15)")
      .answers(201, lease_of("me", "5", 0));
  api.on(method::put, lease_path).body_has(R"("resourceVersion":"5")").answers(200, lease_of("me", "6", 0));
  api.on(method::put, lease_path).body_has(R"("resourceVersion":"6")").answers(200, lease_of("me", "7", 0));
  api.on(method::put, lease_path).hangs();
  const auto running = loop.spawn("elect", under_test.run());
  ASSERT_TRUE(turn([&] { return api.left() == 0; }));
  EXPECT_TRUE(under_test.held());
  EXPECT_EQ(acquired, 1);
  EXPECT_EQ(metric("quartermaster_leader"), 1);
  for (const auto& sent : api.seen()) EXPECT_EQ(sent.channel, kube::lane::lease);
  running.cancel();
  EXPECT_TRUE(turn([&] { return !running.running(); }));
}

TEST_F(elector, a_redirect_renews_nothing) {
  controller::elector under_test(api, options(), metrics);
  api.on(method::get, lease_path).answers(404);
  api.on(method::post, leases_path).answers(302, lease_of("me", "5", 0));
  api.on(method::get, lease_path).hangs();
  const auto running = loop.spawn("elect", under_test.run());
  ASSERT_TRUE(turn([&] { return api.left() == 0; }));
  EXPECT_FALSE(under_test.held());
  running.cancel();
  EXPECT_TRUE(turn([&] { return !running.running(); }));
}

TEST_F(elector, takes_over_a_released_lease_and_keeps_what_is_not_ours) {
  controller::elector under_test(api, options(), metrics);
  api.on(method::get, lease_path).answers(200, lease_of("", "9"));
  api.on(method::put, lease_path)
      .body_has(R"("leaseTransitions":4)")
      .body_has(R"("theirs":"kept")")
      .body_has(R"("resourceVersion":"9")")
      .answers(200, lease_of("me", "10", 4));
  api.on(method::put, lease_path).hangs();
  const auto running = loop.spawn("elect", under_test.run());
  ASSERT_TRUE(turn([&] { return under_test.held() && api.left() == 0; }));
  running.cancel();
  EXPECT_TRUE(turn([&] { return !running.running(); }));
}

TEST_F(elector, loses_at_once_when_another_wrote_the_lease) {
  controller::elector under_test(api, options(), metrics);
  api.on(method::get, lease_path).answers(404);
  api.on(method::post, leases_path).answers(201, lease_of("me", "5", 0));
  api.on(method::put, lease_path).answers(409);
  api.on(method::get, lease_path).answers(200, lease_of("other", "6"));
  const auto running = loop.spawn("elect", under_test.run());
  ASSERT_TRUE(turn([&] { return !running.running(); }));
  EXPECT_NE(lost.find("other"), std::string::npos) << lost;
  EXPECT_FALSE(under_test.held());
}

TEST_F(elector, F27_loses_when_the_api_server_is_silent_until_the_deadline) {
  auto option = options();
  milliseconds now = 1'000'000ms;
  option.now = [&now] { return now; };
  controller::elector under_test(api, option, metrics);
  api.on(method::get, lease_path).answers(404);
  api.on(method::post, leases_path).answers(201, lease_of("me", "5", 0));
  api.on(method::put, lease_path).fails(errc::timeout, "no answer");
  const auto running = loop.spawn("elect", under_test.run());
  ASSERT_TRUE(turn([&] {
    if (acquired) now += 11ms;
    if (api.left() == 0) now += 10'000ms;
    return !running.running();
  }));
  EXPECT_NE(lost.find("no answer"), std::string::npos) << lost;
}

TEST_F(elector, F7_a_leader_ends_when_the_server_comes_back_with_older_data) {
  controller::elector under_test(api, options(), metrics);
  api.on(method::get, lease_path).answers(404);
  api.on(method::post, leases_path).answers(201, lease_of("me", "50", 0));
  api.on(method::put, lease_path).fails(errc::connect, "refused");
  api.on(method::get, lease_path).answers(503);
  api.on(method::get, lease_path).answers(200, lease_of("other", "40"));
  const auto running = loop.spawn("elect", under_test.run());
  ASSERT_TRUE(turn([&] { return api.left() <= 1 || !running.running(); }));
  EXPECT_EQ(under_test.remaining_confirmed(), 0ms) << "nothing is bound before the server has answered";
  ASSERT_TRUE(turn([&] { return !running.running(); }));
  ASSERT_TRUE(fall);
  EXPECT_EQ(fall->seen, 50U);
  EXPECT_EQ(fall->version, 40U);
  EXPECT_FALSE(under_test.held());
  EXPECT_EQ(lost, "") << "one reason, one line";
  EXPECT_FALSE(log.contains("holder=other"));
}

TEST_F(elector, F7_a_leader_whose_watch_broke_renews_at_once_and_binds_nothing_until_then) {
  controller::elector under_test(api, options(1h), metrics);
  api.on(method::get, lease_path).answers(404);
  api.on(method::post, leases_path).answers(201, lease_of("me", "50", 0));
  const auto running = loop.spawn("elect", under_test.run());
  ASSERT_TRUE(turn([&] { return under_test.held(); }));
  settle();
  EXPECT_GT(under_test.remaining_confirmed(), 0ms);
  api.on(method::put, lease_path).answers(200, lease_of("me", "40", 0));
  under_test.doubt();
  EXPECT_EQ(under_test.remaining_confirmed(), 0ms);
  EXPECT_TRUE(under_test.held());
  ASSERT_TRUE(turn([&] { return !running.running(); })) << "no hour is waited for";
  ASSERT_TRUE(fall);
  EXPECT_EQ(fall->version, 40U);
}

TEST_F(elector, F7_one_that_waits_ends_too) {
  controller::elector under_test(api, options(), metrics);
  api.on(method::get, lease_path).answers(200, lease_of("other", "50"));
  api.on(method::get, lease_path).answers(200, lease_of("other", "52"));
  api.on(method::get, lease_path).answers(200, lease_of("", "40"));
  const auto running = loop.spawn("elect", under_test.run());
  ASSERT_TRUE(turn([&] { return !running.running(); }));
  ASSERT_TRUE(fall);
  EXPECT_EQ(fall->seen, 52U);
  EXPECT_EQ(fall->version, 40U);
}

// The line it logs is what test/faults reads.
TEST(start_afresh, ends_the_process_with_code_1) {
  EXPECT_EXIT(controller::start_afresh("leases", {52, 40}), testing::ExitedWithCode(1), "");
}

TEST_F(elector, releases_with_an_empty_holder) {
  controller::elector under_test(api, options(), metrics);
  api.on(method::get, lease_path).answers(404);
  api.on(method::post, leases_path).answers(201, lease_of("me", "5", 0));
  api.on(method::put, lease_path).hangs();
  const auto running = loop.spawn("elect", under_test.run());
  ASSERT_TRUE(turn([&] { return under_test.held() && api.left() == 0; }));
  running.cancel();
  ASSERT_TRUE(turn([&] { return !running.running(); }));
  api.on(method::put, lease_path)
      .body_has(R"("holderIdentity":"")")
      .body_has(R"("leaseDurationSeconds":1)")
      .answers(200, lease_of("", "6"));
  const auto done = kube_test::run(loop.context(), under_test.release());
  EXPECT_TRUE(done);
  EXPECT_FALSE(under_test.held());
  EXPECT_EQ(lost, "") << "a release is not a loss";
}

TEST_F(elector, releases_a_lease_whose_renewal_was_cut_off) {
  controller::elector under_test(api, options(), metrics);
  api.on(method::get, lease_path).answers(404);
  api.on(method::post, leases_path).answers(201, lease_of("me", "5", 0));
  api.on(method::put, lease_path).hangs();
  const auto running = loop.spawn("elect", under_test.run());
  ASSERT_TRUE(turn([&] { return under_test.held() && api.left() == 0; }));
  running.cancel();
  ASSERT_TRUE(turn([&] { return !running.running(); }));
  api.on(method::put, lease_path).body_has(R"("resourceVersion":"5")").answers(409);
  api.on(method::get, lease_path).answers(200, lease_of("me", "6", 0));
  api.on(method::put, lease_path)
      .body_has(R"("resourceVersion":"6")")
      .body_has(R"("holderIdentity":"")")
      .answers(200, lease_of("", "7"));
  EXPECT_TRUE(kube_test::run(loop.context(), under_test.release()));
}

// Otherwise no one leads until the lease of one that has gone expires.
TEST_F(elector, F58_releases_a_lease_that_it_took_without_hearing_of_it) {
  controller::elector under_test(api, options(), metrics);
  api.on(method::get, lease_path).answers(200, lease_of("", "5"));
  api.on(method::put, lease_path).body_has(R"("holderIdentity":"me")").hangs();
  const auto running = loop.spawn("elect", under_test.run());
  ASSERT_TRUE(turn([&] { return api.left() == 0; }));
  running.cancel();
  ASSERT_TRUE(turn([&] { return !running.running(); }));
  ASSERT_FALSE(under_test.held());
  api.on(method::get, lease_path).answers(200, lease_of("", "5"));  // the write has not arrived yet
  api.on(method::get, lease_path).answers(200, lease_of("me", "6"));
  api.on(method::put, lease_path)
      .body_has(R"("resourceVersion":"6")")
      .body_has(R"("holderIdentity":"")")
      .answers(200, lease_of("", "7"));
  EXPECT_TRUE(kube_test::run(loop.context(), under_test.release()));
  EXPECT_EQ(api.left(), 0u);
}

TEST_F(elector, leaves_the_lease_of_another_alone_where_its_own_write_never_came_to_be) {
  controller::elector under_test(api, options(), metrics);
  api.on(method::get, lease_path).answers(200, lease_of("", "5"));
  api.on(method::put, lease_path).hangs();
  const auto running = loop.spawn("elect", under_test.run());
  ASSERT_TRUE(turn([&] { return api.left() == 0; }));
  running.cancel();
  ASSERT_TRUE(turn([&] { return !running.running(); }));
  api.on(method::get, lease_path).answers(200, lease_of("other", "6"));
  api.on(method::get, lease_path).answers(200, lease_of("other", "6"));
  EXPECT_TRUE(kube_test::run(loop.context(), under_test.release()));
  EXPECT_EQ(api.left(), 0u);
}

TEST(identity, differs_from_start_to_start) {
  EXPECT_NE(controller::make_identity(), controller::make_identity());
  EXPECT_NE(controller::make_identity().find('_'), std::string::npos);
}

struct fence : controller_test::rig {
  kube_test::scripted_transport api;
  controller::milliseconds left{0};
  controller::counter& refused = metrics.make_counter("refused_total", "Refused.");
  controller::fenced_transport fenced{api, [this] { return left; }, refused};

  kube::result<kube::response> send(kube::request request) {
    return kube_test::run(loop.context(), fenced.send(std::move(request)));
  }
  static kube::request of(method verb, kube::lane lane = kube::lane::unary) {
    kube::request out;
    out.verb = verb;
    out.target = "/api/v1/nodes/gpu-1?fieldManager=quartermaster";
    out.channel = lane;
    return out;
  }
};

TEST_F(fence, F28_refuses_every_write_while_the_lease_is_not_held) {
  for (const auto verb : {method::post, method::put, method::patch, method::del}) {
    const auto answer = send(of(verb));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, errc::cancelled);
    EXPECT_THAT(answer.error().message, words::has_in_order({"leader", "/api/v1/nodes/gpu-1"}));
  }
  EXPECT_EQ(refused.value(), 4);
  EXPECT_TRUE(api.seen().empty());
}

TEST_F(fence, lets_reads_and_the_lease_itself_through) {
  api.on(method::get, "/api/v1/nodes/gpu-1*");
  EXPECT_TRUE(send(of(method::get)));
  api.on(method::put, "/api/v1/nodes/gpu-1*");
  EXPECT_TRUE(send(of(method::put, kube::lane::lease)));
}

TEST_F(fence, F28_a_write_may_not_outlast_the_lease) {
  left = 7000ms;
  api.on(method::patch, "/api/v1/nodes/gpu-1*");
  api.on(method::patch, "/api/v1/nodes/gpu-1*");
  EXPECT_TRUE(send(of(method::patch)));
  EXPECT_EQ(api.seen()[0].deadline, 7000ms);
  // Asked again once it has a place and a connection: it may have waited for them, or the process was frozen.
  ASSERT_TRUE(api.seen()[0].allowed);
  EXPECT_TRUE(api.seen()[0].allowed());
  left = 0ms;
  EXPECT_FALSE(api.seen()[0].allowed());
  left = 7000ms;
  auto quick = of(method::patch);
  quick.deadline = 3000ms;
  EXPECT_TRUE(send(quick));
  EXPECT_EQ(api.seen()[1].deadline, 3000ms);
}

struct leader_label : controller_test::rig {
  kube_test::scripted_transport api;
  kube::client client{api};
  controller::own_pod self{{"quartermaster", "q-1"}};
};

TEST_F(leader_label, moves_from_whoever_bears_it_to_us) {
  api.on(method::get, "/api/v1/namespaces/quartermaster/pods?*labelSelector=quartermaster.io*leader*true*")
      .answers(200, R"({"items":[{"metadata":{"name":"q-0","uid":"u0"}},{"metadata":{"name":"q-1","uid":"u1"}}]})");
  api.on(method::patch, "/api/v1/namespaces/quartermaster/pods/q-0*")
      .body_has(R"("quartermaster.io/leader":null)")
      .body_has(R"("uid":"u0")")
      .answers(404);
  api.on(method::patch, "/api/v1/namespaces/quartermaster/pods/q-1*")
      .body_has(R"("quartermaster.io/leader":"true")")
      .answers(200, "{}");
  EXPECT_TRUE(kube_test::run(loop.context(), controller::mark_leader(client, self)));
}

TEST_F(leader_label, is_tried_again_until_it_is_set) {
  api.on(method::get, "/api/v1/namespaces/quartermaster/pods?*").answers(500);
  api.on(method::get, "/api/v1/namespaces/quartermaster/pods?*").answers(200, R"({"items":[]})");
  api.on(method::patch, "/api/v1/namespaces/quartermaster/pods/q-1*").answers(200, "{}");
  EXPECT_TRUE(kube_test::run(loop.context(), controller::mark_leader(client, self)));
}

TEST_F(leader_label, is_taken_off_at_a_clean_release) {
  api.on(method::patch, "/api/v1/namespaces/quartermaster/pods/q-1*")
      .body_has(R"("quartermaster.io/leader":null)")
      .answers(200, "{}");
  EXPECT_TRUE(kube_test::run(loop.context(), controller::unmark_leader(client, self)));
}

TEST_F(leader_label, does_nothing_outside_a_cluster) {
  EXPECT_TRUE(kube_test::run(loop.context(), controller::mark_leader(client, {})));
  EXPECT_TRUE(kube_test::run(loop.context(), controller::unmark_leader(client, {})));
}

}  // namespace
