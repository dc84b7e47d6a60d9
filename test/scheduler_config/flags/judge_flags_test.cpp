// Whether these verdicts are kube-scheduler's own is seen in test/scheduler_config, which starts it with every row.

#include "scheduler_config/flags/judge_flags.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scheduler_config/edit/static_pod.hpp"
#include "test/scheduler_config/files.hpp"
#include "test/words.hpp"

namespace scheduler_config {
namespace {

using testing::ElementsAre, testing::HasSubstr, testing::IsEmpty;

const std::string sound_config =
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    "clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}\nleaderElection: {leaderElect: true}\n";

/// `command`: as it stands behind "command: ".
std::string manifest_of(const std::string& command, const std::string& image = "kube-scheduler:v1.37.2") {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: kube-scheduler}\nspec:\n  containers:\n  - name: kube-scheduler\n"
         "    image: " +
         image + "\n    command: " + command + "\n";
}

findings judge_command(const std::string& command, int minor = newest_minor, const std::string& config = sound_config,
                       const std::string& image = "kube-scheduler:v1.37.2") {
  const auto manifest = parse_document(manifest_of(command, image));
  const auto file = parse_document(config);
  EXPECT_TRUE(manifest && file) << command;
  server server;
  server.minor = minor;
  return judge_flags(read_static_pod(*manifest).line, &*file, server);
}
findings judge_words(const std::vector<std::string>& words, int minor = newest_minor) {
  nlohmann::json command{"kube-scheduler", "--config=/etc/kubernetes/scheduler-config.yaml"};
  for (const auto& word : words) command.push_back(word);
  return judge_command(command.dump(), minor);
}

std::string lines_of(const findings& findings) {
  std::string out;
  for (const auto& finding : findings) out += words::line_of(fact_of(finding, text::language::en)) + "\n";
  return out;
}

TEST(judge_flags, S7_ends_with_the_flags_that_end_kube_scheduler) {
  const auto table = text::yaml::parse(slurp(golden_files / "flags.yaml"));
  ASSERT_TRUE(table);
  const auto& rows = table->documents.at(0)->items;
  EXPECT_GE(rows.size(), 120U);
  for (const auto* row : rows) {
    std::vector<std::string> words;
    for (const auto* word : text::yaml::find(row, "words")->items) words.push_back(word->text);
    const auto& ends = text::yaml::find(row, "ends")->items;
    for (const auto* minor : {"30", "36", "37"}) {
      const auto found = judge_words(words, std::stoi(minor));
      const bool wanted = std::ranges::find(ends, std::string(minor), &text::yaml::node::text) != ends.end();
      EXPECT_EQ(any_ends(found), wanted) << testing::PrintToString(words) << ", 1." << minor << "\n" << lines_of(found);
    }
  }
}

TEST(judge_flags, S7_says_which_flag_is_wrong_and_what_was_meant) {
  EXPECT_EQ(lines_of(judge_words({"--confg=/x"})),
            "flag_unknown{field=--confg,value=--confg=/x,other=1.37,hint=--config=/x}\n");
  EXPECT_EQ(lines_of(judge_words({"--address=127.0.0.1"})),
            "flag_gone{field=--address,value=--address=127.0.0.1,other=1.24,hint=--bind-address=127.0.0.1}\n");
  EXPECT_EQ(lines_of(judge_words({"--port=0"})), "flag_gone{field=--port,value=--port=0,other=1.24}\n");
  EXPECT_EQ(lines_of(judge_words({"--leader-elect-resource-lock=endpoints"})),
            "flag_value{field=--leader-elect-resource-lock,value=endpoints,allowed=leases}\n");
  EXPECT_EQ(lines_of(judge_words({"--min-compatibility-version=1.33"}, 34)),
            "flag_of_other_version{field=--min-compatibility-version,value=--min-compatibility-version=1.33,other=1.34,"
            "allowed=" +
                words::english("scheduler_term.since_version", {{"version", "1.35"}}) + "}\n");
  EXPECT_THAT(lines_of(judge_words({"--policy-config-file", "/x"})), HasSubstr("flag_removed{"));
  EXPECT_EQ(lines_of(judge_words({"--secure-port"})), "flag_without_value{field=--secure-port,value=--secure-port}\n");
  EXPECT_THAT(lines_of(judge_words({"--leader_elect=false", "-v2", "-v", "2", "--v=4", "--profiling=F"})), IsEmpty());
  EXPECT_THAT(lines_of(judge_words({"-version"})), HasSubstr("flag_with_one_dash"));
  for (const auto& finding : judge_words({"--secure-port=x"}))
    EXPECT_EQ(words::line_of(fact_of(finding, text::language::zh)),
              "flag_value{field=--secure-port,value=x,allowed=" +
                  words::chinese("scheduler_term.range", {{"minimum", "0"}, {"maximum", "65535"}}) + "}");
}

TEST(judge_flags, S7_takes_no_words_without_dashes) {
  EXPECT_EQ(lines_of(judge_words({"config=/x"})), "argument{value=config=/x,hint=--config=/x}\n");
  EXPECT_EQ(lines_of(judge_words({"--leader-elect", "false"})), "argument{value=false,hint=--leader-elect=false}\n");
  EXPECT_THAT(lines_of(judge_words({"--", "x"})), HasSubstr("argument{"));
  EXPECT_THAT(lines_of(judge_words({""})), IsEmpty());
}

TEST(judge_flags, S7_takes_each_word_as_an_item_of_a_list) {
  EXPECT_EQ(lines_of(judge_command("[kube-scheduler --config=/x]")),
            "words_in_one{value=kube-scheduler --config=/x}\n");
  EXPECT_THAT(lines_of(judge_command("kube-scheduler --config=/x")),
              HasSubstr("wrong_type{field=command,value=" + words::english("scheduler_term.text") +
                        ",allowed=" + words::english("scheduler_term.list") + "}"));
  EXPECT_THAT(lines_of(judge_words({"--config /x"})), HasSubstr(",hint=--config=/x}"));
  EXPECT_EQ(lines_of(judge_words({"--config=/x --v=2"})), "flags_in_one{field=--config,value=--config=/x --v=2}\n");
  EXPECT_EQ(lines_of(judge_words({"--v=2 -h"})), "flags_in_one{field=--v,value=--v=2 -h}\n");
  EXPECT_THAT(lines_of(judge_words({"--config=/a b-c/x"})), IsEmpty()) << "a blank in a path";
}

TEST(judge_flags, S7_reads_leader_election_of_the_file_below_the_flags) {
  const auto command = [](const std::string& flags) { return "[kube-scheduler, --config=/x, " + flags + "]"; };
  const std::string without_election = sound_config.substr(0, sound_config.find("leaderElection"));
  EXPECT_TRUE(judge_command(command("--leader-elect-resource-lock=endpoints"), 36,
                            without_election + "leaderElection: {leaderElect: false}\n")
                  .empty());
  EXPECT_FALSE(judge_command(command("--leader-elect-resource-lock=endpoints, --leader-elect"), 36,
                             without_election + "leaderElection: {leaderElect: false}\n")
                   .empty());
  EXPECT_TRUE(judge_command(command("--leader-elect-lease-duration=5s"), 36,
                            without_election + "leaderElection: {renewDeadline: 4s}\n")
                  .empty());
  const auto short_lease = without_election + "leaderElection: {leaderElect: false, leaseDuration: 5s}\n";
  EXPECT_THAT(judge_command(command("--v=2"), 36, short_lease), IsEmpty());
  EXPECT_THAT(lines_of(judge_command(command("--leader-elect"), 36, short_lease)),
              HasSubstr("flag_value{field=--leader-elect,value=true,"));
}

TEST(judge_flags, S7_follows_a_plain_line_of_a_shell_and_says_where_it_stops) {
  const auto shell = [](const std::string& line) {
    return lines_of(judge_command("[/bin/sh, -c, " + nlohmann::json(line).dump() + "]"));
  };
  EXPECT_EQ(shell("kube-scheduler --config=/x --v=2"), "");
  EXPECT_EQ(shell("exec /usr/local/bin/kube-scheduler '--config=/a b' \\\n  \"--v=2\"\n"), "");
  EXPECT_THAT(shell("kube-scheduler --confg=/x"), HasSubstr("flag_unknown"));
  EXPECT_THAT(shell("kube-scheduler config=/x"), HasSubstr("argument"));
  for (const auto* line : {"kube-scheduler --config=$FILE", "sleep 1 && kube-scheduler --config=/x", "a | b",
                           "kube-scheduler --config=/x >/log 2>&1", "kube-scheduler \"--config=${X}\"",
                           "A=1 kube-scheduler --config=/x", "kube-scheduler '--config=/x"})
    EXPECT_THAT(shell(line), HasSubstr("shell_not_followed{")) << line;
  EXPECT_THAT(lines_of(judge_command("[bash, /start.sh]")), HasSubstr("shell_not_followed{"));
}

TEST(judge_flags, says_where_flags_are_not_those_of_kube_scheduler) {
  const auto own = judge_command("[/bin/my-scheduler, --config=/x, --foo=1, --feature-gates=Own=true]");
  EXPECT_THAT(lines_of(own), HasSubstr("flags_not_judged{value=--foo=1}"));
  EXPECT_EQ(own.size(), 1U);
  EXPECT_TRUE(any_ends(judge_command("[/bin/my-scheduler, --secure-port=x]")));
  EXPECT_THAT(lines_of(judge_command("[kube-scheduler, --config=$(FILE)]")), HasSubstr("flags_not_judged"));
  EXPECT_THAT(lines_of(judge_command("[kube-scheduler, --emulated-version=1.36]")), HasSubstr("flags_not_judged"));
  EXPECT_TRUE(judge_command("[/go-runner, --log-file=/x, /bin/kube-scheduler, --config=/x]").empty());
  EXPECT_THAT(lines_of(judge_command("[/hyperkube, scheduler, --port=0]")), HasSubstr("flag_gone"));
}

TEST(feature_gates, S7_are_those_of_the_version) {
  const auto gates = [](const std::string& gates, int minor) {
    return lines_of(judge_words({"--feature-gates=" + gates}, minor));
  };
  EXPECT_THAT(gates("TaintNodesByCondition=true", 36),
              HasSubstr("gate_unknown{field=TaintNodesByCondition,value=TaintNodesByCondition=true,other=1.36}"));
  EXPECT_THAT(gates("DynamicResourceAlocation=true", 36), HasSubstr(",hint=DynamicResourceAllocation}"));
  EXPECT_EQ(gates("DynamicResourceAllocation=false", 30), "");
  EXPECT_THAT(gates("DynamicResourceAllocation=false", 36),
              HasSubstr("gate_locked{field=DynamicResourceAllocation,value=DynamicResourceAllocation=false,other=1.36,"
                        "hint=true}"));
  EXPECT_THAT(gates("SchedulerQueueingHints=true", 99), testing::Not(HasSubstr("gate_locked")));
  EXPECT_THAT(gates("GenericWorkload=false,GangScheduling=true", 36),
              HasSubstr("gate_dependency{field=GangScheduling,value=GenericWorkload,hint=GenericWorkload=true}"));
  EXPECT_EQ(gates("GenericWorkload=true,GangScheduling=true", 36), "");
  EXPECT_THAT(gates("AppArmor=true", 37), HasSubstr("gate_of_other_version"));
  EXPECT_THAT(gates("kube:AllBeta=true", 30), HasSubstr("gate_unknown"));
  EXPECT_EQ(gates("kube:AllBeta=true", 31), "");
  EXPECT_THAT(gates("AllBeta", 36), HasSubstr("flag_value{field=--feature-gates,value=AllBeta,"));
}

}  // namespace
}  // namespace scheduler_config
