#pragma once
// What the program that keeps MPS says to the rest of its node: a file that everyone may read, next to the daemons'
// folders. The agent reports from it which cards have no MPS and on which the driver limits memory. It needs neither
// root nor a socket for that.

#include <chrono>
#include <expected>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace agent::mps {

/// By UUID of the card: why its MPS was given up.
using failures = std::map<std::string, std::string, std::less<>>;
struct node_state {
  failures failed;
  std::set<std::string, std::less<>> limited;  ///< UUIDs: the driver keeps limits of memory for pods on them
  friend bool operator==(const node_state&, const node_state&) = default;
};

/// The file in the folder of `agent mps`, and in the node's file system. A folder of its own: it can be mounted without
/// the sockets.
inline constexpr std::string_view state_name = "state/cards.json",
                                  state_of_node = "run/quartermaster/mps/state/cards.json";
/// It is written at least so often; one that is older than the limit has no writer any more.
inline constexpr std::chrono::milliseconds state_period{10'000}, state_limit{60'000};

/// The file is replaced whole; its folder is made.
std::expected<void, std::string> write_state(const std::string& path, const node_state& state);
/// Nothing where there is no such file, or an old one, or one that is not readable as such.
node_state read_state(const std::string& path, std::chrono::system_clock::time_point now);

}  // namespace agent::mps
