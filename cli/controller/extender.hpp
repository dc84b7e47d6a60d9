#pragma once
// The scheduler extender as a part of the program, made only where --extender-address says where it listens: the ledger
// it answers from, the server with its certificates, and what the leader does apart from answering.

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "cli/controller/ground.hpp"
#include "controller/http_server.hpp"
#include "controller/parts.hpp"
#include "controller/store.hpp"
#include "kube/client.hpp"
#include "reconcilers/certificates/caller_certificates.hpp"
#include "reconcilers/certificates/extender_certificates.hpp"
#include "reconcilers/extender/extender.hpp"
#include "reconcilers/extender/predicates.hpp"
#include "reconcilers/extender/reasons.hpp"
#include "reconcilers/extender/sick_cards.hpp"
#include "reconcilers/extender/waiting.hpp"
#include "reconcilers/quotas/quota_status.hpp"

namespace cli {

/// What is wrong with the extender's flags, in one line; empty when nothing is.
text::phrase extender_problem(const controller_options& options);

class extender {
 public:
  struct settings {
    std::function<controller::milliseconds()> lease_left;  ///< zero while the server may have been restored
    std::string identity;                                  ///< of this leader
    std::function<void()> on_state;                        ///< `state` has changed
    std::function<void()> on_withdrawals;                  ///< `withdrawals` may have changed; often
  };
  /// @param account of the stores of `ground`
  extender(const ground& ground, reconcilers::extender::account& account, settings settings);

  /// For the status of quotas.
  const quota::allowances& limits() const { return book_.limits(); }
  reconcilers::held_back_by_namespace held_back() const { return waiting_.held_back(); }
  const quota::ledger& cards() const { return book_.book(); }
  /// Has a kube-scheduler asked since this program started?
  bool asked() const { return front_.was_asked() || predicates_.decided(); }
  /// A condition of the policy; empty: there is nothing to say yet.
  std::optional<controller::condition> state() const { return callers_.state(); }
  /// The condition of the policy that says whether sick cards still get pods, because there are too many.
  controller::condition withdrawals() const;

  void join(controller::parts& parts);

 private:
  /// An event on gpu-quota-admission's ConfigMap when it cannot be read.
  void tell_of_quotas();
  kube::task<void> lead();
  kube::task<void> care();
  void issue();
  std::optional<std::vector<reconcilers::extender_scheduler>> known_control_plane_nodes() const;

  ground ground_;
  controller::store<reconcilers::extender_secret> authority_secret_, server_secret_;
  reconcilers::extender::account& book_;
  reconcilers::extender::sick_cards sick_cards_;
  reconcilers::extender::fence earlier_;
  reconcilers::extender::binder binds_;
  reconcilers::extender::waiting waiting_;
  reconcilers::extender::request_handler front_;
  reconcilers::extender::predicates predicates_;
  reconcilers::caller_certificates callers_;
  controller::http_server server_;
  /// Null where the server reads files of its own.
  std::unique_ptr<reconcilers::extender_certificates> certificates_;
  std::unique_ptr<reconcilers::extender_certificate> certificate_;
  std::unique_ptr<controller::http_server> plain_;  ///< null without --predicates-address
  bool leading_ = false;
};

}  // namespace cli
