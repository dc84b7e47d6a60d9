#include "agent/facts/judge.hpp"

#include "text/escape.hpp"

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
    row.found = text::utf8_clean(row.found, longest);  // names and contents of files may be anything
    row.remedy = text::utf8_clean(row.remedy, longest);
  }
  return out;
}

}  // namespace agent::facts
