#pragma once
// How long this program has computed. A machine that does other work makes a test wait, and not compute for longer.

#include <ctime>

namespace test {

/// Seconds of processor time of the whole program.
inline double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace test
