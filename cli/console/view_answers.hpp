#pragma once
// What the verbs of this program print, for a person who may see one namespace: made from the console's picture, so
// that the numbers are those that everyone sees, without a pod of another namespace. In the form that people read, or
// as the data of -o json.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cluster/cluster.hpp"
#include "cli/cluster/picture.hpp"
#include "cli/explain/simulate.hpp"
#include "cli/output/listing.hpp"
#include "kube/task.hpp"
#include "kube/transport.hpp"

namespace cli::console {

/// As a verb answers: text, and its exit code.
struct view_answer {
  std::string text, note;  ///< standard output and standard error
  int code = 0;
};

/// `inspect nodes`: modes, models, what is free. Messages of the operator, and what a change waits for, are left out,
/// because they name pods. `only`: these nodes; none: all.
view_answer nodes_answer(const picture& picture, const listing_style& style, const std::vector<std::string>& only);
/// `inspect pods -n`.
view_answer pods_answer(const picture& picture, const std::string& ns, const listing_style& style,
                        const std::vector<std::string>& only);
/// `top pods -n`. `name`: that pod; empty: all.
view_answer holdings_answer(const picture& picture, const std::string& ns, const listing_style& style,
                            const std::string& name);

/// `explain pod`, of a pod that is there. It reads the whole pod first.
kube::task<view_answer> explanation_answer(kube::transport& transport, const picture& picture, kube::object_key pod,
                                           listing_style style);
/// `report chargeback -n`, of a month such as 2026-11.
kube::task<view_answer> bill_answer(kube::transport& transport, const picture& picture, std::string ns,
                                    std::string month, listing_style style);
/// `inspect resources`: what is declared in namespace `ns`, without the audit of pods and without other ConfigMaps of
/// that namespace. `name`: of the ConfigMap that declares it; empty: all.
view_answer declarations_answer(const declared_resources& declared, const std::string& ns, const listing_style& style,
                                std::string_view name);
/// `simulate`. The picture is afterwards as it was.
view_answer simulation_answer(picture& picture, std::span<const tried_pod> pods, const listing_style& style);

}  // namespace cli::console
