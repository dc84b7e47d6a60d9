#include "reconcilers/own_scheduler/plan.hpp"

#include <algorithm>
#include <ranges>

#include "api/names.hpp"
#include "reconcilers/nodes/preflight.hpp"
#include "text/list.hpp"

namespace reconcilers::own_scheduler {
namespace {

std::string isolation_of(const situation& is, bool isolate) {
  if (!is.isolated)
    return "; isolateNodes is false: two schedulers count the same CPU and memory on nodes with accelerators";
  if (isolate && is.tainted == 0 && is.free == 0)
    return "; no node is isolated, because every node has a module: two schedulers count the same CPU and memory";
  return {};
}

std::string progress(const running& running) {
  return std::to_string(running.ready) + " of " + std::to_string(running.desired) + " replicas ready";
}

void say(plan& out, std::string reason, std::string message) {
  out.reason = std::move(reason);
  out.message = std::move(message);
}

/// No pod is sent any more; what waits is waited for.
plan leaving(const situation& is) {
  plan out;
  out.visible = is.objects || is.sent;
  if (!out.visible) {
    say(out, "Off", "spec.scheduler.mode is not Dedicated: a kube-scheduler is set up by hand (docs/scheduling.md)");
  } else if (is.sent) {
    say(out, "SwitchingOff", "no pod is sent to it any more as soon as the API server knows");
  } else if (!is.waiting.empty()) {
    say(out, "PodsWait",
        text::counted(is.waiting.size(), "pod") + (is.waiting.size() == 1 ? " waits" : " wait") +
            " for it and can have no other scheduler: " +
            text::some_of(is.waiting | std::views::transform(&kube::object_key::to_string)) +
            "; it is removed when they have a node or are gone");
  } else if (is.quiet_for < quiet_needed) {
    say(out, "SwitchingOff", "no pod waits for it; it is removed in a moment");
    out.again_in = quiet_needed - is.quiet_for;
  } else {
    out.keep = plan::objects::none;
    say(out, "SwitchingOff", "it is being removed");
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
        "Secret " + std::string(api::names::extender_client_secret) +
            " does not have ca.crt, tls.crt and tls.key: by it kube-scheduler knows the extender and is known to it; "
            "the leader makes it within seconds, unless extender.certificateSecret is set: then it is yours to make");
    return out;
  }
  if (!is.version) {
    say(out, "VersionUnknown", "the API server has not said which version it is of");
    return out;
  }
  out.keep = plan::objects::as_wanted;
  if (!is.problem.empty()) {
    say(out, is.problem, is.message);
  } else if (!is.deployment) {
    say(out, "Starting", "its Deployment is being made");
  } else if (!is.deployment->rolled_out) {
    say(out, out.send ? "RollingOut" : "Starting",
        progress(*is.deployment) + (out.send ? "" : "; pods are sent to it as soon as one is") +
            (is.deployment->problem.empty() ? "" : ": " + is.deployment->problem));
    out.good = is.sent && available;
  } else {
    say(out, is.sent ? "Dedicated" : "Starting",
        progress(*is.deployment) + (is.sent ? "; pods that ask for accelerators are sent to it" : ""));
    out.good = is.sent;
  }
  if (is.sent) out.message += isolation_of(is, out.isolate);
  return out;
}

}  // namespace

plan plan_of(const situation& is) {
  if (is.wanted && is.extender) return on(is);
  auto out = leaving(is);
  if (is.wanted) {
    say(out, "ExtenderOff",
        "spec.scheduler.mode is Dedicated, but this operator was started without --extender-address (the chart gives "
        "it)" +
            (out.visible ? ". " + out.message : std::string()));
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
