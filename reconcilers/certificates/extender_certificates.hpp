#pragma once
// The extender's certificates in the cluster: the leader makes the three Secrets where there is an AcceleratorPolicy
// and keeps them, as extender_authority.hpp decides. Each replica shows what is stored. Where the server reads files
// (--extender-cert-file), the certificates are a person's own, and neither of these is made.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/names.hpp"
#include "controller/clock.hpp"
#include "controller/http_server.hpp"
#include "controller/metrics.hpp"
#include "controller/reconciler.hpp"
#include "controller/recorder.hpp"
#include "controller/store.hpp"
#include "kube/client.hpp"
#include "kube/object.hpp"
#include "kube/projections/deployment.hpp"
#include "reconcilers/certificates/extender_authority.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"

namespace reconcilers {

namespace names {
/// Secrets next to extender_client_secret; the server's has the name of its Service.
inline constexpr std::string_view extender_authority_secret = "quartermaster-extender-authority";
inline constexpr std::string_view extender_server_secret = api::names::extender_service;
/// On the server's and the callers': ca.crt was written at.
inline constexpr std::string_view authorities_since_annotation = "state.quartermaster.io/authorities-since";
/// "true": no kube-scheduler was known then.
inline constexpr std::string_view authorities_by_hand_annotation = "state.quartermaster.io/authorities-by-hand";
// In them.
inline constexpr std::string_view extender_authorities = "ca.crt";
inline constexpr std::string_view extender_signer_key = "ca.key";
inline constexpr std::string_view extender_older_key = "older.key";
inline constexpr std::string_view extender_leaf = "tls.crt";
inline constexpr std::string_view extender_leaf_key = "tls.key";
}  // namespace names

struct extender_secret : kube::object {
  // labels: all. annotations: quartermaster.io/ and state.quartermaster.io/.
  std::string authorities, signer_key, older_key;
  controller::pem_pair leaf;
  std::uint64_t content = 0;  ///< hash, as of an owned object

  static const kube::resource& of() { return kube::resources::secrets; }
  static constexpr kube::encoding wire = kube::encoding::protobuf;
  static kube::result<extender_secret> decode(std::string_view bytes);
  extender_side side() const;
  friend bool operator==(const extender_secret&, const extender_secret&) = default;
};

/// The stores of the three; each holds that one and nothing else.
struct extender_secrets {
  const controller::store<extender_secret>&authority, &server, &client;

  bool synced() const { return authority.synced() && server.synced() && client.synced(); }
};

class extender_certificates final : public controller::reconciler {
 public:
  struct stores {
    extender_secrets secrets;
    const controller::store<accelerator_policy>& policies;
    const controller::store<kube::deployment>& deployments;  ///< our own
  };
  struct settings {
    std::string ns;
    /// Empty: not known yet.
    std::function<std::optional<std::vector<extender_scheduler>>()> control_plane_nodes = [] {
      return std::vector<extender_scheduler>();
    };
    std::function<controller::milliseconds()> now = controller::boot_now;
    std::function<std::int64_t()> wall = {};  ///< seconds since 1970; empty: the system's
  };

  /// Everything given must outlive this.
  extender_certificates(stores stores, kube::client& client, controller::recorder& events,
                        controller::registry& metrics, settings settings);

  static kube::object_key only() { return {{}, std::string(names::extender_authority_secret)}; }
  std::string_view name() const override { return "extender-certificates"; }
  kube::task<controller::action> reconcile(kube::object_key key) override;

  /// One key stands for all of it.
  template <class T>
  std::vector<kube::object_key> affected_by(const T*, const T*) const {
    return {only()};
  }

 private:
  const extender_secret* find(const controller::store<extender_secret>& store, std::string_view name) const;
  const accelerator_policy* policy() const;
  std::optional<extender_view> view() const;
  kube::task<controller::action> make_secret(std::string_view name);
  kube::task<controller::action> write(std::string_view name, const extender_secret* seen, nlohmann::json patch,
                                       std::string_view reason, std::string taken_out = {});
  void show(const extender_view& is);
  void say(std::string_view reason, controller::event_type type, const std::string& note);
  void say_waiting(const std::string& message);

  stores stores_;
  kube::client& client_;
  controller::recorder& events_;
  settings settings_;
  extender_settings issuing_;
  controller::family<controller::gauge>& expires_;
  std::optional<controller::milliseconds> said_at_;
  std::string message_;
};

/// Shows what is stored on a server; runs in every replica. A pair that cannot be shown, or a list of authorities that
/// has none, is a log line and a metric: what was shown stays.
class extender_certificate {
 public:
  /// Everything given must outlive this. Observes the store.
  extender_certificate(controller::store<extender_secret>& secrets, controller::http_server& server);
  extender_certificate(const extender_certificate&) = delete;
  extender_certificate& operator=(const extender_certificate&) = delete;

 private:
  void show(const extender_secret& secret);

  controller::http_server& server_;
  controller::given_certificate certificate_;
};

}  // namespace reconcilers
