#include "cli/verify/verify_scheduler.hpp"

#include <algorithm>
#include <array>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <vector>

#include "api/names.hpp"
#include "cli/verify/test_pod.hpp"
#include "kube/client.hpp"
#include "kube/json_text.hpp"
#include "reconcilers/extender/reasons.hpp"
#include "scheduler_config/managed.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using kube::text_at;
using nlohmann::json;
using reconcilers::verify::outcome;
using reconcilers::verify::stage;
using reconcilers::verify::stage_code;
using reconcilers::verify::step;
using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// No kubelet offers it, so that a kube-scheduler that is not told to skip it says so.
constexpr std::string_view usual_resource = "nvidia.com/gpucores";
constexpr std::string_view no_card = "GPU-00000000-0000-0000-0000-000000000000";
constexpr std::size_t longest_reason = 1000;
/// The event, which says who it was, may come after the condition.
constexpr auto event_patience = 2s;

std::string_view key_of(const scheduler_test_options& options) {
  return options.resource.empty() ? usual_resource : std::string_view(options.resource);
}

/// The message about the pod: from its condition, or by the event, whichever is there first.
struct scheduler_message {
  bool tried = false;  ///< it was tried on the nodes; else the attempt itself failed
  std::string text;
  std::string scheduler;  ///< the scheduler, as the event has it; empty: no event has come
};

scheduler_message words_of(const json& pod, std::span<const json> events) {
  scheduler_message out;
  for (const auto& entry : pod.value("/status/conditions"_json_pointer, json::array())) {
    if (text_at(entry, "/type") != "PodScheduled" || text_at(entry, "/status") != "False") continue;
    out.text = text_at(entry, "/message");
  }
  for (const auto& event : events) {
    const auto reason = text_at(event, "/reason");
    if (reason != "FailedScheduling" && reason != "Scheduled") continue;
    out.scheduler = text_at(event, "/reportingController");
    if (out.scheduler.empty()) out.scheduler = text_at(event, "/deprecatedSource/component");
    if (const auto instance = text_at(event, "/reportingInstance"); !instance.empty())
      out.scheduler += " (" + instance + ")";
    if (out.text.empty() && reason == "FailedScheduling") out.text = text_at(event, "/note");
  }
  out.tried = out.text.contains("nodes are available") || out.text.contains("no nodes available");
  return out;
}

/// Why an attempt failed: mostly a call to the extender, by what Go's HTTP client and kube-scheduler's caller say.
stage_code failure_in(std::string_view text) {
  // Where the client's certificate is not taken, the server closes what the client believes to be open (TLS 1.3).
  constexpr std::array certificate{"x509:", "tls:", "certificate", "broken pipe", "connection reset"};
  constexpr std::array answered{"failed filter with extender", "code 4", "code 5"};
  const auto mentions = [text](const char* word) { return text.contains(word); };
  if (!mentions("Post \"") && !mentions("extender")) return stage_code::scheduler_found_no_node;
  if (std::ranges::any_of(certificate, mentions)) return stage_code::extender_untrusted;
  return std::ranges::any_of(answered, mentions) ? stage_code::extender_refuses : stage_code::extender_unreachable;
}

std::string seconds_of(std::chrono::milliseconds time) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << std::chrono::duration<double>(time).count() << " s";
  return out.str();
}

step wrong(stage_code code, std::string value, std::string other) {
  return {stage::extender, outcome::wrong, code, std::move(value), std::move(other), {}};
}

struct tested {
  kube::client api;
  const scheduler_test_options& settings;
  clock::time_point began = clock::now();
  json pod = {};
  std::vector<json> events = {};
  std::optional<step> found = {};

  std::chrono::milliseconds after() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - began);
  }

  /// Without the right to read events it is not known who it was, and all else is.
  kube::task<bool> look_at(const json& now) {
    pod = now;
    kube::list_options options;
    options.ns = settings.ns;
    options.field_selector = "regarding.uid=" + text_at(pod, "/metadata/uid");
    auto listed = co_await api.list(kube::resources::events, options);
    if (listed) events = std::move(*listed);
    found = judge_scheduling(pod, events, settings, after(), false);
    co_return found.has_value();
  }
};

}  // namespace

json extender_pod(const scheduler_test_options& options) {
  auto out = test_pod(options.image, options.name, options.patience);
  out["metadata"]["annotations"] = {{"nvidia.com/use-gpuuuid", no_card}};
  // Else the chart's policies send a pod for default-scheduler elsewhere.
  if (!options.name.empty()) out["metadata"]["labels"][api::names::scheduler_label] = "ignore";
  auto& spec = out["spec"];
  spec["tolerations"] = json::array({{{"operator", "Exists"}}});
  auto& container = spec["containers"][0];
  container["command"] = {"true"};
  container["imagePullPolicy"] = "Never";
  container["resources"] = {{"limits", {{key_of(options), "1"}}}};
  return out;
}

std::optional<step> judge_scheduling(const json& pod, std::span<const json> events,
                                     const scheduler_test_options& options, std::chrono::milliseconds after,
                                     bool late) {
  const auto name = text_at(pod, "/spec/schedulerName"), node = text_at(pod, "/spec/nodeName");
  const std::string key(key_of(options));
  auto words = words_of(pod, events);
  if (!node.empty()) return wrong(stage_code::scheduler_did_not_ask, node, name);
  if (words.text.empty()) {
    if (!late) return {};
    return wrong(stage_code::scheduler_unseen, seconds_of(after), name);
  }
  const auto text = text::shown(words.text, longest_reason);
  if (reconcilers::extender::carries_ours(words.text)) {
    if (words.scheduler.empty() && !late && after < event_patience) return {};
    return step{stage::extender,   outcome::good,
                stage_code::none,  words.scheduler.empty() ? name : words.scheduler,
                seconds_of(after), {}};
  }
  if (!words.tried) {
    if (!late) return {};  // it tries again
    return wrong(failure_in(words.text), text, name);
  }
  const auto* managed = scheduler_config::managed_key_of(key);
  const bool looks_itself = managed && !managed->offered && words.text.contains("Insufficient " + key);
  return wrong(looks_itself ? stage_code::scheduler_looks_itself : stage_code::scheduler_found_no_node, text, name);
}

kube::task<step> test_scheduler(kube::transport& transport, scheduler_test_options options, text::phrase* words) {
  tested tested{kube::client(transport), options};
  const pod_look look_at = [&tested](const json& pod) { return tested.look_at(pod); };
  auto pod = extender_pod(options);
  const auto tried =
      co_await try_pod(transport, options.ns, std::move(pod), options.patience, options.look_every, look_at, words);
  if (!tried) co_return std::unexpected(tried.error());
  if (tried->refused)
    co_return wrong(stage_code::test_pod_refused, text::shown(tried->refused->message, longest_reason), {});
  if (tested.found) co_return *tested.found;
  if (tried->stopped || tried->gone) {
    const text::phrase reason{tried->stopped ? "verify.test_pod.stopped_before_answer" : "verify.test_pod.gone"};
    if (words) *words = reason;
    co_return std::unexpected(kube::error{kube::errc::cancelled, 0, words_of(reason, text::language::en), {}});
  }
  co_return *judge_scheduling(tested.pod, tested.events, options, tested.after(), true);
}

}  // namespace cli
