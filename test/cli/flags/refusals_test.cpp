// Every way in which the command line refuses something, in Chinese: no sentence of it is English.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <functional>

#include "cli/completion/tree.hpp"
#include "cli/flags/usage.hpp"
#include "cli/program.hpp"
#include "cli/verbs.hpp"
#include "test/english.hpp"
#include "text/messages.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

/// The verbs of the program, which none of these tests runs.
class all_verbs {
 public:
  all_verbs() { add_verbs(app_, rc_); }
  /// `each` of every verb, with the words that call it.
  void walk(const std::function<void(CLI::App&, const std::vector<std::string>&)>& each) { walk(app_, {}, each); }

 private:
  using visit = std::function<void(CLI::App&, const std::vector<std::string>&)>;
  static void walk(CLI::App& verb, const std::vector<std::string>& words, const visit& each) {
    each(verb, words);
    for (auto* below : verb.get_subcommands([](CLI::App*) { return true; })) {
      auto longer = words;
      longer.push_back(below->get_name());
      walk(*below, longer, each);
    }
  }
  CLI::App app_{"", "quartermaster"};
  int rc_ = 0;
};

std::string words_of(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) out += word + " ";
  return out;
}

/// Whether the first line of an answer has an English sentence. Values that are allowed stand in a list without blanks;
/// help, which may follow, is English.
bool has_english_line(std::string answer) {
  answer.resize(std::min(answer.find('\n'), answer.size()));
  for (std::size_t i = 0; i + 1 < answer.size(); ++i)
    if (answer[i] == ',' && answer[i + 1] != ' ') answer[i] = '/';
  return words::has_english_sentence(answer);
}

/// What the program answers to these words in Chinese.
void expect_chinese(std::vector<std::string> words, int code = 2) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const auto rc = run_program("quartermaster", words);
  testing::internal::GetCapturedStdout();
  const auto answer = testing::internal::GetCapturedStderr();
  EXPECT_EQ(rc, code) << words_of(words) << answer;
  EXPECT_TRUE(text::has_cjk(answer)) << words_of(words) << answer;
  EXPECT_FALSE(has_english_line(answer)) << words_of(words) << answer;
}

struct refusals : testing::Test {
  void SetUp() override { setenv("LC_ALL", "zh_CN.UTF-8", 1); }
  void TearDown() override { unsetenv("LC_ALL"); }
};

/// What every check of every flag says of values that people mistype.
TEST_F(refusals, golden_ones_of_each_check_of_each_flag_are_Chinese) {
  int refused = 0;
  all_verbs().walk([&](CLI::App& verb, const std::vector<std::string>& words) {
    for (auto* option : verb.get_options([](CLI::Option*) { return true; }))
      for (int index = 0;; ++index) {
        const CLI::Validator* check = nullptr;
        try {
          check = option->get_validator(index);
        } catch (const CLI::OptionNotFound&) {
          break;
        }
        for (const std::string value : {"", "Not \"a value/", "-1", "010", "http://a//b", "a=b=c", "2026-13"}) {
          auto copy = value;
          const auto problem = (*check)(copy);
          if (problem.empty()) continue;
          ++refused;
          const auto answer =
              usage_problem(CLI::ValidationError(option->get_name(), problem).what(), text::language::zh);
          EXPECT_TRUE(text::has_cjk(answer)) << words_of(words) << answer;
          EXPECT_FALSE(has_english_line(answer)) << words_of(words) << answer;
          EXPECT_TRUE(answer.contains(long_name(*option)) || answer.contains(option->get_name()))
              << words_of(words) << answer;
        }
      }
  });
  EXPECT_GT(refused, 300);
}

/// CLI11 takes numbers and words such as "yes" for a switch, and says of others that it could not convert them.
TEST(switches, take_true_and_false_and_say_so_of_every_other_value) {
  int switches = 0;
  all_verbs().walk([&](CLI::App& verb, const std::vector<std::string>& words) {
    for (auto* option : verb.get_options([](CLI::Option*) { return true; })) {
      if (takes_value(*option)) continue;
      const CLI::Validator* check = nullptr;
      try {
        check = option->get_validator(0);
      } catch (const CLI::OptionNotFound&) {
        continue;  // it has no value, only a callback
      }
      ++switches;
      for (std::string value : {"true", "false"}) EXPECT_EQ((*check)(value), "") << words_of(words) << value;
      for (std::string value : {"maybe", "2", "yes", ""}) EXPECT_NE((*check)(value), "") << words_of(words) << value;
    }
  });
  EXPECT_GT(switches, 10);
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_program("quartermaster", {"controller", "--view-certificate=maybe"}), 2);
  EXPECT_TRUE(testing::internal::GetCapturedStderr().contains(
      text::message("usage.not_a_switch", text::language::en, {{"name", "--view-certificate"}, {"value", "maybe"}})));
}

