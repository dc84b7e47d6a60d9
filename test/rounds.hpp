#pragma once
// How much a test with random input, or with a load, tries: little for every change, more where QM_LONG is set, which
// is before a release and after a change in the folder of the test.

#include <cstdlib>
#include <string_view>

namespace test {

inline bool is_long() {
  const char* const text = std::getenv("QM_LONG");
  return text != nullptr && std::string_view(text) != "" && std::string_view(text) != "0";
}

template <class Amount>
Amount rounds(Amount brief, Amount full) {
  return is_long() ? full : brief;
}

}  // namespace test
