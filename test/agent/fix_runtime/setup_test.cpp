// `agent fix-runtime` on every node of corpus/: the name of a folder says which runtime it is, and whether
// NVIDIA's runtime becomes the default. What it says and writes is in test/golden/fix_runtime; QM_GOLDEN=write writes
// what differs.
#include "agent/container_runtime/setup.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "agent/facts/judge.hpp"
#include "agent/facts/runtime.hpp"
#include "api/check.hpp"
#include "test/agent/static_pod/system_calls.hpp"
#include "test/english.hpp"
#include "test/facts_in.hpp"
#include "test/rounds.hpp"
#include "test/words.hpp"

namespace agent::container_runtime {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

const fs::path corpus = TEST_DATA "/agent/fix_runtime/corpus";
using texts = std::map<std::string, std::string>;

std::string get(const fs::path& file) {
  std::ostringstream out;
  out << std::ifstream(file, std::ios::binary).rdbuf();
  return out.str();
}
void put(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

/// A node of the corpus, copied to where it may be changed.
class node {
 public:
  explicit node(const std::string& name) {
    std::string path = (fs::exists("/dev/shm") ? std::string("/dev/shm/") : testing::TempDir()) + "fix_runtime_XXXXXX";
    root = ::mkdtemp(path.data());
    fs::copy(corpus / name, root, fs::copy_options::recursive);
    put(root / "usr/bin/nvidia-container-runtime", "");
    fs::create_directories(root / "etc");
    const auto runtime = name.substr(0, name.find('_'));
    options.root = root;
    options.set_default = name.ends_with("set_default");
    put(root / (runtime == "crio"     ? "run/crio/crio.sock"
                : runtime == "docker" ? "run/cri-dockerd.sock"
                                      : "run/containerd/containerd.sock"),
        "");
  }
  node(const node&) = delete;
  ~node() { fs::remove_all(root); }

  /// Files below /etc and their texts.
  texts files() const { return files_below(root); }
  static texts files_below(const fs::path& root) {
    texts out;
    for (const auto& entry : fs::recursive_directory_iterator(root / "etc"))
      if (entry.is_regular_file()) out["/" + fs::relative(entry.path(), root).string()] = get(entry.path());
    return out;
  }
  fs::path file(const std::string& path) const { return root / path.substr(1); }
  /// Messages without the place of the copy.
  std::string shown(std::string text) const {
    for (auto index = text.find(root.string()); index != std::string::npos; index = text.find(root.string()))
      text.erase(index, root.string().size());
    return text;
  }

  fs::path root;
  setup_options options;
};

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(corpus)) out.push_back(entry.path().filename());
  std::ranges::sort(out);
  return out;
}

/// What was done or why not, in English.
std::string said(const std::expected<report, text::phrase>& done) {
  return done ? text_of(*done, text::language::en) : words_of(done.error(), text::language::en);
}
/// The key of why not, below fix_runtime or disk: "no_toolkit".
std::string refusal_of(const std::expected<report, text::phrase>& done) {
  if (done) return "done";
  EXPECT_FALSE(words::has_english_sentence(words_of(done.error(), text::language::zh)));
  return done.error().key;
}
std::string value_of(const text::phrase& phrase, std::string_view name) {
  const auto match = std::ranges::find(phrase.arguments, name, &text::phrase_argument::name);
  return match == phrase.arguments.end() ? "" : match->values.front();
}

/// The key of what is wrong in "fix_runtime.defect".
std::string problem_of(const std::expected<report, text::phrase>& done) {
  if (refusal_of(done) != "fix_runtime.defect") return refusal_of(done);
  return done.error().arguments.front().inner.key;
}

bool is_backup(const std::string& path) { return path.ends_with(".quartermaster-backup"); }

/// As the preflight row container_runtime has it; empty: there is none.
std::string defect_text(const node& node) {
  const facts::files files(node.root);
  const auto runtime = facts::read_runtime(files);
  if (!runtime || !runtime->default_runtime) return {};
  const auto defect = facts::defect_of(runtime->settings, facts::has_program(files, runtime->program));
  if (!defect) return {};
  const auto text = api::found_text(facts::cause_of(*defect, "runtime", defect->advice()));
  return text.substr(text.find(": ") + 1);
}

