#include "kube/projections/deployment.hpp"

#include "kube/wire.hpp"

namespace kube {
namespace {

using wire::each_field, wire::field;

void read_spec(std::string_view spec, deployment& deployment) { each_field(spec, field<1>(deployment.desired)); }

/// DeploymentCondition: type 1, status 2, message 5.
void read_condition(std::string_view bytes, deployment& deployment) {
  std::string_view type, status, message;
  each_field(bytes, field<1>(type), field<2>(status), field<5>(message));
  const bool refused = type == "ReplicaFailure" && status == "True", late = type == "Progressing" && status == "False";
  if (refused || (late && deployment.problem.empty())) deployment.problem = message;
}

void read_status(std::string_view bytes, deployment& deployment) {
  each_field(bytes, field<1>(deployment.observed_generation), field<2>(deployment.replicas),
             field<3>(deployment.updated), field<4>(deployment.available), field<7>(deployment.ready),
             field<6>([&](std::string_view condition) { read_condition(condition, deployment); }));
}

void read_deployment(std::string_view bytes, deployment& deployment) {
  each_field(bytes, field<1>([&](std::string_view meta) {
               wire::read_metadata(meta, deployment, keep_all, {own_annotations});
             }),
             field<2>([&](std::string_view spec) { read_spec(spec, deployment); }),
             field<3>([&](std::string_view status) { read_status(status, deployment); }));
}

}  // namespace

const resource& deployment::of() { return resources::deployments; }

result<deployment> deployment::decode(std::string_view bytes) {
  return wire::decode<deployment>(bytes, read_deployment);
}

}  // namespace kube
