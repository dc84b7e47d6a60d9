#include "kube/projections/node.hpp"

#include "kube/projections/kept.hpp"
#include "kube/wire.hpp"

namespace kube {
namespace {

using wire::each_field, wire::field;

taint read_taint(std::string_view bytes) {
  taint made;
  each_field(bytes, field<1>(made.key), field<2>(made.value), field<3>(made.effect));
  return made;
}

void read_spec(std::string_view bytes, node& node) {
  each_field(bytes, field<4>(node.unschedulable),
             field<5>([&](std::string_view taint) { node.taints.push_back(read_taint(taint)); }));
}

void read_ready(std::string_view bytes, node& node) {
  const auto [type, status, since] = wire::read_condition(bytes);
  if (type != "Ready") return;
  node.ready = status == "True"    ? condition_status::yes
               : status == "False" ? condition_status::no
                                   : condition_status::unknown;
  node.ready_since = since;
}

void read_info(std::string_view bytes, node& node) {
  each_field(bytes, field<6>(node.container_runtime), field<7>(node.kubelet_version), field<9>(node.operating_system),
             field<10>(node.architecture));
}

void read_status(std::string_view bytes, node& node) {
  each_field(bytes, field<1>([&](std::string_view entry) { wire::add_extended_resource(node.capacity, entry); }),
             field<2>([&](std::string_view entry) { wire::add_extended_resource(node.allocatable, entry); }),
             field<4>([&](std::string_view condition) { read_ready(condition, node); }),
             field<5>([&](std::string_view entry) {
               // NodeAddress has type and address where a map entry has key and value.
               const auto [type, address] = wire::read_entry(entry);
               if (type == "InternalIP" && node.address.empty()) node.address = address;
             }),
             field<7>([&](std::string_view info) { read_info(info, node); }));
}

/// Node Feature Discovery lists the labels that are its own, also where someone else wrote their value. The list is
/// long, and one label of it is enough to know. Its name begins with that of the instance, if there is one. Source:
/// pkg/nfd-master/nfd-master.go, updateNodeObject.
bool claims_cards(const wire::map_entry& annotation) {
  constexpr std::string_view list = "nfd.node.kubernetes.io/feature-labels", label = "nvidia.com/gpu.product";
  if (!annotation.key.ends_with(list)) return false;
  const auto begin = annotation.value.find(label);
  const auto end = begin + label.size();
  return begin != std::string_view::npos && (begin == 0 || annotation.value[begin - 1] == ',') &&
         (end == annotation.value.size() || annotation.value[end] == ',');
}

void read_meta(std::string_view meta, node& node) {
  wire::read_metadata(meta, node, keep_all, {kept_node_annotations});
  each_field(meta, field<12>([&](std::string_view annotation) {
               if (claims_cards(wire::read_entry(annotation))) node.has_gpu_discovery = true;
             }));
}

void read_node(std::string_view bytes, node& node) {
  each_field(bytes, field<1>([&](std::string_view meta) { read_meta(meta, node); }),
             field<2>([&](std::string_view spec) { read_spec(spec, node); }),
             field<3>([&](std::string_view status) { read_status(status, node); }));
}

}  // namespace

const resource& node::of() { return resources::nodes; }

result<node> node::decode(std::string_view bytes) { return wire::decode<node>(bytes, read_node); }

}  // namespace kube
