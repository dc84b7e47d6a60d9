#pragma once
// `verify --scheduler`: does a kube-scheduler ask our extender? Where a provider owns it, no one can read its
// configuration. So we make a pod that kube-scheduler itself accepts and that the extender refuses on every node. The
// scheduler's message then shows whether it asked the extender. The pod never runs, and is removed whatever happens.

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>

#include "kube/task.hpp"
#include "kube/transport.hpp"
#include "reconcilers/verify/verify.hpp"

namespace cli {

struct scheduler_test_options {
  std::string name;            ///< spec.schedulerName, and no one changes it; empty: none, as people write pods
  std::string resource;        ///< empty: one that no kubelet offers
  std::string ns = "default";  ///< of the pod
  std::string image = "quartermaster-test";  ///< never pulled
  std::chrono::seconds patience{30};
  std::chrono::milliseconds look_every{250};
};

/// No taint and no request of CPU or memory keeps it from any node, and no card has the UUID that it wants.
nlohmann::json extender_pod(const scheduler_test_options& options);

/// What is known once the scheduler has said so much: the pod, and the events about it. Empty: wait for more. `late`:
/// nothing more is waited for. Pure.
std::optional<reconcilers::verify::step> judge_scheduling(const nlohmann::json& pod,
                                                          std::span<const nlohmann::json> events,
                                                          const scheduler_test_options& options,
                                                          std::chrono::milliseconds after, bool late);

/// A step of stage `extender`. An error where it was stopped by a signal, or as cli/verify/test_pod.hpp has it, with
/// its words.
kube::task<reconcilers::verify::step> test_scheduler(kube::transport& transport, scheduler_test_options options,
                                                     text::phrase* words = nullptr);

}  // namespace cli
