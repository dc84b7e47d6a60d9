#include "agent/mps/server.hpp"

#include <gmock/gmock.h>
#include <signal.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace agent::mps {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// What NVML would do. `processes` are those that are no servers.
struct made_driver final : card_driver {
  answer_of<void> set_mode(std::string card, compute_mode mode) override {
    EXPECT_EQ(card, "GPU-1");
    if (!refusal.empty()) co_return std::unexpected(refusal);
    if (modes.empty() || modes.back() != mode) modes.push_back(mode);
    co_return std::expected<void, problem>();
  }
  answer_of<std::size_t> processes_on(std::string) override { co_return processes; }

  std::vector<compute_mode> modes;
  std::string refusal;
  std::size_t processes = 0;
};

struct mps_server : testing::Test {
  std::string folder = made_folder();
  boost::asio::io_context loop;
  made_driver driver;
  boost::asio::cancellation_signal stop;
  std::unique_ptr<card_server> subject;
  bool has_container = false;
  std::chrono::steady_clock::time_point comes_after = std::chrono::steady_clock::time_point::max();  ///< a container
  control talker{{.program = MPS_CONTROL, .folder = folder, .card = "GPU-1"}};

  mps_server() { make(); }
  ~mps_server() override {
    answer(talker.quit());
    stop.emit(boost::asio::cancellation_type::terminal);
    loop.restart();
    loop.poll();
    subject.reset();
    fs::remove_all(folder);
  }
  static std::string made_folder() {
    auto pattern = (fs::temp_directory_path() / "mps.XXXXXX").string();
    return ::mkdtemp(pattern.data());
  }
  void make(std::chrono::milliseconds period = 30ms, const std::string& program = MPS_CONTROL,
            std::chrono::milliseconds deadline = 300ms) {
    server_options out{.control = talker.options(), .whole = {100, 16000}};
    out.control.program = program;
    out.control.deadline = deadline, out.control.end_deadline = 300ms;
    out.start = 1s, out.period = period, out.retry = 20ms,
    out.hold_limit = std::max<std::chrono::milliseconds>(1s, 4 * deadline), out.until_started = 300ms;
    out.has_container = [this] { return has_container || std::chrono::steady_clock::now() > comes_after; };
    subject = std::make_unique<card_server>(driver, std::move(out));
  }
  void run() {
    boost::asio::co_spawn(loop, subject->run(),
                          boost::asio::bind_cancellation_slot(stop.slot(), [](std::exception_ptr) {}));
  }
  /// Until it is so; false after five seconds.
  bool becomes(const std::function<bool()>& is) {
    const auto until = std::chrono::steady_clock::now() + 5s;
    while (!is() && std::chrono::steady_clock::now() < until) {
      loop.restart();
      loop.run_for(5ms);
    }
    return is();
  }
  bool is_ready() {
    return becomes([this] { return subject->problem().empty(); });
  }
  template <class T>
  std::expected<T, problem> answer(answer_of<T> question) {
    std::expected<T, problem> out = std::unexpected("no answer");
    bool is_done = false;
    const auto talk = [&]() -> boost::asio::awaitable<void> {
      out = co_await std::move(question);
      is_done = true;
    };
    boost::asio::co_spawn(loop, talk, [](std::exception_ptr) {});
    becomes([&] { return is_done; });
    return out;
  }
  void fault(std::string_view word) const { std::ofstream(folder + "/faults") << word; }
  pid_t process_of_daemon() const {
    std::ifstream file(folder + "/pipe/nvidia-cuda-mps-control.pid");
    pid_t out = 0;
    file >> out;
    return out;
  }
};

TEST_F(mps_server, S17_is_in_order_only_when_all_limits_were_read_back) {
  EXPECT_THAT(subject->problem(), HasSubstr("set up"));
  run();
  ASSERT_TRUE(is_ready()) << subject->problem();
  EXPECT_THAT(driver.modes, ElementsAre(compute_mode::exclusive_process));
  EXPECT_EQ(*answer(talker.defaults()), (ceilings{100, 16000}));
  const auto servers = answer(talker.servers());
  ASSERT_THAT(*servers, testing::SizeIs(1));
  EXPECT_EQ(*answer(talker.limits_of(servers->front())), (ceilings{100, 16000}));
}

