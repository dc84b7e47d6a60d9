#pragma once
// Keeps the events a reconciler records, for tests.

#include <string>
#include <string_view>
#include <vector>

#include "controller/recorder.hpp"

namespace reconcilers {

class recording_recorder final : public controller::recorder {
 public:
  struct event {
    controller::object_reference about;
    controller::event_type type;
    std::string reason, action, note;
  };
  std::vector<event> events;

  void record(const controller::object_reference& about, controller::event_type type, std::string_view reason,
              std::string_view action, std::string_view note) override {
    events.push_back({about, type, std::string(reason), std::string(action), std::string(note)});
  }
};

}  // namespace reconcilers
