#include "reconcilers/extender/waiting.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <tuple>
#include <vector>

#include "quota/explain.hpp"
#include "quota/filter.hpp"
#include "reconcilers/extender/reasons.hpp"

namespace reconcilers::extender {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t most_waiting = 20'000;  // who waits beyond is told by the scheduler's own event
constexpr std::size_t said_at_once = 4;       // an explanation takes milliseconds
constexpr controller::milliseconds after_saying{30'000}, after_nothing_to_say{2'000};
constexpr std::size_t most_explained = 1'000;  // nodes; beyond that reasons are counted and no change is looked for
constexpr std::size_t touched_at_once = 16;
constexpr auto at_a_time = 5ms;   // of the loop
constexpr auto touch_pause = 2s;  // the scheduler's shortest back-off after one failure is 1 s

/// Which reasons there are, without numbers: what a change of is news.
std::string reasons_of(const quota::explanation& of) {
  std::string out;
  for (const auto& one : of.causes) {
    out += quota::text_of(one.why);
    out += std::to_string(one.container);
    out += one.key;
    out += ';';
  }
  return out;
}

}  // namespace

waiting::waiting(given by, controller::registry& metrics)
    : by_(by),
      count_(metrics.make_gauge("quartermaster_waiting_pods", "Pods that fit on no node they were tried on.")),
      touched_(metrics.make_counter("quartermaster_waiting_pods_touched_total",
                                    "Waiting pods that fitted after something was given back and were shown to the "
                                    "scheduler again.")) {}

void waiting::note(const kube::pod& pod) {
  if (const auto at = pods_.find(pod.id); at != pods_.end()) {
    at->second.to_say = true;
    return;
  }
  if (pods_.size() < most_waiting) pods_[pod.id] = {.key = pod.key, .reason = {}, .limit = {}, .looked = rooms_};
}

void waiting::forget_the_placed() {
  std::erase_if(pods_, [&](const auto& entry) {
    const auto* pod = by_.pods.find(entry.second.key);
    return !pod || pod->id != entry.first || !pod->node_name.empty() || pod->deleting || pod->finished();
  });
  count_.set(static_cast<double>(pods_.size()));
}

void waiting::say(waiter& one, const kube::pod& pod) {
  one.to_say = false;
  const auto nodes = candidates(by_.book.book(), by_.nodes);
  const asked by(pod, by_.book.keys());
  const auto limit = limit_of(by_.book, pod, by, nodes);
  one.limit = limit ? name_of(*limit) : std::string();
  if (limit) {
    if (one.reason == one.limit) return;
    one.reason = one.limit;
    by_.events.record({kube::resources::pods, pod}, controller::event_type::warning, "AcceleratorQuotaExceeded",
                      "Schedule", quota::text_of(*limit));
    return;
  }
  quota::explanation why;
  if (nodes.size() <= most_explained) {
    why = quota::explain(by.containers(), nodes, by.only());
  } else {
    std::vector<quota::shortfall> found(nodes.size());
    quota::filter(by.containers(), nodes, found, by.only());
    std::map<quota::reason, std::size_t> counts;
    for (const auto& each : found) ++counts[each.why];
    why.nodes = nodes.size();
    why.fitting = counts[quota::reason::fits];
    for (const auto& [reason, count] : counts)
      if (reason != quota::reason::fits) why.causes.push_back({.why = reason, .nodes = count});
  }
  if (why.fitting > 0) return;  // its nodes are taken by something that is not ours to judge
  auto reasons = reasons_of(why);
  if (reasons == one.reason) return;
  one.reason = std::move(reasons);
  by_.events.record({kube::resources::pods, pod}, controller::event_type::warning, "NoAcceleratorFits", "Schedule",
                    text_of(why, nodes, by));
}

void waiting::say_some(controller::milliseconds now) {
  std::size_t said = 0;
  for (auto& [uid, one] : pods_) {
    if (!one.to_say || now < one.not_before) continue;
    if (++said > said_at_once) return;
    if (const auto* pod = by_.pods.find(one.key)) say(one, *pod);
    one.not_before = now + (one.reason.empty() ? after_nothing_to_say : after_saying);
  }
}

held_back_by_namespace waiting::held_back() const {
  held_back_by_namespace out;
  for (const auto& [uid, one] : pods_)
    if (!one.limit.empty()) ++out[one.key.ns][one.limit];
  return out;
}

bool waiting::fits_somewhere(const kube::pod& pod) {
  const asked by(pod, by_.book.keys());
  quota::shortfall found;
  for (const auto& node : by_.nodes.all()) {
    const auto view = by_.book.book().view(node.key.name);
    if (!view || node.unschedulable || (view->what->serves.modes == 0 && view->what->counts.empty())) continue;
    quota::filter(by.containers(), std::span(&*view, 1), std::span(&found, 1), by.only());
    if (found.fits() && by_.book.try_on(pod, by, node.key.name).held) return true;
  }
  return false;
}

kube::task<void> waiting::turn(controller::milliseconds now) {
  forget_the_placed();
  say_some(now);
  std::vector<std::pair<const kube::pod*, waiter*>> due;
  for (auto& [uid, one] : pods_) {
    const bool pausing = one.touched != controller::milliseconds(0) && one.touched + touch_pause > now;
    if (one.looked == rooms_ || pausing) continue;
    if (const auto* pod = by_.pods.find(one.key)) due.emplace_back(pod, &one);
  }
  std::ranges::sort(due, {}, [](const auto& one) {
    return std::tuple(-std::int64_t{one.first->priority}, one.first->created, one.first->key);
  });
  // Copies: pods may change while a patch is on its way.
  std::vector<std::pair<kube::object_key, kube::uid>> chosen;
  const auto until = std::chrono::steady_clock::now() + at_a_time;
  for (const auto& [pod, one] : due) {
    if (chosen.size() == touched_at_once || std::chrono::steady_clock::now() > until) break;  // the rest next time
    one->looked = rooms_;
    if (fits_somewhere(*pod)) chosen.emplace_back(pod->key, pod->id);
  }
  for (const auto& [key, uid] : chosen) {
    if (const auto at = pods_.find(uid); at != pods_.end()) at->second.touched = now;
    const nlohmann::json patch{
        {"metadata",
         {{"uid", uid.to_string()},
          {"annotations", {{nudge_annotation, controller::rfc3339_millis(std::chrono::system_clock::now())}}}}}};
    // Through status: no right to change pods themselves is needed for it.
    const auto done = co_await by_.api.patch(kube::resources::pods, key, kube::patch_kind::merge, patch, "status");
    if (done) touched_.add();
  }
  co_return kube::result<void>();
}

}  // namespace reconcilers::extender
