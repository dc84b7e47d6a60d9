#include "reconcilers/cuda/verdict.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "text/text.hpp"

namespace reconcilers::cuda {
namespace {

using enum outcome;
using testing::HasSubstr;
using text::language;

machine of_driver(std::string_view driver, card_class card = card_class::data_centre,
                  std::string_view capability = "8.0") {
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

TEST(rules, cards_are_told_by_their_names) {
  for (const auto* name : {"Tesla-T4", "Tesla V100-SXM2-32GB", "NVIDIA-A100-SXM4-40GB", "NVIDIA H100 80GB HBM3",
                           "NVIDIA-L40S", "NVIDIA-H20", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "NVIDIA-A10-SHARED"})
    EXPECT_EQ(class_of(name), card_class::data_centre) << name;
  for (const auto* name : {"NVIDIA-GeForce-RTX-4090", "NVIDIA GeForce GTX 1080", "NVIDIA-TITAN-V"})
    EXPECT_EQ(class_of(name), card_class::other) << name;
  for (const auto* name : {"", "NVIDIA-RTX-A6000", "Quadro-RTX-6000", "SomethingNew"})
    EXPECT_EQ(class_of(name), card_class::unknown) << name;
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

TEST(verdict, an_image_older_than_the_card_needs_ptx) {
  const auto hopper = judge({11, 4}, of_driver("550.54.14", card_class::data_centre, "9.0"));
  EXPECT_EQ(hopper.is, works);
  EXPECT_EQ(hopper.reason, rule::backward_by_ptx);
  EXPECT_THAT(text_of(hopper, language::en), HasSubstr("11.8"));
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

TEST(verdict, every_sentence_is_whole_in_both_languages) {
  for (const auto& row : toolkits()) {
    for (const auto* driver : {"", "390.1", "450.36.06", "470.82.01", "525.60.13", "550.54.14", "590.44.01"}) {
      for (const auto card : {card_class::unknown, card_class::data_centre, card_class::other}) {
        for (const auto* capability : {"", "7.0", "9.0"}) {
          for (const bool mig : {false, true}) {
            auto machine = of_driver(driver, card, capability);
            machine.mig = mig;
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
