#pragma once

#include <set>
#include <utility>

namespace reconcilers::extender {

/// An element of a set while it is in scope.
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
