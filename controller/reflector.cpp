#include "controller/reflector.hpp"

#include <malloc.h>

#include <charconv>
#include <exception>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "controller/continuity.hpp"
#include "controller/log.hpp"
#include "controller/sleep.hpp"
#include "kube/frame.hpp"
#include "kube/json_text.hpp"
#include "kube/status.hpp"
#include "kube/wire.hpp"

namespace controller {
namespace {

using namespace std::chrono_literals;
using op = kube::store_op;

/// Name and namespace of an object that could not be decoded, when at least its metadata can be read.
std::optional<kube::object_key> key_of(std::string_view object, kube::encoding wire) {
  kube::object found;
  if (wire == kube::encoding::protobuf) {
    const auto read = kube::wire::guarded("metadata", [&] {
      kube::wire::reader fields(object.data(), object.size());
      while (fields.next()) {
        if (fields.tag_and_type() == kube::wire::bytes_field(1)) {
          kube::wire::read_metadata(kube::wire::text(fields), found, {}, {});
          return;
        }
        fields.skip();
      }
    });
    if (!read) return std::nullopt;
  } else {
    const auto parsed = nlohmann::json::parse(object, nullptr, false);
    found.key = {kube::text_at(parsed, "/metadata/namespace"), kube::text_at(parsed, "/metadata/name")};
  }
  if (found.key.name.empty()) return std::nullopt;
  return found.key;
}

class reflector {
 public:
  reflector(kube::transport& transport, const kube::resource& type, kube::watch_settings settings,
            reflector_sink& reflector_sink, reflector_metrics& metrics, reflector_options options)
      : transport_(transport),
        type_(type),
        wire_(settings.wire),
        machine_(type, std::move(settings), random_jitter),
        sink_(reflector_sink),
        metrics_(metrics),
        options_(std::move(options)),
        name_(options_.name.empty() ? std::string(type.plural) : options_.name),
        events_(metrics.events.with({name_})),
        lists_(metrics.lists.with({name_})),
        watches_(metrics.watches.with({name_})),
        undecodable_(metrics.undecodable.with({name_})),
        objects_(metrics.objects.with({name_})),
        last_contact_(metrics.last_contact.with({name_})) {}

  kube::task<void> run() {
    metrics_.synced.with({name_}).set(0);
    for (;;) {
      auto step = machine_.next(options_.now());
      publish();
      switch (step.action) {
        case kube::watch_step::kind::wait: {
          const bool slept = co_await sleep_for(step.wait);
          if (!slept) co_return std::unexpected(cancelled());
          break;
        }
        case kube::watch_step::kind::list:
          co_await list(std::move(step.send));
          break;
        case kube::watch_step::kind::watch:
          co_await watch(std::move(step.send));
          break;
      }
      co_await yield_to_others();
    }
  }

 private:
  static kube::error cancelled() { return {kube::errc::cancelled, 0, "the reflector was stopped", {}}; }

  boost::asio::awaitable<void> list(kube::request request) {
    continuity_.ask(options_.now(), true);
    const auto answer = co_await transport_.send(std::move(request));
    if (!answer) {
      failed(answer.error());
    } else if (!kube::succeeded(answer->status)) {
      failed(kube::error_of("list " + std::string(type_.plural), *answer));
    } else {
      contact();
      bytes_ += answer->body.size();
      tell_of_gap(options_.now());
      machine_.on_list_page(answer->body, options_.now(), [this](op what_to_do) { apply(what_to_do); });
    }
  }

  boost::asio::awaitable<void> watch(kube::request request) {
    using namespace boost::asio::experimental::awaitable_operators;
    kube::framer frames(wire_);
    bool open = false;
    const auto began = options_.now();
    continuity_.ask(began, machine_.initial());
    request.opened = [this] { continuity_.open(options_.now()); };
    kube::chunk_sink sink = [&](std::string_view chunk) {
      contact();
      bytes_ += chunk.size();
      const auto now = options_.now();
      tell_of_gap(now);
      if (!std::exchange(open, true)) apply(machine_.on_watch_open(now));
      bool restart = false;
      const auto fed = frames.feed(chunk, [&](std::string_view frame) {
        const auto next = machine_.on_frame(frame, now);
        restart = next.action == op::kind::restart;
        if (!restart) apply(next);
        return !restart;
      });
      publish();
      if (!fed) failed(fed.error());
      if (fed && !restart) continuity_.took(now);
      return fed.has_value() && !restart;
    };
    std::exception_ptr thrown;
    auto streaming = caught(transport_.stream(std::move(request), std::move(sink)), thrown);
    auto ticking = tick();
    // Whichever ends first cancels the other: the stream, or the deadline of the initial events.
    const auto ended = co_await (std::move(streaming) || std::move(ticking));
    if (thrown) std::rethrow_exception(thrown);
    if (ended.index() == 1) co_return;  // the machine knows: on_tick said so
    const auto now = options_.now();
    const auto& answer = std::get<0>(ended);
    const bool clean = answer && kube::succeeded(answer->status);
    continuity_.end(now, clean);
    const bool cut_short = !answer || answer->status >= 500 || (clean && now - began < kube::shortest_watch);
    if (cut_short && options_.on_break) guarded([&] { options_.on_break(); });
    if (!answer) {
      failed(answer.error());
    } else if (!kube::succeeded(answer->status)) {
      failed(kube::error_of("watch " + std::string(type_.plural), *answer));
    } else {
      const auto broken = machine_.count().broken;
      machine_.on_watch_closed(now);
      if (machine_.count().broken == broken) co_return;
      tell_of_broken_watch(
          {kube::errc::connect, 0, "watch " + std::string(type_.plural) + ": it ends without an event", {}}, now);
    }
  }

