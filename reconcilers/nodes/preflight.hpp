#pragma once
// What must be true of a node before cards can be given out on it, by the table of api/check.hpp. Where the agent has
// judged, its row is the verdict. What labels say is judged here where it has no row, and so is what depends on the
// mode. What no one has reported is unknown, never failed. Pure.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/check.hpp"
#include "kube/projections/node.hpp"
#include "reconcilers/declarations/finding.hpp"
#include "reconcilers/modules/catalogue.hpp"

namespace reconcilers {

/// What is known of a node. Empty: no one has said.
struct node_facts {
  std::string kubelet;             ///< "v1.36.3"
  std::string platform;            ///< "linux/amd64"
  std::string driver;              ///< "550.144.03"
  std::string cuda;                ///< the newest CUDA the driver runs: "12.4"
  std::string compute_capability;  ///< of the cards: "8.0"
  std::string mig;                 ///< "none", or the strategy by which cards are cut: "single", "mixed"
  std::string rdma;                ///< "capable" (an adapter), "available" (its kernel modules are loaded)
  std::string rdma_resource;       ///< what an RDMA device plugin advertises: "rdma/hca"; empty: nothing
  std::string product;             ///< "NVIDIA-H100-80GB-HBM3"
  int cards = 0;
  std::vector<api::check_row> reported;  ///< the agent's rows; empty: no agent reports

  const api::check_row* row(api::check check) const;  ///< of the agent; null: it has none
};

struct preflight_row : api::check_row {
  bool is_by_agent = false;
  std::string needed = {};  ///< "1.7.0+", "v1, v2"; empty where nothing is
  friend bool operator==(const preflight_row&, const preflight_row&) = default;
};

/// From the labels of GPU Feature Discovery and NFD, and the node's own status.
node_facts facts_of(const kube::node& node);

/// The agent's rows; its driver and CUDA take the place of what labels say.
void take_in(node_facts& known, std::vector<api::check_row> reported);

/// The checks that matter to a module, in the order of the table, and then those that the agent alone knows.
/// @param runtime_class the RuntimeClass that the policy gives to the module's pods; empty: none
std::vector<preflight_row> preflight(const node_facts& known, const modules::module_type& type,
                                     std::string_view runtime_class = {});

/// What is so, in one line: "CUDA 11.4; needed is 11.5 or newer". Of a row of the agent its cause says it.
std::string text_of(const preflight_row& row, text::language language);
/// What to do about it; empty unless failed or warning.
std::string remedy_of(const preflight_row& row, text::language language);

/// Numbers between dots ("550.144.03", "v1.36.3-rc.1", "1.17.8-1"), compared part by part. Empty for text without a
/// number.
struct dotted_version {
  int parts[3] = {0, 0, 0};
  friend auto operator<=>(const dotted_version&, const dotted_version&) = default;
};
std::optional<dotted_version> parse_version(std::string_view text);

}  // namespace reconcilers
