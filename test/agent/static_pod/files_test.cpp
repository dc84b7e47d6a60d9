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
int told(const char* name, bool right, const std::string& detail = {}) {
  if (!right) std::cerr << "wrong: " << name << ": " << detail << std::endl;
  return right ? 0 : 1;
}

TEST(static_pod_files, are_put_in_place_and_taken_out_byte_for_byte) {
  master master;
  EXPECT_EQ(master.settle(true), state::applied);
  EXPECT_EQ(master.now(), extended);
  EXPECT_THAT(master.manifests(), ElementsAre("kube-scheduler.yaml"));
  EXPECT_EQ(master.settle(false), state::disabled);
  EXPECT_EQ(master.now(), bare);
  EXPECT_FALSE(fs::exists(master.root / "quartermaster"));
}

TEST(static_pod_files, keep_their_mode_and_a_new_one_gets_that_of_the_kubeconfig) {
  master master;
  ::chmod(master.manifest().c_str(), 0604);
  master.settle(true);
  EXPECT_EQ(master.mode(master.manifest()), 0604U);
  EXPECT_EQ(master.mode(master.config()), 0640U);
  EXPECT_EQ(master.mode(master.kept()), 0600U) << "there are keys in it";
  EXPECT_EQ(master.mode(master.root / "quartermaster"), 0700U);
}

TEST(static_pod_files, a_key_is_for_the_owner_alone_though_others_could_read_the_file_before) {
  master master;
  const texts now{.config = "apiVersion: v1\n", .manifest = master.now().manifest};
  std::ofstream(master.config()) << *now.config;
  ::chmod(master.config().c_str(), 0644);
  const files files(master.root.string());
  ASSERT_TRUE(files.take({.kind = action::write_config, .text = "# no secret\n"}, now));
  EXPECT_EQ(master.mode(master.config()), 0644U);
  ASSERT_TRUE(files.take({.kind = action::write_config, .text = "tlsConfig: {keyData: a2V5}\n"},
                         {.config = "# no secret\n", .manifest = now.manifest}));
  EXPECT_EQ(master.mode(master.config()), 0600U);
}

TEST(static_pod_files, a_record_of_large_files_is_read_again) {
  master master;
  const std::string large(900'000, '#');
  const record record{.stage = phase::applied, .before = {large, large}, .after = {large, large}};
  const files files(master.root.string());
  ASSERT_TRUE(files.take({.kind = action::keep, .kept = record}, master.now()));
  const auto seen = files.look();
  ASSERT_TRUE(seen) << seen.error();
  EXPECT_EQ(seen->kept, record);
}

TEST(static_pod_files, keep_their_owner) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  master master;
  ASSERT_EQ(::chown((master.root / "scheduler.conf").c_str(), 2001, 2002), 0);
  master.settle(true);
  struct stat about{};
  ASSERT_EQ(::lstat(master.config().c_str(), &about), 0);
  EXPECT_EQ(about.st_uid, 2001U);
  EXPECT_EQ(about.st_gid, 2002U);
}

TEST(static_pod_files, follow_no_link) {
  const auto planted = [](const char* name) {
    master master;
    const auto outside = master.root / "outside";
    if (fs::exists(master.root / name)) {
      fs::rename(master.root / name, outside);
    } else {
      master.put(outside, "theirs\n");
    }
    fs::create_symlink(outside, master.root / name);
    const auto before = fs::is_directory(outside) ? std::string() : master.get(outside);
    std::string reason;
    EXPECT_EQ(master.settle(true, &reason), state::stopped) << name;
    EXPECT_THAT(reason, HasSubstr(std::string(name) + " is a symbolic link, which is not followed"));
    if (!before.empty()) EXPECT_EQ(master.get(outside), before) << name;
    EXPECT_TRUE(fs::is_symlink(master.root / name));
  };
  planted("scheduler-config.yaml");
  planted("manifests/kube-scheduler.yaml");
  planted("manifests");
  master with_folder;
  fs::create_directory(with_folder.root / "elsewhere");
  fs::create_symlink(with_folder.root / "elsewhere", with_folder.root / "quartermaster");
  std::string reason;
  EXPECT_EQ(with_folder.settle(true, &reason), state::stopped);
  EXPECT_THAT(reason, HasSubstr("quartermaster is a symbolic link"));
  EXPECT_TRUE(fs::is_empty(with_folder.root / "elsewhere"));
}

