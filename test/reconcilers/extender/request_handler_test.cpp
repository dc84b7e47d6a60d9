#include <gmock/gmock.h>

#if __has_feature(address_sanitizer)
#include <sanitizer/allocator_interface.h>
#endif

#include <boost/asio/steady_timer.hpp>

#include "api/engine_words.hpp"
#include "controller/sleep.hpp"
#include "reconcilers/extender/extender.hpp"
#include "reconcilers/extender/reasons.hpp"
#include "test/facts_in.hpp"
#include "test/kube/loop.hpp"
#include "test/reconcilers/extender/rig.hpp"
#include "test/words.hpp"

namespace extender_test {
namespace {

using namespace reconcilers::extender;
using testing::HasSubstr;

struct request_handler_test : rig {
  reconcilers::recording_transport transport;
  kube::client api{transport};
  fence earlier{{loop, api, known.pods, [this](const kube::pod& pod) { return asks(pod, book.keys()); }, "me", {}}};
  binder binds{{loop, api, known.pods, known.nodes, book, earlier, [] { return std::chrono::seconds(9); }}, metrics};
  reconcilers::recording_recorder recorder;
  waiting waiters{{api, known.pods, known.nodes, book, recorder}, metrics};
  bool leading = true;
  request_handler subject{
      {book, api, known.pods, binds, [this] { return leading; }, [this](const kube::pod& pod) { waiters.note(pod); }},
      metrics,
      quick()};