TEST_F(mps_server, holds_the_ceilings_that_are_asked_for) {
  run();
  ASSERT_TRUE(is_ready()) << subject->problem();
  const auto held = answer(subject->hold({30, 2048}));
  ASSERT_TRUE(held) << held.error();
  const auto server = answer(talker.servers())->front();
  EXPECT_EQ(*answer(talker.limits_of(server)), (ceilings{30, 2048}));
  EXPECT_EQ(*answer(talker.defaults()), (ceilings{30, 2048})) << "a server that starts later";
  EXPECT_THAT(answer(subject->hold({30, 20000})).error(), HasSubstr("16000 MiB"));
  EXPECT_FALSE(answer(subject->hold({0, 100})));
}

TEST_F(mps_server, gives_two_that_ask_at_once_the_most_of_both) {
  run();
  ASSERT_TRUE(is_ready());
  std::vector<std::string> refusals;
  int done = 0;
  for (const auto& limits : {ceilings{60, 1000}, ceilings{20, 8000}}) {
    const auto ask = [&, limits]() -> boost::asio::awaitable<void> {
      const auto held = co_await subject->hold(limits);
      if (!held) refusals.push_back(held.error());
      ++done;
    };
    boost::asio::co_spawn(loop, ask, [](std::exception_ptr) {});
  }
  ASSERT_TRUE(becomes([&] { return done == 2; }));
  EXPECT_THAT(refusals, IsEmpty());
  EXPECT_EQ(*answer(talker.limits_of(answer(talker.servers())->front())), (ceilings{60, 8000}));
  ASSERT_TRUE(answer(subject->hold({20, 1000}))) << "later it may be less";
  EXPECT_EQ(*answer(talker.limits_of(answer(talker.servers())->front())), (ceilings{20, 1000}));
}

TEST_F(mps_server, starts_a_killed_server_again_with_the_same_ceilings) {
  run();
  ASSERT_TRUE(is_ready());
  ASSERT_TRUE(answer(subject->hold({30, 2048})));
  const auto before = answer(talker.servers())->front();
  ::kill(static_cast<pid_t>(before), SIGKILL);
  ASSERT_TRUE(becomes([&] {
    const auto now = answer(talker.servers());
    return now && !now->empty() && now->front() != before && subject->problem().empty();
  }));
  const auto now = answer(talker.servers())->front();
  EXPECT_EQ(*answer(talker.limits_of(now)), (ceilings{30, 2048}));
}

TEST_F(mps_server, sees_that_its_server_has_ended_without_a_question) {
  make(1h);
  run();
  ASSERT_TRUE(is_ready());
  const auto before = answer(talker.servers())->front();
  ::kill(static_cast<pid_t>(before), SIGKILL);
  EXPECT_TRUE(becomes([&] {
    const auto now = answer(talker.servers());
    return now && !now->empty() && now->front() != before && subject->problem().empty();
  }));
}

TEST_F(mps_server, of_a_daemon_that_died_the_next_waits_for_the_last_client) {
  run();
  ASSERT_TRUE(is_ready());
  const auto before = process_of_daemon();
  driver.processes = 1;
  ::kill(before, SIGKILL);
  ASSERT_TRUE(becomes([this] { return !subject->problem().empty(); }));
  EXPECT_THAT(subject->problem(), HasSubstr("signal 9"));
  EXPECT_THAT(answer(subject->hold({30, 2048})).error(), HasSubstr("signal 9"));
  ASSERT_TRUE(becomes([this] { return driver.modes.back() == compute_mode::prohibited; }));
  loop.restart();
  loop.run_for(200ms);
  EXPECT_FALSE(subject->problem().empty()) << "a client is there still";
  driver.processes = 0;
  ASSERT_TRUE(is_ready()) << subject->problem();
  EXPECT_NE(process_of_daemon(), before);
  EXPECT_THAT(driver.modes,
              ElementsAre(compute_mode::exclusive_process, compute_mode::prohibited, compute_mode::exclusive_process));
}

