#include "agent/mps/mounts.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace agent::mps {
namespace {

namespace fs = std::filesystem;

constexpr auto of_card =
    "663 610 0:24 /quartermaster/mps/GPU-1/pipe /run/nvidia-mps ro,nosuid,nodev - tmpfs tmpfs rw,mode=755\n";
constexpr auto of_plugin = "664 610 0:24 /quartermaster/mps /run/quartermaster/mps rw - tmpfs tmpfs rw\n";

struct mounts : testing::Test {
  std::string proc = made_folder();
  ~mounts() override { fs::remove_all(proc); }

  static std::string made_folder() {
    auto pattern = (fs::temp_directory_path() / "proc.XXXXXX").string();
    return ::mkdtemp(pattern.data());
  }
  void process(const std::string& number, const std::string& text, const std::string& space = "") const {
    fs::create_directories(proc + "/" + number + "/ns");
    std::ofstream(proc + "/" + number + "/mountinfo") << text;
    if (!space.empty()) fs::create_symlink(space, proc + "/" + number + "/ns/mnt");
  }
};

TEST_F(mounts, of_a_container_have_the_folder_of_its_card) {
  process("1", "22 1 8:1 / / rw - ext4 /dev/vda rw\n", "mnt:[1]");
  process("7", of_plugin, "mnt:[2]");
  EXPECT_FALSE(is_mounted(proc, "/GPU-1/pipe"));
  process("8", std::string("600 599 0:99 / / rw - overlay overlay rw\n") + of_card, "mnt:[3]");
  EXPECT_TRUE(is_mounted(proc, "/GPU-1/pipe"));
  EXPECT_FALSE(is_mounted(proc, "/GPU-2/pipe"));
}

TEST_F(mounts, are_read_once_for_each_namespace_and_always_where_it_is_not_known) {
  process("5", of_plugin, "mnt:[1]");
  process("6", of_plugin);
  process("7", of_card);
  EXPECT_TRUE(is_mounted(proc, "/GPU-1/pipe"));
}

TEST_F(mounts, that_cannot_be_read_are_none) {
  EXPECT_FALSE(is_mounted(proc + "/none", "/GPU-1/pipe"));
  process("self", of_card);
  fs::create_directories(proc + "/9");
  process("10", "odd\n\n1 2\n");
  EXPECT_FALSE(is_mounted(proc, "/GPU-1/pipe"));
}

/// A mount elsewhere that has the folder's name is none of it.
TEST_F(mounts, are_known_by_what_is_mounted_and_not_by_where) {
  process("8", "600 599 0:24 /data /GPU-1/pipe rw - tmpfs tmpfs rw\n");
  EXPECT_FALSE(is_mounted(proc, "/GPU-1/pipe"));
}

}  // namespace
}  // namespace agent::mps
