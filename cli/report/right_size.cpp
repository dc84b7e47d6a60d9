#include "cli/report/right_size.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "cli/cluster/prometheus.hpp"
#include "cli/output/answer.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using nlohmann::ordered_json;
using text::shown;

constexpr std::string_view ratio = "share:quartermaster_share_memory_used:ratio";
constexpr double mib = 1024.0 * 1024.0;
constexpr std::int64_t step_mib = 256;
constexpr double most_value = 1e18;  // bytes of no card

/// The value now: "value": [1795600000, "0.5"].
std::optional<double> value_of(const nlohmann::json& series) {
  const auto point = series.is_object() ? series.find("value") : series.end();
  if (!series.is_object() || point == series.end() || !point->is_array() || point->size() != 2) return std::nullopt;
  if (!point->at(1).is_string()) return std::nullopt;
  const auto& text = point->at(1).get_ref<const std::string&>();
  double out = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
  const bool is_number = failed == std::errc() && end == text.data() + text.size() && out >= 0 && out < most_value;
  return is_number ? std::optional(out) : std::nullopt;
}

/// A share: what all its series have in common.
using share_key = std::array<std::string, 7>;
share_key key_of(const nlohmann::json& series) {
  return {label_of(series, "namespace"), label_of(series, "pod"),  label_of(series, "container"),
          label_of(series, "uuid"),      label_of(series, "node"), label_of(series, "model"),
          label_of(series, "mode")};
}

std::string percent(double part) {
  return std::to_string(static_cast<std::int64_t>(std::floor(part * 100 + 1e-9))) + "%";
}

}  // namespace

std::string unused_query() {
  return "max_over_time(" + std::string(ratio) + "[1d]) < 0.3 and " + std::string(ratio) + " offset 1d";
}

std::string given_query() {
  return "max by (node, uuid, model, mode, namespace, pod, container) (quartermaster_share_allocated_memory_bytes) and "
         "(" +
         unused_query() + ")";
}

std::string measured_query() { return "count(" + std::string(ratio) + " offset 1d)"; }

std::int64_t right_size_row::advised_mib() const {
  const auto wanted = peak_mib + (peak_mib + 3) / 4;
  const auto whole_steps = std::max<std::int64_t>((wanted + step_mib - 1) / step_mib, 1) * step_mib;
  return std::min(whole_steps, given_mib);
}

std::expected<std::vector<right_size_row>, text::phrase> right_sizes(std::string_view unused_body,
                                                                     std::string_view given_body, std::string_view ns) {
  const auto unused = answer_in(unused_body);
  const auto allocated = answer_in(given_body);
  const auto* parts = series_in(unused);
  const auto* sizes = series_in(allocated);
  if (!parts || !sizes) return std::unexpected(text::phrase{"report.unreadable"});
  std::map<share_key, double> bytes;
  for (const auto& series : *sizes)
    if (const auto size = value_of(series)) bytes[key_of(series)] = *size;
  std::vector<right_size_row> out;
  for (const auto& series : *parts) {
    const auto part = value_of(series);
    const auto key = key_of(series);
    const auto size = bytes.find(key);
    if (!part || *part > 1 || size == bytes.end() || (!ns.empty() && key[0] != ns))
      continue;  // it ended between two answers
    right_size_row row{key[0], key[1], key[2], key[5], key[6], key[4], key[3], 0, 0, *part};
    row.given_mib = std::llround(size->second / mib);
    row.peak_mib = std::llround(std::ceil(*part * size->second / mib - 1e-6));
    out.push_back(std::move(row));
  }
  std::ranges::sort(
      out, {}, [](const right_size_row& row) { return std::tie(row.name_space, row.pod, row.container, row.card); });
  return out;
}

namespace {

const listing<right_size_row>& containers_listing() {
  using row = right_size_row;
  static const auto name_column = [](std::string_view name, std::string row::* member, bool is_wide = false) {
    return listed_column<row>{name, [member](const row& entry, const bilingual&) { return shown(entry.*member); },
                              is_wide};
  };
  static const listing<row> out{
      "containers",
      {name_column("namespace", &row::name_space),
       name_column("pod", &row::pod),
       name_column("container", &row::container),
       name_column("model", &row::model),
       {"given-mib", [](const row& entry, const bilingual&) { return std::to_string(entry.given_mib); }},
       {"peak-mib", [](const row& entry, const bilingual&) { return std::to_string(entry.peak_mib); }},
       {"used%", "used_percent", [](const row& entry, const bilingual&) { return percent(entry.used); }},
       {"advised-mib", [](const row& entry, const bilingual&) { return std::to_string(entry.advised_mib()); }},
       name_column("mode", &row::mode, true),
       name_column("node", &row::node, true),
       name_column("card", &row::card, true)},
      [](const row& entry) {
        return ordered_json{{"namespace", entry.name_space},
                            {"pod", entry.pod},
                            {"container", entry.container},
                            {"model", entry.model},
                            {"mode", entry.mode},
                            {"node", entry.node},
                            {"card", entry.card},
                            {"givenMiB", entry.given_mib},
                            {"peakMiB", entry.peak_mib},
                            {"used", entry.used},
                            {"advisedMiB", entry.advised_mib()}};
      },
      [](const row& entry) { return "pod/" + entry.pod; },
      "report.right_size.nothing"};
  return out;
}

}  // namespace

std::vector<std::string> right_size_headers() { return sort_keys(containers_listing()); }

void print(const std::vector<right_size_row>& rows, const listing_style& style, std::ostream& out) {
  print(containers_listing(), rows, style, out);
}

}  // namespace cli