/// How the rows container_runtime and default_runtime of preflight end.
struct row_states {
  facts::check_state runtime = facts::check_state::unknown, by_default = facts::check_state::unknown;
  std::string default_advice;
  bool are_ok() const { return runtime == facts::check_state::ok && by_default == facts::check_state::ok; }
};
row_states preflight_of(const node& node) {
  std::vector<facts::row> rows;
  facts::judge_containers(facts::read({node.root, node.root}), rows);
  row_states out;
  for (const auto& row : rows) {
    if (row.name == "container_runtime") out.runtime = row.state;
    if (row.name != "default_runtime") continue;
    out.by_default = row.state;
    if (const auto advice = row.parameters.find("advice"); advice != row.parameters.end())
      out.default_advice = advice->second;
  }
  return out;
}

/// Would nothing be changed, and nothing be refused?
bool has_nothing_to_do(const node& node, bool set_default) {
  auto options = node.options;
  options.set_default = set_default;
  options.dry_run = true;
  const auto done = set_up(options);
  return done && !done->lines.empty() && done->lines.front().key == "fix_runtime.nothing";
}

/// The program that `./dev` fetched for other tests; empty: it is not there.
std::string real_containerd() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const auto folder = (cache ? fs::path(cache) : fs::path(home ? home : "/") / ".cache") / "quartermaster";
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().filename().string().starts_with("containerd-") && fs::exists(entry.path() / "bin/containerd"))
      return entry.path() / "bin/containerd";
  return {};
}

/// `containerd config dump` of the node's files, whose imports begin at its root.
std::string dump(const node& node, const std::string& program) {
  const fs::path copy = node.root.string() + "_dump";
  fs::copy(node.root / "etc/containerd", copy, fs::copy_options::recursive);
  for (const auto& entry : fs::recursive_directory_iterator(copy)) {
    if (!entry.is_regular_file()) continue;
    auto text = get(entry.path());
    const std::string folder = "/etc/containerd/";
    for (auto index = text.find(folder); index != std::string::npos; index = text.find(folder, index))
      text.replace(index, folder.size(), copy.string() + "/");
    put(entry.path(), text);
  }
  const auto command = program + " --config " + (copy / "config.toml").string() + " config dump 2>/dev/null";
  std::string out;
  if (auto* pipe = ::popen(command.c_str(), "r")) {
    std::array<char, 4096> part{};
    while (const auto size = std::fread(part.data(), 1, part.size(), pipe)) out.append(part.data(), size);
    ::pclose(pipe);
  }
  fs::remove_all(copy);
  return out;
}

/// The real containerd has the same default, with the same program, type and cgroups.
void expect_as_containerd_reads(const node& node, const facts::runtime_settings& settings) {
  static const auto program = real_containerd();
  // Containerd 2 knows the deprecated table no more.
  if (program.empty() || settings.type != facts::runtime_settings::kind::containerd ||
      settings.default_name == "default_runtime")
    return;
  auto text = dump(node, program);
  ASSERT_NE(text, "") << "containerd does not read it";
  text.erase(text.find("imports = "), text.find('\n', text.find("imports = ")) - text.find("imports = "));  // all in it
  class node dumped("containerd_empty");
  put(dumped.root / "etc/containerd/config.toml", text);
  const auto runtime = facts::read_runtime(facts::files(dumped.root));
  ASSERT_TRUE(runtime);
  // That of a section which this containerd reads, and older ones do not.
  const auto* later = facts::stray_default(settings);
  EXPECT_EQ(runtime->settings.default_name, later && !later->since.empty() ? later->value : settings.default_name);
  const auto* entry = facts::nvidia_entry(settings);
  ASSERT_TRUE(entry);
  const auto* same = runtime->settings.find(entry->name);
  ASSERT_TRUE(same) << text;
  EXPECT_EQ(same->program, entry->program);
  EXPECT_EQ(same->type, entry->type);
  EXPECT_EQ(same->systemd == "true", entry->systemd == "true");
}

