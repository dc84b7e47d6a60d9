#pragma once
// Who holds what, as a part of the program: the ledger, and the record of who held how much of which card for how long.
// Made before all that reads the ledger. Also without the extender: what people and other schedulers place can give a
// card out twice.

#include <functional>
#include <optional>

#include "cli/controller/ground.hpp"
#include "controller/parts.hpp"
#include "quota/usage.hpp"
#include "reconcilers/extender/account.hpp"
#include "reconcilers/usage/keeper.hpp"
#include "reconcilers/usage/recorder.hpp"

namespace cli {

class ledger_part {
 public:
  struct settings {
    std::function<std::optional<quota::seconds>()> now;  ///< of the API server's clock; empty: no answer seen yet
    std::function<bool()> watching;                      ///< the watch of pods works
  };
  ledger_part(const ground& ground, settings settings);

  reconcilers::extender::account& account() { return account_; }
  reconcilers::usage::recorder& recorder() { return recorder_; }

  void join(controller::parts& parts);

 private:
  kube::task<void> audit();

  ground ground_;
  reconcilers::extender::account account_;
  reconcilers::usage::recorder recorder_;
  reconcilers::usage::keeper keeper_;
};

/// The stores that a ledger observes.
reconcilers::extender::account::stores ledger_stores(stores& stores);

}  // namespace cli
