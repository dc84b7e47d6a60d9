#include "controller/token_access.hpp"

#include <openssl/evp.h>

#include <nlohmann/json.hpp>

#include "kube/config.hpp"
#include "kube/json_text.hpp"

namespace controller {
namespace {

constexpr kube::resource token_reviews{"authentication.k8s.io", "v1", "tokenreviews", "TokenReview", false};
constexpr kube::resource access_reviews{"authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview",
                                        false};
/// Of a token; the API server's own are below 2 KiB, those of identity providers below 16 KiB.
constexpr std::size_t longest_token = 16u << 10;

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

text::phrase way_to_a_token(std::string_view audience) {
  const auto flag = audience.empty() ? std::string() : " --audience " + std::string(audience);
  return {"access.way", {{"command", "kubectl create token NAME" + flag}}};
}

}  // namespace

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

std::string sha256_of(std::string_view text) {
  std::string out(32, '\0');
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(out.data()), &size, EVP_sha256(), nullptr);
  return out;
}

std::optional<std::int64_t> end_of(std::string_view token) {
  const auto claims = claims_of(token);
  if (!claims.is_object() || !claims.contains("exp") || !claims["exp"].is_number()) return std::nullopt;
  /// A later end is as good as none, and nanoseconds until then still fit.
  constexpr double latest = 9e9;
  return static_cast<std::int64_t>(std::clamp(claims["exp"].get<double>(), 0.0, latest));
}

bool names_audience(std::string_view token, std::string_view name) {
  const auto claims = claims_of(token);
  return claims.is_object() && claims.contains("aud") && has_audience(claims["aud"], name);
}

kube::task<bool> is_allowed(kube::client& api, const token_owner& owner, const char* kind,
                            const nlohmann::json& attributes) {
  auto spec = nlohmann::json::parse(owner.review);
  spec[kind] = attributes;
  const nlohmann::json review{
      {"apiVersion", "authorization.k8s.io/v1"}, {"kind", "SubjectAccessReview"}, {"spec", std::move(spec)}};
  auto answer = co_await api.create(access_reviews, {}, review);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  const auto status = answer->value("status", nlohmann::json::object());
  co_return status.is_object() && status.value("allowed", nlohmann::json(false)) == nlohmann::json(true);
}

refusal unauthenticated(std::string_view audience) {
  return {401, "unauthenticated", {"access.no_token", {{"way", way_to_a_token(audience)}}}, 0};
}

refusal too_often(std::chrono::seconds wait) {
  return {429, "too_many_requests", {"access.too_often", {{"seconds", std::to_string(wait.count())}}}, wait.count()};
}

refusal not_asked(text::phrase subject, const kube::error& error) {
  const std::string code(kube::to_string(error.code));
  return {503, "not_ready", {"access.not_asked", {{"subject", std::move(subject)}, {"code", code}}}, 5};
}

token_reviewer::token_reviewer(kube::client& api, token_settings token_settings, std::function<milliseconds()> now)
    : settings(std::move(token_settings)),
      api_(api),
      now_(std::move(now)),
      strangers_(settings.strangers),
      everyone_(settings.everyone),
      neighbours_(settings.neighbours),
      renewals_(settings.renewals),
      all_renewals_(settings.all_renewals) {}

kube::task<token_reviewer::judgement> token_reviewer::review(std::string token, bool asks_for_audience) {
  nlohmann::json question{{"token", std::move(token)}};
  if (asks_for_audience) question["audiences"] = nlohmann::json::array({settings.audience});
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
  out.is_for_others =
      asks_for_audience && !has_audience(status.value("audiences", nlohmann::json::array()), settings.audience);
  const auto user = status.value("user", nlohmann::json::object());
  if (out.is_for_others || !user.is_object() || kube::text_in(user, "username").empty()) co_return out;
  nlohmann::json spec{{"user", kube::text_in(user, "username")}};
  for (const auto* key : {"uid", "groups", "extra"})
    if (user.contains(key)) spec[key] = user[key];
  out.owner = token_owner{kube::text_in(user, "username"), spec.dump()};
  co_return out;
}

refusal token_reviewer::refusal_of(const judgement& judgement) const {
  if (!judgement.is_for_others) return unauthenticated(settings.audience);
  const auto* key = settings.audience.empty() ? "access.for_others"
                    : settings.audience_only  ? "access.for_others_than"
                                              : "access.for_others_than_both";
  return {
      401, "unauthenticated", {key, {{"audience", settings.audience}, {"way", way_to_a_token(settings.audience)}}}, 0};
}

std::optional<std::chrono::seconds> token_reviewer::wait_for(const digest& digest, const std::string& address) {
  const auto now = now_();
  const auto is_accepted = [now](const auto& known, const std::string& name) {
    const auto match = known.find(name);
    return match != known.end() && now < match->second.until;
  };
  if (is_accepted(accepted_, digest)) {
    const auto wait = renewals_.ask(accepted_[digest].user, now);
    return wait ? wait : all_renewals_.ask("", now);
  }
  const auto wait = strangers_.ask(address, now);
  return wait ? wait : (is_accepted(addresses_, address) ? neighbours_ : everyone_).ask("", now);
}

boost::asio::awaitable<std::expected<token_owner, refusal>> token_reviewer::owner_of(std::string token, digest digest,
                                                                                     std::string address) {
  if (const auto wait = wait_for(digest, address)) co_return std::unexpected(too_often(*wait));
  const bool asks_for_audience =
      settings.audience_only || (!settings.audience.empty() && names_audience(token, settings.audience));
  auto judged = co_await review(token, asks_for_audience);
  if (judged && !judged->owner && asks_for_audience && !settings.audience_only) {
    // An identity provider may use the same name; its tokens are the API server's own. This question counts, too.
    if (const auto wait = wait_for(digest, address)) co_return std::unexpected(too_often(*wait));
    judged = co_await review(std::move(token), false);
  }
  if (!judged) co_return std::unexpected(not_asked({"access.token"}, judged.error()));
  if (!judged->owner) {
    auto reason = refusal_of(*judged);
    reject(digest, reason);
    co_return std::unexpected(std::move(reason));
  }
  keep(accepted_, digest, acceptance{judged->owner->name, now_() + settings.accepted_for}, settings.most_accepted);
  co_return std::move(*judged->owner);
}

void token_reviewer::trust(const std::string& address) {
  keep(addresses_, address, acceptance{{}, now_() + settings.accepted_for}, settings.most_accepted);
}

void token_reviewer::reject(const digest& digest, refusal reason) {
  accepted_.erase(digest);
  keep(refused_, digest, rejection{std::move(reason), now_() + settings.kept_refused}, settings.most_tokens);
}

std::optional<refusal> token_reviewer::rejection_of(const digest& digest) const {
  const auto match = refused_.find(digest);
  if (match == refused_.end() || now_() >= match->second.until) return std::nullopt;
  return match->second.reason;
}

}  // namespace controller