TEST_F(refusals, golden_ones_of_unknown_flags_and_missing_values_are_Chinese) {
  int values = 0;
  all_verbs().walk([&](CLI::App& verb, const std::vector<std::string>& words) {
    auto wrong = words;
    wrong.emplace_back("--colour=red");
    expect_chinese(wrong);
    for (const auto* option : options_of(verb)) {
      if (!takes_value(*option)) continue;
      auto without_value = words;
      without_value.push_back(long_name(*option));
      expect_chinese(without_value);
      ++values;
      break;  // each call makes the whole command line
    }
  });
  EXPECT_GT(values, 20);
}

TEST_F(refusals, golden_ones_of_flags_that_do_not_go_together_are_Chinese) {
  const auto file = std::filesystem::temp_directory_path() / ("qm-refusals-" + std::to_string(::getpid()));
  const std::string node = "--node-name=gpu-1", no_file = "/no/such/file";
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"agent"},
           {"agent", node, "--pod-resources", "/run/kubelet.sock"},
           {"agent", node, "--lease-duration", "5", "--renew-deadline", "9"},
           {"agent", "plugin", "--share", "a.b/gpu=slots:10"},
           {"agent", "plugin", node, "--share", "a.b/gpu"},
           {"agent", "plugin", node, "--share", "a.b/gpu=cores", "--limit", "a.b/gpu=cores"},
           {"agent", "plugin", node, "--limit", "a.b/gpu=cores"},
           {"agent", "plugin", node, "--share", "a.b/gpu=cores", "--limit", "a.b/c"},
           {"agent", "fix-runtime", "--restore", "--set-default"},
           {"console", "--listen", "localhost"},
           {"console", "--metrics-address", "a:b"},
           {"console", "--tls-key-file", "k"},
           {"console", "--audience-only"},
           {"console", "--host", "a:1"},
           {"console", "--frame-ancestor", "x"},
           {"console", "--prometheus-url", "p"},
           {"console", "--prometheus-url", "http://u:p@p"},
           {"console", "--prometheus-url", "http://p?a"},
           {"console", "--prometheus-url", "http://"},
           {"console", "--prometheus-url", "http://p", "--prometheus-token-file", "t"},
           {"console", "--prometheus-url", "https://p", "--prometheus-password-file", "t"},
           {"controller", "--lease-duration", "5", "--renew-deadline", "9"},
           {"controller", "--lease-duration", "9", "--renew-deadline", "5", "--retry-period", "5"},
           {"controller", "--metrics-address", "x"},
           {"controller", "--webhook-url", "https://a"},
           {"controller", "--webhook-address", ":1", "--webhook-url", "http://a"},
           {"controller", "--extender-address", ":1", "--extender-cert-file", "c"},
           {"controller", "--extender-cert-file", "c"},
           {"controller", "--predicates-address", ":1"},
           {"inspect", "nodes", "--watch", "--snapshot", no_file},
           {"inspect", "nodes", "--watch", "-o", "json"},
           {"lint", "x.yaml", "scheduler-config", "x.yaml"},
           {"report", "capacity", "--prometheus-url", "p"},
           {"report", "right-size", "--prometheus-url", "p"},
           {"uninstall", "--check", "--cancel"},
           {"verify", "node/"},
           {"explain", "node/"}}) {
    auto all = words;
    const bool has_language = words[0] != "agent" && words[0] != "controller" && words[0] != "console";
    if (has_language) all.insert(all.end(), {"--lang", "zh"});
    expect_chinese(all);
  }
  for (const auto* text : {"bogus=1\n", "log-level\n", "image=a\nimage=b\n"}) {
    std::ofstream(file) << text;
    expect_chinese({"controller", "--config", file.string()});
  }
  for (const auto* flag : {"--policy", "--config"}) expect_chinese({"controller", flag, no_file}, 1);
  std::ofstream(file) << "a: [";
  expect_chinese({"controller", "--policy", file.string()}, 1);
  for (const auto* text : {"", "kind: ConfigMap\n",
                           "apiVersion: quartermaster.io/v1alpha1\nkind: AcceleratorPolicy\nmetadata: {name: x}\n"}) {
    std::ofstream(file) << text;
    expect_chinese({"controller", "--policy", file.string()});
  }
  std::filesystem::remove(file);
}

TEST_F(refusals, golden_ones_of_a_kubeconfig_that_is_not_there_are_Chinese) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"agent", "--node-name=gpu-1"},
                                             {"agent", "plugin", "--node-name=gpu-1"},
                                             {"console"},
                                             {"controller"},
                                             {"explain", "pod", "a"},
                                             {"inspect", "nodes"},
                                             {"inspect", "resources"},
                                             {"report", "capacity"},
                                             {"top", "nodes"},
                                             {"uninstall"},
                                             {"verify"}}) {
    auto all = words;
    all.insert(all.end(), {"--lang", "zh", "--kubeconfig", "/no/such/file"});
    expect_chinese(all, 1);
  }
}

}  // namespace
}  // namespace cli
