#pragma once
// What a reconciler under test has: a server, the client that calls it, the events, and a clock that stands still.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "controller/clock.hpp"
#include "test/reconcilers/fake_server.hpp"
#include "test/reconcilers/projections.hpp"
#include "test/reconcilers/recording_recorder.hpp"

namespace reconcilers {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct fake_cluster {
  fake_server server;
  kube::client client{server.transport};
  recording_recorder recorder;
  controller::milliseconds now{1'000'000};

  /// Caches that are complete and empty.
  static void sync(auto&... stores) { (..., (stores.begin(), stores.commit())); }
};

}  // namespace reconcilers
