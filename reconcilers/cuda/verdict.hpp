#pragma once
// Does an image built with one CUDA version run on a driver that knows another? NVIDIA's rules, with their limits and
// their source, in both languages; and the narrower rule of a library that shares a card.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "reconcilers/cuda/facts.hpp"
#include "reconcilers/cuda/rules.hpp"
#include "reconcilers/declarations/finding.hpp"

namespace reconcilers::cuda {

enum class outcome : std::uint8_t {
  works,
  ptx_only,         ///< works only where the image carries PTX
  minor_version,    ///< works by minor version compatibility, within its limits
  forward_package,  ///< works with the forward compatibility package, on cards it is for
  fails,
  unknown,  ///< nothing is known of the driver, or of the card that was named
};
/// "works", "works-only-with-ptx", "works-by-minor-version", "needs-forward-package", "fails", "unknown".
std::string_view to_string(outcome outcome) noexcept;

/// Which sentence says why; `name_of` is stable and is the `rule` in JSON.
enum class rule : std::uint8_t {
  backward,
  backward_by_older_code,
  backward_by_ptx,
  minor_version,
  forward_package,
  forward_package_if_data_centre,
  driver_too_old,
  driver_dropped_card,
  driver_before_card,
  capability_removed,
  card_not_known,
  toolkit_not_known,
  driver_not_known,
  driver_not_released,  ///< of a branch between two that were
  capability_not_known,
  other_vendor,  ///< the card is not NVIDIA's
  tegra_driver,  ///< the card is of a Jetson, whose driver comes with its system
  shim_covers,
  shim_too_old,
  shim_other_major,
  shim_mig,
  nothing_known,
};
std::string_view name_of(rule rule) noexcept;

/// A driver and a card; what is not known is left empty.
struct machine {
  std::optional<version> cuda;  ///< the newest the driver knows; empty: as the table says for `driver`
  std::optional<driver_version> driver;
  std::optional<version> capability;
  card_class card = card_class::unknown;
  bool mig = false;
  std::string product = {};  ///< as it was named; may be no name of the table

  std::optional<version> known_cuda() const { return cuda ? cuda : driver ? cuda_of(*driver) : std::nullopt; }
};
machine machine_of(const node_facts& node);

struct verdict {
  outcome is = outcome::unknown;
  rule reason = rule::nothing_known;
  version runtime;
  machine host;
  const shim_row* shim = nullptr;  ///< the row that decided
};

/// `runtime`: the CUDA version the image was built with.
verdict judge(const version& runtime, const machine& machine);
/// The same through a library that shares cards: its baseline must know the runtime, majors must be the same, and the
/// card must not be cut by MIG; and the driver alone must do.
verdict judge_shared(const version& runtime, const machine& machine, const shim_row& shim_row);

/// Unknown instead of "runs" where the tables have no such toolkit, driver or capability: NVIDIA's rules speak of those
/// that there are. For a person who asks; an admission goes by the rules alone.
verdict doubted(const verdict& verdict);
/// A driver newer than all that the tables have.
bool is_beyond_table(const driver_version& driver);

/// One or two sentences.
std::string text_of(const verdict& verdict, text::language language);
std::string_view source_of(const verdict& verdict) noexcept;
std::string_view title_of(outcome outcome, text::language language);

}  // namespace reconcilers::cuda
