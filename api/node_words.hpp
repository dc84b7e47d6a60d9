#pragma once
// Words in an AcceleratorNode that more than one part knows.

#include <string_view>

namespace api {

/// Health of a card: the control daemon or the server of MPS has died, hangs, or does not do what it is asked to. It
/// starts again when the last program has left the card.
inline constexpr std::string_view mps_failed = "MpsFailed";

/// Cause of a refusal: the plugin gives cards by CDI names, and the node's container runtime takes none.
inline constexpr std::string_view no_cdi = "intent.no_cdi";

}  // namespace api
