#include "cli/lint/lint_workload.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "api/names.hpp"
#include "kube/quantity.hpp"
#include "reconcilers/cuda/admission.hpp"
#include "reconcilers/declarations/pod_spec.hpp"
#include "text/resource_name.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

namespace crl = reconcilers::crl;
using crl::language;
using yaml::node;

/// Resources a container may name without a domain; k8s.io/kubernetes pkg/apis/core/helper
/// IsStandardContainerResourceName.
bool is_native(std::string_view name) {
  return name == "cpu" || name == "memory" || name == "ephemeral-storage" || name.starts_with("hugepages-") ||
         crl::fault_of_extended_resource(name) == crl::resource_name_fault::native_domain;
}

std::string_view kind_of(const node& of, language in) {
  const bool zh = in == language::zh;
  if (of.sequence()) return zh ? "列表" : "a list";
  if (of.mapping()) return zh ? "映射" : "a mapping";
  return zh ? "单个值" : "a single value";
}

/// A quantity without its sign and suffix, and without leading zeros.
struct amount_text {
  std::string_view whole, fraction;
};

std::string_view digits_of(std::string_view& text) {
  const auto digits = text.substr(0, std::min(text.find_first_not_of("0123456789"), text.size()));
  text.remove_prefix(digits.size());
  return digits;
}

// What follows is resource.ParseQuantity and Quantity.MilliValue of apimachinery, because the API server asks whether
// MilliValue() is a multiple of 1,000 (ValidateResourceQuantityValue): parts of less than a thousandth round up to one,
// and what an int64 cannot hold wraps around, or is 0.

__extension__ using wide = unsigned __int128;
constexpr std::int64_t int64_most = std::numeric_limits<std::int64_t>::max();

bool thousands(std::uint64_t milli) { return static_cast<std::int64_t>(milli) % 1000 == 0; }

long exponent_of(std::string_view suffix) {
  static constexpr std::array<std::pair<std::string_view, long>, 10> decimal{
      {{"", 0}, {"n", -9}, {"u", -6}, {"m", -3}, {"k", 3}, {"M", 6}, {"G", 9}, {"T", 12}, {"P", 15}, {"E", 18}}};
  const auto known = std::ranges::find(decimal, suffix, &std::pair<std::string_view, long>::first);
  if (known != decimal.end()) return known->second;
  long out = 0;
  const auto power = suffix.substr(suffix.size() > 1 && suffix[1] == '+' ? 2 : 1);
  std::from_chars(power.data(), power.data() + power.size(), out);
  return out;
}

bool whole_in_decimal(const amount_text& of, long exponent) {
  const auto digits = std::string(of.whole) + std::string(of.fraction);
  const long milli = exponent - static_cast<long>(of.fraction.size()) + 3;  // digits x 10^milli thousandths
  const bool fast = digits.size() <= 18 && milli >= -6;
  // Of a power that ParseQuantity multiplies by step by step.
  if (fast && milli > 3 && milli != 6 && milli != 9) return true;
  const auto kept =
      milli < 0 ? digits.substr(0, digits.size() - std::min(digits.size(), static_cast<std::size_t>(-milli))) : digits;
  const bool rest = digits.find_first_not_of('0', kept.size()) != std::string::npos;
  std::uint64_t value = 0;
  for (const char c : kept) value = value * 10 + static_cast<std::uint64_t>(c - '0');
  for (long i = 0; i < std::min(milli, 64L); ++i) value *= 10;
  return thousands(value + (rest ? 1 : 0));
}

/// x 2^exponent. Of the fraction 18 digits count.
bool whole_in_binary(const amount_text& of, std::size_t exponent) {
  if (of.whole.size() > 19) return true;  // as much as an int64 holds
  wide value = 0, part = 0, one = 1;
  for (const char c : of.whole) value = value * 10 + static_cast<unsigned>(c - '0');
  for (const char c : of.fraction.substr(0, 18)) {
    part = part * 10 + static_cast<unsigned>(c - '0');
    one *= 10;
  }
  part <<= exponent;
  value = (value << exponent) + part / one;
  if (value > static_cast<wide>(int64_most) || (value == static_cast<wide>(int64_most) && part % one != 0)) return true;
  return thousands(static_cast<std::uint64_t>(value * 1000 + (part % one * 1000 + one - 1) / one));
}

