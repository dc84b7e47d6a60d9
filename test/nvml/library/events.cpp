// Event sets. The fixture's `events` grow at the end; a set delivers, in order, those whose sequence number is higher
// than all that were there when the set was made.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "../call.hpp"
#include "../words.hpp"

namespace nvml {

struct event_set {
  std::mutex lock;
  std::uint64_t last = 0;                        // sequence number
  std::map<std::string, std::uint64_t> watched;  // mask of event types by the card's UUID
};

namespace {

using clock = std::chrono::steady_clock;
constexpr long poll_ms = 20;
constexpr std::uint64_t all_types = 0x1f;

std::uint64_t type_of(const json& event) {
  return static_cast<std::uint64_t>(*number_for(event_types(), event.value("type", "xid")));
}

std::vector<json> events_after(const fixture& now, std::uint64_t last) {
  std::vector<json> out;
  for (const auto& event : now.node.value("events", json::array()))
    if (event["sequence"].get<std::uint64_t>() > last) out.push_back(event);
  std::ranges::sort(out, {}, [](const json& event) { return event["sequence"].get<std::uint64_t>(); });
  return out;
}

// Takes the next event that the set watches; false when there is none.
bool take(event_set& set, const fixture& now, event_data& target) {
  const std::scoped_lock hold(set.lock);
  for (const auto& event : events_after(now, set.last)) {
    set.last = event["sequence"];
    const auto card = set.watched.find(event["card"].get<std::string>());
    if (card == set.watched.end() || !(card->second & type_of(event))) continue;
    target = {session::instance().intern({.uuid = card->first}), type_of(event), event.value("xid", std::uint64_t{0}),
              event.value("gpu_instance", no_instance), event.value("compute_instance", no_instance)};
    return true;
  }
  return false;
}

bool has_lost_card(event_set& set, const fixture& now) {
  const std::scoped_lock hold(set.lock);
  return std::ranges::any_of(set.watched, [&now](const auto& watched) {
    try {
      card_of(now, watched.first);
      return false;
    } catch (const failure&) {
      return true;
    }
  });
}

void pause() {
  const timespec time{0, poll_ms * 1000 * 1000};
  nanosleep(&time, nullptr);
}

return_code wait(event_set* set, event_data& target, unsigned timeout_ms) {
  return answer([&] {
    require(set);
    const auto end = clock::now() + std::chrono::milliseconds(timeout_ms);
    for (;;) {
      const auto now = session::instance().current();
      if (take(*set, *now, target)) return;
      if (has_lost_card(*set, *now)) {
        pause();  // a caller that tries again at once does not fill the processor
        throw failure{gpu_is_lost};
      }
      if (clock::now() >= end) throw failure{timeout};
      pause();
    }
  });
}

}  // namespace
}  // namespace nvml

using namespace nvml;

NVML_EXPORT nvmlEventSetCreate(event_set** target) {
  return answer([&] {
    const auto now = session::instance().current();
    require(target);
    auto made = std::make_unique<event_set>();
    for (const auto& event : events_after(*now, 0)) made->last = event["sequence"];
    *target = made.release();
  });
}

NVML_EXPORT nvmlEventSetFree(event_set* set) {
  return answer([&] {
    require(set);
    delete set;  // also when the driver is gone
    session::instance().current();
  });
}

NVML_EXPORT nvmlDeviceGetSupportedEventTypes(device device, std::uint64_t* types) {
  return answer([&] {
    const auto found = find("nvmlDeviceGetSupportedEventTypes", device);
    require(types);
    const bool has_ecc = found.card.contains("ecc") && !found.card["ecc"].is_null();
    *types = has_ecc ? all_types : event_xid | event_performance_state | event_clock;
  });
}

NVML_EXPORT nvmlDeviceRegisterEvents(device device, std::uint64_t types, event_set* set) {
  return answer([&] {
    const auto found = find("nvmlDeviceRegisterEvents", device);
    require(set);
    if (found.is_mig_device()) throw failure{not_supported};
    if (types & ~all_types) throw failure{not_supported};
    const std::scoped_lock hold(set->lock);
    set->watched[found.handle.uuid] |= types;
  });
}

NVML_EXPORT nvmlEventSetWait_v2(event_set* set, event_data* data, unsigned timeout_ms) {
  if (!data) return invalid_argument;
  return wait(set, *data, timeout_ms);
}

// The first form's struct ends before the instances.
NVML_EXPORT nvmlEventSetWait(event_set* set, void* data, unsigned timeout_ms) {
  event_data event{};
  if (!data) return invalid_argument;
  const auto code = wait(set, event, timeout_ms);
  if (code == success) std::memcpy(data, &event, offsetof(event_data, gpu_instance));
  return code;
}