  /// `a || b` waits for one that succeeds: an exception would be waited over, for ever.
  static kube::task<kube::response> caught(kube::task<kube::response> streaming, std::exception_ptr& thrown) {
    try {
      co_return co_await std::move(streaming);
    } catch (...) {
      thrown = std::current_exception();
    }
    co_return std::unexpected(cancelled());
  }

  boost::asio::awaitable<void> tick() {
    for (;;) {
      const bool slept = co_await sleep_for(machine_.initial() ? 5s : 600s);
      if (slept && machine_.on_tick(options_.now())) co_return;
    }
  }

  void apply(op operation) {
    guarded([&] {
      switch (operation.action) {
        case op::kind::begin:
          continuity_.begin();
          sink_.begin();
          return;
        case op::kind::put:
          report(sink_.put(operation.object), operation.object, false);
          return;
        case op::kind::erase:
          report(sink_.erase(operation.object), operation.object, true);
          return;
        case op::kind::commit:
          commit();
          return;
        case op::kind::none:
        case op::kind::restart:
          return;
      }
    });
    reach();
  }

  /// The machine's version moves with each event of a watch and with the end of a list, and not within a list.
  void reach() {
    const auto& text = machine_.resource_version();
    witness_.note(text);
    std::uint64_t version = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), version);
    if (read.ec == std::errc()) sink_.reach(version);
  }

  /// An exception comes out of an observer: one of our bugs, which must not look like a broken stream.
  void guarded(auto action) {
    try {
      action();
    } catch (const std::exception& e) {
      metrics_.errors.with({name_, "exception"}).add();
      log::error("exception while taking in an object", {{"resource", name_}, {"error", e.what()}});
    }
  }

  void tell_of_gap(milliseconds now) {
    const auto since = continuity_.news(now);
    if (since && options_.on_gap) guarded([&] { options_.on_gap(*since); });
  }

  void report(const kube::result<void>& read, std::string_view object, bool gone) {
    if (read) return;
    undecodable_.add();
    const auto key = key_of(object, wire_);
    if (key) gone ? sink_.erase_key(*key) : sink_.keep(*key);
    if (unreadable_.size() >= 1000) return;  // counted is enough then
    if (!unreadable_.insert(key ? key->to_string() : read.error().message).second) return;
    log::error(gone ? "object cannot be decoded, it is gone" : "object cannot be decoded, what was known of it is kept",
               {{"resource", name_}, {"error", read.error().message}});
  }

  void commit() {
    // Before the store loses what is not in it, and others act on that.
    const auto fall = witness_.judge(machine_.resource_version());
    if (fall && options_.on_restored) options_.on_restored(name_, *fall);
    continuity_.complete(options_.now());
    sink_.commit();
    if (std::exchange(initial_, false)) {
      log::info("cache synced", {{"resource", name_}, {"objects", sink_.size()}, {"bytes", bytes_}});
      if (bytes_ > options_.trim_above) malloc_trim(0);
    }
    if (options_.state) options_.state->synced = true;
    metrics_.synced.with({name_}).set(1);
    publish();
  }

  void contact() {
    if (!trouble_.empty()) log::info("API server answers again", {{"resource", name_}});
    trouble_.clear();
    if (std::exchange(refused_since_, std::nullopt)) metrics_.forbidden.with({name_}).set(0);
    last_contact_.set(static_cast<double>(
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count()));
    if (!options_.state) return;
    options_.state->last_contact = options_.now();
    options_.state->trouble.clear();
    options_.state->forbidden = false;
    set_refused(false);
  }

  void set_refused(bool refused) {
    if (!options_.state || std::exchange(options_.state->refused, refused) == refused) return;
    if (options_.on_rights) options_.on_rights();
  }

