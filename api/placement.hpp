#pragma once
// The annotation in which the scheduler extender writes what a pod was given, and in which everyone else looks that up:
//
//   quartermaster.io/placement:
//   {"v":1,"node":"gpu-1","source":"planned","containers":{"main":[{"card":"GPU-<uuid>","cores":20,"memoryMiB":2048}]},
//    "counts":{"example.com/fpga":2}}
//
// A whole card has "whole":true, 100 cores and all of the card's memory.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace api {

inline constexpr std::string_view placement_annotation = "quartermaster.io/placement";

struct placed_share {
  std::string card;                         ///< a UUID
  std::int32_t cores = 0, burst_cores = 0;  ///< hundredths of the card
  std::int64_t memory_mib = 0;              ///< at most 2^30, so that sums fit
  bool whole = false;
  friend bool operator==(const placed_share&, const placed_share&) = default;
};

struct placement {
  std::string node;
  std::map<std::string, std::vector<placed_share>, std::less<>> containers;  ///< by name
  std::map<std::string, std::int64_t, std::less<>> counts;                   ///< devices that are counted, by key
  friend bool operator==(const placement&, const placement&) = default;
};

/// Anyone can write it: nothing where a part of it is broken or of another version.
std::optional<placement> placement_in(std::string_view text);

}  // namespace api
