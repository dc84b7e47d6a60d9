// Random schedules of operators that are killed, follow each other and lose answers. QM_USAGE_SCHEDULES for the long
// form, QM_SEED to repeat one.
#include <cstdlib>
#include <memory>
#include <random>
#include <utility>

#include "test/reconcilers/usage/rig.hpp"
#include "test/rounds.hpp"

namespace usage_test {
namespace {

/// Pods come, end and vanish while operators are killed in the middle of checkpoints, follow each other, and lose
/// answers, across the ends of months. Of every pod it is known until when an operator can have seen it.
class schedule {
 public:
  explicit schedule(unsigned long seed) : random_(seed) {
    around_.now = december - below(600);
    leader_ = std::make_unique<replica>(around_, std::vector<kube::pod>(), nodes_);
    EXPECT_TRUE(leader_->resume());
    ++around_.now;
    EXPECT_TRUE(leader_->checkpoint());
    committed_ = around_.now;
  }

  void run() {
    for (int steps = 60; steps > 0; --steps) step();
    if (!leader_) {
      reset_waiting(false);
      lead();
    }
    around_.now += 7;
    ASSERT_TRUE(leader_->checkpoint());
    commit();
    for (const auto& [name, pod] : pods_) expected_ += cores(pod) * (around_.now - pod.scheduled_at);
    expect_sound(around_);
    std::int64_t parts = 0;
    for (const auto& [path, object] : around_.server.objects) {
      const auto usage = *api::accelerator_usage::decode(object.dump());
      if (!usage.name_space.empty()) parts += sum(usage.rows).core_seconds;
    }
    EXPECT_EQ(parts, expected_);
  }

 private:
  /// A pod that has vanished, and who has seen it and has not written it yet.
  struct vanished {
    kube::pod pod;
    seconds end;
    bool by_leader, by_waiting;
  };

  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  static std::int64_t cores(const kube::pod& pod) { return pod.containers.front().limits.front().second; }

  void step() {
    around_.now += below(40);
    const int roll = below(100);
    if (roll < 30)
      come();
    else if (roll < 55 && !pods_.empty())
      leave();
    else if (roll < 80 && leader_)
      checkpoint();
    else if (roll < 85)
      kill_leader();
    else if (roll < 95)
      reset_waiting(roll < 90);
    if (!leader_ && below(3) == 0) lead();
  }
  void come() {
    const auto pod = bound("p" + std::to_string(++number_), 1 + below(20), around_.now);
    pods_.emplace(pod.key.name, pod);
    for (auto* replica : {leader_.get(), waiting_.get()})
      if (replica) replica->known.pods.put(pod);
  }
  void leave() {
    const auto match = std::next(pods_.begin(), below(static_cast<int>(pods_.size())));
    const auto pod = match->second;
    pods_.erase(match);
    leaving_.push_back({pod, around_.now, leader_ != nullptr, waiting_ != nullptr});
    forget_unseen();
    for (auto* replica : {leader_.get(), waiting_.get()})
      if (replica) replica->known.pods.erase(*replica->known.pods.find(pod.key));
  }
  void checkpoint() {
    const int fault = below(6);
    if (fault == 0) around_.answers_lost = 1 + below(3);
    if (fault == 1) around_.writes_left = below(3);
    const bool done = leader_->checkpoint();
    around_.answers_lost = 0;
    around_.writes_left = -1;
    if (done) return commit();
    if (fault == 1 && below(2)) {
      for (const auto& [path, object] : around_.server.objects)  // it may have come to the end of a month
        if (const auto usage = *api::accelerator_usage::decode(object.dump()); usage.name_space.empty())
          committed_ = std::max(committed_, usage.until);
      return kill_leader();
    }
    ASSERT_TRUE(leader_->checkpoint());
    commit();
  }
  void kill_leader() {
    leader_.reset();
    for (auto& entry : leaving_) entry.by_leader = false;
    forget_unseen();
  }
  void reset_waiting(bool another) {
    for (auto& entry : leaving_) entry.by_waiting = false;
    waiting_ = another ? std::make_unique<replica>(around_, there(), nodes_) : nullptr;
    forget_unseen();
  }
  void lead() {
    for (auto& entry : leaving_) entry.by_leader = std::exchange(entry.by_waiting, false);
    leader_ = waiting_ ? std::move(waiting_) : std::make_unique<replica>(around_, there(), nodes_);
    ASSERT_TRUE(leader_->resume());
  }
  void commit() {
    committed_ = around_.now;
    std::erase_if(leaving_, [&](const vanished& entry) {
      if (entry.by_leader) count(entry, entry.end);
      return entry.by_leader;
    });
  }
  void count(const vanished& entry, seconds end) {
    expected_ += cores(entry.pod) * std::max<seconds>(end - entry.pod.scheduled_at, 0);
  }
  /// Of a pod that no one alive has seen go, the last checkpoint is the last that is known.
  void forget_unseen() {
    std::erase_if(leaving_, [&](const vanished& entry) {
      if (entry.by_leader || entry.by_waiting) return false;
      count(entry, std::min(entry.end, committed_));
      return true;
    });
  }
  std::vector<kube::pod> there() const {
    std::vector<kube::pod> out;
    for (const auto& [name, pod] : pods_) out.push_back(pod);
    return out;
  }

  std::mt19937_64 random_;
  world around_;
  const std::vector<kube::node> nodes_{ready(vgpu_node("gpu-1", 4))};
  std::map<std::string, kube::pod> pods_;  // that are there
  std::vector<vanished> leaving_;
  std::int64_t expected_ = 0;  // core-seconds
  int number_ = 0;
  seconds committed_ = 0;
  std::unique_ptr<replica> leader_, waiting_;
};

void run_schedule(unsigned long seed) {
  SCOPED_TRACE("QM_SEED=" + std::to_string(seed));
  schedule(seed).run();
}

/// In four parts, which run side by side.
class usage_schedules : public testing::TestWithParam<unsigned long> {};
INSTANTIATE_TEST_SUITE_P(quarter, usage_schedules, testing::Values(0UL, 1UL, 2UL, 3UL));

TEST_P(usage_schedules, S40_every_second_of_a_pod_is_counted_once) {
  const char* const seed = std::getenv("QM_SEED");
  if (seed) return run_schedule(std::strtoul(seed, nullptr, 10));
  const char* const schedules = std::getenv("QM_USAGE_SCHEDULES");
  const auto count = schedules ? std::strtol(schedules, nullptr, 10) : test::rounds(40L, 200L);
  ASSERT_GT(count, 0) << "QM_USAGE_SCHEDULES is no number from 1 on";
  for (auto i = 1 + GetParam(); i <= static_cast<unsigned long>(count) && !testing::Test::HasFailure(); i += 4)
    run_schedule(i);
}

}  // namespace
}  // namespace usage_test
