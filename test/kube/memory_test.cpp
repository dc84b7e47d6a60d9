// What one stored object costs, counted by hand: the struct, and every block of the heap as glibc rounds it.

#include <gtest/gtest.h>

#include "kube/projections/node.hpp"
#include "kube/projections/pod.hpp"
#include "test/kube/golden.hpp"

namespace {

/// A block of malloc: 8 bytes of its own, a multiple of 16, at least 32.
std::size_t block(std::size_t bytes) { return bytes == 0 ? 0 : std::max<std::size_t>(32, (bytes + 8 + 15) / 16 * 16); }

std::size_t heap(const std::string& text) { return text.capacity() > 15 ? block(text.capacity() + 1) : 0; }

template <class T>
std::size_t array(const std::vector<T>& items) {
  return block(items.capacity() * sizeof(T));
}

std::size_t heap(const kube::quantities& quantities) {
  std::size_t bytes = array(quantities);
  for (const auto& [name, amount] : quantities) bytes += heap(name);
  return bytes;
}

std::size_t heap(const kube::packed_map& map) {
  std::size_t bytes = 0;
  for (const auto [key, value] : map) bytes += 8 + key.size() + value.size();
  return bytes > 15 ? block(bytes + 1) : 0;
}

std::size_t heap(const kube::object& object) {
  std::size_t bytes = heap(object.key.ns) + heap(object.key.name) + heap(object.labels) + heap(object.annotations) +
                      array(object.owners);
  for (const auto& owner : object.owners) bytes += heap(owner.kind) + heap(owner.name);
  return bytes;
}

std::size_t cost(const kube::pod& pod) {
  std::size_t bytes = block(sizeof pod) + heap(pod) + heap(pod.node_name) + heap(pod.scheduler_name) + heap(pod.ip) +
                      heap(pod.reason) + array(pod.containers);
  for (const auto& container : pod.containers) bytes += heap(container.name) + heap(container.limits);
  return bytes;
}

std::size_t cost(const kube::node& node) {
  std::size_t bytes = block(sizeof node) + heap(node) + array(node.taints) + heap(node.capacity) +
                      heap(node.allocatable) + heap(node.container_runtime) + heap(node.kubelet_version) +
                      heap(node.operating_system) + heap(node.architecture);
  for (const auto& taint : node.taints) bytes += heap(taint.key) + heap(taint.value) + heap(taint.effect);
  return bytes;
}

TEST(memory, a_pod_without_accelerators_costs_at_most_0_7_kilobytes) {
  EXPECT_LE(cost(*kube::pod::decode(golden::read("pod_plain.pb"))), 717u);
}

TEST(memory, a_node_with_40_feature_labels_costs_at_most_4_kilobytes) {
  const auto node = *kube::node::decode(golden::read("node_gfd.pb"));
  EXPECT_GE(node.labels.size(), 40u);
  EXPECT_LE(cost(node), 4096u);
  RecordProperty("bytes", static_cast<int>(cost(node)));
}

TEST(memory, a_pod_that_shares_a_card_costs_at_most_3_kilobytes) {
  EXPECT_LE(cost(*kube::pod::decode(golden::read("pod_gpu.pb"))), 3072u);
}

}  // namespace
