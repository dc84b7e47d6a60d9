#include "cli/console/service.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/console/shares.hpp"
#include "console/page/assets.hpp"
#include "controller/sleep.hpp"
#include "kube/request.hpp"
#include "kube/status.hpp"
#include "reconcilers/declarations/parse.hpp"

namespace cli::console {
namespace {

using controller::http_request;
using controller::http_response;

constexpr std::string_view page_path = "/console/", api_path = "/console/api/v1/";
constexpr std::string_view content_policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
constexpr std::size_t most_nodes = 5000, most_waiting = 200, usual_waiting = 50;
/// How long someone waits before looking whether it is their turn.
constexpr controller::milliseconds one_turn{5};
constexpr std::string_view no_prometheus = "No Prometheus is set. Start the console with --prometheus-url.";

std::int64_t wall_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

refusal not_found() { return {404, "not_found", "there is no such path; the page is at /console/", 0}; }
refusal bad_request(std::string message) { return {400, "bad_request", std::move(message), 0}; }
refusal forbidden(std::string message) { return {403, "forbidden", std::move(message), 0}; }
constexpr const char* fleet_right = "this view needs the right to list nodes and acceleratornodes";
constexpr const char* pods_right = "this view needs the right to list the pods of one namespace at least";

/// Without the port; of "[::1]:8888" the address.
std::string_view host_in(std::string_view text) {
  if (text.starts_with("[")) return text.substr(1, std::min(text.find(']'), text.size()) - 1);
  return text.substr(0, text.find(':'));
}

std::expected<page_range, std::string> range_in(const parameters& parameters, std::size_t usual, std::size_t most) {
  page_range out{0, usual};
  for (auto [name, target] : {std::pair("offset", &out.offset), std::pair("limit", &out.limit)}) {
    const auto match = parameters.find(name);
    if (match == parameters.end()) continue;
    const auto& text = match->second;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), *target);
    if (failed != std::errc() || end != text.data() + text.size() || text.empty())
      return std::unexpected(std::string(name) + " is a number");
  }
  if (out.limit < 1 || out.limit > most) return std::unexpected("limit is 1 to " + std::to_string(most));
  return out;
}

/// Nothing but these.
std::optional<refusal> unknown_word(const parameters& parameters, std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : parameters)
    if (std::ranges::find(known, name) == known.end()) {
      std::string list;
      for (const auto& word : known) list += (list.empty() ? "" : ", ") + std::string(word);
      return bad_request(list.empty() ? "this path takes no parameters" : "this path takes only " + list);
    }
  return std::nullopt;
}

/// Of the answers that are kept.
std::string key_of(const http_request& request, const viewer& viewer) {
  return request.path + "?" + request.query + "\n" + viewer.rights();
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
      return response_of(refusal{406, "not_acceptable", "the page is compressed: send Accept-Encoding: gzip", 0});
    out.fields.emplace_back("Content-Encoding", file->encoding);
  }
  out.body = file->bytes;
  return out;
}

}  // namespace

void add_guards(http_response& response) {
  const bool has_cache_rule = std::ranges::find(response.fields, "Cache-Control",
                                                [](const auto& field) { return field.first; }) != response.fields.end();
  if (!has_cache_rule) response.fields.emplace_back("Cache-Control", "no-store");
  response.fields.emplace_back("Content-Security-Policy", content_policy);
  response.fields.emplace_back("Referrer-Policy", "no-referrer");
  response.fields.emplace_back("X-Frame-Options", "DENY");
  response.fields.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
}

http_response response_of(const refusal& refusal) {
  http_response out;
  out.status = refusal.status;
  out.content_type = "application/json; charset=utf-8";
  out.body = body_of({{"error", {{"code", refusal.code}, {"message", refusal.message}}}});
  if (refusal.status == 401) out.fields.emplace_back("WWW-Authenticate", "Bearer");
  if (refusal.status == 405) out.fields.emplace_back("Allow", "GET, HEAD");
  if (refusal.retry_seconds > 0) out.fields.emplace_back("Retry-After", std::to_string(refusal.retry_seconds));
  return out;
}

service::service(dependencies dependencies, service_settings settings)
    : dependencies_(std::move(dependencies)), settings_(std::move(settings)), people_(settings_.people) {
  if (!dependencies_.wall) dependencies_.wall = wall_seconds;
  trend_message_ = dependencies_.prometheus ? "" : no_prometheus;
  auto& known = dependencies_.known;
  const auto count = [this](const auto*, const auto*) { ++revision_; };
  known.nodes.observe(count);
  known.policies.observe(count);
  known.rules.observe(count);
  known.quotas.observe(count);
  known.old_quotas.observe(count);
  known.cards.observe(count);
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
  if (!is_ours) return refusal{421, "misdirected", "Host is no name of this console; --host NAME adds one", 0};
  const auto& origin = request.fields.origin;
  if (!origin.empty() && origin != "http://" + request.fields.host && origin != "https://" + request.fields.host)
    return refusal{421, "misdirected", "Origin is another page's", 0};
  return std::nullopt;
}

