// The views that ask someone else first, and the stream of events.

#include <nlohmann/json.hpp>

#include "api/names.hpp"
#include "cli/cluster/prometheus.hpp"
#include "cli/cluster/usage.hpp"
#include "cli/console/service.hpp"
#include "controller/log.hpp"
#include "controller/sleep.hpp"
#include "kube/request.hpp"
#include "kube/status.hpp"
#include "reconcilers/declarations/parse.hpp"

namespace cli::console {
namespace {

using controller::http_request;
using controller::http_response;
using controller::milliseconds;

constexpr milliseconds trends_hold{600'000}, declared_holds{10'000}, usage_holds{60'000}, measured_holds{30'000};

refusal unreachable(const kube::error& error) {
  return {503, "not_ready", {"console.unreachable", {{"code", std::string(kube::to_string(error.code))}}}, 5};
}

/// Empty where the node has no AcceleratorNode.
kube::task<std::optional<api::agent_report>> read_report(kube::transport& transport, std::string name) {
  const auto sent = co_await transport.send(
      kube::get_request(kube::resources::accelerator_nodes, {{}, std::move(name)}, kube::encoding::json));
  if (!sent) co_return std::unexpected(sent.error());
  if (sent->status == 404) co_return std::optional<api::agent_report>();
  if (!kube::succeeded(sent->status)) co_return std::unexpected(kube::error_of("get", *sent));
  auto known = api::reported_node::decode(sent->body);
  if (!known) co_return std::unexpected(std::move(known.error()));
  co_return std::move(known->report);
}

/// Of something that has lasted for a time, once when it begins and once when it ends; empty: nothing new.
std::string event_of(std::optional<milliseconds> age, bool& was_said, std::string_view begins, std::string_view ends) {
  if (age.has_value() == was_said) return {};
  was_said = age.has_value();
  if (!age) return "event: " + std::string(ends) + "\ndata: {}\n\n";
  const auto seconds = std::chrono::floor<std::chrono::seconds>(*age).count();
  return "event: " + std::string(begins) + "\ndata: {\"seconds\":" + std::to_string(seconds) + "}\n\n";
}

}  // namespace

boost::asio::awaitable<service::outcome> service::node(const http_request& request, const viewer& viewer,
                                                       std::string name) {
  const refusal missing{404, "not_found", {"console.no_node"}, 0};
  if (!is_name(name) || !dependencies_.known.nodes.find({{}, name})) co_return std::unexpected(missing);
  auto report = co_await read_report(dependencies_.reading, name);
  if (!report) co_return std::unexpected(unreachable(report.error()));
  const auto* node = dependencies_.known.nodes.find({{}, name});
  if (!node) co_return std::unexpected(missing);
  co_return made(request, viewer, [&] { return body_of(node_view(dependencies_.known, viewer, *node, *report)); });
}

boost::asio::awaitable<service::outcome> service::declarations(const http_request& request, const viewer& viewer) {
  const auto now = dependencies_.now();
  if (!declared_read_ || now - *declared_read_ > declared_holds) {
    auto declared = co_await read_declared(dependencies_.reading, reconcilers::declarations::parse_settings().ns);
    if (!declared) co_return std::unexpected(unreachable(declared.error()));
    declared_ = std::move(*declared);
    declared_read_ = now;
  }
  co_return made(request, viewer, [&] { return body_of(declarations_view(dependencies_.known, viewer, declared_)); });
}

boost::asio::awaitable<costs> service::costs_now() {
  const auto now = dependencies_.now();
  if (!usage_read_ || now - *usage_read_ > usage_holds) {
    usage_read_ = now;  // also where it fails: it is not asked at every request
    auto month = api::month_of(dependencies_.wall());
    const auto problem_of = [](const kube::error& error) {
      if (error.code == kube::errc::forbidden) return "console.usage.forbidden";
      return error.code == kube::errc::not_found ? "console.usage.unknown" : "console.usage.unreadable";
    };
    auto objects = co_await read_usage(dependencies_.reading, month);
    const text::phrase problem{objects ? "" : problem_of(objects.error())};
    auto usage = objects ? std::move(*objects) : std::vector<api::accelerator_usage>();
    if (month != usage_month_ || problem != usage_problem_ || usage != usage_) ++revision_;
    usage_month_ = std::move(month);
    usage_problem_ = problem;
    usage_ = std::move(usage);
  }
  const auto* policy = dependencies_.known.policies.find(reconcilers::policy_key);
  const auto spec = policy ? policy->chargeback : reconcilers::chargeback_spec();
  if (usage_problem_.empty() || spec.prices.empty()) co_return costs_of(usage_month_, usage_, spec);
  costs out;
  out.message = usage_problem_;
  co_return out;
}

boost::asio::awaitable<service::outcome> service::namespaces(const http_request& request, const viewer& viewer) {
  const auto known_costs = co_await costs_now();
  co_return made(request, viewer, [&] { return body_of(namespaces_view(dependencies_.known, viewer, known_costs)); });
}

/// People hear that it does not answer. The reason names files and addresses, so it is for who runs the console: one
/// line whenever it is another one.
kube::task<std::string> service::ask(std::string target) {
  auto body = co_await ask_prometheus(*dependencies_.prometheus, std::move(target));
  auto problem = body ? std::string() : body.error().message;
  if (!problem.empty() && problem != prometheus_problem_)
    controller::log::warn("Prometheus does not answer: there is no history", {{"error", problem}});
  prometheus_problem_ = std::move(problem);
  co_return body;
}

boost::asio::awaitable<service::outcome> service::capacity(const http_request& request, const viewer& viewer) {
  const auto now = dependencies_.now();
  if (dependencies_.prometheus && (!trends_read_ || now - *trends_read_ > trends_hold)) {
    trends_read_ = now;  // also where it fails: it is not asked at every request
    const auto body = co_await ask(trend_target(dependencies_.wall()));
    trends_ = body ? trends_in(*body) : trends();
    trend_message_ = {!body ? "console.prometheus_silent" : trends_.empty() ? "console.no_series" : ""};
  }
  co_return made(request, viewer,
                 [&] { return body_of(capacity_view(dependencies_.known, viewer, trends_, trend_message_)); });
}

boost::asio::awaitable<text::phrase> service::read_measured() {
  const auto now = dependencies_.now();
  if (!dependencies_.prometheus) co_return text::phrase{"console.no_prometheus"};
  if (measured_read_ && now - *measured_read_ <= measured_holds) co_return measured_message_;
  measured_read_ = now;  // also where it fails: it is not asked at every request
  const auto cards = co_await ask(measured_target());
  const auto pods = co_await ask(pod_use_target());
  measured_ = cards ? measured_in(*cards) : measured_use();
  pod_use_ = pods ? pod_use_in(*pods) : pod_use();
  measured_message_ = {cards && pods ? "" : "console.prometheus_silent"};
  ++revision_of_measured_;
  co_return measured_message_;
}

boost::asio::awaitable<service::outcome> service::measured(const http_request& request, const viewer& viewer) {
  const auto message = co_await read_measured();
  const auto& answer = answers_.find_or_make(key_of(request, viewer), revision_of_measured_, dependencies_.now(), [&] {
    return body_of(measured_view(dependencies_.known, measured_, message));
  });
  co_return response_of(answer, request.fields);
}

boost::asio::awaitable<service::outcome> service::holders(const http_request& request, const viewer& viewer,
                                                          std::string ns, page_range range) {
  const auto message = co_await read_measured();
  co_return made(request, viewer,
                 [&] { return body_of(holders_view(dependencies_.known, viewer, ns, range, pod_use_, message)); });
}

boost::asio::awaitable<service::outcome> service::history(const http_request& request, const viewer& viewer) {
  const auto words = parameters_in(request.query);
  const auto chart = chart_of(*words, dependencies_.wall());
  if (!chart) co_return std::unexpected(refusal{400, "bad_request", chart.error(), 0});
  if (auto right = refused_right(*chart, viewer); !right.empty())
    co_return std::unexpected(refusal{403, "forbidden", std::move(right), 0});
  ordered_json view;
  if (!dependencies_.prometheus) {
    view = no_history(*chart, {"console.no_prometheus"});
  } else {
    const auto body = co_await ask(chart->target());
    view = body ? history_view(*chart, *body) : no_history(*chart, {"console.prometheus_silent"});
  }
  co_return made(request, viewer, [&] { return body_of(view); });
}

/// One open stream. It counts while it is there.
struct service::stream_state {
  std::shared_ptr<stream_counts> counts;
  std::string user, views, authorization, address;
  bool sees_fleet = false, is_silent = false;  ///< silent: it has said that the API server does not answer
  bool is_leaderless = false;                  ///< it has said that no operator leads
  std::uint64_t seen = 0;
  milliseconds began, last_event{-1}, last_word, last_check;

