#include "cli/lint/pod_amounts.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "api/engine_words.hpp"
#include "cli/lint/kubernetes_fields.hpp"
#include "cli/lint/refused_amounts.hpp"
#include "cli/lint/whole_quantity.hpp"
#include "kube/quantity_text.hpp"
#include "quota/vocabulary.hpp"
#include "reconcilers/declarations/pod_spec.hpp"
#include "reconcilers/declarations/vocabulary.hpp"
#include "text/messages.hpp"
#include "text/nearest.hpp"
#include "text/resource_name.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

namespace declarations = reconcilers::declarations;
using text::yaml::node;

constexpr std::int64_t int64_most = std::numeric_limits<std::int64_t>::max();

/// Resources a container may name without a domain; k8s.io/kubernetes pkg/apis/core/helper
/// IsStandardContainerResourceName.
bool is_native(std::string_view name) {
  return name == "cpu" || name == "memory" || name == "ephemeral-storage" || name.starts_with("hugepages-") ||
         text::fault_of_extended_resource(name) == text::resource_name_fault::native_domain;
}

/// Keys that may have been meant: the declared ones, those of the modules, and those of other products.
std::vector<std::string_view> keys_of(const declarations::rule_set& rules) {
  std::vector<std::string_view> out;
  for (const auto& rule : rules.rules) out.emplace_back(rule.key);
  for (const auto& known : quota::resource_keys)
    if (!rules.find(known.key)) out.push_back(known.key);
  out.insert(out.end(), vendor_keys().begin(), vendor_keys().end());
  return out;
}

/// It counts hundredths of a card: at most 95 to 100 of them are a part of one.
bool counts_hundredths(std::string_view key) {
  const auto* known = quota::resource_key_of(key);
  return known && known->unit_mib == 0 && known->legal.max >= 95 && known->legal.max <= 100;
}

/// The number that a person meant by "50%" or, of a memory, by "16g" and "16GB"; empty: none is seen.
std::string number_meant(std::string_view key, std::string_view text) {
  const auto digits = text.substr(0, std::min(text.find_first_not_of("0123456789"), text.size()));
  if (digits.empty() || digits.size() > 9) return {};
  const auto unit = text::lower_case(text::trimmed(text.substr(digits.size())));
  if (unit == "%" && counts_hundredths(key)) return std::string(digits);
  const auto* known = quota::resource_key_of(key);
  if (!known || known->unit_mib == 0) return {};
  const auto mib = unit == "g" || unit == "gb" || unit == "gib" ? 1024 : unit == "mb" || unit == "mib" ? 1 : 0;
  if (mib == 0) return {};
  std::int64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return std::to_string(quota::in_unit(*known, (number * mib) << 20));
}

/// What was meant by bytes ("4Gi") for a resource that counts memory in another unit, in that unit and rounded up.
/// Empty for every other text: 8k and 8Ki are so many of the unit.
std::optional<std::int64_t> memory_meant(const quota::resource_key& resource_key, std::string_view text) {
  if (resource_key.unit_mib == 0) return std::nullopt;
  const auto suffix = text.substr(std::min(text.find_last_of("0123456789.") + 1, text.size()));
  const bool large = !suffix.empty() && std::string_view("MGTPE").contains(suffix.front()) &&
                     (suffix.size() == 1 || suffix.substr(1) == "i");  // as an exponent, E has a number behind it
  const auto bytes = large ? kube::parse_quantity(text) : std::nullopt;
  if (!bytes || *bytes <= 0) return std::nullopt;
  return quota::in_unit(resource_key, *bytes);
}

class amount_judge {
 public:
  explicit amount_judge(judged_pod& pod) : pod_(pod) {}

