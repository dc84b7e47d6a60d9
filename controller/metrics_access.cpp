#include "controller/metrics_access.hpp"

#include <array>
#include <nlohmann/json.hpp>

#include "controller/x509.hpp"
#include "text/phrase_code.hpp"
#include "text/text.hpp"

namespace controller {
namespace {

constexpr std::string_view page = "/metrics";
/// No one looks at its end, so nothing has to renew it.
constexpr std::int64_t certificate_life = 10LL * 365 * 86'400;

pem_pair make_certificate() {
  const auto now = wall_seconds();
  const x509::validity validity{now - x509::backdated, now + certificate_life};
  const std::array names{std::string("localhost")};
  const auto authority = x509::make_authority("quartermaster metrics", validity);
  return x509::issue(authority, "quartermaster-metrics", names, validity).value();
}

refusal forbidden(const token_owner& owner) {
  return {403,
          "forbidden",
          {"access.no_metrics", {{"name", text::shown(owner.name, 300)}, {"path", std::string(page)}}},
          0};
}

http_response page_of(const registry& registry) { return {200, registry.text(), std::string(registry::content_type)}; }

http_response response_of(const refusal& refusal) {
  http_response out{refusal.status, text::message_text(refusal.message) + "\n"};
  if (refusal.status == 401) out.fields.emplace_back("WWW-Authenticate", "Bearer");
  if (refusal.retry_seconds > 0) out.fields.emplace_back("Retry-After", std::to_string(refusal.retry_seconds));
  return out;
}

}  // namespace

token_settings metrics_tokens() {
  token_settings out;
  out.kept = std::chrono::seconds(60);
  out.kept_refused = std::chrono::seconds(10);
  out.most_tokens = out.most_accepted = 256;
  out.most_waiting = 4;
  out.strangers = {0.2, 5, 1024};
  out.everyone = out.neighbours = {1, 10, 1};
  out.renewals = {1, 10, 256};
  out.all_renewals = {5, 20, 1};
  return out;
}

metrics_access::metrics_access(kube::transport& transport, token_settings settings, std::function<milliseconds()> now)
    : api_(transport),
      tokens_(
          api_, std::move(settings), [this](token_owner owner) { return judge(std::move(owner)); }, std::move(now)) {}

kube::task<token_access<metrics_access::reader>::admission> metrics_access::judge(token_owner owner) {
  const nlohmann::json attributes{{"path", page}, {"verb", "get"}};
  const auto answer = co_await is_allowed(api_, owner, "nonResourceAttributes", attributes);
  if (!answer) co_return std::unexpected(answer.error());
  using admission = token_access<reader>::admission;
  co_return *answer ? admission(reader{}) : admission(std::unexpected(forbidden(owner)));
}

boost::asio::awaitable<http_response> metrics_access::answer(http_request request, const registry& registry) {
  auto admission = co_await tokens_.admit(std::move(request.fields.authorization), std::move(request.caller_address));
  if (!admission) co_return response_of(admission.error());
  co_return page_of(registry);
}

std::unique_ptr<metrics_access> add_metrics_route(http_server& server, const registry& registry,
                                                  kube::transport* reviews) {
  if (!reviews) {
    server.route("GET", std::string(page), [&registry](const http_request&) { return page_of(registry); });
    return nullptr;
  }
  auto out = std::make_unique<metrics_access>(*reviews);
  server.show({make_certificate(), {}}).value();
  server.route_async("GET", std::string(page), [access = out.get(), &registry](http_request request) {
    return access->answer(std::move(request), registry);
  });
  return out;
}

}  // namespace controller
