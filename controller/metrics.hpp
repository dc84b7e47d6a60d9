#pragma once
// Counters, gauges and histograms, written as Prometheus text. Loop thread only, no locks. Every part has one struct of
// its own metrics, made once from the registry; what can be read off the stores at scrape time is written by a
// collector and kept nowhere. Why not prometheus-cpp: docs/decisions/001-metrics-writer.md.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/escape.hpp"

namespace controller {

class counter {
 public:
  void add(double amount = 1) { value_ += amount; }
  double value() const { return value_; }

 private:
  double value_ = 0;
};

class gauge {
 public:
  void set(double amount) { value_ = amount; }
  void add(double amount) { value_ += amount; }
  double value() const { return value_; }

 private:
  double value_ = 0;
};

class histogram {
 public:
  /// Upper edges in seconds, ascending; +Inf is implied.
  explicit histogram(std::span<const double> edges) : edges_(edges.begin(), edges.end()), buckets_(edges.size() + 1) {}
  void observe(double seconds);
  std::uint64_t count() const { return count_; }
  double sum() const { return sum_; }
  const std::vector<double>& edges() const { return edges_; }
  /// Observations in the bucket that ends at edge `i`; not cumulative.
  std::uint64_t bucket(std::size_t i) const { return buckets_[i]; }

  /// 1 ms to 30 s: requests and reconciles.
  static std::span<const double> usual();

 private:
  std::vector<double> edges_;
  std::vector<std::uint64_t> buckets_;
  std::uint64_t count_ = 0;
  double sum_ = 0;
};

/// Label names with their values, in the order they are written.
using labels = std::vector<std::pair<std::string_view, std::string_view>>;

/// Writes the text format (version 0.0.4). Label values are cleaned to UTF-8 and escaped.
class metric_text {
 public:
  /// Starts a family: `# HELP` and `# TYPE` lines.
  void family(std::string_view name, std::string_view help, std::string_view type);
  void sample(std::string_view name, const labels& labels, double value);
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

/// The series of one name that differ in label values. At most `cap` of them: a caller that asks for more gets one
/// shared series whose label values are all "other", and it is counted.
template <class Metric>
class family {
 public:
  family(std::vector<std::string> names, std::function<Metric()> make, std::size_t cap, counter& overflow)
      : names_(std::move(names)), make_(std::move(make)), cap_(cap), overflow_(overflow) {}

  /// Valid as long as the registry. The number of values is that of the names.
  Metric& with(std::initializer_list<std::string_view> values) {
    std::string key = joined(values);
    if (auto known = series_.find(key); known != series_.end()) return known->second;
    if (series_.size() >= cap_) {
      overflow_.add();
      const std::vector<std::string_view> other(names_.size(), "other");
      key = joined(other);
    }
    return series_.try_emplace(std::move(key), make_()).first->second;
  }
  /// Forgets a series of something that is gone.
  void remove(std::initializer_list<std::string_view> values) { series_.erase(joined(values)); }
  std::size_t size() const { return series_.size(); }
  const std::vector<std::string>& names() const { return names_; }
  /// Label values in the order of the names, and the metric.
  void each(const std::function<void(const labels&, const Metric&)>& call) const {
    for (const auto& [key, metric] : series_) call(split(key), metric);
  }

 private:
  static constexpr char separator = '\xff';  // never in UTF-8
  static std::string joined(const auto& values) {
    std::string out;
    for (const std::string_view value : values) {
      if (value.find(separator) == value.npos)
        out += value;
      else
        out += text::utf8_clean(value);
      out += separator;
    }
    return out;
  }
  labels split(std::string_view key) const {
    labels out;
    for (const auto& name : names_) {
      const auto end = key.find(separator);
      out.emplace_back(name, key.substr(0, end));
      key.remove_prefix(end + 1);
    }
    return out;
  }

  std::vector<std::string> names_;
  std::function<Metric()> make_;
  std::size_t cap_;
  counter& overflow_;
  std::map<std::string, Metric> series_;
};

class registry {
 public:
  static constexpr std::size_t default_cap = 1000;

  registry();
  registry(const registry&) = delete;
  registry& operator=(const registry&) = delete;

  /// Names follow `quartermaster_<noun>_<unit>`, counters end in `_total`. A name is registered once
  /// (std::logic_error). References stay valid as long as the registry.
  counter& make_counter(std::string name, std::string help);
  gauge& make_gauge(std::string name, std::string help);
  histogram& make_histogram(std::string name, std::string help, std::span<const double> edges = histogram::usual());
  family<counter>& counters(std::string name, std::string help, std::vector<std::string> label_names,
                            std::size_t cap = default_cap);
  family<gauge>& gauges(std::string name, std::string help, std::vector<std::string> label_names,
                        std::size_t cap = default_cap);
  family<histogram>& histograms(std::string name, std::string help, std::vector<std::string> label_names,
                                std::span<const double> edges = histogram::usual(), std::size_t cap = default_cap);
  /// Called at every scrape, in the order added; writes whole families.
  void collect(std::function<void(metric_text&)> writer) { collectors_.push_back(std::move(writer)); }

  /// The body of /metrics.
  std::string text() const;
  static constexpr std::string_view content_type = "text/plain; version=0.0.4; charset=utf-8";

 private:
  template <class Metric>
  family<Metric>& add(std::string name, std::string help, std::string_view type, std::vector<std::string> label_names,
                      std::function<Metric()> make, std::size_t cap);

  std::vector<std::string> names_;
  std::vector<std::function<void(metric_text&)>> collectors_;
  std::unique_ptr<counter> overflow_ = std::make_unique<counter>();
};

/// process_cpu_seconds_total, process_resident_memory_bytes, process_open_fds, process_max_fds,
/// process_start_time_seconds, process_threads, as every Prometheus client has them.
void add_process_metrics(registry& registry);

}  // namespace controller
