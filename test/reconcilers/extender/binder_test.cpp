#include "reconcilers/extender/binder.hpp"

#include <gmock/gmock.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <deque>
#include <exception>

#include "controller/clock.hpp"
#include "controller/sleep.hpp"
#include "test/facts_in.hpp"
#include "test/reconcilers/extender/rig.hpp"
#include "test/words.hpp"

namespace extender_test {
namespace {

using namespace reconcilers::extender;
using reconcilers::recording_transport;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct binder_test : rig {
  recording_transport transport;
  kube::client api{transport};
  fence earlier{{loop, api, known.pods, [this](const kube::pod& pod) { return asks(pod, book.keys()); }, "term-1", {}}};
  controller::milliseconds lease = std::chrono::seconds(9);
  binder subject{{loop, api, known.pods, known.nodes, book, earlier, [this] { return lease; }}, metrics};
  json unbound = json::array();                          ///< what the list of pods without a node has
  std::deque<kube::result<kube::response>> to_bindings;  ///< answers; then 201
  std::map<std::string, json> pods;                      ///< GET by name
  int seals = 0;

  binder_test() {
    known.nodes.put(vgpu_node("a", 1));
    transport.answer = [this](const kube::request& request) -> kube::result<kube::response> { return answer(request); };
  }
  kube::result<kube::response> answer(const kube::request& request) {
    const auto path = request.target.substr(0, request.target.find('?'));
    if (path == "/api/v1/pods")
      return recording_transport::answered(200, {{"metadata", {{"resourceVersion", "50"}}}, {"items", unbound}});
    if (is_seal(request)) {
      ++seals;
      return recording_transport::answered(200, json::object());
    }
    if (request.verb == kube::method::get) {
      const auto match = pods.find(path.substr(path.rfind('/') + 1));
      if (match == pods.end()) return recording_transport::refused(404, "NotFound");
      return recording_transport::answered(200, match->second);
    }
    if (to_bindings.empty()) return recording_transport::answered(201, json::object());
    auto out = std::move(to_bindings.front());
    to_bindings.pop_front();
    return out;
  }
  static kube::result<kube::response> timed_out() {
    return std::unexpected(kube::error{kube::errc::timeout, 0, "no answer within 3 s", {}});
  }
  void lead() {
    kube_test::run(loop.context(), earlier.close());
    known.pods.reach(50);  // as young as the list
  }
  std::string bind(const kube::pod& pod, const std::string& node_name = "a") {
    return kube_test::run(loop.context(), subject.bind({pod.key, pod.id, node_name}));
  }
  std::vector<json> bindings() const {
    std::vector<json> out;
    for (const auto& entry : transport.sent)
      if (entry.target.ends_with("/binding")) out.push_back(json::parse(entry.body));
    return out;
  }
};

TEST_F(binder_test, a_binding_is_one_write_with_all_that_was_decided) {
  lead();
  const auto pod = share("p", 20, 8);
  known.pods.put(pod);
  transport.sent.clear();
  EXPECT_EQ(bind(pod), "");
  ASSERT_THAT(transport.sent, SizeIs(1));
  EXPECT_EQ(transport.sent[0].deadline, std::chrono::seconds(3));
  const auto body = bindings().at(0);
  EXPECT_EQ(body["target"]["name"], "a");
  EXPECT_EQ(body["metadata"]["uid"], pod.id.to_string());
  EXPECT_EQ(body["metadata"]["resourceVersion"], std::to_string(pod.resource_version));
  EXPECT_THAT(body["metadata"]["annotations"]["quartermaster.io/placement"].get<std::string>(), HasSubstr("\"a/0\""));
  EXPECT_EQ(used("a", 0).cores, 20) << "assumed until the watch shows it";
}

TEST_F(binder_test, F42_the_last_share_goes_to_one) {
  lead();
  const auto first = share("p", 60, 8), two = share("q", 60, 8);
  known.pods.put(first);
  known.pods.put(two);
  EXPECT_EQ(bind(first), "");
  EXPECT_THAT(bind(two), HasSubstr("cores"));
  EXPECT_THAT(bindings(), SizeIs(1));
}

TEST_F(binder_test, S58_nothing_is_bound_to_a_node_that_changes_its_mode) {
  lead();
  const auto pod = share("p", 20, 8);
  known.pods.put(pod);
  auto changing = switching(vgpu_node("a", 1));
  changing.resource_version = next_version();
  known.nodes.put(changing);
  EXPECT_EQ(bind(pod), "node a: " + words::english("engine.reason.changes_mode"));
  EXPECT_THAT(bindings(), testing::IsEmpty());
}

TEST_F(binder_test, F41_bind_twice_of_a_pod_that_is_gone_or_another) {
  lead();
  auto pod = share("p", 20, 8);
  known.pods.put(pod);
  EXPECT_EQ(bind(pod), "");
  auto bound = pod;
  bound.node_name = "a";
  bound.resource_version = next_version();
  known.pods.put(bound);
  EXPECT_EQ(bind(pod), "") << "it is where it was asked to be";
  EXPECT_THAT(bind(pod, "b"), HasSubstr("bound to a already"));
  auto old = pod;
  old.id = kube::uid::parse("old");
  pods["p"] = document(bound);
  EXPECT_THAT(bind(old), HasSubstr("has uid"));
  EXPECT_THAT(bind(share("never", 1, 1)), HasSubstr("404"));
  EXPECT_THAT(bindings(), SizeIs(1));
  EXPECT_EQ(used("a", 0).cores, 20);
}

TEST_F(binder_test, F41_bind_twice_before_the_watch_shows_the_first_gets_the_same_answer) {
  lead();
  const auto pod = share("p", 60, 8);
  known.pods.put(pod);
  EXPECT_EQ(bind(pod), "");
  EXPECT_EQ(bind(pod), "") << "its own booking is not in its way";
  EXPECT_THAT(bind(pod, "b"), HasSubstr("is bound to a "));
  EXPECT_THAT(bindings(), SizeIs(1));
  EXPECT_EQ(used("a", 0).cores, 60);
}

TEST_F(binder_test, a_pod_the_store_has_not_yet_is_read_once) {
  lead();
  const auto pod = share("p", 20, 8);
  pods["p"] = document(pod);
  transport.sent.clear();
  EXPECT_EQ(bind(pod), "");
  ASSERT_THAT(transport.sent, SizeIs(2));
  EXPECT_EQ(transport.sent[0].verb, kube::method::get);
}

TEST_F(binder_test, what_the_server_refuses_is_given_back_at_once) {
  lead();
  const auto pod = share("p", 20, 8);
  known.pods.put(pod);
  to_bindings.push_back(recording_transport::refused(422, "Invalid", "no such node"));
  EXPECT_THAT(bind(pod), HasSubstr("no such node"));
  EXPECT_EQ(used("a", 0), quota::card_use{});
}

TEST_F(binder_test, a_pod_that_was_written_meanwhile_is_read_and_tried_once_more) {
  lead();
  const auto pod = share("p", 20, 8);
  known.pods.put(pod);
  auto now = pod;
  now.resource_version = next_version();
  pods["p"] = document(now);
  to_bindings.push_back(recording_transport::refused(409, "Conflict"));
  EXPECT_EQ(bind(pod), "");
  ASSERT_THAT(bindings(), SizeIs(2));
  EXPECT_EQ(bindings()[1]["metadata"]["resourceVersion"], std::to_string(now.resource_version));
}

TEST_F(binder_test, our_own_binding_that_was_sent_twice_is_a_success) {
  lead();
  const auto pod = share("p", 20, 8);
  known.pods.put(pod);
  to_bindings.push_back(recording_transport::refused(409, "Conflict"));
  // What the first of the two wrote.
  transport.answer = [&, inner = transport.answer](const kube::request& request) {
    if (request.target.ends_with("/binding")) {
      auto bound = annotated(pod, json::parse(request.body)["metadata"]["annotations"]);
      bound.node_name = "a";
      pods["p"] = document(bound);
    }
    return inner(request);
  };
  EXPECT_EQ(bind(pod), "");
  EXPECT_THAT(bindings(), SizeIs(1));
  EXPECT_EQ(used("a", 0).cores, 20);
}

TEST_F(binder_test, F43_an_answer_that_never_came_is_found_out) {
  lead();
  const auto pod = share("p", 20, 8);
  known.pods.put(pod);
  pods["p"] = document(pod);
  to_bindings.push_back(timed_out());
  EXPECT_THAT(bind(pod), HasSubstr("no answer"));
  EXPECT_TRUE(turn([&] { return used("a", 0) == quota::card_use{}; }));
  EXPECT_EQ(seals, 1) << "and cannot arrive any more";
}

TEST_F(binder_test, F43_a_binding_that_arrived_without_an_answer_is_booked) {
  lead();
  const auto pod = share("p", 20, 8);
  known.pods.put(pod);
  to_bindings.push_back(timed_out());
  transport.answer = [&, inner = transport.answer](const kube::request& request) {
    if (request.target.ends_with("/binding")) {
      auto bound = annotated(pod, json::parse(request.body)["metadata"]["annotations"]);
      bound.node_name = "a";
      pods["p"] = document(bound);
    }
    return inner(request);
  };
  EXPECT_THAT(bind(pod), HasSubstr("no answer"));
  EXPECT_TRUE(turn([&] { return book.open().empty(); }));
  EXPECT_EQ(used("a", 0).cores, 20);
  EXPECT_TRUE(book.book().find(pod.id.to_string())->confirmed);
}

TEST_F(binder_test, F43_while_it_is_found_out_the_pod_is_not_bound_elsewhere) {
  lead();
  known.nodes.put(vgpu_node("b", 1));
  const auto pod = share("p", 20, 8);
  known.pods.put(pod);
  pods["p"] = document(pod);
  to_bindings.push_back(timed_out());
  bool sealed = false;
  transport.answer = [&, inner = transport.answer](const kube::request& request) -> kube::result<kube::response> {
    if (is_seal(request) && !sealed) return timed_out();
    return inner(request);
  };
  bind(pod);
  turn([&] { return !transport.sent.empty() && is_seal(transport.sent.back()); });
  EXPECT_THAT(bind(pod, "b"), HasSubstr("being found out"));
  EXPECT_EQ(used("a", 0).cores, 20);
  sealed = true;
  EXPECT_TRUE(turn([&] { return used("a", 0) == quota::card_use{}; }));
  EXPECT_EQ(bind(pod, "b"), "");
}

/// A node of HAMi with one card, and the API server's part of a JSON patch of its lock.
struct hami_binder_test : binder_test {
  static constexpr const char* key = "hami.io/mutex.lock";
  std::vector<std::string> order;  ///< what was written, in turn

