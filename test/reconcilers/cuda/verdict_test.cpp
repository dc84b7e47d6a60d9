#include "reconcilers/cuda/verdict.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "test/words.hpp"
#include "text/text.hpp"

namespace reconcilers::cuda {
namespace {

using enum outcome;
using testing::HasSubstr;
using text::language;

machine of_driver(std::string_view driver, card_class card = card_class::data_centre,
                  std::string_view capability = "") {
  return {{}, parse_driver(driver), parse_version(capability), card, false};
}

TEST(version, numbers_are_read_and_anything_else_is_not) {
  EXPECT_EQ(parse_version("12.4"), (version{12, 4}));
  EXPECT_EQ(parse_version("v12.4.1"), (version{12, 4}));
  EXPECT_EQ(parse_version("12"), (version{12, 0}));
  EXPECT_EQ(parse_driver("550.144.03"), (driver_version{550, 144, 3}));
  for (const auto* wrong :
       {"", "v", "12.", ".4", "12.4.", "12.4.1.0", "a", "-1", "+1", "12 ", "100000", "99999999999999"})
    EXPECT_FALSE(parse_numbers(wrong)) << wrong;
  EXPECT_LT((version{9, 9}), (version{12, 0})) << "as numbers";
  EXPECT_LT((version{12, 9}), (version{12, 10}));
  EXPECT_LT((version{12, 9}), (version{13, 0}));
}

TEST(version, is_written_as_nvidia_writes_it) {
  EXPECT_EQ(to_string(*parse_driver("550.144.03")), "550.144.03");
  EXPECT_EQ(to_string(*parse_driver("525.60.13")), "525.60.13");
  EXPECT_EQ(to_string(*parse_driver("580")), "580");
  EXPECT_EQ(to_string(version{12, 0}), "12.0");
}

TEST(rules, tables_fall_and_know_the_manuals_driver) {
  EXPECT_TRUE(std::ranges::is_sorted(toolkits(), std::greater<>(), &toolkit_row::cuda));
  EXPECT_TRUE(std::ranges::is_sorted(toolkits(), std::greater<>(), &toolkit_row::driver));
  EXPECT_EQ(cuda_of(*parse_driver("550.144.03")), (version{12, 4})) << "the manual's example";
  EXPECT_EQ(cuda_of(*parse_driver("535.183.01")), (version{12, 2}));
  EXPECT_EQ(cuda_of(*parse_driver("580.95.05")), (version{13, 0}));
  EXPECT_EQ(cuda_of(*parse_driver("390.30")), std::nullopt);
  EXPECT_EQ(driver_for({12, 4}), (driver_version{550, 54, 14}));
}

/// Every row with the sentence it comes from, as NVIDIA's documents have it.
TEST(verdict, S28_S78_matrix_of_drivers_and_runtimes) {
  struct row {
    std::string_view driver, runtime;
    outcome is;
    rule reason;
    std::string_view source;
  };
  const row table[] = {
      // a driver runs every older runtime, whatever the major version
      {"550.54.14", "12.4", works, rule::backward, sources::compatibility},
      {"550.144.03", "12.4", works, rule::backward, sources::compatibility},
      {"550.54.14", "12.0", works, rule::backward, sources::compatibility},
      {"550.54.14", "11.8", works, rule::backward, sources::compatibility},
      {"580.65.06", "11.0", works, rule::backward, sources::compatibility},
      {"590.44.01", "12.9", works, rule::backward, sources::compatibility},
      {"590.44.01", "13.1", works, rule::backward, sources::compatibility},
      // newer toolkits of the same major version, from its floor on
      {"525.60.13", "12.9", minor_version, rule::minor_version, sources::minor_version},
      {"535.54.03", "12.4", minor_version, rule::minor_version, sources::minor_version},
      {"550.54.13", "12.4", minor_version, rule::minor_version, sources::minor_version},
      {"580.65.06", "13.1", minor_version, rule::minor_version, sources::minor_version},
      {"450.80.02", "11.8", minor_version, rule::minor_version, sources::minor_version},
      {"470.42.01", "11.7", minor_version, rule::minor_version, sources::minor_version},
      // CUDA 11.0 came with a driver below the floor
      {"450.36.06", "11.0", works, rule::backward, sources::compatibility},
      {"450.36.06", "11.1", forward_package, rule::forward_package, sources::forward},
      // another major version
      {"520.61.05", "12.0", forward_package, rule::forward_package, sources::forward},
      {"470.82.01", "12.4", forward_package, rule::forward_package, sources::forward},
      {"575.51.03", "13.0", forward_package, rule::forward_package, sources::forward},
      {"440.33", "11.0", forward_package, rule::forward_package, sources::forward},
      // older than the table
      {"390.30", "11.0", forward_package, rule::forward_package, sources::forward},
      {"390.30", "9.0", unknown, rule::nothing_known, ""},
  };
  for (const auto& entry : table) {
    const auto is = judge(*parse_version(entry.runtime), of_driver(entry.driver));
    EXPECT_EQ(is.is, entry.is) << entry.driver << " " << entry.runtime << " " << to_string(is.is);
    EXPECT_EQ(is.reason, entry.reason) << entry.driver << " " << entry.runtime << " " << name_of(is.reason);
    EXPECT_EQ(source_of(is), entry.source);
  }
}

TEST(verdict, S28_the_package_is_for_data_centre_cards_only) {
  const auto judge_card = [](card_class card) { return judge({12, 4}, of_driver("470.82.01", card)); };
  EXPECT_EQ(judge_card(card_class::data_centre).is, forward_package);
  EXPECT_EQ(judge_card(card_class::unknown).reason, rule::forward_package_if_data_centre);
  EXPECT_EQ(judge_card(card_class::other).is, fails);
  EXPECT_THAT(text_of(judge_card(card_class::other), language::en), HasSubstr("550.54.14"));
  EXPECT_THAT(text_of(judge_card(card_class::data_centre), language::en), HasSubstr("cuda-compat-12-4"));
}

TEST(verdict, S28_cuda_13_has_no_code_for_volta) {
  const auto volta = judge({13, 0}, of_driver("580.65.06", card_class::data_centre, "7.0"));
  EXPECT_EQ(volta.is, fails);
  EXPECT_EQ(volta.reason, rule::capability_removed);
  EXPECT_EQ(judge({12, 9}, of_driver("580.65.06", card_class::data_centre, "7.0")).is, works);
  EXPECT_EQ(judge({13, 0}, of_driver("580.65.06", card_class::data_centre, "7.5")).is, works);
}

TEST(verdict, S28_golden_words_of_what_an_image_runs_on_a_card) {
  struct row {
    std::string_view runtime, driver, capability;
    outcome is;
    rule reason;
    std::string_view words;
  };
  const row table[] = {
      // across major versions there is PTX alone
      {"12.4", "570.195", "12.0", ptx_only, rule::backward_by_ptx, "Toolkits before 12.8"},
      {"11.4", "550.54.14", "9.0", ptx_only, rule::backward_by_ptx, "Toolkits before 11.8"},
      {"10.2", "535.54.03", "8.0", ptx_only, rule::backward_by_ptx, "Toolkits before 11.0"},
      {"12.4", "570.195", "10.0", ptx_only, rule::backward_by_ptx, "Toolkits before 12.8"},
      {"11.8", "550.54.14", "9.0", works, rule::backward, ""},
      {"12.8", "570.195", "12.0", works, rule::backward, ""},
      // within one, code for an older card runs on a newer one, and not the other way
      {"11.4", "535.54.03", "8.9", works, rule::backward_by_older_code, "code for 8.0 or 8.6, or PTX"},
      {"11.0", "535.54.03", "8.6", works, rule::backward_by_older_code, "code for 8.0, or PTX"},
      {"9.0", "535.54.03", "7.5", works, rule::backward_by_older_code, "code for 7.0, or PTX"},
      {"12.8", "580.65.06", "10.3", works, rule::backward_by_older_code, "code for 10.0, or PTX"},
      {"12.8", "580.65.06", "12.1", works, rule::backward_by_older_code, "code for 12.0, or PTX"},
      {"10.2", "535.54.03", "8.6", ptx_only, rule::backward_by_ptx, "Toolkits before 11.1"},
      {"8.0", "535.54.03", "7.0", ptx_only, rule::backward_by_ptx, "Toolkits before 9.0"},
      // not on the GPUs of Tegra
      {"11.0", "535.54.03", "8.7", ptx_only, rule::backward_by_ptx, "Toolkits before 11.4"},
      // toolkits that dropped a card
      {"10.2", "470.82.01", "3.0", works, rule::backward, ""},
      {"11.0", "470.82.01", "3.0", fails, rule::capability_removed, "CUDA 11.0 and newer"},
      {"11.4", "470.82.01", "3.7", works, rule::backward, ""},
      {"12.2", "470.82.01", "3.7", fails, rule::capability_removed, "CUDA 12.0 and newer"},
      {"12.9", "580.65.06", "5.2", works, rule::backward, ""},
      {"13.0", "580.65.06", "6.1", fails, rule::capability_removed, "CUDA 13.0 and newer"},
      // drivers that dropped it, or came before it
      {"12.2", "535.54.03", "3.7", fails, rule::driver_dropped_card, "Drivers after branch 470"},
      {"11.4", "535.54.03", "3.5", fails, rule::driver_dropped_card, "a CUDA older than 12.0"},
      {"12.4", "590.44.01", "7.0", fails, rule::driver_dropped_card, "Drivers after branch 580"},
      {"12.4", "550.54.14", "12.0", fails, rule::driver_before_card, "Drivers before branch 570"},
      {"11.0", "440.33", "8.0", fails, rule::driver_before_card, "branch 450 or newer"},
  };
  for (const auto& entry : table) {
    const auto got = judge(*parse_version(entry.runtime), of_driver(entry.driver, card_class::other, entry.capability));
    const auto name = std::string(entry.runtime) + " on " + std::string(entry.capability);
    EXPECT_EQ(got.is, entry.is) << name << " " << to_string(got.is);
    EXPECT_EQ(got.reason, entry.reason) << name << " " << name_of(got.reason);
    EXPECT_THAT(text_of(got, language::en), HasSubstr(std::string(entry.words))) << name;
  }
  EXPECT_EQ(title_of(ptx_only, language::en), "works only where it carries PTX");
}

TEST(verdict, a_card_whose_name_says_nothing_is_not_judged) {
  machine named{{}, parse_driver("570.195"), {}, card_class::unknown, false, "Foo 9000"};
  const auto got = judge({12, 4}, named);
  EXPECT_EQ(got.is, unknown);
  EXPECT_EQ(got.reason, rule::card_not_known);
  EXPECT_EQ(text_of(got, language::en),
            words::english("cuda.rule.card_not_known", {{"runtime", "12.4"}, {"card", "Foo 9000"}}));
  EXPECT_EQ(judge({12, 9}, named).reason, rule::card_not_known) << "minor version compatibility as well";
  named.driver = parse_driver("470.82.01");
  EXPECT_EQ(judge({12, 4}, named).is, forward_package) << "the driver is too old for any card";
  named.product.clear();
  named.driver = parse_driver("570.195");
  EXPECT_EQ(judge({12, 4}, named).is, works) << "no card was named";
}

TEST(verdict, a_node_without_labels_of_its_capability_has_that_of_its_card) {
  node_facts node;
  node.driver = parse_driver("580.65.06");
  node.product = "Tesla-V100-SXM2-32GB";
  EXPECT_EQ(judge({13, 0}, machine_of(node)).reason, rule::capability_removed);
  node.capability = version{8, 0};
  EXPECT_EQ(judge({13, 0}, machine_of(node)).is, works) << "labels count before the name";
}

TEST(verdict, the_cuda_a_driver_reports_counts_before_the_table) {
  EXPECT_EQ(judge({12, 7}, {version{12, 7}, parse_driver("565.57.01"), {}, card_class::other, false}).is, works);
  EXPECT_EQ(judge({12, 4}, {version{12, 2}, {}, {}, card_class::other, false}).is, minor_version);
  EXPECT_EQ(judge({12, 4}, {version{11, 8}, {}, {}, card_class::other, false}).is, fails);
  EXPECT_EQ(judge({12, 4}, {}).is, unknown);
}

TEST(verdict, S15_S29_S85_through_a_sharing_library) {
  struct row {
    std::string_view cuda, runtime;
    bool mig;
    outcome is;
    rule reason;
  };
  const row table[] = {
      {"12.4", "12.4", false, works, rule::shim_covers},
      {"12.8", "12.4", false, works, rule::shim_covers},
      {"12.4", "12.0", false, works, rule::shim_covers},
      {"12.8", "12.5", false, fails, rule::shim_too_old},
      {"12.8", "12.8", false, fails, rule::shim_too_old},
      {"12.4", "11.8", false, fails, rule::shim_other_major},  // majors of runtime and baseline
      {"13.0", "12.4", false, fails, rule::shim_other_major},  // majors of driver and runtime
      {"13.0", "13.0", false, fails, rule::shim_other_major},
      {"12.2", "12.4", false, minor_version, rule::minor_version},
      {"11.8", "12.4", false, fails, rule::driver_too_old},
      {"12.4", "12.4", true, fails, rule::shim_mig},
  };
  const auto* row_of_vgpu = shim_of("vgpu");
  ASSERT_NE(row_of_vgpu, nullptr);
  for (const auto& entry : table) {
    const machine machine{parse_version(entry.cuda), {}, {}, card_class::other, entry.mig};
    const auto is = judge_shared(*parse_version(entry.runtime), machine, *row_of_vgpu);
    EXPECT_EQ(is.is, entry.is) << entry.cuda << " " << entry.runtime;
    EXPECT_EQ(is.reason, entry.reason) << entry.cuda << " " << entry.runtime << " " << name_of(is.reason);
  }
  EXPECT_EQ(shim_of("pgpu"), nullptr);
}

TEST(verdict, golden_sentences_are_whole_in_both_languages) {
  for (const auto& row : toolkits()) {
    for (const auto* driver : {"", "390.1", "450.36.06", "470.82.01", "525.60.13", "550.54.14", "590.44.01"}) {
      for (const auto card : {card_class::unknown, card_class::data_centre, card_class::other}) {
        for (const auto* capability : {"", "3.7", "7.0", "8.9", "9.0", "12.0"}) {
          for (const bool mig : {false, true}) {
            auto machine = of_driver(driver, card, capability);
            machine.mig = mig;
            machine.product = mig ? "Foo 9000" : "";
            for (const auto& is : {judge(row.cuda, machine), judge_shared(row.cuda, machine, *shim_of("vgpu"))}) {
              for (const auto entry : {language::en, language::zh}) {
                const auto text = text_of(is, entry);
                EXPECT_FALSE(text.empty());
                EXPECT_EQ(text.find('{'), std::string::npos) << text;
                EXPECT_EQ(text::has_cjk(text), entry == language::zh) << text;
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace reconcilers::cuda
