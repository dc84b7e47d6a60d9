#include "cli/console/service.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/console/overview.hpp"
#include "cli/console/shares.hpp"
#include "console/page/assets.hpp"
#include "controller/sleep.hpp"
#include "kube/request.hpp"
#include "kube/status.hpp"
#include "reconcilers/declarations/parse.hpp"
#include "text/phrase_code.hpp"

namespace cli::console {
namespace {

using controller::http_request;
using controller::http_response;

constexpr std::string_view page_path = "/console/", api_path = "/console/api/v1/",
                           session_path = "/console/api/v1/session";
constexpr std::string_view content_policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors ";
constexpr std::size_t most_nodes = 5000, most_pods = 200, usual_pods = 50;
/// How long someone waits before looking whether it is their turn.
constexpr controller::milliseconds one_turn{5};

std::int64_t wall_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

refusal not_found() { return {404, "not_found", {"console.no_path"}, 0}; }
refusal bad_request(text::phrase message) { return {400, "bad_request", std::move(message), 0}; }
refusal forbidden(const char* right) { return {403, "forbidden", {std::string("console.right.") + right}, 0}; }
constexpr const char *fleet_right = "fleet", *pods_right = "pods", *overview_right = "overview";
refusal working_already() { return {429, "too_many_requests", {"console.working"}, 2}; }

/// Without the port; of "[::1]:8888" the address.
std::string_view host_in(std::string_view text) {
  if (text.starts_with("[")) return text.substr(1, std::min(text.find(']'), text.size()) - 1);
  return text.substr(0, text.find(':'));
}

std::expected<page_range, text::phrase> range_in(const parameters& parameters, std::size_t usual, std::size_t most) {
  page_range out{0, usual};
  for (auto [name, target] : {std::pair("offset", &out.offset), std::pair("limit", &out.limit)}) {
    const auto match = parameters.find(name);
    if (match == parameters.end()) continue;
    const auto& text = match->second;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), *target);
    if (failed != std::errc() || end != text.data() + text.size() || text.empty())
      return std::unexpected(text::phrase{"console.no_number", {{"name", name}}});
  }
  if (out.limit < 1 || out.limit > most)
    return std::unexpected(text::phrase{"console.limit", {{"most", std::to_string(most)}}});
  return out;
}

/// Nothing but these.
std::optional<refusal> unknown_word(const parameters& parameters, std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : parameters)
    if (std::ranges::find(known, name) == known.end()) {
      std::string list;
      for (const auto& word : known) list += (list.empty() ? "" : ", ") + std::string(word);
      return bad_request(list.empty() ? text::phrase{"console.no_parameters"}
                                      : text::phrase{"console.only_parameters", {{"list", list}}});
    }
  return std::nullopt;
}

/// From a page of our own, or from no page. Other ports of a host are the same site to a browser, so that SameSite
/// does not keep them away; this does.
bool is_own_page(const http_request& request) {
  const auto& site = request.fields.fetch_site;
  return site.empty() || site == "same-origin" || site == "none";
}

http_response page_file(const http_request& request) {
  const auto* file = ::console::page::find(std::string_view(request.path).substr(page_path.size()));
  if (!file) return response_of(not_found());
  http_response out;
  out.content_type = file->type;
  out.fields = {{"ETag", std::string(file->etag)}, {"Cache-Control", "no-cache"}, {"Vary", "Accept-Encoding"}};
  if (request.fields.if_none_match == file->etag) {
    out.status = 304;
    return out;
  }
  if (!file->encoding.empty()) {
    if (file->encoding == "gzip" && !takes_gzip(request.fields.accept_encoding))
      return response_of(refusal{406, "not_acceptable", {"console.compressed"}, 0});
    out.fields.emplace_back("Content-Encoding", file->encoding);
  }
  out.body = file->bytes;
  return out;
}

}  // namespace

