// The command line as a whole: what a person sees who types too little, too much, or the singular.
#include "cli/program.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "controller/log.hpp"
#include "test/facts_in.hpp"
#include "test/words.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct said {
  int rc = 0;
  std::string out, err;
};

said call(std::vector<std::string> words) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  said got;
  got.rc = run_program("quartermaster", std::move(words));
  got.out = testing::internal::GetCapturedStdout();
  got.err = testing::internal::GetCapturedStderr();
  return got;
}

TEST(program, a_verb_prints_nothing_of_the_operators_log) {
  EXPECT_EQ(call({"version", "--client"}).rc, 0);
  testing::internal::CaptureStderr();
  controller::log::warn("more is given out than the node has", {{"node", "a"}});
  controller::log::error("as bad as it gets");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(program, golden_words_of_a_wrong_command_line_in_the_language_asked_for) {
  const auto chinese = [](std::vector<std::string> words, const std::string& key,
                          std::initializer_list<text::parameter> parameters) {
    const auto got = call(std::move(words));
    EXPECT_EQ(got.rc, 2);
    EXPECT_THAT(got.err, HasSubstr(words::chinese("usage." + key, parameters)));
    EXPECT_TRUE(text::has_cjk(got.err)) << got.err;
  };
  chinese({"simulate", "--lang", "zh"}, "required", {{"name", "--file"}});
  chinese({"lint", "--lang=zh", "x", "-o"}, "value_missing",
          {{"name", "--output"}, {"value", "TEXT:{text,table,wide,json,yaml}"}});
  chinese({"lint", "--lang=zh", "x", "-o", "xml"}, "not_in",
          {{"name", "--output: xml"}, {"value", "text,table,wide,json,yaml"}});
  chinese({"inspect", "nodes", "--lang", "zh", "--colour"}, "not_taken", {{"words", "--colour"}});
  chinese({"inspect", "cards", "--lang", "zh"}, "no_verb",
          {{"verb", "cards"}, {"verbs", "nodes, modules, pods, resources"}});
  setenv("LC_ALL", "zh_CN.UTF-8", 1);
  chinese({"simulate"}, "required", {{"name", "--file"}});
  EXPECT_THAT(call({"simulate", "--lang", "en"}).err, HasSubstr("--file is required"));
  setenv("LC_ALL", "C", 1);
  EXPECT_THAT(call({"simulate"}).err, HasSubstr("--file is required"));
  unsetenv("LC_ALL");
}

TEST(program, takes_flags_before_its_verbs_and_names_as_kubectl_has_them) {
  const auto usual = call({"explain", "error", "-o", "json", "--lang", "zh", "999"});
  ASSERT_EQ(usual.rc, 0) << usual.err;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"-o", "json", "--lang", "zh", "explain", "error", "999"},
        {"explain", "-ojson", "error", "--lang=zh", "999"},
        {"--lang=zh", "explain", "-n", "any", "error", "--output", "json", "999"}}) {
    const auto got = call(words);
    EXPECT_EQ(got.rc, 0) << got.err;
    EXPECT_EQ(got.out, usual.out) << words.front();
  }
  EXPECT_EQ(call({"help", "inspect", "nodes"}).out, call({"inspect", "nodes", "--help"}).out);
  EXPECT_EQ(call({"help"}).out, call({"--help"}).out);
  EXPECT_THAT(call({"help", "nothing"}).err, HasSubstr("nothing"));
  const auto refused = call({"--colour", "red", "inspect", "nodes"});
  EXPECT_EQ(refused.rc, 2);
  EXPECT_THAT(refused.err, HasSubstr("--colour"));
  // A kind in front of the name says which verb is meant: the file is looked for, so the words were understood.
  const std::string no_file = "/nowhere/snapshot";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"explain", "deploy/web", "--snapshot", no_file},
        {"explain", "node/a", "--snapshot", no_file},
        {"explain", "node", "a", "--snapshot", no_file},
        {"--as", "bob", "explain", "deploy/web", "--snapshot", no_file},
        {"explain", "--snapshot", no_file, "node/a"},
        {"verify", "node/a", "--snapshot", no_file}}) {
    const auto got = call(words);
    EXPECT_EQ(got.rc, 1) << got.err;
    EXPECT_THAT(got.err, HasSubstr(no_file));
  }
}

