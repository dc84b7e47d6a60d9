#include "controller/manager.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "controller/sleep.hpp"
#include "test/controller/rig.hpp"
#include "test/facts_in.hpp"

namespace {

using namespace std::chrono_literals;

struct empty_object : kube::object {
  static const kube::resource& of() { return kube::resources::config_maps; }
  static constexpr kube::encoding wire = kube::encoding::json;
  static kube::result<empty_object> decode(std::string_view) { return empty_object(); }
  friend bool operator==(const empty_object&, const empty_object&) = default;
};

struct noted : controller::reconciler {
  explicit noted(std::vector<std::string>& output) : steps(output) {}
  std::string_view name() const override { return "noted"; }
  kube::task<controller::action> reconcile(kube::object_key key) override {
    steps.push_back("reconcile " + key.name);
    co_return controller::action::await_change();
  }
  std::vector<std::string>& steps;
};

struct manager : controller_test::rig {
  kube_test::scripted_transport api;
  controller::health health{metrics};
  controller::store<empty_object> store;
  std::vector<std::string> steps;
  noted reconciler{steps};
  controller::runner_metrics running{metrics};
  controller::runner runner{loop, reconciler, running};
  controller::manager under_test{loop, health, metrics, quick()};
  bool lead = false;
  bool ended = false;

