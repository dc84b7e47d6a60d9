#include "cli/lint/pod_fields.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "cli/lint/field_forms.hpp"
#include "cli/lint/field_rules.hpp"
#include "cli/lint/kubernetes_fields.hpp"
#include "cli/lint/pod_labels.hpp"
#include "text/list.hpp"
#include "text/messages.hpp"
#include "text/nearest.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using text::yaml::node;

class field_judge {
 public:
  explicit field_judge(judged_pod& pod) : pod_(pod) {}

  /// What counts once, wherever the object describes pods.
  void check_object() {
    const auto* root = pod_.manifest.root;
    const auto* about = text::yaml::find(root, "metadata");
    const auto* type = pod_.known_kind ? kubernetes_fields::find(pod_.manifest.kind) : nullptr;
    if (type && pod_.manifest.kind == "ConfigMap") {
      // What is no text there is reported with what the declarations say of it.
      pod_.unknown_names(about, "metadata", *kubernetes_fields::find("ObjectMeta"));
      pod_.unknown_names(root, "", *type);
      return;
    }
    if (type)
      judge(field_forms::faults_of(root, "", *type, true));
    else
      metadata(about, "metadata");
    judge_labels(pod_, about, "metadata");
  }

  void check() {
    const auto* spec = pod_.form.spec;
    const auto* about = text::yaml::find(pod_.form.holder, "metadata");
    const auto path = pod_.form.holder_path + "metadata";
    if (!pod_.known_kind) {
      judge(field_forms::faults_of(spec, pod_.path, *kubernetes_fields::find("PodSpec"), false));
      if (pod_.form.counted) judge(field_forms::faults_of_replicas(pod_.form.counted, counted_path()));
      if (!pod_.form.holder_path.empty()) metadata(about, path);
    }
    if (!pod_.form.holder_path.empty()) judge_labels(pod_, about, path);
    for (const auto* list : {"initContainers", "containers"}) containers(*spec, list);
    if (pod_.known_kind) no_containers(*spec);
    resources_of_pod(*spec);
    resources_of_ephemeral_containers(*spec);
  }

 private:
  void no_containers(const node& spec) {
    const auto like_it = [](const auto& entry) { return text::lower_case(entry.key->text).starts_with("container"); };
    const auto* entry = text::yaml::find_entry(&spec, "containers");
    const bool empty =
        entry && (entry->value->is == node::shape::null || (entry->value->sequence() && entry->value->items.empty()));
    if (empty || std::ranges::none_of(spec.entries, like_it))
      pod_.say(lint_code::containers_missing, entry ? entry->key->location : spec.location,
               {.field = pod_.path + ".containers"});
  }

  void resources_of_pod(const node& spec) {
    const auto* resources = text::yaml::find(&spec, "resources");
    if (!resources || !resources->mapping()) return;
    for (const auto* part : {"limits", "requests"}) {
      const auto* amounts = text::yaml::find(resources, part);
      if (!amounts || !amounts->mapping()) continue;
      for (const auto& entry : amounts->entries) {
        const auto& key = entry.key->text;
        if (key != "cpu" && key != "memory" && !key.starts_with("hugepages-"))
          pod_.say(lint_code::resources_of_pod, entry.key->location,
                   {.field = field(pod_.path + ".resources." + part, key), .key = key});
      }
    }
  }

  void resources_of_ephemeral_containers(const node& spec) {
    const auto* list = text::yaml::find(&spec, "ephemeralContainers");
    if (!list || !list->sequence()) return;
    std::size_t index = 0;
    for (const auto* item : list->items) {
      const auto path = pod_.path + ".ephemeralContainers[" + std::to_string(index++) + "].";
      const auto* entry = text::yaml::find_entry(item, "resources");
      const bool any = entry && entry->value->mapping() && !entry->value->entries.empty();
      if (any) pod_.say(lint_code::resources_of_ephemeral, entry->key->location, {.field = path + "resources"});
    }
  }

  /// Of an object whose kind is not known.
  void metadata(const node* node, const std::string& path) {
    if (!pod_.manifest.kind.empty())
      judge(field_forms::faults_of(node, path, *kubernetes_fields::find("ObjectMeta"), false));
  }

  void containers(const node& spec, const std::string& list) {
    const auto* entry = text::yaml::find_entry(&spec, list);
    if (!entry || entry->value->is == node::shape::null) return;
    if (!entry->value->sequence()) return pod_.unreadable(pod_.path + "." + list, *entry->key, *entry->value);
    std::size_t index = 0;
    for (const auto* item : entry->value->items) {
      const auto path = pod_.path + "." + list + "[" + std::to_string(index++) + "]";
      if (!item->mapping()) {
        pod_.unreadable(path, *item, *item);
        continue;
      }
      const bool main = list == "containers";
      pod_.containers.push_back(
          {item, path, (main ? "container " : "init container ") + std::string(text::yaml::text_at(item, "name"))});
      if (!pod_.known_kind) pod_.unknown_names(item, path, *kubernetes_fields::find("Container"));
    }
  }

  /// Of a pod that a kind makes which is not known: what holds the template and its `replicas`.
  std::string counted_path() const {
    const auto holder_path = std::string_view(pod_.form.holder_path).substr(0, pod_.form.holder_path.size() - 1);
    const auto dot = holder_path.rfind('.');
    return std::string(holder_path.substr(0, dot == holder_path.npos ? 0 : dot));
  }

