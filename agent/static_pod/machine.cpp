#include "agent/static_pod/machine.hpp"

#include <utility>

namespace agent::static_pod {
namespace {

step rest(state is, text::phrase reason = {}) { return {.kind = action::rest, .is = is, .reason = std::move(reason)}; }
step wait(state is, text::phrase reason) { return {.kind = action::wait, .is = is, .reason = std::move(reason)}; }
step stop(text::phrase reason) { return {.kind = action::stop, .is = state::stopped, .reason = std::move(reason)}; }
step keep(state is, record record) {
  return {.kind = action::keep, .is = is, .reason = record.reason, .kept = std::move(record)};
}

state state_of(phase phase) {
  switch (phase) {
    case phase::applying:
      return state::changing;
    case phase::applied:
      return state::applied;
    case phase::reverting:
      return state::rolling_back;
    case phase::reverted:
      return state::rolled_back;
    case phase::removing:
      return state::removing;
  }
  return state::stopped;
}

bool under_way(phase phase) {
  return phase == phase::applying || phase == phase::reverting || phase == phase::removing;
}

/// Which of the two files is neither as before nor as after; empty: none.
std::string_view strange(const texts& now, const record& known) {
  if (now.config != known.before.config && now.config != known.after.config) return "scheduler-config.yaml";
  if (now.manifest != known.before.manifest && now.manifest != known.after.manifest) return "kube-scheduler.yaml";
  return {};
}

text::phrase changed_by_someone(std::string_view file) { return {"static_pod.changed", {{"file", std::string(file)}}}; }

/// One file further on the way to `target`.
step towards(const texts& target, const texts& now, state is) {
  const bool config = now.config != target.config;
  if (config && target.config) return {.kind = action::write_config, .is = is, .text = *target.config};
  if (now.manifest != target.manifest)
    return {.kind = action::write_manifest, .is = is, .text = target.manifest.value_or("")};
  return {.kind = action::remove_config, .is = is};
}

/// Both files are where the change leads.
step arrived(const control_plane_facts& facts, const limits& limits) {
  auto kept = *facts.kept;
  const auto is = state_of(kept.stage);
  if (facts.down.empty() && facts.up_for >= limits.settle) {
    if (kept.stage == phase::removing) return {.kind = action::forget, .is = state::disabled};
    kept.stage = kept.stage == phase::applying ? phase::applied : phase::reverted;
    return keep(state_of(kept.stage), std::move(kept));
  }
  const auto reason = facts.down.empty() ? text::phrase{"static_pod.settles"} : facts.down;
  if (kept.stage == phase::applying && facts.since_manifest >= limits.patience && facts.watched_for >= limits.look) {
    kept.stage = phase::reverting;
    kept.reason = {"static_pod.given_up",
                   {{"seconds", std::to_string(limits.patience.count() / 1000)},
                    {"cause", facts.down.empty() ? text::phrase{"static_pod.unsteady"} : facts.down}}};
    return keep(state::rolling_back, std::move(kept));
  }
  return wait(is, reason);
}

/// `kubeadm upgrade` has written the manifest again while a change was under way: the change goes on from that one. The
/// way back leads to it, too.
step rebased(const control_plane_facts& facts) {
  auto kept = *facts.kept;
  kept.before.manifest = facts.now.manifest;
  if (kept.stage == phase::removing) kept.after.manifest = facts.now.manifest;
  if (kept.stage == phase::applying) {
    if (!facts.wanted) return stop(facts.wanted.error());
    kept.after = *facts.wanted;
    kept.generation = facts.generation;
  }
  const auto is = state_of(kept.stage);
  return keep(is, std::move(kept));
}

step go_on(const control_plane_facts& facts, const limits& limits) {
  const auto& kept = *facts.kept;
  if (const auto file = strange(facts.now, kept); !file.empty()) {
    if (file == "kube-scheduler.yaml" && facts.foreign) return rebased(facts);
    return stop(changed_by_someone(file));
  }
  const auto& target = kept.stage == phase::reverting ? kept.before : kept.after;
  if (facts.now == target) return arrived(facts, limits);
  if (!facts.not_ours.empty()) return wait(state_of(kept.stage), facts.not_ours);
  return towards(target, facts.now, state_of(kept.stage));
}

step at_rest(const control_plane_facts& facts) {
  const auto* kept = facts.kept ? &*facts.kept : nullptr;
  if (facts.asked_for && kept && strange(facts.now, *kept) == "scheduler-config.yaml")
    return stop(changed_by_someone("scheduler-config.yaml"));
  if (!facts.wanted) return facts.asked_for || kept ? stop(facts.wanted.error()) : rest(state::disabled);
  if (*facts.wanted == facts.now) {
    if (!facts.asked_for) return kept ? step{.kind = action::forget, .is = state::disabled} : rest(state::disabled);
    if (kept && kept->stage == phase::applied && kept->after == facts.now) return rest(state::applied, facts.down);
    // Ours is there, and a person has changed other parts of the manifest or deleted the record.
    auto seen = kept ? *kept : record{.before = facts.now};
    seen.generation = facts.generation;
    seen.stage = phase::applied;
    seen.after = facts.now;
    seen.reason = {};
    return keep(state::applied, std::move(seen));
  }
  if (kept && kept->stage == phase::reverted && kept->after == *facts.wanted)
    return rest(state::rolled_back, kept->reason);
  // One that does not work already would be taken back through no fault of our own; where it is ours, this may fix it.
  const auto down = facts.asked_for && !(kept && kept->after == facts.now) ? facts.down : text::phrase();
  for (const auto& entry : {facts.not_begun, down, facts.not_ours}) {
    if (!entry.empty()) return wait(state::waiting, entry);
  }
  record begun{.stage = facts.asked_for ? phase::applying : phase::removing,
               .generation = facts.generation,
               .before = facts.now,
               .after = *facts.wanted,
               .created = kept && facts.now.config ? kept->created : !facts.now.config};
  return keep(state_of(begun.stage), std::move(begun));
}

}  // namespace

std::string_view to_string(phase phase) noexcept {
  switch (phase) {
    case phase::applying:
      return "applying";
    case phase::applied:
      return "applied";
    case phase::reverting:
      return "reverting";
    case phase::reverted:
      return "reverted";
    case phase::removing:
      return "removing";
  }
  return "";
}

std::string_view to_string(state state) noexcept {
  switch (state) {
    case state::disabled:
      return "Off";
    case state::waiting:
      return "Waiting";
    case state::changing:
      return "Changing";
    case state::applied:
      return "Applied";
    case state::rolling_back:
      return "RollingBack";
    case state::rolled_back:
      return "RolledBack";
    case state::removing:
      return "Removing";
    case state::stopped:
      return "Stopped";
  }
  return "";
}

step next(const control_plane_facts& facts, const limits& limits) {
  if (!facts.now.manifest) {
    if (!facts.asked_for && !facts.kept) return rest(state::disabled);
    return stop({"static_pod.no_manifest"});
  }
  if (facts.kept && under_way(facts.kept->stage)) return go_on(facts, limits);
  return at_rest(facts);
}

}  // namespace agent::static_pod
