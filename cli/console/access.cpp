#include "cli/console/access.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <boost/asio/experimental/awaitable_operators.hpp>
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

/// What a JWT says, whether or not its signature is right; discarded or null: it is none.
nlohmann::json claims_of(std::string_view token) {
  const auto first = token.find('.'), second = token.find('.', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return {};
  std::string payload(token.substr(first + 1, second - first - 1));
  std::ranges::replace(payload, '-', '+');
  std::ranges::replace(payload, '_', '/');
  payload.append((4 - payload.size() % 4) % 4, '=');
  const auto text = kube::base64_decode(payload);
  return text ? nlohmann::json::parse(*text, nullptr, false) : nlohmann::json();
}

/// `audiences` is one or a list, as in a JWT.
bool has_audience(const nlohmann::json& audiences, std::string_view name) {
  const auto is_it = [&](const nlohmann::json& item) {
    return item.is_string() && item.get_ref<const std::string&>() == name;
  };
  return audiences.is_array() ? std::ranges::any_of(audiences, is_it) : is_it(audiences);
}

constexpr std::string_view way_to_a_token =
    " (`kubectl create token NAME --audience quartermaster-console` makes one for a ServiceAccount)";

refusal unauthenticated() {
  return {401, "unauthenticated",
          "sign in with a token of this cluster: there is none in the request, or the API server does not take it" +
              std::string(way_to_a_token),
          0};
}

refusal too_often(std::chrono::seconds wait) {
  return {429, "too_many_requests", "too many sign-ins; come again in " + std::to_string(wait.count()) + " s",
          wait.count()};
}

}  // namespace

std::optional<std::int64_t> end_of(std::string_view token) {
  const auto claims = claims_of(token);
  if (!claims.is_object() || !claims.contains("exp") || !claims["exp"].is_number()) return std::nullopt;
  return claims["exp"].get<std::int64_t>();
}

bool names_audience(std::string_view token, std::string_view name) {
  const auto claims = claims_of(token);
  return claims.is_object() && claims.contains("aud") && has_audience(claims["aud"], name);
}

access::access(kube::client& api, access_settings settings, std::function<std::vector<std::string>()> namespaces,
               std::function<milliseconds()> now)
    : api_(api),
      settings_(std::move(settings)),
      namespaces_(std::move(namespaces)),
      now_(std::move(now)),
      strangers_(settings_.strangers),
      everyone_(settings_.everyone),
      renewals_(settings_.renewals),
      all_renewals_(settings_.all_renewals) {}

kube::task<access::judgement> access::review_token(std::string token, bool asks_for_audience) {
  nlohmann::json question{{"token", std::move(token)}};
  if (asks_for_audience) question["audiences"] = nlohmann::json::array({audience});
  const nlohmann::json review{
      {"apiVersion", "authentication.k8s.io/v1"}, {"kind", "TokenReview"}, {"spec", std::move(question)}};
  auto answer = co_await api_.create(token_reviews, {}, review);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  judgement out;
  const auto status = answer->value("status", nlohmann::json::object());
  if (!status.is_object() || status.value("authenticated", nlohmann::json(false)) != nlohmann::json(true)) {
    // k8s.io/kubernetes/pkg/serviceaccount/jwt.go, after it has checked the signature.
    out.is_for_others = status.is_object() && kube::text_in(status, "error").contains("for the target audiences");
    co_return out;
  }
  // An authenticator that knows of no audiences says none: such a token is the API server's own (TokenReview v1).
  out.is_for_others = asks_for_audience && !has_audience(status.value("audiences", nlohmann::json::array()), audience);
  const auto user = status.value("user", nlohmann::json::object());
  if (out.is_for_others || !user.is_object() || kube::text_in(user, "username").empty()) co_return out;
  nlohmann::json spec{{"user", kube::text_in(user, "username")}};
  for (const auto* key : {"uid", "groups", "extra"})
    if (user.contains(key)) spec[key] = user[key];
  out.owner = person{kube::text_in(user, "username"), spec.dump()};
  co_return out;
}

