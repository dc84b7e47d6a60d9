#include "cli/console/history.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/cluster/prometheus.hpp"
#include "cli/console/shares.hpp"
#include "cli/console/views.hpp"
#include "kube/percent.hpp"
#include "quota/card_use.hpp"
#include "text/phrase_code.hpp"

namespace cli::console {
namespace {

constexpr std::int64_t hour = 3600, day = 24 * hour, longest = 31 * day, most_points = 240, least_step = 15;

struct chart_row {
  std::string_view name, unit, label;  ///< `label`: what a series is named by
  bool of_namespace;
  /// `{}` stands for the selector of labels.
  std::string_view query;
  bool of_pod = false;
};
constexpr std::array charts{
    chart_row{"utilization", "ratio", "node", false,
              "avg by (node) (max by (node, uuid) (quartermaster_card_utilization_ratio{}))"},
    chart_row{"memory", "bytes", "node", false,
              "sum by (node) (max by (node, uuid) (quartermaster_card_memory_used_bytes{}))"},
    chart_row{"cards", "cards", "model, mode", false,
              "count by (model, mode) (max by (node, uuid, model, mode) (quartermaster_card_info{}))"},
    chart_row{"namespace_cores", "cards", "namespace", true,
              "sum by (namespace) (max by (node, uuid, model, mode, namespace, pod, container) "
              "(quartermaster_share_allocated_cores_ratio{}))"},
    chart_row{"namespace_utilization", "ratio", "namespace", true,
              "sum by (namespace) (max by (node, uuid, model, mode, namespace, pod, container) "
              "(quartermaster_share_utilization_ratio{}))"},
    chart_row{"pod_utilization", "ratio", "container", true,
              "sum by (container) (max by (node, uuid, model, mode, namespace, pod, container) "
              "(quartermaster_share_utilization_ratio{}))",
              true},
    chart_row{
        "pod_memory", "bytes", "container", true,
        "(sum by (container) (max by (node, uuid, model, mode, namespace, pod, container) "
        "(quartermaster_share_memory_used_bytes{})) or label_replace(sum by (container) "
        "(max by (node, uuid, model, mode, namespace, pod, container) "
        "(quartermaster_share_allocated_memory_bytes{})), \"container\", \"$1, given\", \"container\", \"(.*)\"))",
        true}};
constexpr std::string_view trend_query =
    "sum by (model, mode) (max by (node, uuid, model, mode, namespace, pod, container) "
    "(quartermaster_share_allocated_cores_ratio)) * 100";

constexpr std::array<std::pair<std::string_view, std::int64_t>, 7> ranges{{{"30m", hour / 2},
                                                                           {"1h", hour},
                                                                           {"6h", 6 * hour},
                                                                           {"12h", 12 * hour},
                                                                           {"24h", day},
                                                                           {"2d", 2 * day},
                                                                           {"7d", 7 * day}}};

const chart_row* row_of(std::string_view name) {
  const auto match = std::ranges::find(charts, name, &chart_row::name);
  return match == charts.end() ? nullptr : &*match;
}

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t out = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (failed != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return out;
}

int digit_of(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  return letter >= 'A' && letter <= 'F' ? letter - 'A' + 10 : -1;
}

std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? digit_of(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? digit_of(text[i + 2]) : -1;
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

std::string query_of(const chart_row& row, const chart_request& chart, std::string_view extra) {
  std::string labels;
  if (!chart.node.empty()) labels += "node=\"" + chart.node + "\"";
  if (!chart.ns.empty()) labels += (labels.empty() ? "" : ",") + ("namespace=\"" + chart.ns + "\"");
  if (!chart.pod.empty()) labels += ",pod=\"" + chart.pod + "\"";
  const auto selector = (labels.empty() ? std::string() : "{" + labels + "}") + std::string(extra);
  std::string out(row.query);
  for (auto mark = out.find("{}"); mark != std::string::npos; mark = out.find("{}", mark + selector.size()))
    out.replace(mark, 2, selector);
  return out;
}

std::string range_target(std::string_view query, std::int64_t begin, std::int64_t end, std::int64_t step) {
  std::string out = "/api/v1/query_range?query=";
  kube::append_percent_encoded(out, query);
  return out + "&start=" + std::to_string(begin) + "&end=" + std::to_string(end) + "&step=" + std::to_string(step);
}

/// Bytes of a label. Names of nodes and namespaces have 253 at most.
constexpr std::size_t longest_label = 256;
/// Seconds since 1970 beyond which nothing is a time.
constexpr double latest = 1e12;

/// Time and value of a point: [1795600000, "0.5"].
std::optional<std::pair<std::int64_t, double>> point_of(const nlohmann::json& point) {
  if (!point.is_array() || point.size() != 2 || !point[0].is_number() || !point[1].is_string()) return std::nullopt;
  const auto& text = point[1].get_ref<const std::string&>();
  const auto time = point[0].get<double>();
  double value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (!(time >= 0 && time <= latest)) return std::nullopt;
  if (failed != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return std::pair(static_cast<std::int64_t>(time), value);
}

const nlohmann::json& member(const nlohmann::json& object, const char* key) {
  static const nlohmann::json nothing;
  const auto match = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && match != object.end() ? *match : nothing;
}

/// Those that the query of the chart leaves; nothing: one is too long, so it is no answer to that query.
std::optional<ordered_json> labels_of(const chart_request& chart, const nlohmann::json& series) {
  const auto* row = row_of(chart.chart);
  ordered_json out = ordered_json::object();
  for (const auto& [key, value] : member(series, "metric").items()) {
    const bool is_named = row && (", " + std::string(row->label) + ",").contains(", " + key + ",");
    if (!is_named || !value.is_string()) continue;
    if (value.get_ref<const std::string&>().size() > longest_label) return std::nullopt;
    out[key] = value.get<std::string>();
  }
  return out;
}

ordered_json frame_of(const chart_request& chart, bool is_available, const text::phrase& message) {
  const auto* row = row_of(chart.chart);
  return {{"available", is_available},
          {"message", text::message_text(message)},
          {"messages", in_languages(message)},
          {"chart", chart.chart},
          {"from", chart.begin},
          {"to", chart.end},
          {"step", chart.step},
          {"unit", row ? row->unit : ""},
          {"times", ordered_json::array()},
          {"series", ordered_json::array()},
          {"more", false}};
}

}  // namespace

std::expected<parameters, text::phrase> parameters_in(std::string_view query) {
  parameters out;
  while (!query.empty()) {
    const auto end = std::min(query.find('&'), query.size());
    const auto word = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (word.empty()) continue;
    const auto equals = std::min(word.find('='), word.size());
    const auto name = decoded(word.substr(0, equals));
    const auto value = decoded(equals < word.size() ? word.substr(equals + 1) : std::string_view());
    if (!name || !value) return std::unexpected(text::phrase{"console.not_encoded"});
    if (!out.emplace(*name, *value).second) return std::unexpected(text::phrase{"console.parameter_twice"});
  }
  return out;
}

bool is_name(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  const auto is_letter = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '-' || letter == '.';
  };
  const auto is_edge = [](char letter) { return letter != '-' && letter != '.'; };
  return std::ranges::all_of(text, is_letter) && is_edge(text.front()) && is_edge(text.back());
}

std::string chart_request::target() const {
  const auto& row = *row_of(chart);
  // The largest at the end of the range, and those over the whole range.
  const auto largest = "topk(" + std::to_string(most_series) + ", " + query_of(row, *this, " @ end()") + ")";
  const auto query = query_of(row, *this, "") + " and on (" + std::string(row.label) + ") " + largest;
  return range_target(query, begin, end, step);
}

std::expected<chart_request, text::phrase> chart_of(const parameters& parameters, std::int64_t now) {
  const auto wrong = [](const char* key, const std::string& name = {}) {
    return std::unexpected(text::phrase{std::string("console.chart.") + key, {{"name", name}}});
  };
  chart_request out;
  std::string range = "1h";
  std::optional<std::int64_t> begin, end;
  for (const auto& [name, value] : parameters) {
    if (name == "chart") {
      out.chart = value;
    } else if (name == "range") {
      range = value;
    } else if (name == "node" || name == "namespace" || name == "pod") {
      if (!is_name(value)) return wrong("no_name", name);
      (name == "node" ? out.node : name == "pod" ? out.pod : out.ns) = value;
    } else if (name == "from" || name == "to") {
      const auto number = number_of(value);
      if (!number || *number < 0) return wrong("no_time", name);
      (name == "from" ? begin : end) = *number;
    } else {
      return wrong("parameters");
    }
  }
  const auto* row = row_of(out.chart);
  if (!row) return wrong("charts");
  if (!row->of_namespace && !out.ns.empty()) return wrong("no_namespace", out.chart);
  if (row->of_pod ? out.pod.empty() || out.ns.empty() : !out.pod.empty()) return wrong("pod");
  if (range == "custom") {
    if (!begin || !end) return wrong("custom");
    if (*begin >= *end || *end - *begin > longest || *end > now + day) return wrong("order");
    out.begin = *begin;
    out.end = *end;
  } else {
    const auto match = std::ranges::find(ranges, range, [](const auto& entry) { return entry.first; });
    if (match == ranges.end()) return wrong("ranges");
    if (begin || end) return wrong("not_custom");
    out.end = now;
    out.begin = now - match->second;
  }
  out.step = std::max(least_step, (out.end - out.begin + most_points - 1) / most_points);
  return out;
}

text::phrase refused_right(const chart_request& chart, const viewer& viewer) {
  const auto& row = *row_of(chart.chart);
  if (!row.of_namespace)
    return viewer.nodes ? text::phrase() : text::phrase{"console.right.chart", {{"name", chart.chart}}};
  if (!chart.node.empty() && !viewer.nodes) return {"console.right.node"};
  if (chart.ns.empty()) return {viewer.all_pods ? "" : "console.right.all_pods"};
  return {viewer.sees(chart.ns) ? "" : "console.right.pods_of_namespace"};
}

ordered_json history_view(const chart_request& chart, std::string_view body) {
  const auto answer = answer_in(body);
  const auto* result = series_in(answer);
  if (!result) return no_history(chart, {"console.prometheus_unreadable"});
  auto out = frame_of(chart, true, {});
  // One time per step: the first in the answer. So an answer of any size becomes a view of a known size, also where
  // something before Prometheus moves all times to whole steps.
  const auto step_of = [&](std::int64_t time) { return (time - chart.begin) / chart.step; };
  std::map<std::int64_t, std::int64_t> times;
  for (const auto& series : *result)
    for (const auto& point : member(series, "values"))
      if (const auto known = point_of(point); known && known->first >= chart.begin && known->first <= chart.end)
        times.emplace(step_of(known->first), known->first);
  std::map<std::int64_t, std::size_t> places;
  for (const auto& [step, time] : times) {
    places.emplace(time, places.size());
    out["times"].push_back(time);
  }
  for (const auto& series : *result) {
    if (out["series"].size() == most_series) break;
    auto labels = labels_of(chart, series);
    if (!labels) continue;
    std::string name;
    for (const auto& [key, value] : labels->items()) name += (name.empty() ? "" : " ") + value.get<std::string>();
    std::vector<ordered_json> values(places.size());
    for (const auto& point : member(series, "values")) {
      const auto known = point_of(point);
      const auto place = known ? places.find(known->first) : places.end();
      if (place != places.end()) values[place->second] = known->second;
    }
    out["series"].push_back({{"name", name}, {"labels", std::move(*labels)}, {"values", std::move(values)}});
  }
  out["more"] = out["series"].size() == most_series;
  return out;
}

ordered_json no_history(const chart_request& chart, const text::phrase& message) {
  return frame_of(chart, false, message);
}

namespace {

std::string instant_target(std::string_view query) {
  std::string out = "/api/v1/query?query=";
  kube::append_percent_encoded(out, query);
  return out;
}

/// Values now by two labels, in hundredths, from 0 to `most`.
std::map<std::pair<std::string, std::string>, int> hundredths_in(std::string_view body, const char* first_label,
                                                                 const char* second_label, double most) {
  std::map<std::pair<std::string, std::string>, int> out;
  const auto answer = answer_in(body);
  const auto* result = series_in(answer);
  if (!result) return out;
  for (const auto& series : *result) {
    const auto& labels = member(series, "metric");
    const auto &first = member(labels, first_label), &second = member(labels, second_label);
    const auto point = point_of(member(series, "value"));
    if (!point || !first.is_string() || !second.is_string()) continue;
    const auto value = std::clamp(std::round(point->second * 100), 0.0, most);
    out[{first.get<std::string>(), second.get<std::string>()}] = static_cast<int>(value);
  }
  return out;
}

}  // namespace

std::string measured_target() { return instant_target("max by (node, uuid) (quartermaster_card_utilization_ratio)"); }

measured_use measured_in(std::string_view body) { return hundredths_in(body, "node", "uuid", 100); }

std::string pod_use_target() {
  return instant_target(
      "sum by (namespace, pod) (max by (node, uuid, namespace, pod, container) "
      "(quartermaster_share_utilization_ratio))");
}

pod_use pod_use_in(std::string_view body) { return hundredths_in(body, "namespace", "pod", 1e6); }

ordered_json measured_view(const picture& picture, const measured_use& use, const text::phrase& message) {
  auto nodes = ordered_json::object();
  for (const auto& node : shares_of(picture)) {
    const auto& name = node.node->key.name;
    auto cards = ordered_json::array();
    bool has_some = false;
    for (const auto& entry : node.cards) {
      const auto match = use.find({name, entry.card->uuid});
      has_some = has_some || match != use.end();
      cards.push_back(match == use.end() ? -1 : match->second);
    }
    if (has_some) nodes[name] = std::move(cards);
  }
  return {{"message", text::message_text(message)}, {"messages", in_languages(message)}, {"nodes", std::move(nodes)}};
}

std::string trend_target(std::int64_t now) { return range_target(trend_query, now - 7 * day, now, hour); }

trends trends_in(std::string_view body) {
  trends out;
  const auto answer = answer_in(body);
  const auto* result = series_in(answer);
  if (!result) return out;
  for (const auto& series : *result) {
    const auto& labels = member(series, "metric");
    const auto& model = member(labels, "model");
    const auto& mode = member(labels, "mode");
    auto& points =
        out[{model.is_string() ? model.get<std::string>() : "", mode.is_string() ? mode.get<std::string>() : ""}];
    for (const auto& point : member(series, "values"))
      if (const auto known = point_of(point)) points.push_back(*known);
  }
  return out;
}

}  // namespace cli::console
