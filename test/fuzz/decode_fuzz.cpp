// Every reader of bytes from the API server on the same input: projections, lists, events, statuses, metadata of custom
// resources. Must refuse or accept, never crash; what is accepted is equal to itself read again. Seeds:
// test/kube/golden.

#include <cstdint>
#include <cstdlib>

#include "kube/event.hpp"
#include "kube/json_object.hpp"
#include "kube/projections/config_map.hpp"
#include "kube/projections/daemon_set.hpp"
#include "kube/projections/lease.hpp"
#include "kube/projections/name_space.hpp"
#include "kube/projections/node.hpp"
#include "kube/projections/pod.hpp"
#include "kube/status.hpp"

namespace {

template <class T>
void decode_twice(std::string_view bytes) {
  const auto first = T::decode(bytes), other = T::decode(bytes);
  if (first.has_value() != other.has_value()) std::abort();
  if (first && !(*first == *other)) std::abort();
  if (first && first->key.name.empty()) std::abort();
  if (!first && first.error().code != kube::errc::decode) std::abort();
}

void walk(kube::on_demand::value value, int depth) {
  simdjson::ondemand::json_type type = value.type();
  if (depth > 50) return;
  if (type == simdjson::ondemand::json_type::object) {
    kube::on_demand::each_member(value,
                                 [&](std::string_view, kube::on_demand::value inner) { walk(inner, depth + 1); });
  } else if (type == simdjson::ondemand::json_type::array) {
    kube::on_demand::each_item(value, [&](kube::on_demand::value inner) { walk(inner, depth + 1); });
  } else {
    (void)kube::on_demand::text_or(value);
  }
}

void custom_resource(std::string_view bytes) {
  kube::object object;
  (void)kube::on_demand::read_object("X", bytes, object, kube::keep_all,
                                     [](std::string_view, kube::on_demand::value field) { walk(field, 0); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  decode_twice<kube::node>(bytes);
  decode_twice<kube::pod>(bytes);
  decode_twice<kube::daemon_set>(bytes);
  decode_twice<kube::config_map>(bytes);
  decode_twice<kube::lease>(bytes);
  decode_twice<kube::name_space>(bytes);
  custom_resource(bytes);
  for (const auto format : {kube::encoding::protobuf, kube::encoding::json}) {
    std::size_t total = 0;
    (void)kube::read_list(bytes, format, [&](std::string_view item) { total += item.size(); });
    if (total > size) std::abort();
    if (const auto event = kube::read_event(bytes, format)) {
      if (event->object.data() < bytes.data() || event->object.size() > size) {
        if (!event->object.empty()) std::abort();
      }
    }
    const auto error = kube::error_of_status("watch", bytes, format);
    if (error.message.size() > 2200) std::abort();
  }
  kube::response answer;
  answer.status = 500;
  answer.body = bytes;
  (void)kube::error_of("get", answer);
  return 0;
}
