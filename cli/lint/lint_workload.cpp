#include "cli/lint/lint_workload.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "api/engine_words.hpp"
#include "api/names.hpp"
#include "cli/lint/field_forms.hpp"
#include "cli/lint/field_names.hpp"
#include "cli/lint/refused_amounts.hpp"
#include "kube/quantity.hpp"
#include "kube/quantity_text.hpp"
#include "quota/selector.hpp"
#include "quota/vocabulary.hpp"
#include "reconcilers/admission/compatibility.hpp"
#include "reconcilers/cuda/requirement.hpp"
#include "reconcilers/declarations/pod_spec.hpp"
#include "reconcilers/declarations/vocabulary.hpp"
#include "reconcilers/dialects/annotations.hpp"
#include "reconcilers/dialects/dialect.hpp"
#include "reconcilers/extender/placement.hpp"
#include "text/list.hpp"
#include "text/messages.hpp"
#include "text/nearest.hpp"
#include "text/resource_name.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

namespace declarations = reconcilers::declarations;
using text::language;
using text::yaml::node;

constexpr std::string_view own_domain = "quartermaster.io/";

/// Resources a container may name without a domain; k8s.io/kubernetes pkg/apis/core/helper
/// IsStandardContainerResourceName.
bool is_native(std::string_view name) {
  return name == "cpu" || name == "memory" || name == "ephemeral-storage" || name.starts_with("hugepages-") ||
         text::fault_of_extended_resource(name) == text::resource_name_fault::native_domain;
}

