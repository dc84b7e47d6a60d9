#include "agent/static_pod/files.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include <cstring>
#include <functional>
#include <iostream>

#include "test/agent/static_pod/control_plane_node.hpp"
#include "test/agent/static_pod/system_calls.hpp"
#include "test/words.hpp"

namespace agent::static_pod {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// Runs in a process of its own; its exit status.
int in_a_process(const std::function<int()>& work) {
  const auto pid = ::fork();
  if (pid == 0) ::_exit(work());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
constexpr int not_allowed = 77;
/// The same with mounts of its own.
int among_own_mounts(const std::function<int()>& work) {
  return in_a_process([&] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      return not_allowed;
    return work();
  });
}
/// In such a process gtest is not there to tell.
int told(const char* name, bool right, const std::string& detail = {}) {
  if (!right) std::cerr << "wrong: " << name << ": " << detail << std::endl;
  return right ? 0 : 1;
}

TEST(static_pod_files, F50_are_put_in_place_and_taken_out_byte_for_byte) {
  control_plane_node node;
  EXPECT_EQ(node.settle(true), state::applied);
  EXPECT_EQ(node.now(), extended);
  EXPECT_THAT(node.manifests(), ElementsAre("kube-scheduler.yaml"));
  EXPECT_EQ(node.settle(false), state::disabled);
  EXPECT_EQ(node.now(), bare);
  EXPECT_FALSE(fs::exists(node.root / "quartermaster"));
}

TEST(static_pod_files, keep_their_mode_and_a_new_one_gets_that_of_the_kubeconfig) {
  control_plane_node node;
  ::chmod(node.manifest().c_str(), 0604);
  node.settle(true);
  EXPECT_EQ(node.mode(node.manifest()), 0604U);
  EXPECT_EQ(node.mode(node.config()), 0640U);
  EXPECT_EQ(node.mode(node.kept()), 0600U) << "there are keys in it";
  EXPECT_EQ(node.mode(node.root / "quartermaster"), 0700U);
}

TEST(static_pod_files, a_key_is_for_the_owner_alone_though_others_could_read_the_file_before) {
  control_plane_node node;
  const texts now{.config = "apiVersion: v1\n", .manifest = node.now().manifest};
  std::ofstream(node.config()) << *now.config;
  ::chmod(node.config().c_str(), 0644);
  const files files(node.root.string());
  ASSERT_TRUE(files.take({.kind = action::write_config, .text = "# no secret\n"}, now));
  EXPECT_EQ(node.mode(node.config()), 0644U);
  ASSERT_TRUE(files.take({.kind = action::write_config, .text = "tlsConfig: {keyData: a2V5}\n"},
                         {.config = "# no secret\n", .manifest = now.manifest}));
  EXPECT_EQ(node.mode(node.config()), 0600U);
}

TEST(static_pod_files, a_record_of_large_files_is_read_again) {
  control_plane_node node;
  const std::string large(900'000, '#');
  const record record{.stage = phase::applied, .before = {large, large}, .after = {large, large}};
  const files files(node.root.string());
  ASSERT_TRUE(files.take({.kind = action::keep, .kept = record}, node.now()));
  const auto seen = files.look();
  ASSERT_TRUE(seen) << words::line_of(seen.error());
  EXPECT_EQ(seen->kept, record);
}

TEST(static_pod_files, keep_their_owner) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  control_plane_node node;
  ASSERT_EQ(::chown((node.root / "scheduler.conf").c_str(), 2001, 2002), 0);
  node.settle(true);
  struct stat about{};
  ASSERT_EQ(::lstat(node.config().c_str(), &about), 0);
  EXPECT_EQ(about.st_uid, 2001U);
  EXPECT_EQ(about.st_gid, 2002U);
}

TEST(static_pod_files, F48_follow_no_link) {
  const auto planted = [](const char* name) {
    control_plane_node node;
    const auto outside = node.root / "outside";
    if (fs::exists(node.root / name)) {
      fs::rename(node.root / name, outside);
    } else {
      node.put(outside, "theirs\n");
    }
    fs::create_symlink(outside, node.root / name);
    const auto before = fs::is_directory(outside) ? std::string() : node.get(outside);
    std::string reason;
    EXPECT_EQ(node.settle(true, &reason), state::stopped) << name;
    EXPECT_EQ(reason, "disk.link{path=" + (node.root / name).string() + "}");
    if (!before.empty()) EXPECT_EQ(node.get(outside), before) << name;
    EXPECT_TRUE(fs::is_symlink(node.root / name));
  };
  planted("scheduler-config.yaml");
  planted("manifests/kube-scheduler.yaml");
  planted("manifests");
  control_plane_node with_folder;
  fs::create_directory(with_folder.root / "elsewhere");
  fs::create_symlink(with_folder.root / "elsewhere", with_folder.root / "quartermaster");
  std::string reason;
  EXPECT_EQ(with_folder.settle(true, &reason), state::stopped);
  EXPECT_EQ(reason, "disk.link{path=" + (with_folder.root / "quartermaster").string() + "}");
  EXPECT_TRUE(fs::is_empty(with_folder.root / "elsewhere"));
}

TEST(static_pod_files, F48_replace_a_link_in_the_place_of_the_draft_and_do_not_follow_it) {
  control_plane_node node;
  node.put(node.root / "outside", "theirs\n");
  fs::create_directory(node.root / "quartermaster");
  fs::create_symlink(node.root / "outside", node.root / "quartermaster/draft");
  EXPECT_EQ(node.settle(true), state::applied);
  EXPECT_EQ(node.get(node.root / "outside"), "theirs\n");
}

TEST(static_pod_files, a_root_below_a_link_is_refused) {
  control_plane_node node;
  const auto link = node.root / "link";
  fs::create_symlink(node.root, link);
  EXPECT_EQ(words::line_of(files(link).look().error()), "disk.link{path=" + link.string() + "}");
  EXPECT_EQ(files(node.root / "..").look().error().key, "disk.dots");
}

TEST(static_pod_files, what_is_no_file_is_not_waited_for) {
  control_plane_node node;
  ASSERT_EQ(::mkfifo(node.config().c_str(), 0600), 0);
  EXPECT_EQ(files(node.root).look().error().key, "disk.no_regular_file");
}

TEST(static_pod_files, a_missing_folder_is_said_in_one_line) {
  control_plane_node node;
  fs::remove_all(node.root / "manifests");
  std::string reason;
  EXPECT_EQ(node.settle(true, &reason), state::stopped);
  EXPECT_EQ(reason,
            "disk.no_folder{remedy=static_pod.no_control_plane,path=" + (node.root / "manifests").string() + "}");
  EXPECT_EQ(files(node.root / "none").look().error().key, "disk.no_folder");
}

TEST(static_pod_files, F53_a_file_that_changes_under_the_hand_is_left_alone) {
  control_plane_node node;
  const files layer(node.root);
  const step write{.kind = action::write_manifest, .text = *extended.manifest};
  const auto done = layer.take(write, {std::nullopt, "as it was seen"});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().key, "disk.changed");
  EXPECT_EQ(node.now(), bare);
  EXPECT_FALSE(fs::exists(node.root / "quartermaster/draft"));
}

