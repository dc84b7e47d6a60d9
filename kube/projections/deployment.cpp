#include "kube/projections/deployment.hpp"

#include "kube/wire.hpp"

namespace kube {
namespace {

using wire::bytes_field, wire::number_field, wire::reader, wire::text;

constexpr std::string_view annotation_patterns[] = {"quartermaster.io/"};

void read_spec(std::string_view bytes, deployment& into) {
  reader spec(bytes.data(), bytes.size());
  while (spec.next()) {
    if (spec.tag_and_type() == number_field(1))
      into.desired = spec.get_int32();
    else
      spec.skip();
  }
}

/// DeploymentCondition: type 1, status 2, message 5.
void read_condition(std::string_view bytes, deployment& into) {
  std::string_view type, status, message;
  reader condition(bytes.data(), bytes.size());
  while (condition.next()) {
    switch (condition.tag_and_type()) {
      case bytes_field(1):
        type = text(condition);
        break;
      case bytes_field(2):
        status = text(condition);
        break;
      case bytes_field(5):
        message = text(condition);
        break;
      default:
        condition.skip();
    }
  }
  const bool refused = type == "ReplicaFailure" && status == "True", late = type == "Progressing" && status == "False";
  if (refused || (late && into.problem.empty())) into.problem = message;
}

void read_status(std::string_view bytes, deployment& into) {
  reader status(bytes.data(), bytes.size());
  while (status.next()) {
    switch (status.tag_and_type()) {
      case number_field(1):
        into.observed_generation = status.get_int64();
        break;
      case number_field(2):
        into.replicas = status.get_int32();
        break;
      case number_field(3):
        into.updated = status.get_int32();
        break;
      case number_field(4):
        into.available = status.get_int32();
        break;
      case number_field(7):
        into.ready = status.get_int32();
        break;
      case bytes_field(6):
        read_condition(text(status), into);
        break;
      default:
        status.skip();
    }
  }
}

void read(std::string_view bytes, deployment& into) {
  reader message(bytes.data(), bytes.size());
  while (message.next()) {
    switch (message.tag_and_type()) {
      case bytes_field(1):
        wire::read_metadata(text(message), into, keep_all, {annotation_patterns});
        break;
      case bytes_field(2):
        read_spec(text(message), into);
        break;
      case bytes_field(3):
        read_status(text(message), into);
        break;
      default:
        message.skip();
    }
  }
}

}  // namespace

const resource& deployment::of() { return resources::deployments; }

result<deployment> deployment::decode(std::string_view bytes) {
  deployment made;
  const auto done = wire::guarded("protobuf", [&] { read(bytes, made); });
  return wire::named(std::move(made), done);
}

}  // namespace kube
