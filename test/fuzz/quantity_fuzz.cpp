// Any text as a quantity: a sign only mirrors the value, and leading zeros change nothing.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "kube/quantity.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto value = kube::parse_quantity(text);
  if (text.empty() || text[0] == '+' || text[0] == '-') return 0;
  const auto minus = kube::parse_quantity("-" + text), plus = kube::parse_quantity("+" + text),
             padded = kube::parse_quantity("000" + text);
  if (plus != value || padded != value || minus.has_value() != value.has_value()) std::abort();
  if (value && (*value < 0 || *minus != -*value)) std::abort();
  return 0;
}
