#include "text/input_file.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "text/yaml/source.hpp"

namespace text {
namespace {

class input_file : public testing::Test {
 protected:
  std::filesystem::path folder_ = std::filesystem::temp_directory_path() / ("input_file_" + std::to_string(::getpid()));
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
};

TEST_F(input_file, what_could_be_waited_for_without_end_is_refused_before_it_is_opened) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(fault_of_input(path("pipe")), "file.pipe");
  std::filesystem::create_symlink(path("pipe"), path("link"));
  EXPECT_EQ(fault_of_input(path("link")), "file.pipe");
  EXPECT_EQ(fault_of_input("/dev/zero"), "file.device");
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::strncpy(address.sun_path, path("socket").c_str(), sizeof address.sun_path - 1);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(fault_of_input(path("socket")), "file.socket");
  ::close(socket);
  std::istringstream input;
  EXPECT_EQ(yaml::read_file(path("pipe"), input).error(), path("pipe") + ": file.pipe");
}

TEST_F(input_file, plain_files_the_pipes_of_a_shell_and_dev_null_are_read) {
  std::ofstream(path("plain")) << "a: 1\n";
  for (const auto& name : {path("plain"), path("not-there"), path(""), std::string("/dev/null")})
    EXPECT_EQ(fault_of_input(name), "") << name;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string bytes = "kind: Pod\n";
  ASSERT_EQ(::write(ends[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  ::close(ends[1]);
  std::istringstream input;
  EXPECT_EQ(yaml::read_bytes("/dev/fd/" + std::to_string(ends[0]), input).value(), bytes);
  ::close(ends[0]);
}

TEST_F(input_file, utf_16_is_named_whatever_its_byte_order) {
  const std::string little("\xff\xfek\0i\0", 6), big("\xfe\xff\0k\0i", 6);
  for (const auto& bytes : {little, big, little.substr(2), big.substr(2)}) {
    EXPECT_TRUE(is_utf16(bytes));
    EXPECT_EQ(yaml::parse(bytes).error().message, "yaml.fault.utf16");
  }
  EXPECT_FALSE(is_utf16("\xef\xbb\xbfkind: Pod"));
  EXPECT_FALSE(is_utf16(""));
}

}  // namespace
}  // namespace text
