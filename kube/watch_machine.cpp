#include "kube/watch_machine.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "kube/status.hpp"

namespace kube {
namespace {

using namespace std::chrono_literals;
using ms = std::chrono::milliseconds;

constexpr ms most_backoff = 30s, backoff_forgotten = 2min;
// A server that starts again says "in a second" to everyone. Without a spread that grows, thousands of clients ask
// every 1.4 s until it is up. With the most, it is asked again 1 to 7.4 s after it is back.
constexpr ms most_spread = 6400ms;
constexpr ms too_large_retry = 1s;   // the server waits up to 3 s by itself before it answers 504
constexpr ms very_short_watch = 1s;  // closed sooner and without an event: something is wrong
constexpr int most_refusals = 3;

ms scaled(ms duration, double factor) {
  return ms(static_cast<ms::rep>(static_cast<double>(duration.count()) * factor));
}

/// In-stream errors that say nothing about our version: the same watch may be asked for again.
bool is_passing(const api_status& status) {
  return status.reason == "InternalError" || status.reason == "Timeout" || status.reason == "ServerTimeout" ||
         status.reason == "ServiceUnavailable";
}

/// The server said no, as opposed to later, to a connection that is not there, and to silence.
bool answered(errc code) {
  return code != errc::connect && code != errc::tls && code != errc::timeout && code != errc::config &&
         code != errc::too_many_requests;
}

}  // namespace

watch_machine::watch_machine(const resource& type, watch_settings settings, std::function<double()> jitter)
    : type_(type),
      settings_(std::move(settings)),
      jitter_(std::move(jitter)),
      spread_(settings_.first_backoff),
      backoff_(settings_.first_backoff) {}

watch_step watch_machine::next(ms now) {
  watch_step step;
  if (not_before_ && now < *not_before_) {
    step.wait = *not_before_ - now;
    return step;
  }
  not_before_.reset();
  if (need_list_ && (!settings_.watch_list || watch_list_refused_ || plain_list_)) {
    if (continue_token_.empty()) ++count_.lists;
    phase_ = phase::listing;
    step.action = watch_step::kind::list;
    step.send = list_request();
    return step;
  }
  phase_ = need_list_ ? phase::initial : phase::watching;
  ++(need_list_ ? count_.watch_lists : count_.watches);
  // From the sending, not from the answer: some proxies hold back the head until the first event.
  opened_ = progress_ = now;
  events_in_watch_ = 0;
  step.action = watch_step::kind::watch;
  step.send = watch_request(need_list_);
  return step;
}

request watch_machine::list_request() const {
  list_options options;
  options.ns = settings_.ns;
  options.label_selector = settings_.label_selector;
  options.field_selector = settings_.field_selector;
  options.limit = settings_.page;
  options.continue_token = continue_token_;
  options.accept = settings_.wire;
  return list_page(type_, options);
}

request watch_machine::watch_request(bool initial) const {
  watch_options options;
  options.ns = settings_.ns;
  options.label_selector = settings_.label_selector;
  options.field_selector = settings_.field_selector;
  if (!initial) options.resource_version = version_;
  options.send_initial_events = initial;
  options.timeout =
      shortest_watch + std::chrono::duration_cast<std::chrono::seconds>(scaled(shortest_watch, jitter_()));
  options.silence = settings_.silence;
  options.accept = settings_.wire;
  return watch_from(type_, options);
}

void watch_machine::on_list_page(std::string_view body, ms now, const std::function<void(store_op)>& each) {
  if (phase_ != phase::listing) return;
  std::vector<std::string_view> items;
  const auto page = read_list(body, settings_.wire, [&](std::string_view item) { items.push_back(item); });
  if (!page) {
    ++count_.undecodable;
    on_error(page.error(), now);
    return;
  }
  if (!page->next.empty() && page->next == continue_token_) {
    ++count_.undecodable;
    continue_token_.clear();
    list_begun_ = false;
    retry({errc::decode, 0, "the server names the same next page twice, so the list has no end", {}}, now);
    return;
  }
  // The views of `page` may not outlive the decoding of items.
  std::string version(page->resource_version), token(page->next);
  phase_ = phase::idle;
  if (!std::exchange(list_begun_, true)) each({store_op::kind::begin, {}});
  for (const auto item : items) each({store_op::kind::put, item});
  continue_token_ = std::move(token);
  if (!continue_token_.empty()) return;
  version_ = std::move(version);
  need_list_ = plain_list_ = list_begun_ = token_expired_ = false;
  strikes_ = 0;
  spread_ = settings_.first_backoff;
  heard_ = now;
  synced_ = true;
  each({store_op::kind::commit, {}});
}

store_op watch_machine::on_watch_open(ms now) {
  if (phase_ != phase::initial) return {};
  progress_ = now;
  return {store_op::kind::begin, {}};
}

store_op watch_machine::on_frame(std::string_view frame, ms now) {
  if (phase_ != phase::initial && phase_ != phase::watching) return {store_op::kind::restart, {}};
  const auto event = read_event(frame, settings_.wire);
  if (!event) return broken(now);
  if (event->type == event_type::error) return on_stream_error(event->object, now);
  if (!event->kind.empty() && event->kind != type_.kind) {
    ++count_.undecodable;
    return {};
  }
  return on_event(*event, now);
}

store_op watch_machine::on_event(const event& event, ms now) {
  ++events_in_watch_;
  heard_ = now;
  was_away_ = false;
  refusals_ = 0;
  spread_ = settings_.first_backoff;
  ++(event.type == event_type::bookmark ? count_.bookmarks : count_.events);
  const bool initial = phase_ == phase::initial;
  if (initial && event.initial_events_end && event.type == event_type::bookmark) {
    if (event.resource_version.empty()) return broken(now);
    version_ = event.resource_version;
    phase_ = phase::watching;
    need_list_ = plain_list_ = list_begun_ = false;
    strikes_ = 0;
    synced_ = true;
    return {store_op::kind::commit, {}};
  }
  // Synthetic events come in no order of versions: until their end none of them is a place to resume from.
  if (!initial) {
    strikes_ = 0;
    if (!event.resource_version.empty()) version_ = event.resource_version;
  }
  switch (event.type) {
    case event_type::added:
    case event_type::modified:
      progress_ = now;
      return {store_op::kind::put, event.object};
    case event_type::deleted:
      progress_ = now;
      return {store_op::kind::erase, event.object};
    default:
      break;
  }
  if (!stalled(now)) return {};
  give_up_watch_list();
  return {store_op::kind::restart, {}};
}

store_op watch_machine::on_stream_error(std::string_view object, ms now) {
  const auto status = read_status(object, settings_.wire);
  if (!status) return broken(now);
  const error error = error_of("watch " + std::string(type_.plural), *status);
  const bool known =
      error.code == errc::gone || error.code == errc::version_too_large || error.code == errc::too_many_requests;
  if (phase_ == phase::watching && !known) {
    ++count_.errors;
    phase_ = phase::idle;
    // What the stream would have told is not known ("StoreReadError": an object was removed without an event), so list;
    // a server in trouble gets the same question again first.
    if (!is_passing(*status) || struck_out()) relist();
    back_off(now);
  } else {
    on_error(error, now);
  }
  return {store_op::kind::restart, {}};
}

store_op watch_machine::broken(ms now) {
  ++count_.undecodable;
  on_error({errc::decode, 0, "undecodable watch frame", {}}, now);
  return {store_op::kind::restart, {}};
}

void watch_machine::on_watch_closed(ms now) {
  if (phase_ == phase::initial) {
    on_error({errc::connect, 0, "closed before the initial events ended", {}}, now);
  } else if (phase_ == phase::watching) {
    phase_ = phase::idle;
    if (events_in_watch_ > 0) return;
    if (now - opened_ < very_short_watch) {
      ++count_.errors;
      ++refusals_;
      back_off(now);
    }
    list_if_broken(now);
  }
}

bool watch_machine::stalled(ms now) const {
  return phase_ == phase::initial && now - progress_ >= settings_.initial_deadline;
}

bool watch_machine::on_tick(ms now) {
  if (!stalled(now)) return false;
  give_up_watch_list();
  return true;
}

void watch_machine::give_up_watch_list() {
  ++count_.errors;
  phase_ = phase::idle;
  plain_list_ = true;
}

void watch_machine::on_error(const error& error, ms now) {
  const phase was = std::exchange(phase_, phase::idle);
  if (was == phase::idle || error.code == errc::cancelled) return;
  ++count_.errors;
  if (error.code == errc::gone) ++count_.gone;
  switch (was) {
    case phase::listing:
      return list_failed(error, now);
    case phase::initial:
      return initial_failed(error, now);
    case phase::watching:
      return watch_failed(error, now);
    case phase::idle:
      return;
  }
}

void watch_machine::list_failed(const error& error, ms now) {
  // A page is asked for again with its token, which is good for minutes; what was put stays put. Only a token that is
  // gone, or a page that cannot be read, starts the list over.
  const bool expired = error.code == errc::gone && !continue_token_.empty();
  if (expired || error.code == errc::decode) {
    continue_token_.clear();
    list_begun_ = false;
  }
  // A page of large objects may be more than an answer may be, which the driver says as this; a smaller one is not.
  if (error.code == errc::decode) settings_.page = std::max(settings_.page / 2, 1);
  if (expired && !std::exchange(token_expired_, true)) return;
  retry(error, now);
}

void watch_machine::initial_failed(const error& error, ms now) {
  switch (error.code) {
    // "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled": it stays so.
    case errc::invalid:
    case errc::bad_request:
      watch_list_refused_ = true;
      return;
    case errc::timeout:
      plain_list_ = true;
      break;
    case errc::gone:
    case errc::version_too_large:
    case errc::too_many_requests:
      break;
    default:
      if (struck_out()) plain_list_ = true;
  }
  retry(error, now);
}

void watch_machine::watch_failed(const error& error, ms now) {
  switch (error.code) {
    case errc::gone:
      // A server that was away and is back knows no version of before. What was waited for it is over; a version that
      // is gone after a list that went well is waited for longer each time.
      if (std::exchange(was_away_, false)) backoff_ = settings_.first_backoff;
      relist();
      break;
    case errc::version_too_large:
    case errc::invalid:
    case errc::bad_request:
      relist();
      break;
    case errc::decode:
      if (struck_out()) relist();
      break;
    default:
      was_away_ = true;
      // The version is still good: after one 5xx, cut connection or silence the same watch is asked for again. But
      // where watches do not work and lists do (a right that is missing, a proxy that holds streams back) only a list
      // tells what is true; client-go lists after every failure.
      if (answered(error.code)) ++refusals_;
      list_if_broken(now);
  }
  retry(error, now);
}

void watch_machine::list_if_broken(ms now) {
  if (refusals_ < most_refusals && (!heard_ || now - *heard_ < settings_.stale)) return;
  ++count_.broken;
  relist();
  plain_list_ = true;  // a WatchList is a watch, too
}

bool watch_machine::struck_out() { return ++strikes_ >= 2; }

void watch_machine::relist() {
  need_list_ = true;
  continue_token_.clear();
  list_begun_ = token_expired_ = false;
  strikes_ = refusals_ = 0;
}

void watch_machine::retry(const error& error, ms now) {
  if (error.retry_after && error.code != errc::gone && error.code != errc::version_too_large) {
    not_before_ = now + *error.retry_after + scaled(spread_, jitter_());
    spread_ = std::min(spread_ * 2, most_spread);
    return;
  }
  back_off(now, error.code == errc::version_too_large ? too_large_retry : ms(0));
}

void watch_machine::back_off(ms now, ms at_least) {
  if (last_backoff_ && now - *last_backoff_ >= backoff_forgotten) backoff_ = settings_.first_backoff;
  last_backoff_ = now;
  not_before_ = now + std::max(at_least, scaled(backoff_, 1.0 + jitter_()));
  backoff_ = std::min(backoff_ * 2, most_backoff);
}

}  // namespace kube
