#pragma once
// How often someone may ask: a bucket of tokens per name; and how much is under way. Time is an argument. Bounded:
// where too many names are known, those that have not asked for longest are forgotten.

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>

#include "controller/clock.hpp"

namespace controller {

struct rate_settings {
  double per_second = 10;
  double burst = 40;        ///< requests at once after a pause
  std::size_t most = 4096;  ///< names that are known at a time
};

class rate {
 public:
  explicit rate(rate_settings settings) : settings_(settings) {}
  /// Empty: go on, and it counts. Otherwise how long to wait.
  std::optional<std::chrono::seconds> ask(const std::string& name, milliseconds now);
  std::size_t size() const { return buckets_.size(); }

 private:
  struct bucket {
    double left = 0;
    milliseconds since{0};
  };
  void forget_the_idle(milliseconds now);

  rate_settings settings_;
  std::unordered_map<std::string, bucket> buckets_;
};

/// One of the things that are under way under a name. It counts while it is there.
class counted {
 public:
  using counts = std::unordered_map<std::string, std::size_t>;
  counted(counts& all, std::string name) : all_(all), name_(std::move(name)) { ++all_[name_]; }
  ~counted() {
    if (--all_[name_] == 0) all_.erase(name_);
  }
  counted(const counted&) = delete;
  counted& operator=(const counted&) = delete;

 private:
  counts& all_;
  std::string name_;
};

}  // namespace controller
