#pragma once
// The webhook's certificates on the cluster's side. The leader keeps the Secret and tells the webhook configuration
// (caBundle, and url where we run outside the cluster), as controller/authority.hpp decides; it puts back what others
// change there. Every replica shows the stored leaf, once the configuration has its authority. Where the chart made
// no configuration there is nothing to do and no Secret is made.

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/authority.hpp"
#include "controller/http_server.hpp"
#include "controller/reconciler.hpp"
#include "controller/store.hpp"
#include "kube/client.hpp"
#include "kube/wait_list.hpp"
#include "reconcilers/admission/webhook_objects.hpp"

namespace reconcilers {

/// The stores of the two objects; each holds ours and nothing else.
struct webhook_stores {
  const controller::store<webhook_secret>& secrets;
  const controller::store<mutating_webhooks>& mutating;

  bool synced() const { return secrets.synced() && mutating.synced(); }
  /// The authorities that each webhook's caller knows; empty where there is no webhook.
  std::vector<std::string> told() const;
};

struct webhook_settings {
  std::string ns;   ///< our own
  std::string url;  ///< "https://host:port", no slash at the end; empty: callers use the chart's Service
  std::function<controller::milliseconds()> now = controller::boot_now;
  std::function<std::int64_t()> wall;  ///< seconds since 1970; empty: the system's

  std::int64_t wall_seconds() const;
};

/// The host of "https://host[:port][/path]" without brackets; empty where it is none, or has a query, a fragment or a
/// user, which the API server refuses.
std::optional<std::string> host_of(std::string_view url);

class webhook_config final : public controller::reconciler {
 public:
  /// Everything given must outlive this.
  webhook_config(webhook_stores webhook_stores, kube::client& client, webhook_settings settings);

  std::string_view name() const override { return "webhook-config"; }
  kube::task<controller::action> reconcile(kube::object_key key) override;

  /// One key stands for both objects.
  template <class T>
  std::vector<kube::object_key> affected_by(const T*, const T*) const {
    return {kube::object_key{{}, std::string(names::webhook)}};
  }

 private:
  bool right(const webhook_entry& entry, const std::string& authorities) const;
  std::string url_of(const webhook_entry& entry) const;
  nlohmann::json patch_of(const mutating_webhooks& mutating_webhooks, const std::string& authorities) const;
  kube::task<controller::action> store(controller::authority_step step);
  kube::task<controller::action> tell(std::string authorities);
  void say_foreign(const webhook_secret& secret);

  webhook_stores stores_;
  kube::client& client_;
  webhook_settings settings_;
  controller::authority_settings issuing_;
  controller::milliseconds stored_at_{-1'000'000}, told_at_{-1'000'000};
  std::uint64_t stored_version_ = 0;  ///< the store may be behind it
  bool said_foreign_ = false;
};

/// Shows the stored leaf on a server; runs in every replica.
class webhook_certificate {
 public:
  /// Everything given must outlive this.
  webhook_certificate(webhook_stores webhook_stores, webhook_settings settings, controller::http_server& server);
  webhook_certificate(const webhook_certificate&) = delete;
  webhook_certificate& operator=(const webhook_certificate&) = delete;

  /// Until it is cancelled.
  kube::task<void> run();
  /// One of the stores has changed.
  void poke() { changed_->notify_all(); }
  /// One look; how long until the next, unless something changes before.
  controller::milliseconds look();
  /// Why callers cannot be answered; empty when they can, or there are none.
  std::string problem() const;

 private:
  webhook_stores stores_;
  webhook_settings settings_;
  controller::http_server& server_;
  controller::leaf_gate gate_;
  controller::pem_pair certificate_;
  controller::authority_keys refused_;
  std::shared_ptr<kube::wait_list> changed_ = std::make_shared<kube::wait_list>();
};

}  // namespace reconcilers
