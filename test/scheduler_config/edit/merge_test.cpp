#include "scheduler_config/edit/merge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler_config/edit/render.hpp"
#include "scheduler_config/edit/static_pod_edit.hpp"
#include "test/scheduler_config/files.hpp"

namespace scheduler_config {
namespace {

using testing::HasSubstr;

const server newest;

addition our_entry(const std::string& scheduler_name = {}) {
  extender_settings out;
  out.url = "https://10.96.0.77/scheduler";
  return {extender_entry(out), scheduler_name};
}

std::string said(const std::expected<std::string, finding>& result) {
  return result ? "nothing"
                : std::string(to_string(result.error().issue)) + " " + message_of(result.error(), text::language::en);
}

TEST(scheduler_merge, S7_gives_back_the_bytes_from_before) {
  std::size_t merged = 0;
  for (const auto& file : files_in("corpus")) {
    const auto text = slurp(file);
    const auto there = merge(text, our_entry(), newest);
    ASSERT_TRUE(there) << file << ": " << said(there);
    ++merged;
    EXPECT_NE(*there, text);
    const auto back = unmerge(*there, "https://10.96.0.77/scheduler");
    ASSERT_TRUE(back) << file << ": " << said(back);
    EXPECT_EQ(*back, text) << file;
    EXPECT_FALSE(any_ends(judge(*there, newest))) << file << "\n" << *there;
    EXPECT_EQ(merge(*there, our_entry(), newest), there) << "a second time";
  }
  EXPECT_GE(merged, 30U);
}

TEST(scheduler_merge, S7_leaves_every_line_of_the_others_where_it_was) {
  for (const auto& file : files_in("corpus")) {
    if (file.extension() == ".json" || file.filename().string().contains("flow")) continue;
    const auto text = slurp(file);
    const auto there = merge(text, our_entry(), newest).value();
    // Every line of the file is in the result, in its order.
    std::istringstream lines(text);
    std::size_t index = 0;
    for (std::string line; std::getline(lines, line);) {
      const auto match = there.find(line, index);
      ASSERT_NE(match, there.npos) << file << ": " << line;
      index = match + (there.find("extenders", match) == match ? 0 : line.size());
    }
  }
}

TEST(scheduler_merge, S7_adds_a_profile_and_keeps_the_one_that_was_there_by_default) {
  for (const auto& file : files_in("corpus")) {
    const auto text = slurp(file);
    const auto there = merge(text, our_entry("quartermaster"), newest);
    if (!there) {
      EXPECT_THAT(said(there), testing::AnyOf(HasSubstr("no_safe_place"), HasSubstr("profile_without_name"))) << file;
      continue;
    }
    EXPECT_EQ(unmerge(*there, "https://10.96.0.77/scheduler"), text) << file;
    EXPECT_THAT(*there, HasSubstr("schedulerName: quartermaster"));
    EXPECT_FALSE(any_ends(judge(*there, newest))) << file;
  }
  const auto minimal = slurp(golden_files / "corpus/01-kubeadm-minimal.yaml");
  EXPECT_THAT(merge(minimal, our_entry("quartermaster"), newest).value(),
              HasSubstr("schedulerName: default-scheduler"));
}

TEST(scheduler_merge, refuses_what_would_end_kube_scheduler) {
  const auto minimal = slurp(golden_files / "corpus/01-kubeadm-minimal.yaml");
  const auto try_merge = [&](const std::string& extender) {
    return said(merge(minimal + extender, our_entry(), newest));
  };
  EXPECT_THAT(try_merge("extenders:\n- urlPrefix: http://a:1\n  bindVerb: bind\n"), HasSubstr("bound_by_another"));
  EXPECT_THAT(try_merge("extenders:\n- urlPrefix: http://a:1\n  managedResources: [{name: nvidia.com/gpu}]\n"),
              HasSubstr("managed_by_another"));
  EXPECT_THAT(try_merge("extenders:\n- urlPrefix: http://a:1\n  colour: red\n"), HasSubstr("field_unknown"));
  EXPECT_THAT(try_merge("extenders: null\n"), HasSubstr("no_safe_place"));
  EXPECT_THAT(try_merge("x: &l []\nextenders: *l\n"), HasSubstr("field_unknown"));
  EXPECT_THAT(said(merge("kind: KubeSchedulerConfiguration\n", our_entry(), newest)), HasSubstr("no_kind"));
}

TEST(scheduler_merge, refuses_to_lose_what_others_wrote_into_our_part) {
  const auto text = slurp(golden_files / "corpus/05-comments-everywhere.yaml");
  auto there = merge(text, our_entry(), newest).value();
  const auto end = there.find("# quartermaster: end");
  auto edited = there;
  edited.insert(end, "- {urlPrefix: 'http://b:2'}\n");
  EXPECT_THAT(said(unmerge(edited)), HasSubstr("ours_was_edited"));
  edited = there;
  edited.replace(end, std::string_view("# quartermaster: end").size(), "# edited");
  EXPECT_THAT(said(unmerge(edited)), HasSubstr("ours_was_edited"));
  EXPECT_THAT(said(unmerge(text)), HasSubstr("nothing_of_ours"));
  const auto brackets = unmerge(slurp(golden_files / "corpus/12-flow-lists.yaml"));
  ASSERT_FALSE(brackets);
  EXPECT_EQ(brackets.error().hint, "--address");
  // What they add elsewhere stays.
  edited = there + "percentageOfNodesToScore: 30\n";
  EXPECT_EQ(unmerge(edited), text + "percentageOfNodesToScore: 30\n");
}

TEST(scheduler_render, S7_writes_what_kube_scheduler_of_every_version_takes) {
  extender_settings extender;
  extender.url = "https://10.96.0.77/scheduler";
  extender.server_name = "quartermaster-extender.kube-system.svc";
  const auto text = render(extender, {});
  for (int minor = oldest_minor; minor <= newest_minor; ++minor) {
    server server;
    server.minor = minor;
    EXPECT_FALSE(any_ends(judge(text, server))) << minor << "\n" << text;
  }
  EXPECT_THAT(text, HasSubstr("kubescheduler.config.k8s.io/v1\n"));
}

TEST(static_pod_edit, S7_adds_flag_mount_and_checksum_and_gives_back_the_bytes) {
  const config_file file{.path = "/etc/kubernetes/scheduler-config.yaml", .checksum = checksum_of("x")};
  const auto config = parse_document(slurp(golden_files / "mistakes/19-sound.yaml"));
  for (const auto* name : {"kubeadm.yaml", "kubeadm-1.30.yaml", "annotated.yaml", "not-replaced.yaml", "no-mount.yaml",
                           "crlf-no-newline.yaml"}) {
    const auto text = slurp(golden_files / "manifests" / name);
    const auto there = add_config_file(text, file);
    ASSERT_TRUE(there) << name << ": " << said(there);
    EXPECT_EQ(remove_config_file(*there), text) << name;
    EXPECT_EQ(add_config_file(*there, file), there) << name;
    const auto read = parse_document(*there);
    const auto pod = read_static_pod(*read);
    EXPECT_TRUE(pod.mounted(file.path)) << name;
    ASSERT_NE(pod.find("config"), nullptr) << name;
    EXPECT_EQ(pod.find("config")->value, file.path);
    EXPECT_THAT(*there, HasSubstr("quartermaster.io/scheduler-config: \"" + file.checksum));
  }
  EXPECT_THAT(said(add_config_file(slurp(golden_files / "manifests/one-dash.yaml"), file)),
              HasSubstr("config_flag_there"));
}

}  // namespace
}  // namespace scheduler_config
