#include "reconcilers/cuda/affinity.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace reconcilers::compat {
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

void with(expression first, const terms& rest, terms& to) {
  for (auto one : rest) {
    one.insert(one.begin(), first);
    to.push_back(std::move(one));
  }
}

/// The alternatives under which the numbers under `labels` compare so with `value`; what a label lacks is 0.
terms compare(std::span<const std::string_view> labels, comparison how, std::span<const int> value) {
  const auto is_zero = [](std::span<const int> of) {
    return std::ranges::all_of(of, [](int one) { return one == 0; });
  };
  if (labels.empty()) {
    const bool same = how == equal || how == less_equal || how == greater_equal;
    const bool holds = is_zero(value) ? same : how == less || how == less_equal || how == not_equal;
    return holds ? terms{{}} : terms{};
  }
  const auto key = labels.front();
  const int first = value.front();
  const bool round = is_zero(value.subspan(1));
  terms out;
  if (how == greater_equal && round) return {{from(key, first)}};
  if (how == less && round) return first == 0 ? terms() : terms{{below(key, first)}};
  if (how == greater || how == greater_equal || how == not_equal) out.push_back({above(key, first)});
  if ((how == less || how == less_equal || how == not_equal) && first > 0) out.push_back({below(key, first)});
  if (labels.size() == 1) {
    // The last label: "or equal" is one number further.
    const auto rest = compare({}, how, value.subspan(1));
    if (rest.empty()) return out;
    if (how == greater || how == greater_equal) return {{from(key, first)}};
    if (how == less || how == less_equal) return {{below(key, first + 1)}};
  }
  with(is(key, first), compare(labels.subspan(1), how, value.subspan(1)), out);
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
  std::optional<std::vector<std::string>> in;
  std::vector<expression> others;

  /// False: no number does.
  bool settle() {
    if (in) {
      std::erase_if(*in, [&](const std::string& text) {
        const auto value = number(text);
        const bool bounded = above != std::numeric_limits<long>::min() || below != std::numeric_limits<long>::max();
        return bounded && (!value || *value <= above || *value >= below);
      });
      return !in->empty();
    }
    return above == std::numeric_limits<long>::min() || below == std::numeric_limits<long>::max() || above + 1 < below;
  }
  void take(const expression& one) {
    const auto value = one.values.size() == 1 ? number(one.values.front()) : std::nullopt;
    if (one.how == "Gt" && value) {
      above = std::max(above, *value);
    } else if (one.how == "Lt" && value) {
      below = std::min(below, *value);
    } else if (one.how == "Exists") {
      exists = true;
    } else if (one.how == "In") {
      if (!in) in = one.values;
      std::erase_if(*in,
                    [&](const std::string& text) { return std::ranges::find(one.values, text) == one.values.end(); });
    } else {
      others.push_back(one);
    }
  }
  void write(const std::string& key, term& to) const {
    if (in) {
      to.push_back({key, "In", *in});
    } else {
      const bool low = above != std::numeric_limits<long>::min(), high = below != std::numeric_limits<long>::max();
      if (low) to.push_back({key, "Gt", {std::to_string(above)}});
      if (high) to.push_back({key, "Lt", {std::to_string(below)}});
      if (exists && !low && !high) to.push_back({key, "Exists", {}});
    }
    to.insert(to.end(), others.begin(), others.end());
  }
};

