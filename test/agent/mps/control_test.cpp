#include "agent/mps/control.hpp"

#include <gmock/gmock.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <fstream>
#include <regex>

#include "agent/mps/messages.hpp"

namespace agent::mps {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(mps_answers, are_read_as_a_real_daemon_wrote_them_and_nothing_else_is) {
  EXPECT_EQ(percentage_in("30.0\n"), 30);
  EXPECT_EQ(percentage_in("100.0"), 100);
  for (const auto* text : {"", "x", "30.0 %", "-1", "101", "nan", "inf", "1e999"})
    EXPECT_FALSE(percentage_in(text)) << text;
  EXPECT_EQ(memory_mib_in("2G\n"), 2048);
  EXPECT_EQ(memory_mib_in("1500M"), 1500);
  EXPECT_EQ(memory_mib_in("1.5G"), 1536);
  for (const auto* text : {"", "2", "2T", "G", "2G 3G", "-2G", "1e300G", "nanG"})
    EXPECT_FALSE(memory_mib_in(text)) << text;
  EXPECT_THAT(*processes_in("678\n679\n"), ElementsAre(678U, 679U));
  EXPECT_THAT(*processes_in(""), IsEmpty());
  for (const auto* text : {"0", "-1", "12x", "1 2", "Server not found"}) EXPECT_FALSE(processes_in(text)) << text;
}

TEST(mps_messages, come_back_as_they_were_sent) {
  const std::vector<served_card> cards{{"GPU-1", "", "/run/a/pipe"}, {"GPU-2", "it is dead", "/run/b/pipe"}};
  EXPECT_EQ(*cards_in(message_of(cards)), cards);
  const auto held = held_card_in(message_of(held_card{"GPU-1", {30, 2048}}));
  ASSERT_TRUE(held);
  EXPECT_EQ(held->uuid, "GPU-1");
  EXPECT_EQ(held->limits, (ceilings{30, 2048}));
  EXPECT_EQ(ending_pod_in(message_of(ending_pod{"0b9c"}))->uid, "0b9c");
  EXPECT_FALSE(cards_in("\x0a\xff"));
  EXPECT_FALSE(ending_pod_in("\x0a\x05x"));
  EXPECT_FALSE(
      held_card_in("\x0a\x05"
                   "ab"));
}

/// The stand-in is a daemon only as far as it answers what a real one did.
TEST(mps_stand_in, answers_as_the_recorded_daemon) {
  auto pattern = (fs::temp_directory_path() / "mps.XXXXXX").string();
  const std::string folder = ::mkdtemp(pattern.data());
  const control subject({.program = MPS_CONTROL, .folder = folder, .card = "GPU-1"});
  auto daemon = subject.start();
  ASSERT_TRUE(daemon) << daemon.error();
  boost::asio::io_context loop;
  const auto reply = [&](const std::string& command) {
    std::string out;
    const auto talk = [&]() -> boost::asio::awaitable<void> {
      const auto answer = co_await subject.command(command);
      out = answer ? *answer : answer.error();
    };
    boost::asio::co_spawn(loop, talk, [](std::exception_ptr) {});
    loop.restart();
    loop.run();
    return out;
  };
  for (int i = 0; i < 200 && reply("get_server_list").contains("Cannot find"); ++i) ::usleep(10'000);

  std::ifstream file(MPS_RECORDED);
  std::string server, line, command, wanted;
  int compared = 0;
  const auto compare = [&] {
    if (command.empty()) return;
    const auto text = std::regex_replace(command, std::regex("SERVER"), server);
    auto is = reply(text);
    if (command == "get_server_list" && !is.empty()) server = is.substr(0, is.find('\n'));
    if (!server.empty()) is = std::regex_replace(is, std::regex("\\b" + server + "\\b"), "SERVER");
    EXPECT_EQ(is, wanted) << text;
    ++compared;
  };
  const std::regex call(R"(> (.*)  \[0\])");
  while (std::getline(file, line)) {
    std::smatch parts;
    if (std::regex_match(line, parts, call)) {
      compare();
      command = parts[1], wanted = "";
    } else if (line.starts_with("    ")) {
      wanted += line.substr(4) + "\n";
    }
  }
  compare();
  EXPECT_GT(compared, 35);
  reply("quit");
  // It removes its own files on its way out.
  for (int i = 0; i < 500 && !daemon->ended(); ++i) ::usleep(10'000);
  ASSERT_TRUE(daemon->ended()) << "the daemon goes on after quit";
  fs::remove_all(folder);
}

}  // namespace
}  // namespace agent::mps