refusal access::refusal_of(const judgement& judgement) const {
  if (!judgement.is_for_others) return unauthenticated();
  return {401, "unauthenticated",
          "this token is for another audience; allowed: " + std::string(audience) +
              (settings_.audience_only ? " alone" : ", or the API server itself") + std::string(way_to_a_token),
          0};
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

kube::task<void> access::ask_all(const person& person, std::vector<right>& rights) {
  std::size_t next = 0;
  const auto worker = [&]() -> kube::task<void> {
    while (next < rights.size()) {
      auto& right = rights[next++];
      const auto answer = co_await may_list(person, right.group, right.resource, right.ns);
      if (!answer) co_return std::unexpected(answer.error());
      right.is_there = *answer;
    }
    co_return kube::result<void>();
  };
  using namespace boost::asio::experimental::awaitable_operators;
  const auto [first, second, third, fourth] = co_await (worker() && worker() && worker() && worker());
  for (const auto* ended : {&first, &second, &third, &fourth})
    if (!*ended) co_return std::unexpected(ended->error());
  co_return kube::result<void>();
}

kube::task<viewer> access::rights_of(person person) {
  viewer out;
  out.user = person.name;
  const std::string own_group = "quartermaster.io";
  std::vector<right> everywhere{{"", "nodes", ""},
                                {own_group, "acceleratornodes", ""},
                                {"", "pods", ""},
                                {own_group, "acceleratorquotas", ""},
                                {"", "configmaps", settings_.declarations}};
  if (auto answered = co_await ask_all(person, everywhere); !answered) co_return std::unexpected(answered.error());
  out.nodes = everywhere[0].is_there && everywhere[1].is_there;
  out.all_pods = everywhere[2].is_there;
  out.all_quotas = everywhere[3].is_there;
  out.declarations = everywhere[4].is_there;
  if (out.all_pods && out.all_quotas) co_return out;
  auto names = namespaces_();
  out.lacks_namespaces = names.size() > settings_.most_namespaces && !out.all_pods;
  if (names.size() > settings_.most_namespaces) names.resize(settings_.most_namespaces);
  std::vector<right> pods, quotas;
  if (!out.all_pods) {
    for (const auto& name : names) pods.push_back({"", "pods", name});
    if (auto answered = co_await ask_all(person, pods); !answered) co_return std::unexpected(answered.error());
    for (const auto& right : pods)
      if (right.is_there) out.namespaces.insert(right.ns);
    names.assign(out.namespaces.begin(), out.namespaces.end());
  }
  if (out.all_quotas) co_return out;
  for (const auto& name : names) quotas.push_back({own_group, "acceleratorquotas", name});
  if (auto answered = co_await ask_all(person, quotas); !answered) co_return std::unexpected(answered.error());
  for (const auto& right : quotas)
    if (right.is_there) out.quota_namespaces.insert(right.ns);
  co_return out;
}

template <class Value>
void access::keep(std::unordered_map<digest, Value>& known, const digest& digest, Value value, std::size_t most) const {
  if (known.size() >= most && !known.contains(digest)) {
    const auto now = now_();
    std::erase_if(known, [&](const auto& entry) { return entry.second.until <= now; });
    if (known.size() >= most)
      known.erase(std::ranges::min_element(known, {}, [](const auto& entry) { return entry.second.until; }));
  }
  known.insert_or_assign(digest, std::move(value));
}

std::optional<std::chrono::seconds> access::wait_for(const digest& digest, const std::string& address) {
  const auto now = now_();
  if (const auto match = accepted_.find(digest); match != accepted_.end() && now < match->second.until) {
    const auto wait = renewals_.ask(match->second.user, now);
    return wait ? wait : all_renewals_.ask("", now);
  }
  const auto wait = strangers_.ask(address, now);
  return wait ? wait : everyone_.ask("", now);
}

boost::asio::awaitable<access::admission> access::learn(std::string token, digest digest, std::string address) {
  const auto end = end_of(token);
  const bool asks_for_audience = settings_.audience_only || names_audience(token, audience);
  auto judged = co_await review_token(token, asks_for_audience);
  if (judged && !judged->owner && asks_for_audience && !settings_.audience_only) {
    // An identity provider may use the same name; its tokens are the API server's own. This question counts, too.
    if (const auto wait = wait_for(digest, address)) co_return std::unexpected(too_often(*wait));
    judged = co_await review_token(std::move(token), false);
  }
  if (!judged)
    co_return std::unexpected(refusal{
        503, "not_ready",
        "the API server cannot be asked about the token: " + std::string(kube::to_string(judged.error().code)), 5});
  if (!judged->owner) {
    accepted_.erase(digest);
    auto reason = refusal_of(*judged);
    keep(refused_, digest, rejection{reason, now_() + settings_.kept_refused}, settings_.most_tokens);
    co_return std::unexpected(std::move(reason));
  }
  keep(accepted_, digest, acceptance{judged->owner->name, now_() + settings_.accepted_for}, settings_.most_accepted);
  auto rights = co_await rights_of(std::move(*judged->owner));
  if (!rights)
    co_return std::unexpected(refusal{
        503, "not_ready",
        "the API server cannot be asked about rights: " + std::string(kube::to_string(rights.error().code)), 5});
  milliseconds kept = settings_.kept;
  if (end) {
    const auto left = std::chrono::seconds(*end) - std::chrono::system_clock::now().time_since_epoch();
    kept = std::min(kept, std::max(std::chrono::duration_cast<milliseconds>(left), milliseconds(0)));
  }
  keep(sessions_, digest, session{*rights, now_() + kept}, settings_.most_tokens);
  co_return std::move(*rights);
}

boost::asio::awaitable<access::admission> access::admit(std::string authorization, std::string address) {
  const auto token = std::string(bearer_in(authorization));
  if (token.empty()) co_return std::unexpected(unauthenticated());
  if (!settings_.link_token.empty()) {
    const bool is_equal = token.size() == settings_.link_token.size() &&
                          CRYPTO_memcmp(token.data(), settings_.link_token.data(), token.size()) == 0;
    if (is_equal) co_return viewer{"kubeconfig", true, true, true, true, true, false, {}, {}};
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
    co_return std::unexpected(match->second.reason);
  if (const auto wait = wait_for(digest, address)) co_return std::unexpected(too_often(*wait));
  const counted here(asking_, digest);
  co_return co_await learn(token, digest, address);
}

}  // namespace cli::console
