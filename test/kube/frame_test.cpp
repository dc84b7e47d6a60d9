#include "kube/frame.hpp"

#include <gtest/gtest.h>

#include <random>

#include "test/kube/golden.hpp"

namespace {

using kube::encoding;
using kube::framer;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) all.push_back(line);
  return all;
}

struct recorded {
  encoding format;
  std::string bytes;
  std::vector<std::string> frames;
};

std::vector<recorded> streams() {
  const auto binary = golden::read("pods.watch.pb"), text = golden::read("pods.watch.json");
  return {{encoding::protobuf, binary, golden::split(binary)}, {encoding::json, text, lines_of(text)}};
}

/// Feeds `bytes` in the chunks that begin at `cuts`.
std::vector<std::string> frames_of(encoding format, std::string_view bytes, std::vector<std::size_t> cuts = {}) {
  framer machine(format);
  std::vector<std::string> all;
  cuts.push_back(bytes.size());
  for (std::size_t index = 0; const auto cut : cuts) {
    const std::string chunk(bytes.substr(index, cut - index));  // its own allocation: views into an old one are found
    EXPECT_TRUE(machine.feed(chunk, [&](std::string_view frame) {
      all.emplace_back(frame);
      return true;
    }));
    index = cut;
  }
  return all;
}

TEST(framer, cuts_a_recorded_stream_into_its_frames) {
  for (const auto& [format, bytes, frames] : streams()) {
    ASSERT_EQ(frames.size(), 8u);
    EXPECT_EQ(frames_of(format, bytes), frames);
  }
}

TEST(framer, F10_gives_the_same_frames_wherever_the_stream_is_split) {
  for (const auto& [format, bytes, frames] : streams()) {
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) ASSERT_EQ(frames_of(format, bytes, {cut}), frames) << cut;
  }
}

TEST(framer, F10_gives_the_same_frames_split_in_many_places_and_byte_by_byte) {
  std::mt19937 random(3);
  for (const auto& [format, bytes, frames] : streams()) {
    for (int round = 0; round < 300; ++round) {
      std::vector<std::size_t> cuts(random() % 40);
      for (auto& cut : cuts) cut = random() % (bytes.size() + 1);
      std::ranges::sort(cuts);
      ASSERT_EQ(frames_of(format, bytes, cuts), frames);
    }
    std::vector<std::size_t> all(bytes.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    EXPECT_EQ(frames_of(format, bytes, all), frames);
  }
}

TEST(framer, F10_a_truncated_tail_yields_nothing) {
  for (const auto& [format, bytes, frames] : streams()) {
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const auto got = frames_of(format, std::string_view(bytes).substr(0, size), {size / 2});
      ASSERT_LT(got.size(), frames.size());
      ASSERT_TRUE(std::equal(got.begin(), got.end(), frames.begin())) << size;
    }
  }
}

TEST(framer, hands_on_a_whole_frame_without_a_copy) {
  for (const auto& [format, bytes, frames] : streams()) {
    framer machine(format);
    const std::string_view chunk = bytes;
    EXPECT_TRUE(machine.feed(chunk, [&](std::string_view frame) {
      EXPECT_GE(frame.data(), chunk.data());
      EXPECT_LE(frame.data() + frame.size(), chunk.data() + chunk.size());
      return true;
    }));
  }
}

TEST(framer, starts_anew_after_reset) {
  for (const auto& [format, bytes, frames] : streams()) {
    framer machine(format);
    std::vector<std::string> all;
    const auto keep = [&](std::string_view frame) { return all.emplace_back(frame), true; };
    EXPECT_TRUE(machine.feed(std::string_view(bytes).substr(0, 50), keep));
    EXPECT_EQ(machine.pending(), 50u);
    machine.reset();
    EXPECT_EQ(machine.pending(), 0u);
    EXPECT_TRUE(machine.feed(bytes, keep));
    EXPECT_EQ(all, frames);
  }
}

TEST(framer, stops_when_told_and_drops_the_rest_of_the_chunk) {
  for (const auto& [format, bytes, frames] : streams()) {
    for (const std::size_t first : {std::size_t{0}, std::size_t{7}}) {
      framer machine(format);
      int calls = 0;
      const auto stop = [&](std::string_view) { return ++calls < 2; };
      EXPECT_TRUE(machine.feed(std::string_view(bytes).substr(0, first), stop));
      EXPECT_TRUE(machine.feed(std::string_view(bytes).substr(first), stop));
      EXPECT_EQ(calls, 2);
      EXPECT_EQ(machine.pending(), 0u);
    }
  }
}

TEST(framer, F11_refuses_a_frame_above_the_limit) {
  const auto none = [](std::string_view) { return true; };
  framer binary(encoding::protobuf, 1000);
  const auto refused = binary.feed(std::string_view("\x00\x00\x03\xe9", 4), none);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, kube::errc::decode);
  framer split(encoding::protobuf, 1000);
  EXPECT_TRUE(split.feed(std::string_view("\xff\xff", 2), none));
  EXPECT_FALSE(split.feed(std::string_view("\xff\xff", 2), none));
  framer text(encoding::json, 1000);
  EXPECT_TRUE(text.feed(std::string(900, 'x'), none));
  EXPECT_FALSE(text.feed(std::string(101, 'x'), none));
  EXPECT_EQ(text.pending(), 0u);
  framer whole(encoding::json, 1000);
  EXPECT_FALSE(whole.feed(std::string(1001, 'x') + "\n", none));
}

TEST(framer, F11_takes_a_frame_of_exactly_the_limit) {
  int calls = 0;
  const auto count = [&](std::string_view frame) { return calls += frame.size() == 1000, true; };
  framer binary(encoding::protobuf, 1000), text(encoding::json, 1000);
  EXPECT_TRUE(binary.feed(std::string("\x00\x00\x03\xe8", 4) + std::string(1000, 'x'), count));
  EXPECT_TRUE(text.feed(std::string(1000, 'x') + "\n", count));
  EXPECT_EQ(calls, 2);
}

TEST(framer, F35_takes_a_line_of_6_megabytes_in_small_chunks) {
  const std::string line(6'291'543, 'x');
  framer machine(encoding::json);
  std::size_t got = 0;
  for (std::size_t index = 0; index < line.size(); index += 16384) {
    EXPECT_TRUE(machine.feed(std::string_view(line).substr(index, 16384), [](std::string_view) { return false; }));
  }
  EXPECT_TRUE(machine.feed("\n", [&](std::string_view frame) { return got = frame.size(), true; }));
  EXPECT_EQ(got, line.size());
}

TEST(framer, F12_blank_lines_are_no_frames) {
  EXPECT_EQ(frames_of(encoding::json, "\n\r\n{}\r\n \n[1]\n"), (std::vector<std::string>{"{}", "[1]"}));
}

TEST(framer, an_empty_message_is_a_frame) {
  const std::string bytes("\0\0\0\0\0\0\0\1x", 9);
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    EXPECT_EQ(frames_of(encoding::protobuf, bytes, {cut}), (std::vector<std::string>{"", "x"})) << cut;
  }
}

}  // namespace