void add_guards(http_response& response, const std::vector<std::string>& frame_ancestors) {
  const bool has_cache_rule = std::ranges::find(response.fields, "Cache-Control",
                                                [](const auto& field) { return field.first; }) != response.fields.end();
  if (!has_cache_rule) response.fields.emplace_back("Cache-Control", "no-store");
  std::string policy(content_policy);
  for (const auto& origin : frame_ancestors) policy += (policy.ends_with(' ') ? "" : " ") + origin;
  if (frame_ancestors.empty()) policy += "'none'";
  response.fields.emplace_back("Content-Security-Policy", std::move(policy));
  response.fields.emplace_back("Referrer-Policy", "no-referrer");
  if (frame_ancestors.empty()) response.fields.emplace_back("X-Frame-Options", "DENY");
  response.fields.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
}

http_response response_of(const refusal& refusal) {
  http_response out;
  out.status = refusal.status;
  out.content_type = "application/json; charset=utf-8";
  out.body = body_of({{"error",
                       {{"code", refusal.code},
                        {"message", text::message_text(refusal.message)},
                        {"messages", in_languages(refusal.message)}}}});
  if (refusal.status == 401) out.fields.emplace_back("WWW-Authenticate", "Bearer");
  if (refusal.status == 405) out.fields.emplace_back("Allow", "GET, HEAD");
  if (refusal.retry_seconds > 0) out.fields.emplace_back("Retry-After", std::to_string(refusal.retry_seconds));
  return out;
}

service::service(dependencies dependencies, service_settings settings)
    : dependencies_(std::move(dependencies)), settings_(std::move(settings)), people_(settings_.people) {
  if (!dependencies_.wall) dependencies_.wall = wall_seconds;
  if (!dependencies_.prometheus) trend_message_ = {"console.no_prometheus"};
  auto& known = dependencies_.known;
  const auto count = [this](const auto*, const auto*) { ++revision_; };
  known.nodes.observe(count);
  known.policies.observe(count);
  known.rules.observe(count);
  known.quotas.observe(count);
  known.old_quotas.observe(count);
  known.cards.observe(count);
  if (dependencies_.unbound) {
    // What a scheduler says of a pod changes with each attempt, and no answer has it.
    dependencies_.unbound->observe([this](const kube::described_pod* before, const kube::described_pod* after) {
      const auto& pod = after ? *after : *before;
      const bool asks = std::ranges::any_of(pod.containers, [](const auto& entry) { return !entry.limits.empty(); });
      const bool is_same = before && after && before->rules == after->rules && before->gates == after->gates;
      if (asks && !is_same) ++revision_;
    });
  }
  known.pods.observe([this](const kube::pod* before, const kube::pod* after) {
    // Most pods of a cluster ask for no card.
    if ((before && !before->containers.empty()) || (after && !after->containers.empty())) ++revision_;
  });
}

void service::join(controller::http_server& server) {
  const auto all = "GET POST PUT PATCH DELETE OPTIONS";  // what is refused is refused here, as JSON
  server.route_async(all, "/*", [this](http_request request) { return answer(std::move(request)); }, 1024);
}

std::optional<refusal> service::misdirected(const http_request& request) const {
  const auto host = host_in(request.fields.host);
  static constexpr std::array own{std::string_view("localhost"), std::string_view("127.0.0.1"),
                                  std::string_view("::1")};
  const bool is_ours =
      std::ranges::find(own, host) != own.end() || std::ranges::find(settings_.hosts, host) != settings_.hosts.end();
  if (!is_ours) return refusal{421, "misdirected", {"console.other_host"}, 0};
  const auto& origin = request.fields.origin;
  if (!origin.empty() && origin != "http://" + request.fields.host && origin != "https://" + request.fields.host)
    return refusal{421, "misdirected", {"console.other_origin"}, 0};
  return std::nullopt;
}

std::string service::authorization_of(const http_request& request) const {
  if (!request.fields.authorization.empty() || !is_own_page(request)) return request.fields.authorization;
  const auto token = cookies_.token_in(request.fields.cookie);
  return token.empty() ? std::string() : "Bearer " + token;
}

