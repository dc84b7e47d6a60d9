#pragma once
// What nvidia-smi prints: each view returns its text.

#include <string>
#include <vector>

#include "nvml.hpp"

namespace smi {

struct csv_format {
  bool has_header = true;
  bool has_units = true;
};

std::string list_view(const library& nvml, const std::vector<device>& cards);
std::string table_view(const library& nvml, const std::vector<device>& cards);
std::string topology_view(const library& nvml, const std::vector<device>& cards);
/// Throws end with exit code 2 for a field that does not exist.
std::string csv_view(const library& nvml, const std::vector<device>& cards, const std::string& fields,
                     const csv_format& format);
std::string field_names();

std::vector<std::string> parts(const std::string& text, char separator);
std::string printed(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace smi
