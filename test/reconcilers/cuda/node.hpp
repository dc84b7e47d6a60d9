#pragma once
// Nodes as GPU Feature Discovery labels them, for the tests of compat/.

#include <string>
#include <utility>
#include <vector>

#include "kube/projections/node.hpp"
#include "reconcilers/cuda/facts.hpp"

namespace reconcilers::cuda {

using pairs = std::vector<std::pair<std::string, std::string>>;

inline kube::node node_with(const pairs& labels, std::string name = "gpu-1", const pairs& annotations = {}) {
  kube::node out;
  out.key.name = std::move(name);
  out.id = kube::uid::parse("0b6c8a52-6a5d-4f4e-9a3a-0a1b2c3d4e5f");
  out.architecture = "amd64";
  std::vector<kube::packed_map::entry> entries(labels.begin(), labels.end());
  out.labels = kube::packed_map::of(entries);
  std::vector<kube::packed_map::entry> notes(annotations.begin(), annotations.end());
  out.annotations = kube::packed_map::of(notes);
  return out;
}

/// As the discovery labels it: "12.4", "550.54.14", "8.0"; an empty text leaves its labels out.
inline pairs discovered(std::string_view cuda, std::string_view driver, std::string_view capability,
                        std::string product = {}) {
  pairs out;
  if (const auto is = parse_version(cuda)) {
    out.emplace_back(keys::found_major, std::to_string(is->major));
    out.emplace_back(keys::found_minor, std::to_string(is->minor));
  }
  if (const auto is = parse_driver(driver)) {
    out.emplace_back(keys::driver_major, std::to_string(is->major));
    out.emplace_back(keys::driver_minor, std::to_string(is->minor));
    out.emplace_back(keys::driver_patch, (is->patch < 10 ? "0" : "") + std::to_string(is->patch));
  }
  if (const auto is = parse_version(capability)) {
    out.emplace_back(keys::capability_major, std::to_string(is->major));
    out.emplace_back(keys::capability_minor, std::to_string(is->minor));
  }
  if (!product.empty()) out.emplace_back(keys::product, std::move(product));
  return out;
}

/// With the labels of the manual.
inline pairs labelled(std::string_view cuda, std::string_view driver = {}, std::string_view capability = {}) {
  auto out = discovered("", driver, capability);
  if (const auto is = parse_version(cuda)) {
    out.emplace_back(keys::cuda_major, std::to_string(is->major));
    out.emplace_back(keys::cuda_minor, std::to_string(is->minor));
  }
  return out;
}

}  // namespace reconcilers::cuda
