#pragma once
// What the API server itself holds new pods of a namespace to: LimitRange and ResourceQuota, as far as they name
// extended resources or numbers of pods. CPU, memory and quotas with scopes are not judged.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cli/cluster/picture.hpp"
#include "kube/projections/pod.hpp"
#include "kube/task.hpp"
#include "kube/transport.hpp"
#include "text/message.hpp"

namespace cli {

class namespace_limits {
 public:
  /// Its sentences are in this language.
  explicit namespace_limits(text::language locale = text::language::en) : locale_(locale) {}

  /// One object of the API, JSON. Another kind, or what has not its form, counts nothing.
  void add(const nlohmann::json& object);
  /// A sentence about what was not read, or is not judged; each once.
  void doubt(std::string text) { doubts_.insert(std::move(text)); }
  const std::set<std::string>& doubts() const { return doubts_; }
  text::language locale() const { return locale_; }

  /// Nothing here concerns pods of the namespace.
  bool empty(const std::string& ns) const { return !ranges_.contains(ns) && !quotas_.contains(ns); }

  /// As admission does it: fills in what a LimitRange gives to containers that name none, then judges, and counts the
  /// pod where it is let in.
  /// @param containers of a pod, with their requests; limits are written into them
  /// @return why the API server refuses it, for a person; empty: it does not
  std::string admit(const std::string& ns, std::span<kube::container> containers);

 private:
  using amounts = std::map<std::string, std::int64_t>;
  struct range {
    std::string name;
    bool of_pod = false;  ///< type Pod; else Container
    amounts standard, least, most;
  };
  struct quota {
    std::string name;
    amounts hard, used;  ///< of "requests.nvidia.com/gpu", "pods" and "count/pods"
  };
  std::map<std::string, std::vector<range>> ranges_;
  std::map<std::string, std::vector<quota>> quotas_;
  std::set<std::string> doubts_;
  text::language locale_;
};

/// Of the file that the picture was read from.
void take_in_limits(const picture& picture, namespace_limits& out);

/// Of these namespaces. Without the right to list them it is a doubt, and no error.
kube::task<void> read_namespace_limits(kube::transport& transport, std::set<std::string> namespaces,
                                       namespace_limits& out);

}  // namespace cli