  /// Amounts that stand in no container: of a ResourceQuota or a LimitRange.
  void check_amounts(const amounts_at& all, const declarations::rule_set& rules) {
    if (!all.amounts || !all.amounts->mapping()) return;
    const container nowhere{all.amounts, all.path, {}};
    for (const auto& entry : all.amounts->entries) {
      const std::string_view key = entry.key->text;
      if (!key.starts_with(all.prefix) || is_native(key.substr(all.prefix.size()))) continue;
      if (all.prefix.empty() || text::is_extended_resource(key.substr(all.prefix.size())))
        amount(nowhere, all.path, entry, rules, all.prefix);
    }
    if (!all.path.ends_with(".default") || !pod_.wrong.empty()) return;
    kube::pod made;
    made.containers.resize(1);
    made.containers[0].limits = quantities_in(all.amounts);
    for (const auto& [container, refusal] : refused_amounts(made))
      if (refusal.kind != quota::wrong::needs_partner)  // a container may bring it
        refuse(refusal, all.amounts, all.path, all.amounts->location);
  }

  void check(const declarations::rule_set& rules) {
    for (const auto& container : pod_.containers) resources(container, rules);
    if (pod_.is_held() && !rules.rules.empty()) hold_to(rules, *pod_.form.spec);
    refuse_amounts(rules);
  }

  /// Resources that stand without a pod around them: what a container will have, as the kind's controller makes it.
  void check_resources_alone(const declarations::rule_set& rules) {
    const auto name = pod_.path.substr(pod_.path.rfind('.') + 1);
    pod_.containers.push_back({pod_.form.spec, pod_.path, "container " + name});
    resources(pod_.containers.back(), rules);
    auto amounts = text::yaml::to_json(*text::yaml::find(pod_.form.spec, "resources"));
    if (pod_.is_held() && !rules.rules.empty() && amounts)
      hold_to(rules, nlohmann::json{{"containers", {{{"name", name}, {"resources", std::move(*amounts)}}}}});
    refuse_amounts(rules);
  }

 private:
  using container = judged_pod::container;

  /// Someone may add the partner that is missing: a webhook of the product where no node offers the key (`counts`), or
  /// a declaration, which only a caller with rules knows.
  static bool is_completed(const quota::refusal& refusal, const declarations::rule_set& rules) {
    const auto* known = quota::resource_key_of(refusal.key);
    const auto* partner = rules.find(refusal.other);
    return rules.rules.empty() || (known && !known->offered) || (partner && partner->fill);
  }

  /// Amounts that no node takes, of containers of which nothing else has been said.
  void refuse_amounts(const declarations::rule_set& rules) {
    const auto* about = text::yaml::find(pod_.form.holder, "metadata");
    auto annotations = texts_in(text::yaml::find(about, "annotations")),
         labels = texts_in(text::yaml::find(about, "labels"));
    kube::pod made;
    made.annotations = kube::packed_map::of(annotations);
    made.labels = kube::packed_map::of(labels);
    made.containers.resize(pod_.containers.size());
    for (std::size_t i = 0; i < pod_.containers.size(); ++i)
      made.containers[i].limits = quantities_in(limits_of(pod_.containers[i]));
    for (const auto& [container, refusal] : refused_amounts(made)) {
      const auto& place = pod_.containers[static_cast<std::size_t>(container - made.containers.data())];
      const bool is_said =
          pod_.objected.contains(place.item) ||
          std::ranges::any_of(pod_.wrong, [&](const auto& wrong) { return wrong.first == place.item; });
      const bool may_lack = is_exempt(pod_.manifest.key.ns) || is_completed(refusal, rules);
      if (is_said || (refusal.kind == quota::wrong::needs_partner && may_lack)) continue;
      refuse(refusal, limits_of(place), below(place.path, "resources.limits"), place.item->location);
    }
  }

  void refuse(const quota::refusal& refusal, const node* limits, const std::string& path, text::yaml::place otherwise) {
    const auto* entry = text::yaml::find_entry(limits, refusal.key);
    const auto words = api::words_of(refusal, pod_.locale);
    // The API server takes as many as one likes; of memory, amount_beyond_cards says it.
    const bool is_countless = refusal.below == quota::most;
    const auto* known = quota::resource_key_of(refusal.key);
    if (is_countless && known && known->unit_mib > 0) return;
    const auto code = is_countless ? lint_code::amount_beyond_nodes : lint_code::amounts_refused;
    pod_.say(code, entry ? entry->key->location : otherwise,
             {.field = field(path, refusal.key),
              .value = std::to_string(refusal.value),
              .key = refusal.key,
              .other = words});
  }

