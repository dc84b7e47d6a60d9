#pragma once
// `quartermaster inspect resources`: every declared resource of a cluster as people see it, the ConfigMaps that only
// look like declarations, and an audit: pods that are running and would be refused if they were made now. Reads only.

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "cli/cluster/cluster.hpp"
#include "cli/cluster/declaration_registry.hpp"
#include "cli/output/listing.hpp"
#include "reconcilers/declarations/evaluate.hpp"
#include "reconcilers/declarations/registry.hpp"

namespace cli {

struct inspect_options {
  std::string ns = "kube-public";
  listing_style style;
  cluster_options cluster;
};

struct resource_row {
  reconcilers::declarations::declaration declaration;
  reconcilers::declarations::judgement judged;
  bool is_compiled = false;  ///< of the operator's rules, which do not say all that a ConfigMap says
};

/// In the order of their keys.
std::vector<resource_row> rows_of(const reconcilers::declarations::registry& registry);
/// What the rules would say of a pod that is made now; nothing as well of a pod that they do not concern.
struct held_to_rules {
  bool concerned = false;
  std::vector<reconcilers::declarations::objection> refused;
};
held_to_rules judge(const reconcilers::declarations::rule_set& rules, const kube::pod& pod);

struct audit {
  struct row {
    kube::object_key pod;
    std::vector<reconcilers::declarations::objection> reasons;
  };
  std::string ns;           ///< whose pods were looked at; empty: those of all namespaces
  std::string enforcement;  ///< Warn, Deny, or unknown where we may not read the policy; empty: Off
  std::size_t looked_at = 0;
  std::vector<row> refused;  ///< in the order of their keys
};

struct inspection {
  std::vector<resource_row> resources;         ///< in the order of their keys
  std::vector<kube::object_key> not_selected;  ///< named cf-crl-*, with neither label
  std::optional<audit> audited;                ///< null: we may not list pods
  text::phrase left_out;                       ///< why
  text::phrase
      unseen;  ///< not empty: why the ConfigMaps were not seen; the rules are as the operator compiled them last
};

/// An error about ConfigMaps is one of the whole, but for a refusal (403) where the operator's rules may be read. About
/// pods it is a part that is left out.
/// @param own the namespace of the caller, whose pods are looked at where those of all may not be; empty: none
kube::task<inspection> inspect_resources(kube::transport& transport, std::string ns, std::string own = {});

/// For people with the audit after the table; json and yaml have both languages.
void print(const inspection& inspection, const inspect_options& options, std::ostream& out);

/// The exit code of the verb: 0 done, 1 failed, 3 not all was looked at.
int run_inspect_resources(const inspect_options& options, std::ostream& out, std::ostream& err);

}  // namespace cli