  static call_limits quick() {
    call_limits out;
    out.departures = std::chrono::milliseconds(200);
    return out;
  }
  request_handler_test() {
    known.nodes.put(vgpu_node("a", 2));
    known.nodes.put(vgpu_node("b", 1));
    known.nodes.put(node("plain", {}, {}));
  }
  std::string asked_for(const kube::pod& pod, const json& names) {
    return json{{"Pod", document(pod)}, {"Nodes", nullptr}, {"NodeNames", names}}.dump();
  }
  json preempt(const kube::pod& preemptor, const std::map<std::string, std::vector<kube::pod>>& victims) {
    json nodes = json::object();
    for (const auto& [name, pods] : victims) {
      json list = json::array();
      for (const auto& pod : pods) list.push_back({{"UID", pod.id.to_string()}});
      nodes[name] = {{"Pods", list}, {"NumPDBViolations", 2}};
    }
    const json body{{"Pod", document(preemptor)}, {"NodeNameToVictims", nullptr}, {"NodeNameToMetaVictims", nodes}};
    return json::parse(subject.preempt(body.dump()).body)["NodeNameToMetaVictims"];
  }
  json filter(const kube::pod& pod, const json& names) {
    const auto got = subject.filter(asked_for(pod, names));
    EXPECT_EQ(got.status, 200) << got.body;
    return json::parse(got.body);
  }
};

TEST_F(request_handler_test, filter_names_what_fits_and_why_the_others_do_not) {
  known.pods.put(share("big", 90, 60, "b"));
  const auto got = filter(share("p", 20, 8), {"a", "b", "plain", "gone"});
  EXPECT_EQ(got["NodeNames"], json({"a"}));
  EXPECT_EQ(got["Nodes"], nullptr);
  EXPECT_EQ(got["FailedNodes"], (json{{"b", words::english("engine.reason.memory")}}));
  EXPECT_EQ(got["FailedAndUnresolvableNodes"], (json{{"plain", words::english("engine.reason.not_offered")},
                                                     {"gone", words::english("engine.reason.no_node")}}));
  EXPECT_EQ(got["Error"], "");
}

TEST_F(request_handler_test, whole_nodes_are_answered_by_name) {
  const json nodes{{"metadata", json::object()},
                   {"items",
                    {{{"metadata", {{"name", "a"}, {"labels", {{"x", "y"}}}}}, {"spec", json::object()}},
                     {{"spec", {{"podCIDR", "10.0.0.0/8"}}}, {"metadata", {{"name", "b"}}}}}}};
  const auto got =
      subject.filter(json{{"Pod", document(share("p", 20, 8))}, {"Nodes", nodes}, {"NodeNames", nullptr}}.dump());
  const auto read = json::parse(got.body);
  EXPECT_EQ(read["Nodes"]["items"], json::array({{{"metadata", {{"name", "a"}}}}, {{"metadata", {{"name", "b"}}}}}));
  EXPECT_EQ(read["NodeNames"], nullptr);
}

TEST_F(request_handler_test, a_pod_that_asks_for_nothing_of_ours_fits_everywhere) {
  EXPECT_EQ(filter(pod("p", {container("main", {{"rdma/hca", 1}})}), {"a", "gone"})["NodeNames"], json({"a", "gone"}));
}

TEST_F(request_handler_test, what_the_store_knows_of_a_pod_wins_over_the_body) {
  known.pods.put(share("p", 20, 8));
  auto other = share("p", 20, 1000);
  EXPECT_EQ(filter(other, {"a"})["NodeNames"], json({"a"}));
  other.id = kube::uid::parse("anew");
  EXPECT_EQ(filter(other, {"a"})["NodeNames"], json::array());
}

TEST_F(request_handler_test, a_pod_may_choose_its_cards) {
  auto pod = annotated(share("p", 20, 8), {{"nvidia.com/use-gpuuuid", "b/0"}});
  const auto got = filter(pod, {"a", "b"});
  EXPECT_EQ(got["NodeNames"], json({"b"}));
}

TEST_F(request_handler_test, prioritize_fills_one_node_after_the_other) {
  known.pods.put(share("there", 50, 8, "b"));
  const auto got = json::parse(subject.prioritize(asked_for(share("p", 20, 8), {"a", "b", "gone"})).body);
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(got[0]["Host"], "a");
  EXPECT_GT(got[1]["Score"], got[0]["Score"]);
  EXPECT_EQ(got[2]["Score"], 0);
  EXPECT_LE(got[1]["Score"], 10);
}

json uids(const std::vector<kube::pod>& pods) {
  json out = json::array();
  for (const auto& pod : pods) out.push_back({{"UID", pod.id.to_string()}});
  return out;
}

TEST_F(request_handler_test, preempt_answers_a_node_with_all_its_victims_or_not_at_all) {
  const auto low = share("low", 90, 8, "b"), keep = share("keep", 90, 8, "a");
  // Left for CPU, ports or affinity: the ledger does not know it.
  const auto cpu = pod("cpu", {}, "b");
  for (const auto& entry : {low, cpu, keep, share("keep2", 90, 8, "a")}) known.pods.put(entry);
  const auto preemptor = share("p", 50, 8);
  EXPECT_EQ(preempt(preemptor, {{"a", {keep}}, {"b", {cpu, low}}}),
            (json{{"a", {{"Pods", uids({keep})}, {"NumPDBViolations", 2}}},
                  {"b", {{"Pods", uids({cpu, low})}, {"NumPDBViolations", 2}}}}));
  EXPECT_EQ(preempt(preemptor, {{"a", {cpu}}, {"b", {cpu}}}), json::object()) << "its card stays taken";
  known.pods.erase(low);
  EXPECT_EQ(preempt(preemptor, {{"b", {cpu}}}).size(), 1u) << "its card is free already, and CPU was needed";
  EXPECT_EQ(preempt(preemptor, {{"b", {}}}), json::object())
      << "an empty list would be an error of the whole attempt in kube-scheduler";
}

// kube-scheduler saw the deletion of its victim first, and asks again before we know of it.
TEST_F(request_handler_test, S14_nobody_leaves_on_a_second_node_while_the_first_is_emptied) {
  const auto first = share("first", 100, 0, "a"), neighbour = share("neighbour", 100, 0, "a"),
             second = share("second", 100, 0, "b");
  for (const auto& entry : {first, neighbour, second}) known.pods.put(entry);
  auto urgent = share("urgent", 100, 0);
  EXPECT_EQ(preempt(urgent, {{"a", {first}}, {"b", {second}}}).size(), 2u);
  urgent.nominated_node = {"a"};
  EXPECT_EQ(preempt(urgent, {{"b", {second}}}), json::object());
  EXPECT_EQ(preempt(urgent, {{"b", {second}}}).size(), 1u) << "once: the nomination is gone by then";

  EXPECT_EQ(preempt(urgent, {{"a", {first}}, {"b", {second}}}).size(), 2u);
  known.pods.erase(first);
  known.pods.put(share("rival", 100, 0, "a"));
  EXPECT_EQ(preempt(urgent, {{"b", {second}}}).size(), 1u) << "a rival has the room";

  EXPECT_EQ(preempt(urgent, {{"a", {neighbour}}, {"b", {second}}}).size(), 2u);
  EXPECT_EQ(preempt(urgent, {{"a", {neighbour}}, {"b", {second}}}).size(), 2u) << "the same node, for what it lacks";
}

// kube-scheduler saw the deletion of its victim first, and a refusal makes it forget the nomination.
TEST_F(request_handler_test, S14_a_card_that_is_empty_already_is_given_to_the_pod_that_it_was_emptied_for) {
  for (const bool graceful : {true, false}) {
    auto low = share("low", 80, 8, "b"), urgent = share("urgent", 80, 8);
    urgent.priority = 100;
    known.pods.put(low);
    known.pods.put(urgent);
    if (graceful) {
      low.deleting = true;
      known.pods.put(low);
    } else {
      EXPECT_EQ(preempt(urgent, {{"b", {low}}}).size(), 1u);  // it goes without a moment in which it is being deleted
    }
    auto as_sent = document(urgent);
    as_sent["status"]["nominatedNodeName"] = "b";
    const auto body = json{{"Pod", as_sent}, {"Nodes", nullptr}, {"NodeNames", {"a", "b"}}}.dump();
    const auto fits = [&] {
      const auto requests = transport.sent.size();
      const auto got = json::parse(kube_test::run(loop.context(), subject.filter_nominated(body)).body);
      EXPECT_EQ(transport.sent.size(), requests + 1);
      EXPECT_EQ(transport.sent.back().target, "/api/v1/namespaces/lab/pods/low");
      return got["NodeNames"] == json({"b"});
    };
    known.pods.put(share("first", 90, 8, "a"));
    known.pods.put(share("second", 90, 8, "a"));
    using reconcilers::recording_transport;
    transport.answer = [&](const kube::request&) { return recording_transport::answered(200, document(low)); };
    EXPECT_FALSE(fits()) << "it is still there";
    transport.answer = [&](const kube::request&) { return recording_transport::refused(500, "InternalError"); };
    EXPECT_FALSE(fits()) << "no one knows";
    transport.answer = [&](const kube::request&) { return recording_transport::refused(404, "NotFound"); };
    const auto began = std::chrono::steady_clock::now();
    EXPECT_FALSE(fits()) << "it is not seen here";
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(15))
        << "it waits for no answer of the API server";
    boost::asio::steady_timer seen(loop.context(), std::chrono::milliseconds(30));
    transport.answer = [&](const kube::request&) {
      seen.async_wait([&](auto) { known.pods.erase(low); });
      auto another = low;
      another.id = kube::uid::parse("anew");
      return recording_transport::answered(200, document(another));
    };
    EXPECT_TRUE(fits()) << "its deletion is seen a moment later";
    transport.answer = nullptr;
    for (const auto* name : {"first", "second"}) known.pods.erase(share(name, 90, 8, "a"));
  }
}

/// An API server that hangs.
struct silent_transport final : kube::transport {
  kube::task<kube::response> send(kube::request) override {
    co_await controller::sleep_for(std::chrono::seconds(20));
    co_return std::unexpected(kube::error{kube::errc::timeout, 0, "no answer", {}});
  }
  kube::task<kube::response> stream(kube::request request, kube::chunk_sink) override {
    co_return co_await send(std::move(request));
  }
};

TEST_F(request_handler_test, F5_O8_the_scheduler_gets_its_answer_while_the_API_server_hangs) {
  silent_transport silence;
  kube::client no_answer(silence);
  controller::registry page;
  request_handler cut_off{{book, no_answer, known.pods, binds, [] { return true; }, {}}, page, quick()};
  auto low = share("low", 80, 8, "b"), urgent = share("urgent", 80, 8);
  low.deleting = true;
  known.pods.put(low);
  auto as_sent = document(urgent);
  as_sent["status"]["nominatedNodeName"] = "b";
  const auto body = json{{"Pod", as_sent}, {"Nodes", nullptr}, {"NodeNames", {"b"}}}.dump();
  const auto began = std::chrono::steady_clock::now();
  const auto got = kube_test::run(loop.context(), cut_off.filter_nominated(body));
  EXPECT_EQ(json::parse(got.body)["FailedNodes"]["b"], words::english("engine.reason.cores"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(15))
      << "it waits for no answer of the API server";
}

TEST_F(request_handler_test, S14_the_API_server_is_asked_only_where_a_departure_would_help) {
  auto low = share("low", 20, 8, "b"), staying = share("staying", 70, 8, "b"), urgent = share("urgent", 80, 8);
  low.deleting = true;
  for (const auto& entry : {low, staying}) known.pods.put(entry);
  auto as_sent = document(urgent);
  const auto ask = [&](const json& names) {
    const auto body = json{{"Pod", as_sent}, {"Nodes", nullptr}, {"NodeNames", names}}.dump();
    EXPECT_EQ(json::parse(kube_test::run(loop.context(), subject.filter_nominated(body)).body)["NodeNames"],
              json::array());
  };
  ask({"b"});
  as_sent["status"]["nominatedNodeName"] = "b";
  ask({"b"});
  known.pods.erase(staying);
  ask({"plain"});
  EXPECT_TRUE(transport.sent.empty());
}

TEST_F(request_handler_test, S14_nobody_has_to_leave_for_a_pod_that_its_quota_forbids) {
  auto other = share("other", 100, 0, "b");
  other.key.ns = "others";
  known.pods.put(other);
  known.quotas.put(limits_of_lab({{{"units", "cores"}, {"max", 0}}}));
  const auto pod = share("p", 100, 0);
  known.pods.put(pod);
  EXPECT_EQ(preempt(pod, {{"b", {other}}}), json::object());
  for (const auto* name : {"x", "y"}) {
    auto full = share(name, 100, 0, "a");
    full.key.ns = "others";
    known.pods.put(full);
  }
  EXPECT_TRUE(reconcilers::run(waiters.turn(std::chrono::seconds(10))));
  ASSERT_EQ(recorder.events.size(), 1u);
  EXPECT_EQ(recorder.events[0].reason, "AcceleratorQuotaExceeded") << "though filter was never asked";
}

TEST_F(request_handler_test, S14_victims_of_its_own_namespace_give_their_part_of_the_quota_back) {
  const auto mine = share("mine", 100, 0, "b");
  auto other = share("other", 100, 0, "a");
  other.key.ns = "others";
  known.pods.put(mine);
  known.pods.put(other);
  known.pods.put(share("also", 100, 0, "a"));
  known.quotas.put(limits_of_lab({{{"units", "cores"}, {"max", 200}}}));
  const auto answer = preempt(share("p", 100, 0), {{"a", {other}}, {"b", {mine}}});
  EXPECT_EQ(answer.size(), 1u);
  EXPECT_TRUE(answer.contains("b")) << answer;
}

TEST_F(request_handler_test, S14_filter_refuses_beyond_the_quota_and_says_which) {
  known.pods.put(share("there", 50, 8, "a"));
  known.quotas.put(limits_of_lab({{{"units", "cores"}, {"max", 60}}}));
  EXPECT_EQ(
      filter(share("p", 20, 8), {"a", "b"})["FailedNodes"],
      (json{{"a", words::english("engine.limit.short.cores")}, {"b", words::english("engine.limit.short.cores")}}));
  EXPECT_EQ(filter(share("p", 10, 8), {"a", "b"})["NodeNames"], json({"a", "b"}));
  known.quotas.put(quota_of("lab", "q", {{"isolation", "exclusive"}}));
  EXPECT_EQ(filter(share("p", 10, 8), {"a"})["FailedNodes"]["a"], words::english("engine.limit.short.isolation"));
}

TEST_F(request_handler_test, S48_whole_cards_are_exclusive_for_a_namespace_that_demands_isolation) {
  known.nodes.put(node("p", {{"quartermaster.io/module", "pgpu"}}, {{"nvidia.com/gpu", 2}}));
  const auto whole = pod("w", {container("main", {{"nvidia.com/gpu", 1}})});
  for (const auto* demanded : {"soft", "exclusive"}) {
    known.quotas.put(quota_of("lab", "q", {{"isolation", demanded}}, static_cast<std::int64_t>(next_version())));
    EXPECT_EQ(filter(whole, {"p"})["NodeNames"], json({"p"})) << demanded;
    EXPECT_TRUE(book.try_on(whole, pod_request(whole, book.keys()), "p").held) << demanded;
    EXPECT_EQ(filter(share("v", 100, 0), {"a"})["NodeNames"], json({"a"})) << demanded;
  }
  EXPECT_EQ(filter(share("s", 10, 8), {"a"})["FailedNodes"]["a"], words::english("engine.limit.short.isolation"));
  const auto both = pod("b", {container("x", {{"tencent.com/vcuda-core", 100}}),
                              container("y", {{"tencent.com/vcuda-core", 10}, {"tencent.com/vcuda-memory", 4}})});
  EXPECT_EQ(filter(both, {"a"})["NodeNames"], json::array()) << "its share is not";
}

TEST_F(request_handler_test, S48_on_a_node_with_cards_of_several_models_an_allowed_one_is_found) {
  known.nodes.put(node("mixed", {{"quartermaster.io/module", "mps"}},
                       {{"nvidia.com/mps-core", 200}, {"nvidia.com/mps-memory", 30}}));
  known.cards.put(reported("mixed", {{{"uuid", "GPU-a"}, {"index", 0}, {"memoryMiB", 16000}, {"model", "A100"}},
                                     {{"uuid", "GPU-t"}, {"index", 1}, {"memoryMiB", 16000}, {"model", "T4"}}}));
  ASSERT_EQ(book.book().view("mixed")->inventory->cards.size(), 2u);
  known.quotas.put(limits_of_lab({{{"units", "cards"}, {"max", 0}, {"model", "A100"}}}));
  const auto first = pod("p", {container("main", {{"nvidia.com/mps-core", 10}, {"nvidia.com/mps-memory", 1}})});
  EXPECT_EQ(filter(first, {"mixed"})["NodeNames"], json({"mixed"}));
  const pod_request request(first, book.keys());
  const auto here = book.try_on(first, request, "mixed");
  ASSERT_TRUE(here.held) << here.reason();
  EXPECT_EQ(here.held->grants.at(0).card, "GPU-t");
  const auto two =
      pod("q", {container("main", {{"nvidia.com/mps-core", 100}}), container("next", {{"nvidia.com/mps-core", 100}})});
  EXPECT_EQ(filter(two, {"mixed"})["FailedNodes"]["mixed"], words::english("engine.limit.short.cards"));
}

/// kube-scheduler keeps a nominated pod's room in sums only; which card it was emptied of, it does not know.
TEST_F(request_handler_test, S14_what_was_emptied_for_a_nominated_pod_is_kept_for_it) {
  auto urgent = share("urgent", 70, 8);
  urgent.priority = 100;
  urgent.nominated_node = {"b"};
  known.pods.put(urgent);
  auto late = share("late", 40, 8);
  EXPECT_EQ(filter(late, {"a", "b"})["NodeNames"], json({"a"}));
  EXPECT_THAT(filter(late, {"b"})["FailedNodes"]["b"].get<std::string>(), HasSubstr("nominated"));
  EXPECT_THAT(book.try_on(late, pod_request(late, book.keys()), "b").reason(),
              words::english("engine.kept_for_higher", {{"pod", "lab/urgent"}}));
  EXPECT_EQ(filter(share("small", 30, 8), {"b"})["NodeNames"], json({"b"})) << "next to it there is room";
  EXPECT_EQ(filter(urgent, {"b"})["NodeNames"], json({"b"})) << "its own room";
  auto more_urgent = share("more", 40, 8);
  more_urgent.priority = 101;
  EXPECT_EQ(filter(more_urgent, {"b"})["NodeNames"], json({"b"}));
  late.priority = 100;
  EXPECT_THAT(filter(late, {"b"})["FailedNodes"]["b"].get<std::string>(), HasSubstr("nominated"))
      << "of the same priority, as kube-scheduler does";

  urgent.node_name = "b";  // bound: from now on the ledger has it
  known.pods.put(urgent);
  EXPECT_EQ(filter(late, {"b"})["FailedNodes"]["b"], words::english("engine.reason.cores"));
  known.pods.erase(urgent);
  EXPECT_EQ(filter(late, {"b"})["NodeNames"], json({"b"}));
}

TEST_F(request_handler_test, S14_room_is_kept_on_the_card_that_is_being_emptied) {
  auto leaving = share("leaving", 90, 8, "a"), staying = share("staying", 60, 8, "a");
  known.pods.put(staying);
  known.pods.put(leaving);
  leaving.deleting = true;
  known.pods.put(leaving);
  auto urgent = share("urgent", 80, 8);
  urgent.priority = 100;
  urgent.nominated_node = {"a"};
  known.pods.put(urgent);
  EXPECT_EQ(filter(share("late", 30, 8), {"a"})["NodeNames"], json({"a"})) << "next to the one that stays";
  EXPECT_THAT(filter(share("tiny", 10, 8), {"a"})["FailedNodes"]["a"].get<std::string>(), HasSubstr("nominated"))
      << "gpu-manager would put it on the other card, which has the least that is enough";
  auto big = share("big", 50, 8);
  EXPECT_EQ(filter(big, {"a"})["FailedNodes"]["a"], words::english("engine.reason.cores"));
  known.pods.erase(leaving);
  EXPECT_THAT(filter(big, {"a"})["FailedNodes"]["a"].get<std::string>(), HasSubstr("nominated"));
  // A caller that would make others leave for it gets the same answer.
  const auto victim = share("victim", 10, 8, "a");
  known.pods.put(victim);
  EXPECT_EQ(preempt(big, {{"a", {victim}}}), json::object());
  urgent.nominated_node.clear();
  known.pods.put(urgent);
  EXPECT_EQ(filter(big, {"a"})["NodeNames"], json({"a"}));
}

/// Whatever it tolerates: kube-scheduler looks at taints, and asks of the nodes whose taints the pod tolerates.
TEST_F(request_handler_test, S58_no_pod_with_cards_comes_to_a_node_that_changes_its_mode) {
  const auto there = share("there", 50, 8, "a");
  known.pods.put(there);
  auto changing = switching(vgpu_node("a", 2));
  changing.resource_version = next_version();
  known.nodes.put(changing);
  const auto pod = share("p", 20, 8);
  known.pods.put(pod);
  const auto answer = filter(pod, {"a", "b"});
  EXPECT_EQ(answer["NodeNames"], json({"b"}));
  EXPECT_EQ(answer["FailedAndUnresolvableNodes"], (json{{"a", words::english("engine.reason.changes_mode")}}))
      << "no victim would help";
  EXPECT_EQ(preempt(pod, {{"a", {there}}}), json::object());
  EXPECT_EQ(json::parse(subject.prioritize(asked_for(pod, {"a"})).body)[0]["Score"], 0);
  EXPECT_EQ(filter(extender_test::pod("plain", {container("main", {})}), {"a"})["NodeNames"], json({"a"}))
      << "a pod without cards is not our matter";
  EXPECT_EQ(used("a", 0).cores + used("a", 1).cores, 50) << "who is there holds what it held";

  known.nodes.erase(*known.nodes.find({{}, "b"}));
  filter(pod, {"a"});
  EXPECT_TRUE(reconcilers::run(waiters.turn(std::chrono::seconds(10))));
  ASSERT_EQ(recorder.events.size(), 1u);
  EXPECT_EQ(
      recorder.events[0].note,
      words::english(
          "engine.answer.first",
          {{"answer", words::english("engine.answer.fits", {{"fitting", "0"}, {"nodes", "1"}})},
           {"cause",
            words::english(
                "engine.answer.cause_of",
                {{"cause", words::english("engine.answer.cause",
                                          {{"nodes", "1"}, {"reason", words::english("engine.reason.changes_mode")}})},
                 {"object", "a"}})}}));
  transport.sent.clear();
  auto done = vgpu_node("a", 2);
  done.resource_version = next_version();
  known.nodes.put(done);
  EXPECT_EQ(filter(pod, {"a"})["NodeNames"], json({"a"}));
}

TEST_F(request_handler_test, S58_who_is_on_a_node_that_changes_its_mode_stays_booked_after_a_restart) {
  fresh other;
  other.known.nodes.put(switching(vgpu_node("a", 1)));
  other.known.pods.put(share("there", 50, 8, "a"));
  EXPECT_EQ(other.used("a", 0).cores, 50) << "nothing is written on it, so it is booked by a guess";
}

TEST_F(request_handler_test, only_the_leader_answers) {
  leading = false;
  EXPECT_EQ(subject.filter(asked_for(share("p", 1, 1), {"a"})).status, 503);
  EXPECT_EQ(subject.prioritize(asked_for(share("p", 1, 1), {"a"})).status, 503);
  EXPECT_EQ(subject.preempt("{}").status, 503);
}

TEST_F(request_handler_test, F37_what_cannot_be_understood_is_one_line) {
  const auto sound = asked_for(share("p", 1, 1), {"a"});
  const std::string bodies[] = {
      "",
      "[]",
      "{}",
      "null",
      R"({"Pod":3})",
      R"({"Pod":{"metadata":{}},"NodeNames":[]})",
      R"({"Pod":{"metadata":{"name":"p","namespace":"n"}},"NodeNames":["a"]})",
      sound + "x",
      sound.substr(0, sound.size() - 3),
      R"({"Pod":{"metadata":{"name":"p","namespace":"n","uid":"u"},"spec":7},"NodeNames":["a"]})",
      std::string(10'000, '['),
      R"({"Pod":{"metadata":{"name":"p/..","namespace":"n","uid":"u"}},"NodeNames":["a"]})",
      R"({"Pod":{"metadata":{"name":"p","namespace":"../../x","uid":"u"}},"NodeNames":["a"]})",
      R"({"Pod":null,"NodeNames":["\ud800"]})",
      sound.substr(0, sound.find("\"NodeNames\"")) + R"("NodeNames":[1,2]})",
      sound.substr(0, sound.find("\"NodeNames\"")) + R"("NodeNames":["a",null]})"};
  for (const auto& body : bodies) {
    const auto got = subject.filter(body);
    EXPECT_EQ(got.status, 400) << body.substr(0, 80) << got.body;
    EXPECT_EQ(std::ranges::count(got.body, '\n'), 1) << body.substr(0, 80);
  }
}

TEST_F(request_handler_test, F37_names_are_escaped_in_the_answer) {
  const auto got = filter(share("p", 1, 1), {"a\"b\\c\n", "\u202e"});
  EXPECT_EQ(got["FailedAndUnresolvableNodes"].size(), 2u);
}

TEST_F(request_handler_test, who_waits_is_told_once_a_reason_and_touched_when_there_is_room) {
  const auto big = share("big", 90, 60, "b");
  known.pods.put(big);
  const auto pod = share("p", 20, 8);
  known.pods.put(pod);
  filter(pod, {"b"});
  EXPECT_EQ(waiters.size(), 1u);
  const auto turn = [&](int s) { EXPECT_TRUE(reconcilers::run(waiters.turn(std::chrono::seconds(s)))); };
  turn(10);
  EXPECT_EQ(recorder.events.size(), 0u) << "it fits on another node: what keeps it from there is not ours to say";
  known.pods.put(share("x", 90, 60, "a"));
  known.pods.put(share("y", 90, 60, "a"));
  filter(pod, {"a", "b"});
  turn(11);
  EXPECT_EQ(recorder.events.size(), 0u) << "looked into a second ago";
  turn(12);
  filter(pod, {"a", "b"});
  turn(43);
  EXPECT_EQ(recorder.events.size(), 1u);
  EXPECT_EQ(recorder.events.at(0).reason, "NoAcceleratorFits");
  transport.sent.clear();
  waiters.room();
  turn(44);
  EXPECT_TRUE(transport.sent.empty()) << "nothing fits";
  known.pods.erase(*known.pods.find({"lab", "x"}));
  waiters.room();
  turn(45);
  ASSERT_EQ(transport.sent.size(), 1u);
  EXPECT_THAT(transport.sent[0].target, testing::ContainsRegex("/api/v1/namespaces/lab/pods/p([?]|$)"));
  EXPECT_THAT(transport.sent[0].body, HasSubstr("state.quartermaster.io/room-since"));
  EXPECT_THAT(transport.sent[0].body, HasSubstr(pod.id.to_string()));
}

TEST_F(request_handler_test, where_annotations_choose_cards_no_change_is_called_missing) {
  const auto pod = annotated(share("p", 20, 8), {{"nvidia.com/use-gputype", "H100"}});
  known.pods.put(pod);
  filter(pod, {"a", "b"});
  EXPECT_TRUE(reconcilers::run(waiters.turn(std::chrono::seconds(10))));
  ASSERT_EQ(recorder.events.size(), 1u);
  EXPECT_EQ(recorder.events.at(0).reason, "NoAcceleratorFits");
  const pod_request request(pod, book.keys());
  const auto nodes = candidates(book.book(), known.nodes);
  const auto explanation = quota::explain(request.containers(), nodes, request.only());
  ASSERT_FALSE(explanation.of_pod || explanation.of_node);
  EXPECT_EQ(recorder.events.at(0).note, words_of_causes(explanation, nodes, request, text::language::en));
}

/// It asks once, and then not for minutes.
TEST_F(request_handler_test, a_pod_that_the_scheduler_knew_first_is_shown_to_it_again_when_there_is_room) {
  const auto turn = [&](int s) { EXPECT_TRUE(reconcilers::run(waiters.turn(std::chrono::seconds(s)))); };
  const auto low = share("low", 90, 60, "b"), pod = share("p", 20, 60);
  auto earlier_of_the_name = pod;
  earlier_of_the_name.id = kube::uid::parse("00000000-0000-4000-8000-0000000000ee");
  known.pods.put(low);
  known.pods.put(earlier_of_the_name);
  filter(pod, {"b"});
  turn(10);
  known.pods.erase(earlier_of_the_name);
  known.pods.erase(low);
  waiters.room();
  turn(11);
  EXPECT_THAT(transport.sent, testing::IsEmpty());
  known.pods.put(pod);
  turn(12);
  ASSERT_EQ(transport.sent.size(), 1u);
  EXPECT_THAT(transport.sent[0].target, testing::ContainsRegex("/api/v1/namespaces/lab/pods/p([?]|$)"));

  known.pods.erase(pod);
  turn(13);
  EXPECT_EQ(waiters.size(), 0u) << "it was there, and has gone";
  known.pods.put(low);
  filter(pod, {"b"});
  turn(14);
  turn(74);
  EXPECT_EQ(waiters.size(), 1u);
  turn(75);
  EXPECT_EQ(waiters.size(), 0u) << "it never came";
}

TEST_F(request_handler_test, which_pod_has_waited_longest_and_since_when_is_on_the_page) {
  const auto oldest = [&] {
    EXPECT_TRUE(reconcilers::run(waiters.turn(std::chrono::seconds(1))));
    const auto page = metrics.text();
    const std::string name = "\nquartermaster_oldest_waiting_pod_timestamp_seconds{";
    std::string out;
    for (auto begin = page.find(name); begin != page.npos; begin = page.find(name, begin + 1))
      out += page.substr(begin + name.size(), page.find('\n', begin + 1) - begin - name.size());
    return out;
  };
  EXPECT_EQ(oldest(), "");
  for (const auto* name : {"x", "y"}) known.pods.put(share(name, 90, 60, "a"));
  auto old = share("old", 20, 8), young = share("young", 20, 8);
  old.created = 1'800'000'000;
  young.created = 1'800'000'060;
  for (const auto& pod : {young, old}) known.pods.put(pod), filter(pod, {"a"});
  EXPECT_EQ(oldest(), R"(namespace="lab",pod="old"} 1800000000)");
  known.pods.erase(old);
  EXPECT_EQ(oldest(), R"(namespace="lab",pod="young"} 1800000060)");
  known.pods.erase(young);
  EXPECT_EQ(oldest(), "");
}

TEST_F(request_handler_test, a_pod_that_is_refused_many_times_a_second_is_explained_twice_a_minute) {
  known.pods.put(share("big", 90, 60, "b"));
  known.pods.put(share("x", 90, 60, "a"));
  known.pods.put(share("y", 90, 60, "a"));
  const auto pod = share("p", 20, 8);
  known.pods.put(pod);
  filter(pod, {"a", "b"});
  const auto turn = [&](int s) { EXPECT_TRUE(reconcilers::run(waiters.turn(std::chrono::seconds(s)))); };
  turn(1);
  ASSERT_EQ(recorder.events.size(), 1u);
  known.nodes.erase(*known.nodes.find({{}, "a"}));  // another reason: one node fewer, and it is cordoned
  auto cordoned = vgpu_node("b", 1);
  cordoned.annotations = packed({{"quartermaster.io/cordon", "b/0"}});
  known.nodes.put(cordoned);
  for (int s = 2; s < 31; ++s) filter(pod, {"b"}), turn(s);
  EXPECT_EQ(recorder.events.size(), 1u);
  turn(31);
  EXPECT_EQ(recorder.events.size(), 2u);
}

/// kube-apiserver forgets an event after an hour.
TEST_F(request_handler_test, what_was_said_comes_again_before_its_event_is_forgotten) {
  known.quotas.put(limits_of_lab({{{"units", "cores"}, {"max", 10}}}));
  const auto first = share("p", 20, 8), second = share("q", 20, 8);
  for (const auto& pod : {first, second}) known.pods.put(pod), filter(pod, {"a", "b"});
  const auto turn = [&](int s) { EXPECT_TRUE(reconcilers::run(waiters.turn(std::chrono::seconds(s)))); };
  turn(1);
  ASSERT_EQ(recorder.events.size(), 2u);
  for (int s = 60; s <= 54 * 60; s += 60) filter(first, {"a", "b"}), turn(s);
  EXPECT_EQ(recorder.events.size(), 2u) << "however often it is asked about";
  turn(55 * 60 + 1);
  EXPECT_EQ(recorder.events.size(), 3u) << "one at a time";
  turn(55 * 60 + 1);
  EXPECT_EQ(recorder.events.size(), 3u);
  turn(55 * 60 + 2);
  ASSERT_EQ(recorder.events.size(), 4u);
  EXPECT_NE(recorder.events[2].about.key.name, recorder.events[3].about.key.name);
  for (const auto& event : recorder.events) EXPECT_EQ(event.reason, "AcceleratorQuotaExceeded");
  turn(2 * 55 * 60);
  EXPECT_EQ(recorder.events.size(), 4u);
  known.quotas.put(limits_of_lab({{{"units", "cores"}, {"max", 100}}}));
  turn(3 * 55 * 60);
  EXPECT_EQ(recorder.events.size(), 4u) << "nothing holds them any more";
}

/// kube-scheduler finds no node that has all the keys, so the extender is never asked.
TEST_F(request_handler_test, a_pod_that_no_scheduler_asks_about_is_explained_where_no_node_can_take_it) {
  const amounts both{{"tencent.com/vcuda-core", 20}, {"tencent.com/vcuda-memory", 4}, {"nvidia.com/gpualloc", 1}};
  auto of_another = pod("of-another", {container("main", both)});
  of_another.scheduler_name = "hami-scheduler";
  for (const auto& entry :
       {pod("mixed", {container("main", both)}), of_another, pod("bound", {container("main", both)}, "a"),
        pod("bytes", {container("main", {{"nvidia.com/gpualloc", 1}, {"nvidia.com/gpumem", std::int64_t{4} << 30}})}),
        pod("lonely", {container("main", {{"nvidia.com/gpumem", 4096}})}), share("well", 20, 8)})
    known.pods.put(entry);
  EXPECT_TRUE(reconcilers::run(waiters.turn(std::chrono::seconds(1))));
  std::map<std::string, std::string> notes;
  for (const auto& event : recorder.events) {
    EXPECT_EQ(event.reason, "NoAcceleratorFits");
    notes[event.about.key.name] = event.note;
  }
  EXPECT_THAT(notes, testing::ElementsAre(testing::Key("bytes"), testing::Key("lonely"), testing::Key("mixed")));
  EXPECT_THAT(notes["mixed"],
              HasSubstr(words::english("engine.refusal.two_modes",
                                       {{"key", "tencent.com/vcuda-core"}, {"other", "nvidia.com/gpualloc"}})));
  EXPECT_THAT(
      notes["bytes"],
      HasSubstr(api::words_of(
          quota::refusal{.kind = quota::wrong::not_legal, .key = "nvidia.com/gpumem", .value = std::int64_t{4} << 30},
          text::language::en)));
  EXPECT_THAT(
      notes["lonely"],
      HasSubstr(words::english("engine.refusal.needs_partner",
                               {{"key", "nvidia.com/gpumem"}, {"amount", "4096"}, {"other", "nvidia.com/gpualloc"}})));
}

#if __has_feature(address_sanitizer)
std::size_t allocations = 0;
bool counting = false;

TEST_F(request_handler_test, T11_a_filter_call_allocates_as_little_for_many_nodes_as_for_few) {
  ASSERT_NE(
      __sanitizer_install_malloc_and_free_hooks(
          [](const volatile void*, std::size_t) { allocations += counting ? 1 : 0; }, [](const volatile void*) {}),
      0);
  known.pods.put(share("p", 20, 8));
  json few = json::array(), many = json::array();
  for (int i = 0; i < 500; ++i) {
    const auto name = "gpu-node-in-a-long-row-" + std::to_string(i);
    known.nodes.put(vgpu_node(name, 8));
    if (i < 4) few.push_back(name);
    many.push_back(name);
  }
  const auto counted = [&](const json& names) {
    auto body = asked_for(*known.pods.find({"lab", "p"}), names);
    body.reserve(body.size() + 64);  // as the server reads it
    subject.filter(body);            // what is kept between calls has its size now
    allocations = 0;
    counting = true;
    const auto got = subject.filter(body);
    counting = false;
    EXPECT_EQ(json::parse(got.body)["NodeNames"].size(), names.size());
    return allocations;
  };
  EXPECT_LE(counted(few), 20u);
  EXPECT_LE(counted(many), 20u);
}
#endif

}  // namespace
}  // namespace extender_test