  static controller::stop_limits quick() {
    controller::stop_limits out;
    out.reconciles = out.before_release = 100ms;
    return out;
  }
  void prepare() {
    kube::watch_settings settings;
    settings.watch_list = false;
    under_test.add_cache(api, settings, store);
    under_test.add_always("always", [this] { return note("always"); }, [this] { return note("flush"); });
    under_test.set_leadership(
        {[this] { return note("elect"); }, [this] { return lead; }, [this] { return note("release"); }});
    under_test.on_leading([this] { steps.push_back("leading"); });
    under_test.before_release([this] { return note("before release"); });
    under_test.add_runner(runner);
    runner.add({"", "a"});
  }
  kube::task<void> note(std::string step) {
    steps.push_back(std::move(step));
    co_return kube::result<void>();
  }
  void start() {
    loop.spawn("manager", [](manager& self) -> boost::asio::awaitable<void> {
      const auto done = co_await self.under_test.run();
      EXPECT_TRUE(done);
      self.ended = true;
    }(*this));
  }
  void expect_list() {
    api.on(kube::method::get, "/api/v1/configmaps*")
        .answers(200, R"({"kind":"ConfigMapList","metadata":{"resourceVersion":"5"},"items":[]})");
    api.on_stream("*watch=true*").hangs();
  }
};

TEST_F(manager, starts_in_phases_and_stops_in_reverse) {
  prepare();
  expect_list();
  start();
  ASSERT_TRUE(turn([&] { return steps.size() >= 2; }));
  settle();
  EXPECT_EQ(steps, (std::vector<std::string>{"always", "elect"})) << "nothing is reconciled before we lead";
  EXPECT_FALSE(under_test.leading());
  lead = true;
  ASSERT_TRUE(turn([&] { return steps.size() >= 4; }));
  EXPECT_EQ(steps[2], "leading");
  EXPECT_EQ(steps[3], "reconcile a");
  steps.clear();
  under_test.stop();
  ASSERT_TRUE(turn([&] { return ended; }));
  EXPECT_EQ(steps, (std::vector<std::string>{"flush", "before release", "release"}));
  EXPECT_FALSE(under_test.leading());
}

TEST_F(manager, does_not_stand_for_election_before_its_caches_are_synced) {
  prepare();
  lead = true;
  api.on(kube::method::get, "/api/v1/configmaps*")
      .answers(403, R"({"kind":"Status","code":403,"reason":"Forbidden","message":"no right"})");
  start();
  EXPECT_TRUE(turn([&] {
    const auto problems = health.problems();
    return std::ranges::any_of(problems, [](const auto& p) {
      return p.find("cache configmaps: not synced") == 0 && p.find("no right") != std::string::npos;
    });
  }));
  settle();
  EXPECT_TRUE(steps.empty());
  under_test.stop();
  ASSERT_TRUE(turn([&] { return ended; }));
}

TEST_F(manager, F29_a_step_of_the_stop_that_hangs_does_not_hold_up_the_others) {
  under_test.set_leadership(
      {[this] { return note("elect"); }, [] { return true; }, [this] { return note("release"); }});
  under_test.before_release([]() -> kube::task<void> {
    co_await controller::sleep_for(1h);
    co_return kube::result<void>();
  });
  start();
  ASSERT_TRUE(turn([&] { return under_test.leading(); }));
  under_test.stop();
  ASSERT_TRUE(turn([&] { return ended; }));
  EXPECT_EQ(steps.back(), "release");
  EXPECT_TRUE(log.contains("took too long"));
}

/// Sends, and gets no answer: what it wrote may arrive at any time.
struct hanging : controller::reconciler {
  std::string_view name() const override { return "hanging"; }
  kube::task<controller::action> reconcile(kube::object_key) override {
    begun = true;
    co_await controller::sleep_for(1h);
    ended = true;
    co_return std::unexpected(kube::error{kube::errc::cancelled, 0, "cancelled", {}});
  }
  bool begun = false, ended = false;
};

TEST_F(manager, F58_a_lease_is_not_given_back_while_a_write_may_be_on_its_way) {
  hanging writer;
  controller::runner slow(loop, writer, running);
  prepare();
  under_test.add_runner(slow);
  slow.add({"", "b"});
  expect_list();
  lead = true;
  start();
  ASSERT_TRUE(turn([&] { return writer.begun; }));
  under_test.stop();
  ASSERT_TRUE(turn([&] { return ended; }));
  EXPECT_EQ(std::ranges::count(steps, "release"), 0);
  EXPECT_TRUE(writer.ended) << "cancelled";
  EXPECT_TRUE(slow.idle());
  EXPECT_TRUE(log.contains("lease is not given back"));
}

TEST_F(manager, O9_a_cache_without_contact_is_not_ready) {
  controller::milliseconds now = 1000s;
  kube::watch_settings settings;
  settings.watch_list = false;
  controller::reflector_options options;
  options.now = [&now] { return now; };
  under_test.add_cache(api, settings, store, options);
  under_test.set_leadership(
      {[this] { return note("elect"); }, [] { return true; }, [this] { return note("release"); }});
  expect_list();
  start();
  ASSERT_TRUE(turn([&] { return store.synced(); }));
  const auto find_problem = [this] {
    for (const auto& line : health.problems())
      if (line.starts_with("cache")) return line;
    return std::string();
  };
  EXPECT_EQ(find_problem(), "");
  now += 330s;
  EXPECT_EQ(find_problem(), "") << "a watch may be silent, and is listed before this";
  now += 10s;
  EXPECT_THAT(find_problem(), words::has_in_order({"cache configmaps: ", "340 s"}));
  under_test.stop();
  ASSERT_TRUE(turn([&] { return ended; }));
}

TEST_F(manager, a_server_that_cannot_start_ends_it_before_anything_was_asked) {
  controller::http_server_metrics serving{metrics};
  controller::http_server_options wrong;
  wrong.address = "nowhere";
  controller::http_server server(loop, serving, wrong);
  under_test.add_server(server);
  const auto done = kube_test::run(loop.context(), under_test.run());
  ASSERT_FALSE(done);
  EXPECT_TRUE(api.seen().empty());
}

TEST_F(manager, caches_of_one_resource_have_names_of_their_own) {
  controller::store<empty_object> second;
  under_test.add_cache(api, {}, store);
  under_test.add_cache(api, {}, second);
  const auto problems = health.problems();
  EXPECT_TRUE(std::ranges::count(problems, "cache configmaps: not synced yet") == 1);
  EXPECT_TRUE(std::ranges::count(problems, "cache configmaps-2: not synced yet") == 1);
}

struct loop_test : controller_test::rig {};

TEST_F(loop_test, an_exception_out_of_a_coroutine_is_counted_and_the_others_go_on) {
  bool other = false;
  loop.spawn("bad", []() -> boost::asio::awaitable<void> {
    co_await controller::yield_to_others();
    throw std::runtime_error("a bug");
  }());
  loop.spawn("good", [](bool& ran) -> boost::asio::awaitable<void> {
    co_await controller::sleep_for(1ms);
    ran = true;
  }(other));
  EXPECT_TRUE(turn([&] { return other; }));
  EXPECT_EQ(metric(R"(quartermaster_coroutine_exceptions_total{name="bad"})"), 1);
  EXPECT_TRUE(log.contains("a bug"));
}

TEST_F(loop_test, an_exception_out_of_an_essential_coroutine_ends_the_process) {
  std::string fatal;
  loop.on_fatal([&](std::string_view name) { fatal = name; });
  const auto cancelled = loop.spawn_essential("cancelled", []() -> boost::asio::awaitable<void> {
    co_await controller::sleep_for(1h);
    co_await controller::sleep_for(1h);
  }());
  settle();
  cancelled.cancel();
  EXPECT_TRUE(turn([&] { return !cancelled.running(); }));
  EXPECT_EQ(fatal, "");
  loop.spawn_essential("elect", []() -> boost::asio::awaitable<void> {
    co_await controller::yield_to_others();
    throw std::bad_alloc();
  }());
  EXPECT_TRUE(turn([&] { return !fatal.empty(); }));
  EXPECT_EQ(fatal, "elect");
}

// A gauge shows the last second only; of a stall between two scrapes no one would hear.
TEST_F(loop_test, a_stall_of_the_loop_is_still_there_at_the_next_scrape) {
  controller::registry own;
  controller::loop stalled(own, 20ms);
  bool done = false;
  stalled.spawn("test", [](controller::loop& loop, bool& done) -> boost::asio::awaitable<void> {
    co_await controller::sleep_for(10ms);
    std::this_thread::sleep_for(300ms);
    co_await controller::sleep_for(50ms);
    done = true;
    loop.quit();
  }(stalled, done));
  stalled.run();
  EXPECT_TRUE(done);
  const auto text = own.text();
  const auto count = [&](const std::string& bucket) {
    const auto series = "\nquartermaster_loop_lag_seconds_bucket{le=\"" + bucket + "\"} ";
    return std::stoi(text.substr(text.find(series) + series.size()));
  };
  EXPECT_EQ(count("0.25") + 1, count("+Inf")) << text;
}

TEST_F(loop_test, a_cancelled_coroutine_is_no_bug) {
  const auto task = loop.spawn("long", []() -> boost::asio::awaitable<void> {
    co_await controller::sleep_for(1h);
    co_await controller::sleep_for(1h);
  }());
  settle();
  task.cancel();
  EXPECT_TRUE(turn([&] { return !task.running(); }));
  EXPECT_EQ(metric(R"(quartermaster_coroutine_exceptions_total{name="long"})"), -1);
  EXPECT_TRUE(log.lines().empty());
}

/// Runs `program` in a child that gets the signals; returns its wait status.
template <class Program>
int in_child(Program program, std::vector<int> signals) {
  int ready[2];
  EXPECT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    program(ready[1]);
    _exit(0);
  }
  char byte = 0;
  for (const int each : signals) {
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    kill(child, each);
  }
  int status = 0;
  waitpid(child, &status, 0);
  close(ready[0]);
  close(ready[1]);
  return status;
}

