#include "cli/verify_allocate.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>

#include "kube/client.hpp"
#include "reconcilers/crl/text.hpp"
#include "reconcilers/names.hpp"

namespace cli {
namespace {

namespace asio = boost::asio;
using nlohmann::json;
using reconcilers::verify::code;
using reconcilers::verify::outcome;
using reconcilers::verify::stage;
using reconcilers::verify::step;
using clock = std::chrono::steady_clock;

constexpr auto look = R"(env | grep -E '^(NVIDIA_|CUDA_|GPU_|ALIYUN_)' | sort
nvidia-smi -L 2>/dev/null || ls -d /dev/nvidia[0-9]* 2>/dev/null || echo 'no card is visible')";
constexpr std::string_view nothing_seen = "no card is visible";
constexpr std::size_t most_said = 2000;

std::string text_at(const json& in, const char* pointer) {
  const json::json_pointer at(pointer);
  return in.contains(at) && in[at].is_string() ? in[at].get<std::string>() : std::string();
}

std::string shown(const kube::quantities& unit) {
  std::string out;
  for (const auto& [name, amount] : unit) out += (out.empty() ? "" : ", ") + name + " " + std::to_string(amount);
  return out;
}

/// Why a pod does not run yet, or failed, in the words of scheduler and kubelet.
std::string reason_in(const json& pod) {
  if (auto said = text_at(pod, "/status/message"); !said.empty()) {
    const auto reason = text_at(pod, "/status/reason");
    return reason.empty() ? said : reason + ": " + said;
  }
  const auto status = pod.value("status", json::object());
  for (const auto& one : status.value("containerStatuses", json::array())) {
    for (const auto state : {"/state/waiting", "/state/terminated"}) {
      auto reason = text_at(one, (std::string(state) + "/reason").c_str());
      if (reason.empty() || reason == "ContainerCreating" || reason == "Completed") continue;
      const auto message = text_at(one, (std::string(state) + "/message").c_str());
      return message.empty() ? reason : reason + ": " + message;
    }
  }
  for (const auto& one : status.value("conditions", json::array())) {
    if (one.value("type", "") == "PodScheduled" && one.value("status", "") == "False")
      return one.value("reason", "") + ": " + one.value("message", "");
  }
  return {};
}

/// What became of the pod so far. `log` is null where it could not be read.
struct seen {
  bool over = false, ran = false;
  std::optional<std::string> log;
  std::string why;
};

struct attempt {
  kube::client api;
  kube::object_key key;
  std::string uid;
  allocate_options with;
  std::optional<clock::time_point> running_since;

  kube::task<seen> look_at() {
    seen out;
    const auto pod = co_await api.get(kube::resources::pods, key);
    if (!pod) {
      if (pod.error().code != kube::errc::not_found) co_return std::unexpected(pod.error());
      out.over = true;
      out.why = "somebody else removed it";
      co_return out;
    }
    const auto phase = text_at(*pod, "/status/phase");
    out.why = reason_in(*pod);
    if (phase != "Running" && phase != "Succeeded" && phase != "Failed") co_return out;
    const auto path = kube::path_of(kube::resources::pods, key.ns, key.name, "log") + "?tailLines=40";
    const auto log = co_await api.raw(path);
    if (log && log->status == 200) out.log = log->body;
    out.ran = phase == "Succeeded";
    out.over = phase != "Running";
    if (phase == "Failed" && out.why.empty()) out.why = "the container failed";
    if (phase == "Running" && !running_since) running_since = clock::now();
    // A simulated kubelet runs pods without a process: nothing ends, and there is no log.
    if (phase == "Running" && !out.log && clock::now() - *running_since >= with.silent_run) out.ran = out.over = true;
    co_return out;
  }