TEST(static_pod_files, replace_a_link_in_the_place_of_the_draft_and_do_not_follow_it) {
  master master;
  master.put(master.root / "outside", "theirs\n");
  fs::create_directory(master.root / "quartermaster");
  fs::create_symlink(master.root / "outside", master.root / "quartermaster/draft");
  EXPECT_EQ(master.settle(true), state::applied);
  EXPECT_EQ(master.get(master.root / "outside"), "theirs\n");
}

TEST(static_pod_files, a_root_below_a_link_is_refused) {
  master master;
  const auto link = master.root / "link";
  fs::create_symlink(master.root, link);
  EXPECT_THAT(files(link).look().error(), HasSubstr("link is a symbolic link"));
  EXPECT_THAT(files(master.root / "..").look().error(), HasSubstr("without dots"));
}

TEST(static_pod_files, what_is_no_file_is_not_waited_for) {
  master master;
  ASSERT_EQ(::mkfifo(master.config().c_str(), 0600), 0);
  EXPECT_THAT(files(master.root).look().error(), HasSubstr("is no regular file"));
}

TEST(static_pod_files, a_missing_folder_is_said_in_one_line) {
  master master;
  fs::remove_all(master.root / "manifests");
  std::string reason;
  EXPECT_EQ(master.settle(true, &reason), state::stopped);
  EXPECT_THAT(reason, HasSubstr("manifests: this is no control-plane node as kubeadm sets it up"));
  EXPECT_THAT(files(master.root / "none").look().error(), HasSubstr("no folder"));
}

TEST(static_pod_files, a_file_that_changes_under_the_hand_is_left_alone) {
  master master;
  const files layer(master.root);
  const step write{.kind = action::write_manifest, .text = *extended.manifest};
  const auto done = layer.take(write, {std::nullopt, "as it was seen"});
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error(), HasSubstr("was changed in this moment by someone else"));
  EXPECT_EQ(master.now(), bare);
  EXPECT_FALSE(fs::exists(master.root / "quartermaster/draft"));
}

TEST(static_pod_files, a_rehearsal_leaves_no_trace) {
  master master;
  const files layer(master.root);
  const record record{.before = bare, .after = extended};
  EXPECT_TRUE(layer.rehearse(record));
  EXPECT_FALSE(fs::exists(master.root / "quartermaster"));
  master.settle(true);
  const auto kept = master.get(master.kept());
  EXPECT_TRUE(layer.rehearse(record));
  EXPECT_EQ(master.get(master.kept()), kept);
  EXPECT_FALSE(fs::exists(master.root / "quartermaster/draft"));
}

TEST(static_pod_files, a_record_that_cannot_be_read_stops_it) {
  master master;
  fs::create_directory(master.root / "quartermaster");
  master.put(master.kept(), "{");
  EXPECT_THAT(files(master.root).look().error(), HasSubstr("record.json is no JSON object; delete it to go on"));
}

TEST(static_pod_files, a_person_who_keeps_something_beside_the_record_keeps_it) {
  master master;
  master.settle(true);
  master.put(master.root / "quartermaster/notes", "x");
  EXPECT_EQ(master.settle(false), state::disabled);
  EXPECT_TRUE(fs::exists(master.root / "quartermaster/notes"));
}

// ---- crashes: every system call is the last one of a process, and another goes on ----

void expect_whole(const master& master, int nth) {
  const auto now = master.now();
  EXPECT_TRUE(now.config == bare.config || now.config == extended.config) << nth;
  EXPECT_TRUE(now.manifest == bare.manifest || now.manifest == extended.manifest) << nth;
  EXPECT_FALSE(now.manifest == extended.manifest && !now.config)
      << nth << ": a manifest that reads a file that is not there";
  EXPECT_THAT(master.manifests(), ElementsAre("kube-scheduler.yaml")) << nth;
}

