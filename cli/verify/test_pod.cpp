#include "cli/verify/test_pod.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string_view>

#include "kube/client.hpp"
#include "kube/json_text.hpp"
#include "text/quotation.hpp"

namespace cli {
namespace {

namespace asio = boost::asio;
using kube::text_at;
using nlohmann::json;
using clock = std::chrono::steady_clock;
using kube::resources::pods;

constexpr int most_looks = 8;  ///< for a pod of which it is not known whether it was made

std::string by_hand(const kube::object_key& key) { return "kubectl delete pod -n " + key.ns + " " + key.name; }

text::phrase test_pod_words(const char* key, std::vector<text::phrase_argument> values = {}) {
  return {std::string("verify.test_pod.") + key, std::move(values)};
}

text::phrase quoted(const kube::error& error) { return text::quotation_of(text::phrase(error.message)); }

text::phrase not_removed(const kube::object_key& key, const kube::error& error) {
  return test_pod_words("not_removed", {{"pod", key.to_string()}, {"cause", quoted(error)}, {"command", by_hand(key)}});
}

/// The same as an error, with its code.
kube::error error_of(const text::phrase& words, kube::errc code, int http = 0) {
  return {code, http, words_of(words, text::language::en), std::nullopt};
}

kube::task<void> remove(kube::client& api, kube::object_key key, std::string uid) {
  kube::preconditions only_if;
  only_if.uid = std::move(uid);
  co_return co_await api.remove(pods, key, only_if);
}

/// Not: no rights, no namespace, too busy. Authorization speaks of "pods", admission of the pod by its name.
bool refuses_content(const kube::error& error, const std::string& name) {
  if (error.http == 400 || error.http == 422) return true;
  const bool admission =
      error.message.contains("pods \"" + name + "\" is forbidden") || error.message.contains("admission webhook");
  return error.http == 403 && admission && !error.message.contains("because it is being terminated");
}

/// It may have been made all the same: no answer came, or one of a server that failed on the way. A name that is taken
/// is an earlier try's, the answer to which was to try again.
bool in_doubt(const kube::error& error) {
  if (error.http >= 400 && error.http < 500) return error.code == kube::errc::already_exists;
  return error.code != kube::errc::tls && error.code != kube::errc::config;
}

/// Looks for a pod that may have been made, a little longer than once because the server may still be at it, and
/// removes it. What became of it.
kube::task<text::phrase> clear_up(kube::client& api, kube::object_key key, bool answered,
                                  std::chrono::milliseconds look_every) {
  asio::steady_timer pause(co_await asio::this_coro::executor);
  for (int looks = 1;; ++looks) {
    const auto found = co_await api.get(pods, key);
    if (found) {
      const auto removed = co_await remove(api, key, text_at(*found, "/metadata/uid"));
      co_return removed ? test_pod_words("made_and_removed") : not_removed(key, removed.error());
    }
    const bool absent = found.error().code == kube::errc::not_found;
    if (absent && answered) co_return test_pod_words("not_there");
    if (looks == most_looks || found.error().code == kube::errc::timeout) {
      if (absent) co_return test_pod_words("not_there_yet", {{"command", by_hand(key)}});
      co_return test_pod_words("may_be_there", {{"cause", quoted(found.error())}, {"command", by_hand(key)}});
    }
    pause.expires_after(look_every);
    co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

/// The UID of the pod. Where it is in doubt whether it was made, `words` has what became of it.
kube::task<std::string> make(kube::client& api, kube::object_key key, const json& pod,
                             std::chrono::milliseconds look_every, text::phrase& words) {
  const auto made = co_await api.create(pods, key.ns, pod);
  if (made) co_return text_at(*made, "/metadata/uid");
  auto reason = made.error();
  if (in_doubt(reason)) {
    const bool answered = reason.http != 0 && reason.http <= 500;  // 502 to 504 may be a proxy's
    const auto end = co_await clear_up(api, key, answered, look_every);
    if (end) words = {"verify.test_pod.in_doubt", {{"cause", quoted(reason)}, {"end", *end}}};
    if (end) reason.message = words_of(words, text::language::en);
  }
  co_return std::unexpected(std::move(reason));
}

/// As the API server makes them for generateName, and longer, because no one tries again.
std::string some_name() {
  constexpr std::string_view letters = "bcdfghjklmnpqrstvwxz2456789";
  std::random_device random;
  std::uniform_int_distribution<std::size_t> any(0, letters.size() - 1);
  std::string out = "quartermaster-verify-";
  for (int i = 0; i < 10; ++i) out += letters[any(random)];
  return out;
}

/// A connection that is closed while something is written to it must not end the process before the pod is removed.
class sigpipe_ignored {
 public:
  sigpipe_ignored() {
    struct sigaction ignore{};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &ignore, &before_);
  }
  ~sigpipe_ignored() { sigaction(SIGPIPE, &before_, nullptr); }
  sigpipe_ignored(const sigpipe_ignored&) = delete;
  sigpipe_ignored& operator=(const sigpipe_ignored&) = delete;

 private:
  struct sigaction before_{};
};

/// nohup: who is to outlive its terminal does.
bool outlives_terminal() {
  struct sigaction now{};
  return sigaction(SIGHUP, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

json test_pod(const std::string& image, const std::string& scheduler, std::chrono::seconds patience) {
  json container = {{"name", "verify"},
                    {"image", image},
                    {"securityContext", {{"allowPrivilegeEscalation", false}, {"capabilities", {{"drop", {"ALL"}}}}}}};
  json out = {{"apiVersion", "v1"},
              {"kind", "Pod"},
              {"metadata", {{"labels", {{"app.kubernetes.io/name", "quartermaster-verify"}}}}},
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

kube::task<trial> try_pod(kube::transport& transport, std::string ns, json pod, std::chrono::seconds patience,
                          std::chrono::milliseconds look_every, pod_look look, text::phrase* words) {
  text::phrase unused;
  auto& reason = words ? *words : unused;
  const auto stopped_before = [&reason] {
    reason = test_pod_words("stopped_before");
    return std::unexpected(error_of(reason, kube::errc::cancelled));
  };
  const auto executor = co_await asio::this_coro::executor;
  asio::steady_timer pause(executor);
  // From before it is made until after it is removed.
  const sigpipe_ignored pipes;
  asio::signal_set signals(executor, SIGINT, SIGTERM);
  if (!outlives_terminal()) signals.add(SIGHUP);
  const auto stopped = std::make_shared<bool>(false);
  signals.async_wait([stopped, &pause](const boost::system::error_code& failed, int) {
    if (failed) return;
    *stopped = true;
    pause.cancel();
  });
  kube::client api(transport);
  const kube::object_key key{ns, some_name()};
  pod["metadata"]["name"] = key.name;
  // Who cannot reach the API server, or may not read pods, learns it before a pod may be there.
  const auto before = co_await api.get(pods, key);
  if (*stopped) co_return stopped_before();
  if (!before && before.error().code != kube::errc::not_found) co_return std::unexpected(before.error());
  trial out;
  out.pod = key.name;
  const auto uid = co_await make(api, key, pod, look_every, reason);
  if (!uid) {
    if (!refuses_content(uid.error(), key.name)) co_return std::unexpected(uid.error());
    reason = {};
    if (*stopped) co_return stopped_before();
    out.refused = uid.error();
    co_return out;
  }
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
    out.finished = enough && *enough;
    if (lost || out.finished || *stopped) break;
    pause.expires_after(look_every);
    co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  const auto removed = co_await remove(api, key, *uid);
  if (!removed) {
    reason = not_removed(key, removed.error());
    co_return std::unexpected(error_of(reason, removed.error().code, removed.error().http));
  }
  if (lost) co_return std::unexpected(*lost);
  out.stopped = *stopped;
  co_return out;
}

}  // namespace cli