std::string_view kind_in_manifest(const node& node, language locale) {
  return text::pattern_of(node.sequence()  ? "yaml.list"
                          : node.mapping() ? "yaml.mapping"
                                           : "yaml.single_value",
                          locale);
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

/// The number that a person meant by "50%" or, of a memory, by "16g" and "16GB"; empty: none is seen.
std::string number_meant(std::string_view key, std::string_view text) {
  const auto digits = text.substr(0, std::min(text.find_first_not_of("0123456789"), text.size()));
  if (digits.empty() || digits.size() > 9) return {};
  const auto unit = text::lower_case(text::trimmed(text.substr(digits.size())));
  if (unit == "%" && key.contains("percent")) return std::string(digits);
  const auto* known = quota::resource_key_of(key);
  if (!known || known->unit_mib == 0) return {};
  const auto mib = unit == "g" || unit == "gb" || unit == "gib" ? 1024 : unit == "mb" || unit == "mib" ? 1 : 0;
  if (mib == 0) return {};
  std::int64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return std::to_string(quota::in_unit(*known, (number * mib) << 20));
}

/// The key that a node offers and `key` goes with in one container: "nvidia.com/gpualloc" for "nvidia.com/gpumem".
std::string_view offered_partner(std::string_view key) {
  const auto modes = quota::modes_of(key);
  for (const auto& other : quota::resource_keys)
    if (other.managed && other.offered && quota::modes_of(other.key) == modes) return other.key;
  return {};
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

bool whole_in_decimal(const amount_text& amount_text, long exponent) {
  const auto digits = std::string(amount_text.whole) + std::string(amount_text.fraction);
  const long milli = exponent - static_cast<long>(amount_text.fraction.size()) + 3;  // digits x 10^milli thousandths
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
bool whole_in_binary(const amount_text& amount_text, std::size_t exponent) {
  if (amount_text.whole.size() > 19) return true;  // as much as an int64 holds
  wide value = 0, part = 0, scale = 1;
  for (const char c : amount_text.whole) value = value * 10 + static_cast<unsigned>(c - '0');
  for (const char c : amount_text.fraction.substr(0, 18)) {
    part = part * 10 + static_cast<unsigned>(c - '0');
    scale *= 10;
  }
  part <<= exponent;
  value = (value << exponent) + part / scale;
  if (value > static_cast<wide>(int64_most) || (value == static_cast<wide>(int64_most) && part % scale != 0))
    return true;
  return thousands(static_cast<std::uint64_t>(value * 1000 + (part % scale * 1000 + scale - 1) / scale));
}

class workload {
 public:
  /// @param known_kind the kind is one of Kubernetes, so that names of its fields are known
  workload(const manifest& manifest, const pod_form& form, bool known_kind, language language,
           std::vector<lint_finding>& lint_findings, const known_cluster* known)
      : manifest_(manifest),
        form_(form),
        known_kind_(known_kind),
        language_(language),
        findings_(lint_findings),
        known_(known),
        path_(form.path) {}

  /// What counts once, wherever the object describes pods.
  void check_object() {
    const auto* root = manifest_.root;
    // What is no text in a ConfigMap is reported with what the declarations say of it.
    if (manifest_.kind == "ConfigMap")
      fields(text::yaml::find(root, "metadata"), "metadata.", field_names::metadata());
    else
      metadata(text::yaml::find(root, "metadata"), "metadata");
    if (known_kind_ && manifest_.kind != "ConfigMap") misformed(field_forms::of_workload(root));
    if (const auto names = object_fields_of(manifest_); !names.empty()) fields(root, "", names);
    if (const auto names = workload_fields_of(manifest_); !names.empty())
      fields(text::yaml::find(root, "spec"), "spec.", names);
  }

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
    if (!all.path.ends_with(".default") || !wrong_.empty()) return;
    kube::pod made;
    made.containers.resize(1);
    made.containers[0].limits = quantities_in(all.amounts);
    for (const auto& [container, refusal] : refused_amounts(made))
      if (refusal.kind != quota::wrong::needs_partner)  // a container may bring it
        refuse(refusal, all.amounts, all.path, all.amounts->location);
  }

  void check(const declarations::rule_set& rules) {
    const auto* spec = form_.spec;
    if (!spec) return say(lint_code::spec_unreadable, manifest_.root->location, {.field = path_, .other = missing()});
    if (form_.alone) return check_resources_alone(rules);
    misformed(field_forms::of_pod_spec(spec, path_));
    if (form_.counted) misformed(field_forms::of_replicas(form_.counted, counted_path()));
    if (!form_.holder_path.empty()) metadata(text::yaml::find(pod(), "metadata"), form_.holder_path + "metadata");
    if (known_kind_) fields(spec, path_ + ".", field_names::pod_spec());
    if (known_kind_ && !form_.holder_path.empty()) fields(pod(), form_.holder_path, field_names::pod_template());
    not_text(text::yaml::find(spec, "nodeSelector"), path_ + ".nodeSelector[{}]");
    for (const auto* list : {"initContainers", "containers"}) containers(*spec, list, rules);
    if (known_kind_) no_containers(*spec);
    names_of_containers();
    operators(*spec);
    choices(*spec);
    restarts(*spec);
    claims(*spec);
    counts();
    modes();
    selecting();
    resources_of_pod(*spec);
    resources_of_ephemeral_containers(*spec);
    const bool is_held = readable_ && !is_exempt(manifest_.key.ns);
    if (is_held && !rules.rules.empty()) hold_to(rules, *spec);
    refuse_amounts(rules);
    if (is_held) compare_with_drivers(*spec);
  }

 private:
  struct container {
    const node* item;
    std::string path, title;
  };

  std::string_view missing() const { return text::pattern_of("yaml.none", language_); }

  void say(lint_code code, text::yaml::place place, const lint_details& details) {
    findings_.push_back(finding_of(code, manifest_, place, details, language_));
  }

  /// Resources that stand without a pod around them: what a container will have, as the kind's controller makes it.
  void check_resources_alone(const declarations::rule_set& rules) {
    const auto name = path_.substr(path_.rfind('.') + 1);
    containers_.push_back({form_.spec, path_, "container " + name});
    resources(containers_.back(), rules);
    auto amounts = text::yaml::to_json(*text::yaml::find(form_.spec, "resources"));
    if (readable_ && !is_exempt(manifest_.key.ns) && !rules.rules.empty() && amounts)
      hold_to(rules, nlohmann::json{{"containers", {{{"name", name}, {"resources", std::move(*amounts)}}}}});
    refuse_amounts(rules);
  }

  /// Someone may add the partner that is missing: a webhook of the product where no node offers the key (`counts`), or
  /// a declaration, which only a caller with rules knows.
  static bool is_completed(const quota::refusal& refusal, const declarations::rule_set& rules) {
    const auto* known = quota::resource_key_of(refusal.key);
    const auto* partner = rules.find(refusal.other);
    return rules.rules.empty() || (known && !known->offered) || (partner && partner->fill);
  }

  /// Amounts that no node takes, of containers of which nothing else has been said.
  void refuse_amounts(const declarations::rule_set& rules) {
    const auto* about = text::yaml::find(pod(), "metadata");
    auto annotations = texts_in(text::yaml::find(about, "annotations")),
         labels = texts_in(text::yaml::find(about, "labels"));
    kube::pod made;
    made.annotations = kube::packed_map::of(annotations);
    made.labels = kube::packed_map::of(labels);
    made.containers.resize(containers_.size());
    for (std::size_t i = 0; i < containers_.size(); ++i)
      made.containers[i].limits = quantities_in(limits_of(containers_[i]));
    for (const auto& [container, refusal] : refused_amounts(made)) {
      const auto& place = containers_[static_cast<std::size_t>(container - made.containers.data())];
      const bool is_said = objected_.contains(place.item) ||
                           std::ranges::any_of(wrong_, [&](const auto& wrong) { return wrong.first == place.item; });
      const bool may_lack = is_exempt(manifest_.key.ns) || is_completed(refusal, rules);
      if (is_said || (refusal.kind == quota::wrong::needs_partner && may_lack)) continue;
      refuse(refusal, limits_of(place), below(place.path, "resources.limits"), place.item->location);
    }
  }

  void refuse(const quota::refusal& refusal, const node* limits, const std::string& path, text::yaml::place otherwise) {
    const auto* entry = text::yaml::find_entry(limits, refusal.key);
    const auto words = api::words_of(refusal, language_);
    // The API server takes as many as one likes; of memory, amount_beyond_cards says it.
    const bool is_countless = refusal.below == quota::most;
    const auto* known = quota::resource_key_of(refusal.key);
    if (is_countless && known && known->unit_mib > 0) return;
    const auto code = is_countless ? lint_code::amount_beyond_nodes : lint_code::amounts_refused;
    say(code, entry ? entry->key->location : otherwise,
        {.field = field(path, refusal.key),
         .value = std::to_string(refusal.value),
         .key = refusal.key,
         .other = words});
  }

  /// Names below `mapping` that the API server does not know there.
  void fields(const node* mapping, const std::string& path, std::span<const std::string_view> legal) {
    if (!mapping || !mapping->mapping()) return;
    for (const auto& entry : mapping->entries) {
      const auto& name = entry.key->text;
      if (std::ranges::find(legal, name) != legal.end()) continue;
      const auto hint = field_names::meant(name, legal);
      say(lint_code::unknown_field, entry.key->location, {.field = path + text::shown(name, 320), .hint = hint});
    }
  }

  void no_containers(const node& spec) {
    const auto like_it = [](const auto& entry) { return text::lower_case(entry.key->text).starts_with("container"); };
    const auto* entry = text::yaml::find_entry(&spec, "containers");
    const bool empty =
        entry && (entry->value->is == node::shape::null || (entry->value->sequence() && entry->value->items.empty()));
    if (empty || std::ranges::none_of(spec.entries, like_it))
      say(lint_code::containers_missing, entry ? entry->key->location : spec.location,
          {.field = path_ + ".containers"});
  }

  void names_of_containers() {
    std::set<std::string_view> names;
    for (const auto& container : containers_) {
      const auto* entry = text::yaml::find_entry(container.item, "name");
      if (entry && entry->value->scalar() && !names.insert(entry->value->text).second)
        say(lint_code::container_twice, entry->key->location,
            {.field = below(container.path, "name"), .value = entry->value->text});
    }
  }

  /// `check(item, "PATH[2]")` for each item of the list that `parent` has under this name.
  template <class Check>
  static void each_of(const node* parent, const std::string& path, std::string_view name, Check check) {
    const auto* list = text::yaml::find(parent, name);
    if (!list || !list->sequence()) return;
    std::size_t index = 0;
    for (const auto* item : list->items) check(item, below(path, name) + "[" + std::to_string(index++) + "]");
  }

  /// Operators by which the pod chooses nodes and tolerates their taints.
  void operators(const node& spec) {
    const auto check = [this](const node* item, const std::string& path, std::vector<std::string_view> legal) {
      const auto* entry = text::yaml::find_entry(item, "operator");
      if (entry && (!entry->value->scalar() || entry->value->text.contains("{{"))) return;
      const auto value = entry ? std::string_view(entry->value->text) : std::string_view();
      if (std::ranges::find(legal, value) != legal.end()) return;
      std::erase(legal, "");
      say(lint_code::operator_unknown, entry ? entry->key->location : item->location,
          {.field = path + ".operator",
           .value = value,
           .other = text::joined(legal),
           .hint = text::nearest(value, legal)});
    };
    const auto term = [&](const node* item, const std::string& path) {
      for (const auto* part : {"matchExpressions", "matchFields"})
        each_of(item, path, part, [&](const node* requirement, const std::string& place) {
          check(requirement, place, {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"});
        });
    };
    const auto* affinity = text::yaml::find(text::yaml::find(&spec, "affinity"), "nodeAffinity");
    const auto path = path_ + ".affinity.nodeAffinity";
    constexpr auto required = "requiredDuringSchedulingIgnoredDuringExecution",
                   preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    each_of(text::yaml::find(affinity, required), below(path, required), "nodeSelectorTerms", term);
    each_of(affinity, path, preferred, [&](const node* item, const std::string& place) {
      term(text::yaml::find(item, "preference"), place + ".preference");
    });
    each_of(&spec, path_, "tolerations", [&](const node* item, const std::string& place) {
      check(item, place, {"", "Exists", "Equal", "Lt", "Gt"});
    });
  }

  /// Fields of which the API server takes a few words only, and by which a pod lives, starts or is placed.
  void choices(const node& spec) {
    const auto check = [this](const node* item, const std::string& path, std::string_view name,
                              std::initializer_list<std::string_view> legal) {
      const auto* entry = text::yaml::find_entry(item, name);
      if (!entry || !entry->value->scalar() || entry->value->text.contains("{{")) return;
      const std::string_view value = entry->value->text;
      if (value.empty() || std::ranges::find(legal, value) != legal.end()) return;
      const std::vector<std::string_view> words(legal);
      const auto field_path = below(path, name);
      say(lint_code::value_unknown, entry->key->location,
          {.field = field_path, .value = value, .other = text::joined(words), .hint = text::nearest(value, words)});
    };
    check(&spec, path_, "restartPolicy", {"Always", "OnFailure", "Never"});
    check(&spec, path_, "preemptionPolicy", {"PreemptLowerPriority", "Never"});
    check(&spec, path_, "dnsPolicy", {"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"});
    for (const auto& container : containers_) {
      check(container.item, container.path, "restartPolicy", {"Always", "OnFailure", "Never"});
      check(container.item, container.path, "imagePullPolicy", {"Always", "IfNotPresent", "Never"});
    }
    each_of(&spec, path_, "tolerations", [&](const node* item, const std::string& place) {
      check(item, place, "effect", {"NoSchedule", "PreferNoSchedule", "NoExecute"});
    });
  }

  /// Pods of a Job end, and those of a Deployment do not: the API server holds the policy of the template to that.
  void restarts(const node& spec) {
    const bool ends = manifest_.group == "batch" && (manifest_.kind == "Job" || manifest_.kind == "CronJob");
    const bool runs_on =
        manifest_.group == "apps" || (manifest_.group.empty() && manifest_.kind == "ReplicationController");
    const auto* entry = text::yaml::find_entry(&spec, "restartPolicy");
    if ((!ends && !runs_on) || (entry && (!entry->value->scalar() || entry->value->text.contains("{{")))) return;
    const auto value = entry && !entry->value->text.empty() ? std::string_view(entry->value->text) : "Always";
    const bool is_known = value == "Always" || value == "OnFailure" || value == "Never";  // choices says the others
    if (!is_known || ends == (value != "Always")) return;
    say(lint_code::restart_policy, entry ? entry->key->location : spec.location,
        {.field = path_ + ".restartPolicy",
         .value = value,
         .key = manifest_.kind,
         .other = ends ? "OnFailure, Never" : "Always"});
  }

  /// Devices of DRA: a container names a claim of the pod.
  void claims(const node& spec) {
    const auto* entry = text::yaml::find_entry(&spec, "resourceClaims");
    std::vector<std::string_view> names;
    if (entry && entry->value->sequence())
      for (const auto* item : entry->value->items) names.push_back(text::yaml::text_at(item, "name"));
    if (!names.empty()) say(lint_code::claims_not_judged, entry->key->location, {.field = path_ + ".resourceClaims"});
    for (const auto& container : containers_) {
      const auto* list = text::yaml::find(text::yaml::find(container.item, "resources"), "claims");
      if (!list || !list->sequence()) continue;
      std::size_t index = 0;
      for (const auto* item : list->items) {
        const auto name = text::yaml::text_at(item, "name");
        const auto place = below(container.path, "resources.claims[") + std::to_string(index++) + "].name";
        if (std::ranges::find(names, name) == names.end())
          say(lint_code::claim_missing, item->location,
              {.field = place, .value = name, .hint = text::nearest(name, names)});
      }
    }
  }

  static const node* limits_of(const container& container) {
    return text::yaml::find(text::yaml::find(container.item, "resources"), "limits");
  }

  /// What limits ask for of resources that are known, above zero.
  static std::vector<const node::entry*> asked_in(const node* limits) {
    std::vector<const node::entry*> out;
    if (!limits || !limits->mapping()) return out;
    for (const auto& entry : limits->entries)
      if (quota::modes_of(entry.key->text) != 0 && kube::parse_quantity(amount_at(*entry.value)).value_or(0) > 0)
        out.push_back(&entry);
    return out;
  }
  static kube::quantities quantities_in(const node* limits) {
    kube::quantities out;
    for (const auto* entry : asked_in(limits))
      if (text::yaml::find_entry(limits, entry->key->text) == entry)  // the last of a key counts
        out.emplace_back(entry->key->text, kube::parse_quantity(amount_at(*entry->value)).value_or(0));
    std::ranges::sort(out);
    return out;
  }

  /// A part of a card without the key that the kubelet knows: no one asks the plugin for a card.
  void counts() {
    for (const auto& container : containers_) {
      const auto all = asked_in(limits_of(container));
      for (const auto* entry : all) {
        const auto& key = entry->key->text;
        const auto* known = quota::resource_key_of(key);
        if (!known || known->offered || !known->managed) continue;
        const auto is_partner = [&](const node::entry* other) {
          const auto* row = quota::resource_key_of(other->key->text);
          return row && row->offered && (quota::modes_of(row->key) & quota::modes_of(key)) != 0;
        };
        if (std::ranges::any_of(all, is_partner)) continue;
        say(lint_code::count_missing, entry->key->location,
            {.field = field(below(container.path, "resources.limits"), key), .key = key, .hint = offered_partner(key)});
        break;  // one is enough to be told
      }
    }
  }

  /// Keys of modes that no node has at the same time.
  void modes() {
    std::uint16_t common = 0xFFFF;
    std::string_view first, count;
    for (const auto& container : containers_) {
      for (const auto* entry : asked_in(limits_of(container))) {
        const auto& key = entry->key->text;
        const bool counts = std::ranges::find(quota::alternatives, key) != quota::alternatives.end();
        const auto& other = counts && !count.empty() && count != key ? count : first;
        common &= quota::modes_of(key);
        if (common == 0 || (counts && !count.empty() && count != key))
          return say(lint_code::modes_mixed, entry->key->location,
                     {.field = field(below(container.path, "resources.limits"), key), .key = key, .other = other});
        if (counts) count = key;
        if (first.empty()) first = key;
      }
    }
  }

  /// Of our own domain each name is known, so any other one is a mistake.
  void own_annotation(const node::entry& entry, const std::string& path) {
    using reconcilers::cuda::names::capability_annotation, reconcilers::cuda::names::cuda_annotation;
    constexpr std::array people{cuda_annotation, capability_annotation};
    constexpr std::array program{reconcilers::extender::placement_annotation,
                                 reconcilers::extender::isolation_annotation};
    const std::string_view name = entry.key->text;
    if (std::ranges::find(people, name) != people.end() || std::ranges::find(program, name) != program.end()) return;
    const std::array ends{cuda_annotation.substr(own_domain.size()), capability_annotation.substr(own_domain.size())};
    const auto near = text::nearest(name.substr(own_domain.size()), ends);
    const auto hint = near.empty() ? std::string(cuda_annotation) + ", " + std::string(capability_annotation)
                                   : std::string(own_domain) + std::string(near);
    say(lint_code::annotation_unfamiliar, entry.key->location, {.field = path, .hint = hint});
  }

  /// Annotations by which a pod chooses its cards.
  void selecting() {
    const auto* about = text::yaml::find(text::yaml::find(pod(), "metadata"), "annotations");
    if (!about || !about->mapping()) return;
    const auto known = quota::selecting_annotations();
    for (const auto& entry : about->entries) {
      const auto& name = entry.key->text;
      const auto path = field(pod_path() + "metadata.annotations", name);
      quota::selector read;
      read.read(name, entry.value->scalar() ? entry.value->text : std::string());
      if (!read.problem().empty())
        say(lint_code::annotation_value, entry.key->location, {.field = path, .other = read.problem()});
      if (quota::selector::known(name) || quota::is_pod_amount(name, false)) continue;
      const auto domain = name.substr(0, name.find('/') + 1);
      if (domain == own_domain) {
        own_annotation(entry, path);
        continue;
      }
      const auto reader = reconcilers::dialects::reader_of(name);
      const auto hint = is_of_product(name) ? std::string() : annotation_meant(name, domain, known);
      if (!hint.empty()) {
        const auto meant = domain + hint;
        say(lint_code::annotation_unfamiliar, entry.key->location, {.field = path, .hint = meant});
      } else if (!reader.empty()) {
        say(lint_code::annotation_not_read, entry.key->location, {.field = path, .other = reader});
      }
    }
  }

  /// As a product has it, not misspelt: its people or its own programs write it.
  static bool is_of_product(std::string_view annotation) {
    const auto unread = reconcilers::dialects::unread_annotations();
    return std::ranges::find(unread, annotation) != unread.end() ||
           std::ranges::any_of(reconcilers::dialects::all(),
                               [&](const auto* product) { return product->writes(annotation); });
  }

  /// What was most likely meant, without its domain; may be empty.
  static std::string annotation_meant(std::string_view name, std::string_view domain,
                                      std::span<const std::string_view> known) {
    if (domain.empty()) return {};
    std::vector<std::string_view> ends;
    const auto add = [&](std::string_view candidate) {
      if (candidate.starts_with(domain)) ends.push_back(candidate.substr(domain.size()));
    };
    std::ranges::for_each(known, add);
    for (const auto& row : quota::resource_keys)
      if (!row.on_pod.label) add(row.on_pod.name);
    std::ranges::for_each(reconcilers::dialects::unread_annotations(), add);
    return std::string(text::nearest(name.substr(domain.size()), ends));
  }

  void resources_of_pod(const node& spec) {
    const auto* resources = text::yaml::find(&spec, "resources");
    if (!resources || !resources->mapping()) return;
    if (known_kind_) fields(resources, path_ + ".resources.", field_names::resources());
    for (const auto* part : {"limits", "requests"}) {
      const auto* amounts = text::yaml::find(resources, part);
      if (!amounts || !amounts->mapping()) continue;
      for (const auto& entry : amounts->entries) {
        const auto& key = entry.key->text;
        if (key != "cpu" && key != "memory" && !key.starts_with("hugepages-"))
          say(lint_code::resources_of_pod, entry.key->location,
              {.field = field(path_ + ".resources." + part, key), .key = key});
      }
    }
  }

  void resources_of_ephemeral_containers(const node& spec) {
    const auto* list = text::yaml::find(&spec, "ephemeralContainers");
    if (!list || !list->sequence()) return;
    std::size_t index = 0;
    for (const auto* item : list->items) {
      const auto path = path_ + ".ephemeralContainers[" + std::to_string(index++) + "].";
      fields(item, path, field_names::container());
      const auto* entry = text::yaml::find_entry(item, "resources");
      const bool any = entry && entry->value->mapping() && !entry->value->entries.empty();
      if (any) say(lint_code::resources_of_ephemeral, entry->key->location, {.field = path + "resources"});
    }
  }

  void metadata(const node* node, const std::string& path) {
    if (known_kind_) fields(node, path + ".", field_names::metadata());
    if (!manifest_.kind.empty()) misformed(field_forms::of_metadata(node, path));
    for (const auto* part : {"labels", "annotations"})
      not_text(text::yaml::find(node, part), path + "." + part + "[{}]");
  }

  /// What the pods are made of: the object itself, or the template that their spec is in; may be null.
  const node* pod() const { return form_.holder; }
  const std::string& pod_path() const { return form_.holder_path; }

  static std::vector<std::pair<std::string_view, std::string_view>> texts_in(const node* node) {
    std::vector<std::pair<std::string_view, std::string_view>> out;
    if (!node || !node->mapping()) return out;
    for (const auto& entry : node->entries) {
      if (entry.value->scalar() && text::yaml::find_entry(node, entry.key->text) == &entry)
        out.emplace_back(entry.key->text, entry.value->text);
    }
    return out;
  }

  void not_text(const node* node, const std::string& path) {
    for (const auto& entry : values_not_text(node, path)) findings_.push_back(finding_of(entry, manifest_, language_));
  }

  void containers(const node& spec, const std::string& list, const declarations::rule_set& rules) {
    const auto* entry = text::yaml::find_entry(&spec, list);
    if (!entry || entry->value->is == node::shape::null) return;
    if (!entry->value->sequence()) return unreadable(path_ + "." + list, *entry->key, *entry->value);
    std::size_t index = 0;
    for (const auto* item : entry->value->items) {
      const auto path = path_ + "." + list + "[" + std::to_string(index++) + "]";
      if (!item->mapping()) {
        unreadable(path, *item, *item);
        continue;
      }
      const bool main = list == "containers";
      containers_.push_back(
          {item, path, (main ? "container " : "init container ") + std::string(text::yaml::text_at(item, "name"))});
      fields(item, path + ".", field_names::container());
      misformed(field_forms::of_container(item, path));
      resources(containers_.back(), rules);
      variables(containers_.back());
    }
  }

  /// Variables that give a container other cards than it asks for, or none.
  void variables(const container& container) {
    const auto* list = text::yaml::find(container.item, "env");
    if (!list || !list->sequence()) return;
    std::size_t index = 0;
    for (const auto* item : list->items) {
      const auto path = container.path + ".env[" + std::to_string(index++) + "].value";
      const auto name = text::yaml::text_at(item, "name");
      const auto value = std::string(text::yaml::text_at(item, "value"));
      if (value.empty()) continue;
      if (name == "NVIDIA_VISIBLE_DEVICES" && value != "void" && value != "none")
        say(lint_code::visible_devices, item->location, {.field = path + " of NVIDIA_VISIBLE_DEVICES", .value = value});
      const auto cards = cards_of(container);
      if (name == "CUDA_VISIBLE_DEVICES" && cards > 0 && highest_number_in(value) >= cards) {
        const auto count = text::counted(cards, "count.card", language_);
        say(lint_code::cuda_devices, item->location,
            {.field = path + " of CUDA_VISIBLE_DEVICES", .value = value, .other = count});
      }
    }
  }

  /// Cards that the container asks for; a share is one.
  static std::size_t cards_of(const container& container) {
    const auto* limits = text::yaml::find(text::yaml::find(container.item, "resources"), "limits");
    if (!limits || !limits->mapping()) return 0;
    std::size_t out = 0;
    for (const auto& entry : limits->entries) {
      const auto* known = quota::resource_key_of(entry.key->text);
      const auto amount = known ? kube::parse_quantity(amount_at(*entry.value)).value_or(0) : 0;
      if (amount <= 0) continue;
      const bool share = known->unit_mib > 0 || known->legal.limited();
      const auto cards = !share ? amount : known->legal.whole > 0 ? amount / known->legal.whole : 0;
      out = std::max(out, static_cast<std::size_t>(std::max<std::int64_t>(cards, 1)));
    }
    return out;
  }

  /// Of a list of numbers "0,2"; 0 for any other text.
  static std::size_t highest_number_in(std::string_view text) {
    std::size_t out = 0;
    while (!text.empty()) {
      const auto comma = std::min(text.find(','), text.size());
      std::size_t number = 0;
      const auto [end, failed] = std::from_chars(text.data(), text.data() + comma, number);
      if (failed != std::errc() || end != text.data() + comma) return 0;
      out = std::max(out, number);
      text.remove_prefix(std::min(text.size(), comma + 1));
    }
    return out;
  }

  /// Of a pod that a kind makes which is not known: what holds the template and its `replicas`.
  std::string counted_path() const {
    const auto holder_path = std::string_view(form_.holder_path).substr(0, form_.holder_path.size() - 1);
    const auto dot = holder_path.rfind('.');
    return std::string(holder_path.substr(0, dot == holder_path.npos ? 0 : dot));
  }

  void misformed(const std::vector<field_forms::form_fault>& faults) {
    for (const auto& fault : faults) {
      const bool has_parts = fault.expected == field_forms::form::mapping || fault.expected == field_forms::form::list;
      if (has_parts) readable_ = false;  // the pod as a whole is judged by readers that want its parts
      if (fault.expected == field_forms::form::text) {
        findings_.push_back(
            finding_of(config_map_file::not_text{fault.field, fault.place, fault.value}, manifest_, language_));
        continue;
      }
      const auto& is = *fault.value;
      const bool is_number = fault.expected == field_forms::form::number ||
                             fault.expected == field_forms::form::count ||
                             fault.expected == field_forms::form::long_number;
      if (is_number && is.scalar() && is.text.contains("{{")) {
        say(lint_code::template_text, fault.place->location, {.field = fault.field, .value = is.text});
        continue;
      }
      const auto value = !is.scalar() ? std::string(kind_in_manifest(is, language_))
                         : is.quoted  ? "\"" + is.text + "\""
                                      : is.text;
      say(lint_code::wrong_form, fault.place->location,
          {.field = fault.field, .value = value, .other = words_of(fault.expected), .hint = number_in_quotes(fault)});
    }
  }

  std::string_view words_of(field_forms::form form) const {
    using enum field_forms::form;
    switch (form) {
      case text:
        return text::pattern_of("yaml.text", language_);
      case number:
      case long_number:
        return text::pattern_of("yaml.whole_number", language_);
      case count:
        return text::pattern_of("yaml.count", language_);
      case flag:
        return text::pattern_of("yaml.boolean", language_);
      case mapping:
        return text::pattern_of("yaml.mapping", language_);
      case list:
        return text::pattern_of("yaml.list", language_);
    }
    return {};
  }

  /// 3 for "3", and true for "true".
  static std::string number_in_quotes(const field_forms::form_fault& fault) {
    const bool is_list = fault.expected == field_forms::form::mapping || fault.expected == field_forms::form::list;
    if (is_list || !fault.value->scalar() || !fault.value->quoted) return {};
    node plain;
    plain.is = node::shape::scalar;
    plain.text = fault.value->text;
    if (fault.expected == field_forms::form::flag)
      return plain.text == "true" || plain.text == "false" ? plain.text : std::string();
    const auto number = field_forms::whole_number(plain);
    const bool legal = number && (*number >= 0 || fault.expected != field_forms::form::count);
    return legal && *number <= std::numeric_limits<std::int32_t>::max() ? std::to_string(*number) : std::string();
  }

  void unreadable(const std::string& field, const node& key, const node& is) {
    readable_ = false;
    say(lint_code::spec_unreadable, key.location,
        {.field = path_, .other = field + ": " + std::string(kind_in_manifest(is, language_))});
  }

  void resources(const container& container, const declarations::rule_set& rules) {
    const auto* entry = text::yaml::find_entry(container.item, "resources");
    if (!entry || entry->value->is == node::shape::null) return;
    const auto path = below(container.path, "resources");
    if (!entry->value->mapping()) return unreadable(path, *entry->key, *entry->value);
    if (!form_.alone) fields(entry->value, path + ".", field_names::resources());
    for (const auto* part : {"limits", "requests"}) {
      const auto* amounts = text::yaml::find_entry(entry->value, part);
      if (!amounts || amounts->value->is == node::shape::null) continue;
      const auto part_path = path + "." + part;
      if (!amounts->value->mapping()) {
        unreadable(part_path, *amounts->key, *amounts->value);
        continue;
      }
      for (const auto& item : amounts->value->entries) {
        const auto& key = item.key->text;
        const bool counts = text::yaml::find_entry(amounts->value, key) == &item && !is_native(key);
        const auto device_class = known_ ? known_->resources.class_of(key) : class_in_name(key);
        if (!device_class.empty() && part == std::string_view("limits"))
          say(lint_code::class_not_judged, item.key->location,
              {.field = field(part_path, key), .value = device_class, .key = key});
        // What stands for a card there, "gpu: 1", only the kind's own controller knows.
        if (form_.alone && !manifest_.kind.empty() && !key.contains('/') && !is_native(key) &&
            (part == std::string_view("limits") || !text::yaml::find(limits_of(container), key)))
          say(lint_code::amount_not_judged, item.key->location,
              {.field = field(part_path, key), .key = key, .other = manifest_.kind});
        if (const auto card = card_of_native_domain(key); !card.empty())
          say(lint_code::resource_of_kubernetes, item.key->location,
              {.field = field(part_path, key), .value = key, .key = key, .hint = card});
        if (counts && (!form_.alone || key.contains('/')))  // without a pod around, other names may mean anything
          amount(container, part_path, item, rules);
      }
    }
    compare(container, *entry->value);
  }

  static std::string below(const std::string& path, std::string_view name) {
    return path + (path.empty() ? "" : ".") + std::string(name);
  }
  static std::string field(const std::string& path, std::string_view key) {
    return path + "[" + text::shown(key, 320) + "]";
  }

  /// @param prefix of a ResourceQuota's keys
  void amount(const container& container, const std::string& path, const node::entry& entry,
              const declarations::rule_set& rules, std::string_view prefix = {}) {
    const auto key = entry.key->text.substr(prefix.size());
    const auto field_path = field(path, entry.key->text);
    if (!text::is_extended_resource(key)) {
      wrong_.emplace(container.item, key);
      return say(lint_code::resource_name, entry.key->location,
                 {.field = field_path, .value = key, .hint = meant(key, rules)});
    }
    const auto text = entry.value->is == node::shape::null ? "0" : amount_at(*entry.value);
    if (in_bytes(key, field_path, text, *entry.key)) {
      wrong_.emplace(container.item, key);
      return;
    }
    const auto value = entry.value->scalar() ? kube::parse_quantity(text) : std::nullopt;
    const auto whole = value ? std::to_string(*value) : std::string();
    const lint_details details{.field = field_path, .value = text, .key = key, .hint = whole};
    const bool whole_enough = !prefix.empty() || (value && is_whole(text));  // a quota may have a fraction
    if (entry.value->is == node::shape::null || (value && *value >= 0 && whole_enough)) {
      const bool limit = !path.ends_with(".requests");  // said once
      if (limit && value.value_or(0) != 0) unknown(key, field_path, *entry.key, rules);
      if (limit && prefix.empty() && value) beyond_cards(details, *value, *entry.key);
      return;
    }
    wrong_.emplace(container.item, key);
    if (!value && text.contains("{{")) return say(lint_code::template_text, entry.key->location, details);
    if (!value) {
      const auto meant = number_meant(key, text);
      auto hinted = details;
      hinted.hint = meant;
      return say(lint_code::amount_malformed, entry.key->location, hinted);
    }
    if (*value > int64_most / 1000) return say(lint_code::amount_too_large, entry.key->location, details);
    if (const auto percent = percent_meant(key, text); !percent.empty()) {
      auto hinted = details;
      hinted.hint = percent;
      return say(lint_code::amount_fraction_of_share, entry.key->location, hinted);
    }
    say(*value < 0 ? lint_code::amount_negative : lint_code::amount_fraction, entry.key->location, details);
  }

  /// "50" for 0.5 of a key that counts hundredths of a card; empty: something else.
  static std::string percent_meant(std::string_view key, std::string_view text) {
    const auto* known = quota::resource_key_of(key);
    if (!known || known->unit_mib > 0 || known->legal.max > 100) return {};
    double part = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), part);
    const bool is_part = problem == std::errc() && end == text.data() + text.size() && part >= 0.01 && part < 1;
    return is_part ? std::to_string(std::lround(100 * part)) : std::string();
  }

  static std::string amount_at(const node& node) {
    const auto text = text::yaml::canonical(node);
    return std::string(node.scalar() ? kube::unpadded_quantity(text) : std::string_view(text));
  }

  /// A name that no one knows: in a cluster no node offers it; without one, it looks like a known name.
  void unknown(const std::string& key, const std::string& field_path, const node& place,
               const declarations::rule_set& rules) {
    const lint_details details{.field = field_path, .value = key, .key = key};
    if (known_ && known_->resources.lacks(key) && known_->resources.refused.contains(key)) {
      const auto& refused = known_->resources.refused.find(key)->second;
      auto reasoned = details;
      const auto declaration = refused.config_map.to_string();
      reasoned.other = declaration, reasoned.hint = refused.reason_in(language_);
      return say(lint_code::declaration_refused, place.location, reasoned);
    }
    if (known_ && known_->modules) {
      for (const auto& text : unserved_resources(*known_->modules, known_->resources, {{key, 1}}, language_)) {
        auto reasoned = details;
        reasoned.other = text;
        return say(lint_code::unserved_resource, place.location, reasoned);
      }
    }
    if (known_ && known_->resources.lacks(key)) {
      auto hinted = details;
      const auto hint = known_->resources.nearest(key);
      hinted.hint = hint;
      return say(lint_code::unknown_resource, place.location, hinted);
    }
    if (known_ || rules.find(key) || quota::resource_key_of(key) || is_vendor_key(key)) return;
    const auto hint = nearest_key(key, keys_of(rules));
    auto hinted = details;
    hinted.hint = hint;
    say(lint_code::unfamiliar_resource, place.location, hinted);
  }

  /// MiB, KiB or bytes where the resource counts in a larger unit: more than the cards of any node have together.
  void beyond_cards(lint_details details, std::int64_t value, const node& place) {
    constexpr std::int64_t most_mib = std::int64_t{4} << 20;  // sixteen cards of 256 GiB
    const auto* known = quota::resource_key_of(details.key);
    if (!known || known->unit_mib == 0 || value < most_mib / known->unit_mib) return;
    constexpr std::int64_t least_mib = 256;  // no program with CUDA does with less
    const auto is_plausible = [&](std::int64_t meant) {
      return meant * known->unit_mib >= least_mib && meant < most_mib / known->unit_mib;
    };
    const auto of_mib = value < (std::int64_t{1} << 40) ? quota::in_unit(*known, value << 20) : 0;
    const auto of_bytes = quota::in_unit(*known, value);
    const auto of_kib = value < (std::int64_t{1} << 50) ? quota::in_unit(*known, value << 10) : 0;
    const auto meant = known->unit_mib > 1 && is_plausible(of_mib) ? of_mib
                       : is_plausible(of_bytes)                    ? of_bytes
                       : is_plausible(of_kib)                      ? of_kib
                                                                   : 0;
    const auto hint = meant > 0 ? std::to_string(meant) : std::string();
    details.hint = hint;
    details.other = quota::unit_of(*known);
    say(lint_code::amount_beyond_cards, place.location, details);
  }

  /// Bytes ("4Gi") where the resource counts in a unit of memory; 8k is 8000 of it.
  bool in_bytes(const std::string& key, const std::string& field_path, std::string_view text, const node& place) {
    const auto* known = quota::resource_key_of(key);
    const auto meant = known ? memory_meant(*known, text) : std::nullopt;
    if (!meant) return false;
    const auto hint = std::to_string(*meant);
    say(lint_code::amount_in_bytes, place.location,
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
      const bool judged = text::yaml::find_entry(requests, key) == &entry && text::is_extended_resource(key);
      if (!judged || wrong_.contains({container.item, key})) continue;
      const auto field_path = field(below(container.path, "resources.requests"), key);
      const auto requested = amount_at(*entry.value);
      const auto* limit = text::yaml::find(limits, key);
      const auto most = limit ? amount_at(*limit) : std::string();
      if (limit && kube::parse_quantity(requested).value_or(0) == kube::parse_quantity(most).value_or(0)) continue;
      wrong_.emplace(container.item, key);
      say(limit ? lint_code::request_differs : lint_code::request_without_limit, entry.key->location,
          {.field = field_path, .value = requested, .key = key, .other = most});
    }
  }

  void hold_to(const declarations::rule_set& rules, const node& spec) {
    const auto json = text::yaml::to_json(spec);
    hold_to(rules, json.value_or(nlohmann::json()));
  }

  void hold_to(const declarations::rule_set& rules, const nlohmann::json& spec) {
    const auto text = spec.is_object() ? spec.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) : "";
    auto read = declarations::parse_pod_spec(text);
    if (!read)
      return say(lint_code::spec_unreadable, form_.spec->location, {.field = path_, .other = read.error().message});
    const auto* about = text::yaml::find(pod(), "metadata");
    read->amounts = declarations::pod_amounts_in(texts_in(text::yaml::find(about, "annotations")),
                                                 texts_in(text::yaml::find(about, "labels")));
    const auto ruling = declarations::evaluate(rules, *read);
    for (const auto* all : {&ruling.refused, &ruling.warnings}) {
      for (const auto& entry : *all) object(entry);
    }
  }

  /// What the webhook for compatibility says, where nothing is refused.
  void compare_with_drivers(const node& spec) {
    auto json = text::yaml::to_json(spec);
    if (!json) return;
    nlohmann::json made = {{"spec", std::move(*json)}};
    if (const auto* about = text::yaml::find(pod(), "metadata")) {
      if (auto metadata = text::yaml::to_json(*about)) made["metadata"] = std::move(*metadata);
    }
    const auto nodes = known_ ? std::span(known_->nodes) : std::span<const kube::node* const>();
    const auto found =
        reconcilers::cuda::admit(made, nodes, {.mode = reconcilers::enforcement::warn, .language = language_});
    for (const auto& text : found.warnings)
      findings_.push_back(finding_of_compatibility(text, manifest_, spec.location, path_));
  }

  void object(const declarations::objection& objection) {
    if (objection.kind == declarations::objection_kind::too_large) {
      return findings_.push_back(finding_of(objection, manifest_, form_.spec->location, path_, language_));
    }
    const auto match = std::ranges::find(containers_, objection.container, &container::title);
    // Differing requests are reported for every resource, declared or not; what follows from a wrong amount is not.
    if (objection.kind == declarations::objection_kind::unequal || match == containers_.end() ||
        wrong_.contains({match->item, objection.key}))
      return;
    objected_.insert(match->item);
    if (objection.kind == declarations::objection_kind::pod_amount)
      return object_to_amount_of_pod(objection, match->item->location);
    const auto* limits = text::yaml::find(text::yaml::find(match->item, "resources"), "limits");
    const auto* entry = text::yaml::find_entry(limits, objection.key);
    if (!entry) entry = text::yaml::find_entry(limits, objection.other);
    findings_.push_back(finding_of(objection, manifest_, entry ? entry->key->location : match->item->location,
                                   field(below(match->path, "resources.limits"), objection.key), language_));
    // Without a cluster it is the module's default that says so.
    const bool assumed = !known_ && objection.kind == declarations::objection_kind::not_legal &&
                         declarations::vocabulary_of(objection.key) == nullptr;
    if (assumed) findings_.back().level = text::severity::warning;
  }

  void object_to_amount_of_pod(const declarations::objection& objection, text::yaml::place otherwise) {
    const auto* about = text::yaml::find(pod(), "metadata");
    for (const auto* part : {"annotations", "labels"}) {
      if (!quota::is_pod_amount(objection.other, part == std::string_view("labels"))) continue;
      const auto* entry = text::yaml::find_entry(text::yaml::find(about, part), objection.other);
      findings_.push_back(finding_of(objection, manifest_, entry ? entry->key->location : otherwise,
                                     field(pod_path() + "metadata." + part, objection.other), language_));
    }
  }

  const manifest& manifest_;
  const pod_form& form_;
  const bool known_kind_;
  language language_;
  std::vector<lint_finding>& findings_;
  const known_cluster* known_;
  std::string path_;
  std::vector<container> containers_;
  std::set<const node*> objected_;                       ///< containers to which declared rules object
  std::set<std::pair<const node*, std::string>> wrong_;  ///< container and key whose amount is no amount
  bool readable_ = true;
};

}  // namespace