TEST(static_pod_files, a_rehearsal_leaves_no_trace) {
  control_plane_node node;
  const files layer(node.root);
  const record record{.before = bare, .after = extended};
  EXPECT_TRUE(layer.rehearse(record));
  EXPECT_FALSE(fs::exists(node.root / "quartermaster"));
  node.settle(true);
  const auto kept = node.get(node.kept());
  EXPECT_TRUE(layer.rehearse(record));
  EXPECT_EQ(node.get(node.kept()), kept);
  EXPECT_FALSE(fs::exists(node.root / "quartermaster/draft"));
}

TEST(static_pod_files, F54_a_record_that_cannot_be_read_stops_it) {
  control_plane_node node;
  fs::create_directory(node.root / "quartermaster");
  node.put(node.kept(), "{");
  EXPECT_EQ(words::line_of(files(node.root).look().error()),
            "static_pod.record{file=" + node.kept().string() + ",problem=static_pod.record_problem.no_object}");
}

TEST(static_pod_files, a_person_who_keeps_something_beside_the_record_keeps_it) {
  control_plane_node node;
  node.settle(true);
  node.put(node.root / "quartermaster/notes", "x");
  EXPECT_EQ(node.settle(false), state::disabled);
  EXPECT_TRUE(fs::exists(node.root / "quartermaster/notes"));
}

// ---- crashes: every system call is the last one of a process, and another goes on ----

void expect_whole(const control_plane_node& node, int nth) {
  const auto now = node.now();
  EXPECT_TRUE(now.config == bare.config || now.config == extended.config) << nth;
  EXPECT_TRUE(now.manifest == bare.manifest || now.manifest == extended.manifest) << nth;
  EXPECT_FALSE(now.manifest == extended.manifest && !now.config)
      << nth << ": a manifest that reads a file that is not there";
  EXPECT_THAT(node.manifests(), ElementsAre("kube-scheduler.yaml")) << nth;
}

/// `begin` leaves the control-plane node as it is when the process is killed; returns in how many places that was.
int killed_everywhere(bool asked_for, bool ours_works, const std::function<void(control_plane_node&)>& begin, state end,
                      const texts& left) {
  for (int nth = 1; nth < 1000; ++nth) {
    control_plane_node node;
    begin(node);
    node.ours_works = ours_works;
    const auto status = in_a_process([&] {
      system_calls::kill_at(nth);
      node.settle(asked_for);
      system_calls::stop();
      return 0;
    });
    expect_whole(node, nth);
    EXPECT_EQ(node.settle(asked_for), end) << nth;
    EXPECT_EQ(node.now(), left) << nth;
    EXPECT_FALSE(fs::exists(node.root / "quartermaster/draft")) << nth;
    if (status == 0) return nth - 1;
    if (status != 9 || testing::Test::HasFailure()) return -1;
  }
  return -1;
}

