#include "controller/runner.hpp"

#include <deque>

#include "controller/sleep.hpp"
#include "test/controller/rig.hpp"

namespace {

using controller::action;
using namespace std::chrono_literals;

/// Plays answers in order; `hold` keeps every reconcile waiting until it is let go.
class scripted_reconciler final : public controller::reconciler {
 public:
  std::string_view name() const override { return "scripted"; }
  kube::task<action> reconcile(kube::object_key key) override {
    seen.push_back(key.name);
    ++running;
    most = std::max(most, running);
    while (hold) co_await controller::sleep_for(1ms);
    --running;
    if (answers.empty()) co_return action::await_change();
    auto answer = std::move(answers.front());
    answers.pop_front();
    co_return answer();
  }

  std::vector<std::string> seen;
  std::deque<std::function<kube::result<action>()>> answers;
  bool hold = false;
  int running = 0, most = 0;
};

struct runner : controller_test::rig {
  scripted_reconciler reconciler;
  controller::runner_metrics running{metrics};
  controller::runner_options options;
  controller::runner under_test{loop, reconciler, running, options};

  kube::object_key key(std::string name) { return {"", std::move(name)}; }
  bool saw(std::size_t count) {
    return turn([&] { return reconciler.seen.size() >= count && under_test.idle(); });
  }
};

TEST_F(runner, runs_nothing_before_it_is_started) {
  under_test.add(key("a"));
  settle();
  EXPECT_TRUE(reconciler.seen.empty());
  under_test.start();
  EXPECT_TRUE(saw(1));
}

TEST_F(runner, runs_a_key_once_for_a_burst_of_changes) {
  under_test.start();
  for (int i = 0; i < 100; ++i) under_test.add(key("a"));
  ASSERT_TRUE(saw(1));
  settle();
  EXPECT_EQ(reconciler.seen.size(), 1U);
  EXPECT_EQ(metric(R"(quartermaster_reconcile_total{reconciler="scripted",result="success"})"), 1);
}

TEST_F(runner, runs_at_most_so_many_at_once_and_never_one_key_twice) {
  reconciler.hold = true;
  under_test.start();
  for (const char* name : {"a", "b", "c", "d"}) under_test.add(key(name));
  ASSERT_TRUE(turn([&] { return reconciler.running == 2; }));
  under_test.add(key("a"));
  settle();
  EXPECT_EQ(reconciler.most, 2);
  EXPECT_EQ(reconciler.seen, (std::vector<std::string>{"a", "b"}));
  reconciler.hold = false;
  ASSERT_TRUE(saw(5));
  EXPECT_EQ(reconciler.most, 2);
  EXPECT_EQ(std::ranges::count(reconciler.seen, "a"), 2);
}

TEST_F(runner, looks_again_when_told_to) {
  reconciler.answers.push_back([] { return action::again(5ms); });
  under_test.start();
  under_test.add(key("a"));
  EXPECT_TRUE(saw(2));
  EXPECT_EQ(metric(R"(quartermaster_reconcile_total{reconciler="scripted",result="requeue"})"), 1);
}

TEST_F(runner, retries_an_error_and_says_it_in_one_line) {
  reconciler.answers.push_back([]() -> kube::result<action> {
    return std::unexpected(kube::error{kube::errc::forbidden, 403, "apply daemonsets.apps x: no right", {}});
  });
  under_test.start();
  under_test.add(key("a"));
  ASSERT_TRUE(saw(2));
  EXPECT_TRUE(log.contains("apply daemonsets.apps x: no right"));
  EXPECT_EQ(metric(R"(quartermaster_reconcile_total{reconciler="scripted",result="error"})"), 1);
  EXPECT_EQ(under_test.queue().failures(key("a")), 0U) << "forgotten after the success";
}

TEST_F(runner, looking_again_when_told_to_forgets_the_failures_before) {
  reconciler.answers.push_back(
      []() -> kube::result<action> { return std::unexpected(kube::error{kube::errc::server, 500, "away", {}}); });
  reconciler.answers.push_back([] { return action::again(1h); });
  under_test.start();
  under_test.add(key("a"));
  ASSERT_TRUE(saw(2));
  EXPECT_EQ(metric(R"(quartermaster_reconcile_total{reconciler="scripted",result="requeue"})"), 1);
  EXPECT_EQ(under_test.queue().failures(key("a")), 0U) << "the next failure is the first again";
}

TEST_F(runner, a_conflict_is_no_warning) {
  reconciler.answers.push_back([]() -> kube::result<action> {
    return std::unexpected(kube::error{kube::errc::conflict, 409, "someone was quicker", {}});
  });
  under_test.start();
  under_test.add(key("a"));
  ASSERT_TRUE(saw(2));
  EXPECT_FALSE(log.contains(" warn "));
  EXPECT_EQ(metric(R"(quartermaster_reconcile_total{reconciler="scripted",result="conflict"})"), 1);
}

TEST_F(runner, an_exception_is_caught_counted_and_backed_off) {
  reconciler.answers.push_back([]() -> kube::result<action> { throw std::runtime_error("a bug"); });
  under_test.start();
  under_test.add(key("a"));
  ASSERT_TRUE(saw(2));
  EXPECT_TRUE(log.contains("exception out of a reconcile"));
  EXPECT_TRUE(log.contains("a bug"));
  EXPECT_EQ(metric(R"(quartermaster_reconcile_total{reconciler="scripted",result="exception"})"), 1);
}

TEST_F(runner, stopped_it_lets_what_runs_end_and_takes_nothing_new) {
  reconciler.hold = true;
  under_test.start();
  under_test.add(key("a"));
  ASSERT_TRUE(turn([&] { return reconciler.running == 1; }));
  under_test.add(key("b"));
  under_test.stop();
  EXPECT_FALSE(under_test.idle());
  reconciler.hold = false;
  ASSERT_TRUE(turn([&] { return under_test.idle(); }));
  settle();
  EXPECT_EQ(reconciler.seen, (std::vector<std::string>{"a"}));
}

TEST_F(runner, waits_for_a_delayed_key_without_being_asked_again) {
  under_test.start();
  under_test.add_after(key("later"), 10ms);
  EXPECT_TRUE(saw(1));
}

}  // namespace