class fix_runtime : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(corpus, fix_runtime, testing::ValuesIn(names()), [](const auto& info) {
  auto name = info.param;
  std::ranges::replace(name, '.', '_');
  return name;
});

TEST_P(fix_runtime, S6_writes_what_the_golden_file_says_keeps_the_rest_and_takes_all_back) {
  node node(GetParam());
  const auto before = node.files();
  const auto defect_before = defect_text(node);
  auto dry = node.options;
  dry.dry_run = true;
  const auto rehearsal = set_up(dry);
  EXPECT_EQ(node.files(), before) << "--dry-run wrote";

  const auto done = set_up(node.options);
  const auto after = node.files();
  EXPECT_EQ(rehearsal.has_value(), done.has_value());
  if (done) EXPECT_EQ(done->repairs.empty(), defect_before.empty()) << defect_before;
  std::string text = done ? node.shown(said(done)) : "refused: " + node.shown(said(done)) + "\n";
  for (const auto& [path, content] : after) {
    const auto old = before.find(path);
    if (is_backup(path)) {
      EXPECT_EQ(content, before.at(path.substr(0, path.rfind('.')))) << path;
    } else if (old == before.end() || old->second != content) {
      text += "== " + path + "\n" + content + (content.ends_with('\n') ? "" : "(no newline at the end)\n");
    }
  }
  for (auto index = text.find('\r'); index != std::string::npos; index = text.find('\r')) text.replace(index, 1, "\\r");
  const auto golden = std::string(TEST_DATA) + "/golden/fix_runtime/" + GetParam() + ".txt";
  if (const char* write = std::getenv("QM_GOLDEN"); write && std::string_view(write) == "write") put(golden, text);
  EXPECT_EQ(get(golden), text) << golden << ": QM_GOLDEN=write takes over what is made now";
  if (!done) {
    // What fix-runtime refuses in the words of a row, that row says.
    if (const auto error = said(done); error.contains("its runtime nvidia"))
      EXPECT_THAT(error, HasSubstr(defect_text(node)));
    EXPECT_EQ(after, before);
    EXPECT_FALSE(said(done).contains('\n'));
    EXPECT_NE(refusal_of(done), "");
    return;
  }

  // As the preflight checks read what was written.
  const auto runtime = facts::read_runtime(facts::files(node.root));
  ASSERT_TRUE(runtime) << api::found_text(runtime.error());
  EXPECT_TRUE(runtime->has_nvidia);
  if (node.options.set_default) EXPECT_TRUE(facts::is_nvidia_default(runtime->settings)) << *runtime->default_runtime;
  EXPECT_EQ(defect_text(node), "");
  expect_as_containerd_reads(node, runtime->settings);

  const auto again = set_up(node.options);
  ASSERT_TRUE(again) << said(again);
  EXPECT_EQ(again->lines.front().key, "fix_runtime.nothing");
  EXPECT_EQ(node.files(), after);

  const auto restored = restore(node.options);
  ASSERT_TRUE(restored) << said(restored);
  EXPECT_EQ(node.files(), before);
  EXPECT_EQ(restore(node.options).value().lines.front().key, "fix_runtime.nothing_to_restore");
}

TEST_P(fix_runtime, finds_a_fault_where_preflight_finds_one) {
  node node(GetParam());
  const auto expect_agreement = [&](const std::string& moment) {
    const auto rows = preflight_of(node);
    EXPECT_EQ(rows.are_ok(), has_nothing_to_do(node, true)) << moment;
    const bool is_set_up = has_nothing_to_do(node, false);
    if (rows.runtime != facts::check_state::ok) EXPECT_FALSE(is_set_up) << moment;
    // A runtime that is not there yet is the business of the default.
    if (!is_set_up) EXPECT_FALSE(rows.are_ok()) << moment;
  };
  expect_agreement("before");
  node.options.set_default = true;
  if (!set_up(node.options)) return;
  expect_agreement("after");
  EXPECT_TRUE(preflight_of(node).are_ok());
}

