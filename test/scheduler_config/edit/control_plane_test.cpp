#include "scheduler_config/edit/control_plane.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler_config/edit/static_pod.hpp"
#include "scheduler_config/edit/static_pod_edit.hpp"
#include "test/scheduler_config/files.hpp"
#include "test/words.hpp"

namespace scheduler_config {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string kubeadm = slurp(golden_files / "manifests/kubeadm.yaml");
constexpr auto flag = "    - --leader-elect=true\n";

extender_settings ours(const std::string& url = "https://10.96.0.77:443/scheduler") {
  extender_settings out;
  out.url = url;
  out.server_name = "quartermaster-extender.quartermaster.svc";
  return out;
}
std::string with_flags(const std::string& more) {
  auto out = kubeadm;
  return out.replace(out.find(flag), std::string(flag).size(), flag + more);
}
control_plane_files made(const control_plane_files& now, std::int64_t generation = 1) {
  const auto out = with_extender(now, ours(), generation, newest_minor);
  EXPECT_TRUE(out) << words_of(out.error(), text::language::en);
  return out.value_or(control_plane_files());
}
/// A manifest whose owner has a configuration of his own.
std::string reads_a_file() {
  auto out = with_flags("    - --config=/etc/kubernetes/scheduler-config.yaml\n");
  const auto put = [&out](const std::string& before, const std::string& text) {
    out.insert(out.find(before) + before.size(), text);
  };
  put("    volumeMounts:\n", "    - {mountPath: /etc/kubernetes/scheduler-config.yaml, name: theirs}\n");
  put("  volumes:\n", "  - {name: theirs, hostPath: {path: /etc/kubernetes/scheduler-config.yaml, type: File}}\n");
  return out;
}
constexpr auto foreign_config =
    "# theirs\napiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    "clientConnection:\n  kubeconfig: /etc/kubernetes/scheduler.conf\n";

TEST(scheduler_control_plane, as_kubeadm_makes_it_gets_both_files_and_loses_them_again) {
  const auto extended = made({std::nullopt, kubeadm});
  ASSERT_TRUE(extended.config);
  EXPECT_THAT(*extended.config, HasSubstr("https://10.96.0.77:443/scheduler"));
  EXPECT_THAT(*extended.config, HasSubstr("kubeconfig: \"/etc/kubernetes/scheduler.conf\""));
  const auto facts = facts_of(extended.manifest);
  EXPECT_EQ(facts.checksum, checksum_of(*extended.config));
  EXPECT_EQ(facts.generation, 1);
  EXPECT_EQ(facts.version, "v1.37.2");
  EXPECT_EQ(facts.healthz, "https://127.0.0.1:10259");
  EXPECT_TRUE(facts.elects);
  const auto again = made(extended);
  EXPECT_EQ(again.config, extended.config);
  EXPECT_EQ(again.manifest, extended.manifest);
  const auto restored = without_extender(extended, true);
  ASSERT_TRUE(restored);
  EXPECT_FALSE(restored->config);
  EXPECT_EQ(restored->manifest, kubeadm);
}

TEST(scheduler_control_plane, a_file_of_people_is_merged_and_given_back) {
  const auto manifest = reads_a_file();
  const auto extended = made({foreign_config, manifest});
  EXPECT_THAT(*extended.config, StartsWith("# theirs\n"));
  const auto restored = without_extender(extended, false);
  ASSERT_TRUE(restored) << words_of(restored.error(), text::language::en);
  EXPECT_EQ(restored->config, foreign_config);
  EXPECT_EQ(restored->manifest, manifest);
}

TEST(scheduler_control_plane, what_flags_said_is_said_by_the_file_because_they_do_not_count_any_more) {
  const auto extended = made({std::nullopt, with_flags("    - --profiling=false\n    - --kube-api-qps=80\n"
                                                       "    - --kube-api-burst=120\n    - --contention-profiling\n")});
  for (const auto* line : {"enableProfiling: false", "qps: 80", "burst: 120", "enableContentionProfiling: true"})
    EXPECT_THAT(*extended.config, HasSubstr(line));
}

TEST(scheduler_control_plane, a_manifest_written_anew_gets_ours_again) {
  const auto extended = made({std::nullopt, kubeadm});
  const auto upgraded = with_flags("    - --v=2\n");
  const auto again = made({extended.config, upgraded}, 2);
  EXPECT_EQ(again.config, extended.config);
  EXPECT_EQ(facts_of(again.manifest).generation, 2);
  EXPECT_EQ(without_extender(again, true)->manifest, upgraded);
}

TEST(scheduler_control_plane, what_people_add_to_ours_stays_when_it_goes) {
  auto extended = made({std::nullopt, kubeadm});
  *extended.config += "podMaxBackoffSeconds: 5 # mine\n";
  const auto restored = without_extender(extended, false);
  ASSERT_TRUE(restored && restored->config);
  EXPECT_THAT(*restored->config, HasSubstr("podMaxBackoffSeconds: 5 # mine\n"));
  EXPECT_THAT(*restored->config, Not(HasSubstr("quartermaster")));
  EXPECT_EQ(without_extender({foreign_config, kubeadm}, false)->config, foreign_config) << "our entry was not there";
}

TEST(scheduler_control_plane, golden_reasons_why_nothing_can_be_written) {
  const auto reason = [](const control_plane_files& now, int otherwise = newest_minor) {
    const auto out = with_extender(now, ours(), 1, otherwise);
    EXPECT_FALSE(out);
    return out ? std::string() : words_of(out.error(), text::language::en);
  };
  EXPECT_THAT(reason({std::nullopt, "kind: Service\n"}),
              words::english("scheduler_file.no_pod", {{"manifest", "kube-scheduler.yaml"}}));
  EXPECT_THAT(reason({std::nullopt, "a: [\n"}), StartsWith("kube-scheduler.yaml:"));
  EXPECT_THAT(
      reason({foreign_config, kubeadm}),
      words::english("scheduler_file.not_read", {{"manifest", "kube-scheduler.yaml"}, {"path", config_file().path}}));
  EXPECT_THAT(reason({std::nullopt, reads_a_file()}), HasSubstr("and there is no such file"));
  EXPECT_THAT(reason({std::nullopt, with_flags("    - --config=/etc/other.yaml\n")}), HasSubstr("[config_flag_there]"));
  EXPECT_THAT(
      reason({std::string(foreign_config) + "extenders:\n- {urlPrefix: https://a/b, bindVerb: bind, weight: 1}\n",
              reads_a_file()}),
      HasSubstr("[bound_by_another]"));
  auto no_kubeconfig = kubeadm;
  no_kubeconfig.erase(no_kubeconfig.find("    - --kubeconfig="),
                      std::string("    - --kubeconfig=/etc/kubernetes/scheduler.conf\n").size());
  EXPECT_THAT(reason({std::nullopt, no_kubeconfig}), HasSubstr("[no_kubeconfig]"));
}

// Plugins of the image, feature gates and fields of a newer version are not known to us; the file starts nonetheless.
TEST(scheduler_control_plane, a_file_that_a_scheduler_runs_with_is_judged_by_what_we_add_alone) {
  // The field `shape` has a feature gate, which is on from 1.37 on.
  for (const auto& [minor, more] :
       {std::pair(newest_minor, "profiles:\n- plugins: {multiPoint: {enabled: [{name: Coscheduling}]}}\n"),
        {36, "profiles:\n- pluginConfig:\n  - {name: VolumeBinding, args: {shape: [{utilization: 0, score: 0}]}}\n"},
        {newest_minor, "fieldOfTomorrow: 1\n"},
        {newest_minor, "extenders:\n- {urlPrefix: 'https://a/b', prioritizeVerb: prioritize, weight: -1}\n"}}) {
    const auto config = std::string(foreign_config) + more;
    ASSERT_TRUE(any_ends(judge(config, {.minor = minor, .plugins = {}}))) << more;
    const auto extended = with_extender({config, reads_a_file()}, ours(), 1, minor);
    ASSERT_TRUE(extended) << words_of(extended.error(), text::language::en);
    EXPECT_THAT(*extended->config, HasSubstr("https://10.96.0.77:443/scheduler"));
    const auto restored = without_extender(*extended, false);
    ASSERT_TRUE(restored) << words_of(restored.error(), text::language::en);
    EXPECT_EQ(restored->config, config);
  }
}

TEST(scheduler_control_plane, what_we_add_to_a_file_that_runs_must_not_end_it) {
  auto wrong = ours();
  wrong.ca = "not PEM";
  const auto out = with_extender({foreign_config, reads_a_file()}, wrong, 1, newest_minor);
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().key, "scheduler_file.finding");
  EXPECT_EQ(out.error().arguments.front().values[0], "scheduler-config.yaml");
}