class workload {
 public:
  workload(const manifest& of, language in, std::vector<lint_finding>& to, const known_cluster* known)
      : of_(of), in_(in), to_(to), known_(known), path_(pod_spec_path(of.kind)) {}

  void check(const crl::rule_set& rules) {
    const auto* spec = pod_spec_of(of_);
    if (!spec) return say(lint_code::spec_unreadable, of_.root->at, {.field = path_, .other = missing()});
    metadata(yaml::find(of_.root, "metadata"), "metadata");
    if (const auto path = pod_path(); !path.empty()) metadata(yaml::find(pod(), "metadata"), path + "metadata");
    not_text(yaml::find(spec, "nodeSelector"), path_ + ".nodeSelector[{}]");
    for (const auto* list : {"initContainers", "containers"}) containers(*spec, list, rules);
    if (!readable_ || is_exempt(of_.key.ns)) return;
    if (!rules.rules.empty()) hold_to(rules, *spec);
    compare_with_drivers(*spec);
  }

 private:
  struct container {
    const node* at;
    std::string path, title;
  };

  std::string_view missing() const { return in_ == language::zh ? "不存在" : "there is none"; }

  void say(lint_code what, yaml::place at, const lint_details& details) {
    to_.push_back(finding_of(what, of_, at, details, in_));
  }

  void metadata(const node* in, const std::string& path) {
    for (const auto* part : {"labels", "annotations"}) not_text(yaml::find(in, part), path + "." + part + "[{}]");
  }

  /// What the pods are made of: the object itself, or the template that their spec is in.
  const node* pod() const {
    const node* at = of_.root;
    for (std::string_view rest(path_.data(), path_.size() - std::string_view("spec").size()); at && !rest.empty();) {
      const auto dot = std::min(rest.find('.'), rest.size());
      at = yaml::find(at, rest.substr(0, dot));
      rest.remove_prefix(std::min(rest.size(), dot + 1));
    }
    return at;
  }
  std::string pod_path() const { return path_.substr(0, path_.size() - std::string_view("spec").size()); }

  static std::vector<std::pair<std::string_view, std::string_view>> texts_in(const node* of) {
    std::vector<std::pair<std::string_view, std::string_view>> out;
    if (!of || !of->mapping()) return out;
    for (const auto& one : of->entries) {
      if (one.value->scalar() && yaml::find_entry(of, one.key->text) == &one)
        out.emplace_back(one.key->text, one.value->text);
    }
    return out;
  }

  void not_text(const node* in, const std::string& path) {
    for (const auto& one : values_not_text(in, path)) to_.push_back(finding_of(one, of_, in_));
  }

  void containers(const node& spec, const std::string& list, const crl::rule_set& rules) {
    const auto* entry = yaml::find_entry(&spec, list);
    if (!entry || entry->value->is == node::shape::null) return;
    if (!entry->value->sequence()) return unreadable(path_ + "." + list, *entry->key, *entry->value);
    std::size_t index = 0;
    for (const auto* one : entry->value->items) {
      const auto path = path_ + "." + list + "[" + std::to_string(index++) + "]";
      if (!one->mapping()) {
        unreadable(path, *one, *one);
        continue;
      }
      const bool main = list == "containers";
      containers_.push_back(
          {one, path, (main ? "container " : "init container ") + std::string(yaml::text_at(one, "name"))});
      resources(containers_.back(), rules);
    }
  }

  void unreadable(const std::string& field, const node& at, const node& is) {
    readable_ = false;
    say(lint_code::spec_unreadable, at.at, {.field = path_, .other = field + ": " + std::string(kind_of(is, in_))});
  }