boost::asio::awaitable<http_response> service::session(http_request request) {
  const bool is_secure = settings_.tls || request.fields.origin.starts_with("https://");
  http_response out;
  out.content_type = "application/json; charset=utf-8";
  out.body = body_of(ordered_json::object());
  if (!is_own_page(request)) co_return response_of(refusal{421, "misdirected", {"console.other_page"}, 0});
  if (request.method == "DELETE") {
    out.fields.emplace_back("Set-Cookie", session_cookies::gone(is_secure));
    co_return out;
  }
  if (request.method == "GET" || request.method == "HEAD") {
    // The page itself sends no token with this question.
    const bool by_proxy = !controller::bearer_in(request.fields.authorization).empty();
    const auto* source = settings_.by_link ? "link" : by_proxy ? "proxy" : "token";
    auto authorization = authorization_of(request);
    bool is_known = false;
    if (!authorization.empty()) {
      const auto admission = co_await dependencies_.doorkeeper.admit(std::move(authorization), request.caller_address);
      is_known = admission.has_value();
    }
    out.body = body_of({{"signedIn", is_known}, {"by", source}});
    co_return out;
  }
  if (request.method != "POST")
    co_return response_of(refusal{405, "method_not_allowed", {"console.session_methods"}, 0});
  const auto rights = co_await dependencies_.doorkeeper.admit(request.fields.authorization, request.caller_address);
  if (!rights) co_return response_of(rights.error());
  auto cookie = cookies_.made_of(controller::bearer_in(request.fields.authorization), is_secure);
  if (!cookie.empty()) out.fields.emplace_back("Set-Cookie", std::move(cookie));
  co_return out;
}

boost::asio::awaitable<http_response> service::answer(http_request request) {
  http_response out;
  const bool is_session = request.path == session_path;
  if (request.method != "GET" && request.method != "HEAD" && !is_session) {
    out = response_of(refusal{405, "method_not_allowed", {"console.reads_only"}, 0});
  } else if (const auto wrong = misdirected(request)) {
    out = response_of(*wrong);
  } else if (is_session) {
    out = co_await session(std::move(request));
  } else if (request.path == "/" || request.path + "/" == page_path) {
    out.status = 302;
    out.fields = {{"Location", std::string(page_path)}};
  } else if (!request.path.starts_with(api_path)) {
    const bool is_page = request.path.starts_with(page_path) && !request.path.starts_with("/console/api");
    out = is_page ? page_file(request) : response_of(not_found());
  } else {
    out = co_await api_answer(std::move(request));
  }
  add_guards(out, settings_.frame_ancestors);
  co_return out;
}

boost::asio::awaitable<http_response> service::api_answer(http_request request) {
  request.fields.authorization = authorization_of(request);
  auto rights = co_await dependencies_.doorkeeper.admit(request.fields.authorization, request.caller_address);
  if (!rights) co_return response_of(rights.error());
  if (const auto wait = people_.ask(rights->user, dependencies_.now()))
    co_return response_of(refusal{
        429, "too_many_requests", {"console.too_often", {{"seconds", std::to_string(wait->count())}}}, wait->count()});
  if (const auto reason = dependencies_.not_ready(); !reason.empty())
    co_return response_of(refusal{503, "not_ready", reason, 2});
  auto answered = co_await view(request, *rights);
  co_return answered ? std::move(*answered) : response_of(answered.error());
}

std::string service::key_of(const http_request& request, const viewer& viewer) {
  return request.path + "?" + request.query + "\n" + viewer.rights();
}

bool service::works_too_much(const viewer& viewer) const {
  const auto own = working_.find(viewer.user);
  return own != working_.end() && own->second >= settings_.most_waiting_each;
}

const kube::described_pod* service::whole_of(const kube::object_key& pod) const {
  return dependencies_.unbound ? dependencies_.unbound->find(pod) : nullptr;
}

service::outcome service::made(const http_request& request, const viewer& viewer,
                               const std::function<std::string()>& compute) {
  return response_of(answers_.find_or_make(key_of(request, viewer), revision_, dependencies_.now(), compute),
                     request.fields);
}