TEST(static_pod_crash, F49_anywhere_while_applying_is_taken_up) {
  EXPECT_GT(killed_everywhere(true, true, [](control_plane_node&) {}, state::applied, extended), 30);
}
TEST(static_pod_crash, F49_anywhere_while_removing_is_taken_up) {
  EXPECT_GT(
      killed_everywhere(false, true, [](control_plane_node& node) { node.settle(true); }, state::disabled, bare), 30);
}
TEST(static_pod_crash, F49_anywhere_while_taking_back_is_taken_up) {
  EXPECT_GT(killed_everywhere(true, false, [](control_plane_node&) {}, state::rolled_back, bare), 60);
}

// ---- disks ----

TEST(static_pod_disk, F48_every_call_that_fails_is_one_line_and_leaves_whole_files) {
  for (const int number : {EIO, ENOSPC, EROFS}) {
    int places = 0;
    for (int nth = 1; nth < 1000; ++nth) {
      control_plane_node node;
      std::string reason;
      system_calls::fail(nth, number);
      const auto is = node.settle(true, &reason);
      const auto calls = system_calls::stop();
      expect_whole(node, nth);
      if (is == state::stopped) {
        EXPECT_THAT(reason, HasSubstr(std::strerror(number))) << nth;
        EXPECT_THAT(reason, Not(HasSubstr("\n")));
        ++places;
      }
      EXPECT_EQ(node.settle(true), state::applied) << nth << " " << reason;
      EXPECT_EQ(node.now(), extended) << nth;
      EXPECT_EQ(node.settle(false), state::disabled);
      if (calls < nth || HasFailure()) break;
    }
    EXPECT_GT(places, 30);
  }
}

TEST(static_pod_disk, F47_a_full_one_is_seen_before_anything_is_written) {
  const auto status = among_own_mounts([] {
    control_plane_node around;
    const auto root = around.root / "small";
    fs::create_directory(root);
    if (::mount("none", root.c_str(), "tmpfs", 0, "size=64k") != 0) return not_allowed;
    control_plane_node machine(root);
    int wrong = 0;
    {
      std::ofstream full(root / "full");
      full << std::string(1 << 20, 'x');
    }
    std::string reason;
    wrong += told("stopped", machine.settle(true, &reason) == state::stopped, reason);
    wrong +=
        told("said", reason.find("No space left") != reason.npos || reason.find("static_pod.no_space") != reason.npos,
             reason);
    wrong += told("as before", machine.now() == bare);
    wrong += told("no record", !fs::exists(machine.kept()));
    fs::remove(root / "full");
    wrong += told("applied", machine.settle(true, &reason) == state::applied, reason);
    // Full in the middle: what is under way waits, and nothing is half.
    std::ofstream(root / "full") << std::string(1 << 20, 'x');
    machine.settle(false, &reason);
    wrong += told("whole", machine.now() == extended || machine.now() == bare, reason);
    fs::remove(root / "full");
    wrong += told("off", machine.settle(false, &reason) == state::disabled, reason);
    wrong += told("as before at the end", machine.now() == bare);
    ::umount2(root.c_str(), MNT_DETACH);
    return wrong;
  });
  if (status == not_allowed) GTEST_SKIP() << "needs the right to mount";
  EXPECT_EQ(status, 0);
}

TEST(static_pod_disk, F48_a_read_only_one_is_said_and_left) {
  const auto status = among_own_mounts([] {
    control_plane_node node;
    if (::mount(node.root.c_str(), node.root.c_str(), nullptr, MS_BIND, nullptr) != 0 ||
        ::mount(nullptr, node.root.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) != 0)
      return not_allowed;
    int wrong = 0;
    std::string reason;
    wrong += told("stopped", node.settle(true, &reason) == state::stopped, reason);
    wrong +=
        told("said", reason.find("error=Read-only file system,remedy=disk.remedy.read_only") != reason.npos, reason);
    ::umount2(node.root.c_str(), MNT_DETACH);
    wrong += told("as before", node.now() == bare && !fs::exists(node.root / "quartermaster"));
    wrong += told("applied", node.settle(true, &reason) == state::applied, reason);
    return wrong;
  });
  if (status == not_allowed) GTEST_SKIP() << "needs the right to mount";
  EXPECT_EQ(status, 0);
}

TEST(static_pod_disk, folders_of_different_mounts_are_refused_before_anything_is_written) {
  const auto status = among_own_mounts([] {
    control_plane_node node;
    const auto folder = node.root / "manifests";
    if (::mount(folder.c_str(), folder.c_str(), nullptr, MS_BIND, nullptr) != 0) return not_allowed;
    int wrong = 0;
    std::string reason;
    wrong += told("stopped", node.settle(true, &reason) == state::stopped, reason);
    wrong += told("said", reason.find("static_pod.other_mount{path=" + folder.string()) != reason.npos, reason);
    wrong += told("as before", node.now() == bare && !fs::exists(node.kept()));
    ::umount2(folder.c_str(), MNT_DETACH);
    return wrong;
  });
  if (status == not_allowed) GTEST_SKIP() << "needs the right to mount";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace agent::static_pod