TEST_F(mps_server, lends_no_more_where_someone_else_has_changed_the_limits) {
  run();
  ASSERT_TRUE(is_ready());
  ASSERT_TRUE(answer(subject->hold({30, 2048})));
  ASSERT_TRUE(answer(talker.set(answer(talker.servers())->front(), {90, 2048})));
  EXPECT_THAT(answer(subject->hold({30, 2048})).error(), HasSubstr("limits of 90 % and 2048 MiB where 30 %"));
  EXPECT_TRUE(becomes([this] { return subject->problem().contains("where 30 %"); })) << "also without a start";
}

/// Each question starts a program while a container waits.
TEST_F(mps_server, reads_both_limits_before_a_start_and_asks_nothing_else) {
  const auto program = folder + "/control.sh", log = folder + "/questions";
  std::ofstream(program) << "#!/bin/sh\n[ $# = 0 ] || exec " MPS_CONTROL " \"$@\"\ntee -a " << log
                         << " | " MPS_CONTROL "\n";
  fs::permissions(program, fs::perms::owner_all);
  make(1h, program);
  run();
  ASSERT_TRUE(is_ready()) << subject->problem();
  ASSERT_TRUE(answer(subject->hold({30, 2048})));
  fs::remove(log);
  ASSERT_TRUE(answer(subject->hold({30, 2048})));
  const auto server = std::to_string(answer(talker.servers())->front());
  std::stringstream questions;
  questions << std::ifstream(log).rdbuf();
  EXPECT_EQ(questions.str(),
            "get_active_thread_percentage " + server + "\nget_device_pinned_mem_limit " + server + " 0\n");
}

struct mps_server_fault : mps_server, testing::WithParamInterface<std::pair<const char*, const char*>> {};

TEST_P(mps_server_fault, lends_nothing_and_says_why_and_comes_back) {
  const auto& [word, reason] = GetParam();
  fault(word);
  run();
  ASSERT_TRUE(becomes([&] { return subject->problem().contains(reason); })) << subject->problem();
  const auto is_open = [this] { return subject->problem().empty(); };
  for (int i = 0; i < 20; ++i) {
    loop.restart();
    loop.run_for(10ms);
    EXPECT_FALSE(is_open());
  }
  fault("");
  ASSERT_TRUE(is_ready()) << subject->problem();
  fault(word);
  if (std::string_view(word) == "no_server") return;  // the one that is there stays
  EXPECT_TRUE(becomes([&] { return !is_open() || !answer(subject->hold({20, 1000})); })) << "one that was in order";
}

INSTANTIATE_TEST_SUITE_P(each, mps_server_fault,
                         testing::Values(std::pair("ignores_memory", "no limit of memory"),
                                         std::pair("forgets", "no limit of memory"), std::pair("nonsense", "answers"),
                                         std::pair("hangs", "killed"), std::pair("dies", "exit code 1"),
                                         std::pair("no_server", "no MPS server starts")),
                         [](const auto& info) { return std::string(info.param.first); });

TEST_F(mps_server, whose_server_is_in_a_fault_is_lent_no_more) {
  run();
  ASSERT_TRUE(is_ready());
  fault("faulty");
  ASSERT_TRUE(becomes([this] { return subject->problem().contains("FAULT"); }));
  fault("");
  EXPECT_TRUE(is_ready());
}

