// The main of all test programs: prints what failed, each with the command that repeats it alone.
#include <gtest/gtest.h>

#include <iostream>
#include <string>
#include <utility>

namespace {

class repeat_commands : public testing::EmptyTestEventListener {
 public:
  explicit repeat_commands(std::string program) : program_(std::move(program)) {}

 private:
  void OnTestEnd(const testing::TestInfo& test) override {
    if (!test.result()->Failed()) return;
    std::cout << "repeat: " << program_ << " --gtest_filter=" << test.test_suite_name() << '.' << test.name()
              << std::endl;
  }
  std::string program_;
};

/// As it is typed in the source root, where tests are run.
std::string typed(std::string program) {
  const auto build = program.rfind("/build/");
  return build == std::string::npos ? program : program.substr(build + 1);
}

}  // namespace

int main(int argc, char** argv) {
  testing::GTEST_FLAG(brief) = true;
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new repeat_commands(typed(argv[0])));
  return RUN_ALL_TESTS();
}