TEST(program, takes_who_asks_and_how_long_as_kubectl_does) {
  const auto refused = [](std::vector<std::string> words, const std::string& reason) {
    words.insert(words.begin(), {"inspect", "nodes"});
    const auto got = call(std::move(words));
    EXPECT_EQ(got.rc, 2);
    EXPECT_THAT(got.err, HasSubstr(reason));
  };
  for (const auto* time : {"soon", "-1s", "1e3"})
    refused({std::string("--request-timeout=") + time},
            words::english("usage.no_time", {{"name", "--request-timeout"}, {"value", time}}));
  refused({"--as-group", "admins"}, "--as");
  refused({"--as", ""}, words::english("usage.empty", {{"name", "--as"}}));
  refused({"node/"}, words::english("usage.empty", {{"name", "node"}}));
}

/// The standard output is another file meanwhile; -1: it is closed.
said with_output_to(int output, std::vector<std::string> words) {
  testing::internal::CaptureStderr();
  const int kept = dup(STDOUT_FILENO);
  if (output < 0)
    close(STDOUT_FILENO);
  else
    dup2(output, STDOUT_FILENO);
  said got;
  got.rc = run_program("quartermaster", std::move(words));
  dup2(kept, STDOUT_FILENO);
  close(kept);
  std::cout.clear();
  clearerr(stdout);
  got.err = testing::internal::GetCapturedStderr();
  return got;
}

TEST(program, says_that_its_output_is_lost) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  const auto lost = "quartermaster: " + words::english("usage.output_lost") + "\n";
  for (const int output : {full, -1}) {
    for (const std::vector<std::string>& words : {std::vector<std::string>{"--help"},
                                                  {"--version"},
                                                  {"help", "lint"},
                                                  {"version", "--client"},
                                                  {"explain", "error", "999"},
                                                  {"explain", "compat", "--cuda", "12.4"},
                                                  {"completion", "bash"},
                                                  {"man"},
                                                  {"__complete", "ins"}}) {
      const auto got = with_output_to(output, words);
      EXPECT_EQ(got.rc, 1) << words.front();
      EXPECT_EQ(got.err, lost) << words.front();
    }
  }
  close(full);
  EXPECT_EQ(with_output_to(-1, {"inspect"}).rc, 2) << "there was nothing to write";
}

TEST(program, refuses_flags_of_a_cluster_that_it_would_not_ask) {
  for (const std::vector<std::string>& flags : {std::vector<std::string>{"--as", "bob"},
                                                {"--kubeconfig", "/nowhere"},
                                                {"--context", "c"},
                                                {"--request-timeout", "1s"}}) {
    std::vector<std::string> words{"lint", "-"};
    words.insert(words.end(), flags.begin(), flags.end());
    const auto got = call(words);
    EXPECT_EQ(got.rc, 2) << got.err;
    EXPECT_THAT(got.err, HasSubstr(flags[0] + " requires --cluster")) << "CLI11's own words";
  }
}

TEST(program, refuses_flags_of_compat_that_are_empty) {
  for (const std::string flag : {"--driver", "--card", "--compute-capability", "--node"}) {
    const auto got = call({"explain", "compat", "--cuda", "12.4", flag, ""});
    EXPECT_EQ(got.rc, 2) << flag;
    EXPECT_THAT(got.err, HasSubstr(words::english("usage.empty", {{"name", flag}})));
  }
}

