#pragma once
// An element of a set for as long as a scope lasts: who is under way, so that nobody else begins.

#include <set>
#include <utility>

namespace reconcilers::extender {

/// Not copied, not moved.
template <class T>
class membership {
 public:
  membership(std::set<T>& in, T of) : in_(in), of_(std::move(of)) { in_.insert(of_); }
  membership(const membership&) = delete;
  membership& operator=(const membership&) = delete;
  ~membership() { in_.erase(of_); }

 private:
  std::set<T>& in_;
  T of_;
};

}  // namespace reconcilers::extender