TEST(signals, F58_the_first_asks_for_a_stop_and_a_second_ends_even_a_loop_that_hangs) {
  const int status = in_child(
      [](int ready) {
        controller::registry metrics;
        controller::loop loop(metrics);
        loop.stop_on_signals([ready] {
          [[maybe_unused]] const auto written = write(ready, "2", 1);
          for (;;) pause();
        });
        loop.post([ready] { [[maybe_unused]] const auto written = write(ready, "1", 1); });
        loop.run();
      },
      {SIGTERM, SIGTERM});
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

TEST(signals, F29_a_stop_that_hangs_ends_at_the_hard_deadline) {
  const int status = in_child(
      [](int ready) {
        controller::registry metrics;
        controller::loop loop(metrics);
        loop.stop_on_signals(
            [] {
              for (;;) pause();
            },
            50ms);
        loop.post([ready] { [[maybe_unused]] const auto written = write(ready, "1", 1); });
        loop.run();
      },
      {SIGTERM});
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

TEST(signals, F58_hangup_and_broken_pipe_change_nothing) {
  const int status = in_child(
      [](int ready) {
        controller::registry metrics;
        controller::loop loop(metrics);
        int left = 2;
        loop.stop_on_signals([&loop] { loop.quit(); });
        std::function<void()> next = [&] {
          [[maybe_unused]] const auto written = write(ready, "x", 1);
          if (--left >= 0)
            loop.spawn("next", [](std::function<void()>& call) -> boost::asio::awaitable<void> {
              co_await controller::sleep_for(50ms);
              call();
            }(next));
        };
        loop.post(next);
        loop.run();
      },
      {SIGHUP, SIGPIPE, SIGTERM});
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