/// Empty where the term can never hold.
std::optional<term> simplified(const term& of) {
  term out;
  std::vector<std::pair<std::string, range>> numbers;
  for (const auto& one : of) {
    if (std::ranges::find(number_keys, one.key) == number_keys.end()) {
      if (std::ranges::find(out, one) == out.end()) out.push_back(one);
      continue;
    }
    auto at = std::ranges::find(numbers, one.key, &std::pair<std::string, range>::first);
    if (at == numbers.end()) at = numbers.insert(numbers.end(), {one.key, range()});
    at->second.take(one);
  }
  for (auto& [key, held] : numbers) {
    const bool absent = std::ranges::any_of(held.others, [](const auto& one) { return one.how == "DoesNotExist"; });
    const bool present = held.in || held.exists || held.above != std::numeric_limits<long>::min() ||
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
  return std::ranges::all_of(wide,
                             [&](const expression& one) { return std::ranges::find(narrow, one) != narrow.end(); });
}

void keep(term one, terms& to) {
  if (std::ranges::any_of(to, [&](const term& other) { return within(one, other); })) return;
  std::erase_if(to, [&](const term& other) { return within(other, one); });
  to.push_back(std::move(one));
}

// ---- JSON

expression expression_of(const json& of) {
  expression out{of.value("key", ""), of.value("operator", ""), {}};
  const auto values = of.find("values");
  if (values != of.end() && values->is_array()) {
    for (const auto& one : *values) {
      if (one.is_string()) out.values.push_back(one);
    }
  }
  return out;
}

json json_of(const expression& of) {
  json out = {{"key", of.key}, {"operator", of.how}};
  if (!of.values.empty()) out["values"] = of.values;
  return out;
}

const json* member(const json* of, const char* name) {
  if (!of || !of->is_object()) return nullptr;
  const auto at = of->find(name);
  return at == of->end() || at->is_null() ? nullptr : &*at;
}

term expressions_of(const json& node_selector_term) {
  term out;
  const auto* list = member(&node_selector_term, "matchExpressions");
  if (!list || !list->is_array()) return out;
  for (const auto& one : *list) {
    if (one.is_object()) out.push_back(expression_of(one));
  }
  return out;
}

}  // namespace

vocabulary vocabulary_of(std::span<const node_facts* const> nodes) {
  vocabulary out;
  for (const auto* one : nodes) out.found = out.found || (!one->labelled && one->found);
  return out;
}

std::optional<terms> product(const terms& a, const terms& b) {
  terms out;
  for (const auto& left : a) {
    for (const auto& right : b) {
      auto both = left;
      both.insert(both.end(), right.begin(), right.end());
      if (auto one = simplified(both)) keep(std::move(*one), out);
      if (out.size() > max_terms) return std::nullopt;
    }
  }
  return out;
}

namespace {

terms terms_of(const condition& needed, const vocabulary& by) {
  switch (needed.of) {
    case property::brand:
      return {{}};
    case property::arch:
      return compare(capability_keys, needed.how, needed.value);
    case property::driver:
      return compare(driver_keys, needed.how, needed.value);
    case property::cuda:
      break;
  }
  terms out;
  if (by.manual) out = compare(manual_cuda, needed.how, needed.value);
  if (by.found) {
    for (auto one : compare(found_cuda, needed.how, needed.value)) {
      one.insert(one.begin(), {std::string(keys::cuda_major), "DoesNotExist", {}});
      out.push_back(std::move(one));
    }
  }
  return out;
}

std::optional<terms> terms_of(const requirement& needed, const vocabulary& by) {
  if (needed.any_of.empty()) return terms{{}};
  terms out;
  for (const auto& all : needed.any_of) {
    std::optional<terms> one = terms{{}};
    for (const auto& each : all) {
      one = product(*one, terms_of(each, by));
      if (!one) return std::nullopt;
    }
    for (auto& each : *one) keep(std::move(each), out);
    if (out.size() > max_terms) return std::nullopt;
  }
  return out;
}

}  // namespace

std::optional<terms> terms_of(std::span<const requirement> needed, const vocabulary& by) {
  std::optional<terms> out = terms{{}};
  for (const auto& one : needed) {
    const auto next = terms_of(one, by);
    if (!next) return std::nullopt;
    out = product(*out, *next);
    if (!out) return std::nullopt;
  }
  return out;
}

bool matches(const term& of, const kube::packed_map& labels) {
  return std::ranges::all_of(of, [&](const expression& one) {
    const auto is = labels.find(one.key);
    if (one.how == "Exists") return is.has_value();
    if (one.how == "DoesNotExist") return !is.has_value();
    const bool listed = is && std::ranges::find(one.values, *is) != one.values.end();
    if (one.how == "In") return listed;
    if (one.how == "NotIn") return !listed;
    const auto value = is ? number(*is) : std::nullopt;
    const auto limit = one.values.size() == 1 ? number(one.values.front()) : std::nullopt;
    if (!value || !limit) return false;
    return one.how == "Gt" ? *value > *limit : one.how == "Lt" && *value < *limit;
  });
}

bool matches(const terms& of, const kube::packed_map& labels) {
  return std::ranges::any_of(of, [&](const term& one) { return matches(one, labels); });
}

