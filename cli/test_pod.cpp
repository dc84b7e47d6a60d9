#include "cli/test_pod.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>

#include "kube/client.hpp"

namespace cli {
namespace {

namespace asio = boost::asio;
using nlohmann::json;
using clock = std::chrono::steady_clock;
using kube::resources::pods;

std::string text_at(const json& in, const char* pointer) {
  const json::json_pointer at(pointer);
  return in.contains(at) && in[at].is_string() ? in[at].get<std::string>() : std::string();
}

kube::task<void> remove(kube::client& api, kube::object_key key, std::string uid) {
  kube::preconditions only_if;
  only_if.uid = std::move(uid);
  const auto done = co_await api.remove(pods, key, only_if);
  if (!done)
    co_return std::unexpected(kube::error{done.error().code, done.error().http,
                                          "test pod " + key.to_string() + " could not be removed (" +
                                              done.error().what + "): kubectl delete pod -n " + key.ns + " " + key.name,
                                          std::nullopt});
  co_return kube::result<void>();
}

}  // namespace

json test_pod(const std::string& image, const std::string& scheduler, std::chrono::seconds patience) {
  json container = {{"name", "verify"},
                    {"image", image},
                    {"securityContext", {{"allowPrivilegeEscalation", false}, {"capabilities", {{"drop", {"ALL"}}}}}}};
  json out = {
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata",
       {{"generateName", "quartermaster-verify-"}, {"labels", {{"app.kubernetes.io/name", "quartermaster-verify"}}}}},
      {"spec",
       {{"restartPolicy", "Never"},
        {"activeDeadlineSeconds", patience.count()},
        {"terminationGracePeriodSeconds", 0},
        {"automountServiceAccountToken", false},
        {"securityContext",
         {{"runAsNonRoot", true}, {"runAsUser", 65532}, {"seccompProfile", {{"type", "RuntimeDefault"}}}}},
        {"containers", json::array({std::move(container)})}}}};
  if (!scheduler.empty()) out["spec"]["schedulerName"] = scheduler;
  return out;
}

kube::task<trial> try_pod(kube::transport& over, std::string ns, json pod, std::chrono::seconds patience,
                          std::chrono::milliseconds look_every, pod_look look) {
  const auto executor = co_await asio::this_coro::executor;
  asio::steady_timer pause(executor);
  asio::signal_set signals(executor, SIGINT, SIGTERM);  // from before it is made until after it is removed
  const auto stopped = std::make_shared<bool>(false);
  signals.async_wait([stopped, &pause](const boost::system::error_code& failed, int) {
    if (failed) return;
    *stopped = true;
    pause.cancel();
  });
  kube::client api(over);
  trial out;
  const auto made = co_await api.create(pods, ns, pod);
  if (!made) {
    out.refused = made.error();
    co_return out;
  }
  const kube::object_key key{ns, text_at(*made, "/metadata/name")};
  std::optional<kube::error> lost;
  const auto end = clock::now() + patience;
  while (!*stopped && clock::now() < end) {
    const auto now = co_await api.get(pods, key);
    if (!now) {
      out.gone = now.error().code == kube::errc::not_found;
      if (!out.gone) lost = now.error();
      break;
    }
    const auto enough = co_await look(*now);
    if (!enough) lost = enough.error();
    out.over = enough && *enough;
    if (lost || out.over || *stopped) break;
    pause.expires_after(look_every);
    co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  const auto removed = co_await remove(api, key, text_at(*made, "/metadata/uid"));
  if (!removed) co_return std::unexpected(removed.error());
  if (lost) co_return std::unexpected(*lost);
  out.stopped = *stopped && !out.over;
  co_return out;
}

}  // namespace cli