void lint_kind(const manifest& manifest, language language, std::vector<lint_finding>& lint_findings) {
  const auto version = text::yaml::text_at(manifest.root, "apiVersion");
  const auto say = [&](lint_code code, const lint_details& details) {
    const auto* entry = text::yaml::find_entry(manifest.root, details.field);
    const auto place = entry ? entry->key->location : manifest.root->location;
    lint_findings.push_back(finding_of(code, manifest, place, details, language));
  };
  const bool names_kind = !text::yaml::text_at(manifest.root, "kind").empty();  // items of a list need not
  if (version.empty() && names_kind) {
    const auto hint = version_meant(manifest);
    say(lint_code::api_version_missing, {.field = "apiVersion", .key = manifest.kind, .hint = hint});
  } else if (is_no_kind(manifest)) {
    const auto hint = nearest_kind(manifest);
    say(lint_code::kind_unknown, {.field = "kind", .value = manifest.kind, .other = version, .hint = hint});
  } else if (const auto meant = version_meant(manifest); !version.empty() && !meant.empty()) {
    say(lint_code::api_version, {.field = "apiVersion", .value = version, .key = manifest.kind, .hint = meant});
  }
}

void lint_names(const manifest& manifest, language language, std::vector<lint_finding>& lint_findings) {
  const auto check = [&](std::string_view field, std::string_view value, bool name) {
    // A generateName may end in a dash.
    while (name && value.size() > 1 && value.ends_with('-')) value.remove_suffix(1);
    const bool legal = name ? text::is_dns_subdomain(value) : text::is_dns_subdomain(value, 63) && !value.contains('.');
    if (legal) return;
    auto lower = text::lower_case(value.substr(0, 253));
    std::ranges::replace(lower, '_', '-');
    const auto hint = text::is_dns_subdomain(lower) ? lower : std::string();
    lint_findings.push_back(finding_of(lint_code::name_malformed, manifest, place_of(manifest, field),
                                       {.field = field, .value = value, .hint = hint}, language));
  };
  check("metadata.name", manifest.key.name, true);
  if (!manifest.key.ns.empty()) check("metadata.namespace", manifest.key.ns, false);
}

