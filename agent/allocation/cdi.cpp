#include "agent/allocation/cdi.hpp"

#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace agent::allocation {

std::string device_name_of(std::vector<std::string> ids) {
  std::ranges::sort(ids);
  std::string all;
  for (const auto& id : ids) all.append(id).push_back('\n');  // no ID has a line's end: the kubelet keeps them in JSON
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(all.data()), all.size(), digest.data());
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out = "d-";
  for (std::size_t i = 0; i < 8; ++i) out.append({digits[digest[i] >> 4], digits[digest[i] & 15]});
  return out;
}

std::string qualified_name(std::string_view kind, std::string_view device) {
  return std::string(kind) + "=" + std::string(device);
}

std::string specification(std::string_view kind, std::string_view device, const container_edits& edits,
                          std::string_view pod, std::string_view container) {
  using nlohmann::ordered_json;
  ordered_json changes = ordered_json::object();
  for (const auto& [name, value] : edits.environment) changes["env"].push_back(name + "=" + value);
  for (const auto& path : edits.device_nodes) changes["deviceNodes"].push_back({{"path", path}});
  for (const auto& [source, target] : edits.mounts)
    changes["mounts"].push_back(
        {{"hostPath", source}, {"containerPath", target}, {"options", {"ro", "nosuid", "nodev", "bind"}}});
  const ordered_json out{{"cdiVersion", "0.6.0"},
                         {"kind", kind},
                         {"annotations", {{"quartermaster.io/pod", pod}, {"quartermaster.io/container", container}}},
                         {"devices", {{{"name", device}, {"containerEdits", std::move(changes)}}}}};
  return out.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace agent::allocation