/// `begin` leaves the control-plane node as it is when the process is killed; returns in how many places that was.
int killed_everywhere(bool asked_for, bool ours_works, const std::function<void(master&)>& begin, state end,
                      const texts& left) {
  for (int nth = 1; nth < 1000; ++nth) {
    master master;
    begin(master);
    master.ours_works = ours_works;
    const auto status = in_a_process([&] {
      system_calls::kill_at(nth);
      master.settle(asked_for);
      system_calls::stop();
      return 0;
    });
    expect_whole(master, nth);
    EXPECT_EQ(master.settle(asked_for), end) << nth;
    EXPECT_EQ(master.now(), left) << nth;
    EXPECT_FALSE(fs::exists(master.root / "quartermaster/draft")) << nth;
    if (status == 0) return nth - 1;
    if (status != 9 || testing::Test::HasFailure()) return -1;
  }
  return -1;
}

TEST(static_pod_crash, anywhere_while_applying_is_taken_up) {
  EXPECT_GT(killed_everywhere(true, true, [](master&) {}, state::applied, extended), 30);
}
TEST(static_pod_crash, anywhere_while_removing_is_taken_up) {
  EXPECT_GT(killed_everywhere(false, true, [](master& master) { master.settle(true); }, state::disabled, bare), 30);
}
TEST(static_pod_crash, anywhere_while_taking_back_is_taken_up) {
  EXPECT_GT(killed_everywhere(true, false, [](master&) {}, state::rolled_back, bare), 60);
}

// ---- disks ----

TEST(static_pod_disk, every_call_that_fails_is_one_line_and_leaves_whole_files) {
  for (const int number : {EIO, ENOSPC, EROFS}) {
    int places = 0;
    for (int nth = 1; nth < 1000; ++nth) {
      master master;
      std::string reason;
      system_calls::fail(nth, number);
      const auto is = master.settle(true, &reason);
      const auto calls = system_calls::stop();
      expect_whole(master, nth);
      if (is == state::stopped) {
        EXPECT_THAT(reason, HasSubstr(std::strerror(number))) << nth;
        EXPECT_THAT(reason, Not(HasSubstr("\n")));
        ++places;
      }
      EXPECT_EQ(master.settle(true), state::applied) << nth << " " << reason;
      EXPECT_EQ(master.now(), extended) << nth;
      EXPECT_EQ(master.settle(false), state::disabled);
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
    master machine(root);
    int wrong = 0;
    {
      std::ofstream full(root / "full");
      full << std::string(1 << 20, 'x');
    }
    std::string reason;
    wrong += told("stopped", machine.settle(true, &reason) == state::stopped, reason);
    wrong += told("said", reason.find("No space left") != reason.npos || reason.find("too little space") != reason.npos,
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

TEST(static_pod_disk, a_read_only_one_is_said_and_left) {
  const auto status = among_own_mounts([] {
    master master;
    if (::mount(master.root.c_str(), master.root.c_str(), nullptr, MS_BIND, nullptr) != 0 ||
        ::mount(nullptr, master.root.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) != 0)
      return not_allowed;
    int wrong = 0;
    std::string reason;
    wrong += told("stopped", master.settle(true, &reason) == state::stopped, reason);
    wrong +=
        told("said", reason.find("Read-only file system; mount the file system for writing") != reason.npos, reason);
    ::umount2(master.root.c_str(), MNT_DETACH);
    wrong += told("as before", master.now() == bare && !fs::exists(master.root / "quartermaster"));
    wrong += told("applied", master.settle(true, &reason) == state::applied, reason);
    return wrong;
  });
  if (status == not_allowed) GTEST_SKIP() << "needs the right to mount";
  EXPECT_EQ(status, 0);
}

TEST(static_pod_disk, folders_of_different_mounts_are_refused_before_anything_is_written) {
  const auto status = among_own_mounts([] {
    master master;
    const auto folder = master.root / "manifests";
    if (::mount(folder.c_str(), folder.c_str(), nullptr, MS_BIND, nullptr) != 0) return not_allowed;
    int wrong = 0;
    std::string reason;
    wrong += told("stopped", master.settle(true, &reason) == state::stopped, reason);
    wrong += told("said", reason.find("manifests is mounted apart") != reason.npos, reason);
    wrong += told("as before", master.now() == bare && !fs::exists(master.kept()));
    ::umount2(folder.c_str(), MNT_DETACH);
    return wrong;
  });
  if (status == not_allowed) GTEST_SKIP() << "needs the right to mount";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace agent::static_pod
