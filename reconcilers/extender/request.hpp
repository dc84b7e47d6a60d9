#pragma once
// What a pod asks for, as the quota engine reads it: the limits of its containers in the order in which they start.
// Views into the pod it was made of.

#include <span>
#include <string_view>
#include <vector>

#include "kube/projections/pod.hpp"
#include "quota/selector.hpp"
#include "quota/vocabulary.hpp"
#include "reconcilers/extender/inventory.hpp"

namespace reconcilers::extender {

/// True where a limit of the pod is in one of the vocabularies or declared: such a pod is ours to place.
bool asks(const kube::pod& pod, const declared_keys& declared);

class pod_request {
 public:
  pod_request(const kube::pod& pod, const declared_keys& declared);

  std::span<const quota::limits> containers() const { return spans_; }
  /// By the number a need or grant has: every container that asks for one of our resources, init containers too. A
  /// grant of an init container is what it needs beyond the others (quota::read).
  std::span<const kube::container* const> names() const { return named_; }
  bool nothing() const { return amounts_.empty(); }
  /// Which cards the pod wants; null: any.
  const quota::selector* only() const { return only_.nothing() ? nullptr : &only_; }

 private:
  std::vector<quota::amount> amounts_;
  std::vector<quota::limits> spans_;
  std::vector<const kube::container*> named_;
  quota::selector only_;
};

}  // namespace reconcilers::extender
