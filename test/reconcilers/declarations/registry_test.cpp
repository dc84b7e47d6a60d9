#include "reconcilers/declarations/registry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "reconcilers/declarations/compiled.hpp"
#include "reconcilers/declarations/verdict.hpp"
#include "test/reconcilers/declarations/config_maps.hpp"
#include "test/rounds.hpp"

namespace reconcilers::declarations {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::string old_domain = "features.alauda.io/";
const config_map_text vcuda_core = sound("tencent.com/vcuda-core", "gpu-manager", old_domain);
const config_map_text vcuda_memory = sound("tencent.com/vcuda-memory", "gpu-manager", old_domain);

registry filled(const std::vector<config_map_text>& config_maps) {
  registry out;
  for (const auto& config_map : config_maps) out.put(config_map.view());
  return out;
}

std::vector<std::string> codes(const registry& registry, const config_map_text& config_map_text) {
  std::vector<std::string> out;
  for (const auto& f : registry.judge(config_map_text.key).findings) out.emplace_back(to_string(f.kind));
  return out;
}

TEST(registry, S25_a_group_in_which_nothing_is_required_or_filled_asks_for_nothing) {
  const auto rules = filled({vcuda_core, vcuda_memory}).compile();
  EXPECT_EQ(rules.rules.size(), 2U);
  EXPECT_THAT(rules.groups, IsEmpty());
}

TEST(registry, S25_a_group_with_a_required_key_lists_its_members) {
  const auto rules = filled({vcuda_core, vcuda_memory.with("limits", "required")}).compile();
  ASSERT_EQ(rules.groups.size(), 1U);
  EXPECT_THAT(rules.groups[0].members, ElementsAre("tencent.com/vcuda-core", "tencent.com/vcuda-memory"));
  const auto* memory = rules.find("tencent.com/vcuda-memory");
  EXPECT_TRUE(memory->must);
  EXPECT_EQ(memory->fill, 1);
  EXPECT_FALSE(rules.find("tencent.com/vcuda-core")->must);
}

TEST(registry, S24_an_optional_default_is_filled_only_where_the_policy_says_so) {
  const auto all = filled({vcuda_core, vcuda_memory});
  compile_options options;
  EXPECT_FALSE(all.compile(options).find("tencent.com/vcuda-memory")->fill);
  options.fill_optional = true;
  EXPECT_EQ(all.compile(options).find("tencent.com/vcuda-memory")->fill, 1);
}

TEST(registry, S24_a_default_of_nothing_is_none) {
  const auto rules = filled({sound().with("limits", "required").with("defaultValue", "0")}).compile();
  EXPECT_FALSE(rules.find("example.com/fpga")->fill);
}

TEST(registry, F36_a_declaration_edited_into_an_error_keeps_its_last_good_rule) {
  auto all = filled({sound().with("limits", "required")});
  const auto good = all.compile();
  all.put(sound().with("limits", "maybe").view());
  compile_options options;
  EXPECT_THAT(all.compile(options).rules, IsEmpty());
  options.last = &good;
  EXPECT_EQ(all.compile(options), good);
  all.put(sound().with("limits", "maybe").labelled("features.cpaas.io/enabled", "false").view());
  EXPECT_THAT(all.compile(options).rules, IsEmpty()) << "switched off";
  all.put(sound().labelled("features.cpaas.io/enabled", "ture").view());
  EXPECT_EQ(all.compile(options), good) << "whether it is switched off cannot be read";
  all.put(sound().with("limits", "optional").view());
  EXPECT_FALSE(all.compile(options).rules[0].must) << "mended";
  all.put(sound("example.com/other").named(sound().key.name).view());
  EXPECT_EQ(all.compile(options).find("example.com/fpga"), nullptr) << "it declares another key now";
  all.erase(sound().key);
  EXPECT_THAT(all.compile(options).rules, IsEmpty()) << "deleted";
}

TEST(registry, F36_a_kept_rule_writes_no_runtime_class_that_is_gone) {
  auto all = filled({sound().with("runtimeClassName", "nvidia")});
  all.set_runtime_classes({{"nvidia"}});
  const auto good = all.compile();
  EXPECT_EQ(good.rules[0].runtime_class, "nvidia");
  all.put(sound().with("runtimeClassName", "nvidia").with("limits", "maybe").view());
  compile_options options;
  options.last = &good;
  EXPECT_EQ(all.compile(options), good);
  all.set_runtime_classes(std::set<std::string, std::less<>>());
  EXPECT_EQ(all.compile(options).rules[0].runtime_class, "");
}

TEST(registry, F36_what_nodes_and_policy_say_of_a_kept_rule_is_as_they_say_now) {
  auto all = filled({sound("example.com/a", "g").with("limits", "required"), sound("example.com/b", "g")});
  std::set<std::string, std::less<>> offered;
  compile_options options;
  options.offered = &offered;
  options.fill_optional = true;
  const auto good = all.compile(options);
  EXPECT_EQ(good.find("example.com/b")->fill, 1);
  EXPECT_FALSE(good.find("example.com/b")->offered);
  all.put(sound("example.com/a", "g").with("limits", "maybe").view());
  all.put(sound("example.com/b", "g").with("limits", "maybe").view());
  options.last = &good;
  EXPECT_EQ(all.compile(options), good);
  offered = {"example.com/a", "example.com/b"};
  options.fill_optional = false;
  const auto now = all.compile(options);
  EXPECT_TRUE(now.find("example.com/a")->offered);
  EXPECT_EQ(now.find("example.com/a")->fill, 1) << "required: no wish of the policy";
  EXPECT_TRUE(now.find("example.com/b")->offered);
  EXPECT_FALSE(now.find("example.com/b")->fill);
}

TEST(registry, F35_F36_a_declaration_overwritten_with_a_mebibyte_of_anything_keeps_its_last_good_rule) {
  auto all = filled({sound().with("limits", "required")});
  const auto good = all.compile();
  compile_options options;
  options.last = &good;
  for (const auto fill : {'<', '\x01', '\xff', '{', '9'}) {
    for (const auto field : {"key", "limits", "requests", "defaultValue", "group"}) {
      all.put(sound().with("limits", "required").with(field, std::string(1 << 20, fill)).view());
      EXPECT_EQ(all.compile(options), good) << field << " " << static_cast<int>(fill);
      EXPECT_TRUE(has_error(all.judge(sound().key).findings)) << field;
    }
  }
  config_map_text many = sound().with("limits", "maybe");
  for (int i = 0; i < 10'000; ++i) many.data["field-" + std::to_string(i)] = "x";
  all.put(many.view());
  EXPECT_EQ(all.compile(options), good);
  all.put(sound().with("groupI18n", "{" + std::string(1 << 20, '[') + "}").with("limits", "required").view());
  EXPECT_EQ(all.compile(), good) << "names for people that cannot be read are no error";
}

TEST(registry, a_runtime_class_that_does_not_exist_is_said_and_not_filled_in) {
  const auto declared = sound().with("runtimeClassName", "nvidai");
  auto all = filled({declared});
  EXPECT_THAT(codes(all, declared), IsEmpty()) << "not known what there is";
  all.set_runtime_classes(std::set<std::string, std::less<>>{"kata", "nvidia"});
  EXPECT_THAT(codes(all, declared), ElementsAre("runtime_class_unknown"));
  EXPECT_EQ(all.judge(declared.key).findings[0].hint, "nvidia");
  EXPECT_EQ(all.compile().find("example.com/fpga")->runtime_class, "");
  EXPECT_THAT(all.with_runtime_class(), ElementsAre(declared.key));
  all.set_runtime_classes(std::set<std::string, std::less<>>{"nvidai"});
  EXPECT_THAT(codes(all, declared), IsEmpty());
  EXPECT_EQ(all.compile().find("example.com/fpga")->runtime_class, "nvidai");
}

TEST(registry, a_key_no_node_offers_is_marked_unless_nobody_cares) {
  const auto all =
      filled({sound("example.com/a"), sound("example.com/b").with("ignoreNodeCheck", "true"), sound("example.com/c")});
  const std::set<std::string, std::less<>> offered{"example.com/c"};
  compile_options options;
  options.offered = &offered;
  const auto rules = all.compile(options);
  EXPECT_FALSE(rules.find("example.com/a")->offered);
  EXPECT_TRUE(rules.find("example.com/b")->offered);
  EXPECT_TRUE(rules.find("example.com/c")->offered);
}

TEST(registry, S25_exclusions_hold_both_ways_across_dialects) {
  const auto mps = sound("nvidia.com/mps-core", "mps").with("excludeResources", "tencent.com/vcuda-core");
  const auto all = filled({vcuda_core, vcuda_memory, mps});
  EXPECT_THAT(codes(all, vcuda_core), IsEmpty()) << "its dialect has no field to answer in";
  const auto rules = all.compile();
  EXPECT_THAT(rules.find("nvidia.com/mps-core")->excluded, ElementsAre("tencent.com/vcuda-core"));
  EXPECT_THAT(rules.find("tencent.com/vcuda-core")->excluded, ElementsAre("nvidia.com/mps-core"));
  EXPECT_THAT(rules.find("tencent.com/vcuda-memory")->excluded, IsEmpty());
}

TEST(registry, an_exclusion_without_answer_is_said_where_it_should_stand) {
  const auto a = sound("example.com/a", "a").with("excludeResources", "example.com/b");
  const auto b = sound("example.com/b", "b");
  const auto all = filled({a, b});
  EXPECT_THAT(codes(all, a), IsEmpty());
  EXPECT_THAT(codes(all, b), ElementsAre("exclusion_not_mutual"));
  const auto mutual = filled({a, b.with("excludeResources", "example.com/a")});
  EXPECT_THAT(codes(mutual, b), IsEmpty());
}

TEST(registry, an_exclusion_without_answer_is_told_to_the_later_and_never_to_the_operators_own) {
  auto naming = sound("example.com/a", "a").with("excludeResources", "example.com/b");
  auto named = sound("example.com/b", "b");
  const auto find_codes = [&](std::int64_t first, std::int64_t second) {
    naming.created = first, named.created = second;
    const auto all = filled({naming, named});
    return std::pair(codes(all, naming), codes(all, named));
  };
  const std::vector<std::string> none, here{"exclusion_not_answered"}, there{"exclusion_not_mutual"};
  EXPECT_EQ(find_codes(2, 1), std::pair(here, none));
  EXPECT_EQ(find_codes(1, 2), std::pair(none, there));
  named.labels["app.kubernetes.io/managed-by"] = "quartermaster";
  EXPECT_EQ(find_codes(1, 2), std::pair(here, none)) << "the operator's own, made later";
  EXPECT_EQ(find_codes(2, 1), std::pair(here, none));
  naming.labels["app.kubernetes.io/managed-by"] = "quartermaster";
  EXPECT_EQ(find_codes(1, 2), std::pair(none, there)) << "both are";
  named.labels.erase("app.kubernetes.io/managed-by");
  EXPECT_EQ(find_codes(2, 1), std::pair(none, there)) << "a person's";
}

TEST(registry, of_two_that_declare_one_key_the_older_counts) {
  auto older = sound().named("cf-crl-z");
  auto newer = sound().named("cf-crl-a").with("limits", "required");
  older.created = 1;
  newer.created = 2;
  const auto all = filled({newer, older});
  EXPECT_THAT(codes(all, newer), ElementsAre("duplicate_key"));
  EXPECT_THAT(codes(all, older), IsEmpty()) << "one mistake is one finding";
  const auto rules = all.compile();
  ASSERT_EQ(rules.rules.size(), 1U);
  EXPECT_EQ(rules.rules[0].config_map, older.key);
  EXPECT_FALSE(rules.rules[0].must);
}

TEST(registry, a_broken_or_switched_off_duplicate_never_displaces_a_sound_one) {
  auto broken = sound().named("cf-crl-a").with("limits", "maybe");
  auto disabled = sound().named("cf-crl-b").labelled("features.cpaas.io/enabled", "false");
  auto good = sound().named("cf-crl-c");
  good.created = 99;
  const auto all = filled({broken, disabled, good});
  EXPECT_EQ(all.compile().rules.at(0).config_map, good.key);
  EXPECT_THAT(codes(all, disabled), IsEmpty()) << "a variant that is switched off is legitimate";
  EXPECT_THAT(codes(all, broken), ElementsAre("not_in_vocabulary", "duplicate_key"));
}

TEST(registry, related_keys_must_be_declared_and_in_force) {
  const auto a = sound("example.com/a", "g").with("relatedResources", "example.com/b,example.com/memry");
  const auto b = sound("example.com/b", "g").labelled("features.cpaas.io/enabled", "false");
  const auto memory = sound("example.com/memory", "g");
  const auto all = filled({a, b, memory});
  EXPECT_THAT(codes(all, a), ElementsAre("related_unknown", "related_not_in_force"));
  EXPECT_EQ(all.judge(a.key).findings[0].hint, "example.com/memory");
  EXPECT_THAT(all.compile().find("example.com/a")->related, IsEmpty()) << "what is not declared cannot be asked for";
}

TEST(registry, what_follows_from_anothers_finding_is_not_said) {
  const auto a = sound("example.com/a", "g").with("relatedResources", "example.com/b");
  const auto b = sound("example.com/b", "g");
  const auto find_codes = [&](const config_map_text& other) { return codes(filled({a, other}), a); };
  EXPECT_THAT(find_codes(b.with("limits", "maybe")), IsEmpty()) << "the other is refused and says why";
  EXPECT_THAT(find_codes(b.with("key", "Example.com/b")), IsEmpty()) << "its key cannot be read, and may be the one";
  EXPECT_THAT(find_codes(b.labelled("features.cpaas.io/enabled", "yes")), IsEmpty());
  const auto disabled = b.with("limits", "required").labelled("features.cpaas.io/enabled", "false");
  EXPECT_THAT(find_codes(disabled), IsEmpty()) << "the other says that the group misses it";
  EXPECT_THAT(codes(filled({a, disabled}), disabled), ElementsAre("group_member_off"));
  EXPECT_THAT(find_codes(sound("example.com/c", "g")), ElementsAre("related_unknown"));
  const auto own = a.with("key", "Example.com/a");
  EXPECT_THAT(codes(filled({own}), own), ElementsAre("key_malformed", "related_unknown")) << "two mistakes";
}

TEST(registry, members_of_a_group_should_agree) {
  const auto first =
      sound("example.com/a", "g").with("groupI18n", R"({"zh":"组","en":"G"})").with("runtimeClassName", "nvidia");
  const auto second =
      sound("example.com/b", "g").with("groupI18n", R"({"zh":"组","en":"H"})").with("runtimeClassName", "kata");
  const auto all = filled({second, first});
  EXPECT_THAT(codes(all, first), IsEmpty());
  EXPECT_THAT(codes(all, second), ElementsAre("group_names_differ", "group_runtime_differs"));
}

TEST(registry, a_required_member_of_a_group_switched_off_is_said) {
  const auto disabled = vcuda_memory.with("limits", "required").labelled(old_domain + "enabled", "false");
  const auto all = filled({vcuda_core, disabled});
  EXPECT_THAT(codes(all, disabled), ElementsAre("group_member_off"));
  const auto optional = vcuda_memory.labelled(old_domain + "enabled", "false");
  EXPECT_THAT(codes(filled({vcuda_core, optional}), optional), IsEmpty());
}

TEST(registry, a_group_cannot_require_what_a_member_excludes) {
  const auto odd = vcuda_core.with("excludeResources", "tencent.com/vcuda-memory");
  EXPECT_THAT(codes(filled({odd, vcuda_memory}), odd), IsEmpty()) << "two optional ones are alternatives";
  const auto all = filled({odd, vcuda_memory.with("limits", "required")});
  EXPECT_THAT(codes(all, odd), ElementsAre("group_excludes_member"));
  EXPECT_EQ(all.compile().find("tencent.com/vcuda-core"), nullptr);
}

TEST(registry, two_devices_with_one_node_label_cannot_be_told_apart) {
  const auto a = device("Huawei", "ascend");
  const auto b = device("HAMi-Ascend", "ascend");
  const auto all = filled({a, b, device("HAMi", "gpu")});
  EXPECT_THAT(codes(all, a), ElementsAre("device_label_shared")) << "of equal age the one that is later by name";
  EXPECT_THAT(codes(all, b), IsEmpty());
  EXPECT_EQ(all.devices().size(), 3U);
  auto younger = b;
  younger.created = 7;
  const auto aged = filled({a, younger});
  EXPECT_THAT(codes(aged, a), IsEmpty());
  EXPECT_THAT(codes(aged, younger), ElementsAre("device_label_shared"));
  EXPECT_EQ(all.judge(a.key).key, "ascend=on");
}

TEST(registry, S27_needs_no_code_for_a_key_nobody_knows) {
  const auto rules =
      filled({sound("example.com/fpga", "lab").with("limits", "required").with("requests", "fromLimits")}).compile();
  const auto* fpga = rules.find("example.com/fpga");
  ASSERT_NE(fpga, nullptr);
  EXPECT_TRUE(fpga->must);
  EXPECT_EQ(fpga->fill, 1);
}

// --- properties over random sets of declarations

config_map_text random_one(std::mt19937& random, int number) {
  const auto pick = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  const auto key = [&] { return "example.com/r" + std::to_string(pick(8)); };
  if (pick(8) == 0) {
    auto out = device("d" + std::to_string(number), "label" + std::to_string(pick(3)));
    return out;
  }
  auto out = sound(key(), "g" + std::to_string(pick(3)), pick(2) ? "features.cpaas.io/" : old_domain)
                 .named("cf-crl-" + std::to_string(number));
  out.created = pick(4);
  if (pick(2)) out.data["relatedResources"] = key() + "," + key();
  if (pick(2)) out.data["excludeResources"] = key() + "," + key();
  if (pick(4) == 0) out.data["groupI18n"] = pick(2) ? R"({"zh":"a","en":"b"})" : R"({"zh":"a","en":"c"})";
  if (pick(4) == 0) out.data["runtimeClassName"] = pick(2) ? "nvidia" : "kata";
  if (pick(6) == 0) out.data["limits"] = pick(3) == 0 ? "maybe" : "required";
  if (pick(12) == 0) out.data["key"] = "Example.com/r";
  if (pick(12) == 0) out.data["defaultValue"] = "a";
  if (pick(5) == 0) {
    for (auto& [name, value] : out.labels) value = name.ends_with("enabled") ? "false" : value;
  }
  return out;
}

TEST(registry, gives_the_same_rules_and_verdicts_in_whatever_order) {
  std::mt19937 random(20261121);
  for (int round = 0; round < test::rounds(40, 200); ++round) {
    std::vector<config_map_text> config_maps;
    for (int i = 0; i < 12; ++i) config_maps.push_back(random_one(random, i));
    const auto before = filled(config_maps);
    std::ranges::shuffle(config_maps, random);
    const auto after = filled(config_maps);
    ASSERT_EQ(before.compile(), after.compile());
    const std::set<std::string, std::less<>> offered{"example.com/r1", "example.com/r2"};
    compile_options options;
    options.fill_optional = round % 2 == 0;
    options.offered = &offered;
    ASSERT_EQ(spec_of(before.compile(options)).dump(), spec_of(after.compile(options)).dump()) << "the same bytes too";
    ASSERT_EQ(before.judge_all(), after.judge_all());
  }
}

TEST(registry, forgets_what_was_replaced_or_erased) {
  std::mt19937 random(7);
  for (int round = 0; round < test::rounds(40, 200); ++round) {
    registry changed;
    std::vector<config_map_text> last(10);
    for (int step = 0; step < 60; ++step) {
      const auto i = static_cast<int>(random() % 10);
      auto& position = last[static_cast<std::size_t>(i)];
      if (!position.data.empty() && random() % 3 == 0) {
        changed.erase(position.key);
        position = {};
        continue;
      }
      position = random_one(random, i);
      position.key.name = "cf-crl-" + std::to_string(i);
      changed.put(position.view());
    }
    std::erase_if(last, [](const config_map_text& config_map_text) { return config_map_text.data.empty(); });
    const auto fresh = filled(last);
    ASSERT_EQ(changed.compile(), fresh.compile());
    ASSERT_EQ(changed.judge_all(), fresh.judge_all());
  }
}

TEST(registry, a_change_alters_the_verdict_of_neighbours_only) {
  std::mt19937 random(11);
  const int rounds = test::rounds(100, 400);
  int altered = 0;
  for (int round = 0; round < rounds; ++round) {
    registry all;
    std::vector<config_map_text> config_maps;
    for (int i = 0; i < 12; ++i) all.put(config_maps.emplace_back(random_one(random, i)).view());
    const auto before = all.judge_all();
    const auto& old = config_maps[random() % config_maps.size()];
    auto changed = random_one(random, 0);
    changed.key = old.key;
    all.put(changed.view());
    auto near = all.neighbours(changed.view());
    std::ranges::move(all.neighbours(old.view()), std::back_inserter(near));
    for (const auto& was : before) {
      if (was.config_map == changed.key || was == all.judge(was.config_map)) continue;
      ++altered;
      ASSERT_THAT(near, testing::Contains(was.config_map)) << annotation_of(was) << "\n"
                                                           << annotation_of(all.judge(was.config_map));
    }
  }
  EXPECT_GT(altered, rounds / 4) << "the property was put to the test";
}

}  // namespace
}  // namespace reconcilers::declarations
