#include "agent/exporter/pod_resources.hpp"

#include <gtest/gtest.h>

#include "test/agent/exporter/wire.hpp"

namespace agent::exporter {
namespace {

TEST(pod_resources, are_read_by_container) {
  const auto devices = devices_in(wire_of({{"ns", "a", "main", "nvidia.com/gpu", {"GPU-1", "GPU-2"}},
                                           {"ns", "b", "none", "nvidia.com/gpu", {}}}));
  ASSERT_TRUE(devices);
  EXPECT_EQ(*devices, (std::vector<given_devices>{{"ns", "a", "main", {"GPU-1", "GPU-2"}}}));
  EXPECT_TRUE(devices_in("")->empty());
}

TEST(pod_resources, that_are_cut_off_are_an_error) {
  const auto whole = wire_of({{"ns", "a", "main", "nvidia.com/gpu", {"GPU-1"}}});
  int failures = 0;
  for (std::size_t length = 1; length < whole.size(); ++length) failures += !devices_in(whole.substr(0, length));
  EXPECT_EQ(failures, static_cast<int>(whole.size()) - 1);
}

TEST(grpc, has_one_whole_message) {
  using namespace std::string_view_literals;
  EXPECT_EQ(message_in("\0\0\0\0\3abc"sv), "abc");
  EXPECT_EQ(message_in("\0\0\0\0\0"sv), "");
  for (const auto body : {""sv, "\0\0\0\0"sv, "\0\0\0\0\3ab"sv, "\0\0\0\0\3abcd"sv, "\1\0\0\0\3abc"sv,
                          "\0\xff\xff\xff\xff"sv})
    EXPECT_FALSE(message_in(body)) << body.size();
}

}  // namespace
}  // namespace agent::exporter
