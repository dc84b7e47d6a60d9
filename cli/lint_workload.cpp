#include "cli/lint_workload.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "kube/quantity.hpp"
#include "reconcilers/crl/pod_spec.hpp"
#include "reconcilers/crl/resource_name.hpp"
#include "reconcilers/crl/text.hpp"
#include "reconcilers/names.hpp"

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

class workload {
 public:
  workload(const manifest& of, language in, std::vector<lint_finding>& to, const known_resources* known)
      : of_(of), in_(in), to_(to), known_(known), path_(pod_spec_path(of.kind)) {}

  void check(const crl::rule_set& rules) {
    const auto* spec = pod_spec_of(of_);
    if (!spec) return say(lint_code::spec_unreadable, of_.root->at, {.field = path_, .other = missing()});
    metadata(yaml::find(of_.root, "metadata"), "metadata");
    not_text(yaml::find(spec, "nodeSelector"), path_ + ".nodeSelector[{}]");
    for (const auto* list : {"initContainers", "containers"}) containers(*spec, list, rules);
    if (readable_ && !rules.rules.empty() && !is_exempt(of_.key.ns)) hold_to(rules, *spec);
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

  /// The pods' own labels and annotations are two levels above their spec.
  void metadata(const node* in, const std::string& path) {
    for (const auto* part : {"labels", "annotations"}) not_text(yaml::find(in, part), path + "." + part + "[{}]");
    const auto above = path_.rfind('.');
    if (path != "metadata" || above == std::string::npos) return;
    const node* at = of_.root;
    for (std::string_view rest(path_.data(), above); at && !rest.empty();) {
      const auto dot = std::min(rest.find('.'), rest.size());
      at = yaml::find(at, rest.substr(0, dot));
      rest.remove_prefix(std::min(rest.size(), dot + 1));
    }
    metadata(yaml::find(at, "metadata"), path_.substr(0, above) + ".metadata");
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
    const auto text = one.value->is == node::shape::null ? "0" : yaml::canonical(*one.value);
    const auto value = one.value->scalar() ? kube::parse_quantity(text) : std::nullopt;
    const auto whole = value ? std::to_string(*value) : std::string();
    const lint_details details{.field = where, .value = text, .key = key, .hint = whole};
    if (one.value->is == node::shape::null || (value && *value >= 0 && is_whole(text))) {
      const bool limit = path.ends_with(".limits");  // said once
      if (known_ && limit && value.value_or(0) != 0 && known_->lacks(key))
        say(lint_code::unknown_resource, one.key->at,
            {.field = where, .value = key, .key = key, .hint = known_->nearest(key)});
      return;
    }
    wrong_.emplace(of.at, key);
    if (!value) return say(lint_code::amount_malformed, one.key->at, details);
    say(*value < 0 ? lint_code::amount_negative : lint_code::amount_fraction, one.key->at, details);
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
      const auto asked = yaml::canonical(*one.value);
      const auto* limit = yaml::find(limits, key);
      const auto most = limit ? yaml::canonical(*limit) : std::string();
      if (limit && kube::parse_quantity(asked).value_or(0) == kube::parse_quantity(most).value_or(0)) continue;
      wrong_.emplace(of.at, key);
      say(limit ? lint_code::request_differs : lint_code::request_without_limit, one.key->at,
          {.field = where, .value = asked, .key = key, .other = most});
    }
  }

  void hold_to(const crl::rule_set& rules, const node& spec) {
    const auto json = yaml::to_json(spec);
    const auto text = json ? json->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) : std::string();
    const auto pod = crl::parse_pod_spec(text);
    if (!pod) return say(lint_code::spec_unreadable, spec.at, {.field = path_, .other = pod.error().what});
    const auto ruling = crl::evaluate(rules, pod->containers, pod->runtime_class);
    for (const auto* all : {&ruling.refused, &ruling.said}) {
      for (const auto& one : *all) object(one);
    }
  }

  void object(const crl::objection& to) {
    const auto at = std::ranges::find(containers_, to.container, &container::title);
    // That requests differ is said for every resource, declared or not; what follows from a wrong amount is not said.
    if (to.what == crl::objected::unequal || at == containers_.end() || wrong_.contains({at->at, to.key})) return;
    const auto* limits = yaml::find(yaml::find(at->at, "resources"), "limits");
    const auto* entry = yaml::find_entry(limits, to.key);
    if (!entry) entry = yaml::find_entry(limits, to.other);
    to_.push_back(
        finding_of(to, of_, entry ? entry->key->at : at->at->at, field(at->path + ".resources.limits", to.key), in_));
  }

  const manifest& of_;
  language in_;
  std::vector<lint_finding>& to_;
  const known_resources* known_;
  std::string path_;
  std::vector<container> containers_;
  std::set<std::pair<const node*, std::string>> wrong_;  ///< container and key whose amount is no amount
  bool readable_ = true;
};

}  // namespace

void lint_workload(const manifest& of, const crl::rule_set& rules, language in, std::vector<lint_finding>& to,
                   const known_resources* known) {
  workload(of, in, to, known).check(rules);
}

bool is_whole(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const auto end = std::min(text.find_first_not_of("0123456789."), text.size());
  std::string digits(text.substr(0, end));
  const auto suffix = text.substr(end);
  const auto point = std::min(digits.find('.'), digits.size());
  auto decimals = static_cast<long>(digits.size() - std::min(digits.size(), point + 1));
  std::erase(digits, '.');
  const auto last = digits.find_last_not_of('0');
  if (last == std::string::npos) return true;
  decimals -= static_cast<long>(digits.size() - last - 1);
  digits.resize(last + 1);
  // What is left is digits x 10^-decimals, and digits do not end in 0.
  if (suffix.ends_with('i')) {
    if (decimals <= 0) return true;
    const auto binary = 10 * static_cast<long>(std::string_view("KMGTPE").find(suffix.front()) + 1);
    std::uint64_t number = 0;
    const auto [stopped, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (wrong != std::errc{} || decimals > 27 || binary < decimals) return false;
    for (long i = 0; i < decimals; ++i, number /= 5) {
      if (number % 5 != 0) return false;
    }
    return true;
  }
  static constexpr std::array<std::pair<std::string_view, long>, 9> decimal{
      {{"n", -9}, {"u", -6}, {"m", -3}, {"k", 3}, {"M", 6}, {"G", 9}, {"T", 12}, {"P", 15}, {"E", 18}}};
  const auto known = std::ranges::find(decimal, suffix, &std::pair<std::string_view, long>::first);
  long exponent = known != decimal.end() ? known->second : 0;
  if (known == decimal.end() && suffix.size() > 1) {
    auto power = suffix.substr(suffix[1] == '+' ? 2 : 1);
    std::from_chars(power.data(), power.data() + power.size(), exponent);
  }
  return decimals <= exponent;
}

bool is_exempt(std::string_view ns) { return reconcilers::names::is_system(ns); }

}  // namespace cli