TEST(program, a_file_with_nothing_in_it_is_said_to_be_one) {
  const auto folder = std::filesystem::temp_directory_path() / ("nothing_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const auto empty = (folder / "empty.yaml").string(), comments = (folder / "comments.yaml").string();
  std::ofstream(empty).flush();
  std::ofstream(comments) << "# a\n---\n# b\n";
  for (const auto& file : {empty, comments}) {
    const auto linted = call({"lint", file});
    EXPECT_EQ(linted.rc, 1);
    EXPECT_EQ(linted.err, "quartermaster: " + words::english("lint_summary.nothing") + "\n");
    EXPECT_EQ(call({"lint", file, "-o", "json"}).rc, 1);
    const auto simulated = call({"simulate", "-f", file, "--snapshot", "/nowhere"});
    EXPECT_EQ(simulated.rc, 1);
    EXPECT_THAT(simulated.err, HasSubstr(words::english("explain.simulate.empty", {{"file", file}})));
  }
  const auto second = call({"lint", "test/golden/lint/pods.yaml", empty});
  EXPECT_THAT(second.err, HasSubstr(words::english("lint_summary.empty", {{"file", empty}})));
  const auto snapshot = call({"inspect", "nodes", "--snapshot", empty});
  EXPECT_EQ(snapshot.rc, 1);
  EXPECT_THAT(snapshot.err, HasSubstr(words::english("snapshot.empty")));
  std::filesystem::remove_all(folder);
}

TEST(program, a_snapshot_without_end_is_refused_at_once) {
  const auto zeros = call({"inspect", "nodes", "--snapshot", "/dev/zero"});
  EXPECT_EQ(zeros.rc, 1);
  EXPECT_THAT(zeros.err, HasSubstr(words::english("file.device")));
  const auto large = std::filesystem::temp_directory_path() / ("large_" + std::to_string(getpid()));
  std::ofstream(large) << "{";
  std::filesystem::resize_file(large, std::uintmax_t{3} << 30);  // a hole: it takes no room
  const auto got = call({"inspect", "nodes", "--snapshot", large.string()});
  EXPECT_EQ(got.rc, 1);
  EXPECT_THAT(got.err, HasSubstr(words::english("snapshot.too_large", {{"size", "256"}})));
  std::filesystem::remove(large);
}

TEST(program, without_a_verb_it_lists_them) {
  const auto all = call({});
  EXPECT_EQ(all.rc, 2);
  for (const auto* verb : {"  explain ", "  inspect ", "  verify ", "  uninstall "})
    EXPECT_THAT(all.err, HasSubstr(verb));
  const auto below = call({"inspect"});
  EXPECT_EQ(below.rc, 2);
  EXPECT_THAT(below.err, AllOf(HasSubstr("quartermaster inspect"), HasSubstr("  nodes "), HasSubstr("  resources ")));
  EXPECT_THAT(call({"render"}).err, AllOf(HasSubstr("  declaration "), HasSubstr("  scheduler-config ")));
}

TEST(program, flags_of_a_verb_go_to_its_subcommand_and_its_arguments_are_refused_there) {
  const auto refused = [](std::vector<std::string> words, const std::string& reason) {
    const auto got = call(std::move(words));
    EXPECT_EQ(got.rc, 2);
    EXPECT_THAT(got.err, AllOf(HasSubstr(reason), Not(HasSubstr("/no/such"))));
    EXPECT_EQ(got.out, "");
  };
  refused({"inspect", "--save", "x", "nodes", "--kubeconfig", "/no/such"},
          words::english("usage.not_taken", {{"words", "--save"}}));
  refused({"lint", "no-such.yaml", "scheduler-config", "no-such.yaml"},
          words::english("usage.with_subcommand", {{"name", "--file"}, {"value", "scheduler-config"}}));
  EXPECT_THAT(call({"lint", "--strict", "scheduler-config", "no-such.yaml"}).err,
              AllOf(HasSubstr("no-such.yaml"), HasSubstr("No such file")));
}

TEST(program, a_registry_is_no_address) {
  for (const auto* name : {"https://reg.example", "reg.example//path"}) {
    const auto got = call({"controller", "--image-registry", name, "--kubeconfig", "/no/such"});
    EXPECT_EQ(got.rc, 2) << name;
    EXPECT_THAT(got.err,
                HasSubstr(words::english("usage.not_a_registry", {{"name", "--image-registry"}, {"value", name}})));
  }
  EXPECT_EQ(call({"controller", "--image-registry", "reg.example:5000/path", "--kubeconfig", "/no/such"}).rc, 1);
}

TEST(program, what_is_too_much_is_said_as_it_was_typed) {
  const auto got = call({"explain", "error", "999", "--colour", "red"});
  EXPECT_EQ(got.rc, 2);
  EXPECT_THAT(got.err, HasSubstr(words::english("usage.not_taken", {{"words", "--colour"}})));
  EXPECT_THAT(got.err, Not(HasSubstr("red --colour")));
  EXPECT_THAT(call({"inspect", "cards"}).err, HasSubstr("cards"));
}

TEST(program, a_second_argument_where_one_is_taken_is_named_with_the_first) {
  const auto got = call({"verify", "gpu-1", "gpu-2", "gpu-3"});
  EXPECT_EQ(got.rc, 2);
  EXPECT_THAT(got.err, HasSubstr(words::english("usage.one_argument",
                                                {{"name", "node"}, {"value", "gpu-1"}, {"words", "gpu-2 gpu-3"}})));
  EXPECT_THAT(call({"verify", "gpu-1", "--colour"}).err,
              HasSubstr(words::english("usage.not_taken", {{"words", "--colour"}})));
}

/// The flag of kubectl is taken wherever -n is: as all namespaces, or answered with the one that is read.
TEST(program, every_verb_with_a_namespace_knows_the_flag_for_all_of_them) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"inspect", "nodes"},
                                                {"inspect", "modules"},
                                                {"inspect", "pods"},
                                                {"top", "nodes"},
                                                {"top", "pods"},
                                                {"top", "cards"},
                                                {"verify"},
                                                {"explain", "node", "a"}}) {
    auto line = words;
    line.insert(line.end(), {"-A", "--snapshot", "/no/such"});
    const auto got = call(line);
    EXPECT_EQ(got.rc, 1) << got.err;
    EXPECT_THAT(got.err, HasSubstr("/no/such"));
  }
  EXPECT_EQ(call({"explain", "error", "999", "-A"}).rc, 0);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"explain", "pod", "a"}, {"inspect", "resources"}, {"lint", "x"}}) {
    auto line = words;
    line.emplace_back("-A");
    const auto got = call(line);
    EXPECT_EQ(got.rc, 2);
    EXPECT_THAT(got.err, HasSubstr(words::english("usage.one_namespace", {{"name", "-A"}})));
  }
}