boost::asio::awaitable<std::expected<const waiting_reasons::entry*, refusal>> service::reason_of(
    kube::object_key name, const viewer& viewer, const known_resources& resources, controller::milliseconds since) {
  const auto& known = dependencies_.known;
  const auto* pod = known.pods.find(name);
  if (!pod || !waits(known, resources, *pod)) co_return nullptr;
  const auto* reason = reasons_.find(question_of(viewer, *pod, whole_of(name)), since);
  if (reason) co_return reason;
  const turns::place place(turns_);
  while (!place.is_first()) {
    const bool slept = co_await controller::sleep_for(one_turn);
    if (!slept) co_return std::unexpected(refusal{503, "not_ready", {"console.stops"}, 5});
  }
  co_await controller::yield_to_others();
  pod = known.pods.find(name);  // much may have changed meanwhile
  if (!pod || !waits(known, resources, *pod)) co_return nullptr;
  const auto* whole = whole_of(name);
  auto question = question_of(viewer, *pod, whole);
  reason = reasons_.find(question, since);
  if (reason) co_return reason;
  co_return &reasons_.keep(std::move(question),
                           {waiting_reason(known, resources, viewer, *pod, whole), revision_, dependencies_.now()});
}

boost::asio::awaitable<service::outcome> service::waiting(const http_request& request, const viewer& viewer,
                                                          std::string ns, page_range range) {
  const auto key = key_of(request, viewer);
  const auto began = dependencies_.now();
  auto revision = revision_;
  if (const auto* kept = answers_.find(key, revision, began)) co_return response_of(*kept, request.fields);
  if (works_too_much(viewer)) co_return std::unexpected(working_already());
  const counted here(working_, viewer.user);
  const auto& known = dependencies_.known;
  const auto resources = resources_of(known);
  const auto page = waiting_pods(known, resources, viewer, ns, range);
  std::map<kube::object_key, ordered_json> reasons;
  for (const auto& name : page.pods) {
    const auto reason = co_await reason_of(name, viewer, resources, began - settings_.reason_holds);
    if (!reason) co_return std::unexpected(reason.error());
    if (!*reason) continue;
    // The answer is as old as the oldest reason in it.
    revision = std::min(revision, (*reason)->revision);
    reasons.emplace(name, (*reason)->reason);
  }
  auto body = body_of(waiting_view(page, std::move(reasons)));
  co_return response_of(answers_.keep(key, revision, dependencies_.now(), std::move(body)), request.fields);
}

boost::asio::awaitable<service::outcome> service::reasons(const http_request& request, const viewer& viewer) {
  const auto key = key_of(request, viewer);
  const auto began = dependencies_.now();
  auto revision = revision_;
  if (const auto* kept = answers_.find(key, revision, began)) co_return response_of(*kept, request.fields);
  if (works_too_much(viewer)) co_return std::unexpected(working_already());
  const counted here(working_, viewer.user);
  const auto& known = dependencies_.known;
  const auto resources = resources_of(known);
  const auto questions = waiting_questions(known, resources, viewer, dependencies_.unbound);
  std::vector<ordered_json> found;
  for (const auto& question : questions) {
    if (found.size() == settings_.most_questions) break;
    const auto reason =
        co_await reason_of(question.pods.front(), viewer, resources, began - settings_.grouped_reason_holds);
    if (!reason) co_return std::unexpected(reason.error());
    if (*reason) revision = std::min(revision, (*reason)->revision);
    found.push_back(*reason ? (*reason)->reason : ordered_json());
  }
  auto body = body_of(reasons_view(questions, found));
  co_return response_of(answers_.keep(key, revision, dependencies_.now(), std::move(body)), request.fields);
}

boost::asio::awaitable<service::outcome> service::overview(const http_request& request, const viewer& viewer) {
  auto known_costs = co_await costs_now();
  // What `verify` finds is worked out over the whole cluster, so changes are taken in a step at a time.
  const auto step = static_cast<std::uint64_t>(dependencies_.now() / settings_.overview_holds);
  const auto& answer = answers_.find_or_make(key_of(request, viewer), step, dependencies_.now(), [&] {
    return body_of(overview_view(dependencies_.known, viewer, known_costs));
  });
  co_return response_of(answer, request.fields);
}

