#pragma once
// Rights as lines of test/golden/rbac.txt, and the right a request needs.

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "kube/request.hpp"
#include "test/reconcilers/fake_server.hpp"

namespace reconcilers {

/// scope, group/resource, verb, name.
using right = std::tuple<std::string, std::string, std::string, std::string>;

inline std::set<right> golden_rights(const std::string& table = "rbac.txt") {
  std::ifstream file(std::string(TEST_DATA) + "/golden/" + table);
  std::set<right> out;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string scope, resource, verb, name;
    words >> scope >> resource >> verb >> name;
    out.insert({scope, resource, verb, name});
  }
  return out;
}

/// What the API server would ask its authorizer. `own` is our namespace. An apply needs `create` as well where the
/// object may be missing; that is added for objects, not for status.
inline std::vector<right> needed_by(const kube::request& request, const std::string& own) {
  std::vector<std::string> parts;
  std::istringstream path(fake_server::path_of_target(request.target).substr(1));
  for (std::string part; std::getline(path, part, '/');) parts.push_back(part);
  std::size_t index = parts[0] == "api" ? 2 : 3;
  const std::string group = parts[0] == "api" ? "" : parts[1];
  std::string scope = "cluster";
  if (parts[index] == "namespaces" && parts.size() > index + 2) {
    scope = parts[index + 1] == own ? "own" : "declared";
    index += 2;
  }
  const std::string name = parts.size() > index + 1 ? parts[index + 1] : "*";
  const bool part_of = parts.size() > index + 2;
  const auto resource = group + "/" + parts[index] + (part_of ? "/" + parts[index + 2] : "");
  const auto verb = fake_server::verb_of(request);
  if (request.verb == kube::method::get) return {{scope, resource, name == "*" ? "list" : "get", name}};
  if (verb == "apply" && !part_of) return {{scope, resource, "patch", name}, {scope, resource, "create", name}};
  if (verb == "apply" || verb == "patch") return {{scope, resource, "patch", name}};
  return {{scope, resource, verb == "put" ? "update" : verb, name}};
}

/// The rights these requests need and the golden list lacks.
inline std::vector<right> not_listed(const std::vector<kube::request>& requests, const std::string& own) {
  const auto listed = golden_rights();
  std::vector<right> out;
  for (const auto& request : requests) {
    for (const auto& entry : needed_by(request, own)) {
      auto any = entry;
      std::get<3>(any) = "*";
      auto anywhere = any;
      std::get<0>(anywhere) = "cluster";
      if (!listed.contains(entry) && !listed.contains(any) && !listed.contains(anywhere)) out.push_back(entry);
    }
  }
  return out;
}

}  // namespace reconcilers
