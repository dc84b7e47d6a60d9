#pragma once
// What a verb of this folder returned and wrote.

#include <string>

#include "test/words.hpp"

namespace cli {

struct outcome {
  int rc;
  std::string out, err;
};

/// "PLACE: error: ", as every line of lint begins; and the same of a warning.
inline std::string error_at(const std::string& place) { return place + ": " + words::english("finding.error") + ": "; }
inline std::string warning_at(const std::string& place) {
  return place + ": " + words::english("finding.warning") + ": ";
}

}  // namespace cli
