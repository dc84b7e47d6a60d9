#include "agent/mps/state_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace agent::mps {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using std::chrono::system_clock;

struct mps_state_file : testing::Test {
  std::string folder = made_folder();
  std::string path = folder + "/run/state/cards.json";
  system_clock::time_point now = system_clock::now();

  ~mps_state_file() override { fs::remove_all(folder); }
  static std::string made_folder() {
    auto pattern = (fs::temp_directory_path() / "mps-state.XXXXXX").string();
    return ::mkdtemp(pattern.data());
  }
  void put(std::string_view text) const {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << text;
  }
};

TEST_F(mps_state_file, is_read_as_it_was_written_by_anyone) {
  EXPECT_EQ(read_state(path, now), node_state()) << "there is none yet";
  const node_state cards{{{"GPU-1", "the MPS control daemon was killed by signal 9"}, {"GPU-2", "a \"quote\" and \n"}},
                         {"GPU-3"}};
  ASSERT_TRUE(write_state(path, cards));
  EXPECT_EQ(read_state(path, now), cards);
  struct stat file{};
  ASSERT_EQ(::stat(path.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777U, 0644U);
  ASSERT_TRUE(write_state(path, {}));
  EXPECT_EQ(read_state(path, now), node_state());
}

TEST_F(mps_state_file, is_not_believed_when_no_one_keeps_it) {
  ASSERT_TRUE(write_state(path, {{{"GPU-1", "it is gone"}}, {}}));
  EXPECT_EQ(read_state(path, now + state_limit - 2s).failed.size(), 1U);
  EXPECT_EQ(read_state(path, now + state_limit + 2s), node_state());
  EXPECT_LT(2 * state_period, state_limit);
}

TEST_F(mps_state_file, may_be_anything) {
  for (const auto* text : {"", "{", "[]", "{}", R"({"failed": 1})", R"({"failed": ["GPU-1"]})",
                           R"({"failed": {"a": 1}})", R"({"limited": {"GPU-1": 1}})", R"({"limited": [1, null]})"}) {
    put(text);
    EXPECT_EQ(read_state(path, now), node_state()) << text;
  }
  put(R"({"failed": {"GPU-1": ")" + std::string(2000, 'x') + R"("}})");
  EXPECT_EQ(read_state(path, now).failed.at("GPU-1").size(), 512U);
  put(R"({"failed": {"GPU-1": "x"}})" + std::string(70'000, ' '));
  EXPECT_EQ(read_state(path, now), node_state()) << "it is too long";
}

TEST_F(mps_state_file, is_no_link_to_another_file) {
  put(R"({"failed": {"GPU-1": "x"}})");
  ASSERT_EQ(read_state(path, now).failed.size(), 1U);
  fs::rename(path, folder + "/other");
  fs::create_symlink(folder + "/other", path);
  EXPECT_EQ(read_state(path, now), node_state());
}

TEST_F(mps_state_file, says_why_it_cannot_be_written) {
  std::ofstream(folder + "/run") << "a file";
  const auto done = write_state(path, {});
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().find(path), std::string::npos) << done.error();
}

}  // namespace
}  // namespace agent::mps