  void resources(const container& of, const crl::rule_set& rules) {
    const auto* entry = yaml::find_entry(of.at, "resources");
    if (!entry || entry->value->is == node::shape::null) return;
    const auto path = of.path + ".resources";
    if (!entry->value->mapping()) return unreadable(path, *entry->key, *entry->value);
    for (const auto* part : {"limits", "requests"}) {
      const auto* amounts = yaml::find_entry(entry->value, part);
      if (!amounts || amounts->value->is == node::shape::null) continue;
      const auto part_path = path + "." + part;
      if (!amounts->value->mapping()) {
        unreadable(part_path, *amounts->key, *amounts->value);
        continue;
      }
      for (const auto* key : yaml::repeated_keys(amounts->value))
        say(lint_code::written_twice, key->at, {.field = field(part_path, key->text)});
      for (const auto& one : amounts->value->entries) {
        if (yaml::find_entry(amounts->value, one.key->text) == &one && !is_native(one.key->text))
          amount(of, part_path, one, rules);
      }
    }
    compare(of, *entry->value);
  }

  static std::string field(const std::string& path, std::string_view key) {
    return path + "[" + crl::shown(key, 320) + "]";
  }

  void amount(const container& of, const std::string& path, const node::entry& one, const crl::rule_set& rules) {
    const std::string& key = one.key->text;
    const auto where = field(path, key);
    if (!crl::is_extended_resource(key)) {
      wrong_.emplace(of.at, key);
      return say(lint_code::resource_name, one.key->at, {.field = where, .value = key, .hint = meant(key, rules)});
    }
    const auto text = one.value->is == node::shape::null ? "0" : amount_at(*one.value);
    const auto value = one.value->scalar() ? kube::parse_quantity(text) : std::nullopt;
    const auto whole = value ? std::to_string(*value) : std::string();
    const lint_details details{.field = where, .value = text, .key = key, .hint = whole};
    if (one.value->is == node::shape::null || (value && *value >= 0 && is_whole(text))) {
      const bool limit = path.ends_with(".limits");  // said once
      if (known_ && limit && value.value_or(0) != 0 && known_->resources.lacks(key))
        say(lint_code::unknown_resource, one.key->at,
            {.field = where, .value = key, .key = key, .hint = known_->resources.nearest(key)});
      return;
    }
    wrong_.emplace(of.at, key);
    if (!value) return say(lint_code::amount_malformed, one.key->at, details);
    if (*value > int64_most / 1000) return say(lint_code::amount_too_large, one.key->at, details);
    say(*value < 0 ? lint_code::amount_negative : lint_code::amount_fraction, one.key->at, details);
  }

  static std::string amount_at(const node& of) {
    const auto text = yaml::canonical(of);
    return std::string(of.scalar() ? crl::amount_in(text) : text);
  }

  /// The declared resource a name without a domain stands for.
  static std::string meant(std::string_view name, const crl::rule_set& rules) {
    for (const auto& one : rules.rules) {
      if (one.key.ends_with("/" + std::string(name))) return one.key;
    }
    return {};
  }

  void compare(const container& of, const node& resources) {
    const auto* limits = yaml::find(&resources, "limits");
    const auto* requests = yaml::find(&resources, "requests");
    if (!requests || !requests->mapping()) return;
    for (const auto& one : requests->entries) {
      const auto& key = one.key->text;
      const bool judged = yaml::find_entry(requests, key) == &one && crl::is_extended_resource(key);
      if (!judged || wrong_.contains({of.at, key})) continue;
      const auto where = field(of.path + ".resources.requests", key);
      const auto asked = amount_at(*one.value);
      const auto* limit = yaml::find(limits, key);
      const auto most = limit ? amount_at(*limit) : std::string();
      if (limit && kube::parse_quantity(asked).value_or(0) == kube::parse_quantity(most).value_or(0)) continue;
      wrong_.emplace(of.at, key);
      say(limit ? lint_code::request_differs : lint_code::request_without_limit, one.key->at,
          {.field = where, .value = asked, .key = key, .other = most});
    }
  }

