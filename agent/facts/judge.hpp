#pragma once
// From facts to rows: what was checked, whether it is in order, what was found, and what to do. Pure. One cause is one
// row: what only follows from it is unknown and names it. What does not concern a node has no row.

#include <string>
#include <utility>
#include <vector>

#include "agent/cards/inventory.hpp"
#include "agent/facts/node.hpp"
#include "api/check.hpp"

namespace agent::facts {

using api::check, api::check_state;
using row = api::check_row;

/// What a row says of its check. Its words are those of the cause.
struct judgement {
  check_state state = check_state::ok;
  std::string found;  ///< what needs no words (a version), or a word that programs read; empty: the words say it
  explained_cause cause = {};
  friend bool operator==(const judgement&, const judgement&) = default;
};
/// What could not be read, and why.
inline judgement unknown(explained_cause cause) { return {check_state::unknown, {}, std::move(cause)}; }
void add(std::vector<row>& rows, check check, judgement judgement);

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
