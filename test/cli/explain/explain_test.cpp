// What people see of `explain`: test/golden/explain; QM_GOLDEN=write writes what differs.
#include "cli/explain/explain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <protozero/pbf_writer.hpp>
#include <sstream>

#include "reconcilers/cuda/errors.hpp"
#include "reconcilers/cuda/facts.hpp"
#include "reconcilers/cuda/rules.hpp"
#include "test/facts_in.hpp"
#include "test/reconcilers/recording_transport.hpp"
#include "test/rounds.hpp"
#include "test/words.hpp"

namespace cli {
namespace {

namespace cuda = reconcilers::cuda;
using reconcilers::recording_transport;
using testing::HasSubstr, testing::Not;

struct said {
  int rc;
  std::string out, err;
};
said error(std::vector<std::string> words, const std::string& language = "en", const std::string& output = "text",
           const std::string& input = {}) {
  std::istringstream stream(input);
  std::ostringstream out, err;
  const int rc = run_explain_error({std::move(words), language, output}, stream, out, err);
  return {rc, out.str(), err.str()};
}
said compat_of(explain_compat_options options, const std::optional<kube::node>& node = {}) {
  std::ostringstream out, err;
  const int rc = explain_compat(options, node, out, err);
  return {rc, out.str(), err.str()};
}
explain_compat_options with_driver(std::string cuda, std::string driver, std::string card = {}) {
  explain_compat_options out;
  out.cuda = std::move(cuda);
  out.driver = std::move(driver);
  out.card = std::move(card);
  return out;
}

kube::node node_in(const char* mode) {
  kube::node out;
  out.key.name = "gpu-1";
  out.labels = kube::packed_map::of({{"nvidia.com/cuda.runtime-version.major", "12"},
                                     {"nvidia.com/cuda.runtime-version.minor", "8"},
                                     {"nvidia.com/cuda.driver-version.major", "570"},
                                     {"nvidia.com/cuda.driver-version.minor", "124"},
                                     {"nvidia.com/cuda.driver-version.revision", "06"},
                                     {"nvidia.com/gpu.compute.major", "8"},
                                     {"nvidia.com/gpu.compute.minor", "0"},
                                     {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                                     {"quartermaster.io/module", mode}});
  return out;
}

void compare(const std::string& name, const std::string& is) {
  const auto file = std::filesystem::path(TEST_DATA) / "golden/explain" / name;
  if (std::getenv("QM_GOLDEN") && std::string_view(std::getenv("QM_GOLDEN")) == "write") {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << is;
  }
  std::ostringstream want;
  want << std::ifstream(file).rdbuf();
  EXPECT_EQ(is, want.str()) << "QM_GOLDEN=write writes " << file;
}

TEST(explain, S31_golden_every_error_is_explained_in_both_languages) {
  for (const std::string language : {"en", "zh"}) {
    std::string all;
    for (const auto& known_error : cuda::known_errors()) {
      const auto got = error({std::string(known_error.id)}, language);
      EXPECT_EQ(got.rc, 0) << got.err;
      EXPECT_EQ(got.err, "");
      all += "$ quartermaster explain error " + std::string(known_error.id) + " --lang " + language + "\n" + got.out +
             "\n";
    }
    compare("errors." + language + ".txt", all);
  }
}

TEST(explain, S31_a_log_is_read_from_standard_input_and_each_error_said_once) {
  const auto got = error({"-"}, "en", "text",
                         "Error 802: system not yet initialized\nCUDA error: 802\nRuntimeError: CUDA error: an illegal "
                         "memory access was encountered\n");
  EXPECT_EQ(got.rc, 0);
  EXPECT_THAT(got.out, HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
  EXPECT_EQ(got.out.find("Error 802: system"), got.out.rfind("Error 802: system"));
  EXPECT_EQ(error({"Error", "802"}).out.substr(0, 38), "Error 802: system not yet initialized\n");
}

TEST(explain, S31_json_has_both_languages) {
  const auto got = nlohmann::json::parse(error({"999"}, "en", "json").out);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0]["id"], "unknown-error");
  EXPECT_EQ(got[0]["code"], 999);
  EXPECT_EQ(got[0]["check"]["en"].size(), got[0]["check"]["zh"].size());
  EXPECT_NE(got[0]["title"]["en"], got[0]["title"]["zh"]);
}

TEST(explain, S31_a_log_of_any_length_is_read_to_its_end) {
  std::string log;
  while (log.size() < test::rounds(5u << 18, 3u << 20))
    log += "step 700: cuda graph captured, error rate 35, err 700\n";
  EXPECT_EQ(error({"-"}, "en", "text", log).rc, 1);
  const auto got = error({"-"}, "en", "text", log + "NVRM: Xid (PCI:0000:61:00): 79, pid=1");
  EXPECT_EQ(got.rc, 0);
  EXPECT_THAT(got.out, HasSubstr(words::english("cuda.xid.fatal", {{"xid", "79"},
                                                                   {"name", "fallen off the bus"},
                                                                   {"fault", words::english("cuda.fault.card")}})));
}

TEST(explain, S31_xids_are_in_the_json) {
  const auto got = nlohmann::json::parse(error({"xid", "79"}, "en", "json").out);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0]["xids"][0]["number"], 79);
  EXPECT_EQ(got[0]["xids"][0]["fault"], "card");
  EXPECT_EQ(got[0]["xids"][0]["withdrawn"], true);
}

