#pragma once
// What the program that keeps MPS and the device plugin say to each other over a Unix socket: four calls. The plugin
// needs neither the driver nor NVIDIA's runtime for it.

#include <string>
#include <string_view>
#include <vector>

#include "agent/mps/control.hpp"

namespace agent::mps {

inline constexpr std::string_view cards_method = "/quartermaster.mps.v1.Server/Cards",
                                  hold_method = "/quartermaster.mps.v1.Server/Hold",
                                  end_method = "/quartermaster.mps.v1.Server/End",
                                  limit_method = "/quartermaster.mps.v1.Server/Limit", socket_name = "server.sock";

struct served_card {
  std::string uuid;
  std::string problem;      ///< why it is not lent; empty: it is
  std::string pipe_folder;  ///< of the node, for its containers
  bool is_limited = false;  ///< the driver itself keeps limits of memory for pods on it
  friend bool operator==(const served_card&, const served_card&) = default;
};
/// What Cards answers; it is called with nothing.
std::string message_of(const std::vector<served_card>& cards);
kube::result<std::vector<served_card>> cards_in(std::string_view message);

/// What Hold is called with: the largest share of a card that there is. It answers when the limits were read back.
struct held_card {
  std::string uuid;
  ceilings limits;
};
std::string message_of(const held_card& card);
kube::result<held_card> held_card_in(std::string_view message);

/// What End is called with: a pod that is about to be killed. It answers when its clients of all cards have ended.
struct ending_pod {
  std::string uid;
};
std::string message_of(const ending_pod& pod);
kube::result<ending_pod> ending_pod_in(std::string_view message);

/// What Limit is called with, where the card says that it is limited: what all containers of a pod have of the card's
/// memory together, or one that is there. It answers when the limit was read back.
struct limited_pod {
  std::string uid, card;
  std::int64_t memory_mib = 0;
  std::string container = {};  ///< the runtime's ID; empty: the pod
};
std::string message_of(const limited_pod& pod);
kube::result<limited_pod> limited_pod_in(std::string_view message);

}  // namespace agent::mps
