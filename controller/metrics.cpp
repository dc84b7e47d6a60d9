#include "controller/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

namespace controller {
namespace {

void append_value(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value > 0 ? "+Inf" : "-Inf";
  } else if (value == std::floor(value) && std::abs(value) < 1e15) {
    fmt::format_to(std::back_inserter(out), "{}", static_cast<std::int64_t>(value));
  } else {
    fmt::format_to(std::back_inserter(out), "{}", value);
  }
}

/// The text format knows three escapes; everything else that is UTF-8 goes through.
void append_label_value(std::string& out, std::string_view value) {
  const bool plain = std::ranges::all_of(value, [](char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; });
  if (plain) {
    out += value;
    return;
  }
  for (const char c : text::utf8_clean(value)) {
    if (c == '\n') {
      out += "\\n";
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
}

void write(metric_text& metric_text, std::string_view name, const labels& labels, const counter& metric) {
  metric_text.sample(name, labels, metric.value());
}
void write(metric_text& metric_text, std::string_view name, const labels& labels, const gauge& metric) {
  metric_text.sample(name, labels, metric.value());
}
void write(metric_text& metric_text, std::string_view name, const labels& base_labels, const histogram& metric) {
  const std::string bucket = std::string(name) + "_bucket";
  labels with_edge = base_labels;
  with_edge.emplace_back("le", "");
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < metric.edges().size(); ++i) {
    below += metric.bucket(i);
    const std::string edge = fmt::format("{}", metric.edges()[i]);
    with_edge.back().second = edge;
    metric_text.sample(bucket, with_edge, static_cast<double>(below));
  }
  with_edge.back().second = "+Inf";
  metric_text.sample(bucket, with_edge, static_cast<double>(metric.count()));
  metric_text.sample(std::string(name) + "_sum", base_labels, metric.sum());
  metric_text.sample(std::string(name) + "_count", base_labels, static_cast<double>(metric.count()));
}

}  // namespace

void histogram::observe(double seconds) {
  const auto match = std::lower_bound(edges_.begin(), edges_.end(), seconds);
  ++buckets_[static_cast<std::size_t>(match - edges_.begin())];
  ++count_;
  sum_ += seconds;
}

std::span<const double> histogram::usual() {
  static constexpr std::array edges{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0};
  return edges;
}

void metric_text::family(std::string_view name, std::string_view help, std::string_view type) {
  fmt::format_to(std::back_inserter(out_), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void metric_text::sample(std::string_view name, const labels& labels, double value) {
  out_ += name;
  char before = '{';
  for (const auto& [label, text] : labels) {
    out_ += before;
    out_ += label;
    out_ += "=\"";
    append_label_value(out_, text);
    out_ += '"';
    before = ',';
  }
  if (!labels.empty()) out_ += '}';
  out_ += ' ';
  append_value(out_, value);
  out_ += '\n';
}

registry::registry() {
  names_.emplace_back("quartermaster_metrics_series_refused_total");
  collect([this](metric_text& metric_text) {
    metric_text.family(names_.front(),
                       "Asks for a series beyond the cap of its family; they share the series \"other\".", "counter");
    metric_text.sample(names_.front(), {}, overflow_->value());
  });
}

template <class Metric>
family<Metric>& registry::add(std::string name, std::string help, std::string_view type,
                              std::vector<std::string> label_names, std::function<Metric()> make, std::size_t cap) {
  if (std::ranges::find(names_, name) != names_.end()) throw std::logic_error("metric registered twice: " + name);
  names_.push_back(name);
  auto made = std::make_shared<family<Metric>>(std::move(label_names), std::move(make), cap, *overflow_);
  collect([made, name = std::move(name), help = std::move(help), type](metric_text& metric_text) {
    metric_text.family(name, help, type);
    made->each([&](const labels& labels, const Metric& metric) { write(metric_text, name, labels, metric); });
  });
  return *made;
}

family<counter>& registry::counters(std::string name, std::string help, std::vector<std::string> label_names,
                                    std::size_t cap) {
  return add<counter>(
      std::move(name), std::move(help), "counter", std::move(label_names), [] { return counter(); }, cap);
}
family<gauge>& registry::gauges(std::string name, std::string help, std::vector<std::string> label_names,
                                std::size_t cap) {
  return add<gauge>(std::move(name), std::move(help), "gauge", std::move(label_names), [] { return gauge(); }, cap);
}
family<histogram>& registry::histograms(std::string name, std::string help, std::vector<std::string> label_names,
                                        std::span<const double> edges, std::size_t cap) {
  std::vector<double> kept(edges.begin(), edges.end());
  return add<histogram>(
      std::move(name), std::move(help), "histogram", std::move(label_names),
      [kept = std::move(kept)] { return histogram(kept); }, cap);
}
counter& registry::make_counter(std::string name, std::string help) {
  return counters(std::move(name), std::move(help), {}, 1).with({});
}
gauge& registry::make_gauge(std::string name, std::string help) {
  return gauges(std::move(name), std::move(help), {}, 1).with({});
}
histogram& registry::make_histogram(std::string name, std::string help, std::span<const double> edges) {
  return histograms(std::move(name), std::move(help), {}, edges, 1).with({});
}

std::string registry::text() const {
  metric_text out;
  for (const auto& writer : collectors_) writer(out);
  return out.take();
}

}  // namespace controller