TEST(explain, golden_answer_to_an_error_that_is_not_known) {
  const auto got = error({"segmentation", "fault"});
  EXPECT_EQ(got.rc, 1);
  EXPECT_EQ(got.out, "");
  EXPECT_THAT(got.err, words::has_in_order({"quartermaster: ", "\"segmentation fault\"", "(999)", "(xid 79)",
                                            "(INVALID_IMAGE)", "explain error list"}));
  EXPECT_EQ(std::ranges::count(got.err, '\n'), 1);
  EXPECT_EQ(error({"nothing"}, "en", "json").out, "[]\n");
}

TEST(explain, of_a_name_that_is_not_known_the_nearest_are_named) {
  EXPECT_THAT(error({"amount_in_byte"}).err,
              HasSubstr(words::english("explain_error.near", {{"list", "amount_in_bytes"}})));
  EXPECT_THAT(error({"UntoleratedTain"}).err,
              HasSubstr(words::english("explain_error.near", {{"list", "UntoleratedTaint"}})));
  EXPECT_THAT(error({"segmentation", "fault"}).err, Not(HasSubstr(words::begin_of("explain_error.near", "list"))));
}

TEST(explain, every_name_of_the_list_is_explained) {
  EXPECT_EQ(error({"list"}).rc, 0);
  const auto all = nlohmann::json::parse(error({"list"}, "en", "json").out);
  ASSERT_GT(all.size(), cuda::known_errors().size());
  for (const auto& name : all) EXPECT_EQ(error({name.get<std::string>()}).rc, 0) << name;
}

TEST(explain, a_code_is_explained_with_the_names_of_what_it_finds) {
  for (const std::string language : {"en", "zh"}) {
    const auto got = error({"amount_in_bytes"}, language).out;
    const auto locale = language == "zh" ? text::language::zh : text::language::en;
    for (const auto* gap : {"field", "value", "key", "hint", "amount_in_bytes.other"})
      EXPECT_THAT(got, HasSubstr("<" + text::message(std::string("reason.gap.") + gap, locale) + ">")) << gap;
  }
}

