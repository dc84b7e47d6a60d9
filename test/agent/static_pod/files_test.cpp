#include "agent/static_pod/files.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include <cstring>
#include <functional>
#include <iostream>

#include "test/agent/static_pod/master.hpp"
#include "test/agent/static_pod/system_calls.hpp"

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
int told(const char* what, bool right, const std::string& said = {}) {
  if (!right) std::cerr << "wrong: " << what << ": " << said << std::endl;
  return right ? 0 : 1;
}

TEST(static_pod_files, are_put_in_place_and_taken_out_byte_for_byte) {
  master of;
  EXPECT_EQ(of.settle(true), state::applied);
  EXPECT_EQ(of.now(), ours);
  EXPECT_THAT(of.manifests(), ElementsAre("kube-scheduler.yaml"));
  EXPECT_EQ(of.settle(false), state::off);
  EXPECT_EQ(of.now(), bare);
  EXPECT_FALSE(fs::exists(of.root / "quartermaster"));
}

TEST(static_pod_files, keep_their_mode_and_a_new_one_gets_that_of_the_kubeconfig) {
  master of;
  ::chmod(of.manifest().c_str(), 0604);
  of.settle(true);
  EXPECT_EQ(of.mode(of.manifest()), 0604U);
  EXPECT_EQ(of.mode(of.config()), 0640U);
  EXPECT_EQ(of.mode(of.kept()), 0600U) << "there are keys in it";
  EXPECT_EQ(of.mode(of.root / "quartermaster"), 0700U);
}

TEST(static_pod_files, a_key_is_for_the_owner_alone_though_others_could_read_the_file_before) {
  master of;
  const texts now{.config = "apiVersion: v1\n", .manifest = of.now().manifest};
  std::ofstream(of.config()) << *now.config;
  ::chmod(of.config().c_str(), 0644);
  const files on(of.root.string());
  ASSERT_TRUE(on.take({.what = action::write_config, .text = "# no secret\n"}, now));
  EXPECT_EQ(of.mode(of.config()), 0644U);
  ASSERT_TRUE(on.take({.what = action::write_config, .text = "tlsConfig: {keyData: a2V5}\n"},
                      {.config = "# no secret\n", .manifest = now.manifest}));
  EXPECT_EQ(of.mode(of.config()), 0600U);
}

TEST(static_pod_files, a_record_of_large_files_is_read_again) {
  master of;
  const std::string large(900'000, '#');
  const record what{.at = phase::applied, .before = {large, large}, .after = {large, large}};
  const files on(of.root.string());
  ASSERT_TRUE(on.take({.what = action::keep, .kept = what}, of.now()));
  const auto seen = on.look();
  ASSERT_TRUE(seen) << seen.error();
  EXPECT_EQ(seen->kept, what);
}

TEST(static_pod_files, keep_their_owner) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  master of;
  ASSERT_EQ(::chown((of.root / "scheduler.conf").c_str(), 2001, 2002), 0);
  of.settle(true);
  struct stat about{};
  ASSERT_EQ(::lstat(of.config().c_str(), &about), 0);
  EXPECT_EQ(about.st_uid, 2001U);
  EXPECT_EQ(about.st_gid, 2002U);
}

TEST(static_pod_files, follow_no_link) {
  const auto planted = [](const char* name) {
    master of;
    const auto outside = of.root / "outside";
    if (fs::exists(of.root / name)) {
      fs::rename(of.root / name, outside);
    } else {
      of.put(outside, "theirs\n");
    }
    fs::create_symlink(outside, of.root / name);
    const auto before = fs::is_directory(outside) ? std::string() : of.get(outside);
    std::string why;
    EXPECT_EQ(of.settle(true, &why), state::stopped) << name;
    EXPECT_THAT(why, HasSubstr(std::string(name) + " is a symbolic link, which is not followed"));
    if (!before.empty()) EXPECT_EQ(of.get(outside), before) << name;
    EXPECT_TRUE(fs::is_symlink(of.root / name));
  };
  planted("scheduler-config.yaml");
  planted("manifests/kube-scheduler.yaml");
  planted("manifests");
  master with_folder;
  fs::create_directory(with_folder.root / "elsewhere");
  fs::create_symlink(with_folder.root / "elsewhere", with_folder.root / "quartermaster");
  std::string why;
  EXPECT_EQ(with_folder.settle(true, &why), state::stopped);
  EXPECT_THAT(why, HasSubstr("quartermaster is a symbolic link"));
  EXPECT_TRUE(fs::is_empty(with_folder.root / "elsewhere"));
}

