#pragma once
// An element of a set for as long as a scope lasts: who is under way, so that no one else begins.

#include <set>
#include <utility>

namespace reconcilers::extender {

/// Not copied, not moved.
template <class T>
class membership {
 public:
  membership(std::set<T>& elements, T element) : elements_(elements), element_(std::move(element)) {
    elements_.insert(element_);
  }
  membership(const membership&) = delete;
  membership& operator=(const membership&) = delete;
  ~membership() { elements_.erase(element_); }

 private:
  std::set<T>& elements_;
  T element_;
};

}  // namespace reconcilers::extender