  void hold_to(const crl::rule_set& rules, const node& spec) {
    const auto json = yaml::to_json(spec);
    const auto text = json ? json->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) : std::string();
    auto read = crl::parse_pod_spec(text);
    if (!read) return say(lint_code::spec_unreadable, spec.at, {.field = path_, .other = read.error().what});
    const auto* about = yaml::find(pod(), "metadata");
    read->amounts =
        crl::pod_amounts_in(texts_in(yaml::find(about, "annotations")), texts_in(yaml::find(about, "labels")));
    const auto ruling = crl::evaluate(rules, *read);
    for (const auto* all : {&ruling.refused, &ruling.said}) {
      for (const auto& one : *all) object(one);
    }
  }

  /// What the webhook for compatibility says, where nothing is refused.
  void compare_with_drivers(const node& spec) {
    auto json = yaml::to_json(spec);
    if (!json) return;
    nlohmann::json made = {{"spec", std::move(*json)}};
    if (const auto* about = yaml::find(pod(), "metadata")) {
      if (auto metadata = yaml::to_json(*about)) made["metadata"] = std::move(*metadata);
    }
    const auto nodes = known_ ? std::span(known_->nodes) : std::span<const kube::node* const>();
    const auto found = reconcilers::compat::admit(made, nodes, {.mode = reconcilers::enforcement::warn});
    for (const auto& text : found.warnings) to_.push_back(finding_of_compatibility(text, of_, spec.at, path_));
  }

  void object(const crl::objection& to) {
    if (to.what == crl::objected::too_large) {
      const auto* spec = pod_spec_of(of_);
      return to_.push_back(finding_of(to, of_, spec->at, path_, in_));
    }
    const auto at = std::ranges::find(containers_, to.container, &container::title);
    // That requests differ is said for every resource, declared or not; what follows from a wrong amount is not said.
    if (to.what == crl::objected::unequal || at == containers_.end() || wrong_.contains({at->at, to.key})) return;
    if (to.what == crl::objected::pod_amount) return object_to_amount_of_pod(to, at->at->at);
    const auto* limits = yaml::find(yaml::find(at->at, "resources"), "limits");
    const auto* entry = yaml::find_entry(limits, to.key);
    if (!entry) entry = yaml::find_entry(limits, to.other);
    to_.push_back(
        finding_of(to, of_, entry ? entry->key->at : at->at->at, field(at->path + ".resources.limits", to.key), in_));
  }

  void object_to_amount_of_pod(const crl::objection& to, yaml::place otherwise) {
    const auto* about = yaml::find(pod(), "metadata");
    for (const auto* part : {"annotations", "labels"}) {
      if (!quota::is_pod_amount(to.other, part == std::string_view("labels"))) continue;
      const auto* entry = yaml::find_entry(yaml::find(about, part), to.other);
      to_.push_back(finding_of(to, of_, entry ? entry->key->at : otherwise,
                               field(pod_path() + "metadata." + part, to.other), in_));
    }
  }

  const manifest& of_;
  language in_;
  std::vector<lint_finding>& to_;
  const known_cluster* known_;
  std::string path_;
  std::vector<container> containers_;
  std::set<std::pair<const node*, std::string>> wrong_;  ///< container and key whose amount is no amount
  bool readable_ = true;
};

}  // namespace

void lint_workload(const manifest& of, const crl::rule_set& rules, language in, std::vector<lint_finding>& to,
                   const known_cluster* known) {
  workload(of, in, to, known).check(rules);
}

bool is_whole(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  text.remove_prefix(std::min(text.find_first_not_of('0'), text.size()));
  amount_text of;
  of.whole = digits_of(text);
  if (of.whole.empty()) of.whole = "0";
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    of.fraction = digits_of(text);
  }
  static constexpr std::string_view binary = "KMGTPE";
  if (text.size() == 2 && text.ends_with('i')) return whole_in_binary(of, 10 * (binary.find(text.front()) + 1));
  return whole_in_decimal(of, exponent_of(text));
}

bool is_exempt(std::string_view ns) { return reconcilers::names::is_system(ns); }

}  // namespace cli