  void resources(const container& container, const declarations::rule_set& rules) {
    const auto* entry = text::yaml::find_entry(container.item, "resources");
    if (!entry || entry->value->is == node::shape::null) return;
    const auto path = below(container.path, "resources");
    if (!entry->value->mapping()) return pod_.unreadable(path, *entry->key, *entry->value);
    if (!pod_.form.alone && !pod_.known_kind)
      pod_.unknown_names(entry->value, path, *kubernetes_fields::find("ResourceRequirements"));
    for (const auto* part : {"limits", "requests"}) {
      const auto* amounts = text::yaml::find_entry(entry->value, part);
      if (!amounts || amounts->value->is == node::shape::null) continue;
      const auto part_path = path + "." + part;
      if (!amounts->value->mapping()) {
        pod_.unreadable(part_path, *amounts->key, *amounts->value);
        continue;
      }
      for (const auto& item : amounts->value->entries) {
        const auto& key = item.key->text;
        const bool counts = text::yaml::find_entry(amounts->value, key) == &item && !is_native(key);
        const auto device_class = pod_.known ? pod_.known->resources.class_of(key) : class_in_name(key);
        if (!device_class.empty() && part == std::string_view("limits"))
          pod_.say(lint_code::class_not_judged, item.key->location,
                   {.field = field(part_path, key), .value = device_class, .key = key});
        // What stands for a card there, "gpu: 1", only the kind's own controller knows.
        if (pod_.form.alone && !pod_.manifest.kind.empty() && !key.contains('/') && !is_native(key) &&
            (part == std::string_view("limits") || !text::yaml::find(limits_of(container), key)))
          pod_.say(lint_code::amount_not_judged, item.key->location,
                   {.field = field(part_path, key), .key = key, .other = pod_.manifest.kind});
        if (const auto card = card_of_native_domain(key); !card.empty())
          pod_.say(lint_code::resource_of_kubernetes, item.key->location,
                   {.field = field(part_path, key), .value = key, .key = key, .hint = card});
        if (counts && (!pod_.form.alone || key.contains('/')))  // without a pod around, other names may mean anything
          amount(container, part_path, item, rules);
      }
    }
    compare(container, *entry->value);
  }

  /// @param prefix of a ResourceQuota's keys
  void amount(const container& container, const std::string& path, const node::entry& entry,
              const declarations::rule_set& rules, std::string_view prefix = {}) {
    const auto key = entry.key->text.substr(prefix.size());
    const auto field_path = field(path, entry.key->text);
    if (!text::is_extended_resource(key)) {
      pod_.wrong.emplace(container.item, key);
      return pod_.say(lint_code::resource_name, entry.key->location,
                      {.field = field_path, .value = key, .hint = meant(key, rules)});
    }
    const bool is_missing = entry.value->is == node::shape::null ||
                            (entry.value->scalar() && type_of(*entry.value) == text::yaml::type::null);
    const auto text = is_missing ? "0" : amount_at(*entry.value);
    if (in_bytes(key, field_path, text, *entry.key)) {
      pod_.wrong.emplace(container.item, key);
      return;
    }
    const auto value = entry.value->scalar() || is_missing ? kube::parse_quantity(text) : std::nullopt;
    const auto whole = value ? std::to_string(*value) : std::string();
    const lint_details details{.field = field_path, .value = text, .key = key, .hint = whole};
    const bool whole_enough = !prefix.empty() || (value && is_whole(text));  // a quota may have a fraction
    if (value && *value >= 0 && whole_enough) {
      const bool limit = !path.ends_with(".requests");  // said once
      if (limit && is_missing) return pod_.say(lint_code::amount_missing, entry.key->location, details);
      if (limit && *value != 0) unknown(key, field_path, *entry.key, rules);
      const bool is_bound = path.ends_with(".min");  // of a LimitRange: as little as one likes
      if (limit && prefix.empty() && !is_bound) wrong_unit(details, *value, *entry.key, cards_of(container));
      return;
    }
    pod_.wrong.emplace(container.item, key);
    if (!value && text.contains("{{")) return pod_.say(lint_code::template_text, entry.key->location, details);
    if (!value) {
      const auto meant = number_meant(key, text);
      auto hinted = details;
      hinted.hint = meant;
      return pod_.say(lint_code::amount_malformed, entry.key->location, hinted);
    }
    if (*value > int64_most / 1000) return pod_.say(lint_code::amount_too_large, entry.key->location, details);
    if (const auto percent = percent_meant(key, text); !percent.empty()) {
      auto hinted = details;
      hinted.hint = percent;
      return pod_.say(lint_code::amount_fraction_of_share, entry.key->location, hinted);
    }
    pod_.say(*value < 0 ? lint_code::amount_negative : lint_code::amount_fraction, entry.key->location, details);
  }