TEST(explain, S28_S29_golden_verdicts_come_with_their_source) {
  std::string all;
  for (const std::string language : {"en", "zh"}) {
    const auto show = [&](explain_compat_options options, const std::optional<kube::node>& node = {}) {
      options.language = language;
      const auto got = compat_of(options, node);
      all += "exit code " + std::to_string(got.rc) + "\n" + got.out + got.err + "\n";
    };
    show(with_driver("12.4", "550.144.03"));
    show(with_driver("12.4", "535.54.03"));
    show(with_driver("12.4", "470.82.01", "A100"));
    show(with_driver("12.4", "470.82.01", "NVIDIA GeForce RTX 3090"));
    show(with_driver("12.4", "470.82.01"));
    show(with_driver("12.4", "390.30", "GeForce"));
    show(with_driver("13.0", "580.82.07", "Tesla V100-SXM2-32GB"));
    show(with_driver("12.4", "570.195", "NVIDIA GeForce RTX 5090"));
    show(with_driver("11.4", "535.54.03", "L40S"));
    show(with_driver("12.2", "535.54.03", "Tesla-K80"));
    show(with_driver("12.4", "550.144.03", "rtx5090"));
    show(with_driver("12.4", "550.144.03", "Foo 9000"));
    show(with_driver("12.4", ""));
    show(with_driver("14.0", ""));
    show(with_driver("12.4", ""), node_in("pgpu"));
    show(with_driver("12.4", ""), node_in("vgpu"));
    show(with_driver("12.8", ""), node_in("vgpu"));
    show(with_driver("12.4", ""), kube::node());
  }
  compare("compat.txt", all);
}

TEST(explain, S28_what_is_in_no_table_is_said_to_be_unknown) {
  const auto rule_of = [](explain_compat_options options, const std::optional<kube::node>& node = {}) {
    const auto text = compat_of(options, node);
    EXPECT_EQ(text.rc, 3) << options.cuda << " " << options.driver;
    options.output = "json";
    const auto got = compat_of(options, node);
    EXPECT_EQ(got.rc, 3);
    const auto verdict = nlohmann::json::parse(got.out)["verdicts"][0];
    EXPECT_EQ(verdict["runs"], false);
    return verdict["rule"].get<std::string>();
  };
  const auto doubt = [](const std::string& toolkit) {
    return "quartermaster: " + words::english("explain_compat.not_known", {{"cuda", toolkit}, {"newest", "13.1"}}) +
           "\n";
  };
  for (const std::string toolkit : {"12.99", "12.7", "12.10", "11.9", "10.3", "9.3", "8.5", "0.1", "13.9"}) {
    EXPECT_EQ(rule_of(with_driver(toolkit, "590.44.01")), "toolkit-not-known") << toolkit;
    EXPECT_EQ(compat_of(with_driver(toolkit, "590.44.01")).err, doubt(toolkit));
    const auto needs = compat_of(with_driver(toolkit, ""));
    EXPECT_EQ(needs.rc, 3);
    EXPECT_EQ(needs.err, doubt(toolkit));
  }
  for (const std::string driver : {"9999", "591", "1000.1"})
    EXPECT_EQ(rule_of(with_driver("12.4", driver)), "driver-not-known") << driver;
  for (const std::string driver : {"565.57.01", "470.82", "575", "550", "535"})
    EXPECT_EQ(compat_of(with_driver("11.4", driver)).rc, 0) << driver;
  for (const std::string driver : {"552.12", "540", "536.25", "471.11"}) {
    EXPECT_EQ(rule_of(with_driver("11.4", driver)), "driver-not-released") << driver;
    EXPECT_EQ(rule_of(with_driver("10.2", driver)), "driver-not-released") << driver;
  }
  const auto middle = compat_of(with_driver("12.4", "552.12"));
  EXPECT_THAT(middle.out, HasSubstr("550"));
  EXPECT_THAT(middle.out, HasSubstr("555"));
  auto capability = with_driver("12.4", "550.54.14");
  for (const std::string value : {"9.9", "8.1", "19.0"}) {
    capability.capability = value;
    EXPECT_EQ(rule_of(capability), "capability-not-known") << value;
  }
  EXPECT_EQ(rule_of(with_driver("12.7", ""), node_in("pgpu")), "toolkit-not-known");
  for (const std::string toolkit : {"12.4", "12.0", "11.8", "10.0", "9.2", "8.0"})
    EXPECT_EQ(compat_of(with_driver(toolkit, "550.54.14")).rc, 0) << toolkit;
}

