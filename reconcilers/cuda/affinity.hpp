#pragma once
// Requirements as node affinity. Kubernetes compares one label with one number at a time, so a pair takes two
// alternatives: (major > M) or (major is M and minor > m-1). Terms are ORed and a pod's own terms are too, so both are
// multiplied; what says the same or can never hold is left out.
//
// Facts and terms agree: for every node with the labels in pairs, a term matches exactly where meets() says yes.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kube/packed_map.hpp"
#include "reconcilers/cuda/requirement.hpp"

namespace reconcilers::cuda {

/// One matchExpression of a node selector term.
struct expression {
  std::string key;
  std::string op;  ///< In, NotIn, Exists, DoesNotExist, Gt, Lt
  std::vector<std::string> values;
  friend auto operator<=>(const expression&, const expression&) = default;
};
/// All of them hold. An empty one holds everywhere here; Kubernetes lets an empty term match nothing, so such a list is
/// never written.
using term = std::vector<expression>;
/// One of them holds; an empty list holds nowhere.
using terms = std::vector<term>;

inline constexpr std::size_t max_terms = 64;

/// Which labels say what CUDA a driver knows.
struct vocabulary {
  bool manual = true;  ///< cuda-major-version, cuda-minor-version
  bool found = false;  ///< nvidia.com/cuda.runtime-version.*, on nodes without the other
};
/// The labels of the manual alone where every node that is known has them; others as well where some node lacks them.
vocabulary vocabulary_of(std::span<const node_facts* const> nodes);

/// Empty where more than `max_terms` alternatives would be needed.
std::optional<terms> terms_of(std::span<const requirement> needed, const vocabulary& vocabulary);
/// Simplified, in a settled order; empty as above.
std::optional<terms> product(const terms& a, const terms& b);

/// As kube-scheduler's node affinity does.
bool matches(const term& term, const kube::packed_map& labels);
bool matches(const terms& terms, const kube::packed_map& labels);

/// The nodeSelectorTerms of a pod with `needed` multiplied in.
struct merge {
  enum class kind : std::uint8_t {
    unchanged,      ///< it says that already, or nothing is needed
    changed,        ///< `terms` is what it shall be
    contradiction,  ///< no node can meet both
    too_many,       ///< more than max_terms alternatives
  };
  kind is = kind::unchanged;
  nlohmann::json terms;
};
/// `own` is the pod's own list, or null where it has none. Its expressions of other labels and its fields stay as they
/// are.
merge merged(const nlohmann::json& own, const terms& needed);

/// An affinity on CUDA labels that compares the parts of a pair by themselves.
struct excluded_versions {
  std::string versions;  ///< "13.x and 12.0-12.2"
  version oldest;        ///< the oldest that is let in
};
/// Of spec.affinity.nodeAffinity of a pod: which known CUDA versions it shuts out although it lets older ones in. The
/// manual's own (major In 12, minor Gt 2) lets in 12.3 to 12.9 and shuts out 13.x. Empty where it does not.
std::optional<excluded_versions> judge_affinity(const nlohmann::json& pod_spec);
std::string text_of(const excluded_versions& shut_out, text::language locale = text::language::en);

}  // namespace reconcilers::cuda
