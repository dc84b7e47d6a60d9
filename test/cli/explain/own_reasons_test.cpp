// Every reason that the operator, its agents, the extender, the device plugin and the verbs give is explained when a
// person pastes it.
#include "cli/explain/own_reasons.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "api/check_cause.hpp"
#include "api/engine_words.hpp"
#include "cli/explain/explain.hpp"
#include "cli/explain/explain_alert.hpp"
#include "cli/lint/lint_finding.hpp"
#include "quota/place.hpp"
#include "reconcilers/verify/verify.hpp"
#include "scheduler_config/judge/finding.hpp"
#include "test/words.hpp"
#include "text/messages.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using testing::HasSubstr, testing::IsEmpty, testing::Not;
using text::language;

/// Words of two parts in the sources that are no reason: kinds, fields, methods, vocabularies of others.
const std::set<std::string, std::less<>> other_words{"AcceleratorQuota",
                                                     "AcceleratorUsage",
                                                     "AdmissionReview",
                                                     "AllocateRequest",
                                                     "BinaryName",
                                                     "ClusterFirstWithHostNet",
                                                     "ConfigMap",
                                                     "ContainerName",
                                                     "CriticalAddonsOnly",
                                                     "CronJob",
                                                     "CustomResourceLimitation",
                                                     "DaemonSet",
                                                     "DeviceIDs",
                                                     "DirectoryOrCreate",
                                                     "DoesNotExist",
                                                     "ErrImageNeverPull",
                                                     "ErrImagePull",
                                                     "FailedAndUnresolvableNodes",
                                                     "FailedNodes",
                                                     "FixRuntime",
                                                     "GetDevicePluginOptions",
                                                     "GiB",
                                                     "ImageInspectError",
                                                     "ImagePullBackOff",
                                                     "InvalidImageName",
                                                     "ListAndWatch",
                                                     "ListPodResourcesResponse",
                                                     "MetaX",
                                                     "MiB",
                                                     "MutatingAdmissionPolicy",
                                                     "MutatingAdmissionPolicyBinding",
                                                     "NoSchedule",
                                                     "NodeNameToMetaVictims",
                                                     "NodeNameToVictims",
                                                     "NodeNames",
                                                     "NotIn",
                                                     "NumPDBViolations",
                                                     "OnDelete",
                                                     "PodDeviceEntries",
                                                     "PodName",
                                                     "PodNamespace",
                                                     "PodUID",
                                                     "PreStartContainer",
                                                     "PreStartContainerRequest",
                                                     "PreferNoSchedule",
                                                     "ResourceName",
                                                     "RollingUpdate",
                                                     "RuntimeDefault",
                                                     "SchedulerConfig",
                                                     "ServiceAccount",
                                                     "StatefulSet",
                                                     "StaticPod",
                                                     "SystemdCgroup",
                                                     "ValidatingAdmissionPolicyBinding",
                                                     "WhenIdle"};

/// Every word of the sources that may be a reason.
std::set<std::string, std::less<>> words_of_sources() {
  static const std::regex word(R"re("([A-Z][a-z]+(?:[A-Z][A-Za-z]*)*)")re");
  std::set<std::string, std::less<>> out;
  for (const auto* folder : {"reconcilers", "cli/controller", "agent", "api"})
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::filesystem::path(TEST_DATA) / ".." / folder)) {
      if (entry.path().extension() != ".cpp" && entry.path().extension() != ".hpp") continue;
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) {
        line = line.substr(0, line.find("// "));
        for (std::sregex_iterator match(line.begin(), line.end(), word), end; match != end; ++match)
          out.insert((*match)[1]);
      }
    }
  return out;
}

