#include "agent/mps/messages.hpp"

#include <protozero/pbf_writer.hpp>

#include "kube/wire.hpp"

namespace agent::mps {

using kube::wire::each_field, kube::wire::field;
using protozero::pbf_writer;

std::string message_of(const std::vector<served_card>& cards) {
  std::string out;
  pbf_writer list(out);
  for (const auto& card : cards) {
    pbf_writer entry(list, 1);
    entry.add_string(1, card.uuid);
    entry.add_string(2, card.problem);
    entry.add_string(3, card.pipe_folder);
    entry.add_bool(4, card.is_limited);
  }
  return out;
}

kube::result<std::vector<served_card>> cards_in(std::string_view message) {
  return kube::wire::guarded("Cards", [message] {
    std::vector<served_card> out;
    each_field(message, field<1>([&](std::string_view entry) {
                 auto& card = out.emplace_back();
                 each_field(entry, field<1>(card.uuid), field<2>(card.problem), field<3>(card.pipe_folder),
                            field<4>(card.is_limited));
               }));
    return out;
  });
}

std::string message_of(const held_card& card) {
  std::string out;
  pbf_writer message(out);
  message.add_string(1, card.uuid);
  message.add_int64(2, card.limits.cores);
  message.add_int64(3, card.limits.memory_mib);
  return out;
}

kube::result<held_card> held_card_in(std::string_view message) {
  return kube::wire::guarded("Hold", [message] {
    held_card out;
    each_field(message, field<1>(out.uuid), field<2>(out.limits.cores), field<3>(out.limits.memory_mib));
    return out;
  });
}

std::string message_of(const ending_pod& pod) {
  std::string out;
  pbf_writer(out).add_string(1, pod.uid);
  return out;
}

kube::result<ending_pod> ending_pod_in(std::string_view message) {
  return kube::wire::guarded("End", [message] {
    ending_pod out;
    each_field(message, field<1>(out.uid));
    return out;
  });
}

std::string message_of(const limited_pod& pod) {
  std::string out;
  pbf_writer message(out);
  message.add_string(1, pod.uid);
  message.add_string(2, pod.card);
  message.add_int64(3, pod.memory_mib);
  message.add_string(4, pod.container);
  return out;
}

kube::result<limited_pod> limited_pod_in(std::string_view message) {
  return kube::wire::guarded("Limit", [message] {
    limited_pod out;
    each_field(message, field<1>(out.uid), field<2>(out.card), field<3>(out.memory_mib), field<4>(out.container));
    return out;
  });
}

}  // namespace agent::mps
