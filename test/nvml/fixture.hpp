#pragma once
// One reading of the fixture: a file that describes a machine, with each card merged from three layers. The model's
// facts (`models`, a file next to it) come first, then the fixture's `defaults`, then the card's own keys.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace nvml {

/// A file as the system identifies it. A file that is replaced, changed or gone has another identity.
struct file_identity {
  std::string path;
  std::uint64_t inode = 0, size = 0;
  std::int64_t seconds = 0, nanoseconds = 0;
  bool operator==(const file_identity&) const = default;
};

file_identity identity(const std::string& path);

struct fixture {
  std::vector<file_identity> files;  // what was read
  nlohmann::json node;               // cards in the order of their PCI addresses
  std::string fault;                 // file, place and what is allowed; empty when the fixture is valid
};

/// $QM_NVML_FIXTURE, otherwise /run/nvidia-standin/node.json.
std::string fixture_path();
fixture read_fixture(const std::string& path);

}  // namespace nvml
