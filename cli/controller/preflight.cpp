#include "cli/controller/preflight.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "controller/clock.hpp"
#include "controller/log.hpp"
#include "controller/sleep.hpp"
#include "kube/status.hpp"

namespace cli {
namespace {

std::unexpected<kube::error> failure(kube::errc code, std::string message) {
  return std::unexpected(kube::error{code, 0, std::move(message), std::nullopt});
}

std::string version_in(const std::string& body) {
  const auto parsed = nlohmann::json::parse(body, nullptr, false);
  return parsed.is_object() ? parsed.value("gitVersion", std::string("unknown")) : "unknown";
}

bool may_pass(int status) { return status == 429 || status >= 500; }

/// The last answer, also where it says that the server is still busy.
kube::task<kube::response> patiently(kube::client& api, std::string path, controller::milliseconds until,
                                     std::chrono::milliseconds pause) {
  for (bool report = true;;) {
    auto answer = co_await api.raw(path);
    if (!answer || !may_pass(answer->status) || controller::boot_now() >= until) co_return answer;
    if (std::exchange(report, false))
      controller::log::warn("the API server is asked again",
                            {{"path", path}, {"status", std::to_string(answer->status)}});
    const bool slept = co_await controller::sleep_for(pause);
    if (!slept) co_return answer;
  }
}

}  // namespace

kube::task<std::string> check_cluster(kube::client& api, std::chrono::milliseconds patience) {
  const auto until = controller::boot_now() + patience;
  const auto pause = patience / 60;
  const auto version = co_await patiently(api, "/version", until, pause);
  if (!version) co_return std::unexpected(version.error());
  if (!kube::succeeded(version->status))
    co_return std::unexpected(kube::error_of("ask the API server for its version", *version));

  const auto group = co_await patiently(api, "/apis/quartermaster.io/v1alpha1", until, pause);
  if (!group) co_return std::unexpected(group.error());
  if (group->status == 404) {
    co_return failure(kube::errc::not_found,
                      "the API server does not know AcceleratorPolicy (quartermaster.io/v1alpha1): install the chart "
                      "or run kubectl apply -f crds/, then start again");
  }
  const std::string path = kube::path_of(kube::resources::accelerator_policies, "") + "?limit=1";
  const auto policies = co_await patiently(api, path, until, pause);
  if (!policies) co_return std::unexpected(policies.error());
  if (policies->status == 401) {
    co_return failure(kube::errc::unauthorized,
                      "the API server does not accept our credentials (401): the token has expired or belongs "
                      "to another cluster; create a new token or use another --context");
  }
  if (policies->status == 403) {
    const auto error = kube::error_of("list acceleratorpolicies", *policies);
    co_return failure(kube::errc::forbidden,
                      error.message + "; bind this account to the chart's ClusterRole quartermaster");
  }
  if (!kube::succeeded(policies->status))
    co_return std::unexpected(kube::error_of("list acceleratorpolicies", *policies));
  co_return version_in(version->body);
}

}  // namespace cli
