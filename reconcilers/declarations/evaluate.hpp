#pragma once
// What the rules say of one pod, as docs/declarations.md tells it. The same is written in CEL for the API server
// (charts/quartermaster/files/admission); a test feeds both and the texts are equal too, so that a person reads the
// same words no matter who refused.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/projections/pod.hpp"
#include "quota/resource_keys.hpp"
#include "reconcilers/declarations/finding.hpp"
#include "reconcilers/declarations/rule_set.hpp"

namespace reconcilers::declarations {

enum class objection_kind : std::uint8_t {
  // refused
  forbidden,      ///< limits: disabled
  not_legal,      ///< not an amount the plugin accepts
  needs_partner,  ///< a share without the memory it needs
  pod_amount,     ///< what an annotation or label of the pod says next to a key (quota::pod_amount)
  missing,        ///< a required key of a group the container uses
  excluded,       ///< two keys that must not be in one pod
  unequal,        ///< requests differ from limits: the API server itself refuses
  too_large,      ///< more than is judged (`max_containers`): nothing else is reported
  // said
  related_missing,
  not_offered,  ///< by no node, now
};

struct objection {
  objection_kind kind{};
  std::string container;  ///< "container main", "init container fetch"; empty: of the pod as a whole
  std::string key;
  std::int64_t amount = 0;
  std::string other;  ///< the key that is missing, required by, or excluded; the name of the annotation or label
  /// An amount that is allowed; of a request its limit; of an annotation or label what it says, 0 where that is no
  /// number.
  std::int64_t nearest = 0;
  std::string source;  ///< the ConfigMap that says so, as namespace/name; empty where the plugin says so

  friend bool operator==(const objection&, const objection&) = default;
};
std::string text_of(const objection& objection, text::language locale = text::language::en);
/// At most 3,800 bytes, so that it fits whole into a warning of the API server.
std::string texts_of(std::span<const objection> all, text::language locale = text::language::en);

/// One amount to be written into limits and requests of a container.
struct default_amount {
  std::size_t container = 0;  ///< index in what was given
  std::string key;
  std::int64_t amount = 0;

  friend bool operator==(const default_amount&, const default_amount&) = default;
};

struct ruling {
  std::vector<default_amount> fills;
  std::string runtime_class;       ///< to be written; empty: nothing to write
  std::vector<objection> refused;  ///< at most 1,000; of the pod after the fills, in its order
  std::vector<objection> warnings;

  bool allowed() const { return refused.empty(); }
  friend bool operator==(const ruling&, const ruling&) = default;
};

/// Annotations and labels of a pod that carry amounts (quota::pod_amount), name and value.
using pod_amounts = std::vector<std::pair<std::string, std::string>>;
/// Both may be anything that is a range of names and values.
pod_amounts pod_amounts_in(const auto& annotations, const auto& labels);

struct evaluation {
  bool fill = true;                     ///< false: nothing is written, and what would be filled is objection_kind to
  bool judge = true;                    ///< false: only what is to be written
  const pod_amounts* on_pod = nullptr;  ///< null: none
  std::size_t limits = 0;               ///< of all containers, cpu and memory too; 0: those that `containers` have
};

// A pod that names a declared key is judged up to these bounds, which are what the API server can evaluate within the
// budget it gives to policies (charts/quartermaster/templates/_cel.tpl); a larger one is refused.
inline constexpr std::size_t max_containers = 256;
inline constexpr std::size_t max_limits = 2048;
inline constexpr std::size_t max_members = 16'384;  ///< of the groups of all keys it names, a container and key each
inline constexpr std::size_t max_comparisons = 400'000;  ///< exclusions of the keys it uses, times those keys

/// `containers` as the projection keeps them: amounts of extended resources only. Of a pod as the API server has it, or
/// of a template, whose requests were not copied from the limits yet: an absent request counts as equal.
ruling evaluate(const rule_set& rules, std::span<const kube::container> containers, std::string_view runtime_class,
                const evaluation& evaluation = {});

struct pod_spec;
/// The same of a pod as it was read (pod_spec.hpp); one beyond what is read is too large whatever it names.
ruling evaluate(const rule_set& rules, const pod_spec& pod, evaluation evaluation = {});

pod_amounts pod_amounts_in(const auto& annotations, const auto& labels) {
  pod_amounts out;
  const auto take = [&](const auto& entries, bool label) {
    for (const auto& [name, value] : entries) {
      if (quota::is_pod_amount(name, label)) out.emplace_back(name, value);
    }
  };
  take(annotations, false);
  take(labels, true);
  return out;
}

}  // namespace reconcilers::declarations
