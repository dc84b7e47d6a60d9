#include "cli/console/access.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "controller/sleep.hpp"
#include "kube/config.hpp"
#include "kube/json_text.hpp"

namespace cli::console {
namespace {

using controller::milliseconds;

constexpr kube::resource token_reviews{"authentication.k8s.io", "v1", "tokenreviews", "TokenReview", false};
constexpr kube::resource access_reviews{"authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview",
                                        false};
/// Of a token; the API server's own are below 2 KiB, those of identity providers below 16 KiB.
constexpr std::size_t longest_token = 16u << 10;
/// How long a request waits for the same question of another one.
constexpr int most_waits = 500;
constexpr milliseconds one_wait{20};

std::string sha256(std::string_view text) {
  std::string out(32, '\0');
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(out.data()), &size, EVP_sha256(), nullptr);
  return out;
}

/// What follows "Bearer "; empty: it is no such header.
std::string_view bearer_in(std::string_view authorization) {
  static constexpr std::string_view scheme = "bearer ";
  if (authorization.size() <= scheme.size() || authorization.size() > longest_token) return {};
  for (std::size_t i = 0; i < scheme.size(); ++i) {
    const auto letter = authorization[i];
    const auto lower = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
    if (lower != scheme[i]) return {};
  }
  const auto token = authorization.substr(scheme.size());
  const auto is_sound = [](char letter) { return letter > ' ' && letter < 127; };
  return std::ranges::all_of(token, is_sound) ? token : std::string_view();
}

refusal unauthenticated() {
  return {401, "unauthenticated",
          "sign in with a token of this cluster: there is none in the request, or the API server does not take it "
          "(`kubectl create token NAME` makes one for a ServiceAccount)",
          0};
}

refusal too_often(std::chrono::seconds wait) {
  return {429, "too_many_requests", "too many sign-ins; come again in " + std::to_string(wait.count()) + " s",
          wait.count()};
}

}  // namespace

