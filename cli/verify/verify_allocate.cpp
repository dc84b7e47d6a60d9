#include "cli/verify/verify_allocate.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/names.hpp"
#include "cli/verify/test_pod.hpp"
#include "kube/client.hpp"
#include "kube/json_text.hpp"
#include "text/quotation.hpp"
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

constexpr auto look_command = R"(env | grep -E '^(NVIDIA_|CUDA_|GPU_|ALIYUN_)' | sort
nvidia-smi -L 2>/dev/null || ls -d /dev/nvidia[0-9]* 2>/dev/null || echo 'no card is visible')";
constexpr std::string_view nothing_seen = "no card is visible";
constexpr std::size_t longest_output = 2000;

std::string shown(const kube::quantities& unit) {
  std::string out;
  for (const auto& [name, amount] : unit) out += (out.empty() ? "" : ", ") + name + " " + std::to_string(amount);
  return out;
}

/// Why a pod does not run yet, or failed, in the words of scheduler and kubelet.
std::string quoted_reason_in(const json& pod) {
  if (auto message = text_at(pod, "/status/message"); !message.empty()) {
    const auto reason = text_at(pod, "/status/reason");
    return reason.empty() ? message : reason + ": " + message;
  }
  const auto status = pod.value("status", json::object());
  for (const auto& entry : status.value("containerStatuses", json::array())) {
    for (const auto state : {"/state/waiting", "/state/terminated"}) {
      auto reason = text_at(entry, std::string(state) + "/reason");
      if (reason.empty() || reason == "ContainerCreating" || reason == "Completed") continue;
      const auto message = text_at(entry, std::string(state) + "/message");
      return message.empty() ? reason : reason + ": " + message;
    }
  }
  for (const auto& entry : status.value("conditions", json::array())) {
    if (kube::text_in(entry, "type") == "PodScheduled" && kube::text_in(entry, "status") == "False")
      return kube::text_in(entry, "reason") + ": " + kube::text_in(entry, "message");
  }
  return {};
}

text::phrase reason_in(const json& pod) { return text::quotation_of(text::phrase(quoted_reason_in(pod))); }

/// What became of the pod so far. `log` is null where it could not be read.
struct pod_progress {
  bool ran = false;
  std::optional<std::string> log;
  text::phrase reason;  ///< it does not run yet, or failed
};

struct attempt {
  kube::client api;
  std::string ns;
  std::chrono::milliseconds silent_run;
  pod_progress last = {};
  std::optional<clock::time_point> running_since = {};

  kube::task<bool> look_at(const json& pod) {
    last = {};
    const auto phase = text_at(pod, "/status/phase");
    last.reason = reason_in(pod);
    if (phase != "Running" && phase != "Succeeded" && phase != "Failed") co_return false;
    const auto path = kube::path_of(kube::resources::pods, ns, text_at(pod, "/metadata/name"), "log") + "?tailLines=40";
    const auto log = co_await api.raw(path);
    if (log && log->status == 200) last.log = log->body;
    last.ran = phase == "Succeeded";
    bool finished = phase != "Running";
    if (phase == "Failed" && last.reason.empty()) last.reason = {"verify.allocation.container_failed"};
    if (phase == "Running" && !running_since) running_since = clock::now();
    // A simulated kubelet runs pods without a process: nothing ends, and there is no log.
    if (phase == "Running" && !last.log && clock::now() - *running_since >= silent_run) last.ran = finished = true;
    co_return finished;
  }
};

step failed(const text::phrase& reason, const std::string& unit) {
  step out{stage::allocation, outcome::wrong, stage_code::allocation_failed, {}, unit, {}};
  out.value = text::shown(words_of(reason, text::language::en), longest_output);
  out.value_zh = text::shown(words_of(reason, text::language::zh), longest_output);
  return out;
}

step of_pod(step made, const kube::object_key& pod) {
  made.pod = pod;
  return made;
}