TEST(explain, S28_a_version_with_less_than_its_numbers_is_named_with_how_it_was_read) {
  const auto branch = words::english("explain_compat.branch", {{"value", "550"}});
  const auto major = words::english("explain_compat.major_version", {{"value", "12"}, {"cuda", "12.0"}});
  EXPECT_THAT(compat_of(with_driver("12.4", "550")).out, HasSubstr(branch));
  EXPECT_THAT(compat_of(with_driver("12", "550.54.14")).out, HasSubstr(major));
  EXPECT_THAT(compat_of(with_driver("12", "")).out, HasSubstr(major));
  const auto whole = compat_of(with_driver("12.4", "550.54.14"));
  EXPECT_THAT(whole.out, Not(HasSubstr(words::english("explain_compat.branch", {{"value", "550.54.14"}}))));
  auto options = with_driver("12.4", "550");
  options.output = "json";
  const auto notes = nlohmann::json::parse(compat_of(options).out)["notes"];
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0]["en"], branch);
  options.driver = "550.54.14";
  EXPECT_EQ(nlohmann::json::parse(compat_of(options).out)["notes"], nlohmann::json::array());
}

TEST(explain, S28_a_branch_knows_the_cuda_of_its_releases) {
  const std::map<std::string, std::string> branches{{"470", "11.4"}, {"510", "11.6"}, {"515", "11.7"}, {"520", "11.8"},
                                                    {"525", "12.0"}, {"530", "12.1"}, {"535", "12.2"}, {"545", "12.3"},
                                                    {"550", "12.4"}, {"555", "12.5"}, {"560", "12.6"}, {"565", "12.7"},
                                                    {"570", "12.8"}, {"575", "12.9"}, {"580", "13.0"}, {"590", "13.1"}};
  for (const auto& [branch, version] : branches) {
    auto options = with_driver("11.4", branch);
    options.output = "json";
    EXPECT_EQ(nlohmann::json::parse(compat_of(options).out)["driverCuda"], version) << branch;
  }
  EXPECT_EQ(compat_of(with_driver("12.4", "550")).rc, 0);
}

TEST(explain, S28_versions_are_read_as_images_and_compilers_write_them) {
  auto options = with_driver("cu121", "550.54.14");
  options.output = "json";
  for (const auto& [word, version] : std::map<std::string, std::string>{
           {"sm_90", "9.0"}, {"sm_90a", "9.0"}, {"sm_120", "12.0"}, {"compute_86", "8.6"}, {"SM89", "8.9"}}) {
    options.capability = word;
    const auto answer = nlohmann::json::parse(compat_of(options).out);
    EXPECT_EQ(answer["computeCapability"], version) << word;
    EXPECT_EQ(answer["cuda"], "12.1");
  }
  for (const std::string word : {"cuda121", "cu", "cu1", "cu12x"})
    EXPECT_EQ(compat_of(with_driver(word, "550.54.14")).rc, 2) << word;
}

TEST(explain, S28_cards_that_the_tables_are_not_about_are_named) {
  const auto rule_of = [](const std::string& card) {
    auto options = with_driver("12.4", "550.54.14", card);
    options.output = "json";
    const auto got = compat_of(options);
    EXPECT_EQ(got.rc, 3) << card;
    return nlohmann::json::parse(got.out)["verdicts"][0]["rule"].get<std::string>();
  };
  for (const std::string card : {"MI300X", "AMD Instinct MI250", "Radeon RX 7900 XTX", "Ascend 910B", "910B", "310P"})
    EXPECT_EQ(rule_of(card), "other-vendor") << card;
  for (const std::string card : {"Jetson AGX Orin", "Jetson Nano", "Xavier", "Thor"})
    EXPECT_EQ(rule_of(card), "tegra-driver") << card;
}