boost::asio::awaitable<http_response> service::answer(http_request request) {
  http_response out;
  if (request.method != "GET" && request.method != "HEAD") {
    out = response_of(refusal{405, "method_not_allowed", "the console only reads: use GET or HEAD", 0});
  } else if (const auto wrong = misdirected(request)) {
    out = response_of(*wrong);
  } else if (request.path == "/" || request.path + "/" == page_path) {
    out.status = 302;
    out.fields = {{"Location", std::string(page_path)}};
  } else if (!request.path.starts_with(api_path)) {
    const bool is_page = request.path.starts_with(page_path) && !request.path.starts_with("/console/api");
    out = is_page ? page_file(request) : response_of(not_found());
  } else {
    auto rights = co_await dependencies_.doorkeeper.admit(request.fields.authorization, request.caller_address);
    if (!rights) {
      out = response_of(rights.error());
    } else if (const auto wait = people_.ask(rights->user, dependencies_.now())) {
      out = response_of(refusal{429, "too_many_requests",
                                "too many requests; come again in " + std::to_string(wait->count()) + " s",
                                wait->count()});
    } else if (const auto reason = dependencies_.not_ready(); !reason.empty()) {
      out = response_of(refusal{503, "not_ready", reason, 2});
    } else {
      auto answered = co_await view(request, *rights);
      out = answered ? std::move(*answered) : response_of(answered.error());
    }
  }
  add_guards(out);
  co_return out;
}

service::outcome service::made(const http_request& request, const viewer& viewer,
                               const std::function<std::string()>& compute) {
  return response_of(answers_.find_or_make(key_of(request, viewer), revision_, dependencies_.now(), compute),
                     request.fields);
}

boost::asio::awaitable<service::outcome> service::waiting(const http_request& request, const viewer& viewer,
                                                          std::string ns, page_range range) {
  const auto key = key_of(request, viewer);
  const auto began = dependencies_.now();
  auto revision = revision_;
  if (const auto* kept = answers_.find(key, revision, began)) co_return response_of(*kept, request.fields);
  if (const auto own = working_.find(viewer.user); own != working_.end() && own->second >= settings_.most_waiting_each)
    co_return std::unexpected(refusal{429, "too_many_requests", "other answers about waiting pods are worked out", 2});
  const counted here(working_, viewer.user);
  const auto& known = dependencies_.known;
  const auto resources = resources_of(known);
  const auto page = waiting_pods(known, resources, viewer, ns, range);
  const auto since = began - settings_.reason_holds;
  std::map<kube::object_key, ordered_json> reasons;
  for (const auto& name : page.pods) {
    const auto* pod = known.pods.find(name);
    if (!pod || !waits(known, resources, *pod)) continue;
    const auto* reason = reasons_.find(question_of(viewer, *pod), since);
    if (!reason) {
      const turns::place place(turns_);
      while (!place.is_first()) {
        const bool slept = co_await controller::sleep_for(one_turn);
        if (!slept) co_return std::unexpected(refusal{503, "not_ready", "the console stops", 5});
      }
      co_await controller::yield_to_others();
      pod = known.pods.find(name);  // much may have changed meanwhile
      if (!pod || !waits(known, resources, *pod)) continue;
      auto question = question_of(viewer, *pod);
      reason = reasons_.find(question, since);
      if (!reason)
        reason = &reasons_.keep(std::move(question),
                                {waiting_reason(known, resources, viewer, *pod), revision_, dependencies_.now()});
    }
    // The answer is as old as the oldest reason in it.
    revision = std::min(revision, reason->revision);
    reasons.emplace(name, reason->reason);
  }
  auto body = body_of(waiting_view(page, std::move(reasons)));
  co_return response_of(answers_.keep(key, revision, dependencies_.now(), std::move(body)), request.fields);
}

boost::asio::awaitable<service::outcome> service::view(const http_request& request, const viewer& viewer) {
  const auto path = std::string_view(request.path).substr(api_path.size());
  const auto words = parameters_in(request.query);
  if (!words) co_return std::unexpected(bad_request(words.error()));
  auto& known = dependencies_.known;
  const bool some_pods = viewer.all_pods || !viewer.namespaces.empty();
  if (path == "history") co_return co_await history(request, viewer);
  if (path != "fleet" && path != "waiting")
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
  if (path == "waiting") {
    if (!some_pods) co_return std::unexpected(forbidden(pods_right));
    if (auto unknown = unknown_word(*words, {"namespace", "offset", "limit"}))
      co_return std::unexpected(std::move(*unknown));
    const auto range = range_in(*words, usual_waiting, most_waiting);
    if (!range) co_return std::unexpected(bad_request(range.error()));
    auto ns = words->contains("namespace") ? words->find("namespace")->second : std::string();
    if (!ns.empty() && !viewer.sees(ns))
      co_return std::unexpected(forbidden("this view needs the right to list the pods of the namespace"));
    co_return co_await waiting(request, viewer, std::move(ns), *range);
  }
  if (path == "namespaces") {
    if (!some_pods) co_return std::unexpected(forbidden(pods_right));
    co_return co_await namespaces(request, viewer);
  }
  if (path == "declarations") {
    if (!viewer.declarations)
      co_return std::unexpected(
          forbidden("this view needs the right to list ConfigMaps in the namespace of declarations"));
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
