#pragma once
// The driver's error numbers (XID), and what each means for the card. Pure.

#include <cstdint>
#include <string_view>

namespace agent::cards {

enum class xid_class : std::uint8_t {
  notice,       ///< nothing to do, or no one knows it
  application,  ///< the program that met it has to be restarted; the card works
  fatal,        ///< the card works again after a reset or a restart of the machine
};

/// From the column "immediate action" of NVIDIA's XID catalog (docs.nvidia.com/deploy/xid-errors), read 2026-11-25.
/// Numbers that it does not list, or calls unused, are notices: a withdrawn card is a loss, too.
xid_class class_of(std::uint64_t xid);
/// "GPU has fallen off the bus"; empty for numbers without a name here.
std::string_view name_of(std::uint64_t xid);

}  // namespace agent::cards
