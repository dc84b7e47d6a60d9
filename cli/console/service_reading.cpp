// The views that ask someone else first, and the stream of events.

#include <nlohmann/json.hpp>

#include "api/names.hpp"
#include "cli/cluster/prometheus.hpp"
#include "cli/cluster/usage.hpp"
#include "cli/console/service.hpp"
#include "controller/log.hpp"
#include "controller/sleep.hpp"
#include "kube/client.hpp"
#include "kube/json_text.hpp"
#include "kube/request.hpp"
#include "kube/status.hpp"
#include "reconcilers/declarations/parse.hpp"

namespace cli::console {
namespace {

using controller::http_request;
using controller::http_response;
using controller::milliseconds;

constexpr milliseconds trends_hold{600'000}, declared_holds{10'000}, usage_holds{60'000}, measured_holds{30'000};
constexpr milliseconds pod_holds{5'000};

/// In the group in which people have the right to them.
constexpr kube::resource core_events{"", "v1", "events", "Event", true};

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

/// Of this pod, not of one before it that had its name.
kube::task<std::vector<nlohmann::json>> read_events_of(kube::transport& transport, std::string ns, std::string uid) {
  kube::list_options options;
  options.ns = std::move(ns);
  options.field_selector = "involvedObject.uid=" + uid;
  kube::client api(transport);
  co_return co_await api.list(core_events, options);
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

/// Its own words and its Events are read when it is asked for, and hold a moment.
boost::asio::awaitable<service::outcome> service::pod(const http_request& request, const viewer& viewer,
                                                      kube::object_key key) {
  const refusal missing{404, "not_found", {"console.no_pod"}, 0};
  if (!dependencies_.known.pods.find(key)) co_return std::unexpected(missing);
  const auto may_see = co_await dependencies_.doorkeeper.may_list(viewer, "events", key.ns);
  if (!may_see) co_return std::unexpected(unreachable(may_see.error()));
  const auto now = dependencies_.now();
  const auto step = static_cast<std::uint64_t>(now / pod_holds);
  const auto name = key_of(request, viewer) + (*may_see ? "\nevents" : "");
  if (const auto* kept = answers_.find(name, step, now)) co_return response_of(*kept, request.fields);
  (void)co_await read_measured();
  kube::client api(dependencies_.reading);
  auto object = co_await api.get(kube::pod::of(), key);
  if (!object && object.error().code != kube::errc::not_found) co_return std::unexpected(unreachable(object.error()));
  if (!object || !object->is_object()) co_return std::unexpected(missing);
  text::phrase problem{*may_see ? "" : "console.events.hidden"};
  std::vector<nlohmann::json> events;
  if (*may_see) {
    auto listed = co_await read_events_of(dependencies_.reading, key.ns, kube::text_in((*object)["metadata"], "uid"));
    if (listed)
      events = std::move(*listed);
    else if (listed.error().code == kube::errc::forbidden)
      problem = {"console.events.forbidden"};
    else
      problem = {"console.events.unreadable"};
  }
  const auto* pod = dependencies_.known.pods.find(key);
  if (!pod) co_return std::unexpected(missing);
  auto body = body_of(pod_view(dependencies_.known, *pod, *object, events, pod_use_, problem));
  co_return response_of(answers_.keep(name, step, dependencies_.now(), std::move(body)), request.fields);
}

std::vector<std::string> service::months_known() const {
  constexpr std::size_t year = 12;
  std::vector<std::string> out{api::month_of(dependencies_.wall())};
  while (out.size() < year) {
    const auto bounds = api::bounds_of(out.back());
    if (!bounds) break;
    out.push_back(api::month_of(bounds->begin - 1));
  }
  return out;
}

reconcilers::chargeback_spec service::prices() const {
  const auto* policy = dependencies_.known.policies.find(reconcilers::policy_key);
  return policy ? policy->chargeback : reconcilers::chargeback_spec();
}

boost::asio::awaitable<month_usage> service::usage_of(std::string month) {
  const auto now = dependencies_.now();
  const auto known = usage_.find(month);
  if (known != usage_.end() && known->second.read && now - *known->second.read <= usage_holds)
    co_return known->second.usage;
  const auto months = months_known();
  std::erase_if(usage_, [&](const auto& kept) { return std::ranges::find(months, kept.first) == months.end(); });
  usage_[month].read = now;  // also where it fails: it is not asked at every request
  const auto problem_of = [](const kube::error& error) {
    if (error.code == kube::errc::forbidden) return "console.usage.forbidden";
    return error.code == kube::errc::not_found ? "console.usage.unknown" : "console.usage.unreadable";
  };
  auto objects = co_await read_usage(dependencies_.reading, month);
  month_usage out{month, text::phrase{objects ? "" : problem_of(objects.error())}, {}};
  if (objects) out.objects = std::move(*objects);
  auto& kept = usage_[month].usage;
  if (out.problem != kept.problem || out.objects != kept.objects) ++revision_;
  kept = out;
  co_return out;
}

boost::asio::awaitable<costs> service::costs_now() {
  const auto usage = co_await usage_of(api::month_of(dependencies_.wall()));
  const auto spec = prices();
  if (usage.problem.empty() || spec.prices.empty()) co_return costs_of(usage.month, usage.objects, spec);
  costs out;
  out.message = usage.problem;
  co_return out;
}

boost::asio::awaitable<service::outcome> service::cost(const http_request& request, const viewer& viewer,
                                                       std::string month) {
  const auto months = months_known();
  if (month.empty()) month = months.front();
  if (std::ranges::find(months, month) == months.end())
    co_return std::unexpected(
        refusal{400, "bad_request", {"console.month", {{"first", months.back()}, {"last", months.front()}}}, 0});
  const auto usage = co_await usage_of(std::move(month));
  co_return made(request, viewer, [&] { return body_of(cost_view(viewer, usage, months, prices())); });
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
