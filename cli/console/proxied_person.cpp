#include "cli/console/proxied_person.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "controller/x509.hpp"

namespace cli::console {
namespace {

using controller::refusal;
using nlohmann::json;

/// The only header fields that the server keeps (controller/http_reader.hpp).
constexpr std::string_view kept_fields = "x-remote-";

std::expected<std::vector<std::string>, std::string> texts_in(const kube::config_map& map, std::string_view key) {
  const auto all = json::parse(map.data.value_or(key, "[]"), nullptr, false);
  const auto is_text = [](const json& entry) { return entry.is_string(); };
  if (!all.is_array() || !std::ranges::all_of(all, is_text))
    return std::unexpected(std::string(key) + " is not a list of names");
  return all.get<std::vector<std::string>>();
}

std::expected<std::vector<std::string>, std::string> header_fields_in(const kube::config_map& map,
                                                                      std::string_view key) {
  auto out = texts_in(map, key);
  if (!out) return out;
  for (auto& name : *out) {
    for (auto& c : name)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (!name.starts_with(kept_fields))
      return std::unexpected(std::string(key) + " names " + name + "; allowed: names that begin with X-Remote-");
  }
  return out;
}

/// "%2f" is "/", as kube-apiserver writes the keys of extra fields.
std::string decoded_key(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const auto* begin = text.data() + i + 1;
    const bool is_code = text[i] == '%' && i + 2 < text.size() &&
                         std::from_chars(begin, begin + 2, value, 16) == std::from_chars_result{begin + 2, {}};
    out += is_code ? static_cast<char>(value) : text[i];
    if (is_code) i += 2;
  }
  return out;
}

refusal unknown_caller(const char* key) { return {401, "Unauthorized", {std::string("console.view.") + key}, 0}; }

}  // namespace

std::expected<proxy_trust, std::string> trust_in(const kube::config_map& map) {
  proxy_trust out;
  out.authorities = map.data.value_or("requestheader-client-ca-file", "");
  const auto signers = controller::x509::read(out.authorities);
  if (signers.empty())
    return std::unexpected("it has no requestheader-client-ca-file: this cluster's API server aggregates no other");
  const auto names = texts_in(map, "requestheader-allowed-names");
  if (!names) return std::unexpected(names.error());
  out.names = *names;
  // People have certificates of these authorities: without names each of them could speak for all others.
  for (const auto& person_signer : controller::x509::read(map.data.value_or("client-ca-file", "")))
    for (const auto& signer : signers)
      if (signer.pem == person_signer.pem && out.names.empty())
        return std::unexpected(
            "requestheader-client-ca-file is that of people, and requestheader-allowed-names is empty");
  for (auto [key, target] : {std::pair("requestheader-username-headers", &out.user_fields),
                             std::pair("requestheader-uid-headers", &out.uid_fields),
                             std::pair("requestheader-group-headers", &out.group_fields),
                             std::pair("requestheader-extra-headers-prefix", &out.extra_prefixes)}) {
    auto fields = header_fields_in(map, key);
    if (!fields) return std::unexpected(fields.error());
    *target = std::move(*fields);
  }
  if (out.user_fields.empty()) return std::unexpected("requestheader-username-headers is empty");
  return out;
}

std::expected<controller::token_owner, refusal> person_in(const controller::http_request& request,
                                                          const proxy_trust& trust) {
  const auto& caller = request.caller_name;
  const bool is_proxy = trust.names.empty() || std::ranges::find(trust.names, caller) != trust.names.end();
  if (trust.authorities.empty() || caller.empty() || !is_proxy) return std::unexpected(unknown_caller("other_caller"));
  controller::token_owner out;
  json spec{{"groups", json::array()}};
  const auto is_of = [](const std::vector<std::string>& names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  };
  for (const auto& [name, value] : request.fields.remote) {
    if (is_of(trust.user_fields, name)) {
      if (!out.name.empty()) return std::unexpected(unknown_caller("two_people"));
      out.name = value;
    } else if (is_of(trust.uid_fields, name)) {
      spec["uid"] = value;
    } else if (is_of(trust.group_fields, name)) {
      spec["groups"].push_back(value);
    }
    for (const auto& prefix : trust.extra_prefixes)
      if (name.starts_with(prefix) && name.size() > prefix.size()) {
        spec["extra"][decoded_key(std::string_view(name).substr(prefix.size()))].push_back(value);
        break;
      }
  }
  if (out.name.empty()) return std::unexpected(unknown_caller("no_person"));
  spec["user"] = out.name;
  out.review = spec.dump(-1, ' ', false, json::error_handler_t::replace);
  return out;
}

}  // namespace cli::console
