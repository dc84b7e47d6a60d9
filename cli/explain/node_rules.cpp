#include "cli/explain/node_rules.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <vector>

#include "api/names.hpp"

namespace cli {
namespace {

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t out = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (failed != std::errc() || end != text.data() + text.size()) return {};
  return out;
}

bool meets(const kube::node& node, const kube::node_rules::requirement& requirement) {
  const auto& [key, op, values, is_field] = requirement;
  std::optional<std::string> is;
  if (is_field) {
    if (key == "metadata.name") is = node.key.name;
  } else if (const auto found = node.labels.find(key)) {
    is = std::string(*found);
  }
  if (op == "Exists") return is.has_value();
  if (op == "DoesNotExist") return !is;
  const bool listed = is && std::ranges::find(values, *is) != values.end();
  if (op == "In") return listed;
  if (op == "NotIn") return !listed;
  if (op != "Gt" && op != "Lt") return false;
  const auto left = is ? number_of(*is) : std::nullopt;
  const auto right = values.size() == 1 ? number_of(values[0]) : std::nullopt;
  if (!left || !right) return false;
  return op == "Gt" ? *left > *right : *left < *right;
}

bool covers(const kube::node_rules::toleration& toleration, const kube::taint& taint) {
  const auto& [key, op, value, effect] = toleration;
  if (!effect.empty() && effect != taint.effect) return false;
  if (op == "Exists") return key.empty() || key == taint.key;
  return (op.empty() || op == "Equal") && key == taint.key && value == taint.value;
}

}  // namespace

text::phrase node_rules::refusal(const kube::node& node) const {
  const auto words = [](const std::string& key, std::vector<text::phrase_argument> arguments = {}) {
    return text::phrase("explain.closed_by." + key, std::move(arguments));
  };
  if (!name_.empty() && name_ != node.key.name) return words("node_name");
  for (const auto& [key, value] : rules_.selector) {
    const auto is = node.labels.find(key);
    if (!is || *is != value) return words("selector", {{"label", key + "=" + value}});
  }
  // A term without requirements matches nothing.
  const auto is_met = [&](const auto& term) {
    return !term.empty() &&
           std::ranges::all_of(term, [&](const auto& requirement) { return meets(node, requirement); });
  };
  if (rules_.terms && std::ranges::none_of(*rules_.terms, is_met)) return words("affinity");
  for (const auto& taint : node.taints) {
    if (taint.effect != "NoSchedule" && taint.effect != "NoExecute") continue;
    if (taint.key == api::names::switching_taint) continue;  // the ledger says of such a node that it changes its mode
    if (std::ranges::none_of(rules_.tolerations, [&](const auto& toleration) { return covers(toleration, taint); }))
      return words("taint",
                   {{"taint", taint.key + (taint.value.empty() ? "" : "=" + taint.value) + ":" + taint.effect}});
  }
  return {};
}

}  // namespace cli
