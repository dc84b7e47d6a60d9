#include "kube/projections/deployment.hpp"

#include "kube/wire.hpp"

namespace kube {
namespace {

using wire::each_field, wire::field;

constexpr std::string_view annotation_patterns[] = {"quartermaster.io/"};

void read_spec(std::string_view spec, deployment& into) { each_field(spec, field<1>(into.desired)); }

/// DeploymentCondition: type 1, status 2, message 5.
void read_condition(std::string_view bytes, deployment& into) {
  std::string_view type, status, message;
  each_field(bytes, field<1>(type), field<2>(status), field<5>(message));
  const bool refused = type == "ReplicaFailure" && status == "True", late = type == "Progressing" && status == "False";
  if (refused || (late && into.problem.empty())) into.problem = message;
}

void read_status(std::string_view bytes, deployment& into) {
  each_field(bytes, field<1>(into.observed_generation), field<2>(into.replicas), field<3>(into.updated),
             field<4>(into.available), field<7>(into.ready),
             field<6>([&](std::string_view condition) { read_condition(condition, into); }));
}

void read(std::string_view bytes, deployment& into) {
  each_field(bytes,
             field<1>([&](std::string_view meta) { wire::read_metadata(meta, into, keep_all, {annotation_patterns}); }),
             field<2>([&](std::string_view spec) { read_spec(spec, into); }),
             field<3>([&](std::string_view status) { read_status(status, into); }));
}

}  // namespace

const resource& deployment::of() { return resources::deployments; }

result<deployment> deployment::decode(std::string_view bytes) {
  deployment made;
  const auto done = wire::guarded("protobuf", [&] { read(bytes, made); });
  return wire::named(std::move(made), done);
}

}  // namespace kube
