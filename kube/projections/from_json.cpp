#include "kube/projections/from_json.hpp"

#include <cstdint>
#include <protozero/pbf_writer.hpp>
#include <span>
#include <string>

#include "kube/json_object.hpp"
#include "kube/projections/config_map.hpp"
#include "kube/projections/daemon_set.hpp"
#include "kube/projections/described_pod.hpp"
#include "kube/projections/lease.hpp"
#include "kube/projections/node.hpp"
#include "kube/projections/pod.hpp"
#include "kube/quantity_text.hpp"
#include "kube/rfc3339.hpp"

namespace kube {
namespace {

namespace on_demand = kube::on_demand;
using protozero::pbf_writer;

enum class field_type : std::uint8_t {
  text,
  number,
  flag,
  time,        ///< RFC 3339; in protobuf seconds 1, nanos 2
  message,     ///< with fields of its own
  texts,       ///< map of texts: entries of key 1, value 2
  quantities,  ///< map of amounts: value 2 has the text as 1
};

/// A field by its name in JSON and its number in generated.proto. An array in JSON is the field once for each item.
struct field_shape {
  std::string_view name;
  std::uint32_t number;
  field_type type = field_type::text;
  std::span<const field_shape> fields = {};  ///< of a message
  std::uint32_t holder = 0;  ///< in protobuf it is inside of a message of this number, which JSON leaves out; 0: none
};
using shape = std::span<const field_shape>;

/// The fields that projections read, by message.
namespace table {

using enum field_type;
constexpr field_shape owner[] = {
    {"kind", 1},
    {"name", 3},
    {"uid", 4},
    {"controller", 6, flag},
};
constexpr field_shape metadata[] = {
    {"name", 1},
    {"namespace", 3},
    {"uid", 5},
    {"resourceVersion", 6},
    {"generation", 7, number},
    {"creationTimestamp", 8, time},
    {"deletionTimestamp", 9, time},
    {"deletionGracePeriodSeconds", 10, number},
    {"labels", 11, texts},
    {"annotations", 12, texts},
    {"ownerReferences", 13, message, owner},
    {"finalizers", 14},
};
constexpr field_shape condition[] = {
    {"type", 1}, {"status", 2}, {"lastTransitionTime", 4, time}, {"reason", 5}, {"message", 6}};

constexpr field_shape resources[] = {{"limits", 1, quantities}, {"requests", 2, quantities}};
constexpr field_shape container[] = {
    {"name", 1}, {"image", 2}, {"resources", 8, message, resources}, {"restartPolicy", 24}};
constexpr field_shape host_path[] = {{"path", 1}};
constexpr field_shape volume[] = {{"hostPath", 1, message, host_path, 2}};
constexpr field_shape named[] = {{"name", 1}};
constexpr field_shape claim[] = {{"name", 1}, {"resourceClaimName", 3}, {"resourceClaimTemplateName", 4}};
constexpr field_shape made_claim[] = {{"name", 1}, {"resourceClaimName", 2}};
constexpr field_shape requirement[] = {{"key", 1}, {"operator", 2}, {"values", 3}};
constexpr field_shape term[] = {{"matchExpressions", 1, message, requirement},
                                {"matchFields", 2, message, requirement}};
constexpr field_shape node_selector[] = {{"nodeSelectorTerms", 1, message, term}};
constexpr field_shape node_affinity[] = {{"requiredDuringSchedulingIgnoredDuringExecution", 1, message, node_selector}};
constexpr field_shape affinity[] = {{"nodeAffinity", 1, message, node_affinity}};
constexpr field_shape toleration[] = {{"key", 1}, {"operator", 2}, {"value", 3}, {"effect", 4}};
constexpr field_shape pod_spec[] = {
    {"volumes", 1, message, volume},
    {"containers", 2, message, container},
    {"nodeSelector", 7, texts},
    {"nodeName", 10},
    {"hostNetwork", 11, flag},
    {"affinity", 18, message, affinity},
    {"schedulerName", 19},
    {"initContainers", 20, message, container},
    {"tolerations", 22, message, toleration},
    {"priority", 25, number},
    {"schedulingGates", 38, message, named},
    {"resourceClaims", 39, message, claim},
};
constexpr field_shape waiting[] = {{"reason", 1}, {"message", 2}};
constexpr field_shape terminated[] = {{"exitCode", 1, number}, {"reason", 3}, {"finishedAt", 6, time}};
constexpr field_shape state[] = {
    {"waiting", 1, message, waiting}, {"running", 2, message, shape()}, {"terminated", 3, message, terminated}};
constexpr field_shape container_status[] = {{"name", 1},
                                            {"state", 2, message, state},
                                            {"lastState", 3, message, state},
                                            {"ready", 4, flag},
                                            {"restartCount", 5, number}};
constexpr field_shape pod_status[] = {
    {"phase", 1},
    {"conditions", 2, message, condition},
    {"message", 3},
    {"reason", 4},
    {"podIP", 6},
    {"startTime", 7, time},
    {"containerStatuses", 8, message, container_status},
    {"initContainerStatuses", 10, message, container_status},
    {"nominatedNodeName", 11},
    {"resourceClaimStatuses", 15, message, made_claim},
};
constexpr field_shape pod[] = {
    {"metadata", 1, message, metadata}, {"spec", 2, message, pod_spec}, {"status", 3, message, pod_status}};

constexpr field_shape taint[] = {{"key", 1}, {"value", 2}, {"effect", 3}};
constexpr field_shape node_spec[] = {{"unschedulable", 4, flag}, {"taints", 5, message, taint}};
constexpr field_shape address[] = {{"type", 1}, {"address", 2}};
constexpr field_shape node_info[] = {
    {"containerRuntimeVersion", 6}, {"kubeletVersion", 7}, {"operatingSystem", 9}, {"architecture", 10}};
constexpr field_shape node_status[] = {
    {"capacity", 1, quantities},        {"allocatable", 2, quantities},      {"conditions", 4, message, condition},
    {"addresses", 5, message, address}, {"nodeInfo", 7, message, node_info},
};
constexpr field_shape node[] = {
    {"metadata", 1, message, metadata}, {"spec", 2, message, node_spec}, {"status", 3, message, node_status}};

constexpr field_shape pod_template[] = {{"spec", 2, message, pod_spec}};
constexpr field_shape daemon_set_spec[] = {{"template", 2, message, pod_template}};
constexpr field_shape daemon_set_status[] = {
    {"currentNumberScheduled", 1, number}, {"numberMisscheduled", 2, number},
    {"desiredNumberScheduled", 3, number}, {"numberReady", 4, number},
    {"observedGeneration", 5, number},     {"updatedNumberScheduled", 6, number},
    {"numberAvailable", 7, number},
};
constexpr field_shape daemon_set[] = {{"metadata", 1, message, metadata},
                                      {"spec", 2, message, daemon_set_spec},
                                      {"status", 3, message, daemon_set_status}};

constexpr field_shape lease_spec[] = {
    {"holderIdentity", 1},  {"leaseDurationSeconds", 2, number}, {"acquireTime", 3, time},
    {"renewTime", 4, time}, {"leaseTransitions", 5, number},
};
constexpr field_shape lease[] = {{"metadata", 1, message, metadata}, {"spec", 2, message, lease_spec}};

constexpr field_shape config_map[] = {{"metadata", 1, message, metadata}, {"data", 2, texts}, {"immutable", 4, flag}};

}  // namespace table

/// The token of a number has the blanks behind it.
std::string_view trimmed(std::string_view token) { return token.substr(0, token.find_last_not_of(" \t\r\n") + 1); }

void write_entries(pbf_writer& out, std::uint32_t tag, on_demand::value value, bool amounts) {
  using json_type = simdjson::ondemand::json_type;
  on_demand::each_member(value, [&](std::string_view key, on_demand::value inner) {
    const auto type = inner.type().value();
    std::string_view text;
    if (type == json_type::string)
      text = amounts ? unpadded_quantity(on_demand::text_or(inner)) : on_demand::text_or(inner);
    else if (amounts && type == json_type::number)
      text = trimmed(inner.raw_json_token());
    else
      return;

    pbf_writer entry(out, tag);
    entry.add_string(1, key.data(), key.size());
    if (amounts)
      pbf_writer(entry, 2).add_string(1, text.data(), text.size());
    else
      entry.add_string(2, text.data(), text.size());
  });
}

void write_time(pbf_writer& out, std::uint32_t tag, std::string_view text) {
  const auto micros = parse_rfc3339_micros(text);
  if (!micros) return;
  constexpr std::int64_t second = 1'000'000;
  const auto fraction = (*micros % second + second) % second;
  pbf_writer time(out, tag);
  time.add_int64(1, (*micros - fraction) / second);
  time.add_int32(2, static_cast<std::int32_t>(fraction * 1000));
}

/// A field that is no mapping where one is needed.
struct wrong_field {
  std::string path;  ///< grows on its way up
  std::string_view is;
};

std::string_view word_of(simdjson::ondemand::json_type type) {
  using json_type = simdjson::ondemand::json_type;
  switch (type) {
    case json_type::array:
      return "a list";
    case json_type::string:
      return "a text";
    case json_type::number:
      return "a number";
    case json_type::boolean:
      return "true or false";
    case json_type::null:
      return "null";
    default:
      return "no mapping";
  }
}

void write_message(pbf_writer& out, shape fields, on_demand::value object);

/// By way of a text of its own: a writer inside of a writer leaves an empty message out, and one that is there and
/// empty says something (state.running; a term that no node meets).
void write_inner(pbf_writer& out, const field_shape& field, on_demand::value object) {
  std::string bytes;
  pbf_writer inner(bytes);
  write_message(inner, field.fields, object);
  if (field.holder == 0) return out.add_message(field.number, bytes);
  pbf_writer holder(out, field.holder);
  holder.add_message(field.number, bytes);
}

void write_value(pbf_writer& out, const field_shape& field, on_demand::value value) {
  using json_type = simdjson::ondemand::json_type;
  const auto type = value.type().value();
  if (type == json_type::array && field.type != field_type::texts && field.type != field_type::quantities)
    return on_demand::each_item(value, [&](on_demand::value item) { write_value(out, field, item); });
  switch (field.type) {
    case field_type::text:
      if (type == json_type::string) {
        const auto text = on_demand::text_or(value);
        out.add_string(field.number, text.data(), text.size());
      }
      return;
    case field_type::number:
      if (type == json_type::number) out.add_int64(field.number, on_demand::number_or(value, 0));
      return;
    case field_type::flag:
      if (type == json_type::boolean) out.add_bool(field.number, on_demand::flag_or(value, false));
      return;
    case field_type::time:
      if (type == json_type::string) write_time(out, field.number, on_demand::text_or(value));
      return;
    case field_type::message:
      if (type != json_type::object && type != json_type::null) throw wrong_field{{}, word_of(type)};
      if (type == json_type::object) write_inner(out, field, value);
      return;
    case field_type::texts:
    case field_type::quantities:
      if (type != json_type::object && type != json_type::null) throw wrong_field{{}, word_of(type)};
      if (type == json_type::object) write_entries(out, field.number, value, field.type == field_type::quantities);
      return;
  }
}

void write_field(pbf_writer& out, const field_shape& field, on_demand::value value) {
  try {
    write_value(out, field, value);
  } catch (wrong_field& wrong) {
    wrong.path = std::string(field.name) + (wrong.path.empty() ? "" : ".") + wrong.path;
    throw;
  }
}

void write_message(pbf_writer& out, shape fields, on_demand::value object) {
  on_demand::each_member(object, [&](std::string_view key, on_demand::value value) {
    for (const auto& field : fields)
      if (field.name == key) return write_field(out, field, value);
  });
}

template <class T>
result<T> decoded(std::string_view text, shape fields) {
  static thread_local on_demand::document reused;
  std::string bytes;
  try {
    auto root = reused.open(text);
    if (const auto type = root.type().value(); type != simdjson::ondemand::json_type::object)
      throw wrong_field{{}, word_of(type)};
    pbf_writer out(bytes);
    for (auto member : root.get_object()) {
      const std::string_view key = member.unescaped_key();
      for (const auto& field : fields)
        if (field.name == key) {
          write_field(out, field, member.value());
          break;
        }
    }
  } catch (const wrong_field& wrong) {
    const auto field = wrong.path.empty() ? std::string("it") : wrong.path;
    return std::unexpected(
        error{errc::decode,
              0,
              std::string(T::of().kind) + ": " + field + " is " + std::string(wrong.is) + "; allowed: a mapping",
              {}});
  } catch (const simdjson::simdjson_error& problem) {
    return std::unexpected(error{errc::decode, 0, std::string(T::of().kind) + ": " + problem.what(), {}});
  }
  return T::decode(bytes);
}

}  // namespace

template <>
result<pod> from_json(std::string_view text) {
  return decoded<pod>(text, table::pod);
}
template <>
result<described_pod> from_json(std::string_view text) {
  return decoded<described_pod>(text, table::pod);
}
template <>
result<node> from_json(std::string_view text) {
  return decoded<node>(text, table::node);
}
template <>
result<daemon_set> from_json(std::string_view text) {
  return decoded<daemon_set>(text, table::daemon_set);
}
template <>
result<lease> from_json(std::string_view text) {
  return decoded<lease>(text, table::lease);
}
template <>
result<config_map> from_json(std::string_view text) {
  return decoded<config_map>(text, table::config_map);
}

}  // namespace kube
