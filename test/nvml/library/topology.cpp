// Where cards are: PCIe paths, NUMA nodes and CPUs, NVLinks, and who can reach whose memory.
#include <algorithm>

#include "../call.hpp"
#include "fabric.hpp"
#include "pci.hpp"

using namespace nvml;

namespace {

std::vector<std::string> steps(const std::string& path) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin <= path.size();) {
    const auto end = std::min(path.find('/', begin), path.size());
    out.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

// A path is "host bridge/switch/switch", from the processor to the card.
topology_level common_ancestor(const json& left, const json& right) {
  const auto near = steps(left.value("pcie_path", left["pci_bus_id"].get<std::string>()));
  const auto far = steps(right.value("pcie_path", right["pci_bus_id"].get<std::string>()));
  const auto common = std::ranges::mismatch(near, far).in1 - near.begin();
  if (common == 0) return left.value("numa_node", 0) == right.value("numa_node", 0) ? same_node : across_nodes;
  if (common == 1) return host_bridge;
  return static_cast<std::size_t>(common) == near.size() && near.size() == far.size() ? single : multiple;
}

// The number of links that are up between two cards: direct ones, or through switches that all cards share.
unsigned links_between(const fixture& now, const json& left, const json& right) {
  const auto is_card = [&now](const nvlink& link) {
    return std::ranges::any_of(now.node["cards"],
                               [&link](const json& card) { return card["pci_bus_id"] == link.peer; });
  };
  const auto count = [&is_card](const json& card, const json& other) {
    return static_cast<unsigned>(std::ranges::count_if(links_of(card), [&](const nvlink& link) {
      return !link.is_down && (other["pci_bus_id"] == link.peer || !is_card(link));
    }));
  };
  return std::min(count(left, right), count(right, left));
}

nvlink link_at(const subject& subject, unsigned index) {
  const auto links = links_of(subject.card);
  if (links.empty() || subject.is_mig_device()) throw failure{not_supported};
  if (index >= links.size()) throw failure{invalid_argument};
  return links[index];
}

// "0-15,32-47" as a mask.
void set_mask(const std::string& list, unsigned size, unsigned long* mask) {
  require(mask);
  constexpr unsigned bits = 8 * sizeof(unsigned long);
  std::fill_n(mask, size, 0UL);
  for (std::size_t begin = 0; begin < list.size();) {
    const auto end = std::min(list.find(',', begin), list.size());
    const auto range = list.substr(begin, end - begin);
    const auto dash = range.find('-');
    const auto last = std::stoul(range.substr(dash == std::string::npos ? 0 : dash + 1));
    for (auto number = std::stoul(range); number <= last; ++number)
      if (number / bits < size) mask[number / bits] |= 1UL << number % bits;
    begin = end + 1;
  }
}

}  // namespace

NVML_EXPORT nvmlDeviceGetTopologyCommonAncestor(device left, device right, int* level) {
  return answer([&] {
    const auto first = find("nvmlDeviceGetTopologyCommonAncestor", left);
    const auto second = find("nvmlDeviceGetTopologyCommonAncestor", right);
    require(level);
    *level = first.handle.uuid == second.handle.uuid ? internal : common_ancestor(first.card, second.card);
  });
}

NVML_EXPORT nvmlDeviceGetTopologyNearestGpus(device device, int level, unsigned* count, const handle** cards) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetTopologyNearestGpus", device);
    std::vector<const handle*> near;
    for (const auto& card : found.now->node["cards"])
      if (card["uuid"] != found.handle.uuid && !card.value("lost", false) && common_ancestor(found.card, card) == level)
        near.push_back(session::instance().intern({.uuid = card["uuid"]}));
    require(count);
    if (!cards)
      *count = static_cast<unsigned>(near.size());
    else
      fill(near, count, cards);
  });
}

NVML_EXPORT nvmlDeviceOnSameBoard(device left, device right, int* is_same) {
  return answer([&] {
    find("nvmlDeviceOnSameBoard", left);
    find("nvmlDeviceOnSameBoard", right);
    require(is_same);
    *is_same = left == right;
  });
}