TEST(static_pod_files, replace_a_link_in_the_place_of_the_draft_and_do_not_follow_it) {
  master of;
  of.put(of.root / "outside", "theirs\n");
  fs::create_directory(of.root / "quartermaster");
  fs::create_symlink(of.root / "outside", of.root / "quartermaster/draft");
  EXPECT_EQ(of.settle(true), state::applied);
  EXPECT_EQ(of.get(of.root / "outside"), "theirs\n");
}

TEST(static_pod_files, a_root_below_a_link_is_refused) {
  master of;
  const auto link = of.root / "link";
  fs::create_symlink(of.root, link);
  EXPECT_THAT(files(link).look().error(), HasSubstr("link is a symbolic link"));
  EXPECT_THAT(files(of.root / "..").look().error(), HasSubstr("without dots"));
}

TEST(static_pod_files, what_is_no_file_is_not_waited_for) {
  master of;
  ASSERT_EQ(::mkfifo(of.config().c_str(), 0600), 0);
  EXPECT_THAT(files(of.root).look().error(), HasSubstr("is no regular file"));
}

TEST(static_pod_files, a_missing_folder_is_said_in_one_line) {
  master of;
  fs::remove_all(of.root / "manifests");
  std::string why;
  EXPECT_EQ(of.settle(true, &why), state::stopped);
  EXPECT_THAT(why, HasSubstr("manifests: this is no control-plane node as kubeadm sets it up"));
  EXPECT_THAT(files(of.root / "none").look().error(), HasSubstr("no folder"));
}

TEST(static_pod_files, a_file_that_changes_under_the_hand_is_left_alone) {
  master of;
  const files layer(of.root);
  const step write{.what = action::write_manifest, .text = *ours.manifest};
  const auto done = layer.take(write, {std::nullopt, "as it was seen"});
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error(), HasSubstr("was changed in this moment by somebody else"));
  EXPECT_EQ(of.now(), bare);
  EXPECT_FALSE(fs::exists(of.root / "quartermaster/draft"));
}

TEST(static_pod_files, a_rehearsal_leaves_no_trace) {
  master of;
  const files layer(of.root);
  const record what{.before = bare, .after = ours};
  EXPECT_TRUE(layer.rehearse(what));
  EXPECT_FALSE(fs::exists(of.root / "quartermaster"));
  of.settle(true);
  const auto kept = of.get(of.kept());
  EXPECT_TRUE(layer.rehearse(what));
  EXPECT_EQ(of.get(of.kept()), kept);
  EXPECT_FALSE(fs::exists(of.root / "quartermaster/draft"));
}

TEST(static_pod_files, a_record_that_cannot_be_read_stops_it) {
  master of;
  fs::create_directory(of.root / "quartermaster");
  of.put(of.kept(), "{");
  EXPECT_THAT(files(of.root).look().error(), HasSubstr("record.json is no JSON object; delete it to go on"));
}

TEST(static_pod_files, a_person_who_keeps_something_beside_the_record_keeps_it) {
  master of;
  of.settle(true);
  of.put(of.root / "quartermaster/notes", "x");
  EXPECT_EQ(of.settle(false), state::off);
  EXPECT_TRUE(fs::exists(of.root / "quartermaster/notes"));
}

// ---- crashes: every system call is the last one of a process, and another goes on ----

void expect_whole(const master& of, int nth) {
  const auto now = of.now();
  EXPECT_TRUE(now.config == bare.config || now.config == ours.config) << nth;
  EXPECT_TRUE(now.manifest == bare.manifest || now.manifest == ours.manifest) << nth;
  EXPECT_FALSE(now.manifest == ours.manifest && !now.config)
      << nth << ": a manifest that reads a file that is not there";
  EXPECT_THAT(of.manifests(), ElementsAre("kube-scheduler.yaml")) << nth;
}

/// `begin` leaves the master as it is when the process is killed; returns in how many places that was.
int killed_everywhere(bool asked_for, bool ours_works, const std::function<void(master&)>& begin, state end,
                      const texts& left) {
  for (int nth = 1; nth < 1000; ++nth) {
    master of;
    begin(of);
    of.ours_works = ours_works;
    const auto status = in_a_process([&] {
      system_calls::kill_at(nth);
      of.settle(asked_for);
      system_calls::stop();
      return 0;
    });
    expect_whole(of, nth);
    EXPECT_EQ(of.settle(asked_for), end) << nth;
    EXPECT_EQ(of.now(), left) << nth;
    EXPECT_FALSE(fs::exists(of.root / "quartermaster/draft")) << nth;
    if (status == 0) return nth - 1;
    if (status != 9 || testing::Test::HasFailure()) return -1;
  }
  return -1;
}