step judged(const pod_progress& last, const trial& trial, const std::string& unit) {
  if (last.ran) {
    if (!last.log) return {stage::allocation, outcome::unknown, stage_code::none, {}, unit, {}};
    const auto output = text::shown(*last.log, longest_output);
    const bool blind = last.log->contains(nothing_seen);
    return {stage::allocation,
            blind ? outcome::wrong : outcome::good,
            blind ? stage_code::allocation_sees_nothing : stage_code::none,
            output,
            unit,
            {}};
  }
  if (trial.gone) return failed({"verify.allocation.gone"}, unit);
  if (trial.finished) return failed(last.reason, unit);
  if (last.reason.empty()) return failed({"verify.allocation.late"}, unit);
  return failed({"verify.allocation.late_because", {{"cause", last.reason}}}, unit);
}

}  // namespace

kube::quantities smallest_unit(const reconcilers::modules::module_type& mode) {
  kube::quantities out;
  for (const auto name : mode.resources) {
    const bool counts = name == mode.resources.front() || name.ends_with("-memory");
    if (counts) out.emplace_back(std::string(name), 1);
  }
  std::ranges::sort(out);
  return out;
}

json allocation_pod(const std::string& node, const kube::quantities& unit, const allocate_options& options) {
  json limits = json::object();
  auto tolerations = json::array();
  const auto tolerate = [&](const std::string& key) {
    tolerations.push_back({{"key", key}, {"operator", "Exists"}, {"effect", "NoSchedule"}});
  };
  for (const auto& [name, amount] : unit) {
    limits[name] = std::to_string(amount);
    tolerate(name);
  }
  if (!limits.contains("nvidia.com/gpu")) tolerate("nvidia.com/gpu");
  tolerate(std::string(api::names::accelerator_taint));
  json node_is = {{"key", "metadata.name"}, {"operator", "In"}, {"values", {node}}};
  json affinity = {{"nodeAffinity",
                    {{"requiredDuringSchedulingIgnoredDuringExecution",
                      {{"nodeSelectorTerms", json::array({{{"matchFields", json::array({std::move(node_is)})}}})}}}}}};
  auto out = test_pod(options.image, options.scheduler, std::chrono::seconds(options.timeout_seconds));
  auto& spec = out["spec"];
  spec["affinity"] = std::move(affinity);
  spec["tolerations"] = std::move(tolerations);
  if (!options.runtime_class.empty()) spec["runtimeClassName"] = options.runtime_class;
  spec["containers"][0]["command"] = {"sh", "-c", look_command};
  spec["containers"][0]["resources"] = {{"limits", std::move(limits)}};
  return out;
}

kube::task<step> try_allocation(kube::transport& transport, const reconcilers::verify::node_view& node,
                                const reconcilers::modules::module_type& mode, allocate_options options,
                                text::phrase* words) {
  const auto unit = smallest_unit(mode);
  for (const auto& [name, amount] : unit) {
    auto free = kube::amount(node.node.allocatable, name);
    for (const auto& claim : node.claims) free -= kube::amount(claim.requests, name);
    // A busy node proves itself by its pods.
    if (free < amount) co_return step{stage::allocation, outcome::skipped, stage_code::none, name, shown(unit), {}};
  }
  attempt attempt{kube::client(transport), options.ns, options.silent_run};
  const pod_look look_at = [&attempt](const json& pod) { return attempt.look_at(pod); };
  auto body = allocation_pod(node.node.key.name, unit, options);
  const auto tried =
      co_await try_pod(transport, options.ns, std::move(body), std::chrono::seconds(options.timeout_seconds),
                       options.look_every, look_at, words);
  if (!tried) co_return std::unexpected(tried.error());
  const kube::object_key pod{options.ns, tried->pod};
  if (tried->refused) {
    auto refused = failed(text::quotation_of(text::phrase(tried->refused->message)), shown(unit));
    refused.cause = stage_code::test_pod_refused;
    co_return refused;
  }
  if (tried->stopped) {
    const text::phrase stopped{"verify.test_pod.stopped"};
    if (words) *words = stopped;
    co_return std::unexpected(
        kube::error{kube::errc::cancelled, 0, words_of(stopped, text::language::en), std::nullopt});
  }
  co_return of_pod(judged(attempt.last, *tried, shown(unit)), pod);
}

}  // namespace cli