TEST(explain, S28_what_a_driver_must_be_has_a_row_for_every_toolkit_that_is_known) {
  const auto oldest = cuda::toolkits().back();
  for (const std::string toolkit : {"9.0", "8.0", "9.2", "4.2"}) {
    auto options = with_driver(toolkit, "");
    EXPECT_THAT(compat_of(options).out,
                HasSubstr(words::english("explain_compat.before_table",
                                         {{"cuda", to_string(oldest.cuda)}, {"driver", to_string(oldest.driver)}})));
    options.output = "json";
    const auto got = compat_of(options);
    EXPECT_EQ(got.rc, 0);
    const auto needs = nlohmann::json::parse(got.out)["needs"];
    ASSERT_EQ(needs.size(), 1U) << toolkit;
    EXPECT_EQ(needs[0]["verdict"], "works");
    const auto driver = needs[0]["driverFrom"].get<std::string>();
    EXPECT_EQ(compat_of(with_driver(toolkit, driver)).rc, 0) << toolkit << " " << driver;
  }
  auto unknown = with_driver("14.0", "");
  unknown.output = "json";
  EXPECT_EQ(nlohmann::json::parse(compat_of(unknown).out)["needs"], nlohmann::json::array());
}

TEST(explain, S31_each_number_has_its_own_verdict) {
  const auto xids_of = [](const std::vector<std::string>& words) {
    std::set<int> out;
    for (const auto& section : nlohmann::json::parse(error(words, "en", "json").out))
      if (section.contains("xids"))
        for (const auto& xid : section["xids"]) out.insert(xid["number"].get<int>());
    return out;
  };
  const auto unknown = [](const std::string& list) {
    return "quartermaster: " + words::english("explain_error.not_known", {{"list", list}}) + "\n";
  };
  using numbers = std::set<int>;
  EXPECT_EQ(xids_of({"xid", "79", "48"}), (numbers{48, 79}));
  EXPECT_EQ(xids_of({"xid 79, 48 and 31"}), (numbers{31, 48, 79}));
  EXPECT_EQ(xids_of({"XID 79/XID 48"}), (numbers{48, 79}));
  EXPECT_EQ(xids_of({"79", "48"}), (numbers{48, 79}));
  EXPECT_EQ(error({"79", "48"}).rc, 0);
  EXPECT_EQ(xids_of({"cuda", "error", "999", "xid", "79"}), numbers{79});
  const auto both = error({"cuda error 999, xid 79"});
  EXPECT_EQ(both.rc, 0) << both.err;
  EXPECT_THAT(both.out, HasSubstr("999"));
  // An XID that the table has not is one all the same, wherever it stands.
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"xid", "190"}, {"NVRM: Xid (PCI:0000:61:00): 190, pid=1"}}) {
    EXPECT_EQ(xids_of(words), numbers{190});
    const auto got = error(words);
    EXPECT_EQ(got.rc, 3);
    EXPECT_EQ(got.err, unknown("Xid 190"));
  }
  const auto some = error({"79", "12345", "xid", "500"});
  EXPECT_EQ(some.rc, 3);
  EXPECT_EQ(some.err, unknown("12345, Xid 500"));
  EXPECT_EQ(error({"xid", "790"}).rc, 1);
  EXPECT_EQ(error({"12345"}).rc, 1);
  EXPECT_EQ(error({"driver", "560.35.03"}).rc, 1);
  const auto nothing = error({"-"}, "en", "text", "\n");
  EXPECT_EQ(nothing.rc, 1);
  EXPECT_EQ(nothing.err, "quartermaster: " + words::english("explain_error.empty") + "\n");
}

