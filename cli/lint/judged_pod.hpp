#pragma once
// One place of an object that describes pods, while lint judges it: what is known of it, what was found, and what the
// parts that judge its fields, its amounts and its devices read of it.

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/lint/kubernetes_fields.hpp"
#include "cli/lint/lint_workload.hpp"
#include "kube/quantity.hpp"

namespace cli {

struct judged_pod {
  struct container {
    const text::yaml::node* item;
    std::string path, title;
  };

  const cli::manifest& manifest;
  const pod_form& form;
  bool known_kind;  ///< of Kubernetes, so that names of its fields are known
  text::language locale;
  std::vector<lint_finding>& findings;
  const known_cluster* known;  ///< null: there is no cluster
  std::string path = form.path;
  std::vector<container> containers = {};
  std::set<const text::yaml::node*> objected = {};                       ///< containers to which declared rules object
  std::set<std::pair<const text::yaml::node*, std::string>> wrong = {};  ///< container and key: its amount is no amount
  bool readable = true;

  void say(lint_code code, text::yaml::place place, const lint_details& details);
  void unknown_name(const text::yaml::node& key, std::string_view field, const kubernetes_fields::object_type& type);
  /// Names in `mapping` itself that the API server does not know there; `path` without a dot behind it.
  void unknown_names(const text::yaml::node* mapping, const std::string& path,
                     const kubernetes_fields::object_type& type);
  /// A part has another form than the readers of whole pods want.
  void unreadable(const std::string& field, const text::yaml::node& key, const text::yaml::node& is);
  /// Whether the declared rules and the drivers can be asked about it.
  bool is_held() const { return readable && !is_exempt(manifest.key.ns); }
};

std::string below(const std::string& path, std::string_view name);
std::string field(const std::string& path, std::string_view key);
std::string amount_at(const text::yaml::node& node);
const text::yaml::node* limits_of(const judged_pod::container& container);
std::vector<std::pair<std::string_view, std::string_view>> texts_in(const text::yaml::node* node);
/// What limits ask for of resources that are known, above zero.
std::vector<const text::yaml::node::entry*> asked_in(const text::yaml::node* limits);
kube::quantities quantities_in(const text::yaml::node* limits);

/// Cards that the container asks for; a share is one.
std::size_t cards_of(const judged_pod::container& container);

std::string_view kind_in_manifest(const text::yaml::node& node, text::language locale);

}  // namespace cli
