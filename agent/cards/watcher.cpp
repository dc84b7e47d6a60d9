#include "agent/cards/watcher.hpp"

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "text/escape.hpp"
#include "text/messages.hpp"

namespace agent::cards {
namespace {

using clock = std::chrono::steady_clock;

/// False: the thread was asked to stop.
bool wait_for(const std::stop_token& stop, std::chrono::milliseconds time) {
  std::mutex lock;
  std::condition_variable_any never;
  std::unique_lock hold(lock);
  never.wait_for(hold, stop, time, [] { return false; });
  return !stop.stop_requested();
}

/// How many cards the kernel module drives.
std::ptrdiff_t driven_cards(const std::string& folder) {
  std::error_code ignored;
  const std::filesystem::directory_iterator begin(folder, ignored);
  return ignored ? 0 : std::distance(begin, std::filesystem::directory_iterator());
}

/// XIDs of all cards that can report them.
class event_stream {
 public:
  explicit event_stream(const nvml_library& nvml) : nvml_(nvml) {
    if (nvml_(call::event_set_create, &set_) != nvml::success) set_ = nullptr;
    unsigned count = 0;
    if (!set_ || nvml_(call::count, &count) != nvml::success) return;
    for (unsigned index = 0; index < std::min(count, most_cards); ++index) {
      nvml::device device = nullptr;
      char uuid[97] = {};  // ends also where NVML's text does not
      if (nvml_(call::handle_by_index, index, &device) != nvml::success ||
          nvml_(call::uuid, device, &uuid[0], 96U) != nvml::success)
        continue;
      nvml_(call::register_events, device, std::uint64_t{nvml::event_xid}, set_);
      uuids_[device] = text::utf8_clean(&uuid[0]);
    }
  }
  ~event_stream() {
    if (set_) nvml_(call::event_set_free, set_);
  }
  event_stream(const event_stream&) = delete;
  event_stream& operator=(const event_stream&) = delete;

  nvml::return_code wait(unsigned timeout_ms, nvml::event_data& event) const {
    return set_ ? nvml_(call::event_wait, set_, &event, timeout_ms) : nvml::not_supported;
  }
  /// NVML may not name a card that is lost.
  std::string uuid_of(nvml::device device) const {
    const auto match = uuids_.find(device);
    return match == uuids_.end() ? std::string() : match->second;
  }

 private:
  const nvml_library& nvml_;
  std::map<nvml::device, std::string> uuids_;
  nvml::event_set* set_ = nullptr;
};

/// What was delivered within the last second: of a storm, one event a second and card and XID is enough.
class recent_events {
 public:
  bool contains(const xid_event& event) {
    if (clock::now() - since_ > std::chrono::seconds(1) || events_.size() > 1000) events_.clear();
    return events_.contains({event.card, event.xid});
  }
  void add(const xid_event& event) {
    if (events_.empty()) since_ = clock::now();
    events_.insert({event.card, event.xid});
  }

 private:
  std::set<std::pair<std::string, std::uint64_t>> events_;
  clock::time_point since_;
};

}  // namespace

watcher::watcher(watcher_options options, std::function<void(sighting)> deliver)
    : options_(std::move(options)), deliver_(std::move(deliver)), thread_([this](const std::stop_token& stop) {
        work(stop);
        has_ended_ = true;
      }) {}

bool watcher::end_within(std::chrono::milliseconds time) {
  thread_.request_stop();
  for (const auto end = clock::now() + time; !has_ended_ && clock::now() < end;)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return has_ended_;
}

void watcher::work(const std::stop_token& stop) {
  std::string problem;
  bool has_gone = false;
  while (!stop.stop_requested()) {
    life_.give();
    auto nvml = nvml_library::load(options_.root);
    if (nvml) nvml->give_signs(life_);
    const auto code = nvml ? (*nvml)(call::init) : nvml::library_not_found;
    if (code == nvml::success) {
      if (std::exchange(has_gone, false)) deliver_({.now = {}, .event = {}, .driver_loaded = true, .usage = {}});
      problem.clear();
      has_gone = follow(stop, *nvml);
      (*nvml)(call::shutdown);
      continue;
    }
    has_gone = true;  // also where it was away before we came: what an earlier agent knew of cards is over
    const auto now =
        nvml ? text::message("nvml.no_start", text::language::en, {{"error", nvml->error_text(code)}}) : nvml.error();
    if (std::exchange(problem, now) != now) {
      inventory none;
      none.problem = now;
      deliver_({.now = none, .event = {}, .usage = {}});
    }
    if (!wait_for(stop, options_.retry)) return;
  }
}

void watcher::deliver_usage(const nvml_library& nvml) {
  if (options_.reads_usage) deliver_({.now = {}, .event = {}, .usage = usage_.read(nvml)});
}

bool watcher::follow(const std::stop_token& stop, const nvml_library& nvml) {
  const auto driven = driven_cards(options_.driver_cards);
  const event_stream events(nvml);  // before the first look: what happens from now on is seen
  auto seen = read_inventory(nvml);
  deliver_({.now = seen, .event = {}, .usage = {}});
  if (!seen.problem.empty()) {
    wait_for(stop, options_.retry);
    return true;
  }
  deliver_usage(nvml);
  recent_events recent;
  for (auto last = clock::now(); !stop.stop_requested();) {
    nvml::event_data event{};
    const auto code = events.wait(static_cast<unsigned>(options_.event_wait.count()), event);
    if (code == nvml::success) {
      const xid_event seen_event{events.uuid_of(event.card), event.data};
      const bool counts = event.type == nvml::event_xid && !seen_event.card.empty();
      if (counts && !recent.contains(seen_event)) {
        deliver_({.now = {}, .event = seen_event, .usage = {}});
        recent.add(seen_event);
      } else if (!wait_for(stop, std::chrono::milliseconds(1))) {
        return false;
      }
      if (clock::now() - last < options_.period) continue;
    }
    // Anything else than a time-out is an answer that came at once: a lost card, or a driver that is being taken away.
    const bool failed = code != nvml::success && code != nvml::timeout;
    if (failed && !wait_for(stop, options_.event_wait)) return false;
    if (driven_cards(options_.driver_cards) != driven) return false;  // NVML counts cards when it starts
    if (code == nvml::timeout && clock::now() - last < options_.period) continue;
    last = clock::now();
    auto now = read_inventory(nvml);
    if (!now.problem.empty()) return true;
    if (now != seen) deliver_({.now = now, .event = {}, .usage = {}});
    seen = std::move(now);
    deliver_usage(nvml);
  }
  return false;
}

}  // namespace agent::cards
