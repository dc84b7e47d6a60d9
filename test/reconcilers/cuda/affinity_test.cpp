#include "reconcilers/cuda/affinity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "node.hpp"
#include "test/facts_in.hpp"
#include "test/rounds.hpp"

namespace reconcilers::cuda {
namespace {

using nlohmann::json;
using kind = merge::kind;
using testing::HasSubstr;

std::string shape(const std::optional<terms>& terms) {
  if (!terms) return "too many";
  std::string out;
  for (const auto& all : *terms) {
    out += out.empty() ? "" : " | ";
    for (std::size_t i = 0; i < all.size(); ++i) {
      out += (i == 0 ? "" : " & ") + all[i].key + " " + all[i].op;
      for (const auto& value : all[i].values) out += " " + value;
    }
  }
  return out;
}

std::optional<terms> of_annotation(std::string_view text, property about = property::cuda,
                                   const vocabulary& vocabulary = {}) {
  const auto needed = parse_annotation(text, about);
  if (!needed) return std::nullopt;
  return terms_of({&*needed, 1}, vocabulary);
}

TEST(affinity, S30_pairs_take_two_alternatives) {
  EXPECT_EQ(shape(of_annotation(">=12.4")),
            "cuda-major-version Gt 12 | cuda-major-version In 12 & cuda-minor-version Gt 3");
  EXPECT_EQ(shape(of_annotation(">=12.0")), "cuda-major-version Gt 11") << "Gt takes no -1";
  EXPECT_EQ(shape(of_annotation(">=12.1")),
            "cuda-major-version Gt 12 | cuda-major-version In 12 & cuda-minor-version Gt 0");
  EXPECT_EQ(shape(of_annotation(">=0.0")), "cuda-major-version Exists");
  EXPECT_EQ(shape(of_annotation(">12.4")),
            "cuda-major-version Gt 12 | cuda-major-version In 12 & cuda-minor-version Gt 4");
  EXPECT_EQ(shape(of_annotation("<12.4")),
            "cuda-major-version Lt 12 | cuda-major-version In 12 & cuda-minor-version Lt 4");
  EXPECT_EQ(shape(of_annotation("<13")), "cuda-major-version Lt 13");
  EXPECT_EQ(shape(of_annotation("=12.4")), "cuda-major-version In 12 & cuda-minor-version In 4");
  EXPECT_EQ(shape(of_annotation(">=12.4,<13")), "cuda-major-version In 12 & cuda-minor-version Gt 3");
  EXPECT_EQ(shape(of_annotation(">=8.0", property::arch)), "nvidia.com/gpu.compute.major Gt 7");
  EXPECT_EQ(shape(of_annotation(">=12.4,<12.0")), "") << "nowhere";
}

TEST(affinity, nodes_without_the_manuals_labels_are_asked_by_what_was_found) {
  EXPECT_EQ(shape(of_annotation(">=12.0", property::cuda, {.manual = true, .found = true})),
            "cuda-major-version Gt 11 | cuda-major-version DoesNotExist & nvidia.com/cuda.runtime-version.major Gt 11");
  const auto found = facts_of(node_with(discovered("12.4", "", "")));
  const auto manual = facts_of(node_with(labelled("12.4")));
  const auto nothing = facts_of(node_with({}));
  const auto needs_found = [](std::vector<const node_facts*> nodes) { return vocabulary_of(nodes).found; };
  EXPECT_FALSE(needs_found({}));
  EXPECT_FALSE(needs_found({&manual, &nothing}));
  EXPECT_TRUE(needs_found({&manual, &found}));
}

TEST(affinity, an_image_of_nvidia_fits_into_few_terms) {
  std::string image = "cuda>=12.4";
  for (const auto* brand : {"tesla", "unknown", "nvidia", "nvidiartx", "geforce", "geforcertx", "quadro", "quadrortx",
                            "titan", "titanrtx"}) {
    for (const int branch : {470, 525, 535})
      image += std::string(" brand=") + brand + ",driver>=" + std::to_string(branch) + ",driver<" +
               std::to_string(branch + 1);
  }
  const auto needed = parse_requirement(image);
  ASSERT_TRUE(needed);
  const auto is = terms_of({&*needed, 1}, {});
  ASSERT_TRUE(is);
  EXPECT_EQ(is->size(), 5U) << shape(is);
}

TEST(affinity, S28_brute_force_terms_match_exactly_where_the_requirement_is_met) {
  std::mt19937 dice(20260701);
  const auto throw_up_to = [&](int n) { return std::uniform_int_distribution<int>(0, n)(dice); };
  const auto any_of = [&](auto list) {
    return *(std::begin(list) + throw_up_to(static_cast<int>(std::size(list)) - 1));
  };
  const std::array operators{">=", ">", "<=", "<", "=", "!="};
  const auto condition_text = [&] {
    const auto any = any_of(std::array{"cuda", "cuda", "arch", "driver", "brand"});
    if (std::string_view(any) == "brand") return std::string("brand=tesla");
    std::string value = std::to_string(std::string_view(any) == "driver" ? 524 + throw_up_to(3) : throw_up_to(4));
    if (throw_up_to(4) > 0) value += "." + std::to_string(throw_up_to(3));
    if (std::string_view(any) == "driver" && value.contains('.') && throw_up_to(1))
      value += "." + std::to_string(throw_up_to(11));
    return any + std::string(any_of(operators)) + value;
  };
  const int rounds = test::rounds(150, 1'500);
  int judged = 0, met = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<requirement> needed;
    for (int i = throw_up_to(1); i >= 0; --i) {
      std::string text;
      for (int terms_left = throw_up_to(2); terms_left >= 0; --terms_left) {
        for (int factors = throw_up_to(2); factors >= 0; --factors)
          text += condition_text() + (factors > 0 ? "," : " ");
      }
      auto requirement = parse_requirement(text);
      ASSERT_TRUE(requirement) << text;
      requirement->text = text;
      needed.push_back(std::move(*requirement));
    }
    const auto terms = terms_of(needed, {.manual = true, .found = true});
    if (!terms) continue;
    for (int i = 0; i < 12; ++i) {
      const auto some = [&](int most) {
        return std::to_string(throw_up_to(most)) + "." + std::to_string(throw_up_to(4));
      };
      const auto driver = std::to_string(523 + throw_up_to(5)) + "." + std::to_string(throw_up_to(4)) + "." +
                          std::to_string(throw_up_to(12));
      auto labels =
          discovered(throw_up_to(2) ? some(5) : "", throw_up_to(3) ? driver : "", throw_up_to(3) ? some(5) : "");
      if (throw_up_to(1)) {
        for (auto& entry : labelled(some(5))) labels.push_back(std::move(entry));
      }
      const auto node = node_with(labels);
      const bool is = matches(*terms, node.labels);
      const bool should = meets(facts_of(node), needed) == fit::yes;
      ASSERT_EQ(is, should) << needed.front().text << " / " << needed.back().text << "\n"
                            << shape(terms) << "\n"
                            << describe(facts_of(node));
      ++judged;
      met += should;
    }
  }
  EXPECT_GT(judged, 6 * rounds);
  EXPECT_GT(met, judged / 20);
  EXPECT_LT(met, judged - judged / 20);
}

json own_terms() {
  return json::parse(R"([
    {"matchExpressions":[{"key":"zone","operator":"In","values":["a"]}]},
    {"matchExpressions":[{"key":"zone","operator":"In","values":["b"]}],
     "matchFields":[{"key":"metadata.name","operator":"In","values":["gpu-1"]}]}])");
}

TEST(affinity, a_pods_own_terms_are_multiplied) {
  const auto needed = *of_annotation(">=12.4");
  EXPECT_EQ(merged(json(), needed).terms.size(), 2U);
  const auto both = merged(own_terms(), needed);
  ASSERT_EQ(both.is, kind::changed);
  ASSERT_EQ(both.terms.size(), 4U) << both.terms.dump(1);
  EXPECT_EQ(both.terms[0], json::parse(R"({"matchExpressions":[{"key":"zone","operator":"In","values":["a"]},
      {"key":"cuda-major-version","operator":"Gt","values":["12"]}]})"));
  EXPECT_EQ(both.terms[2]["matchFields"], own_terms()[1]["matchFields"]);
  EXPECT_EQ(merged(both.terms, needed).is, kind::unchanged) << "the webhook may be asked again";
}