TEST(program, pods_are_named_as_kubectl_has_them) {
  const auto asks = [](std::vector<std::string> words) {
    words.insert(words.end(), {"--snapshot", "/no/such"});
    return call(std::move(words));
  };
  for (const auto* pod : {"infer", "pod/infer", "po/infer", "pods/infer", "team/infer"})
    for (const auto* verb : {"inspect", "top"}) EXPECT_EQ(asks({verb, "pods", pod}).rc, 1) << pod;
  EXPECT_EQ(asks({"top", "cards", "--node", "gpu-1"}).rc, 1);
  const auto wrong = [](const char* key, const char* text) {
    return HasSubstr(words::english(std::string("explain.pod_name.") + key, {{"text", text}}));
  };
  EXPECT_THAT(asks({"inspect", "pods", "deploy/web"}).err, wrong("pods_of", "deploy/web"));
  EXPECT_THAT(asks({"top", "pods", "deploy/web"}).err, wrong("pods_of", "deploy/web"));
  EXPECT_THAT(asks({"inspect", "pods", "team/a", "other/b"}).err, wrong("one_namespace", "other/b"));
  EXPECT_EQ(asks({"inspect", "pods", "team/a", "-n", "other"}).rc, 2);
}

/// What is for people is in the language of the environment, whether it is an answer or a refusal.
TEST(program, golden_answers_in_the_language_of_the_environment) {
  for (const auto* name : {"LC_ALL", "LC_MESSAGES", "LANG"}) unsetenv(name);
  for (const auto* name : {"LC_ALL", "LC_MESSAGES", "LANG"}) {
    setenv(name, "zh_CN.UTF-8", 1);
    EXPECT_TRUE(text::has_cjk(call({"explain", "error", "999"}).out)) << name;
    EXPECT_TRUE(text::has_cjk(call({"explain", "compat", "--cuda", "12.4"}).out)) << name;
    EXPECT_FALSE(text::has_cjk(call({"explain", "error", "999", "--lang", "en"}).out)) << name;
    unsetenv(name);
  }
  EXPECT_FALSE(text::has_cjk(call({"explain", "error", "999"}).out));
}

TEST(program, an_empty_value_does_not_take_the_next_flag) {
  const auto got = call({"controller", "--image=", "--log-level", "loud"});
  EXPECT_EQ(got.rc, 2);
  EXPECT_THAT(got.err, HasSubstr("--log-level: loud not in"));
  EXPECT_THAT(call({"controller", "--agent-grace=", "--context=a"}).err,
              HasSubstr("--agent-grace: Value  not in range"));
  const auto file = std::filesystem::temp_directory_path() / ("qm-empty-" + std::to_string(::getpid()));
  std::ofstream(file) << "image=\nlog-level=loud\n";
  EXPECT_THAT(call({"controller", "--config", file.string()}).err, HasSubstr("--log-level: loud not in"));
  std::filesystem::remove(file);
}

TEST(program, what_is_missing_is_still_named) {
  const auto got = call({"explain", "compat"});
  EXPECT_EQ(got.rc, 2);
  EXPECT_THAT(got.err, HasSubstr("--cuda"));
}

