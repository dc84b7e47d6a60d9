#pragma once
// The API server's clock, for what is counted in its time: the Date of its answers, and this machine's monotonic clock
// between two of them. The machine's wall clock plays no part.
//
// A Date is cut to whole seconds and some way old when it is here. So each one says how much the server's clock is
// ahead at the least, and the largest of a minute is close to the truth. Of several API servers whose clocks differ,
// the one that is ahead counts.

#include <cstdint>
#include <deque>
#include <optional>

#include "controller/clock.hpp"

namespace controller {

class server_clock {
 public:
  /// An answer with this Date, seconds since 1970, has come. `steady` is boot_now(), and so in `now`. Dates that are
  /// not between 1970 and 9999 are left out.
  void saw(std::int64_t date, milliseconds steady);

  /// Seconds since 1970; empty before the first Date. It never goes back: where the server's clock does, time stands
  /// until that is made up, which begins when the last Date before is a minute old. A step forward counts at once.
  /// Without answers the monotonic clock goes on from the last ones, however old they are.
  std::optional<std::int64_t> now(milliseconds steady) const;

 private:
  struct sample {
    milliseconds taken, ahead;  ///< `ahead`: the server's clock less this machine
  };
  std::deque<sample> samples_;  ///< each with the largest `ahead` since it was taken, so the first has the largest
  milliseconds reached_{0};     ///< the time that it was before the last Date
};

}  // namespace controller
