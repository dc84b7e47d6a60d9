#include "agent/facts/judge.hpp"

#include <algorithm>
#include <charconv>

namespace agent::facts {
namespace {

constexpr std::size_t longest = 1024;  // of the CRD

}  // namespace

std::string_view to_string(check_state state) noexcept {
  switch (state) {
    case check_state::ok:
      return "ok";
    case check_state::warning:
      return "warning";
    case check_state::failed:
      return "failed";
    case check_state::unknown:
      return "unknown";
  }
  return "unknown";
}

std::vector<int> version_parts(std::string_view version) {
  std::vector<int> out;
  for (int part = 0;;) {
    const auto [end, failed] = std::from_chars(version.data(), version.data() + version.size(), part);
    if (failed != std::errc()) return out;
    out.push_back(part);
    version.remove_prefix(static_cast<std::size_t>(end - version.data()));
    if (!version.starts_with('.')) return out;
    version.remove_prefix(1);
  }
}

bool is_driven(const machine_facts& node, const cards::inventory* cards) {
  return !node.module_version.empty() || (cards && cards->problem.empty());
}

std::vector<row> judge(const machine_facts& node, const cards::inventory* cards) {
  std::vector<row> out;
  judge_driver(node, cards, out);
  judge_devices(node, cards, out);
  judge_containers(node, out);
  judge_network(node, cards, out);
  judge_machine(node, cards, out);
  for (auto& row : out) {
    row.found.resize(std::min(row.found.size(), longest));
    row.remedy.resize(std::min(row.remedy.size(), longest));
  }
  return out;
}

}  // namespace agent::facts