TEST(program, the_plugins_vocabulary_is_read_key_by_key) {
  const auto rc_of = [](std::vector<std::string> keys) {
    std::vector<std::string> all{"agent", "plugin", "--node-name", "n", "--kubeconfig", "/no/such/file"};
    all.insert(all.end(), keys.begin(), keys.end());
    const auto got = call(all);
    return std::pair(got.rc, got.err);
  };
  const std::vector<std::string> seats{"--share", "a.b/gpu=slots:10"};
  const auto said_with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), seats.begin(), seats.end());
    return rc_of(more);
  };
  const auto good = said_with({"--share", "a.b/core.x=cores", "--limit", "a.b/mem=memory:1@5000", "--limit",
                               "a.b/p=percent", "--limit", "a.b/c=cores@0"});
  EXPECT_EQ(good.first, 1) << "it is the file that is missing: " << good.second;
  for (const auto* wrong :
       {"a.b/c", "a.b/c=", "a.b/c=core", "a.b/c=cores:1", "a.b/m=memory", "a.b/m=memory:0", "a.b/m=memory:x",
        "a.b/m=memory:1@5", "a.b/s=slots", "a.b/p=percent", "=cores", "c=cores"}) {
    const auto got = said_with({"--share", wrong});
    EXPECT_EQ(got.first, 2) << wrong;
    EXPECT_THAT(got.second, HasSubstr(wrong));
  }
  for (const auto* wrong : {"a.b/m=memory:1@", "a.b/m=memory:1@-5", "a.b/p=percent:1"})
    EXPECT_EQ(said_with({"--limit", wrong}).first, 2) << wrong;
  EXPECT_THAT(said_with({"--limit", "a.b/gpu=cores"}).second, HasSubstr("a.b/gpu"));
  EXPECT_EQ(rc_of({"--limit", "a.b/gpu=cores"}).first, 2) << "no kubelet would ask for anything";
  EXPECT_EQ(said_with({"--resource", "a.b/whole"}).first, 2) << "whole cards or shares";
}

TEST(program, agent_has_a_verb_of_its_own_that_asks_no_cluster) {
  EXPECT_THAT(call({"agent", "fix-runtime", "--help"}).out, AllOf(HasSubstr("--set-default"), HasSubstr("--restore")));
  for (const auto& words : std::vector<std::vector<std::string>>{{"--root", "here"},
                                                                 {"--runtime", "podman"},
                                                                 {"--restore", "--set-default"},
                                                                 {"--in-pod"},
                                                                 {"--restore", "--runtime", "crio"}}) {
    std::vector<std::string> all{"agent", "fix-runtime"};
    all.insert(all.end(), words.begin(), words.end());
    EXPECT_EQ(call(all).rc, 2) << words.front();
  }
  const auto got = call({"agent", "fix-runtime", "--root", "/no/such/node"});
  EXPECT_EQ(got.rc, 1);
  EXPECT_THAT(got.err, HasSubstr(words::english("fix_runtime.no_socket", {{"folder", "/no/such/node/run"}})));
  EXPECT_THAT(call({"agent", "fix"}).err,
              HasSubstr(words::english("usage.no_verb", {{"verb", "fix"}, {"verbs", "fix-runtime"}}).substr(0, 20)));
  EXPECT_EQ(call({"agent"}).rc, 2) << "the agent itself still wants --node-name";
}

TEST(program, a_verb_that_there_is_not_leads_to_the_one_that_was_meant) {
  const auto meant = [](std::vector<std::string> words) { return call(std::move(words)).err; };
  EXPECT_THAT(meant({"verfiy"}), HasSubstr("quartermaster verify"));
  EXPECT_THAT(meant({"get", "nodes"}), HasSubstr("quartermaster inspect"));
  EXPECT_THAT(meant({"inspect", "nods"}), HasSubstr("quartermaster inspect nodes"));
  EXPECT_THAT(meant({"zzzzzzzz"}), testing::Not(HasSubstr("quartermaster zzz")));
}

TEST(program, the_singular_is_the_same_verb) {
  for (const auto* name : {"node", "module", "pod", "resource"}) {
    const auto got = call({"inspect", name, "--help"});
    EXPECT_EQ(got.rc, 0) << name;
    EXPECT_THAT(got.out, HasSubstr("--lang")) << name;
  }
}

