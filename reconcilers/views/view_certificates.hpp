#pragma once
// The certificate of the console's aggregated API, and who trusts it: the leader keeps Secret quartermaster-views,
// which the console's pods mount, and the caBundle of APIService v1alpha1.view.quartermaster.io, as
// controller/authority.hpp decides. Callers are API servers, which read the caBundle while they run: as of the webhook.
// Where the chart made no APIService there is nothing to do and no Secret is made.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/authority.hpp"
#include "controller/reconciler.hpp"
#include "controller/store.hpp"
#include "kube/client.hpp"
#include "reconcilers/admission/webhook_objects.hpp"

namespace reconcilers {

namespace names {
/// The Secret, and the Service that the chart makes.
inline constexpr std::string_view views = "quartermaster-views";
inline constexpr std::string_view view_service = "v1alpha1.view.quartermaster.io";
}  // namespace names

/// An APIService, as far as this is about it.
struct api_service : kube::object {
  // labels, annotations: none.
  std::string authorities;  ///< spec.caBundle, PEM

  static const kube::resource& of();
  static constexpr kube::encoding wire = kube::encoding::protobuf;
  static kube::result<api_service> decode(std::string_view bytes);
  friend bool operator==(const api_service&, const api_service&) = default;
};

/// Each holds ours and nothing else. The Secret has the keys of the webhook's.
struct view_stores {
  const controller::store<webhook_secret>& secrets;
  const controller::store<api_service>& services;

  bool synced() const { return secrets.synced() && services.synced(); }
};

class view_certificates final : public controller::reconciler {
 public:
  struct settings {
    std::string ns;  ///< our own
    std::function<controller::milliseconds()> now = controller::boot_now;
    std::function<std::int64_t()> wall = {};  ///< seconds since 1970; empty: the system's
  };
  /// Everything given must outlive this.
  view_certificates(view_stores stores, kube::client& client, settings settings);

  std::string_view name() const override { return "view-certificates"; }
  kube::task<controller::action> reconcile(kube::object_key key) override;

  /// One key stands for both objects.
  template <class T>
  std::vector<kube::object_key> affected_by(const T*, const T*) const {
    return {kube::object_key{{}, std::string(names::views)}};
  }

 private:
  kube::task<controller::action> store(controller::authority_step step);
  kube::task<controller::action> tell(std::string authorities);

  view_stores stores_;
  kube::client& client_;
  settings settings_;
  controller::authority_settings issuing_;
  controller::milliseconds stored_at_{-1'000'000}, told_at_{-1'000'000};
  std::uint64_t stored_version_ = 0;  ///< the store may be behind it
  bool is_foreign_known_ = false;
};

}  // namespace reconcilers
