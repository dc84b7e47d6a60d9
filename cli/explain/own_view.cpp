#include "cli/explain/own_view.hpp"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "api/accelerator_quota.hpp"
#include "cli/cluster/cluster.hpp"
#include "cli/cluster/placed_cards.hpp"
#include "cli/explain/explain_pod.hpp"
#include "cli/explain/made_pods.hpp"
#include "cli/explain/obstacles.hpp"
#include "cli/output/answer.hpp"
#include "kube/client.hpp"
#include "kube/json_text.hpp"
#include "kube/projections/from_json.hpp"
#include "text/list.hpp"
#include "text/messages.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using kube::text_in;
using nlohmann::ordered_json;

constexpr std::size_t most_events = 5, longest_message = 1000;

bool is_refusal(const kube::error& error) {
  return error.code == kube::errc::forbidden || error.code == kube::errc::not_found;
}

/// What a person may not read is as if it were not there.
kube::result<void> unless_refused(const kube::error& error) {
  if (is_refusal(error)) return {};
  return std::unexpected(error);
}

kube::task<void> read_events(kube::transport& transport, const kube::pod& pod, std::vector<pod_events::event>& out) {
  kube::list_options options;
  options.ns = pod.key.ns;
  options.field_selector = "involvedObject.kind=Pod,involvedObject.name=" + pod.key.name;
  kube::client api(transport);
  const auto listed = co_await api.list(pod_events::type, options);
  if (!listed) co_return unless_refused(listed.error());
  const auto is_of_earlier = [uid = pod.id.to_string()](const nlohmann::json& entry) {
    const auto about = kube::text_at(entry, "/involvedObject/uid");
    return !about.empty() && about != uid;
  };
  for (const auto& entry : *listed)
    if (!is_of_earlier(entry)) out.push_back(pod_events::read(entry));
  out = pod_events::telling(std::move(out), most_events);
  co_return kube::result<void>();
}

/// Pods of the name in all namespaces, for who may list them.
kube::task<void> look_elsewhere(kube::transport& transport, const pod_target& target, text::phrase& out) {
  picture pods;
  pods.pods.begin();
  kube::list_options options;
  options.field_selector = "metadata.name=" + target.key.name;
  const std::function<void(kube::pod)> keep = [&](kube::pod pod) { pods.pods.put(std::move(pod)); };
  const auto listed = co_await list_each<kube::pod>(transport, options, keep);
  if (!listed) co_return unless_refused(listed.error());
  pods.pods.commit();
  out = meant_elsewhere(pods, target);
  co_return kube::result<void>();
}

/// The pods of the namespace, where one of several is to be found.
kube::task<void> find_pod(kube::transport& transport, const pod_target& target, text::language locale, pod_choice& out,
                          own_view& view) {
  out = {target.key, {}};
  if (target.kind.empty()) co_return kube::result<void>();
  picture pods;
  pods.pods.begin();
  kube::list_options options;
  options.ns = target.key.ns;
  const std::function<void(kube::pod)> keep = [&](kube::pod pod) { pods.pods.put(std::move(pod)); };
  const auto listed = co_await list_each<kube::pod>(transport, options, keep);
  if (!listed) co_return unless_refused(listed.error());
  pods.pods.commit();
  if (auto chosen = chosen_pod(pods, target, locale)) {
    out = std::move(*chosen);
    co_return kube::result<void>();
  }
  text::phrase refused;
  const auto read = co_await read_refused_pods(transport, target, refused);
  view.absent = no_pods(target, refused);
  co_return read;
}

kube::task<void> read_quotas(kube::transport& transport, const std::string& ns, std::vector<std::string>& out) {
  kube::list_options options;
  options.ns = ns;
  const std::function<void(api::accelerator_quota)> keep = [&](const api::accelerator_quota& quota) {
    out.push_back(quota.key.name);
  };
  const auto listed = co_await list_each<api::accelerator_quota>(transport, options, keep);
  if (!listed) co_return unless_refused(listed.error());
  co_return kube::result<void>();
}

kube::task<void> read_asking(kube::transport& transport, std::optional<std::string>& out) {
  picture policies;
  policies.policies.begin();
  const std::function<void(reconcilers::accelerator_policy)> keep = [&](reconcilers::accelerator_policy policy) {
    policies.policies.put(std::move(policy));
  };
  const auto listed = co_await list_each<reconcilers::accelerator_policy>(transport, {}, keep);
  if (!listed) co_return unless_refused(listed.error());
  policies.policies.commit();
  out = std::string(asking_scheduler(policies));
  co_return kube::result<void>();
}

std::string line_of(const pod_events::event& event) {
  return text::shown(event.time) + "  " + text::shown(event.reason) + ": " +
         text::shown(event.message, longest_message);
}