  void judge(const std::vector<field_forms::field_fault>& faults) {
    using enum field_forms::field_fault::kind;
    for (const auto& fault : faults) {
      switch (fault.is) {
        case unknown:
          pod_.unknown_name(*fault.place, fault.field, *fault.owner);
          break;
        case missing:
          pod_.say(lint_code::field_missing, fault.place->location, {.field = fault.field});
          break;
        case none_chosen:
          pod_.say(lint_code::choice_missing, fault.place->location, {.field = fault.field, .other = fault.names});
          break;
        case two_chosen:
          pod_.say(lint_code::choices_many, fault.place->location, {.field = fault.field, .other = fault.names});
          break;
        case repeated:
          pod_.say(lint_code::item_twice, fault.place->location, {.field = fault.field, .value = fault.value->text});
          break;
        case next_to:
          values_of_requirement(fault);
          break;
        case word:
          word_unknown(fault);
          break;
        case misformed:
          wrong_form(fault);
          break;
      }
    }
  }

  void values_of_requirement(const field_forms::field_fault& fault) {
    const bool is_missing = !fault.value || !fault.value->sequence() || fault.value->items.empty();
    if (is_missing) return pod_.say(lint_code::field_missing, fault.place->location, {.field = fault.field});
    std::vector<std::string_view> values;
    for (const auto* item : fault.value->items) values.push_back(item->text);
    pod_.say(lint_code::refused_together, fault.place->location,
             {.field = fault.field, .value = text::joined(values), .other = fault.names});
  }

  void word_unknown(const field_forms::field_fault& fault) {
    const auto& words = fault.about->words;
    pod_.say(lint_code::value_unknown, fault.place->location,
             {.field = fault.field,
              .value = fault.value->text,
              .other = text::joined(words),
              .hint = text::nearest(fault.value->text, words)});
  }

  void wrong_form(const field_forms::field_fault& fault) {
    const bool has_parts = fault.expected == field_forms::form::mapping || fault.expected == field_forms::form::list;
    if (has_parts) pod_.readable = false;  // the pod as a whole is judged by readers that want its parts
    if (fault.expected == field_forms::form::text) {
      pod_.findings.push_back(
          finding_of(config_map_file::not_text{fault.field, fault.place, fault.value}, pod_.manifest, pod_.locale));
      return;
    }
    const auto& is = *fault.value;
    if (!has_parts && is.scalar() && is.text.contains("{{"))
      return pod_.say(lint_code::template_text, fault.place->location, {.field = fault.field, .value = is.text});
    const auto value = !is.scalar() ? std::string(kind_in_manifest(is, pod_.locale))
                       : is.quoted  ? "\"" + is.text + "\""
                                    : is.text;
    pod_.say(lint_code::wrong_form, fault.place->location,
             {.field = fault.field, .value = value, .other = words_of(fault), .hint = number_in_quotes(fault)});
  }

  std::string words_of(const field_forms::field_fault& fault) const {
    constexpr std::array<std::string_view, 15> names{
        "text",        "whole_number",   "whole_number", "range",        "boolean",
        "quantity",    "number_or_text", "port_name",    "port_or_name", "unpadded",
        "object_name", "label",          "label_key",    "mapping",      "list"};
    static_assert(names.size() == static_cast<std::size_t>(field_forms::form::list) + 1);
    const auto* range = limits_of(fault);
    if (!range)
      return std::string(
          text::pattern_of("yaml." + std::string(names[static_cast<std::size_t>(fault.expected)]), pod_.locale));
    const auto number = field_forms::whole_number(*fault.value);
    const bool is_open =
        range->most >= std::numeric_limits<std::int32_t>::max() && number.value_or(range->least) <= range->most;
    return text::message(is_open ? "yaml.from" : "yaml.from_to", pod_.locale,
                         {{"least", std::to_string(range->least)}, {"most", std::to_string(range->most)}});
  }

  /// Null where it is another form that is expected.
  static const field_rules::number_limits* limits_of(const field_forms::field_fault& fault) {
    return fault.expected == field_forms::form::range ? field_rules::limits_of(*fault.owner, fault.about->name)
                                                      : nullptr;
  }

  /// 3 for "3", and true for "true".
  static std::string number_in_quotes(const field_forms::field_fault& fault) {
    using enum field_forms::form;
    const bool is_simple =
        fault.expected == number || fault.expected == range || fault.expected == long_number || fault.expected == flag;
    if (!is_simple || !fault.value->scalar() || !fault.value->quoted) return {};
    node plain;
    plain.is = node::shape::scalar;
    plain.text = fault.value->text;
    if (fault.expected == field_forms::form::flag)
      return plain.text == "true" || plain.text == "false" ? plain.text : std::string();
    const auto written = field_forms::whole_number(plain);
    const auto* limits = limits_of(fault);
    const bool legal = written && (!limits || (*written >= limits->least && *written <= limits->most));
    return legal && *written <= std::numeric_limits<std::int32_t>::max() ? std::to_string(*written) : std::string();
  }

  judged_pod& pod_;
};

}  // namespace

void judge_object(judged_pod& pod) { field_judge(pod).check_object(); }

void judge_fields(judged_pod& pod) { field_judge(pod).check(); }

}  // namespace cli
