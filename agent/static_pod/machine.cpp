#include "agent/static_pod/machine.hpp"

#include <utility>

namespace agent::static_pod {
namespace {

step rest(state is, std::string why = {}) { return {.what = action::rest, .is = is, .why = std::move(why)}; }
step wait(state is, std::string why) { return {.what = action::wait, .is = is, .why = std::move(why)}; }
step stop(std::string why) { return {.what = action::stop, .is = state::stopped, .why = std::move(why)}; }
step keep(state is, record what) {
  return {.what = action::keep, .is = is, .why = what.reason, .kept = std::move(what)};
}

state state_of(phase at) {
  switch (at) {
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

bool under_way(phase at) { return at == phase::applying || at == phase::reverting || at == phase::removing; }

/// Which of the two files is neither as before nor as after; empty: none.
std::string_view strange(const texts& now, const record& known) {
  if (now.config != known.before.config && now.config != known.after.config) return "scheduler-config.yaml";
  if (now.manifest != known.before.manifest && now.manifest != known.after.manifest) return "kube-scheduler.yaml";
  return {};
}

std::string somebodys(std::string_view file) {
  return std::string(file) +
         " was changed by somebody else since, and is left as it is; put it back, or delete quartermaster/record.json "
         "beside it to go on from the file as it is now";
}

/// One file further on the way to `to`.
step towards(const texts& to, const texts& now, state is) {
  const bool config = now.config != to.config;
  if (config && to.config) return {.what = action::write_config, .is = is, .text = *to.config};
  if (now.manifest != to.manifest) return {.what = action::write_manifest, .is = is, .text = to.manifest.value_or("")};
  return {.what = action::remove_config, .is = is};
}

/// Both files are where the change leads.
step arrived(const facts& of, const limits& how) {
  auto kept = *of.kept;
  const auto is = state_of(kept.at);
  if (of.down.empty() && of.up_for >= how.settle) {
    if (kept.at == phase::removing) return {.what = action::forget, .is = state::off};
    kept.at = kept.at == phase::applying ? phase::applied : phase::reverted;
    return keep(state_of(kept.at), std::move(kept));
  }
  const auto why = of.down.empty() ? std::string("kube-scheduler works, and has to for a while yet") : of.down;
  if (kept.at == phase::applying && of.since_manifest >= how.patience && of.watched_for >= how.look) {
    kept.at = phase::reverting;
    kept.reason = "after " + std::to_string(how.patience.count() / 1000) + " s " +
                  (of.down.empty() ? std::string("kube-scheduler does not keep working") : of.down);
    return keep(state::rolling_back, std::move(kept));
  }
  return wait(is, why);
}

/// `kubeadm upgrade` has written the manifest anew while a change was under way: the change goes on from that one. The
/// way back leads to it, too.
step rebased(const facts& of) {
  auto kept = *of.kept;
  kept.before.manifest = of.now.manifest;
  if (kept.at == phase::removing) kept.after.manifest = of.now.manifest;
  if (kept.at == phase::applying) {
    if (!of.wanted) return stop(of.wanted.error());
    kept.after = *of.wanted;
    kept.generation = of.generation;
  }
  const auto is = state_of(kept.at);
  return keep(is, std::move(kept));
}

step go_on(const facts& of, const limits& how) {
  const auto& kept = *of.kept;
  if (const auto file = strange(of.now, kept); !file.empty()) {
    if (file == "kube-scheduler.yaml" && of.foreign) return rebased(of);
    return stop(somebodys(file));
  }
  const auto& to = kept.at == phase::reverting ? kept.before : kept.after;
  if (of.now == to) return arrived(of, how);
  if (!of.not_ours.empty()) return wait(state_of(kept.at), of.not_ours);
  return towards(to, of.now, state_of(kept.at));
}

step at_rest(const facts& of) {
  const auto* kept = of.kept ? &*of.kept : nullptr;
  if (of.asked_for && kept && strange(of.now, *kept) == "scheduler-config.yaml")
    return stop(somebodys("scheduler-config.yaml"));
  if (!of.wanted) return of.asked_for || kept ? stop(of.wanted.error()) : rest(state::off);
  if (*of.wanted == of.now) {
    if (!of.asked_for) return kept ? step{.what = action::forget, .is = state::off} : rest(state::off);
    if (kept && kept->at == phase::applied && kept->after == of.now) return rest(state::applied, of.down);
    // Ours is there, and a person has changed other parts of the manifest or deleted the record.
    auto seen = kept ? *kept : record{.before = of.now};
    seen.generation = of.generation;
    seen.at = phase::applied;
    seen.after = of.now;
    seen.reason.clear();
    return keep(state::applied, std::move(seen));
  }
  if (kept && kept->at == phase::reverted && kept->after == *of.wanted) return rest(state::rolled_back, kept->reason);
  // One that does not work already would be taken back for no fault of ours; where it is ours, this may mend it.
  const auto down = of.asked_for && !(kept && kept->after == of.now) ? of.down : std::string();
  for (const auto& why : {of.not_begun, down, of.not_ours}) {
    if (!why.empty()) return wait(state::waiting, why);
  }
  record begun{.at = of.asked_for ? phase::applying : phase::removing,
               .generation = of.generation,
               .before = of.now,
               .after = *of.wanted,
               .created = kept && of.now.config ? kept->created : !of.now.config};
  return keep(state_of(begun.at), std::move(begun));
}

}  // namespace

std::string_view to_string(phase of) noexcept {
  switch (of) {
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

std::string_view to_string(state of) noexcept {
  switch (of) {
    case state::off:
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

step next(const facts& of, const limits& how) {
  if (!of.now.manifest) {
    if (!of.asked_for && !of.kept) return rest(state::off);
    return stop("manifests/kube-scheduler.yaml is not there: no kube-scheduler runs here as a static pod of kubeadm");
  }
  if (of.kept && under_way(of.kept->at)) return go_on(of, how);
  return at_rest(of);
}

}  // namespace agent::static_pod