NVML_EXPORT nvmlDeviceGetP2PStatus(device left, device right, unsigned index, int* status) {
  return answer([&] {
    const auto first = find("nvmlDeviceGetP2PStatus", left);
    const auto second = find("nvmlDeviceGetP2PStatus", right);
    require(status);
    if (index > p2p_pci) throw failure{invalid_argument};
    const bool has_links = links_between(*first.now, first.card, second.card) > 0;
    const bool is_possible = first.card.value("p2p", false) && second.card.value("p2p", false);
    const bool needs_links = index == p2p_nvlink || index == p2p_atomics;
    *status = !is_possible ? p2p_gpu : needs_links && !has_links ? p2p_not_supported : p2p_ok;
  });
}

NVML_EXPORT nvmlDeviceGetCpuAffinity(device device, unsigned size, unsigned long* mask) {
  return answer([&] { set_mask(find("nvmlDeviceGetCpuAffinity", device).fact("cpus"), size, mask); });
}
NVML_EXPORT nvmlDeviceGetCpuAffinityWithinScope(device device, unsigned size, unsigned long* mask, unsigned) {
  return nvmlDeviceGetCpuAffinity(device, size, mask);
}
NVML_EXPORT nvmlDeviceGetMemoryAffinity(device device, unsigned size, unsigned long* mask, unsigned) {
  return answer(
      [&] { set_mask(std::to_string(number(find("nvmlDeviceGetMemoryAffinity", device), "numa_node")), size, mask); });
}

NVML_EXPORT nvmlDeviceGetNvLinkState(device device, unsigned index, int* is_active) {
  return answer([&] {
    const auto link = link_at(find("nvmlDeviceGetNvLinkState", device), index);
    require(is_active);
    *is_active = !link.is_down;
  });
}

NVML_EXPORT nvmlDeviceGetNvLinkVersion(device device, unsigned index, unsigned* version) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetNvLinkVersion", device);
    link_at(found, index);
    require(version);
    *version = static_cast<unsigned>(number(found, "nvlink_version"));
  });
}

NVML_EXPORT nvmlDeviceGetNvLinkCapability(device device, unsigned index, unsigned capability, unsigned* has) {
  return answer([&] {
    constexpr unsigned bridge = 4, end = 6;
    const auto link = link_at(find("nvmlDeviceGetNvLinkCapability", device), index);
    require(has);
    if (capability >= end) throw failure{invalid_argument};
    *has = !link.is_down && capability != bridge;
  });
}

NVML_EXPORT nvmlDeviceGetNvLinkErrorCounter(device device, unsigned index, unsigned, std::uint64_t* count) {
  return answer([&] {
    link_at(find("nvmlDeviceGetNvLinkErrorCounter", device), index);
    require(count);
    *count = 0;
  });
}

NVML_EXPORT nvmlDeviceGetNvLinkRemotePciInfo_v2(device device, unsigned index, pci_info* target) {
  return answer([&] {
    const auto link = link_at(find("nvmlDeviceGetNvLinkRemotePciInfo_v2", device), index);
    require(target);
    if (link.is_down) throw failure{not_supported};
    *target = pci_at(link.peer);
  });
}
NVML_EXPORT nvmlDeviceGetNvLinkRemotePciInfo(device device, unsigned index, pci_info* target) {
  return nvmlDeviceGetNvLinkRemotePciInfo_v2(device, index, target);
}

NVML_EXPORT nvmlDeviceGetNvLinkRemoteDeviceType(device device, unsigned index, int* type) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetNvLinkRemoteDeviceType", device);
    const auto link = link_at(found, index);
    require(type);
    const auto& cards = found.now->node["cards"];
    *type = std::ranges::any_of(cards, [&link](const json& card) { return card["pci_bus_id"] == link.peer; })
                ? peer_gpu
                : peer_switch;
  });
}