merge merged(const json& own, const terms& needed) {
  using kind = merge::kind;
  if (needed.empty()) return {kind::contradiction, {}};
  if (std::ranges::any_of(needed, &term::empty)) return {};
  json out = json::array();
  const auto add = [&](json base, const term& all) {
    base["matchExpressions"] = json::array();
    for (const auto& one : all) base["matchExpressions"].push_back(json_of(one));
    if (std::ranges::find(out, base) == out.end()) out.push_back(std::move(base));
  };
  if (!own.is_array() || own.empty()) {
    for (const auto& one : needed) add(json::object(), one);
    return {kind::changed, std::move(out)};
  }
  for (const auto& one : own) {
    const auto has = expressions_of(one);
    const auto* fields = member(&one, "matchFields");
    const bool empty = has.empty() && (!fields || !fields->is_array() || fields->empty());
    if (empty) continue;  // it matches nothing, and with ours beside it would match something
    const auto both = product({has}, needed);
    if (!both) return {kind::too_many, {}};
    for (const auto& each : *both) add(one, each);
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
  for (const auto& one : *list) {
    term kept;
    for (auto& each : expressions_of(one)) {
      const bool about_cuda = each.key == keys::cuda_major || each.key == keys::cuda_minor ||
                              each.key == keys::found_major || each.key == keys::found_minor;
      if (about_cuda) kept.push_back(std::move(each));
    }
    out.push_back(std::move(kept));
  }
  const bool about_cuda = std::ranges::any_of(out, [](const term& one) { return !one.empty(); });
  return about_cuda ? out : terms();
}

kube::packed_map labels_of(const version& cuda) {
  const auto major = std::to_string(cuda.major), minor = std::to_string(cuda.minor);
  return kube::packed_map::of(
      {{keys::cuda_major, major}, {keys::cuda_minor, minor}, {keys::found_major, major}, {keys::found_minor, minor}});
}

/// "12.0-12.2", "12.4", "13.x" for all we know of a major version. `of` is in rising order.
std::string ranges_in(int major, const std::vector<version>& of) {
  const auto known = std::ranges::count_if(toolkits(), [&](const auto& row) { return row.cuda.major == major; });
  if (std::cmp_equal(of.size(), known)) return std::to_string(major) + ".x";
  std::string out;
  const auto follows = [](const version& a, const version& b) {
    // 12.7 has no toolkit: neighbours in the table are neighbours.
    return std::ranges::none_of(toolkits(), [&](const auto& row) { return row.cuda > a && row.cuda < b; });
  };
  for (std::size_t i = 0; i < of.size();) {
    auto end = i;
    while (end + 1 < of.size() && follows(of[end], of[end + 1])) ++end;
    out += (out.empty() ? "" : ", ") + to_string(of[i]) + (end > i ? "-" + to_string(of[end]) : "");
    i = end + 1;
  }
  return out;
}

}  // namespace

std::optional<shut_out> judge_affinity(const json& pod_spec) {
  const auto asked = cuda_terms(pod_spec);
  if (asked.empty()) return std::nullopt;
  std::optional<version> oldest;
  for (const auto& row : toolkits()) {
    if (matches(asked, labels_of(row.cuda))) oldest = row.cuda;  // newest first
  }
  if (!oldest) return std::nullopt;
  std::map<int, std::vector<version>, std::greater<>> lost;
  bool newer = false;
  for (const auto& row : toolkits()) {
    if (row.cuda.major < oldest->major || matches(asked, labels_of(row.cuda))) continue;
    newer = newer || row.cuda > *oldest;
    auto& of_major = lost[row.cuda.major];
    of_major.insert(of_major.begin(), row.cuda);
  }
  if (!newer) return std::nullopt;
  shut_out out{{}, *oldest};
  for (const auto& [major, all] : lost) out.versions += (out.versions.empty() ? "" : " and ") + ranges_in(major, all);
  return out;
}

std::string text_of(const shut_out& of) {
  return "spec.affinity: the node affinity on CUDA versions shuts out CUDA " + of.versions +
         ", because it compares major and minor each for itself; a driver that knows a newer CUDA runs older images. " +
         "Versions are pairs: (major Gt " + std::to_string(of.from.major) + ") or (major In [" +
         std::to_string(of.from.major) + "]" +
         (of.from.minor > 0 ? " and minor Gt " + std::to_string(of.from.minor - 1) : std::string()) +
         "); the annotation " + std::string(names::cuda_annotation) + ": \">=" + to_string(of.from) +
         "\" has it written for you";
}

}  // namespace reconcilers::compat