TEST(scheduler_control_plane, knows_the_version_by_the_server_where_the_image_does_not_tell) {
  auto manifest = kubeadm;
  const std::string tag = ":v1.37.2";
  manifest.replace(manifest.find(tag), tag.size(), "@sha256:" + std::string(64, '0'));
  EXPECT_TRUE(with_extender({std::nullopt, manifest}, ours(), 1, 30));
  const auto old = with_extender({std::nullopt, manifest}, ours(), 1, 29);
  ASSERT_FALSE(old);
  EXPECT_EQ(
      words_of(old.error(), text::language::en),
      words::english("scheduler_file.too_old",
                     {{"manifest", "kube-scheduler.yaml"}, {"line", "18"}, {"version", "1.29"}, {"oldest", "1.30"}}));
  EXPECT_EQ(facts_of(manifest).version, "");
}

TEST(scheduler_control_plane, tells_where_its_health_is_asked) {
  EXPECT_EQ(facts_of(with_flags("    - --secure-port=10299\n")).healthz, "https://127.0.0.1:10299");
  auto manifest = kubeadm;
  manifest.replace(manifest.find("--bind-address=127.0.0.1"), 24, "--bind-address=0.0.0.0  ");
  EXPECT_EQ(facts_of(manifest).healthz, "https://127.0.0.1:10259");
  manifest.replace(manifest.find("--bind-address=0.0.0.0"), 22, "--bind-address=10.0.0.7");
  EXPECT_EQ(facts_of(manifest).healthz, "https://10.0.0.7:10259");
  EXPECT_FALSE(facts_of(with_flags("    - --leader-elect=false\n")).elects);
  EXPECT_FALSE(facts_of(with_flags("    - --leader-elect-resource-name=mine\n")).elects) << "not the lease we know";
  auto by_file = reads_a_file();
  by_file.erase(by_file.find(flag), std::string(flag).size());
  EXPECT_TRUE(facts_of(by_file, foreign_config).elects);
  EXPECT_FALSE(facts_of(by_file, std::string(foreign_config) + "leaderElection: {leaderElect: false}\n").elects);
  EXPECT_FALSE(facts_of(by_file, std::string(foreign_config) + "leaderElection: {resourceName: mine}\n").elects);
  EXPECT_TRUE(facts_of(reads_a_file(), std::string(foreign_config) + "leaderElection: {leaderElect: false}\n").elects)
      << "the flag wins";
  EXPECT_EQ(facts_of("nonsense").name, "kube-scheduler");
}

}  // namespace
}  // namespace scheduler_config
