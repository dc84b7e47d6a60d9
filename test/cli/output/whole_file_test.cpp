#include "cli/output/whole_file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "test/kube/scratch_folder.hpp"

namespace cli {
namespace {

namespace files = std::filesystem;

std::string content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t names_in(const std::string& folder) {
  return static_cast<std::size_t>(std::distance(files::directory_iterator(folder), files::directory_iterator()));
}

TEST(whole_file, replaces_what_was_there_and_leaves_nothing_next_to_it) {
  const kube_test::scratch_folder folder;
  folder.write("now.json", "old");
  EXPECT_EQ(write_whole_file("new", folder.path("now.json")), 0);
  EXPECT_EQ(content(folder.path("now.json")), "new");
  files::create_symlink("now.json", folder.path("link"));
  EXPECT_EQ(write_whole_file("by the link", folder.path("link")), 0);
  EXPECT_TRUE(files::is_symlink(folder.path("link")));
  EXPECT_EQ(content(folder.path("now.json")), "by the link");
  EXPECT_EQ(names_in(folder.path("")), 2U);
}

TEST(whole_file, of_a_file_that_may_not_grow_so_large_the_old_one_stays_and_no_part) {
  const kube_test::scratch_folder folder;
  folder.write("now.json", "old");
  const auto child = ::fork();
  if (child == 0) {
    const rlimit limit{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    outlive_size_limit();
    ::_exit(write_whole_file(std::string(100'000, 'x'), folder.path("now.json")) == EFBIG ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "ended with " << status;
  EXPECT_EQ(content(folder.path("now.json")), "old");
  EXPECT_EQ(names_in(folder.path("")), 1U);
}

TEST(whole_file, a_full_device_and_a_folder_that_is_not_there_are_errors) {
  EXPECT_EQ(write_whole_file("x", "/dev/full"), ENOSPC);
  const kube_test::scratch_folder folder;
  EXPECT_EQ(write_whole_file("x", folder.path("not/there")), ENOENT);
  EXPECT_EQ(names_in(folder.path("")), 0U);
}

}  // namespace
}  // namespace cli
