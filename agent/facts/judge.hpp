#pragma once
// From facts to rows: what was checked, whether it is in order, what was found, and what to do. Pure. One cause is one
// row: what only follows from it is unknown and names it. What does not concern a node has no row.

#include <string>
#include <string_view>
#include <vector>

#include "agent/cards/inventory.hpp"
#include "agent/facts/node.hpp"

namespace agent::facts {

enum class check_state : unsigned char {
  ok,
  warning,  ///< cards work, and something does not
  failed,   ///< cards do not work for all pods
  unknown,  ///< could not be seen; `found` says why
};
std::string_view to_string(check_state state) noexcept;

/// A row of AcceleratorNode.status.preflight.
struct row {
  std::string check;  ///< stable: "driver", "dev_char"
  check_state state = check_state::ok;
  std::string found;   ///< of some checks a word that programs read: "1.17.8", "missing", "v2"
  std::string remedy;  ///< empty unless warning or failed
  friend bool operator==(const row&, const row&) = default;
};

/// @param cards nothing: NVML has not answered yet
std::vector<row> judge(const machine_facts& node, const cards::inventory* cards);

// The parts, in the order of the rows.
void judge_driver(const machine_facts& node, const cards::inventory* cards, std::vector<row>& rows);
void judge_devices(const machine_facts& node, const cards::inventory* cards, std::vector<row>& rows);
void judge_containers(const machine_facts& node, std::vector<row>& rows);
void judge_network(const machine_facts& node, const cards::inventory* cards, std::vector<row>& rows);
void judge_machine(const machine_facts& node, const cards::inventory* cards, std::vector<row>& rows);

/// The driver's kernel module works, as far as is known.
bool is_driven(const machine_facts& node, const cards::inventory* cards);

}  // namespace agent::facts
