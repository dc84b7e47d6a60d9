#include "kube/event.hpp"

#include <gtest/gtest.h>

#include "kube/projections/pod.hpp"
#include "test/kube/golden.hpp"

namespace {

using namespace kube;

std::vector<std::string> frames(encoding format) {
  if (format == encoding::protobuf) return golden::split(golden::read("pods.watch.pb"));
  std::vector<std::string> all;
  std::istringstream stream(golden::read("pods.watch.json"));
  for (std::string line; std::getline(stream, line);) all.push_back(line);
  return all;
}

TEST(event, is_read_from_a_recorded_stream_in_both_encodings) {
  struct row {
    event_type type;
    std::string_view version, kind;
    bool ends;
  };
  constexpr row expected[] = {
      {event_type::added, "3", "Pod", false},        {event_type::added, "2", "Pod", false},
      {event_type::bookmark, "5", "Pod", true},      {event_type::modified, "987654", "Pod", false},
      {event_type::deleted, "987660", "Pod", false}, {event_type::bookmark, "987700", "Pod", false},
      {event_type::added, "987701", "Pod", false},   {event_type::error, "", "Status", false},
  };
  for (const auto format : {encoding::protobuf, encoding::json}) {
    const auto all = frames(format);
    ASSERT_EQ(all.size(), std::size(expected));
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto made = read_event(all[i], format);
      ASSERT_TRUE(made) << made.error().message;
      EXPECT_EQ(made->type, expected[i].type) << i;
      EXPECT_EQ(made->resource_version, expected[i].version) << i;
      EXPECT_EQ(made->kind, expected[i].kind) << i;
      EXPECT_EQ(made->initial_events_end, expected[i].ends) << i;
      EXPECT_GE(made->object.data(), all[i].data());
      EXPECT_LE(made->object.data() + made->object.size(), all[i].data() + all[i].size());
    }
  }
}

TEST(event, holds_the_object_a_projection_decodes) {
  const auto all = frames(encoding::protobuf);
  const auto made = pod::decode(read_event(all[3], encoding::protobuf)->object);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(*made, *pod::decode(golden::read("pod_gpu.pb")));
}

TEST(event, holds_json_that_can_be_parsed_by_itself) {
  const auto all = frames(encoding::json);
  EXPECT_EQ(nlohmann::json::parse(read_event(all[3], encoding::json)->object), golden::read_json("pod_gpu.json"));
}

TEST(event, F55_of_an_unknown_type_is_no_error) {
  const auto made =
      read_event(R"({"type":"RENAMED","object":{"kind":"Pod","metadata":{"resourceVersion":"9"},"new":[{}]},"x":1})",
                 encoding::json);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->type, event_type::unknown);
  EXPECT_EQ(made->resource_version, "9");
}

TEST(event, is_read_whatever_the_order_of_its_members) {
  const auto made =
      read_event(R"({"object":{"metadata":{"resourceVersion":"9"},"kind":"Pod"},"type":"ADDED"})", encoding::json);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->type, event_type::added);
  EXPECT_EQ(made->object, R"({"metadata":{"resourceVersion":"9"},"kind":"Pod"})");
}

TEST(event, F11_garbage_is_a_decode_error) {
  std::string deep = R"({"type":"ADDED","object":)";
  deep += std::string(5000, '[') + std::string(5000, ']') + "}";
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("null"), std::string("[]"), std::string("\xff\xfe"),
        std::string(R"({"type":"ADDED"})"), std::string(R"({"object":{}})"), std::string(R"({"type":7,"object":{}})"),
        std::string(R"({"type":"ADDED","object":7})"), std::string(R"({"type":"ADDED","object":{)"), deep}) {
    const auto made = read_event(text, encoding::json);
    ASSERT_FALSE(made) << text.substr(0, 60);
    EXPECT_EQ(made.error().code, errc::decode);
  }
  for (const std::string& bytes : {std::string(), std::string("\xff"), std::string("k8s\0\xff", 5),
                                   std::string("\x0a\x05"
                                               "ADDED",
                                               7) +
                                       "\x12\x7f"}) {
    const auto made = read_event(bytes, encoding::protobuf);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, errc::decode);
  }
}

TEST(event, F10_a_frame_cut_anywhere_is_never_read_past_its_end) {
  for (const auto format : {encoding::protobuf, encoding::json}) {
    const auto frame = frames(format)[6];
    std::size_t refused = 0;
    for (std::size_t size = 0; size < frame.size(); ++size) refused += !read_event(std::string(frame, 0, size), format);
    EXPECT_GT(refused, frame.size() / 2);
  }
}

TEST(list_page, gives_version_token_and_items_in_both_encodings) {
  for (const auto format : {encoding::protobuf, encoding::json}) {
    const auto body = golden::read(format == encoding::protobuf ? "pods.list.pb" : "pods.list.json");
    std::vector<std::string> items;
    const auto page = read_list(body, format, [&](std::string_view item) { items.emplace_back(item); });
    ASSERT_TRUE(page) << page.error().message;
    EXPECT_EQ(page->resource_version, "42");
    EXPECT_EQ(page->next, "next-token");
    ASSERT_EQ(items.size(), 3u);
    if (format == encoding::protobuf) {
      EXPECT_EQ(pod::decode(items[1])->key.to_string(), "shop/checkout-service-6f7d8c9b5d-q8w7e");
    } else {
      EXPECT_EQ(nlohmann::json::parse(items[1])["metadata"]["name"], "checkout-service-6f7d8c9b5d-q8w7e");
    }
  }
}

TEST(list_page, that_cannot_be_read_gives_no_item_at_all) {
  for (const auto format : {encoding::protobuf, encoding::json}) {
    const auto body = golden::read(format == encoding::protobuf ? "pods.list.pb" : "pods.list.json");
    int items = 0;
    for (const auto cut : {body.size() - 5, body.size() / 2, std::size_t{30}}) {
      EXPECT_FALSE(read_list(body.substr(0, cut), format, [&](std::string_view) { ++items; })) << cut;
    }
    EXPECT_EQ(items, 0);
  }
}

TEST(list_page, of_another_kind_of_answer_is_an_error) {
  for (const std::string& body :
       {golden::read("status_expired.json"), std::string("{}"), std::string("null"), std::string("[1]")}) {
    EXPECT_FALSE(read_list(body, encoding::json, [](std::string_view) {}));
  }
  EXPECT_FALSE(read_list("", encoding::protobuf, [](std::string_view) {}));
  EXPECT_FALSE(read_list(golden::read("status_expired.pb"), encoding::protobuf, [](std::string_view) {}));
}

TEST(list_page, without_items_is_empty) {
  for (const auto* body :
       {R"({"metadata":{"resourceVersion":"7"},"items":null})", R"({"metadata":{"resourceVersion":"7"},"items":[]})",
        R"({"metadata":{"resourceVersion":"7"}})"}) {
    const auto page = read_list(body, encoding::json, [](std::string_view) { FAIL(); });
    ASSERT_TRUE(page) << body;
    EXPECT_EQ(page->resource_version, "7");
    EXPECT_EQ(page->next, "");
  }
}

}  // namespace
