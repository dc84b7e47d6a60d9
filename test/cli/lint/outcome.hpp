#pragma once
// What a verb of this folder returned and wrote.

#include <string>

namespace cli {

struct outcome {
  int rc;
  std::string out, err;
};

}  // namespace cli
