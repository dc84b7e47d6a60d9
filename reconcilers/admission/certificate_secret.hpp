#pragma once
// The Secret in which the leader keeps a server's certificates and their authority (controller/authority.hpp).

#include <cstdint>

#include "kube/client.hpp"
#include "reconcilers/admission/webhook_objects.hpp"

namespace reconcilers {

bool is_ours(const webhook_secret& secret);
/// For people: a Secret of our name that someone else made is left alone.
void log_foreign(const webhook_secret& secret);
/// In place of `current`; null: there is none yet. The faster writer wins, the other gets errc::conflict.
/// @return its version
kube::task<std::uint64_t> apply_certificates(kube::client& client, kube::object_key key, const webhook_secret* current,
                                             controller::authority_keys keys);

}  // namespace reconcilers