TEST(affinity, terms_that_match_nothing_stay_so) {
  const auto needed = *of_annotation(">=12.4");
  auto own = own_terms();
  own.push_back(json::object());
  EXPECT_EQ(merged(own, needed).terms.size(), 4U);
  EXPECT_EQ(merged(json::parse("[{}]"), needed).is, kind::contradiction);
  EXPECT_EQ(
      merged(json::parse(R"([{"matchExpressions":[{"key":"cuda-major-version","operator":"In","values":["11"]}]}])"),
             needed)
          .is,
      kind::contradiction);
  EXPECT_EQ(merged(own_terms(), terms()).is, kind::contradiction);
  EXPECT_EQ(merged(own_terms(), terms{{}}).is, kind::unchanged);
}

TEST(affinity, too_many_alternatives_are_said_not_written) {
  std::string image;
  for (int i = 0; i < 40; ++i) image += "cuda=" + std::to_string(i) + ".1 ";
  const auto needed = parse_requirement(image);
  ASSERT_TRUE(needed);
  const auto is = terms_of({&*needed, 1}, {});
  ASSERT_TRUE(is);
  EXPECT_EQ(merged(own_terms(), *is).is, kind::too_many);
  EXPECT_EQ(shape(terms_of({&*needed, 1}, {.manual = true, .found = true})), "too many");
}