  /// "50" for 0.5 of a key that counts hundredths of a card; empty: something else.
  static std::string percent_meant(std::string_view key, std::string_view text) {
    if (!counts_hundredths(key)) return {};
    double part = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), part);
    const bool is_part = problem == std::errc() && end == text.data() + text.size() && part >= 0.01 && part < 1;
    return is_part ? std::to_string(std::lround(100 * part)) : std::string();
  }

  /// A name that no one knows: in a cluster no node offers it; without one, it looks like a known name.
  void unknown(const std::string& key, const std::string& field_path, const node& place,
               const declarations::rule_set& rules) {
    const lint_details details{.field = field_path, .value = key, .key = key};
    if (pod_.known && pod_.known->resources.lacks(key) && pod_.known->resources.refused.contains(key)) {
      const auto& refused = pod_.known->resources.refused.find(key)->second;
      auto reasoned = details;
      const auto declaration = refused.config_map.to_string();
      reasoned.other = declaration, reasoned.hint = refused.reason_in(pod_.locale);
      return pod_.say(lint_code::declaration_refused, place.location, reasoned);
    }
    if (pod_.known && pod_.known->modules) {
      for (const auto& text :
           unserved_resources(*pod_.known->modules, pod_.known->resources, {{key, 1}}, pod_.locale)) {
        auto reasoned = details;
        reasoned.other = text;
        return pod_.say(lint_code::unserved_resource, place.location, reasoned);
      }
    }
    if (pod_.known && pod_.known->resources.lacks(key)) {
      auto hinted = details;
      const auto hint = pod_.known->resources.nearest(key);
      hinted.hint = hint;
      return pod_.say(lint_code::unknown_resource, place.location, hinted);
    }
    if (pod_.known || rules.find(key) || quota::resource_key_of(key) || is_vendor_key(key)) return;
    const auto hint = nearest_key(key, keys_of(rules));
    auto hinted = details;
    hinted.hint = hint;
    pod_.say(lint_code::unfamiliar_resource, place.location, hinted);
  }

  /// More than the cards have that the container gets, or less than any program with CUDA does with: a number of
  /// another unit.
  void wrong_unit(lint_details details, std::int64_t value, const node& place, std::size_t cards) {
    constexpr std::int64_t most_of_card = 300 << 10;  // MiB
    constexpr std::int64_t least_mib = 256, most_cards = 16;
    const auto* known = quota::resource_key_of(details.key);
    if (!known || known->unit_mib == 0 || value <= 0) return;
    const bool is_spread = known->on_pod.divides;  // over as many cards as a label of the pod says
    const auto count = cards > 0 && !is_spread ? std::min(static_cast<std::int64_t>(cards), most_cards) : most_cards;
    const auto most = most_of_card * count / known->unit_mib;
    const bool is_too_large = value > most;
    if (!is_too_large && value >= least_mib / known->unit_mib) return;
    const auto is_plausible = [&](std::int64_t meant) { return meant * known->unit_mib >= least_mib && meant <= most; };
    const auto of_mib = value < (std::int64_t{1} << 40) ? quota::in_unit(*known, value << 20) : 0;
    const auto of_bytes = quota::in_unit(*known, value);
    const auto of_kib = value < (std::int64_t{1} << 50) ? quota::in_unit(*known, value << 10) : 0;
    const auto of_gib = is_too_large ? 0 : quota::in_unit(*known, value << 30);
    const auto meant = !is_too_large                                 ? (is_plausible(of_gib) ? of_gib : 0)
                       : known->unit_mib > 1 && is_plausible(of_mib) ? of_mib
                       : is_plausible(of_bytes)                      ? of_bytes
                       : is_plausible(of_kib)                        ? of_kib
                                                                     : 0;
    const auto hint = meant > 0 ? std::to_string(meant) : std::string();
    details.hint = hint;
    details.other = quota::unit_of(*known);
    pod_.say(is_too_large ? lint_code::amount_beyond_cards : lint_code::amount_of_larger_unit, place.location, details);
  }

  /// Bytes ("4Gi") where the resource counts in a unit of memory; 8k is 8000 of it.
  bool in_bytes(const std::string& key, const std::string& field_path, std::string_view text, const node& place) {
    const auto* known = quota::resource_key_of(key);
    const auto meant = known ? memory_meant(*known, text) : std::nullopt;
    if (!meant) return false;
    const auto hint = std::to_string(*meant);
    pod_.say(lint_code::amount_in_bytes, place.location,
             {.field = field_path, .value = text, .key = key, .other = quota::unit_of(*known), .hint = hint});
    return true;
  }

  /// The known resource that a name without a domain stands for, or one in capitals.
  /// Characters that no name has (a blank that is not seen, a Cyrillic letter) and the scheme of an address are left
  /// out.
  static std::string meant(std::string_view name, const declarations::rule_set& rules) {
    auto lower = text::lower_case(name);
    std::erase_if(lower, [](char c) { return static_cast<unsigned char>(c) >= 0x80 || c == ' '; });
    if (const auto scheme = lower.find("://"); scheme != std::string::npos) lower.erase(0, scheme + 3);
    for (const auto key : keys_of(rules)) {
      if (key == lower || key.ends_with("/" + lower)) return std::string(key);
    }
    return nearest_key(lower, keys_of(rules));
  }

  void compare(const container& container, const node& resources) {
    const auto* limits = text::yaml::find(&resources, "limits");
    const auto* requests = text::yaml::find(&resources, "requests");
    if (!requests || !requests->mapping()) return;
    for (const auto& entry : requests->entries) {
      const auto& key = entry.key->text;
      if (is_native(key)) above_limit(container, limits, entry);
      const bool judged = text::yaml::find_entry(requests, key) == &entry && text::is_extended_resource(key);
      if (!judged || pod_.wrong.contains({container.item, key})) continue;
      const auto field_path = field(below(container.path, "resources.requests"), key);
      const auto requested = amount_at(*entry.value);
      const auto* limit = text::yaml::find(limits, key);
      const auto most = limit ? amount_at(*limit) : std::string();
      if (limit && kube::parse_quantity(requested).value_or(0) == kube::parse_quantity(most).value_or(0)) continue;
      pod_.wrong.emplace(container.item, key);
      pod_.say(limit ? lint_code::request_differs : lint_code::request_without_limit, entry.key->location,
               {.field = field_path, .value = requested, .key = key, .other = most});
    }
  }

  /// Of cpu, memory and others of Kubernetes, which it may oversell.
  void above_limit(const container& container, const node* limits, const node::entry& request) {
    const auto& key = request.key->text;
    const auto* limit = text::yaml::find(limits, key);
    if (!limit) return;
    const auto requested = amount_at(*request.value), most = amount_at(*limit);
    const auto wanted = key == "cpu" ? thousandths(requested) : kube::parse_quantity(requested),
               allowed = key == "cpu" ? thousandths(most) : kube::parse_quantity(most);
    if (wanted && allowed && *wanted > *allowed)
      pod_.say(lint_code::request_above_limit, request.key->location,
               {.field = field(below(container.path, "resources.requests"), key), .value = requested, .other = most});
  }

  /// Of a core; empty where the text is no plain number with or without an m.
  static std::optional<std::int64_t> thousandths(std::string_view text) {
    const bool is_milli = text.ends_with('m');
    if (is_milli) text.remove_suffix(1);
    double number = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (problem != std::errc() || end != text.data() + text.size() || !(std::abs(number) < 1e9)) return std::nullopt;
    return std::llround(number * (is_milli ? 1 : 1000));
  }

  void hold_to(const declarations::rule_set& rules, const node& spec) {
    const auto json = text::yaml::to_json(spec);
    hold_to(rules, json.value_or(nlohmann::json()));
  }

  void hold_to(const declarations::rule_set& rules, const nlohmann::json& spec) {
    const auto text = spec.is_object() ? spec.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) : "";
    auto read = declarations::parse_pod_spec(text);
    if (!read)
      return pod_.say(lint_code::spec_unreadable, pod_.form.spec->location,
                      {.field = pod_.path, .other = read.error().message});
    const auto* about = text::yaml::find(pod_.form.holder, "metadata");
    read->amounts = declarations::pod_amounts_in(texts_in(text::yaml::find(about, "annotations")),
                                                 texts_in(text::yaml::find(about, "labels")));
    const auto ruling = declarations::evaluate(rules, *read);
    for (const auto* all : {&ruling.refused, &ruling.warnings}) {
      for (const auto& entry : *all) object(entry);
    }
  }

  void object(const declarations::objection& objection) {
    if (objection.kind == declarations::objection_kind::too_large) {
      return pod_.findings.push_back(
          finding_of(objection, pod_.manifest, pod_.form.spec->location, pod_.path, pod_.locale));
    }
    const auto match = std::ranges::find(pod_.containers, objection.container, &container::title);
    // Differing requests are reported for every resource, declared or not; what follows from a wrong amount is not.
    if (objection.kind == declarations::objection_kind::unequal || match == pod_.containers.end() ||
        pod_.wrong.contains({match->item, objection.key}))
      return;
    pod_.objected.insert(match->item);
    if (objection.kind == declarations::objection_kind::pod_amount)
      return object_to_amount_of_pod(objection, match->item->location);
    const auto* limits = text::yaml::find(text::yaml::find(match->item, "resources"), "limits");
    const auto* entry = text::yaml::find_entry(limits, objection.key);
    if (!entry) entry = text::yaml::find_entry(limits, objection.other);
    pod_.findings.push_back(finding_of(objection, pod_.manifest, entry ? entry->key->location : match->item->location,
                                       field(below(match->path, "resources.limits"), objection.key), pod_.locale));
    // Without a cluster it is the module's default that says so.
    const bool assumed = !pod_.known && objection.kind == declarations::objection_kind::not_legal &&
                         declarations::vocabulary_of(objection.key) == nullptr;
    if (assumed) pod_.findings.back().level = text::severity::warning;
  }

  void object_to_amount_of_pod(const declarations::objection& objection, text::yaml::place otherwise) {
    const auto* about = text::yaml::find(pod_.form.holder, "metadata");
    for (const auto* part : {"annotations", "labels"}) {
      if (!quota::is_pod_amount(objection.other, part == std::string_view("labels"))) continue;
      const auto* entry = text::yaml::find_entry(text::yaml::find(about, part), objection.other);
      pod_.findings.push_back(finding_of(objection, pod_.manifest, entry ? entry->key->location : otherwise,
                                         field(pod_.form.holder_path + "metadata." + part, objection.other),
                                         pod_.locale));
    }
  }

  judged_pod& pod_;
};

}  // namespace

void judge_amounts(judged_pod& pod, const amounts_at& all, const declarations::rule_set& rules) {
  amount_judge(pod).check_amounts(all, rules);
}

void judge_amounts(judged_pod& pod, const declarations::rule_set& rules) { amount_judge(pod).check(rules); }

void judge_resources_alone(judged_pod& pod, const declarations::rule_set& rules) {
  amount_judge(pod).check_resources_alone(rules);
}

}  // namespace cli
