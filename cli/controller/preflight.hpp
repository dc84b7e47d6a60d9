#pragma once
// What must be true of a cluster before it makes sense to start: it answers, it knows us, it has our CRDs, it lets us
// read them. Each failure is one line that says what to do.

#include <chrono>
#include <string>

#include "kube/client.hpp"

namespace cli {

/// The server's version ("v1.36.3"), or the reason in one line. An API server that is busy or not ready yet (429, 5xx)
/// is asked again for `patience`, because a pod that ends waits for up to five minutes before it is started again.
kube::task<std::string> check_cluster(kube::client& api, std::chrono::milliseconds patience = std::chrono::minutes(1));

}  // namespace cli
