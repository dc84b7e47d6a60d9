#pragma once
// Why a Deployment, a Job or the like has made no pod that could be explained.

#include "cli/cluster/picture.hpp"
#include "cli/cluster/pod_target.hpp"
#include "text/phrase.hpp"

namespace cli {

/// What the person most likely meant: the pod, or pods of the object, in another namespace. Empty: there is none.
text::phrase meant_elsewhere(const picture& picture, const pod_target& target);

/// The sentence with which the API server refuses its pods, from its condition ReplicaFailure or else from the newest
/// event FailedCreate. Empty: no one says so, or it may not be read.
kube::task<void> read_refused_pods(kube::transport& transport, pod_target target, text::phrase& out);

/// The answer about an object without pods.
text::phrase no_pods(const pod_target& target, const text::phrase& refused);

}  // namespace cli
