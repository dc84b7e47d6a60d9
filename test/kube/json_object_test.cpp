#include "kube/json_object.hpp"

#include <gtest/gtest.h>

#include "kube/projections/pod.hpp"
#include "test/kube/golden.hpp"

namespace {

using namespace kube;

constexpr std::string_view patterns[] = {"quartermaster.io/"};

/// A custom resource as reconcilers declare them.
struct thing : object {
  std::string mode;
  std::vector<std::int64_t> sizes;
  bool paused = false;
  static const resource& of() { return resources::accelerator_nodes; }
  static constexpr encoding wire = encoding::json;
  static result<thing> decode(std::string_view bytes) {
    return on_demand::decode<thing>(bytes, {patterns}, [](thing& thing, std::string_view key, on_demand::value field) {
      if (key != "spec") return;
      on_demand::each_member(field, [&](std::string_view name, on_demand::value value) {
        if (name == "mode") thing.mode = on_demand::text_or(value);
        if (name == "paused") thing.paused = on_demand::flag_or(value, false);
        if (name == "sizes")
          on_demand::each_item(value,
                               [&](on_demand::value size) { thing.sizes.push_back(on_demand::number_or(size, -1)); });
      });
    });
  }
  friend bool operator==(const thing&, const thing&) = default;
};
static_assert(projection<thing>);

constexpr std::string_view full_object =
    R"({"apiVersion":"quartermaster.io/v1alpha1","kind":"AcceleratorNode","metadata":{
  "name":"gpu-1","uid":"0a1b2c3d-4e5f-4678-9abc-def012345678","resourceVersion":"123","generation":4,
  "creationTimestamp":"2026-07-01T10:20:30Z","deletionTimestamp":"2026-07-02T00:00:00Z","labels":{"b":"2","a":"\u00e41"},
  "annotations":{"quartermaster.io/x":"y","other":"z"},"managedFields":[{"fieldsV1":{"f:x":{"deep":[[[]]]}}}],
  "ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"gpu-1","uid":"0a1b2c3d-4e5f-4678-9abc-def012345679","controller":true}]},
  "spec":{"mode":"vgpu","unknown":{"a":[1,{"b":2}]},"sizes":[1,"x",3],"paused":true},"status":{"big":[1,2,3]}})";

TEST(json_object, reads_metadata_and_hands_on_the_rest) {
  const auto made = thing::decode(full_object);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->key, (object_key{"", "gpu-1"}));
  EXPECT_EQ(made->id.to_string(), "0a1b2c3d-4e5f-4678-9abc-def012345678");
  EXPECT_EQ(made->resource_version, 123u);
  EXPECT_EQ(made->generation, 4);
  EXPECT_EQ(made->created, 1782901230);
  EXPECT_TRUE(made->deleting);
  EXPECT_EQ(made->labels, packed_map::of({{"a", "ä1"}, {"b", "2"}}));
  EXPECT_EQ(made->annotations, packed_map::of({{"quartermaster.io/x", "y"}}));
  ASSERT_EQ(made->owners.size(), 1u);
  EXPECT_EQ(made->owners[0].kind, "Node");
  EXPECT_TRUE(made->owners[0].controller);
  EXPECT_EQ(made->mode, "vgpu");
  EXPECT_EQ(made->sizes, (std::vector<std::int64_t>{1, -1, 3}));
  EXPECT_TRUE(made->paused);
}

TEST(json_object, reads_the_same_metadata_from_json_as_from_protobuf) {
  object from_json;
  ASSERT_TRUE(on_demand::read_object("Pod", golden::read("pod_gpu.json"), from_json, keep_none, [](auto, auto) {}));
  auto from_wire = *pod::decode(golden::read("pod_gpu.pb"));
  from_json.labels = from_wire.labels;  // a pod keeps fewer
  from_wire.annotations = {};
  EXPECT_TRUE(static_cast<const object&>(from_wire) == from_json);
}

TEST(json_object, takes_null_for_absent) {
  const auto made =
      thing::decode(R"({"metadata":{"name":"a","labels":null,"ownerReferences":null,"creationTimestamp":null,
    "deletionTimestamp":null,"generation":null},"spec":null})");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_FALSE(made->deleting);
  EXPECT_EQ(made->created, 0);
}

TEST(json_object, is_equal_when_read_twice) { EXPECT_TRUE(*thing::decode(full_object) == *thing::decode(full_object)); }

TEST(json_object, does_not_remember_the_document_before) {
  ASSERT_TRUE(thing::decode(full_object));
  const auto made = thing::decode(R"({"metadata":{"name":"b"}})");
  ASSERT_TRUE(made);
  EXPECT_TRUE(made->labels.empty() && made->mode.empty() && made->owners.empty());
}

TEST(json_object, F11_garbage_is_a_decode_error_that_names_what_it_can) {
  for (const auto* text : {"", "null", "[]", "{", "{\"metadata\":7}", "{\"metadata\":{}}", "\xff",
                           "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"mode\":"}) {
    const auto made = thing::decode(text);
    ASSERT_FALSE(made) << text;
    EXPECT_EQ(made.error().code, errc::decode);
    EXPECT_TRUE(made.error().message.starts_with("AcceleratorNode")) << made.error().message;
  }
}

TEST(json_object, names_the_field_that_is_of_another_form) {
  const auto problem = [](const char* text) { return thing::decode(text).error().message; };
  EXPECT_EQ(problem(R"({"metadata":{"name":"a","labels":["x"]}})").substr(0, 34), "AcceleratorNode a: metadata.labels");
  EXPECT_EQ(problem(R"({"metadata":7})").substr(0, 26), "AcceleratorNode: metadata ");
}

TEST(json_object, F10_a_truncated_document_is_never_read_past_its_end) {
  for (std::size_t size = 0; size < full_object.size(); ++size)
    EXPECT_FALSE(thing::decode(std::string(full_object.substr(0, size)))) << size;
}

TEST(json_object, reads_times_as_seconds) {
  EXPECT_EQ(on_demand::seconds_of("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(on_demand::seconds_of("2026-07-01T10:20:30Z"), 1782901230);
  EXPECT_EQ(on_demand::seconds_of("2026-07-01T10:20:30.123456Z"), 1782901230);
  EXPECT_EQ(on_demand::seconds_of("2024-02-29T00:00:00Z"), 1709164800);
  for (const auto* text :
       {"", "x", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-07-01", "20a6-07-01T10:20:30Z"}) {
    EXPECT_EQ(on_demand::seconds_of(text), 0) << text;
  }
}

}  // namespace