std::optional<lint_finding> first_error_of(const manifest& manifest, const pod_forms& forms, language language) {
  std::vector<lint_finding> findings;
  if (!manifest.kind.empty()) {
    lint_kind(manifest, language, findings);
    lint_names(manifest, language, findings);
  }
  lint_workload(manifest, forms, {}, language, findings);
  std::erase_if(findings, [](const lint_finding& finding) { return finding.level != text::severity::error; });
  const auto rank = [](const lint_finding& finding) {
    return std::tuple(finding.location, std::string_view(finding.code), std::string_view(finding.message));
  };
  const auto first = std::ranges::min_element(findings, {}, rank);
  if (first == findings.end()) return std::nullopt;
  return std::move(*first);
}

void lint_amounts(const manifest& manifest, std::span<const amounts_at> all, const declarations::rule_set& rules,
                  language language, std::vector<lint_finding>& lint_findings, const known_cluster* known) {
  const pod_form nowhere{};
  workload object(manifest, nowhere, true, language, lint_findings, known);
  object.check_object();
  for (const auto& entry : all) object.check_amounts(entry, rules);
}

void lint_workload(const manifest& manifest, const pod_forms& forms, const declarations::rule_set& rules,
                   language language, std::vector<lint_finding>& lint_findings, const known_cluster* known) {
  for (const auto& form : forms.forms) {
    workload workload(manifest, form, !forms.by_form, language, lint_findings, known);
    if (&form == &forms.forms.front()) workload.check_object();
    workload.check(rules);
  }
}