/// Nodes whose files change in every way there is.
const std::vector<std::string> kinds{"containerd_1.7_minimal_set_default",
                                     "containerd_2.0_default_set_default",
                                     "containerd_1.7_cgroups_missing_set_default",
                                     "docker_path_missing_set_default",
                                     "crio_default_set_default",
                                     "docker_kubeadm",
                                     "docker_missing_set_default"};

/// Kills `work` before its first, second, ... system call, and then looks. In short: before each third one, from
/// another one on for each kind of node.
void kill_everywhere(const std::string& name, const std::function<void(node&)>& prepare,
                     const std::function<bool(const node&)>& work, const std::function<void(node&)>& look) {
  const int step = test::rounds(3, 1);
  for (int index = 1 + static_cast<int>(name.size()) % step;; index += step) {
    ASSERT_LT(index, 200);
    node node(name);
    prepare(node);
    const auto pid = ::fork();
    if (pid == 0) {
      system_calls::kill_at(index);
      ::_exit(work(node) ? 0 : 1);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_NE(WEXITSTATUS(status), 1) << name << " " << index;
    SCOPED_TRACE(name + ", killed before call " + std::to_string(index));
    look(node);
    if (WEXITSTATUS(status) == 0) {
      EXPECT_GT(index, 5) << "no call was counted";
      return;
    }
  }
}

void expect_old_or_new(const texts& now, const texts& before, const texts& after) {
  for (const auto& [path, content] : now) {
    if (path.ends_with(".quartermaster-draft")) continue;
    EXPECT_TRUE((before.contains(path) && before.at(path) == content) ||
                (after.contains(path) && after.at(path) == content))
        << path << " is neither old nor new:\n"
        << content;
  }
  for (const auto& [path, content] : before) EXPECT_TRUE(now.contains(path)) << path << " is gone";
}

TEST(fix_runtime_setup, S6_a_kill_at_any_moment_leaves_old_or_new_files_and_the_next_call_completes) {
  for (const auto& name : kinds) {
    node whole(name);
    const auto before = whole.files();
    ASSERT_TRUE(set_up(whole.options));
    const auto after = whole.files();
    kill_everywhere(
        name, [](node&) {}, [](const node& node) { return set_up(node.options).has_value(); },
        [&](node& node) {
          expect_old_or_new(node.files(), before, after);
          auto copy = node.options;
          copy.root = node.root.string() + "_copy";
          fs::copy(node.root, copy.root, fs::copy_options::recursive);
          ASSERT_TRUE(restore(copy)) << "right after the kill";
          EXPECT_EQ(node.files_below(copy.root), before);
          fs::remove_all(copy.root);
          ASSERT_TRUE(set_up(node.options));
          EXPECT_EQ(node.files(), after);
          ASSERT_TRUE(restore(node.options));
          EXPECT_EQ(node.files(), before);
        });
  }
}

TEST(fix_runtime_setup, a_kill_while_restoring_is_completed_by_the_next_call) {
  for (const auto& name : kinds) {
    node whole(name);
    const auto before = whole.files();
    ASSERT_TRUE(set_up(whole.options));
    const auto after = whole.files();
    kill_everywhere(
        name, [](node& node) { ASSERT_TRUE(set_up(node.options)); },
        [](const node& node) { return restore(node.options).has_value(); },
        [&](node& node) {
          expect_old_or_new(node.files(), before, after);
          ASSERT_TRUE(restore(node.options));
          EXPECT_EQ(node.files(), before);
        });
  }
}

TEST(fix_runtime_setup, keeps_mode_and_owner_and_so_does_the_backup) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  node node("docker_kubeadm");
  const auto file = node.file("/etc/docker/daemon.json"), backup = fs::path(file.string() + ".quartermaster-backup");
  ASSERT_EQ(::chmod(file.c_str(), 0604), 0);
  ASSERT_EQ(::chown(file.c_str(), 2001, 2002), 0);
  const auto expect_same = [](const fs::path& path) {
    struct stat about{};
    ASSERT_EQ(::lstat(path.c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 07777U, 0604U);
    EXPECT_EQ(about.st_uid, 2001U);
    EXPECT_EQ(about.st_gid, 2002U);
  };
  ASSERT_TRUE(set_up(node.options));
  expect_same(file);
  expect_same(backup);
  ASSERT_TRUE(restore(node.options));
  expect_same(file);
}

TEST(fix_runtime_setup, what_a_person_changed_since_is_left_alone) {
  for (const auto* name : {"containerd_1.7_minimal", "containerd_2.0_default", "docker_kubeadm"}) {
    node node(name);
    ASSERT_TRUE(set_up(node.options));
    const auto main =
        std::string(name).starts_with("docker") ? "/etc/docker/daemon.json" : "/etc/containerd/config.toml";
    put(node.file(main), get(node.file(main)) + "\n");
    const auto now = node.files();
    const auto done = restore(node.options);
    ASSERT_FALSE(done) << name;
    EXPECT_EQ(refusal_of(done), "fix_runtime.changed_by_person");
    EXPECT_EQ(node.shown(value_of(done.error(), "file")), main);
    EXPECT_EQ(node.files(), now);
  }
  node crio("crio_default");
  ASSERT_TRUE(set_up(crio.options));
  const auto drop_in = crio.file("/etc/crio/crio.conf.d/99-quartermaster.conf");
  put(drop_in, get(drop_in) + "# mine\n");
  crio.options.set_default = true;
  for (const auto& done : {set_up(crio.options), restore(crio.options)}) {
    EXPECT_EQ(refusal_of(done), "fix_runtime.not_own");
  }
}

TEST(fix_runtime_setup, the_default_can_be_set_later_and_stays_when_it_is_not_asked_for) {
  for (const auto* name : {"containerd_1.7_minimal", "containerd_2.0_default", "crio_default", "docker_kubeadm"}) {
    node node(name);
    const auto before = node.files();
    ASSERT_TRUE(set_up(node.options));
    node.options.set_default = true;
    ASSERT_TRUE(set_up(node.options));
    EXPECT_EQ(facts::read_runtime(facts::files(node.root))->default_runtime, "nvidia") << name;
    node.options.set_default = false;
    EXPECT_EQ(set_up(node.options).value().lines.front().key, "fix_runtime.nothing") << name;
    ASSERT_TRUE(restore(node.options));
    EXPECT_EQ(node.files(), before) << name;
  }
}

/// The file moved elsewhere on the node, with a link in its place.
void put_behind_link(const node& node, const std::string& path) {
  fs::rename(node.file(path), node.file("/etc/site"));
  fs::create_symlink("/etc/site", node.file(path));
}

TEST(fix_runtime_setup, a_link_is_read_and_is_never_written_over) {
  for (const auto* name : {"docker_kubeadm", "containerd_1.7_minimal", "containerd_2.0_default"}) {
    const auto path =
        std::string(name).starts_with("docker") ? "/etc/docker/daemon.json" : "/etc/containerd/config.toml";
    node linked(name), ready(name);
    put_behind_link(linked, path);
    const auto before = linked.files();
    for (const bool dry_run : {true, false}) {
      linked.options.dry_run = dry_run;
      EXPECT_EQ(refusal_of(set_up(linked.options)), "preflight_advice.replace_link.remedy") << name;
    }
    EXPECT_EQ(linked.files(), before) << name;
    EXPECT_EQ(preflight_of(linked).default_advice, "replace_link") << "the row says what fix-runtime says: " << name;
    EXPECT_EQ(preflight_of(ready).default_advice, "set_default") << name;
    ready.options.set_default = true;
    ASSERT_TRUE(set_up(ready.options));
    put_behind_link(ready, path);
    EXPECT_TRUE(preflight_of(ready).are_ok()) << name;
    EXPECT_EQ(refusal_of(restore(ready.options)), "disk.link") << name;
  }
  node outside("docker_kubeadm");
  fs::remove(outside.file("/etc/docker/daemon.json"));
  fs::create_symlink("/opt/daemon.json", outside.file("/etc/docker/daemon.json"));
  EXPECT_EQ(refusal_of(set_up(outside.options)), "preflight_cause.link_leads_out.found");
}

TEST(fix_runtime_setup, a_drop_in_that_is_imported_goes_next_to_a_link) {
  node node("containerd_2.2_imports_folder_set_default");
  put_behind_link(node, "/etc/containerd/config.toml");
  EXPECT_EQ(preflight_of(node).default_advice, "set_default");
  const auto done = set_up(node.options);
  ASSERT_TRUE(done) << said(done);
  EXPECT_TRUE(preflight_of(node).are_ok());
}

TEST(fix_runtime_setup, a_missing_program_is_said) {
  node bare("docker_kubeadm");
  fs::remove(bare.root / "usr/bin/nvidia-container-runtime");
  EXPECT_EQ(refusal_of(set_up(bare.options)), "fix_runtime.no_toolkit");
}

TEST(fix_runtime_setup, the_runtime_is_found_or_asked_for_and_k3s_is_refused) {
  node node("containerd_2.0_default");
  fs::remove(node.root / "run/containerd/containerd.sock");
  EXPECT_EQ(refusal_of(set_up(node.options)), "fix_runtime.no_socket");
  put(node.root / "run/k3s/containerd/containerd.sock", "");
  EXPECT_EQ(refusal_of(set_up(node.options)), "preflight_advice.k3s.remedy");
  node.options.runtime = "containerd";
  EXPECT_EQ(refusal_of(set_up(node.options)), "preflight_advice.k3s.remedy");
  fs::remove_all(node.root / "run/k3s");
  EXPECT_TRUE(set_up(node.options));
}

TEST(fix_runtime_setup, k0s_and_MicroK8s_are_named_with_what_to_do) {
  node k0s("containerd_2.0_default"), microk8s("containerd_2.0_default");
  fs::remove(k0s.root / "run/containerd/containerd.sock");
  put(k0s.root / "run/k0s/containerd.sock", "");
  EXPECT_EQ(refusal_of(set_up(k0s.options)), "preflight_advice.k0s.remedy");
  fs::remove(microk8s.root / "run/containerd/containerd.sock");
  put(microk8s.root / "var/snap/microk8s/common/run/containerd.sock", "");
  EXPECT_EQ(refusal_of(set_up(microk8s.options)), "preflight_advice.microk8s.remedy");
  put(microk8s.root / "run/containerd/containerd.sock", "");
  EXPECT_EQ(refusal_of(set_up(microk8s.options)), "preflight_advice.microk8s.remedy")
      << "the one that is first must be named";
  microk8s.options.runtime = "containerd";
  EXPECT_TRUE(set_up(microk8s.options));
}

// What an earlier version wrote, which looked for the name nvidia and for runc alone.
TEST(fix_runtime_setup, what_an_earlier_version_wrote_is_taken_back_and_corrected) {
  const std::string folder = "/etc/containerd/config.toml", backup = folder + ".quartermaster-backup";
  const auto written = [&](const node& node) {
    const auto text = get(node.file(folder));
    put(node.file(backup), text);
    auto now = text;
    now.replace(now.find("\"crun\""), 6, "\"nvidia\"");
    put(node.file(folder), now +
                               "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia]\n"
                               "  runtime_type = \"io.containerd.runc.v2\"\n"
                               "  [plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia.options]\n"
                               "    BinaryName = \"/usr/bin/nvidia-container-runtime\"\n");
  };
  node restored("containerd_1.7_crun_set_default"), corrected("containerd_1.7_crun_set_default"),
      fresh("containerd_1.7_crun_set_default");
  const auto before = restored.files();
  written(restored);
  ASSERT_TRUE(restore(restored.options));
  EXPECT_EQ(restored.files(), before);
  written(corrected);
  corrected.options.set_default = false;
  const auto done = set_up(corrected.options);
  ASSERT_TRUE(done) << said(done);
  ASSERT_TRUE(set_up(fresh.options));
  EXPECT_EQ(corrected.files(), fresh.files());
}

// The pod sees /usr/bin, and no other folder of programs.
TEST(fix_runtime_setup, a_program_that_a_pod_cannot_see_is_not_said_to_be_gone) {
  node node("containerd_1.7_program_gone_set_default");
  node.options.runtime = "containerd";
  node.options.in_pod = true;
  const auto done = set_up(node.options);
  EXPECT_EQ(refusal_of(done), "fix_runtime.program_not_mounted");
  EXPECT_EQ(value_of(done.error(), "program"), "/usr/local/nvidia/toolkit/nvidia-container-runtime");
}

// The pod has no /run of the node, and not the folders that a configuration may import.
TEST(fix_runtime_setup, a_pod_writes_what_a_person_would_and_refuses_what_it_cannot_see) {
  for (const auto& name : kinds) {
    node person(name), pod(name);
    fs::remove_all(pod.root / "run");
    pod.options.runtime = name.substr(0, name.find('_'));
    pod.options.in_pod = true;
    ASSERT_TRUE(set_up(person.options)) << name;
    const auto done = set_up(pod.options);
    ASSERT_TRUE(done) << said(done);
    EXPECT_EQ(pod.files(), person.files()) << name;
  }
  for (const std::string import :
       {"/opt/site/*.toml", "/etc/containerd/../site.toml", "../site.toml", "/etc/containerdx/a"}) {
    node node("containerd_2.0_only_version");
    node.options.runtime = "containerd";
    node.options.in_pod = true;
    put(node.file("/etc/containerd/config.toml"), "version = 3\nimports = ['" + import + "']\n");
    const auto before = node.files();
    const auto done = set_up(node.options);
    EXPECT_EQ(problem_of(done), "preflight_cause.import_not_mounted.found") << import;
    EXPECT_EQ(node.files(), before);
  }
}

// containerd takes them with filepath.Glob, and knows more patterns than we do.
TEST(fix_runtime_setup, a_pattern_of_imports_has_one_star_and_in_its_last_part) {
  const auto done_with = [](const std::string& import) {
    node node("containerd_2.0_only_version");
    const auto folder = "/etc/containerd/";
    put(node.file(folder + std::string("config.toml")), "version = 3\nimports = ['" + (folder + import) + "']\n");
    put(node.file(folder + std::string("a.toml")), "version = 3\n");
    const auto before = node.files();
    const auto done = set_up(node.options);
    EXPECT_EQ(done.has_value(), node.files() != before) << import;
    return done ? std::string("done") : done.error().key + " " + value_of(done.error(), "pattern");
  };
  for (const auto* import : {"a*.toml", "a*", "conf.d/*.toml", "a.toml"})
    EXPECT_EQ(done_with(import), "done") << import;
  for (const auto* import : {"*-*.toml", "a*b*.toml", "**", "*/a.toml", "conf*/a.toml", "*/*.toml"})
    EXPECT_EQ(done_with(import), std::string("preflight_cause.import_pattern.found /etc/containerd/") + import);
}

TEST(fix_runtime_setup, a_dry_run_lists_lines_that_come_and_go) {
  node node("docker_one_line_set_default");
  node.options.dry_run = true;
  EXPECT_EQ(node.shown(said(set_up(node.options))),
            "--- /etc/docker/daemon.json\n+++ /etc/docker/daemon.json\n@@ line 1 @@\n"
            "-{\"bip\":\"172.26.0.1/16\",\"mtu\":1450,\"runtimes\":{},\"labels\":[\"a=\\\"}\"]}\n"
            "+{\"default-runtime\": \"nvidia\", \"bip\":\"172.26.0.1/16\",\"mtu\":1450,\"runtimes\":{\n"
            "+    \"nvidia\": {\"path\": \"/usr/bin/nvidia-container-runtime\"}\n"
            "+  },\"labels\":[\"a=\\\"}\"]}\n");
}

}  // namespace
}  // namespace agent::container_runtime
