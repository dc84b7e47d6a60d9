#pragma once
// What evaluate.hpp needs of a pod spec written in JSON: of a Pod in an admission review, of a template, of a file. The
// projection of the watch (kube/projections/pod.hpp) reads the same from protobuf.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/json_object.hpp"
#include "kube/projections/pod.hpp"
#include "reconcilers/declarations/evaluate.hpp"

namespace reconcilers::declarations {

struct toleration {
  std::string key, op, effect;
};

/// What a container runs, and with which environment.
struct program {
  std::string image;
  /// The last of a name counts; empty: its value comes from elsewhere and is not known here.
  std::vector<std::pair<std::string, std::optional<std::string>>> env;
  bool has_env = false, has_more_env = false;  ///< env; envFrom
};
/// Which programs of a pod are read: the judgement of declarations needs none.
enum class program_wish : bool { skipped, read };

struct pod_spec {
  std::vector<kube::container> containers;  ///< init containers first, as the projection has them
  std::vector<program> programs;            ///< of the containers; empty: skipped
  std::size_t init = 0;                     ///< so many of them are init containers
  std::size_t limits = 0;                   ///< of all containers, cpu and memory too
  pod_amounts amounts;                      ///< in its annotations and labels, where the reader of the pod put them
  std::string runtime_class;
  std::string scheduler_name, node_name;  ///< empty: not said
  bool has_tolerations = false;           ///< the list is there, perhaps without any
  std::vector<toleration> tolerations;    ///< at most `read_tolerations`
  bool complete = true;  ///< false: beyond `read_containers` or `read_limits`, and the rest was left out

  /// "/spec/initContainers/0" for index 0 where there is one.
  std::string path(std::size_t index) const {
    return index < init ? "/spec/initContainers/" + std::to_string(index)
                        : "/spec/containers/" + std::to_string(index - init);
  }
};

// More than any pod has; so that reading one costs milliseconds whatever someone sends.
inline constexpr std::size_t read_containers = 1'024;
inline constexpr std::size_t read_limits = 32'768;  ///< of all containers; and as many requests of extended resources
inline constexpr std::size_t read_tolerations = 256;

/// `spec` is the value of "spec" of a Pod, or of a template's. Amounts of extended resources only; an amount that is no
/// quantity is left out, the API server refuses it. Throws simdjson::simdjson_error.
pod_spec read_pod_spec(kube::on_demand::value spec, program_wish wish = program_wish::skipped);
/// The same from text; errc::decode.
kube::result<pod_spec> parse_pod_spec(std::string_view json, program_wish wish = program_wish::skipped);

}  // namespace reconcilers::declarations
