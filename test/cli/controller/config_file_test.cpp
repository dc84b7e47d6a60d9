#include "cli/controller/config_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "test/words.hpp"

namespace cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class config_file : public testing::Test {
 protected:
  std::filesystem::path file = std::filesystem::temp_directory_path() / ("qm-config-" + std::to_string(::getpid()));
  const std::vector<std::string> known{"--log-level", "--log-format", "--namespace", "--config"};

  void write(const std::string& text) const { std::ofstream(file) << text; }
  void TearDown() override { std::filesystem::remove(file); }
  std::expected<std::vector<std::string>, text::phrase> read(std::vector<std::string> more = {}) const {
    std::vector<std::string> words{"controller", "--config", file.string()};
    words.insert(words.end(), more.begin(), more.end());
    return with_config_file(words, known);
  }
};

TEST_F(config_file, its_flags_stand_beside_those_of_the_command_line_which_win) {
  write("# what we want\n\n log-level = debug \nlog-format=json\nnamespace=a\n");
  const auto got = read({"--log-format=text", "-n", "b"});
  ASSERT_TRUE(got) << words::line_of(got.error());
  EXPECT_THAT(
      *got, ElementsAre("controller", "--log-level=debug", "--config", file.string(), "--log-format=text", "-n", "b"));
}

TEST_F(config_file, O7_says_which_line_is_wrong) {
  write("log-level=debug\nbogus=1\n");
  const auto line = [&](const char* key, int number, const char* value) {
    return std::string(key) + "{file=" + file.string() + ":" + std::to_string(number) + ",value=" + value + "}";
  };
  EXPECT_EQ(words::line_of(read().error()), line("usage.config.unknown", 2, "bogus"));
  write("log-level\n");
  EXPECT_EQ(words::line_of(read().error()), line("usage.config.no_flag", 1, "log-level"));
  write("log-level=debug\nlog-level=info\n");
  EXPECT_EQ(words::line_of(read().error()), line("usage.config.twice", 2, "log-level"));
  write("config=other\n");
  EXPECT_EQ(words::line_of(read().error()), line("usage.config.unknown", 1, "config"));
}

TEST_F(config_file, O7_a_file_that_cannot_be_read_is_one_line) {
  EXPECT_THAT(words::line_of(read().error()), HasSubstr("No such file or directory"));
  const auto folder = with_config_file({"controller", "--config", "/"}, known);
  EXPECT_THAT(words::line_of(folder.error()), HasSubstr("Is a directory"));
  const auto endless = with_config_file({"controller", "--config", "/dev/zero"}, known);
  EXPECT_THAT(words::line_of(endless.error()), HasSubstr(words::english("file.device")));
}

TEST_F(config_file, without_one_the_words_are_as_they_were) {
  EXPECT_THAT(*with_config_file({"controller", "-n", "a"}, known), ElementsAre("controller", "-n", "a"));
}

}  // namespace
}  // namespace cli