  kube::task<void> remove() {
    kube::preconditions only_if;
    only_if.uid = uid;
    const auto done = co_await api.remove(kube::resources::pods, key, only_if);
    if (!done)
      co_return std::unexpected(kube::error{done.error().code, done.error().http,
                                            "test pod " + key.to_string() + " could not be removed (" +
                                                done.error().what + "): kubectl delete pod -n " + key.ns + " " +
                                                key.name,
                                            std::nullopt});
    co_return kube::result<void>();
  }
};

step judged(const seen& last, bool stopped, const std::string& unit) {
  if (last.ran) {
    if (!last.log) return {stage::allocation, outcome::unknown, code::none, {}, unit, {}};
    const auto said = reconcilers::crl::shown(*last.log, most_said);
    const bool blind = last.log->contains(nothing_seen);
    return {stage::allocation,
            blind ? outcome::wrong : outcome::good,
            blind ? code::allocation_sees_nothing : code::none,
            said,
            unit,
            {}};
  }
  auto why = last.why;
  if (stopped)
    why = "stopped";
  else if (!last.over)
    why = "it did not end in time" + (why.empty() ? "" : ": " + why);
  return {
      stage::allocation, outcome::wrong, code::allocation_failed, reconcilers::crl::shown(why, most_said), unit, {}};
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

json allocation_pod(const std::string& node, const kube::quantities& unit, const allocate_options& with) {
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
  tolerate(std::string(reconcilers::names::accelerator_taint));
  json node_is = {{"key", "metadata.name"}, {"operator", "In"}, {"values", {node}}};
  json affinity = {{"nodeAffinity",
                    {{"requiredDuringSchedulingIgnoredDuringExecution",
                      {{"nodeSelectorTerms", json::array({{{"matchFields", json::array({std::move(node_is)})}}})}}}}}};
  json container = {{"name", "verify"},
                    {"image", with.image},
                    {"command", {"sh", "-c", look}},
                    {"resources", {{"limits", std::move(limits)}}},
                    {"securityContext", {{"allowPrivilegeEscalation", false}, {"capabilities", {{"drop", {"ALL"}}}}}}};
  json out = {
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata",
       {{"generateName", "quartermaster-verify-"}, {"labels", {{"app.kubernetes.io/name", "quartermaster-verify"}}}}},
      {"spec",
       {{"restartPolicy", "Never"},
        {"activeDeadlineSeconds", with.timeout_seconds},
        {"terminationGracePeriodSeconds", 0},
        {"automountServiceAccountToken", false},
        {"securityContext",
         {{"runAsNonRoot", true}, {"runAsUser", 65532}, {"seccompProfile", {{"type", "RuntimeDefault"}}}}},
        {"affinity", std::move(affinity)},
        {"tolerations", std::move(tolerations)},
        {"containers", json::array({std::move(container)})}}}};
  if (!with.scheduler.empty()) out["spec"]["schedulerName"] = with.scheduler;
  return out;
}

kube::task<step> try_allocation(kube::transport& over, const reconcilers::verify::node_view& node,
                                const reconcilers::modules::module_type& mode, allocate_options with) {
  const auto unit = smallest_unit(mode);
  for (const auto& [name, amount] : unit) {
    auto free = kube::amount(node.node.allocatable, name);
    for (const auto& one : node.claims) free -= kube::amount(one.asked, name);
    // A busy node proves itself by its pods.
    if (free < amount) co_return step{stage::allocation, outcome::skipped, code::none, name, shown(unit), {}};
  }
  kube::client api(over);
  const auto body = allocation_pod(node.node.key.name, unit, with);
  const auto made = co_await api.create(kube::resources::pods, with.ns, body);
  if (!made) {
    co_return step{stage::allocation,
                   outcome::wrong,
                   code::allocation_failed,
                   reconcilers::crl::shown(made.error().what, most_said),
                   shown(unit),
                   {}};
  }
  attempt one{
      kube::client(over), {with.ns, text_at(*made, "/metadata/name")}, text_at(*made, "/metadata/uid"), with, {}};
  const auto executor = co_await asio::this_coro::executor;
  asio::steady_timer pause(executor);
  asio::signal_set signals(executor, SIGINT, SIGTERM);
  const auto stopped = std::make_shared<bool>(false);
  signals.async_wait([stopped, &pause](const boost::system::error_code& failed, int) {
    if (failed) return;
    *stopped = true;
    pause.cancel();
  });
  seen last;
  std::optional<kube::error> lost;
  const auto end = clock::now() + std::chrono::seconds(with.timeout_seconds);
  while (!last.over && !*stopped && clock::now() < end) {
    auto now = co_await one.look_at();
    if (!now) {
      lost = now.error();
      break;
    }
    last = std::move(*now);
    if (last.over || *stopped) break;
    pause.expires_after(with.look_every);
    co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  signals.cancel();
  const auto gone = co_await one.remove();
  if (!gone) co_return std::unexpected(gone.error());
  if (lost) co_return std::unexpected(*lost);
  co_return judged(last, *stopped, shown(unit));
}

}  // namespace cli