/// Without its cluster: what no node takes, and keys that no one knows.
void add_causes(const kube::described_pod& pod, text::language locale, std::vector<obstacle>& obstacles) {
  const reconcilers::extender::pod_request request(pod, {});
  auto causes = fault_obstacles(quota::faults_of(request.containers()), request, locale);
  std::ranges::move(mistyped_keys(pod, locale), std::back_inserter(causes));
  const auto later = std::ranges::find(obstacles, false, &obstacle::decisive);
  obstacles.insert(later, causes.begin(), causes.end());
}

}  // namespace

kube::task<void> read_own_view(kube::transport& transport, const pod_target& target, text::language locale,
                               own_view& out) {
  pod_choice choice;
  auto done = co_await find_pod(transport, target, locale, choice, out);
  if (!done || !out.absent.empty()) co_return done;
  const auto answer = co_await send_patiently(transport, "get pod " + choice.key.to_string(),
                                              kube::get_request(kube::pod::of(), choice.key));
  if (target.kind.empty() && !answer && answer.error().code == kube::errc::not_found) {
    out.absent = {"explain.no_pod", {{"name", target.key.name}, {"namespace", target.key.ns}}};
    text::phrase other;
    done = co_await look_elsewhere(transport, target, other);
    if (!other.empty()) out.absent = std::move(other);
    co_return done;
  }
  if (!answer) co_return unless_refused(answer.error());
  auto pod = kube::from_json<kube::described_pod>(answer->body);
  if (!pod) co_return std::unexpected(pod.error());
  out.pod = std::move(*pod), out.note = std::move(choice.note);
  done = co_await read_events(transport, *out.pod, out.events);
  if (done) done = co_await read_quotas(transport, choice.key.ns, out.quotas);
  if (done) done = co_await read_asking(transport, out.asking);
  co_return done;
}

int explain_own_view(const own_view& view, const text::phrase& refused, const report_style& style, std::ostream& out) {
  const auto locale = style.language == "zh" ? text::language::zh : text::language::en;
  const auto words = [&](const std::string& key, std::initializer_list<text::parameter> parameters = {}) {
    return text::message("explain.own." + key, locale, parameters);
  };
  const auto& pod = *view.pod;
  auto obstacles = obstacles_of(pod, view.asking, locale);
  const bool is_leaving = pod.node_name.empty() && !pod.finished() && pod.deleting;
  const bool waits = pod.node_name.empty() && !pod.finished() && !is_leaving;
  if (waits) add_causes(pod, locale, obstacles);
  const bool is_placed = !pod.node_name.empty() && pod.phase != kube::pod_phase::failed;
  const auto cards = named_cards(pod, nullptr);
  const int rc = is_placed || pod.phase == kube::pod_phase::succeeded ? 0 : 3;
  if (style.as_data()) {
    ordered_json doc{{"pod", pod.key.to_string()},
                     {"node", pod.node_name.empty() ? ordered_json() : ordered_json(pod.node_name)},
                     {"waits", waits},
                     {"unseen", waits ? ordered_json(words_of(refused, locale)) : ordered_json()}};
    doc["cards"] = cards;
    doc["obstacles"] = ordered_json::array();
    for (const auto& obstacle : obstacles)
      doc["obstacles"].push_back({{"code", obstacle.code}, {"text", obstacle.text}});
    doc["events"] = ordered_json::array();
    for (const auto& event : view.events)
      doc["events"].push_back(
          {{"time", event.time}, {"type", event.type}, {"reason", event.reason}, {"message", event.message}});
    doc["quotas"] = view.quotas;
    printed_as_data(doc, style.output, out);
    return rc;
  }
  const text::parameter name{"pod", pod.key.to_string()};
  out << (pod.finished()          ? words("ended", {name})
          : is_leaving            ? words("leaves", {name})
          : pod.node_name.empty() ? words("waits", {name})
                                  : words("placed", {name, {"node", pod.node_name}}))
      << "\n";
  if (!cards.empty())
    out << "  " << words("cards", {{"list", text::shown(text::joined(cards), longest_message)}}) << "\n";
  for (const auto& obstacle : obstacles) out << "  " << obstacle.text << "\n";
  if (!view.events.empty()) out << words("events") << "\n";
  for (const auto& event : view.events) out << "  " << line_of(event) << "\n";
  for (const auto& quota : view.quotas)
    out << words("quota", {{"name", quota}, {"command", "kubectl get acceleratorquota -n " + pod.key.ns}}) << "\n";
  // What has its cards, or needs none any more, asks no one who could give them.
  if (waits) out << words("unseen") << "\n  " << words_of(refused, locale) << "\n" << grant_lines(refused, locale);
  return rc;
}

}  // namespace cli
