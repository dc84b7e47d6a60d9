#pragma once
// The driver's error numbers (XID): what each means for the card, and whose fault it is. One table for the agent, which
// withdraws cards by it, and for `explain error`. Pure.

#include <cstdint>
#include <string_view>

namespace api {

enum class xid_class : std::uint8_t {
  notice,       ///< nothing to do, or no one knows it
  application,  ///< the program that met it has to be restarted; the card works
  fatal,        ///< the card works again after a reset or a restart of the machine
};

/// What failed, as the catalog's column of likely causes has it.
enum class xid_cause : std::uint8_t {
  unknown,
  program,
  driver,
  firmware,  ///< of the card's GSP; the driver loads it
  memory,    ///< of the card: ECC, rows, pages
  nvlink,
  bus,  ///< PCIe: the card, its seat or its power
  card,
};

struct xid_entry {
  std::uint64_t number;
  xid_class action;
  xid_cause cause;
  std::string_view name;  ///< "fallen off the bus"
};

/// Actions are from the column "immediate action" of NVIDIA's XID catalog (docs.nvidia.com/deploy/xid-errors), names
/// from its descriptions; where it names no action (162 to 172) an XID is a notice. Null for numbers that it does not
/// list.
const xid_entry* find_xid(std::uint64_t xid);

/// Numbers that are not in the table are notices: a withdrawn card is a loss, too.
xid_class class_of(std::uint64_t xid);
/// "GPU has fallen off the bus"; empty for numbers that are not in the table.
std::string_view name_of(std::uint64_t xid);

}  // namespace api
