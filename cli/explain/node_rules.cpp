#include "cli/explain/node_rules.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

#include "cli/explain/pod_fields.hpp"
#include "text/messages.hpp"

namespace cli {
namespace {

using nlohmann::json;

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t out = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (failed != std::errc() || end != text.data() + text.size()) return {};
  return out;
}

}  // namespace

node_rules::node_rules(const json& spec) : name_(text_at(spec, "nodeName")) {
  if (const auto& selector = member(spec, "nodeSelector"); selector.is_object())
    for (const auto& [key, value] : selector.items())
      selector_.emplace_back(key, value.is_string() ? value.get<std::string>() : value.dump());
  for (const auto& entry : member(spec, "tolerations"))
    tolerations_.push_back(
        {text_at(entry, "key"), text_at(entry, "operator"), text_at(entry, "value"), text_at(entry, "effect")});
  const auto& required =
      member(member(member(spec, "affinity"), "nodeAffinity"), "requiredDuringSchedulingIgnoredDuringExecution");
  has_terms_ = required.is_object();
  for (const auto& term : member(required, "nodeSelectorTerms")) {
    std::vector<requirement> all;
    for (const auto& [list, is_field] : {std::pair("matchExpressions", false), std::pair("matchFields", true)}) {
      for (const auto& entry : member(term, list)) {
        requirement made{text_at(entry, "key"), text_at(entry, "operator"), {}, is_field};
        for (const auto& value : member(entry, "values"))
          if (value.is_string()) made.values.push_back(value.get<std::string>());
        all.push_back(std::move(made));
      }
    }
    terms_.push_back(std::move(all));
  }
}

bool node_rules::requirement::met_by(const kube::node& node) const {
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

bool node_rules::toleration::covers(const kube::taint& taint) const {
  if (!effect.empty() && effect != taint.effect) return false;
  if (op == "Exists") return key.empty() || key == taint.key;
  return (op.empty() || op == "Equal") && key == taint.key && value == taint.value;
}

std::string node_rules::refuses(const kube::node& node, text::language locale) const {
  const auto words = [&](const std::string& key, std::initializer_list<text::parameter> parameters = {}) {
    return text::message("explain.closed_by." + key, locale, parameters);
  };
  if (!name_.empty() && name_ != node.key.name) return words("node_name");
  for (const auto& [key, value] : selector_) {
    const auto is = node.labels.find(key);
    if (!is || *is != value) return words("selector", {{"label", key + "=" + value}});
  }
  // A term without requirements matches nothing.
  const bool met = std::ranges::any_of(terms_, [&](const auto& term) {
    return !term.empty() &&
           std::ranges::all_of(term, [&](const requirement& requirement) { return requirement.met_by(node); });
  });
  if (has_terms_ && !met) return words("affinity");
  for (const auto& taint : node.taints) {
    if (taint.effect != "NoSchedule" && taint.effect != "NoExecute") continue;
    if (std::ranges::none_of(tolerations_, [&](const toleration& toleration) { return toleration.covers(taint); }))
      return words("taint",
                   {{"taint", taint.key + (taint.value.empty() ? "" : "=" + taint.value) + ":" + taint.effect}});
  }
  return {};
}

}  // namespace cli