TEST_F(mps_server, begins_on_no_card_that_someone_uses_or_that_the_driver_does_not_close) {
  driver.processes = 2;
  run();
  ASSERT_TRUE(becomes([this] { return subject->problem().contains("2 processes"); }));
  EXPECT_FALSE(fs::exists(folder + "/pipe"));
  driver.processes = 0, driver.refusal = "Insufficient Permissions";
  ASSERT_TRUE(becomes([this] { return subject->problem() == "Insufficient Permissions"; }));
  EXPECT_FALSE(fs::exists(folder + "/pipe")) << "without EXCLUSIVE_PROCESS a client may pass MPS by";
  driver.refusal = "";
  EXPECT_TRUE(is_ready()) << subject->problem();
}

TEST_F(mps_server, goes_on_with_the_daemon_of_a_killed_predecessor) {
  auto before = talker.start();
  ASSERT_TRUE(before) << before.error();
  ASSERT_TRUE(becomes([this] { return answer(talker.servers()).has_value(); }));
  const auto daemon = process_of_daemon();
  driver.processes = 3;  // its clients
  run();
  ASSERT_TRUE(is_ready()) << subject->problem();
  EXPECT_EQ(process_of_daemon(), daemon);
}

TEST_F(mps_server, ends_the_clients_that_it_is_asked_to_and_no_other) {
  run();
  ASSERT_TRUE(is_ready());
  const auto server = answer(talker.servers())->front();
  EXPECT_THAT(*answer(talker.clients_of(server)), IsEmpty());
  std::ofstream(folder + "/clients") << "101\n202\n303\n";
  EXPECT_THAT(*answer(talker.clients_of(server)), ElementsAre(101U, 202U, 303U));
  const auto ended = answer(subject->end_clients([](unsigned process) { return process == 202 || process == 404; }));
  ASSERT_TRUE(ended) << ended.error();
  EXPECT_EQ(*ended, 1);
  EXPECT_THAT(*answer(talker.clients_of(server)), ElementsAre(101U, 303U));
  EXPECT_EQ(*answer(subject->end_clients([](unsigned) { return false; })), 0);
  EXPECT_FALSE(answer(talker.terminate(server, 202))) << "it is no client any more";
  EXPECT_FALSE(answer(talker.terminate(server + 1, 101)));
  EXPECT_THAT(*answer(talker.clients_of(server)), ElementsAre(101U, 303U));
  EXPECT_TRUE(subject->problem().empty());
}

TEST_F(mps_server, that_does_not_let_go_of_a_client_is_wedged_and_gives_its_card_up_though_it_says_ACTIVE) {
  run();
  ASSERT_TRUE(is_ready());
  const auto before = process_of_daemon();
  std::ofstream(folder + "/clients") << "101\n202\n";
  fault("wedged");
  driver.processes = 2;
  int done = 0;
  const auto ask = [&]() -> boost::asio::awaitable<void> {
    const auto ended = co_await subject->end_clients([](unsigned process) { return process == 202; });
    EXPECT_FALSE(ended);
    ++done;
  };
  boost::asio::co_spawn(loop, ask, [](std::exception_ptr) {});
  loop.restart();
  loop.run_for(50ms);
  EXPECT_EQ(*answer(subject->end_clients([](unsigned process) { return process == 202; })), 0) << "it is ending";
  EXPECT_TRUE(subject->problem().empty()) << "it may be busy";
  ASSERT_TRUE(becomes([&] { return done == 1 && subject->failure().contains("process 202"); }));
  ASSERT_TRUE(becomes([this] { return driver.modes.back() == compute_mode::prohibited; }));
  fault("");
  loop.restart();
  loop.run_for(100ms);
  EXPECT_THAT(subject->failure(), HasSubstr("wedged")) << "clients are there still";
  driver.processes = 0;
  ASSERT_TRUE(is_ready()) << subject->problem();
  EXPECT_NE(process_of_daemon(), before);
}

TEST_F(mps_server, that_is_slow_is_lent_while_it_answers_in_time) {
  make(30ms, MPS_CONTROL, 2s);
  run();
  ASSERT_TRUE(is_ready());
  fault("slow");
  ASSERT_TRUE(answer(subject->hold({30, 2048})));
  const auto until = std::chrono::steady_clock::now() + 1s;
  EXPECT_FALSE(becomes([&] { return !subject->problem().empty() || std::chrono::steady_clock::now() > until; }) &&
               !subject->problem().empty())
      << subject->problem();
}

