#include "agent/static_pod/health.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

namespace agent::static_pod {
namespace {

using json = nlohmann::json;

std::string text_at(const json& in, const json::json_pointer& at) {
  if (!in.contains(at)) return {};
  const auto& found = in.at(at);
  return found.is_string() ? found.get<std::string>() : std::string();
}

std::string name_of(const json& pod) { return text_at(pod, json::json_pointer("/metadata/name")); }

bool ready(const json& pod) {
  const json::json_pointer at("/status/conditions");
  if (!pod.contains(at) || !pod.at(at).is_array()) return false;
  for (const auto& one : pod.at(at)) {
    if (text_at(one, json::json_pointer("/type")) == "Ready")
      return text_at(one, json::json_pointer("/status")) == "True";
  }
  return false;
}

/// What the container says of itself while it does not run; of one that runs just now, how often it has ended before.
std::string says(const json& pod) {
  for (const auto* at : {"/status/containerStatuses/0/state/waiting/reason",
                         "/status/containerStatuses/0/state/terminated/reason", "/status/reason"}) {
    if (auto text = text_at(pod, json::json_pointer(at)); !text.empty()) return " (" + text + ")";
  }
  const json::json_pointer restarts("/status/containerStatuses/0/restartCount");
  if (!pod.contains(restarts) || !pod.at(restarts).is_number_integer() || pod.at(restarts) <= 0) return {};
  const auto times = pod.at(restarts).get<std::int64_t>();
  return " (has ended " + std::to_string(times) + (times == 1 ? " time)" : " times)");
}

}  // namespace

std::string trouble_of_pod(const json& mirror, std::string_view annotation, std::string_view checksum) {
  if (!mirror.is_object()) return "the kubelet shows no kube-scheduler of this node";
  const auto key = json::json_pointer("/metadata/annotations") / std::string(annotation);
  if (text_at(mirror, key) != checksum)
    return "the kubelet does not run the manifest as it is now: " + name_of(mirror) + " is of another";
  if (!ready(mirror)) return name_of(mirror) + " is not ready" + says(mirror);
  return {};
}

std::string run_of(const json& mirror, std::string_view checksum) {
  return std::string(checksum) + " " + text_at(mirror, json::json_pointer("/status/containerStatuses/0/containerID"));
}

std::string trouble_of_others(const std::vector<json>& pods, std::string_view own_pod) {
  for (const auto& one : pods) {
    if (const auto name = name_of(one); name != own_pod && !ready(one))
      return name + " is not ready" + says(one) + ": one kube-scheduler at a time";
  }
  return {};
}

std::string write(const row& of) {
  const nlohmann::ordered_json out = {
      {"state", of.is},    {"generation", of.generation}, {"checksum", of.checksum},         {"version", of.version},
      {"since", of.since}, {"reason", of.reason},         {"certificates", of.certificates}, {"tried", of.tried}};
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

row read_row(std::string_view text) {
  row out;
  const auto from = json::parse(text, nullptr, false);
  if (!from.is_object()) return out;
  const auto field = [&from](const char* name) { return text_at(from, json::json_pointer("/" + std::string(name))); };
  out.is = field("state");
  if (const auto at = from.find("generation"); at != from.end() && at->is_number_integer())
    out.generation = at->get<std::int64_t>();
  out.checksum = field("checksum");
  out.version = field("version");
  out.since = field("since");
  out.reason = field("reason");
  out.certificates = field("certificates");
  out.tried = field("tried");
  return out;
}

bool between(const row& of) {
  return of.is == to_string(state::changing) || of.is == to_string(state::rolling_back) ||
         of.is == to_string(state::removing);
}

std::string trouble_of_tried(const std::map<std::string, row>& rows, std::string_view own, std::string_view checksum) {
  for (const auto& [node, row] : rows) {
    if (node == own || row.is != to_string(state::rolled_back) || row.tried.empty() || row.tried != checksum) continue;
    return "master " + node + " was rolled back from the same configuration; its row says why. Once that is mended, " +
           "spec.scheduler.mode None and then StaticPod again is a new try";
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