  void failed(const kube::error& error) {
    const auto now = options_.now();
    const auto broken = machine_.count().broken;
    machine_.on_error(error, now);
    if (error.code == kube::errc::cancelled) return;
    if (machine_.count().broken > broken) tell_of_broken_watch(error, now);
    metrics_.errors.with({name_, kube::to_string(error.code)}).add();
    // A version that is gone and a watch the server does not know are the normal way to a new list.
    if (error.code == kube::errc::gone || error.code == kube::errc::invalid) return;
    const bool is_forbidden = error.code == kube::errc::forbidden;
    if (is_forbidden || refused_since_) metrics_.forbidden.with({name_}).set(is_forbidden ? 1 : 0);
    if (options_.state) {
      options_.state->trouble = error.message;
      options_.state->forbidden = is_forbidden;
    }
    if (!is_forbidden)
      refused_since_.reset();
    else if (!refused_since_)
      refused_since_ = now;
    const bool is_patient = is_forbidden && now - *refused_since_ < options_.forbidden_patience;
    set_refused(is_forbidden && !is_patient);
    if (is_patient) return;
    const bool again = trouble_ == error.message && now - told_at_ < 60s;
    trouble_ = error.message;
    if (again) return;
    told_at_ = now;
    if (is_forbidden) {
      log::error("not allowed to list or watch: grant the right, no restart is needed",
                 {{"resource", name_}, {"error", error.message}});
      if (options_.on_trouble) options_.on_trouble(error);
    } else {
      log::warn("list or watch failed, retrying", {{"resource", name_}, {"error", error.message}});
    }
  }

  void tell_of_broken_watch(const kube::error& error, milliseconds now) {
    if (broken_told_at_ && now - *broken_told_at_ < 60s) return;
    broken_told_at_ = now;
    log::warn("the watch does not work, the cache is listed instead", {{"resource", name_}, {"error", error.message}});
    if (options_.on_trouble && error.code != kube::errc::forbidden) options_.on_trouble(error);
  }

  void publish() {
    const auto& now = machine_.count();
    const auto add = [](counter& counter, std::uint64_t is, std::uint64_t was) {
      if (is > was) counter.add(static_cast<double>(is - was));
    };
    add(events_, now.events, reported_.events);
    add(lists_, now.lists + now.watch_lists, reported_.lists + reported_.watch_lists);
    add(watches_, now.watches, reported_.watches);
    add(undecodable_, now.undecodable, reported_.undecodable);
    reported_ = now;
    objects_.set(static_cast<double>(sink_.size()));
  }

  kube::transport& transport_;
  const kube::resource& type_;
  kube::encoding wire_;
  kube::watch_machine machine_;
  reflector_sink& sink_;
  reflector_metrics& metrics_;
  reflector_options options_;
  std::string name_;
  counter &events_, &lists_, &watches_, &undecodable_;
  gauge &objects_, &last_contact_;

  kube::watch_machine::counters reported_;
  std::unordered_set<std::string> unreadable_;  // already logged
  std::string trouble_;
  milliseconds told_at_{0};
  std::optional<milliseconds> broken_told_at_;
  continuity continuity_;
  version_witness witness_;
  std::uint64_t bytes_ = 0;
  bool initial_ = true;
  std::optional<milliseconds> refused_since_;  // by 403, without a break
};

}  // namespace

reflector_metrics::reflector_metrics(registry& registry)
    : synced(registry.gauges("quartermaster_cache_synced", "1 after the first complete list.", {"resource"})),
      objects(registry.gauges("quartermaster_cache_objects", "Objects in the store.", {"resource"})),
      events(
          registry.counters("quartermaster_watch_events_total", "Watch events, bookmarks not counted.", {"resource"})),
      lists(
          registry.counters("quartermaster_lists_total", "Complete lists begun, as LIST or WatchList.", {"resource"})),
      watches(registry.counters("quartermaster_watches_total", "Watches begun.", {"resource"})),
      errors(registry.counters("quartermaster_watch_errors_total", "Failed lists and watches.", {"resource", "code"})),
      undecodable(registry.counters("quartermaster_undecodable_total", "Objects and frames that could not be read.",
                                    {"resource"})),
      forbidden(registry.gauges("quartermaster_watch_forbidden", "1 while the API server refuses the list or watch.",
                                {"resource"})),
      last_contact(registry.gauges("quartermaster_cache_last_contact_timestamp_seconds",
                                   "When the API server last sent something for this cache, seconds since 1970.",
                                   {"resource"})) {}

kube::task<void> reflect_into(kube::transport& transport, const kube::resource& type, kube::watch_settings settings,
                              reflector_sink& reflector_sink, reflector_metrics& metrics, reflector_options options) {
  reflector only(transport, type, std::move(settings), reflector_sink, metrics, std::move(options));
  co_return co_await only.run();
}

}  // namespace controller