TEST_F(mps_server, that_is_slower_than_the_deadline_is_lent_no_more_until_it_answers) {
  make(30ms, MPS_CONTROL, 100ms);
  run();
  ASSERT_TRUE(is_ready());
  fault("slow");
  ASSERT_TRUE(becomes([this] { return !subject->problem().empty(); }));
  EXPECT_FALSE(answer(subject->hold({30, 2048})));
  fault("");
  EXPECT_TRUE(is_ready()) << subject->problem();
}

TEST_F(mps_server, that_takes_no_limit_of_multiprocessors_starts_no_container) {
  run();
  ASSERT_TRUE(is_ready());
  fault("ignores_cores");
  EXPECT_THAT(answer(subject->hold({30, 2048})).error(), HasSubstr("limits of 100 % and 2048 MiB where 30 %"));
  EXPECT_TRUE(becomes([this] { return subject->problem().contains("where 30 %"); }));
  fault("");
  EXPECT_TRUE(is_ready()) << subject->problem();
}

/// A look that fails once is none: a busy daemon may be slow.
TEST_F(mps_server, has_failed_only_when_it_was_given_up) {
  EXPECT_THAT(subject->failure(), IsEmpty()) << "it is being set up";
  run();
  ASSERT_TRUE(is_ready());
  std::string failure;
  fault("faulty");
  ASSERT_TRUE(becomes([&] {
    if (failure.empty()) failure = subject->failure();
    return !subject->problem().empty();
  }));
  EXPECT_THAT(failure, IsEmpty()) << "at the first look";
  driver.processes = 1;
  ASSERT_TRUE(becomes([this] { return subject->failure().contains("FAULT"); }));
  fault("");
  loop.restart();
  loop.run_for(100ms);
  EXPECT_THAT(subject->failure(), HasSubstr("FAULT")) << "a client is there still";
  driver.processes = 0;
  ASSERT_TRUE(is_ready());
  EXPECT_THAT(subject->failure(), IsEmpty());
}

/// The mode that a card has when its program has ended.
struct left_card : mps_server {
  void leave() {
    stop.emit(boost::asio::cancellation_type::terminal);
    const auto wrapped = [this]() -> answer_of<void> {
      co_await subject->leave();
      co_return std::expected<void, problem>();
    };
    ASSERT_TRUE(answer(wrapped()));
    EXPECT_FALSE(answer(talker.servers())) << "no daemon";
  }
};

TEST_F(left_card, is_given_back) {
  run();
  ASSERT_TRUE(is_ready());
  leave();
  EXPECT_THAT(driver.modes, ElementsAre(compute_mode::exclusive_process, compute_mode::shared));
}

TEST_F(left_card, stays_closed_while_a_container_of_a_share_is_there) {
  has_container = true;
  run();
  ASSERT_TRUE(is_ready());
  leave();
  EXPECT_THAT(driver.modes, ElementsAre(compute_mode::exclusive_process, compute_mode::prohibited));
}

TEST_F(left_card, waits_for_the_container_that_it_has_just_let_start) {
  run();
  ASSERT_TRUE(is_ready());
  ASSERT_TRUE(answer(subject->hold({30, 2048})));
  leave();
  EXPECT_THAT(driver.modes,
              ElementsAre(compute_mode::exclusive_process, compute_mode::prohibited, compute_mode::shared))
      << "none came";
}

TEST_F(left_card, stays_closed_for_a_container_that_comes_later) {
  run();
  ASSERT_TRUE(is_ready());
  ASSERT_TRUE(answer(subject->hold({30, 2048})));
  comes_after = std::chrono::steady_clock::now() + 50ms;
  leave();
  EXPECT_EQ(driver.modes.back(), compute_mode::prohibited);
}

}  // namespace
}  // namespace agent::mps