TEST(explain, compat_in_json_is_for_programs) {
  auto options = with_driver("12.8", "");
  options.output = "json";
  const auto got = compat_of(options, node_in("vgpu"));
  EXPECT_EQ(got.rc, 3);
  const auto is = nlohmann::json::parse(got.out);
  EXPECT_EQ(is["node"], "gpu-1");
  EXPECT_EQ(is["driver"], "570.124.06");
  EXPECT_EQ(is["driverCuda"], "12.8");
  ASSERT_EQ(is["verdicts"].size(), 2U);
  EXPECT_EQ(is["verdicts"][0]["use"], "share");
  EXPECT_EQ(is["verdicts"][0]["rule"], "shared-baseline-too-old");
  EXPECT_EQ(is["verdicts"][1]["verdict"], "works");
  auto needs = with_driver("12.4", "");
  needs.output = "json";
  EXPECT_EQ(nlohmann::json::parse(compat_of(needs).out)["needs"][0]["driverFrom"], "550.54.14");
}

TEST(explain, wrong_usage_is_one_line_that_names_the_flag) {
  const auto wrong = [](explain_compat_options options) {
    const auto got = compat_of(std::move(options));
    EXPECT_EQ(got.rc, 2);
    EXPECT_EQ(std::ranges::count(got.err, '\n'), 1);
    return got.err;
  };
  const auto no_version = [](const char* name, const char* value, const char* example) {
    return words::english("explain_compat.wrong_version", {{"name", name}, {"value", value}, {"example", example}});
  };
  EXPECT_THAT(wrong(with_driver("latest", "")), HasSubstr(no_version("--cuda", "latest", "12.4")));
  EXPECT_THAT(wrong(with_driver("12.4", "new")), HasSubstr(no_version("--driver", "new", "550.54.14")));
  EXPECT_THAT(wrong(with_driver("12.4", "", "A100")), HasSubstr(words::english("explain_compat.with_driver")));
  auto capability = with_driver("12.4", "550");
  capability.capability = "ampere";
  for (const std::string value : {"ampere", "86", "8.0.1", "8", "8.", ".8", "8.0.0.0"}) {
    capability.capability = value;
    EXPECT_THAT(wrong(capability), HasSubstr(words::english("explain_compat.wrong_capability",
                                                            {{"name", "--compute-capability"}, {"value", value}})));
  }
  auto two = with_driver("12.4", "550", "A100");
  two.capability = "9.0";
  EXPECT_THAT(wrong(two), HasSubstr(words::english("explain_compat.two_capabilities",
                                                   {{"card", "A100"}, {"capability", "8.0"}, {"value", "9.0"}})));
  two.capability = "8.0";
  EXPECT_EQ(compat_of(two).rc, 0);
}

TEST(explain, reads_one_node_and_nothing_else) {
  std::string entry, meta, node;
  protozero::pbf_writer(entry).add_string(1, "nvidia.com/gpu.product");
  protozero::pbf_writer(entry).add_string(2, "Tesla-T4");
  protozero::pbf_writer(meta).add_string(1, "gpu-1");
  protozero::pbf_writer(meta).add_message(11, entry);
  protozero::pbf_writer(node).add_message(1, meta);
  std::string envelope("k8s\0", 4);
  protozero::pbf_writer(envelope).add_string(2, node);
  recording_transport transport;
  transport.answer = [&](const kube::request&) {
    kube::response out;
    out.status = 200;
    out.body = envelope;
    return out;
  };
  const auto got = reconcilers::run(read_node(transport, "gpu-1"));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(cuda::facts_of(*got).product, "Tesla-T4");
  ASSERT_EQ(transport.sent.size(), 1U);
  EXPECT_EQ(transport.sent[0].target, "/api/v1/nodes/gpu-1");
  transport.answer = [](const kube::request&) {
    return recording_transport::refused(404, "NotFound", "nodes \"gpu-1\" not found");
  };
  EXPECT_THAT(reconcilers::run(read_node(transport, "gpu-1")).error().message, HasSubstr("get nodes gpu-1"));
}

}  // namespace
}  // namespace cli
