#include "agent/static_pod/health.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "controller/coded_message.hpp"
#include "kube/json_text.hpp"

namespace agent::static_pod {
namespace {

using kube::text_at;
using nlohmann::json;

std::string name_of(const json& pod) { return text_at(pod, "/metadata/name"); }

bool ready(const json& pod) {
  const json::json_pointer pointer("/status/conditions");
  if (!pod.contains(pointer) || !pod.at(pointer).is_array()) return false;
  for (const auto& entry : pod.at(pointer)) {
    if (text_at(entry, "/type") == "Ready") return text_at(entry, "/status") == "True";
  }
  return false;
}

/// What the container says of itself while it does not run; of one that runs just now, how often it has ended before.
text::phrase says(const json& pod) {
  for (const auto* entry : {"/status/containerStatuses/0/state/waiting/reason",
                            "/status/containerStatuses/0/state/terminated/reason", "/status/reason"}) {
    if (auto text = text_at(pod, entry); !text.empty()) return {"static_pod.state.reason", {{"reason", text}}};
  }
  const json::json_pointer restarts("/status/containerStatuses/0/restartCount");
  if (!pod.contains(restarts) || !pod.at(restarts).is_number_integer() || pod.at(restarts) <= 0) return {};
  return text::counted_phrase(pod.at(restarts).get<std::size_t>(), "static_pod.state.ended");
}

}  // namespace

text::phrase trouble_of_pod(const json& mirror, std::string_view annotation, std::string_view checksum) {
  if (!mirror.is_object()) return {"static_pod.no_mirror"};
  const auto key = json::json_pointer("/metadata/annotations") / std::string(annotation);
  if (text_at(mirror, key) != checksum) return {"static_pod.other_manifest", {{"pod", name_of(mirror)}}};
  if (!ready(mirror)) return {"static_pod.not_ready", {{"pod", name_of(mirror)}, {"state", says(mirror)}}};
  return {};
}

std::string run_of(const json& mirror, std::string_view checksum) {
  return std::string(checksum) + " " + text_at(mirror, "/status/containerStatuses/0/containerID");
}

text::phrase trouble_of_others(const std::vector<json>& pods, std::string_view own_pod) {
  for (const auto& pod : pods) {
    if (const auto name = name_of(pod); name != own_pod && !ready(pod))
      return {"static_pod.other_not_ready", {{"pod", name}, {"state", says(pod)}}};
  }
  return {};
}

nlohmann::ordered_json reason_fields(const text::phrase& reason) {
  json coded;
  controller::set_message(coded, reason);
  nlohmann::ordered_json out = {{"reason", coded["message"]}};
  for (const auto* name : {"cause", "parameters"})
    if (coded.contains(name)) out[name] = coded[name];
  return out;
}

text::phrase reason_in(const json& object) {
  json coded = object;
  coded["message"] = text_at(object, "/reason");
  return controller::message_of(coded);
}

std::string write(const status_row& row) {
  nlohmann::ordered_json out = {{"state", row.is},
                                {"generation", row.generation},
                                {"checksum", row.checksum},
                                {"version", row.version},
                                {"since", row.since}};
  out.update(reason_fields(row.reason));
  out["certificates"] = row.certificates;
  out["tried"] = row.tried;
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

status_row read_row(std::string_view text) {
  status_row out;
  const auto parsed = json::parse(text, nullptr, false);
  if (!parsed.is_object()) return out;
  const auto field = [&parsed](const char* name) { return text_at(parsed, "/" + std::string(name)); };
  out.is = field("state");
  if (const auto position = parsed.find("generation"); position != parsed.end() && position->is_number_integer())
    out.generation = position->get<std::int64_t>();
  out.checksum = field("checksum");
  out.version = field("version");
  out.since = field("since");
  out.reason = reason_in(parsed);
  out.certificates = field("certificates");
  out.tried = field("tried");
  return out;
}

bool between(const status_row& row) {
  return row.is == to_string(state::changing) || row.is == to_string(state::rolling_back) ||
         row.is == to_string(state::removing);
}

text::phrase trouble_of_tried(const std::map<std::string, status_row>& rows, std::string_view own,
                              std::string_view checksum) {
  for (const auto& [node, row] : rows) {
    if (node == own || row.is != to_string(state::rolled_back) || row.tried.empty() || row.tried != checksum) continue;
    return {"static_pod.tried", {{"node", node}}};
  }
  return {};
}

void pulse::see(const std::optional<std::string>& renewed, milliseconds now) {
  // The first look shows nothing of when.
  if (last_ && renewed && *last_ != *renewed) changed_ = now;
  last_ = renewed;
}

milliseconds uptime::see(bool works, std::string run, milliseconds now) {
  if (run != run_ || !works) since_.reset();
  run_ = std::move(run);
  if (!works) return milliseconds(0);
  if (!since_) since_ = now;
  return now - *since_;
}

}  // namespace agent::static_pod
