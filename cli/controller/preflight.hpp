#pragma once
// What must be true of a cluster before it makes sense to start: it answers, it knows us, it has our CRDs, it lets us
// read them. Each failure is one line that says what to do.

#include <string>

#include "kube/client.hpp"

namespace cli {

/// The server's version ("v1.36.3"), or the reason in one line.
kube::task<std::string> check_cluster(kube::client& api);

}  // namespace cli
