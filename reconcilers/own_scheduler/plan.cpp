#include "reconcilers/own_scheduler/plan.hpp"

#include <algorithm>

#include "api/names.hpp"
#include "reconcilers/nodes/preflight.hpp"

namespace reconcilers::own_scheduler {
namespace {

text::phrase scheduler_phrase(std::string_view key, std::vector<text::phrase_argument> arguments = {}) {
  return {"status.scheduler." + std::string(key), std::move(arguments)};
}

/// Empty: there is nothing to say about it.
text::phrase isolation_of(const situation& is, bool isolate) {
  if (!is.isolated) return scheduler_phrase("not_isolated");
  if (isolate && is.tainted == 0 && is.free == 0) return scheduler_phrase("none_isolated");
  return {};
}

text::phrase progress(const running& running) {
  return scheduler_phrase("replicas",
                          {{"ready", std::to_string(running.ready)}, {"desired", std::to_string(running.desired)}});
}

/// Why the Deployment gets no further follows, where it says so.
text::phrase rolling_out(const running& running, bool send) {
  auto out = text::joined_by_semicolons({progress(running), send ? text::phrase() : scheduler_phrase("sent_soon")});
  if (running.problem.empty()) return out;
  return scheduler_phrase("because", {{"text", std::move(out)}, {"cause", running.problem}});
}

void say(plan& out, std::string reason, text::phrase message) {
  out.reason = std::move(reason);
  out.message = std::move(message);
}

/// No pod is sent any more; what waits is waited for.
plan leaving(const situation& is) {
  plan out;
  out.visible = is.objects || is.sent;
  if (!out.visible) {
    say(out, "Off", scheduler_phrase("by_hand"));
  } else if (is.sent) {
    say(out, "SwitchingOff", scheduler_phrase("no_more_pods"));
  } else if (!is.waiting.empty()) {
    std::vector<std::string> names;
    for (const auto& pod : is.waiting) names.push_back(pod.to_string());
    auto message = text::counted_phrase(names.size(), "status.scheduler.pods_wait");
    message.arguments.push_back(text::some_of("list", names));
    say(out, "PodsWait", std::move(message));
  } else if (is.quiet_for < quiet_needed) {
    say(out, "SwitchingOff", scheduler_phrase("soon_removed"));
    out.again_in = quiet_needed - is.quiet_for;
  } else {
    out.keep = plan::objects::none;
    say(out, "SwitchingOff", scheduler_phrase("being_removed"));
  }
  return out;
}

plan on(const situation& is) {
  plan out;
  const bool available = is.deployment && is.deployment->available > 0;
  out.send = is.sent || available;
  out.isolate = is.isolated && out.send && (is.sent || is.tainted > 0);
  if (!is.certificates) {
    say(out, "CertificatesMissing",
        scheduler_phrase("certificates_missing", {{"secret", std::string(api::names::extender_client_secret)}}));
    return out;
  }
  if (!is.version) {
    say(out, "VersionUnknown", scheduler_phrase("version_unknown"));
    return out;
  }
  out.keep = plan::objects::as_wanted;
  if (!is.problem.empty()) {
    say(out, is.problem, is.message);
  } else if (!is.deployment) {
    say(out, "Starting", scheduler_phrase("starting"));
  } else if (!is.deployment->rolled_out) {
    say(out, out.send ? "RollingOut" : "Starting", rolling_out(*is.deployment, out.send));
    out.good = is.sent && available;
  } else {
    say(out, is.sent ? "Dedicated" : "Starting",
        text::joined_by_semicolons({progress(*is.deployment), is.sent ? scheduler_phrase("sent") : text::phrase()}));
    out.good = is.sent;
  }
  if (is.sent) out.message = text::joined_by_semicolons({std::move(out.message), isolation_of(is, out.isolate)});
  return out;
}

}  // namespace

plan plan_of(const situation& is) {
  if (is.wanted && is.extender) return on(is);
  auto out = leaving(is);
  if (is.wanted) {
    auto message = scheduler_phrase("extender_off");
    if (out.visible)
      message = scheduler_phrase("and_more", {{"text", std::move(message)}, {"more", std::move(out.message)}});
    say(out, "ExtenderOff", std::move(message));
    out.visible = true;
  }
  return out;
}

std::string version_to_run(const std::string& present, const std::string& answered, std::chrono::milliseconds since) {
  if (answered.empty() || answered == present) return present;
  const auto is = parse_version(present), next = parse_version(answered);
  const bool higher = is && next && *next >= *is;
  return higher && since < upgrade_settles ? present : answered;
}

}  // namespace reconcilers::own_scheduler
