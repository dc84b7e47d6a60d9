#include "reconcilers/nodes/report_age.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/names.hpp"
#include "controller/coded_message.hpp"
#include "text/text.hpp"

namespace reconcilers {
namespace {

using controller::action;
using controller::milliseconds;
using nlohmann::json;

/// Of the pods that the chart's DaemonSet makes.
constexpr std::string_view name_label = "app.kubernetes.io/name", agent_name = "quartermaster-agent";
constexpr milliseconds look_again{250};
/// The recorder writes five events a second.
constexpr milliseconds between_nodes{200};

}  // namespace

report_age::report_age(stores stores, kube::client& client, controller::recorder& events, settings settings)
    : stores_(stores), client_(client), events_(events), settings_(std::move(settings)) {
  for (const auto& pod : stores_.pods.all()) take_in(nullptr, &pod);
  stores_.pods.observe([this](const kube::pod* before, const kube::pod* after) { take_in(before, after); });
}

bool report_age::is_agent(const kube::pod& pod) const {
  return pod.key.ns == settings_.ns && !pod.node_name.empty() && pod.labels.value_or(name_label, "") == agent_name;
}

bool report_age::is_ready(const std::string& node) const {
  const auto match = pods_.find(node);
  return match != pods_.end() && std::ranges::any_of(match->second, [&](const kube::object_key& key) {
           const auto* pod = stores_.pods.find(key);
           return pod && pod->ready && !pod->finished();
         });
}

void report_age::take_in(const kube::pod* before, const kube::pod* after) {
  if (before && is_agent(*before) && (!after || !is_agent(*after))) {
    const auto match = pods_.find(before->node_name);
    match->second.erase(before->key);
    if (match->second.empty()) pods_.erase(match);
  }
  if (after && is_agent(*after)) pods_[after->node_name].insert(after->key);
  for (const auto* pod : {before, after}) {
    if (!pod || !is_agent(*pod)) continue;
    const auto seen = sights_.find(pod->node_name);
    if (seen == sights_.end()) continue;
    const bool is = is_ready(pod->node_name);
    if (is != seen->second.is_ready)
      seen->second = {is, settings_.now(), controller::rfc3339_seconds(settings_.wall()), false, std::nullopt};
  }
}

report_age::sight& report_age::look(const std::string& node) {
  const auto [match, is_new] = sights_.try_emplace(node);
  if (is_new)
    match->second = {is_ready(node), settings_.now(), controller::rfc3339_seconds(settings_.wall()), true,
                     std::nullopt};
  return match->second;
}

text::phrase report_age::message_of(const std::string& node, const sight& sight) const {
  const auto agent_phrase = [](std::string_view key, std::vector<text::phrase_argument> arguments = {}) {
    return text::phrase("status.agent." + std::string(key), std::move(arguments));
  };
  if (sight.is_ready) return agent_phrase("reports");
  const auto match = pods_.find(node);
  const auto* pod = match == pods_.end() ? nullptr : stores_.pods.find(*match->second.begin());
  text::phrase cause;
  if (pod && pod->reason.empty()) cause = agent_phrase("not_ready", {{"pod", pod->key.to_string()}});
  if (pod && !pod->reason.empty())
    cause = agent_phrase("not_ready_because", {{"pod", pod->key.to_string()}, {"cause", text::shown(pod->reason)}});
  return agent_phrase(
      "gone", {{"finding", text::joined_by_semicolons(
                               {agent_phrase(sight.is_first ? "silent_or_earlier" : "silent", {{"time", sight.began}}),
                                std::move(cause)})},
               {"namespace", settings_.ns},
               {"label", std::string(name_label) + "=" + std::string(agent_name)},
               {"node", node}});
}

kube::task<action> report_age::reconcile(kube::object_key key) {
  if (!stores_.pods.synced() || !stores_.reports.synced() || !stores_.nodes.synced())
    co_return action::again(look_again);
  const auto* report = stores_.reports.find(key);
  const auto* node = stores_.nodes.find(key);
  if (!report || !report->has_report() || !node) {
    sights_.erase(key.name);
    co_return action::await_change();
  }
  auto& sight = look(key.name);
  if (sight.is_ready != report->is_report_old() || report->deleting) {
    sight.turn.reset();
    co_return action::await_change();
  }
  const auto now = settings_.now();
  const auto due = sight.since + (sight.is_ready ? settings_.steady : settings_.grace);
  if (now < due) co_return action::again(due - now);
  if (!sight.turn) {
    sight.turn = std::max(now, next_turn_);
    next_turn_ = *sight.turn + between_nodes;
  }
  if (now < *sight.turn) co_return action::again(*sight.turn - now);

  const bool is_back = sight.is_ready;
  const auto message = message_of(key.name, sight);
  const controller::object_reference about(kube::resources::nodes, *node);
  const auto& type = kube::resources::accelerator_nodes;
  json body = {{"apiVersion", type.api_version()},
               {"kind", type.kind},
               {"metadata", {{"name", key.name}, {"uid", report->id.to_string()}}}};
  json condition = {{"type", api::agent_reporting_condition},
                    {"status", is_back ? "True" : "False"},
                    {"reason", is_back ? "AgentRuns" : "AgentGone"},
                    {"lastTransitionTime", controller::rfc3339_seconds(settings_.wall())}};
  controller::set_message(condition, message);
  body["status"]["conditions"] = json::array({std::move(condition)});
  kube::write_options options;
  options.field_manager = api::names::report_age_field_owner;
  options.force = true;
  auto answer = co_await status_.apply(client_, type, key, body, options);
  if (!answer) {
    // It is gone, or another has its name: both come with the watch.
    if (answer.error().code == kube::errc::conflict || answer.error().code == kube::errc::not_found)
      co_return action::await_change();
    co_return std::unexpected(std::move(answer.error()));
  }
  events_.record(about, is_back ? controller::event_type::normal : controller::event_type::warning,
                 is_back ? "AgentReporting" : "AgentGone", "Report", words_of(message, text::language::en));
  co_return action::await_change();
}

std::vector<kube::object_key> report_age::affected_by(const kube::pod* before, const kube::pod* after) const {
  for (const auto* pod : {after, before}) {
    if (!pod || !is_agent(*pod)) continue;
    kube::object_key node{{}, pod->node_name};
    const auto* report = stores_.reports.find(node);
    if (report && report->has_report()) return {std::move(node)};
  }
  return {};
}

std::vector<kube::object_key> report_age::affected_by(const api::accelerator_node* before,
                                                      const api::accelerator_node* after) const {
  if (!after) return {before->key};
  if (before && before->has_report() == after->has_report() && before->agent_reporting == after->agent_reporting)
    return {};
  return {after->key};
}

void write_report_metrics(const controller::store<api::accelerator_node>& reports, controller::metric_text& out) {
  std::size_t gone = 0;
  std::map<std::string_view, std::size_t> by_check;
  for (const auto& report : reports.all()) {
    gone += report.is_report_old() ? 1 : 0;
    const std::set<std::string_view> each(report.failed_checks.begin(), report.failed_checks.end());
    for (const auto& check : each) ++by_check[check];
  }
  constexpr std::string_view gone_name = "quartermaster_agent_gone_nodes",
                             failed_name = "quartermaster_preflight_failed_nodes";
  out.family(gone_name, "Nodes whose report is old, because no agent runs there any more.", "gauge");
  out.sample(gone_name, {}, static_cast<double>(gone));
  std::vector<std::pair<std::string_view, std::size_t>> checks(by_check.begin(), by_check.end());
  std::ranges::sort(checks, [](const auto& left, const auto& right) {
    return left.second != right.second ? left.second > right.second : left.first < right.first;
  });
  out.family(failed_name,
             "Nodes on which a check of the agent failed, by check; a node counts once per check. \"other\": the rest, "
             "where there are more than " +
                 std::to_string(most_checks) + " names.",
             "gauge");
  std::size_t rest = 0;
  for (std::size_t i = 0; i < checks.size(); ++i) {
    if (i < most_checks)
      out.sample(failed_name, {{"check", checks[i].first}}, static_cast<double>(checks[i].second));
    else
      rest += checks[i].second;
  }
  if (rest > 0) out.sample(failed_name, {{"check", "other"}}, static_cast<double>(rest));
}

}  // namespace reconcilers