bool has_parts(const std::string& word) {
  return std::any_of(word.begin() + 1, word.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

/// What the verb says; its exit code is 0, and both languages have words.
nlohmann::json explained(const std::string& text) {
  std::istringstream input;
  std::ostringstream out, err;
  EXPECT_EQ(run_explain_error({{text}, "en", "json"}, input, out, err), 0) << text << "\n" << err.str();
  auto all = nlohmann::json::parse(out.str());
  for (const auto& section : all) {
    if (!section.contains("means")) continue;
    for (const auto* part : {"title", "means", "look"})
      for (const auto* locale : {"en", "zh"})
        EXPECT_NE(section[part][locale], "") << text << " " << part << " " << locale << section;
  }
  return all;
}

TEST(own_reasons, S31_every_reason_of_the_sources_is_explained) {
  std::size_t count = 0;
  for (const auto& word : words_of_sources()) {
    if (!has_parts(word) || other_words.contains(word)) continue;
    ++count;
    EXPECT_THAT(own_reasons_in(word), Not(IsEmpty())) << word << ": add it to reason: of text/messages.*.yaml";
    EXPECT_THAT(own_reasons_in("  reason: " + word + "\n  status: \"False\""), Not(IsEmpty())) << word;
    for (const auto& section : explained(word))
      if (section["id"].get<std::string>().starts_with("reason."))
        for (const auto* locale : {"en", "zh"}) EXPECT_NE(section["do"][locale], "") << word;
  }
  EXPECT_GT(count, 90U);
}

TEST(own_reasons, S31_every_row_is_a_reason_that_is_given) {
  std::set<std::string, std::less<>> known;
  for (const auto& word : words_of_sources()) known.insert(text::lower_case(word));
  std::size_t count = 0;
  for (const auto& entry : text::catalogue()) {
    if (!entry.key.starts_with("reason.") || !entry.key.ends_with(".means")) continue;
    ++count;
    auto name = entry.key.substr(0, entry.key.rfind('.'));
    std::string folded(name.substr(name.rfind('.') + 1));
    std::erase(folded, '_');
    EXPECT_TRUE(known.contains(folded)) << entry.key;
  }
  EXPECT_GT(count, 120U);
}

TEST(own_reasons, S31_every_code_of_a_finding_is_explained) {
  std::vector<std::string> codes;
  namespace verify = reconcilers::verify;
  namespace declarations = reconcilers::declarations;
  for (std::size_t i = 1; i < verify::code_count; ++i)
    codes.emplace_back(to_string(static_cast<verify::stage_code>(i)));
  for (std::size_t i = 0; i < declarations::code_count; ++i)
    codes.emplace_back(to_string(static_cast<declarations::error_code>(i)));
  for (std::size_t i = 0; i < scheduler_config::code_count; ++i)
    codes.emplace_back(to_string(static_cast<scheduler_config::code>(i)));
  for (std::size_t i = 0; i < lint_code_count; ++i)
    if (const auto code = static_cast<lint_code>(i); code != lint_code::compatibility)
      codes.emplace_back(to_string(code));
  for (std::size_t i = 1; i < api::check_cause_count; ++i)
    codes.emplace_back(to_string(static_cast<api::check_cause>(i)));
  for (const auto& code : codes) {
    explained(code);
    EXPECT_THAT(own_reasons_in("f.yaml:3:1: error: wrong [" + code + "]"), Not(IsEmpty())) << code;
    EXPECT_THAT(own_reasons_in(R"(  "code": ")" + code + R"(",)"), Not(IsEmpty())) << code;
  }
  explained("status.node.untolerated");
}

TEST(own_reasons, S31_sentences_of_the_scheduler_and_the_plugin_are_known_in_what_others_say) {
  for (auto i = static_cast<int>(quota::reason::refused); i <= static_cast<int>(quota::reason::changes_mode); ++i) {
    const std::string words(api::words_of(static_cast<quota::reason>(i), language::en));
    EXPECT_THAT(own_reasons_in("0/3 nodes are available: 3 " + words + ". preemption: 0/3 nodes are available."),
                Not(IsEmpty()))
        << words;
  }
  for (const auto& entry : text::catalogue()) {
    if (!entry.key.starts_with("start.") && !entry.key.starts_with("engine.limit.short.")) continue;
    std::vector<text::parameter> values;
    for (const auto name : text::placeholders_of(entry.words[0])) values.push_back({name, "team/a-1"});
    const auto line = "Allocate failed due to rpc error: code = Unknown desc = " + text::filled(entry.words[0], values);
    const auto found = own_reasons_in(line);
    EXPECT_TRUE(std::ranges::any_of(found, [&](const own_reason& reason) { return reason.key == entry.key; })) << line;
  }
}

TEST(own_reasons, a_reason_of_one_word_counts_only_where_it_is_one) {
  const std::set<own_reason> stuck{{"Stuck", "reason.node.stuck"}};
  for (const auto* line :
       {"Stuck", "status.reason=Stuck message=x", "5m  Warning  Stuck  acceleratornode/gpu-1  no pod"})
    EXPECT_EQ(own_reasons_in(line), stuck) << line;
  for (const auto* line : {"the process is Stuck in a loop", "5m  Normal  Created  pod/web  Created container web",
                           "a file is missing, and the driver is, too"})
    EXPECT_THAT(own_reasons_in(line), IsEmpty()) << line;
  EXPECT_EQ(own_reasons_in("SchedulerConfigStopped"),
            (std::set<own_reason>{{"SchedulerConfigStopped", "reason.scheduler.stopped"}}));
}

TEST(own_reasons, golden_explain_alert_sends_a_reason_to_the_verb_that_knows_it) {
  std::ostringstream out, err;
  EXPECT_EQ(run_explain_alert({"UntoleratedTaint", "en", "text"}, out, err), 1);
  EXPECT_THAT(err.str(), HasSubstr("quartermaster explain error UntoleratedTaint"));
}

}  // namespace
}  // namespace cli