  hami_binder_test() {
    put_node("");
    transport.answer = [this, inner = transport.answer](const kube::request& request) -> kube::result<kube::response> {
      if (request.target.ends_with("/binding")) order.push_back("bind");
      if (!request.target.starts_with("/api/v1/nodes/h")) return inner(request);
      const auto patch = json::parse(request.body);
      const auto is = lock();
      order.push_back(patch[1]["op"] == "remove" ? "unlock" : "lock");
      EXPECT_EQ(patch[0]["path"], "/metadata/annotations/hami.io~1mutex.lock");
      if (patch[0]["value"] != (is.empty() ? json() : json(is)))
        return recording_transport::refused(422, "Invalid", "test failed");
      put_node(patch[1].value("value", ""));
      return recording_transport::answered(200, json::object());
    };
    lead();
  }
  void put_node(const std::string& lock) {
    texts annotations{{"hami.io/node-nvidia-register",
                       R"([{"id":"GPU-0","count":10,"devmem":16384,"devcore":100,"type":"Tesla-T4","health":true}])"}};
    if (!lock.empty()) annotations.emplace_back(key, lock);
    auto made = node("h", {{"quartermaster.io/module", "hami"}}, {{"nvidia.com/gpualloc", 10}}, annotations);
    made.resource_version = next_version();
    known.nodes.put(made);
  }
  std::string lock() const { return std::string(known.nodes.find({{}, "h"})->annotations.value_or(key, "")); }
  kube::pod waiting(const std::string& name) {
    auto made = pod(name, {container("main", {{"nvidia.com/gpualloc", 1}, {"nvidia.com/gpumem", 1000}})});
    known.pods.put(made);
    pods[name] = document(made);
    return made;
  }
  /// The pod as it is after a Binding, and in a phase of HAMi's.
  void put_bound(kube::pod pod, const std::string& phase) {
    pod = annotated(pod, {{"hami.io/bind-phase", phase}});
    pod.node_name = "h";
    known.pods.put(pod);
    pods[pod.key.name] = document(pod);
  }
};

TEST_F(hami_binder_test, the_plugin_is_told_of_a_pod_before_it_is_bound) {
  const auto pod = waiting("p");
  EXPECT_EQ(bind(pod, "h"), "");
  EXPECT_THAT(order, ElementsAre("lock", "bind"));
  EXPECT_TRUE(lock().ends_with(",lab,p")) << lock();
}

TEST_F(hami_binder_test, the_next_pod_waits_until_the_plugin_has_taken_the_lock_off) {
  const auto first = waiting("p"), two = waiting("q");
  EXPECT_EQ(bind(first, "h"), "");
  put_bound(first, "allocating");
  EXPECT_THAT(bind(two, "h"), words::has_in_order({"node h ", "pod lab/p "}));
  EXPECT_EQ(used("h", 0).sharers, 1) << "what it was promised meanwhile is free again";
  EXPECT_THAT(bindings(), SizeIs(1));
  put_node("");
  EXPECT_EQ(bind(two, "h"), "");
  EXPECT_TRUE(lock().ends_with(",lab,q"));
}

TEST_F(hami_binder_test, a_lock_that_was_left_on_keeps_nobody_away) {
  const auto served = waiting("served");
  put_bound(served, "success");
  put_node("2026-01-01T00:00:00Z,lab,served");
  EXPECT_EQ(bind(waiting("p"), "h"), "");
  put_node("2026-01-01T00:00:00Z,lab,gone");
  EXPECT_EQ(bind(waiting("q"), "h"), "") << "its pod is gone";
  EXPECT_TRUE(lock().ends_with(",lab,q"));
}

/// The kubelet of a pod that was deleted by force may be about to ask for its cards.
TEST_F(hami_binder_test, the_lock_of_a_pod_that_has_just_gone_is_left_for_a_moment) {
  const auto ago = [](std::chrono::seconds time) {
    return controller::rfc3339_seconds(std::chrono::system_clock::now() - time) + ",lab,gone";
  };
  put_node(ago(std::chrono::seconds(0)));
  EXPECT_THAT(bind(waiting("p"), "h"), words::has_in_order({"node h ", "pod lab/gone "}));
  EXPECT_THAT(bindings(), testing::IsEmpty());
  put_node(ago(std::chrono::seconds(4)));
  EXPECT_EQ(bind(waiting("q"), "h"), "");
  put_node(ago(std::chrono::seconds(-60)));
  EXPECT_EQ(bind(waiting("r"), "h"), "") << "a clock that is ahead holds nothing";
}

TEST_F(hami_binder_test, what_hamis_own_scheduler_holds_is_left_to_it) {
  known.pods.put(annotated(waiting("theirs"), {{"hami.io/vgpu-node", "h"}}));
  const auto now = controller::rfc3339_seconds(std::chrono::system_clock::now());
  put_node(now + ",lab,theirs");
  EXPECT_THAT(bind(waiting("p"), "h"), HasSubstr("come again"));
  EXPECT_EQ(lock(), now + ",lab,theirs");
  EXPECT_THAT(order, IsEmpty());
  put_node("no time at all");
  EXPECT_THAT(bind(waiting("p"), "h"), HasSubstr("kubectl annotate node h hami.io/mutex.lock-"));
}

TEST_F(hami_binder_test, F43_the_lock_of_a_leader_that_died_before_its_binding_keeps_nobody_away) {
  waiting("planned");
  put_node(controller::rfc3339_seconds(std::chrono::system_clock::now()) + ",lab,planned");
  EXPECT_EQ(bind(waiting("p"), "h"), "");
  EXPECT_TRUE(lock().ends_with(",lab,p")) << lock();
}

TEST_F(hami_binder_test, a_pod_that_is_not_bound_gives_the_lock_back) {
  to_bindings.push_back(recording_transport::refused(422, "Invalid", "no such node"));
  EXPECT_THAT(bind(waiting("p"), "h"), HasSubstr("no such node"));
  EXPECT_TRUE(turn([&] { return lock().empty(); }));
  to_bindings.push_back(timed_out());
  EXPECT_THAT(bind(waiting("q"), "h"), HasSubstr("no answer"));
  EXPECT_TRUE(turn([&] { return lock().empty(); })) << "it had not";
}

TEST_F(hami_binder_test, F43_a_binding_that_arrived_without_an_answer_keeps_its_lock) {
  const auto pod = waiting("p");
  to_bindings.push_back(timed_out());
  transport.answer = [&, inner = transport.answer](const kube::request& request) {
    if (request.target.ends_with("/binding")) {
      auto bound = annotated(pod, json::parse(request.body)["metadata"]["annotations"]);
      bound.node_name = "h";
      pods["p"] = document(bound);
    }
    return inner(request);
  };
  EXPECT_THAT(bind(pod, "h"), HasSubstr("no answer"));
  EXPECT_TRUE(turn([&] { return book.open().empty(); }));
  settle();
  EXPECT_THAT(order, ElementsAre("lock", "bind"));
}

TEST_F(binder_test, nothing_is_bound_before_all_seals_are_answered_or_when_the_lease_ends_soon) {
  EXPECT_FALSE(subject.ready());
  lead();
  EXPECT_TRUE(subject.ready());
  lease = std::chrono::milliseconds(200);
  EXPECT_FALSE(subject.ready());
}

TEST_F(binder_test, F27_a_binding_ends_before_the_lease_does_however_short_that_is) {
  lead();
  lease = std::chrono::milliseconds(1700);
  EXPECT_TRUE(subject.ready());
  const auto pod = share("p", 20, 8);
  known.pods.put(pod);
  transport.sent.clear();
  EXPECT_EQ(bind(pod), "");
  ASSERT_THAT(transport.sent, SizeIs(1));
  EXPECT_EQ(transport.sent[0].deadline, lease);
}

TEST_F(binder_test, a_new_leader_seals_who_waits_for_what_is_ours) {
  const auto own = share("ours", 1, 1), other = pod("other", {});
  known.pods.put(own);
  known.pods.put(other);
  const auto item = [](const std::string& name, const kube::uid& id) {
    return json{{"metadata", {{"namespace", "lab"}, {"name", name}, {"uid", id.to_string()}}}};
  };
  unbound = {item("ours", own.id), item("other", other.id), item("unknown", kube::uid::parse("unknown"))};
  lead();
  EXPECT_TRUE(earlier.closed());
  std::vector<std::string> sealed;
  for (const auto& entry : transport.sent) {
    if (!is_seal(entry)) continue;
    const auto body = json::parse(entry.body);
    const auto path = entry.target.substr(0, entry.target.find('?'));
    sealed.push_back(path.substr(path.rfind('/') + 1));
    EXPECT_THAT(body["metadata"]["annotations"]["state.quartermaster.io/seal"].get<std::string>(), HasSubstr("term-1"));
  }
  EXPECT_THAT(sealed, testing::UnorderedElementsAre("ours", "unknown"));
}

TEST_F(binder_test, S14_beyond_its_quota_no_pod_is_bound) {
  lead();
  known.quotas.put(limits_of_lab({{{"units", "cores"}, {"max", 30}}}));
  const auto first = share("p", 20, 8), two = share("q", 20, 8);
  known.pods.put(first);
  known.pods.put(two);
  EXPECT_EQ(bind(first), "");
  EXPECT_EQ(bind(two), words::english("engine.limit.nominal", {{"namespace", "lab"},
                                                               {"limit", "30"},
                                                               {"subject", words::english("engine.limit.cores")},
                                                               {"used", "20"},
                                                               {"requested", "20"}}));
  EXPECT_THAT(bindings(), SizeIs(1));
  EXPECT_EQ(used("a", 0).cores, 20);
}

/// What an earlier leader bound just before the list, the cache of the next one need not have yet. A pod that is read
/// by itself is young, and says nothing of the cache.
TEST_F(binder_test, F27_nothing_is_bound_while_the_cache_is_older_than_the_list_and_the_seals) {
  auto waits = share("p", 60, 8);
  waits.resource_version = 40;
  known.pods.put(waits);
  unbound = {{{"metadata", {{"namespace", "lab"}, {"name", "p"}, {"uid", waits.id.to_string()}}}}};
  transport.answer = [&, inner = transport.answer](const kube::request& request) -> kube::result<kube::response> {
    const auto path = request.target.substr(0, request.target.find('?'));
    if (!is_seal(request)) return inner(request);
    return recording_transport::answered(200, {{"metadata", {{"resourceVersion", "53"}}}});
  };
  kube_test::run(loop.context(), earlier.close());
  auto sealed = waits;
  sealed.resource_version = 53;
  pods["p"] = document(sealed);
  EXPECT_THAT(bind(waits), HasSubstr("come again"));
  EXPECT_FALSE(subject.ready());
  auto intermediate = pod("between", {});
  intermediate.resource_version = 51;
  known.pods.put(intermediate);
  known.pods.reach(51);
  EXPECT_THAT(bind(waits), HasSubstr("come again")) << "a Binding between the list and the seal";
  EXPECT_THAT(bindings(), IsEmpty());
  // The watch goes on: what the old leader bound, then our seal.
  auto earlier_one = share("old", 60, 8, "a");
  earlier_one.resource_version = 52;
  known.pods.put(earlier_one);
  known.pods.put(sealed);
  EXPECT_FALSE(subject.ready()) << "young pods alone prove nothing: a streamed list is in no order";
  known.pods.reach(53);
  EXPECT_TRUE(subject.ready());
  EXPECT_THAT(bind(sealed), HasSubstr("cores")) << "and not on the same card";
  EXPECT_THAT(bindings(), IsEmpty());
}

/// Bindings that take a while, and how many were on their way at once.
struct slow_transport final : kube::transport {
  kube::transport& inner;
  std::size_t now = 0, most = 0;
  explicit slow_transport(kube::transport& transport) : inner(transport) {}
  kube::task<kube::response> send(kube::request request) override {
    if (!request.target.ends_with("/binding")) co_return co_await inner.send(std::move(request));
    most = std::max(most, ++now);
    co_await controller::sleep_for(std::chrono::milliseconds(20));
    --now;
    co_return co_await inner.send(std::move(request));
  }
  kube::task<kube::response> stream(kube::request request, kube::chunk_sink sink) override {
    co_return co_await inner.stream(std::move(request), std::move(sink));
  }
};

TEST_F(binder_test, Bindings_to_a_node_whose_plugin_counts_by_time_arrive_in_that_order) {
  known.nodes.put(vgpu_node("b", 1));
  known.nodes.put(node("c", {}, {{"aliyun.com/gpu-mem", 64}, {"aliyun.com/gpu-count", 4}}));
  slow_transport slow{transport};
  kube::client client{slow};
  controller::registry apart;
  binder several{{loop, client, known.pods, known.nodes, book, earlier, [this] { return lease; }}, apart};
  lead();
  const auto at_once = [&](const std::vector<std::pair<std::string, std::string>>& pods_on_nodes) {
    slow.most = 0;
    std::size_t done = 0;
    for (const auto& [name, node] : pods_on_nodes) {
      const auto shared =
          node == "c" ? pod(name, {container("main", {{"aliyun.com/gpu-mem", 6}})}) : share(name, 20, 8);
      known.pods.put(shared);
      boost::asio::co_spawn(loop.context(), several.bind({shared.key, shared.id, node}),
                            [&](const std::exception_ptr&, const std::string& error) {
                              EXPECT_EQ(error, "");
                              ++done;
                            });
    }
    EXPECT_TRUE(turn([&] { return done == pods_on_nodes.size(); }));
    return slow.most;
  };
  EXPECT_EQ(at_once({{"p", "a"}, {"q", "a"}, {"r", "a"}}), 1u);
  EXPECT_EQ(at_once({{"u", "c"}, {"v", "c"}, {"w", "c"}}), 1u);
  EXPECT_EQ(at_once({{"s", "a"}, {"t", "b"}}), 2u) << "other nodes do not wait";
  const std::pair<std::string, std::string> clocks[] = {{"a", "tencent.com/predicate-time"},
                                                        {"c", "ALIYUN_COM_GPU_MEM_ASSUME_TIME"}};
  for (const auto& [name, clock] : clocks) {
    std::vector<std::string> times;
    for (const auto& binding : bindings())
      if (binding["target"]["name"] == name) times.push_back(binding["metadata"]["annotations"][clock]);
    EXPECT_TRUE(std::ranges::is_sorted(times)) << name;
    EXPECT_GE(times.size(), 3u) << name;
  }
}

}  // namespace
}  // namespace extender_test
