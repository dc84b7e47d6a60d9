#pragma once
// What one person may see. Every view takes it, so no view can show more than it says.

#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace cli::console {

struct viewer {
  using name_set = std::set<std::string, std::less<>>;

  std::string user;
  std::string review;             ///< as a SubjectAccessReview takes the person (controller/token_access.hpp)
  bool by_link = false;           ///< on a laptop: what the kubeconfig may see
  bool nodes = false;             ///< may list nodes and acceleratornodes
  bool all_pods = false;          ///< may list the pods of every namespace
  bool all_quotas = false;        ///< may list acceleratorquotas of every namespace
  bool declarations = false;      ///< may list ConfigMaps where declarations are
  bool lacks_namespaces = false;  ///< there are so many that they were not all asked about
  name_set namespaces;            ///< whose pods may be listed, where not all
  name_set quota_namespaces;      ///< whose acceleratorquotas may be listed, where not all

  bool sees(std::string_view ns) const { return all_pods || namespaces.contains(ns); }
  bool sees_quotas(std::string_view ns) const { return sees(ns) && (all_quotas || quota_namespaces.contains(ns)); }
  /// Equal for those who see the same.
  std::string rights() const;

  friend bool operator==(const viewer&, const viewer&) = default;
};

}  // namespace cli::console