json pod_with(const char* terms) {
  return {{"affinity",
           {{"nodeAffinity",
             {{"requiredDuringSchedulingIgnoredDuringExecution", {{"nodeSelectorTerms", json::parse(terms)}}}}}}}};
}

TEST(affinity, S30_the_manuals_own_affinity_shuts_out_13_and_the_first_of_12) {
  const auto manual = judge_affinity(pod_with(R"([{"matchExpressions":[
      {"key":"cuda-major-version","operator":"In","values":["12"]},
      {"key":"cuda-minor-version","operator":"Gt","values":["2"]}]}])"));
  ASSERT_TRUE(manual);
  EXPECT_EQ(manual->versions, "13.x and 12.0-12.2");
  EXPECT_EQ(manual->oldest, (version{12, 3}));
  EXPECT_THAT(text_of(*manual), words::has_in_order({"(major Gt 12) ", "(major In [12]", "minor Gt 2)"}));
  EXPECT_THAT(text_of(*manual), words::has_in_order({"quartermaster.io/cuda", "12.3"}));
}

TEST(affinity, S30_a_widened_major_shuts_out_the_first_of_13) {
  const auto widened = judge_affinity(pod_with(R"([{"matchExpressions":[
      {"key":"zone","operator":"In","values":["a"]},
      {"key":"cuda-major-version","operator":"In","values":["12","13"]},
      {"key":"cuda-minor-version","operator":"Gt","values":["2"]}]}])"));
  ASSERT_TRUE(widened);
  EXPECT_EQ(widened->versions, "13.x and 12.0-12.2");
}

TEST(affinity, one_that_compares_pairs_is_let_be) {
  EXPECT_FALSE(judge_affinity(json::object()));
  EXPECT_FALSE(judge_affinity({{"affinity", nullptr}}));
  EXPECT_FALSE(judge_affinity({{"affinity", 7}}));
  EXPECT_FALSE(judge_affinity(pod_with(R"([{"matchExpressions":[{"key":"zone","operator":"In","values":["a"]}]}])")));
  EXPECT_FALSE(judge_affinity(pod_with(R"([
      {"matchExpressions":[{"key":"cuda-major-version","operator":"Gt","values":["12"]}]},
      {"matchExpressions":[{"key":"cuda-major-version","operator":"In","values":["12"]},
                           {"key":"cuda-minor-version","operator":"Gt","values":["2"]}]}])")));
  const auto needed = merged(json(), *of_annotation(">=12.3"));
  EXPECT_FALSE(judge_affinity(pod_with(needed.terms.dump().c_str())));
}

}  // namespace
}  // namespace reconcilers::cuda
