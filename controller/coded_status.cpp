#include "controller/coded_status.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "controller/log.hpp"

namespace controller {
namespace {

using nlohmann::json;

/// What earlier versions of the types do not have.
constexpr auto code_fields = {"cause", "parameters", "blockerCauses"};

/// Of a server-side apply with a field that the CRD does not have (structured-merge-diff, typed/validate.go).
bool names_unknown_codes(const kube::error& refusal) {
  return refusal.message.contains("field not declared in schema") &&
         std::ranges::any_of(
             code_fields, [&](std::string_view field) { return refusal.message.contains("." + std::string(field)); });
}

}  // namespace

json without_codes(json status) {
  if (status.is_object()) {
    for (const auto* field : code_fields) status.erase(field);
  }
  if (status.is_structured())
    for (auto& part : status) part = without_codes(std::move(part));
  return status;
}

kube::task<json> coded_status::apply(kube::client& api, kube::resource type, kube::object_key key, json object,
                                     kube::write_options options) {
  auto answer = co_await api.apply_status(type, key, object, options);
  if (answer) lacks_codes_ = false;
  if (answer || !names_unknown_codes(answer.error())) co_return answer;
  object["status"] = without_codes(std::move(object["status"]));
  answer = co_await api.apply_status(type, key, object, options);
  if (answer && !std::exchange(lacks_codes_, true))
    log::warn(
        "the CRD is of an earlier version and has no fields for codes of messages: they are left out; apply the "
        "CRDs of this version",
        {{"crd", std::string(type.plural) + "." + std::string(type.group)}});
  co_return answer;
}

}  // namespace controller
