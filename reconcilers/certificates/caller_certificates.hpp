#pragma once
// The certificates that kube-schedulers show the extender, so that people hear of their end before the extender refuses
// them. A kube-scheduler reads its certificate when it starts, and one that was set up by hand gets no newer one by
// itself. What is stored for callers (extender_certificates.hpp) says nothing of that: only a handshake shows it.
//
// One row per certificate, not per caller, because several may share one. A row is forgotten a day after its last call.
// At most 64; of more, the one that was not seen for longest goes. The extender's Service has the leader alone behind
// it, so the leader knows the callers; another replica has no row, and no metric.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/conditions.hpp"
#include "controller/metrics.hpp"
#include "controller/recorder.hpp"
#include "controller/store.hpp"
#include "controller/x509.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"

namespace reconcilers {

/// Of the AcceleratorPolicy: False while a certificate that a caller showed in the last day ends soon.
inline constexpr std::string_view caller_certificates_valid = "CallerCertificatesValid";

class caller_certificates {
 public:
  static constexpr std::size_t most = 64;
  static constexpr std::int64_t kept = 86'400;      ///< seconds after the last call
  static constexpr std::int64_t ahead = 60 * kept;  ///< people get a warning so long before the end, in seconds

  struct settings {
    std::function<std::int64_t()> wall = {};  ///< seconds since 1970; empty: the system's
    std::function<void()> on_state = [] {};   ///< `state` has changed
  };

  /// Everything given must outlive this, and the registry must not be read after it.
  caller_certificates(const controller::store<accelerator_policy>& policies, controller::recorder& events,
                      controller::registry& metrics, settings settings);
  caller_certificates(const caller_certificates&) = delete;
  caller_certificates& operator=(const caller_certificates&) = delete;

  /// A caller showed it now.
  void note(const controller::x509::info& leaf);
  /// As the leader, every few seconds: reports what has changed, with one event per list of certificates that end
  /// soon.
  void look();
  /// Empty: an earlier leader may know more, so what the policy says stays.
  std::optional<controller::condition> state() const;

 private:
  struct row {
    controller::x509::info leaf;
    std::int64_t seen = 0;
  };
  /// Those of the last day, the first to end first.
  std::vector<controller::x509::info> recent() const;
  const accelerator_policy* policy() const;

  const controller::store<accelerator_policy>& policies_;
  controller::recorder& events_;
  settings settings_;
  std::vector<row> rows_;
  std::optional<std::int64_t> leads_since_;
  text::phrase message_;  ///< message of the state that was reported last
};

/// It ends within `ahead`, or within a third of its life where that is less.
bool ends_soon(const controller::x509::info& leaf, std::int64_t now);

}  // namespace reconcilers
