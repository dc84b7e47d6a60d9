#include "agent/exporter/pod.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "kube/wire.hpp"

namespace agent::exporter {
namespace {

using kube::wire::each_field, kube::wire::field;
using nlohmann::json;

constexpr std::string_view annotation_patterns[] = {"quartermaster.io/placement"};
constexpr int cores_of_card = 100;
constexpr std::uint64_t mib = 1024 * 1024, most_mib = std::uint64_t{1} << 30;  // sums fit

std::optional<std::uint64_t> number_in(const json& object, const char* key, std::uint64_t most) {
  const auto match = object.find(key);
  if (match == object.end() || !match->is_number_unsigned()) return std::nullopt;
  const auto number = match->get<std::uint64_t>();
  return number <= most ? std::optional(number) : std::nullopt;
}

std::optional<planned_card> read_card(const std::string& container, const json& entry) {
  if (!entry.is_object()) return std::nullopt;
  const auto card = entry.find("card");
  const auto cores = number_in(entry, "cores", cores_of_card);
  const auto memory_mib = number_in(entry, "memoryMiB", most_mib);
  if (card == entry.end() || !card->is_string() || !cores || !memory_mib) return std::nullopt;
  return planned_card{container, card->get<std::string>(), static_cast<int>(*cores), *memory_mib * mib};
}

void read_container_status(std::string_view bytes, pod& pod) {
  container_id out;
  each_field(bytes, field<1>(out.name), field<8>([&](std::string_view text) {
               const auto scheme = text.find("://");
               out.id = scheme == text.npos ? text : text.substr(scheme + 3);
             }));
  if (!out.name.empty()) pod.containers.push_back(std::move(out));
}

void read_status(std::string_view bytes, pod& pod) {
  const auto read = [&pod](std::string_view item) { read_container_status(item, pod); };
  each_field(bytes,
             field<1>([&](std::string_view phase) { pod.has_finished = phase == "Succeeded" || phase == "Failed"; }),
             field<8>(read), field<10>(read), field<13>(read));
}

/// The names of the containers that run together: not of init containers that end before the others start.
std::vector<std::string> containers_in(std::string_view spec) {
  std::vector<std::string> out;
  each_field(spec, field<2>([&](std::string_view container) { each_field(container, field<1>(out.emplace_back())); }),
             field<20>([&](std::string_view container) {
               std::string name;
               bool is_sidecar = false;
               each_field(container, field<1>(name),
                          field<24>([&](std::string_view policy) { is_sidecar = policy == "Always"; }));
               if (is_sidecar) out.push_back(std::move(name));
             }));
  return out;
}

void read(std::string_view bytes, pod& pod) {
  std::vector<std::string> containers;
  each_field(bytes, field<1>([&](std::string_view meta) {
               kube::wire::read_metadata(meta, pod, kube::keep_none, {annotation_patterns});
             }),
             field<2>([&](std::string_view spec) { containers = containers_in(spec); }),
             field<3>([&](std::string_view status) { read_status(status, pod); }));
  pod.planned = planned_in(pod.annotations.value_or(annotation_patterns[0], ""));
  pod.annotations = {};
  // A container that is made up would be a series of its own.
  std::erase_if(pod.planned, [&](const planned_card& planned) {
    return std::ranges::find(containers, planned.container) == containers.end();
  });
}

}  // namespace

std::vector<planned_card> planned_in(std::string_view annotation) {
  std::vector<planned_card> out;
  if (annotation.empty()) return out;
  const auto content = json::parse(annotation, nullptr, false);
  if (!content.is_object()) return out;
  const auto containers = content.find("containers");
  if (containers == content.end() || !containers->is_object()) return out;
  for (const auto& [name, cards] : containers->items()) {
    if (!cards.is_array()) continue;
    for (const auto& entry : cards)
      if (auto card = read_card(name, entry)) out.push_back(std::move(*card));
  }
  return out;
}

kube::result<pod> pod::decode(std::string_view bytes) { return kube::wire::decode<pod>(bytes, read); }

}  // namespace agent::exporter
