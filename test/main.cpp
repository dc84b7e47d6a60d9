// The main of all test programs: prints what failed, each with the command that repeats it alone, and what runs for
// long.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace {

std::string called(const testing::TestInfo& test) { return std::string(test.test_suite_name()) + '.' + test.name(); }

class repeat_commands : public testing::EmptyTestEventListener {
 public:
  explicit repeat_commands(std::string suite) : suite_(std::move(suite)) {}

 private:
  void OnTestEnd(const testing::TestInfo& test) override {
    if (!test.result()->Failed()) return;
    const auto* set = std::getenv("QM_LONG") ? "--all " : "";
    std::cout << "repeat: ./dev test " << set << "-R '^unit." << suite_ << "' --run '" << called(test) << '\''
              << std::endl;
  }
  std::string suite_;
};

/// A program that is ended because it hangs has said before which test it was.
class long_tests : public testing::EmptyTestEventListener {
 public:
  ~long_tests() override {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

 private:
  void OnTestStart(const testing::TestInfo& test) override {
    const std::lock_guard lock(mutex_);
    name_ = called(test);
    changed_.notify_all();
  }
  void watch() {
    std::unique_lock lock(mutex_);
    while (!ended_) {
      const auto name = name_;
      const auto other = [&] { return ended_ || name_ != name; };
      if (changed_.wait_for(lock, std::chrono::seconds(60), other)) continue;
      if (!name.empty()) std::cout << "still running after 60 s: " << name << std::endl;
      changed_.wait(lock, other);
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string name_;
  bool ended_ = false;
  std::jthread thread_{[this] { watch(); }};  // after what it uses, so it ends before that
};

/// "quota" of build/dev/quota_test.
std::string suite_of(std::string_view program) {
  auto name = program.substr(program.rfind('/') + 1);
  if (name.ends_with("_test")) name.remove_suffix(5);
  return std::string(name);
}

}  // namespace

int main(int argc, char** argv) {
  testing::GTEST_FLAG(brief) = true;
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new repeat_commands(suite_of(argv[0])));
  testing::UnitTest::GetInstance()->listeners().Append(new long_tests);
  return RUN_ALL_TESTS();
}
