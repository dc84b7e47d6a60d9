#pragma once
// The kube-scheduler next to the cluster's own (spec.scheduler.mode Dedicated) as objects: its configuration in a
// ConfigMap and a Deployment of the server's own version. Pure. Its account, with its rights, and the certificates are
// the chart's. The objects have no owner: they must outlive the policy while pods wait that only this scheduler looks
// at.

#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/modules/accelerator_policy.hpp"
#include "reconcilers/modules/catalogue.hpp"

namespace reconcilers::own_scheduler {

/// Value of api::names::part_label on both objects.
inline constexpr std::string_view part = "scheduler";
inline constexpr std::string_view config_file = "scheduler-config.yaml";

struct facts {
  std::string ns;                          ///< the operator's own, where everything is
  std::string server_version;              ///< of the API server: "v1.36.3", "v1.30.4-eks-036c24b"
  std::string certificates;                ///< hash of what is in the Secret quartermaster-extender-client
  std::vector<std::string> declared = {};  ///< keys of device configurations: their pods are sent here, too
  std::string image_registry = {};         ///< of the usual image; empty: its own
};

/// "v1.36.3" of "v1.36.3+k3s1": what kube-scheduler's image is tagged with. Empty: it is no version.
std::string release_of(std::string_view server_version);
/// The policy's image, or the usual one; a name alone gets the server's version as its tag.
std::string image_of(const scheduler_spec& spec, std::string_view server_version);
/// The version of that image, as its tag tells it; empty: it is of none, or a digest.
std::string version_of(const scheduler_spec& spec, std::string_view server_version);
/// The KubeSchedulerConfiguration.
std::string config_of(const facts& known);
/// In the order they are applied.
std::vector<modules::intent> objects_of(const scheduler_spec& spec, const facts& known);

}  // namespace reconcilers::own_scheduler
