#include "kube/projections/node.hpp"

#include "kube/wire.hpp"

namespace kube {
namespace {

using wire::bytes_field, wire::number_field, wire::reader, wire::text, wire::copy;

constexpr std::string_view annotation_patterns[] = {"quartermaster.io/", "hami.io/"};

taint read_taint(std::string_view bytes) {
  taint made;
  reader message(bytes.data(), bytes.size());
  while (message.next()) {
    switch (message.tag_and_type()) {
      case bytes_field(1):
        made.key = text(message);
        break;
      case bytes_field(2):
        made.value = text(message);
        break;
      case bytes_field(3):
        made.effect = text(message);
        break;
      default:
        message.skip();
    }
  }
  return made;
}

void read_spec(std::string_view bytes, node& into) {
  reader spec(bytes.data(), bytes.size());
  while (spec.next()) {
    switch (spec.tag_and_type()) {
      case number_field(4):
        into.unschedulable = wire::flag(spec);
        break;
      case bytes_field(5):
        into.taints.push_back(read_taint(text(spec)));
        break;
      default:
        spec.skip();
    }
  }
}

void read_ready(std::string_view bytes, node& into) {
  const auto [type, status, since] = wire::read_condition(bytes, 4);
  if (type != "Ready") return;
  into.ready = status == "True"    ? condition_status::yes
               : status == "False" ? condition_status::no
                                   : condition_status::unknown;
  into.ready_since = since;
}

void read_info(std::string_view bytes, node& into) {
  reader info(bytes.data(), bytes.size());
  while (info.next()) {
    switch (info.tag_and_type()) {
      case bytes_field(7):
        into.kubelet_version = text(info);
        break;
      case bytes_field(9):
        into.operating_system = text(info);
        break;
      case bytes_field(10):
        into.architecture = text(info);
        break;
      default:
        info.skip();
    }
  }
}

void read_status(std::string_view bytes, node& into) {
  reader status(bytes.data(), bytes.size());
  while (status.next()) {
    switch (status.tag_and_type()) {
      case bytes_field(1):
        wire::add_extended_resource(into.capacity, text(status));
        break;
      case bytes_field(2):
        wire::add_extended_resource(into.allocatable, text(status));
        break;
      case bytes_field(4):
        read_ready(text(status), into);
        break;
      case bytes_field(7):
        read_info(text(status), into);
        break;
      default:
        status.skip();
    }
  }
}

void read(std::string_view bytes, node& into) {
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

const resource& node::of() { return resources::nodes; }

result<node> node::decode(std::string_view bytes) {
  node made;
  const auto done = wire::guarded("protobuf", [&] { read(bytes, made); });
  return wire::named(std::move(made), done);
}

}  // namespace kube
