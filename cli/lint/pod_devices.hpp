#pragma once
// What a pod asks of cards past its amounts: keys that go together, annotations and variables by which it chooses
// cards, and what its image needs of a driver.

#include "cli/lint/judged_pod.hpp"

namespace cli {

void judge_devices(judged_pod& pod);

}  // namespace cli
