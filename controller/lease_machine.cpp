#include "controller/lease_machine.hpp"

#include <algorithm>
#include <utility>

namespace controller {

using namespace std::chrono_literals;

text::phrase lease_settings::problem() const {
  if (identity.empty()) return {"usage.lease.identity"};
  if (duration <= renew_deadline) return {"usage.lease.duration"};
  if (renew_deadline.count() * 5 <= retry.count() * 6) return {"usage.lease.deadline"};
  if (duration < 1s || renew_deadline < 1s || retry <= 0ms) return {"usage.lease.second"};
  return {};
}

lease_machine::lease_machine(lease_settings settings, std::function<double()> jitter)
    : settings_(std::move(settings)), jitter_(std::move(jitter)) {}

milliseconds lease_machine::remaining(milliseconds now) const {
  if (!leading_ || lost_ || fall_ || released_) return 0ms;
  return std::max(0ms, renewed_at_ + settings_.renew_deadline - now);
}

bool lease_machine::valid(milliseconds now) const {
  if (!seen_) return false;
  // What the record says may be anything; a day is longer than any lease.
  return now < seen_at_ + std::chrono::seconds(std::clamp<std::int64_t>(seen_->duration_seconds, 0, 86'400));
}

void lease_machine::pause(milliseconds now) {
  // Followers spread out, so that they do not all find the lease expired at the same moment.
  const double extra = leading_ ? 0 : jitter_() * 0.2;
  not_before_ = now + settings_.retry +
                milliseconds(static_cast<std::int64_t>(static_cast<double>(settings_.retry.count()) * extra));
}

milliseconds lease_machine::request_deadline(milliseconds now) const {
  static constexpr milliseconds most = 5s;
  return leading_ ? std::clamp(remaining(now), 1ms, most) : most;
}

lease_step lease_machine::write_step(milliseconds now) const {
  lease_step step;
  step.deadline = request_deadline(now);
  step.create = absent_;
  if (seen_ && !absent_ && seen_->holder == settings_.identity) {
    step.action = lease_step::kind::renew;
    step.transitions = seen_->transitions;
    step.keep_acquire_time = true;
  } else {
    step.action = lease_step::kind::acquire;
    step.transitions = absent_ || !seen_ ? 0 : seen_->transitions + 1;
  }
  return step;
}

lease_step lease_machine::next(milliseconds now) {
  lease_step step;
  if (fall_ && !released_) {
    step.action = lease_step::kind::restored;
    step.fall = *fall_;
    return step;
  }
  if (leading_ && !released_ && !lost_ && !held(now)) {
    lost_ = true;
    lost_why_ = "not renewed within the renew deadline" + (last_error_.empty() ? std::string() : ": " + last_error_);
  }
  if (lost_) {
    step.action = lease_step::kind::lost;
    step.reason = lost_why_;
    return step;
  }
  if (released_) {
    step.wait = settings_.retry;
    return step;
  }
  if (now < not_before_) {
    step.wait = not_before_ - now;
    if (leading_) step.wait = std::min(step.wait, remaining(now));
    return step;
  }
  asked_at_ = now;
  if (!fresh_) {
    step.action = lease_step::kind::read;
    step.deadline = request_deadline(now);
    return step;
  }
  fresh_ = false;
  return write_step(now);
}

bool lease_machine::confirm(const lease_record& record) {
  if (!fall_) fall_ = witness_.judge(record.resource_version);
  // An answer of before may still have been on its way.
  if (!fall_ && away_at_ && asked_at_ > *away_at_) away_at_.reset();
  return !fall_;
}

void lease_machine::on_record(std::optional<lease_record> record, milliseconds now) {
  if (record && !confirm(*record)) return;
  absent_ = !record;
  if (record && (!seen_ || *record != *seen_)) {
    seen_ = std::move(record);
    seen_at_ = now;
  }
  if (absent_) {
    fresh_ = true;  // no one has it, no matter who had it before
    return;
  }
  if (leading_ && !ours()) {
    lost_ = true;
    lost_why_ = "taken over by " + (seen_->holder.empty() ? std::string("no one: someone released it") : seen_->holder);
    return;
  }
  if (seen_->holder.empty() || ours() || !valid(now)) {
    fresh_ = true;
    return;
  }
  pause(now);
}

void lease_machine::on_written(lease_record record, milliseconds sent, milliseconds now) {
  if (lost_ || released_) return;
  if (!confirm(record)) return;
  seen_ = std::move(record);
  seen_at_ = now;
  absent_ = false;
  leading_ = ours();
  last_error_.clear();
  looked_ = false;
  renewed_at_ = sent;
  // An answer that took longer than the deadline proves nothing about now; `next` sees that.
  fresh_ =
      leading_;  // the next renewal goes out without a read: it carries the version we know (client-go's fast path)
  pause(sent);
}

void lease_machine::on_failed(const kube::error& error, milliseconds now) {
  last_error_ = error.message;
  if (error.http == 0 || error.http >= 500) away_at_ = now;
  // A refused fast renewal is looked into at once; anything else waits its turn.
  const bool conflict = error.code == kube::errc::conflict || error.code == kube::errc::already_exists ||
                        error.code == kube::errc::not_found;
  fresh_ = false;
  if (leading_ && conflict && !looked_) {
    not_before_ = now;
    looked_ = true;  // once: a second writer must not make us spin
  } else {
    pause(now);
  }
}

void lease_machine::doubt(milliseconds now) {
  away_at_ = now;
  if (leading_) not_before_ = std::min(not_before_, now + 1ms);  // so that it leaves after `now`
}

std::optional<lease_record> lease_machine::release(milliseconds now) {
  const bool had = held(now);
  released_ = true;
  if (!had || !seen_) return std::nullopt;
  lease_record out = *seen_;
  out.holder.clear();
  out.duration_seconds = 1;
  return out;
}

}  // namespace controller
