#include "cli/explain/resource_claims.hpp"

#include <nlohmann/json.hpp>

#include "kube/client.hpp"
#include "kube/json_text.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using kube::text_in;
using nlohmann::json;

/// Of a list in an object that may have any form.
template <class Take>
void each_in_list(const json& object, const char* path, Take take) {
  const json::json_pointer place(path);
  if (!object.is_object() || !object.contains(place) || !object[place].is_array()) return;
  for (const auto& entry : object[place])
    if (entry.is_object()) take(entry);
}

}  // namespace

claim_state claim_state_of(const json& claim) {
  claim_state out;
  const auto add_class = [&](const json& request) {
    if (const auto name = text_in(request, "deviceClassName"); !name.empty()) out.classes.push_back(text::shown(name));
  };
  each_in_list(claim, "/spec/devices/requests", [&](const json& request) {
    add_class(request);
    if (request.contains("exactly")) add_class(request["exactly"]);
    each_in_list(request, "/firstAvailable", add_class);
  });
  each_in_list(claim, "/status/allocation/devices/results", [&](const json& device) {
    out.devices.push_back(text::shown(std::string(text_in(device, "driver")) + "/" +
                                          std::string(text_in(device, "pool")) + "/" +
                                          std::string(text_in(device, "device")),
                                      200));
  });
  constexpr auto allocation = "/status/allocation";
  const json::json_pointer place(allocation);
  out.is_allocated = claim.is_object() && claim.contains(place) && claim[place].is_object();
  return out;
}

claim_states saved_claims(const picture& picture, const kube::described_pod& pod) {
  claim_states out;
  if (!picture.reason_unseen(part::claims).empty()) return out;
  for (const auto& claim : pod.claims) {
    if (claim.object.empty()) continue;
    const kube::object_key key{pod.key.ns, claim.object};
    const auto match = picture.claims.find(key);
    auto& state = out[key];
    if (match != picture.claims.end()) state = claim_state_of(json::parse(match->second, nullptr, false));
  }
  return out;
}

kube::task<void> read_claims(kube::transport& transport, kube::described_pod pod, claim_states& out) {
  kube::client api(transport);
  for (const auto& claim : pod.claims) {
    if (claim.object.empty()) continue;
    const kube::object_key key{pod.key.ns, claim.object};
    for (const auto* type : {&resource_claims, &older_resource_claims}) {
      const auto answer = co_await api.get(*type, key);
      if (answer) {
        out.insert_or_assign(key, claim_state_of(*answer));
        break;
      }
      const auto code = answer.error().code;
      if (code == kube::errc::forbidden) break;
      if (code != kube::errc::not_found) co_return std::unexpected(answer.error());
      out.insert_or_assign(key, std::nullopt);
    }
  }
  co_return kube::result<void>();
}

}  // namespace cli
