#include "reconcilers/cuda/affinity.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace reconcilers::cuda {
namespace {

using nlohmann::json;
using enum comparison;

constexpr std::array<std::string_view, 9> number_keys{
    keys::cuda_major,   keys::cuda_minor,   keys::found_major,      keys::found_minor,     keys::driver_major,
    keys::driver_minor, keys::driver_patch, keys::capability_major, keys::capability_minor};

std::optional<long> number(std::string_view text) {
  long out = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (wrong != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

// ---- one condition

expression is(std::string_view key, int value) {
  // A revision is written "03" by some and "3" by others.
  std::vector<std::string> values{std::to_string(value)};
  if (key == keys::driver_patch && value < 10) values.push_back("0" + values.front());
  return {std::string(key), "In", std::move(values)};
}
expression above(std::string_view key, int value) { return {std::string(key), "Gt", {std::to_string(value)}}; }
expression below(std::string_view key, int value) { return {std::string(key), "Lt", {std::to_string(value)}}; }
/// At least `value`: Gt takes no -1.
expression from(std::string_view key, int value) {
  if (value == 0) return {std::string(key), "Exists", {}};
  return above(key, value - 1);
}

void with(expression first, const terms& rest, terms& out) {
  for (auto entry : rest) {
    entry.insert(entry.begin(), first);
    out.push_back(std::move(entry));
  }
}

/// The alternatives under which the numbers under `labels` compare so with `value`; what a label lacks is 0.
terms compare(std::span<const std::string_view> labels, comparison comparison, std::span<const int> value) {
  const auto is_zero = [](std::span<const int> ints) {
    return std::ranges::all_of(ints, [](int part) { return part == 0; });
  };
  if (labels.empty()) {
    const bool same = comparison == equal || comparison == less_equal || comparison == greater_equal;
    const bool holds =
        is_zero(value) ? same : comparison == less || comparison == less_equal || comparison == not_equal;
    return holds ? terms{{}} : terms{};
  }
  const auto key = labels.front();
  const int first = value.front();
  const bool round = is_zero(value.subspan(1));
  terms out;
  if (comparison == greater_equal && round) return {{from(key, first)}};
  if (comparison == less && round) return first == 0 ? terms() : terms{{below(key, first)}};
  if (comparison == greater || comparison == greater_equal || comparison == not_equal)
    out.push_back({above(key, first)});
  if ((comparison == less || comparison == less_equal || comparison == not_equal) && first > 0)
    out.push_back({below(key, first)});
  if (labels.size() == 1) {
    // The last label: "or equal" is one number further.
    const auto rest = compare({}, comparison, value.subspan(1));
    if (rest.empty()) return out;
    if (comparison == greater || comparison == greater_equal) return {{from(key, first)}};
    if (comparison == less || comparison == less_equal) return {{below(key, first + 1)}};
  }
  with(is(key, first), compare(labels.subspan(1), comparison, value.subspan(1)), out);
  return out;
}

constexpr std::array manual_cuda{keys::cuda_major, keys::cuda_minor};
constexpr std::array found_cuda{keys::found_major, keys::found_minor};
constexpr std::array driver_keys{keys::driver_major, keys::driver_minor, keys::driver_patch};
constexpr std::array capability_keys{keys::capability_major, keys::capability_minor};

// ---- simplifying

/// What the expressions of one term say of one label that holds a number.
struct range {
  long above = std::numeric_limits<long>::min(), below = std::numeric_limits<long>::max();
  bool exists = false;
  std::optional<std::vector<std::string>> values;
  std::vector<expression> others;

  /// False: no number does.
  bool settle() {
    if (values) {
      std::erase_if(*values, [&](const std::string& text) {
        const auto value = number(text);
        const bool bounded = above != std::numeric_limits<long>::min() || below != std::numeric_limits<long>::max();
        return bounded && (!value || *value <= above || *value >= below);
      });
      return !values->empty();
    }
    return above == std::numeric_limits<long>::min() || below == std::numeric_limits<long>::max() || above + 1 < below;
  }
  void take(const expression& expression) {
    const auto value = expression.values.size() == 1 ? number(expression.values.front()) : std::nullopt;
    if (expression.op == "Gt" && value) {
      above = std::max(above, *value);
    } else if (expression.op == "Lt" && value) {
      below = std::min(below, *value);
    } else if (expression.op == "Exists") {
      exists = true;
    } else if (expression.op == "In") {
      if (!values) values = expression.values;
      std::erase_if(*values, [&](const std::string& text) {
        return std::ranges::find(expression.values, text) == expression.values.end();
      });
    } else {
      others.push_back(expression);
    }
  }
  void write(const std::string& key, term& term) const {
    if (values) {
      term.push_back({key, "In", *values});
    } else {
      const bool low = above != std::numeric_limits<long>::min(), high = below != std::numeric_limits<long>::max();
      if (low) term.push_back({key, "Gt", {std::to_string(above)}});
      if (high) term.push_back({key, "Lt", {std::to_string(below)}});
      if (exists && !low && !high) term.push_back({key, "Exists", {}});
    }
    term.insert(term.end(), others.begin(), others.end());
  }
};

/// Empty where the term can never hold.
std::optional<term> simplified(const term& expressions) {
  term out;
  std::vector<std::pair<std::string, range>> numbers;
  for (const auto& entry : expressions) {
    if (std::ranges::find(number_keys, entry.key) == number_keys.end()) {
      if (std::ranges::find(out, entry) == out.end()) out.push_back(entry);
      continue;
    }
    auto match = std::ranges::find(numbers, entry.key, &std::pair<std::string, range>::first);
    if (match == numbers.end()) match = numbers.insert(numbers.end(), {entry.key, range()});
    match->second.take(entry);
  }
  for (auto& [key, held] : numbers) {
    const bool absent = std::ranges::any_of(held.others, [](const auto& other) { return other.op == "DoesNotExist"; });
    const bool present = held.values || held.exists || held.above != std::numeric_limits<long>::min() ||
                         held.below != std::numeric_limits<long>::max();
    if (!held.settle() || (absent && present)) return std::nullopt;
    std::ranges::sort(held.others);
    held.others.erase(std::ranges::unique(held.others).begin(), held.others.end());
    held.write(key, out);
  }
  return out;
}

/// Everything `narrow` asks for is at least what `wide` asks for, as far as it is plain to see.
bool within(const term& narrow, const term& wide) {
  return std::ranges::all_of(
      wide, [&](const expression& expression) { return std::ranges::find(narrow, expression) != narrow.end(); });
}

void keep(term candidate, terms& terms) {
  if (std::ranges::any_of(terms, [&](const term& other) { return within(candidate, other); })) return;
  std::erase_if(terms, [&](const term& other) { return within(other, candidate); });
  terms.push_back(std::move(candidate));
}

// ---- JSON

expression expression_of(const json& object) {
  expression out{object.value("key", ""), object.value("operator", ""), {}};
  const auto values = object.find("values");
  if (values != object.end() && values->is_array()) {
    for (const auto& value : *values) {
      if (value.is_string()) out.values.push_back(value);
    }
  }
  return out;
}

json json_of(const expression& expression) {
  json out = {{"key", expression.key}, {"operator", expression.op}};
  if (!expression.values.empty()) out["values"] = expression.values;
  return out;
}

const json* member(const json* object, const char* name) {
  if (!object || !object->is_object()) return nullptr;
  const auto match = object->find(name);
  return match == object->end() || match->is_null() ? nullptr : &*match;
}

term expressions_of(const json& node_selector_term) {
  term out;
  const auto* list = member(&node_selector_term, "matchExpressions");
  if (!list || !list->is_array()) return out;
  for (const auto& entry : *list) {
    if (entry.is_object()) out.push_back(expression_of(entry));
  }
  return out;
}

}  // namespace

vocabulary vocabulary_of(std::span<const node_facts* const> nodes) {
  vocabulary out;
  for (const auto* node : nodes) out.found = out.found || (!node->labelled && node->found);
  return out;
}

std::optional<terms> product(const terms& a, const terms& b) {
  terms out;
  for (const auto& left : a) {
    for (const auto& right : b) {
      auto both = left;
      both.insert(both.end(), right.begin(), right.end());
      if (auto combination = simplified(both)) keep(std::move(*combination), out);
      if (out.size() > max_terms) return std::nullopt;
    }
  }
  return out;
}

namespace {

terms terms_of(const version_condition& needed, const vocabulary& vocabulary) {
  switch (needed.attribute) {
    case property::brand:
      return {{}};
    case property::arch:
      return compare(capability_keys, needed.op, needed.value);
    case property::driver:
      return compare(driver_keys, needed.op, needed.value);
    case property::cuda:
      break;
  }
  terms out;
  if (vocabulary.manual) out = compare(manual_cuda, needed.op, needed.value);
  if (vocabulary.found) {
    for (auto entry : compare(found_cuda, needed.op, needed.value)) {
      entry.insert(entry.begin(), {std::string(keys::cuda_major), "DoesNotExist", {}});
      out.push_back(std::move(entry));
    }
  }
  return out;
}

std::optional<terms> terms_of(const requirement& needed, const vocabulary& vocabulary) {
  if (needed.any_of.empty()) return terms{{}};
  terms out;
  for (const auto& all : needed.any_of) {
    std::optional<terms> alternative = terms{{}};
    for (const auto& each : all) {
      alternative = product(*alternative, terms_of(each, vocabulary));
      if (!alternative) return std::nullopt;
    }
    for (auto& each : *alternative) keep(std::move(each), out);
    if (out.size() > max_terms) return std::nullopt;
  }
  return out;
}

}  // namespace

std::optional<terms> terms_of(std::span<const requirement> needed, const vocabulary& vocabulary) {
  std::optional<terms> out = terms{{}};
  for (const auto& entry : needed) {
    const auto next = terms_of(entry, vocabulary);
    if (!next) return std::nullopt;
    out = product(*out, *next);
    if (!out) return std::nullopt;
  }
  return out;
}

bool matches(const term& term, const kube::packed_map& labels) {
  return std::ranges::all_of(term, [&](const expression& expression) {
    const auto is = labels.find(expression.key);
    if (expression.op == "Exists") return is.has_value();
    if (expression.op == "DoesNotExist") return !is.has_value();
    const bool listed = is && std::ranges::find(expression.values, *is) != expression.values.end();
    if (expression.op == "In") return listed;
    if (expression.op == "NotIn") return !listed;
    const auto value = is ? number(*is) : std::nullopt;
    const auto limit = expression.values.size() == 1 ? number(expression.values.front()) : std::nullopt;
    if (!value || !limit) return false;
    return expression.op == "Gt" ? *value > *limit : expression.op == "Lt" && *value < *limit;
  });
}

bool matches(const terms& terms, const kube::packed_map& labels) {
  return std::ranges::any_of(terms, [&](const term& term) { return matches(term, labels); });
}

merge merged(const json& own, const terms& needed) {
  using kind = merge::kind;
  if (needed.empty()) return {kind::contradiction, {}};
  if (std::ranges::any_of(needed, &term::empty)) return {};
  json out = json::array();
  const auto add = [&](json base, const term& all) {
    base["matchExpressions"] = json::array();
    for (const auto& entry : all) base["matchExpressions"].push_back(json_of(entry));
    if (std::ranges::find(out, base) == out.end()) out.push_back(std::move(base));
  };
  if (!own.is_array() || own.empty()) {
    for (const auto& entry : needed) add(json::object(), entry);
    return {kind::changed, std::move(out)};
  }
  for (const auto& entry : own) {
    const auto has = expressions_of(entry);
    const auto* fields = member(&entry, "matchFields");
    const bool empty = has.empty() && (!fields || !fields->is_array() || fields->empty());
    if (empty) continue;  // it matches nothing, and with ours next to it would match something
    const auto both = product({has}, needed);
    if (!both) return {kind::too_many, {}};
    for (const auto& each : *both) add(entry, each);
    if (out.size() > max_terms) return {kind::too_many, {}};
  }
  if (out.empty()) return {kind::contradiction, {}};
  return out == own ? merge() : merge{kind::changed, std::move(out)};
}

// ---- an affinity that people wrote

namespace {

/// As far as CUDA is concerned: what it says of other labels is taken as met.
terms cuda_terms(const json& pod_spec) {
  const auto* affinity = member(member(&pod_spec, "affinity"), "nodeAffinity");
  const auto* list = member(member(affinity, "requiredDuringSchedulingIgnoredDuringExecution"), "nodeSelectorTerms");
  terms out;
  if (!list || !list->is_array()) return out;
  for (const auto& entry : *list) {
    term kept;
    for (auto& each : expressions_of(entry)) {
      const bool about_cuda = each.key == keys::cuda_major || each.key == keys::cuda_minor ||
                              each.key == keys::found_major || each.key == keys::found_minor;
      if (about_cuda) kept.push_back(std::move(each));
    }
    out.push_back(std::move(kept));
  }
  const bool about_cuda = std::ranges::any_of(out, [](const term& term) { return !term.empty(); });
  return about_cuda ? out : terms();
}

kube::packed_map labels_of(const version& cuda) {
  const auto major = std::to_string(cuda.major), minor = std::to_string(cuda.minor);
  return kube::packed_map::of(
      {{keys::cuda_major, major}, {keys::cuda_minor, minor}, {keys::found_major, major}, {keys::found_minor, minor}});
}

/// "12.0-12.2", "12.4", "13.x" for all we know of a major version. `expressions` is in rising order.
std::string ranges_in(int major, const std::vector<version>& versions) {
  const auto known = std::ranges::count_if(toolkits(), [&](const auto& row) { return row.cuda.major == major; });
  if (std::cmp_equal(versions.size(), known)) return std::to_string(major) + ".x";
  std::string out;
  const auto follows = [](const version& a, const version& b) {
    // 12.7 has no toolkit: neighbours in the table are neighbours.
    return std::ranges::none_of(toolkits(), [&](const auto& row) { return row.cuda > a && row.cuda < b; });
  };
  for (std::size_t i = 0; i < versions.size();) {
    auto end = i;
    while (end + 1 < versions.size() && follows(versions[end], versions[end + 1])) ++end;
    out += (out.empty() ? "" : ", ") + to_string(versions[i]) + (end > i ? "-" + to_string(versions[end]) : "");
    i = end + 1;
  }
  return out;
}

}  // namespace

std::optional<excluded_versions> judge_affinity(const json& pod_spec) {
  const auto cuda_term = cuda_terms(pod_spec);
  if (cuda_term.empty()) return std::nullopt;
  std::optional<version> oldest;
  for (const auto& row : toolkits()) {
    if (matches(cuda_term, labels_of(row.cuda))) oldest = row.cuda;  // newest first
  }
  if (!oldest) return std::nullopt;
  std::map<int, std::vector<version>, std::greater<>> lost;
  bool newer = false;
  for (const auto& row : toolkits()) {
    if (row.cuda.major < oldest->major || matches(cuda_term, labels_of(row.cuda))) continue;
    newer = newer || row.cuda > *oldest;
    auto& of_major = lost[row.cuda.major];
    of_major.insert(of_major.begin(), row.cuda);
  }
  if (!newer) return std::nullopt;
  excluded_versions out{{}, *oldest};
  for (const auto& [major, all] : lost) out.versions += (out.versions.empty() ? "" : " and ") + ranges_in(major, all);
  return out;
}

std::string text_of(const excluded_versions& shut_out, text::language locale) {
  const auto major = std::to_string(shut_out.oldest.major);
  const auto minor = shut_out.oldest.minor > 0 ? " and minor Gt " + std::to_string(shut_out.oldest.minor - 1) : "";
  return text::message("cuda.need.shut_out", locale,
                       {{"versions", shut_out.versions},
                        {"pairs", "(major Gt " + major + ") or (major In [" + major + "]" + minor + ")"},
                        {"annotation", std::string(names::cuda_annotation)},
                        {"oldest", to_string(shut_out.oldest)}});
}

}  // namespace reconcilers::cuda
