#include "controller/log.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>

#include "controller/log_sink.hpp"

namespace {

namespace log = controller::log;

/// What is in the pipe now.
std::string read_all(int fd) {
  std::string out(1 << 20, '\0');
  const auto size = read(fd, out.data(), out.size());
  out.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return out;
}

TEST(log, a_line_is_time_level_message_and_fields) {
  const log::capture taken;
  log::info("daemonset applied",
            {{"module", "pgpu"}, {"took_ms", 12}, {"share", 0.5}, {"changed", true}, {"count", std::size_t(3)}});
  ASSERT_EQ(taken.lines().size(), 1U);
  EXPECT_EQ(taken.lines()[0].substr(24),
            " info  daemonset applied module=pgpu took_ms=12 share=0.5 changed=true count=3");
  EXPECT_EQ(taken.lines()[0][23], 'Z') << taken.lines()[0];
}

TEST(log, text_values_that_are_not_one_word_are_quoted) {
  const log::capture taken;
  log::warn("x", {{"a", "two words"}, {"b", ""}, {"c", "k=v"}});
  EXPECT_TRUE(taken.contains(R"(a="two words" b="" c="k=v")")) << taken.lines()[0];
}

TEST(log, json_lines_are_json) {
  const log::capture taken(log::format::json);
  log::error("it \"failed\"", {{"error", "line\nbreak"}, {"n", -4}, {"big", UINT64_MAX}, {"bad", std::string("\xff")}});
  const auto line = nlohmann::json::parse(taken.lines().at(0));
  EXPECT_EQ(line["level"], "error");
  EXPECT_EQ(line["msg"], "it \"failed\"");
  EXPECT_EQ(line["error"], "line\nbreak");
  EXPECT_EQ(line["n"], -4);
  EXPECT_EQ(line["big"], UINT64_MAX);
  EXPECT_EQ(line["bad"], "\xef\xbf\xbd");
  EXPECT_EQ(line["time"].get<std::string>().size(), 24U);
}

TEST(log, F37_nobody_can_forge_a_line_or_hide_in_one) {
  const log::capture taken;
  log::info("declared", {{"name", "a\n2026-01-01T00:00:00.000Z error forged"}, {"other", "\u202E\x1b[2K"}});
  ASSERT_EQ(taken.lines().size(), 1U);
  EXPECT_EQ(taken.lines()[0].find('\n'), std::string::npos);
  EXPECT_EQ(taken.lines()[0].find('\x1b'), std::string::npos);
  EXPECT_TRUE(taken.contains(R"(\u202e\u001b[2K)"));
}

TEST(log, knows_its_levels) {
  log::level out = log::level::info;
  EXPECT_TRUE(log::parse_level("warn", out));
  EXPECT_EQ(out, log::level::warn);
  EXPECT_FALSE(log::parse_level("loud", out));
}

TEST(log_sink, F57_a_blocked_pipe_never_blocks_us_and_loses_the_oldest_whole_lines) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  fcntl(ends[1], F_SETPIPE_SZ, 4096);
  std::string got;
  int total = 0;
  {
    controller::log_sink sink(ends[1], 8192);
    for (; total < 2000; ++total) sink.write("line " + std::to_string(total) + "\n");
    EXPECT_GT(sink.dropped(), 0U);
    EXPECT_FALSE(sink.flush());
    while (!sink.flush()) got += read_all(ends[0]);
    got += read_all(ends[0]);
    int lines = 0, last = -1;
    for (std::size_t index = 0; index < got.size();) {
      const auto end = got.find('\n', index);
      ASSERT_NE(end, std::string::npos) << "a line is whole or absent";
      ASSERT_EQ(got.substr(index, 5), "line ") << got.substr(index, end - index);
      const int number = std::stoi(got.substr(index + 5));
      ASSERT_GT(number, last);
      last = number;
      ++lines;
      index = end + 1;
    }
    EXPECT_EQ(last, total - 1) << "the newest are kept";
    EXPECT_EQ(static_cast<std::uint64_t>(lines) + sink.dropped(), static_cast<std::uint64_t>(total));
  }
  EXPECT_EQ(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0) << "others share this descriptor";
  close(ends[0]);
  close(ends[1]);
}

TEST(log_sink, F57_a_full_disk_is_counted_and_survived) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  controller::log_sink sink(full);
  for (int i = 0; i < 10; ++i) sink.write("x\n");
  EXPECT_EQ(sink.dropped(), 10U);
  EXPECT_TRUE(sink.flush());
  close(full);
}

TEST(log_sink, F57_a_closed_reader_is_survived) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  controller::log_sink sink(ends[1]);
  sink.write("one\n");
  EXPECT_EQ(read_all(ends[0]), "one\n");
  close(ends[0]);
  sink.write("two\n");
  EXPECT_EQ(sink.dropped(), 1U);
  close(ends[1]);
  controller::log_sink closed(ends[1]);
  closed.write("three\n");
  EXPECT_EQ(closed.dropped(), 1U);
}

}  // namespace