boost::asio::awaitable<service::outcome> service::view(const http_request& request, const viewer& viewer) {
  const auto path = std::string_view(request.path).substr(api_path.size());
  const auto words = parameters_in(request.query);
  if (!words) co_return std::unexpected(bad_request(words.error()));
  auto& known = dependencies_.known;
  const bool some_pods = viewer.all_pods || !viewer.namespaces.empty();
  if (path == "history") co_return co_await history(request, viewer);
  if (path != "fleet" && path != "waiting" && path != "pods" && path != "cost")
    if (auto unknown = unknown_word(*words, {})) co_return std::unexpected(std::move(*unknown));
  if (path == "me") {
    // The name is the person's own, so this answer is kept for no one else.
    const auto body = body_of(me_view(known, viewer, dependencies_.prometheus != nullptr));
    co_return response_of(answers::answer{body, {}, etag_of(body), 0, {}}, request.fields);
  }
  if (path == "fleet") {
    if (!viewer.nodes) co_return std::unexpected(forbidden(fleet_right));
    if (auto unknown = unknown_word(*words, {"offset", "limit"})) co_return std::unexpected(std::move(*unknown));
    const auto range = range_in(*words, most_nodes, most_nodes);
    if (!range) co_return std::unexpected(bad_request(range.error()));
    co_return made(request, viewer, [&] { return body_of(fleet_view(known, viewer, *range)); });
  }
  if (path.starts_with("nodes/")) {
    if (!viewer.nodes) co_return std::unexpected(forbidden(fleet_right));
    co_return co_await node(request, viewer, std::string(path.substr(6)));
  }
  if (path == "waiting" || path == "pods") {
    if (!some_pods) co_return std::unexpected(forbidden(pods_right));
    if (auto unknown = unknown_word(*words, {"namespace", "offset", "limit"}))
      co_return std::unexpected(std::move(*unknown));
    const auto range = range_in(*words, usual_pods, most_pods);
    if (!range) co_return std::unexpected(bad_request(range.error()));
    auto ns = words->contains("namespace") ? words->find("namespace")->second : std::string();
    if (!ns.empty() && !viewer.sees(ns)) co_return std::unexpected(forbidden("namespace"));
    if (path == "pods") co_return co_await holders(request, viewer, std::move(ns), *range);
    co_return co_await waiting(request, viewer, std::move(ns), *range);
  }
  if (path.starts_with("pods/")) {
    const auto cut = std::min(path.find('/', 5), path.size());
    const std::string ns(path.substr(5, cut - 5)), name(path.substr(std::min(cut + 1, path.size())));
    if (!is_name(ns) || !is_name(name)) co_return std::unexpected(not_found());
    if (!viewer.sees(ns)) co_return std::unexpected(forbidden("namespace"));
    co_return co_await pod(request, viewer, {ns, name});
  }
  if (path == "waiting/reasons") {
    if (!some_pods) co_return std::unexpected(forbidden(pods_right));
    co_return co_await reasons(request, viewer);
  }
  if (path == "measured") {
    if (!viewer.nodes) co_return std::unexpected(forbidden(fleet_right));
    co_return co_await measured(request, viewer);
  }
  if (path == "overview") {
    if (!some_pods && !viewer.nodes) co_return std::unexpected(forbidden(overview_right));
    co_return co_await overview(request, viewer);
  }
  if (path == "namespaces") {
    if (!some_pods) co_return std::unexpected(forbidden(pods_right));
    co_return co_await namespaces(request, viewer);
  }
  if (path == "cost") {
    if (!some_pods) co_return std::unexpected(forbidden(pods_right));
    if (auto unknown = unknown_word(*words, {"month"})) co_return std::unexpected(std::move(*unknown));
    co_return co_await cost(request, viewer, words->contains("month") ? words->find("month")->second : std::string());
  }
  if (path == "declarations") {
    if (!viewer.declarations) co_return std::unexpected(forbidden("declarations"));
    co_return co_await declarations(request, viewer);
  }
  if (path == "capacity") {
    if (!viewer.nodes) co_return std::unexpected(forbidden(fleet_right));
    co_return co_await capacity(request, viewer);
  }
  if (path == "stream") co_return stream(request, viewer);
  co_return std::unexpected(not_found());
}

}  // namespace cli::console