TEST(static_pod_crash, anywhere_while_applying_is_taken_up) {
  EXPECT_GT(killed_everywhere(true, true, [](master&) {}, state::applied, ours), 30);
}
TEST(static_pod_crash, anywhere_while_removing_is_taken_up) {
  EXPECT_GT(killed_everywhere(false, true, [](master& of) { of.settle(true); }, state::off, bare), 30);
}
TEST(static_pod_crash, anywhere_while_taking_back_is_taken_up) {
  EXPECT_GT(killed_everywhere(true, false, [](master&) {}, state::rolled_back, bare), 60);
}

// ---- disks ----

TEST(static_pod_disk, every_call_that_fails_is_one_line_and_leaves_whole_files) {
  for (const int number : {EIO, ENOSPC, EROFS}) {
    int places = 0;
    for (int nth = 1; nth < 1000; ++nth) {
      master of;
      std::string why;
      system_calls::fail(nth, number);
      const auto is = of.settle(true, &why);
      const auto calls = system_calls::stop();
      expect_whole(of, nth);
      if (is == state::stopped) {
        EXPECT_THAT(why, HasSubstr(std::strerror(number))) << nth;
        EXPECT_THAT(why, Not(HasSubstr("\n")));
        ++places;
      }
      EXPECT_EQ(of.settle(true), state::applied) << nth << " " << why;
      EXPECT_EQ(of.now(), ours) << nth;
      EXPECT_EQ(of.settle(false), state::off);
      if (calls < nth || HasFailure()) break;
    }
    EXPECT_GT(places, 30);
  }
}

TEST(static_pod_disk, a_full_one_is_seen_before_anything_is_written) {
  const auto status = among_own_mounts([] {
    master around;
    const auto root = around.root / "small";
    fs::create_directory(root);
    if (::mount("none", root.c_str(), "tmpfs", 0, "size=64k") != 0) return not_allowed;
    master of(root);
    int wrong = 0;
    {
      std::ofstream full(root / "full");
      full << std::string(1 << 20, 'x');
    }
    std::string why;
    wrong += told("stopped", of.settle(true, &why) == state::stopped, why);
    wrong += told("said", why.find("No space left") != why.npos || why.find("too little space") != why.npos, why);
    wrong += told("as before", of.now() == bare);
    wrong += told("no record", !fs::exists(of.kept()));
    fs::remove(root / "full");
    wrong += told("applied", of.settle(true, &why) == state::applied, why);
    // Full in the middle: what is under way waits, and nothing is half.
    std::ofstream(root / "full") << std::string(1 << 20, 'x');
    of.settle(false, &why);
    wrong += told("whole", of.now() == ours || of.now() == bare, why);
    fs::remove(root / "full");
    wrong += told("off", of.settle(false, &why) == state::off, why);
    wrong += told("as before at the end", of.now() == bare);
    ::umount2(root.c_str(), MNT_DETACH);
    return wrong;
  });
  if (status == not_allowed) GTEST_SKIP() << "needs the right to mount";
  EXPECT_EQ(status, 0);
}

TEST(static_pod_disk, a_read_only_one_is_said_and_left) {
  const auto status = among_own_mounts([] {
    master of;
    if (::mount(of.root.c_str(), of.root.c_str(), nullptr, MS_BIND, nullptr) != 0 ||
        ::mount(nullptr, of.root.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) != 0)
      return not_allowed;
    int wrong = 0;
    std::string why;
    wrong += told("stopped", of.settle(true, &why) == state::stopped, why);
    wrong += told("said", why.find("Read-only file system; mount the file system for writing") != why.npos, why);
    ::umount2(of.root.c_str(), MNT_DETACH);
    wrong += told("as before", of.now() == bare && !fs::exists(of.root / "quartermaster"));
    wrong += told("applied", of.settle(true, &why) == state::applied, why);
    return wrong;
  });
  if (status == not_allowed) GTEST_SKIP() << "needs the right to mount";
  EXPECT_EQ(status, 0);
}

TEST(static_pod_disk, folders_of_different_mounts_are_refused_before_anything_is_written) {
  const auto status = among_own_mounts([] {
    master of;
    const auto folder = of.root / "manifests";
    if (::mount(folder.c_str(), folder.c_str(), nullptr, MS_BIND, nullptr) != 0) return not_allowed;
    int wrong = 0;
    std::string why;
    wrong += told("stopped", of.settle(true, &why) == state::stopped, why);
    wrong += told("said", why.find("manifests is mounted apart") != why.npos, why);
    wrong += told("as before", of.now() == bare && !fs::exists(of.kept()));
    ::umount2(folder.c_str(), MNT_DETACH);
    return wrong;
  });
  if (status == not_allowed) GTEST_SKIP() << "needs the right to mount";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace agent::static_pod
