// One file and one name in a list make a module: everything that names, offers, enrols and rolls out modules then knows
// the dummy of dummy.cpp.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reconcilers/modules/catalogue.hpp"
#include "reconcilers/nodes/intent.hpp"

namespace reconcilers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(add_module, is_found_by_its_name_and_its_resource) {
  const auto* found = modules::find("dummy");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(modules::advertiser("example.com/dummy"), found);
  EXPECT_THAT(modules::names_for_people(), HasSubstr("dummy"));
}

TEST(add_module, a_label_enrols_a_node_in_it) {
  accelerator_policy policy;
  policy.modules["dummy"].enabled = true;
  kube::node node;
  node.key.name = "a";
  node.labels = kube::packed_map::of({{"nvidia-device-enable", "dummy"}});
  const auto intent = intent_of(node, &policy);
  ASSERT_EQ(intent.type, node_intent::kind::mode) << intent.message.key;
  EXPECT_EQ(intent.mode->name, "dummy");
}

TEST(add_module, its_objects_get_what_all_our_objects_have) {
  const auto all = modules::intents_of(*modules::find("dummy"), {}, {"quartermaster", "image", "default", "uid"});
  ASSERT_EQ(all.size(), 1U);
  const auto set = nlohmann::json::parse(all[0].body);
  EXPECT_EQ(set["kind"], "DaemonSet");
  EXPECT_EQ(set["metadata"]["name"], "dummy-device-plugin");
  EXPECT_EQ(set["metadata"]["labels"]["quartermaster.io/module"], "dummy");
  EXPECT_EQ(set["metadata"]["ownerReferences"][0]["name"], "default");
  EXPECT_EQ(set["spec"]["updateStrategy"]["type"], "OnDelete");
  EXPECT_THAT(modules::daemon_sets_of(*modules::find("dummy"), {}), ElementsAre("dummy-device-plugin"));
}

}  // namespace
}  // namespace reconcilers