  stream_state(std::shared_ptr<stream_counts> all, const viewer& viewer, const http_request& request, milliseconds now)
      : counts(std::move(all)),
        user(viewer.user),
        authorization(request.fields.authorization),
        address(request.caller_address),
        began(now),
        last_word(now),
        last_check(now) {
    ++counts->all;
    ++counts->by_user[user];
  }
  stream_state(const stream_state&) = delete;
  stream_state& operator=(const stream_state&) = delete;
  ~stream_state() {
    --counts->all;
    if (--counts->by_user[user] == 0) counts->by_user.erase(user);
  }
  /// From now on it says what this viewer may see.
  void show(const picture& known, const viewer& viewer) {
    sees_fleet = viewer.nodes;
    ordered_json names = ordered_json::array();
    const auto all = me_view(known, viewer, false)["views"];
    for (const auto& [name, is_shown] : all.items())
      if (is_shown == true && name != "history") names.push_back(name);
    views = ordered_json{{"views", std::move(names)}}.dump();
  }
};

service::outcome service::stream(const http_request& request, const viewer& viewer) {
  const auto own = open_->by_user.find(viewer.user);
  const auto count = own == open_->by_user.end() ? 0 : own->second;
  if (open_->all >= settings_.most_streams || count >= settings_.most_streams_each)
    return std::unexpected(refusal{429, "too_many_requests", {"console.too_many_streams"}, 10});
  http_response out;
  out.content_type = "text/event-stream";
  if (request.method == "HEAD") return out;
  const auto state = std::make_shared<stream_state>(open_, viewer, request, dependencies_.now());
  state->show(dependencies_.known, viewer);
  out.pieces = [this, state] { return next_piece(state); };
  return out;
}

boost::asio::awaitable<std::optional<std::string>> service::next_piece(std::shared_ptr<stream_state> state) {
  const bool is_first = state->last_event < milliseconds(0);
  if (!is_first) {
    const bool slept = co_await controller::sleep_for(settings_.stream_look);
    if (!slept) co_return std::nullopt;
  }
  auto now = dependencies_.now();
  if (now - state->began >= settings_.stream_life) co_return std::nullopt;
  if (now - state->last_check >= settings_.stream_check) {
    const auto rights = co_await dependencies_.doorkeeper.admit(state->authorization, state->address);
    if (!rights && rights.error().status == 401) co_return std::nullopt;
    if (rights) state->show(dependencies_.known, *rights);
    now = dependencies_.now();
    state->last_check = now;
  }
  // Who may not see the fleet gets events by the clock: what changes is not theirs to know.
  const bool is_due = state->sees_fleet ? revision_ != state->seen && now - state->last_event >= settings_.stream_pace
                                        : now - state->last_event >= settings_.blind_pace;
  if (is_first || is_due) {
    state->seen = revision_;
    state->last_event = state->last_word = now;
    auto event = "event: changed\ndata: " + state->views + "\n\n";
    // A page that connects again hears it at once, so that nothing on it comes and goes.
    if (is_first) event += event_of(dependencies_.leaderless(), state->is_leaderless, "leaderless", "led");
    co_return event;
  }
  if (auto event = event_of(dependencies_.silence(), state->is_silent, "silent", "heard"); !event.empty()) {
    state->last_word = now;
    co_return event;
  }
  if (auto event = event_of(dependencies_.leaderless(), state->is_leaderless, "leaderless", "led"); !event.empty()) {
    state->last_word = now;
    co_return event;
  }
  if (now - state->last_word < settings_.stream_comment) co_return std::string();
  state->last_word = now;
  co_return ": still here\n\n";
}

}  // namespace cli::console
