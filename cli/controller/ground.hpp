#pragma once
// What every part of the operator stands on. It is made before the first part and outlives the last one.

#include <functional>

#include "cli/controller/controller_options.hpp"
#include "cli/controller/stores.hpp"
#include "controller/health.hpp"
#include "controller/http_server.hpp"
#include "controller/loop.hpp"
#include "controller/metrics.hpp"
#include "controller/recorder.hpp"
#include "kube/client.hpp"

namespace cli {

struct ground {
  const controller_options& options;
  controller::loop& loop;
  controller::registry& metrics;
  controller::http_server_metrics& serving;
  controller::health& health;
  kube::client& client;  ///< the fenced one, which may write
  controller::recorder& events;
  cli::stores& stores;
  cli::caches& caches;
};

}  // namespace cli
