#include "kube/projections/endpoint_slice.hpp"

#include "kube/wire.hpp"

namespace kube {
namespace {

using wire::bytes_field, wire::number_field, wire::reader, wire::text;

constexpr std::string_view label_patterns[] = {"kubernetes.io/service-name", "endpointslice.kubernetes.io/"};

/// ObjectReference: kind 1, namespace 2, name 3.
object_key read_pod_reference(std::string_view bytes) {
  std::string_view kind;
  object_key made;
  reader message(bytes.data(), bytes.size());
  while (message.next()) {
    switch (message.tag_and_type()) {
      case bytes_field(1):
        kind = text(message);
        break;
      case bytes_field(2):
        made.ns = text(message);
        break;
      case bytes_field(3):
        made.name = text(message);
        break;
      default:
        message.skip();
    }
  }
  return kind == "Pod" ? made : object_key();
}

bool read_ready(std::string_view bytes) {
  bool ready = true;
  reader conditions(bytes.data(), bytes.size());
  while (conditions.next()) {
    if (conditions.tag_and_type() == number_field(1)) {
      ready = wire::flag(conditions);
    } else {
      conditions.skip();
    }
  }
  return ready;
}

endpoint read_endpoint(std::string_view bytes) {
  endpoint made;
  reader message(bytes.data(), bytes.size());
  while (message.next()) {
    switch (message.tag_and_type()) {
      case bytes_field(1):
        made.addresses.emplace_back(text(message));
        break;
      case bytes_field(2):
        made.ready = read_ready(text(message));
        break;
      case bytes_field(4):
        made.pod = read_pod_reference(text(message));
        break;
      default:
        message.skip();
    }
  }
  return made;
}

endpoint_port read_port(std::string_view bytes) {
  endpoint_port made;
  reader message(bytes.data(), bytes.size());
  while (message.next()) {
    switch (message.tag_and_type()) {
      case bytes_field(1):
        made.name = text(message);
        break;
      case number_field(3):
        made.port = message.get_int32();
        break;
      default:
        message.skip();
    }
  }
  return made;
}

void read(std::string_view bytes, endpoint_slice& into) {
  reader message(bytes.data(), bytes.size());
  while (message.next()) {
    switch (message.tag_and_type()) {
      case bytes_field(1):
        wire::read_metadata(text(message), into, {label_patterns}, keep_none);
        break;
      case bytes_field(2):
        into.endpoints.push_back(read_endpoint(text(message)));
        break;
      case bytes_field(3):
        into.ports.push_back(read_port(text(message)));
        break;
      default:
        message.skip();
    }
  }
}

}  // namespace

const resource& endpoint_slice::of() { return resources::endpoint_slices; }

result<endpoint_slice> endpoint_slice::decode(std::string_view bytes) {
  endpoint_slice made;
  const auto done = wire::guarded("protobuf", [&] { read(bytes, made); });
  return wire::named(std::move(made), done);
}

}  // namespace kube
