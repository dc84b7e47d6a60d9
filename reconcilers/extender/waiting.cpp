#include "reconcilers/extender/waiting.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "api/engine_words.hpp"
#include "api/names.hpp"
#include "quota/explain.hpp"
#include "quota/faults.hpp"
#include "quota/filter.hpp"
#include "reconcilers/extender/reasons.hpp"

namespace reconcilers::extender {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t most_waiting = 20'000;  // a pod beyond that gets only the scheduler's own event
constexpr std::size_t said_at_once = 4;       // an explanation takes milliseconds
constexpr controller::milliseconds after_saying{30'000}, after_nothing_to_say{2'000};
constexpr std::size_t most_explained = 1'000;  // nodes; beyond that reasons are counted and no change is looked for
constexpr std::size_t touched_at_once = 16;
constexpr controller::milliseconds unseen_limit{60'000};  // then the pod has gone again
constexpr auto at_a_time = 5ms;                           // of the loop
// kube-apiserver keeps an event for an hour (--event-ttl). One repetition a second is a fifth of what the recorder may
// write, and enough for 3,300 pods.
constexpr controller::milliseconds repeat_after{55 * 60'000}, repeat_pause{1'000};
constexpr controller::milliseconds search_pause{30'000};
constexpr auto touch_pause = 2s;  // the scheduler's shortest back-off after one failure is 1 s

/// Which reasons there are, without numbers: what a change of is news.
std::string reasons_of(const quota::explanation& explanation) {
  std::string out;
  for (const auto& cause : explanation.causes) {
    out += std::to_string(std::to_underlying(cause.code)) + ' ';
    out += std::to_string(cause.container);
    out += cause.key;
    out += cause.too_small ? "!;" : ";";
  }
  for (const auto& fault : explanation.faults) {
    out += std::to_string(std::to_underlying(fault.no.kind)) + '=' + std::to_string(fault.no.container);
    out += fault.no.key;
    out += ';';
  }
  return out;
}

/// A scheduler that may ask us: of a pod of another one only that one knows what it takes.
bool may_ask(const kube::pod& pod) {
  return pod.scheduler_name.empty() || pod.scheduler_name == "default-scheduler" ||
         pod.scheduler_name == api::names::scheduler_name;
}

}  // namespace

waiting::waiting(dependencies dependencies, controller::registry& metrics)
    : dependencies_(dependencies),
      count_(metrics.make_gauge("quartermaster_waiting_pods", "Pods that fit on no node they were tried on.")),
      oldest_(metrics.gauges("quartermaster_oldest_waiting_pod_timestamp_seconds",
                             "When the oldest of these pods was created; no series when there is none.",
                             {"namespace", "pod"})),
      touched_(metrics.make_counter("quartermaster_waiting_pods_touched_total",
                                    "Waiting pods that fitted after something was given back and were shown to the "
                                    "scheduler again.")) {}

void waiting::note(const kube::pod& pod) {
  if (const auto match = pods_.find(pod.id); match != pods_.end()) {
    match->second.to_say = true;
    return;
  }
  if (pods_.size() < most_waiting) pods_[pod.id] = {.key = pod.key, .reason = {}, .limit = {}, .looked = rooms_};
}

const kube::pod* waiting::known(const kube::uid& uid, const waiter& waiter) const {
  const auto* pod = dependencies_.pods.find(waiter.key);
  return pod && pod->id == uid ? pod : nullptr;
}

// The scheduler may know a pod before our store does, and asks only once.
void waiting::forget_the_placed(controller::milliseconds now) {
  constexpr controller::milliseconds not_yet{0}, had{-1};
  for (auto& [uid, waiter] : pods_) {
    if (known(uid, waiter))
      waiter.awaited = had;
    else if (waiter.awaited == not_yet)
      waiter.awaited = now;
  }
  const kube::pod* oldest = nullptr;
  std::erase_if(pods_, [&](const auto& entry) {
    const auto awaited = entry.second.awaited;
    const auto* pod = known(entry.first, entry.second);
    if (!pod) return awaited == had || now - awaited > unseen_limit;
    if (!pod->node_name.empty() || pod->deleting || pod->finished()) return true;
    if (!oldest || pod->created < oldest->created) oldest = pod;
    return false;
  });
  show_oldest(oldest);
  count_.set(static_cast<double>(pods_.size()));
}

void waiting::show_oldest(const kube::pod* pod) {
  const auto key = pod ? pod->key : kube::object_key();
  if (key != oldest_key_) oldest_.remove({oldest_key_.ns, oldest_key_.name});
  oldest_key_ = key;
  if (pod) oldest_.with({key.ns, key.name}).set(static_cast<double>(pod->created));
}

void waiting::note_faulty() {
  for (const auto& pod : dependencies_.pods.all()) {
    const bool is_open = pod.node_name.empty() && !pod.deleting && !pod.finished() && !pod.containers.empty();
    if (!is_open || !may_ask(pod) || pods_.contains(pod.id)) continue;
    if (!quota::faults_of(pod_request(pod, dependencies_.book.keys()).containers()).empty()) note(pod);
  }
}

bool waiting::is_fading(const waiter& waiter, controller::milliseconds now) const {
  return !waiter.reason.empty() && now >= waiter.event_time + repeat_after && now >= next_repeat_;
}

void waiting::say(waiter& waiter, const kube::pod& pod, std::string reason, std::string_view event,
                  const std::string& text, controller::milliseconds now) {
  if (reason == waiter.reason) {
    if (!is_fading(waiter, now)) return;
    next_repeat_ = now + repeat_pause;
  }
  waiter.reason = std::move(reason);
  waiter.event_time = now;
  dependencies_.events.record({kube::resources::pods, pod}, controller::event_type::warning, event, "Schedule", text);
}

void waiting::say(waiter& waiter, const kube::pod& pod, controller::milliseconds now) {
  waiter.to_say = false;
  const auto nodes = candidates(dependencies_.book.book(), dependencies_.nodes);
  const pod_request request(pod, dependencies_.book.keys());
  const auto limit = limit_of(dependencies_.book, pod, request, nodes);
  waiter.limit = limit ? name_of(*limit) : std::string();
  if (limit)
    return say(waiter, pod, waiter.limit, "AcceleratorQuotaExceeded", api::words_of(*limit, text::language::en), now);
  quota::explanation explanation;
  if (nodes.size() <= most_explained) {
    explanation = quota::explain(request.containers(), nodes, request.only());
  } else {
    std::vector<quota::shortfall> found(nodes.size());
    quota::filter(request.containers(), nodes, found, request.only());
    std::map<quota::reason, std::size_t> counts;
    for (const auto& each : found) ++counts[each.code];
    explanation.nodes = nodes.size();
    explanation.fitting = counts[quota::reason::fits];
    for (const auto& [reason, count] : counts)
      if (reason != quota::reason::fits) explanation.causes.push_back({.code = reason, .nodes = count});
    if (explanation.fitting == 0) explanation.faults = quota::faults_among(request.containers(), nodes);
  }
  if (explanation.fitting > 0) {  // its nodes are taken by something that is not ours to judge
    waiter.event_time = now;
    return;
  }
  // Whether it would fit without its annotations that choose cards is not tried here: then no change is reported as
  // missing.
  const bool is_all_tried = !request.only() || explanation.of_pod || explanation.of_node;
  say(waiter, pod, reasons_of(explanation), "NoAcceleratorFits",
      is_all_tried ? words_of(explanation, nodes, request, text::language::en)
                   : words_of_causes(explanation, nodes, request, text::language::en),
      now);
}

void waiting::say_some(controller::milliseconds now) {
  std::size_t index = 0;
  for (auto& [uid, waiter] : pods_) {
    if ((!waiter.to_say && !is_fading(waiter, now)) || now < waiter.not_before) continue;
    const auto* pod = known(uid, waiter);
    if (!pod) continue;
    if (++index > said_at_once) return;
    say(waiter, *pod, now);
    waiter.not_before = now + (waiter.reason.empty() ? after_nothing_to_say : after_saying);
  }
}

held_back_by_namespace waiting::held_back() const {
  held_back_by_namespace out;
  for (const auto& [uid, waiter] : pods_)
    if (!waiter.limit.empty()) ++out[waiter.key.ns][waiter.limit];
  return out;
}

bool waiting::fits_somewhere(const kube::pod& pod) {
  const pod_request request(pod, dependencies_.book.keys());
  quota::shortfall found;
  for (const auto& node : dependencies_.nodes.all()) {
    const auto view = dependencies_.book.book().view(node.key.name);
    if (!view || node.unschedulable || (view->inventory->serves.modes == 0 && view->inventory->counts.empty()))
      continue;
    quota::filter(request.containers(), std::span(&*view, 1), std::span(&found, 1), request.only());
    if (found.fits() && dependencies_.book.try_on(pod, request, node.key.name).held) return true;
  }
  return false;
}

kube::task<void> waiting::turn(controller::milliseconds now) {
  forget_the_placed(now);
  if (now >= next_search_) {
    next_search_ = now + search_pause;
    note_faulty();
  }
  say_some(now);
  std::vector<std::pair<const kube::pod*, waiter*>> due;
  for (auto& [uid, waiter] : pods_) {
    const bool pausing = waiter.touched != controller::milliseconds(0) && waiter.touched + touch_pause > now;
    if (waiter.looked == rooms_ || pausing) continue;
    if (const auto* pod = known(uid, waiter)) due.emplace_back(pod, &waiter);
  }
  std::ranges::sort(due, {}, [](const auto& entry) {
    return std::tuple(-std::int64_t{entry.first->priority}, entry.first->created, entry.first->key);
  });
  // Copies: pods may change while a patch is on its way.
  std::vector<std::pair<kube::object_key, kube::uid>> chosen;
  const auto until = std::chrono::steady_clock::now() + at_a_time;
  for (const auto& [pod, waiter] : due) {
    if (chosen.size() == touched_at_once || std::chrono::steady_clock::now() > until) break;  // the rest next time
    waiter->looked = rooms_;
    if (fits_somewhere(*pod)) chosen.emplace_back(pod->key, pod->id);
  }
  for (const auto& [key, uid] : chosen) {
    if (const auto match = pods_.find(uid); match != pods_.end()) match->second.touched = now;
    const nlohmann::json patch{
        {"metadata",
         {{"uid", uid.to_string()},
          {"annotations", {{nudge_annotation, controller::rfc3339_millis(std::chrono::system_clock::now())}}}}}};
    const auto done = co_await dependencies_.api.patch(kube::resources::pods, key, kube::patch_kind::merge, patch);
    if (done) touched_.add();
  }
  co_return kube::result<void>();
}

}  // namespace reconcilers::extender
