// The thread against the library of test/nvml, whose fixture changes under it.
#include "agent/cards/watcher.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "test/agent/cards/machine.hpp"
#include "test/words.hpp"

namespace agent::cards {
namespace {

using namespace std::chrono_literals;

/// What the thread delivers, in order.
class deliveries {
 public:
  void add(sighting sighting) {
    const std::scoped_lock hold(lock_);
    waiting_.push_back(std::move(sighting));
    arrived_.notify_one();
  }
  sighting next() {
    std::unique_lock hold(lock_);
    EXPECT_TRUE(arrived_.wait_for(hold, 20s, [this] { return !waiting_.empty(); })) << "nothing was delivered";
    if (waiting_.empty()) return {};
    auto out = std::move(waiting_.front());
    waiting_.pop_front();
    return out;
  }

 private:
  std::mutex lock_;
  std::condition_variable arrived_;
  std::deque<sighting> waiting_;
};

watcher_options quick(const machine& machine) {
  watcher_options out;
  out.root = out.proc = machine.root;
  out.driver_cards = machine.root / "gpus";
  out.period = out.retry = out.event_wait = 20ms;
  return out;
}

struct watched {
  explicit watched(const std::string& fixture)
      : machine(fixture), watcher(quick(machine), [this](sighting seen) { seen_.add(std::move(seen)); }) {}
  deliveries seen_;
  cards::machine machine;
  cards::watcher watcher;
};

TEST(watcher, delivers_the_inventory_and_then_only_changes) {
  watched node("t4_pair");
  const auto first = node.seen_.next();
  ASSERT_TRUE(first.now);
  EXPECT_EQ(first.now->cards.size(), 2U);
  auto content = node.machine.content();
  content["cards"][1]["lost"] = true;
  node.machine.replace(content);
  const auto second = node.seen_.next();
  ASSERT_TRUE(second.now);
  EXPECT_EQ(second.now->cards.size(), 1U);
  EXPECT_EQ(second.now->silent, 1);
}

TEST(watcher, delivers_an_xid_with_its_card) {
  watched node("t4_pair");
  node.seen_.next();
  auto content = node.machine.content();
  content["events"] = {{{"sequence", 1}, {"card", content["cards"][1]["uuid"]}, {"xid", 48}}};
  node.machine.replace(content);
  const auto seen = node.seen_.next();
  ASSERT_TRUE(seen.event);
  EXPECT_EQ(seen.event->xid, 48U);
  EXPECT_EQ(seen.event->card, text_at(content, "/cards/1/uuid"));
}

TEST(watcher, delivers_what_is_used_every_period_where_it_is_asked_for) {
  const machine machine("t4_pair");
  deliveries seen;
  auto options = quick(machine);
  options.reads_usage = true;
  const watcher watcher(options, [&seen](sighting sighting) { seen.add(std::move(sighting)); });
  EXPECT_TRUE(seen.next().now);
  for (int i = 0; i < 3; ++i) {
    const auto next = seen.next();
    ASSERT_TRUE(next.usage);
    EXPECT_EQ(next.usage->size(), 2U);
  }
}

TEST(watcher, names_the_card_that_fell_off_the_bus) {
  watched node("t4_pair");
  node.seen_.next();
  auto content = node.machine.content();
  content["cards"][0]["lost"] = true;
  content["events"] = {{{"sequence", 1}, {"card", content["cards"][0]["uuid"]}, {"xid", 79}}};
  node.machine.replace(content);
  bool is_named = false, is_missing = false;
  while (!HasFailure() && (!is_named || !is_missing)) {
    const auto seen = node.seen_.next();
    if (seen.event) is_named = seen.event->card == text_at(content, "/cards/0/uuid") && seen.event->xid == 79;
    if (seen.now) is_missing = seen.now->silent == 1;
  }
  EXPECT_TRUE(is_named && is_missing);
}

TEST(watcher, survives_a_reload_of_the_driver) {
  watched node("t4");
  node.seen_.next();
  const auto content = node.machine.content();
  auto unloaded = content;
  unloaded["driver"] = nullptr;
  node.machine.replace(unloaded);
  const auto away = node.seen_.next();
  ASSERT_TRUE(away.now);
  EXPECT_NE(away.now->problem.find(words::begin_of("nvml.no_start", "error")), std::string::npos) << away.now->problem;
  node.machine.replace(content);
  EXPECT_TRUE(node.seen_.next().driver_loaded);
  const auto back = node.seen_.next();
  ASSERT_TRUE(back.now);
  EXPECT_EQ(back.now->cards.size(), 1U);
  EXPECT_EQ(back.now->problem, "");
}

TEST(watcher, sees_a_card_that_is_plugged_in) {
  watched node("t4_pair");
  node.seen_.next();
  auto content = node.machine.content();
  auto more = content["cards"][1];
  more["uuid"] = "GPU-74200000-0000-4000-8000-000000000009";
  more["minor"] = 2;
  more["serial"] = "9";
  more["pci_bus_id"] = "0000:00:06.0";
  content["cards"].push_back(more);
  node.machine.replace(content);
  std::filesystem::create_directory(node.machine.root / "gpus" / "0000:00:06.0");
  std::size_t cards = 0;
  while (!HasFailure() && cards != 3) {
    const auto seen = node.seen_.next();
    if (seen.now) cards = seen.now->cards.size();
  }
  EXPECT_EQ(cards, 3U);
}

/// The thread hangs in the driver, and another one sees it. A call that waits for events is no silence.
TEST(watcher, gives_no_sign_of_life_while_the_driver_hangs) {
  watched node("t4_pair");
  node.seen_.next();
  int signs = 0;
  auto last = node.watcher.silence();
  for (int i = 0; i < 2'000 && signs < 3; ++i, std::this_thread::sleep_for(5ms)) {
    const auto now = node.watcher.silence();
    signs += now < std::exchange(last, now) ? 1 : 0;
  }
  EXPECT_EQ(signs, 3) << "it waits for events";
  auto content = node.machine.content();
  content["hangs"] = true;
  node.machine.replace(content);
  constexpr auto long_silence = 400ms;  // many calls that wait
  for (int i = 0; i < 2'000 && node.watcher.silence() < long_silence; ++i) std::this_thread::sleep_for(5ms);
  EXPECT_GE(node.watcher.silence(), long_silence);
  EXPECT_FALSE(node.watcher.end_within(10ms)) << "no one can end it there";
  content["hangs"] = false;
  content["cards"][1]["lost"] = true;
  node.machine.replace(content);
  EXPECT_TRUE(node.watcher.end_within(10s));
}

TEST(watcher, without_a_driver_says_so_once_and_finds_it_later) {
  machine machine("t4");
  const auto library = machine.root / "usr/lib64/libnvidia-ml.so.1";
  std::filesystem::rename(library, machine.root / "kept");
  deliveries seen;
  const watcher watcher(quick(machine), [&seen](sighting sighting) { seen.add(std::move(sighting)); });
  const auto none = seen.next();
  ASSERT_TRUE(none.now);
  EXPECT_NE(none.now->problem.find(words::begin_of("nvml.no_driver", "root")), std::string::npos) << none.now->problem;
  std::filesystem::rename(machine.root / "kept", library);
  EXPECT_TRUE(seen.next().driver_loaded);
  const auto found = seen.next();
  ASSERT_TRUE(found.now);
  EXPECT_EQ(found.now->cards.size(), 1U);
}

}  // namespace
}  // namespace agent::cards