std::optional<std::int64_t> end_of(std::string_view token) {
  const auto first = token.find('.'), second = token.find('.', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return std::nullopt;
  std::string payload(token.substr(first + 1, second - first - 1));
  std::ranges::replace(payload, '-', '+');
  std::ranges::replace(payload, '_', '/');
  payload.append((4 - payload.size() % 4) % 4, '=');
  const auto text = kube::base64_decode(payload);
  if (!text) return std::nullopt;
  const auto claims = nlohmann::json::parse(*text, nullptr, false);
  if (!claims.is_object() || !claims.contains("exp") || !claims["exp"].is_number()) return std::nullopt;
  return claims["exp"].get<std::int64_t>();
}

access::access(kube::client& api, access_settings settings, std::function<std::vector<std::string>()> namespaces,
               std::function<milliseconds()> now)
    : api_(api),
      settings_(std::move(settings)),
      namespaces_(std::move(namespaces)),
      now_(std::move(now)),
      strangers_(settings_.strangers),
      everyone_(settings_.everyone) {}

kube::task<std::optional<access::person>> access::review_token(std::string token) {
  const nlohmann::json review{
      {"apiVersion", "authentication.k8s.io/v1"}, {"kind", "TokenReview"}, {"spec", {{"token", token}}}};
  auto answer = co_await api_.create(token_reviews, {}, review);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  const auto status = answer->value("status", nlohmann::json::object());
  const bool is_taken =
      status.is_object() && status.value("authenticated", nlohmann::json(false)) == nlohmann::json(true);
  const auto user = is_taken ? status.value("user", nlohmann::json::object()) : nlohmann::json();
  if (!user.is_object() || kube::text_in(user, "username").empty()) co_return std::optional<person>();
  nlohmann::json spec{{"user", kube::text_in(user, "username")}};
  for (const auto* key : {"uid", "groups", "extra"})
    if (user.contains(key)) spec[key] = user[key];
  co_return person{kube::text_in(user, "username"), spec.dump()};
}

kube::task<bool> access::may_list(const person& person, std::string group, std::string resource, std::string ns) {
  auto spec = nlohmann::json::parse(person.review);
  spec["resourceAttributes"] = {{"verb", "list"}, {"group", group}, {"resource", resource}, {"namespace", ns}};
  const nlohmann::json review{
      {"apiVersion", "authorization.k8s.io/v1"}, {"kind", "SubjectAccessReview"}, {"spec", std::move(spec)}};
  auto answer = co_await api_.create(access_reviews, {}, review);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  const auto status = answer->value("status", nlohmann::json::object());
  co_return status.is_object() && status.value("allowed", nlohmann::json(false)) == nlohmann::json(true);
}

kube::task<viewer> access::rights_of(person person) {
  viewer out;
  out.user = person.name;
  const std::string own_group = "quartermaster.io";
  const auto nodes = co_await may_list(person, "", "nodes", "");
  if (!nodes) co_return std::unexpected(nodes.error());
  if (*nodes) {
    const auto reports = co_await may_list(person, own_group, "acceleratornodes", "");
    if (!reports) co_return std::unexpected(reports.error());
    out.nodes = *reports;
  }
  const auto pods = co_await may_list(person, "", "pods", "");
  if (!pods) co_return std::unexpected(pods.error());
  out.all_pods = *pods;
  const auto quotas = co_await may_list(person, own_group, "acceleratorquotas", "");
  if (!quotas) co_return std::unexpected(quotas.error());
  out.all_quotas = *quotas;
  const auto declared = co_await may_list(person, "", "configmaps", settings_.declarations);
  if (!declared) co_return std::unexpected(declared.error());
  out.declarations = *declared;
  if (out.all_pods && out.all_quotas) co_return out;
  auto names = namespaces_();
  if (names.size() > settings_.most_namespaces) names.resize(settings_.most_namespaces);
  for (const auto& name : names) {
    if (!out.all_pods) {
      const auto here = co_await may_list(person, "", "pods", name);
      if (!here) co_return std::unexpected(here.error());
      if (!*here) continue;
      out.namespaces.insert(name);
    }
    if (out.all_quotas) continue;
    const auto quotas_here = co_await may_list(person, own_group, "acceleratorquotas", name);
    if (!quotas_here) co_return std::unexpected(quotas_here.error());
    if (*quotas_here) out.quota_namespaces.insert(name);
  }
  co_return out;
}

template <class Value>
void access::make_room(std::unordered_map<std::string, Value>& known) const {
  if (known.size() < settings_.most_tokens) return;
  const auto now = now_();
  std::erase_if(known, [&](const auto& entry) { return entry.second.until <= now; });
  if (known.size() < settings_.most_tokens) return;
  known.erase(std::ranges::min_element(known, {}, [](const auto& entry) { return entry.second.until; }));
}

boost::asio::awaitable<access::admission> access::learn(std::string token, digest digest) {
  const auto end = end_of(token);
  auto person = co_await review_token(std::move(token));
  if (!person)
    co_return std::unexpected(refusal{
        503, "not_ready",
        "the API server cannot be asked about the token: " + std::string(kube::to_string(person.error().code)), 5});
  if (!*person) {
    make_room(refused_);
    refused_[digest] = {{}, now_() + settings_.kept_refused};
    co_return std::unexpected(unauthenticated());
  }
  auto rights = co_await rights_of(std::move(**person));
  if (!rights)
    co_return std::unexpected(refusal{
        503, "not_ready",
        "the API server cannot be asked about rights: " + std::string(kube::to_string(rights.error().code)), 5});
  milliseconds kept = settings_.kept;
  if (end) {
    const auto left = std::chrono::seconds(*end) - std::chrono::system_clock::now().time_since_epoch();
    kept = std::min(kept, std::max(std::chrono::duration_cast<milliseconds>(left), milliseconds(0)));
  }
  make_room(sessions_);
  sessions_[digest] = {*rights, now_() + kept};
  co_return std::move(*rights);
}

boost::asio::awaitable<access::admission> access::admit(std::string authorization, std::string address) {
  const auto token = std::string(bearer_in(authorization));
  if (token.empty()) co_return std::unexpected(unauthenticated());
  if (!settings_.link_token.empty()) {
    const bool is_equal = token.size() == settings_.link_token.size() &&
                          CRYPTO_memcmp(token.data(), settings_.link_token.data(), token.size()) == 0;
    if (is_equal) co_return viewer{"kubeconfig", true, true, true, true, true, {}, {}};
    if (const auto wait = strangers_.ask(address, now_())) co_return std::unexpected(too_often(*wait));
    co_return std::unexpected(refusal{401, "unauthenticated", "this is not the token of the printed link", 0});
  }
  const auto digest = sha256(token);
  for (int waits = 0; asking_.contains(digest) && waits < most_waits; ++waits) {
    const bool slept = co_await controller::sleep_for(one_wait);
    if (!slept) co_return std::unexpected(refusal{503, "not_ready", "the console stops", 5});
  }
  if (const auto match = sessions_.find(digest); match != sessions_.end() && now_() < match->second.until)
    co_return match->second.rights;
  if (const auto match = refused_.find(digest); match != refused_.end() && now_() < match->second.until)
    co_return std::unexpected(unauthenticated());
  if (const auto wait = strangers_.ask(address, now_())) co_return std::unexpected(too_often(*wait));
  if (const auto wait = everyone_.ask("", now_())) co_return std::unexpected(too_often(*wait));
  struct mark {
    std::unordered_map<std::string, int>& asking;
    const std::string& key;
    mark(std::unordered_map<std::string, int>& all, const std::string& name) : asking(all), key(name) { ++asking[key]; }
    mark(const mark&) = delete;
    mark& operator=(const mark&) = delete;
    ~mark() {
      if (--asking[key] == 0) asking.erase(key);
    }
  } mark(asking_, digest);
  co_return co_await learn(token, digest);
}

}  // namespace cli::console