/// Every verb that answers a question, by its words: the same three flags with the same values.
TEST(program, verbs_take_the_same_flags) {
  const std::vector<std::vector<std::string>> verbs{{"inspect", "nodes"},
                                                    {"inspect", "modules"},
                                                    {"inspect", "pods"},
                                                    {"inspect", "resources"},
                                                    {"verify"},
                                                    {"lint"},
                                                    {"explain", "error"},
                                                    {"explain", "alert"},
                                                    {"explain", "compat"},
                                                    {"explain", "pod"},
                                                    {"simulate"},
                                                    {"lint", "scheduler-config"}};
  for (auto words : verbs) {
    words.emplace_back("--help");
    const auto help = call(words).out;
    for (const auto* flag : {"--lang", "-o,--output", "-n,--namespace", "wide", "json", "yaml"})
      EXPECT_THAT(help, HasSubstr(flag)) << words.front() << " " << words.at(1);
  }
}

TEST(program, text_and_table_are_the_same_form_and_data_is_json_or_yaml) {
  const auto text = call({"explain", "error", "999", "-o", "text"}),
             table = call({"explain", "error", "999", "-o", "table"});
  EXPECT_EQ(text.rc, 0);
  EXPECT_EQ(text.out, table.out);
  EXPECT_EQ(text.out, call({"explain", "error", "999", "-n", "lab", "-o", "wide"}).out);
  EXPECT_EQ(nlohmann::json::parse(call({"explain", "error", "999", "-o", "json"}).out).at(0).at("id"), "unknown-error");
  EXPECT_THAT(call({"explain", "error", "999", "-o", "yaml"}).out, HasSubstr("id: unknown-error"));
  EXPECT_EQ(call({"explain", "error", "999", "-o", "xml"}).rc, 2);
}

TEST(program, every_verb_that_answers_takes_the_same_forms_and_names_them_in_a_refusal) {
  const std::string file = "/nowhere/f";
  for (const std::vector<std::string>& verb : {std::vector<std::string>{"verify", "--snapshot", file},
                                               {"explain", "node", "gpu-1", "--snapshot", file},
                                               {"inspect", "nodes", "--snapshot", file},
                                               {"inspect", "resources", "--kubeconfig", file},
                                               {"top", "nodes", "--snapshot", file},
                                               {"version", "--client"},
                                               {"lint", file},
                                               {"explain", "error", "999"},
                                               {"report", "capacity", "--snapshot", file},
                                               {"simulate", "-f", file}}) {
    const auto with_form = [&](const char* form) {
      auto words = verb;
      words.insert(words.end(), {"-o", form});
      return call(words);
    };
    const auto refused = with_form("xml");
    EXPECT_EQ(refused.rc, 2) << verb.front();
    for (const auto* form : {"text", "table", "wide", "json", "yaml"}) {
      EXPECT_THAT(refused.err, HasSubstr(form)) << verb.front();
      EXPECT_NE(with_form(form).rc, 2) << verb.front() << " -o " << form;
    }
  }
}

TEST(program, a_file_that_is_not_there_is_exit_code_1_whatever_reads_it) {
  const std::string file = "/nowhere/f";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"lint", file},
        {"lint", "scheduler-config", file},
        {"simulate", "-f", file},
        {"inspect", "nodes", "--snapshot", file},
        {"inspect", "nodes", "--kubeconfig", file},
        {"verify", "--snapshot", file},
        {"report", "capacity", "--snapshot", file},
        {"render", "scheduler-config", "--unmerge", file, "--address", "https://10.0.0.1"},
        {"controller", "--config", file},
        {"controller", "--policy", file}}) {
    const auto got = call(words);
    EXPECT_EQ(got.rc, 1) << words.front() << " " << words.at(1) << ": " << got.err;
    EXPECT_THAT(got.err, HasSubstr(file)) << words.front() << " " << words.at(1);
  }
}

TEST(program, a_declaration_is_rendered_as_json_and_refused_in_chinese) {
  const auto json = call({"render", "declaration", "--key", "example.com/fpga", "--group", "lab", "-o", "json"});
  EXPECT_EQ(json.rc, 0);
  EXPECT_EQ(nlohmann::json::parse(json.out).at("data").at("key"), "example.com/fpga");
  const auto refused = call({"render", "declaration", "--key", "fpga", "--group", "lab", "--lang", "zh"});
  EXPECT_EQ(refused.rc, 2);
  EXPECT_THAT(refused.err, HasSubstr("--key: " + words::chinese("declaration.key_without_domain.wrong",
                                                                {{"field", "data.key"}, {"value", "fpga"}})));
}

}  // namespace
}  // namespace cli