std::optional<std::int64_t> memory_meant(const quota::resource_key& resource_key, std::string_view text) {
  if (resource_key.unit_mib == 0) return std::nullopt;
  const auto suffix = text.substr(std::min(text.find_last_of("0123456789.") + 1, text.size()));
  const bool large = !suffix.empty() && std::string_view("MGTPE").contains(suffix.front()) &&
                     (suffix.size() == 1 || suffix.substr(1) == "i");  // as an exponent, E has a number behind it
  const auto bytes = large ? kube::parse_quantity(text) : std::nullopt;
  if (!bytes || *bytes <= 0) return std::nullopt;
  return quota::in_unit(resource_key, *bytes);
}

bool is_whole(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  text.remove_prefix(std::min(text.find_first_not_of('0'), text.size()));
  amount_text amount_text;
  amount_text.whole = digits_of(text);
  if (amount_text.whole.empty()) amount_text.whole = "0";
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    amount_text.fraction = digits_of(text);
  }
  static constexpr std::string_view binary = "KMGTPE";
  if (text.size() == 2 && text.ends_with('i'))
    return whole_in_binary(amount_text, 10 * (binary.find(text.front()) + 1));
  return whole_in_decimal(amount_text, exponent_of(text));
}

bool is_exempt(std::string_view ns) { return api::names::is_system(ns); }

}  // namespace cli
