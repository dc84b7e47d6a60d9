#pragma once
// What tests of the drivers share: a registry, a loop, and a way to let it turn until something is true.

#include <gtest/gtest.h>

#include <chrono>
#include <functional>

#include "controller/log.hpp"
#include "controller/loop.hpp"
#include "controller/metrics.hpp"
#include "test/kube/loop.hpp"
#include "test/kube/scripted_transport.hpp"

namespace controller_test {

struct rig : testing::Test {
  controller::log::capture log;
  controller::registry metrics;
  controller::loop loop{metrics};

  bool turn(std::function<bool()> until) { return kube_test::turn(loop.context(), std::move(until)); }
  /// Everything that is ready now, and what that makes ready, but no timer.
  void settle() {
    loop.context().restart();
    while (loop.context().poll() > 0) {
    }
  }
  double metric(const std::string& series) const {
    const auto text = "\n" + metrics.text();
    const auto position = text.find("\n" + series + " ");
    return position == std::string::npos ? -1 : std::stod(text.substr(position + series.size() + 2));
  }
};

}  // namespace controller_test
