#pragma once
// Fields of an object that describes pods: their names and their forms.

#include "cli/lint/judged_pod.hpp"

namespace cli {

/// What counts once, wherever the object describes pods.
void judge_object(judged_pod& pod);
/// The pod's own spec, which is there. Adds its containers.
void judge_fields(judged_pod& pod);

}  // namespace cli
