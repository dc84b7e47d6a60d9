#include "cli/lint/pod_labels.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "text/list.hpp"
#include "text/resource_name.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using text::yaml::node;

/// Not filled in yet: `helm template` does that.
bool is_template(std::string_view text) { return text.contains("{{"); }

/// What the API server sets itself in the selector of a Job, and on its pods.
constexpr std::array<std::string_view, 4> labels_of_jobs{
    "controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"};

class selector_judge {
 public:
  selector_judge(judged_pod& pod, const node* parent, std::string path)
      : pod_(pod), parent_(parent), path_(std::move(path)) {}

  /// A Job's or a CronJob's.
  void check_generated() {
    const auto* entry = text::yaml::find_entry(parent_, "selector");
    if (!entry || entry->value->is == node::shape::null) return;
    std::vector<std::string_view> keys;
    if (const auto* labels = text::yaml::find(entry->value, "matchLabels"); labels && labels->mapping())
      for (const auto& label : labels->entries) keys.push_back(label.key->text);
    if (const auto* list = text::yaml::find(entry->value, "matchExpressions"); list && list->sequence())
      for (const auto* item : list->items) keys.push_back(text::yaml::text_at(item, "key"));
    const auto is_foreign = [](std::string_view key) {
      return std::ranges::find(labels_of_jobs, key) == labels_of_jobs.end();
    };
    const bool is_refused = pod_.manifest.kind == "CronJob" || std::ranges::any_of(keys, is_foreign);
    if (is_refused)
      pod_.say(lint_code::selector_generated, entry->key->location, {.field = path_, .key = pod_.manifest.kind});
  }

  void check_own() {
    const auto* entry = text::yaml::find_entry(parent_, "selector");
    const auto* about = text::yaml::find(pod_.form.holder, "metadata");
    const auto* labels = text::yaml::find(about, "labels");
    for (const auto& [key, value] : texts_in(labels)) labels_.insert_or_assign(key, value);
    const bool is_plain = pod_.manifest.kind == "ReplicationController";
    const auto* selector = entry ? entry->value : nullptr;
    const auto* equal = is_plain ? selector : text::yaml::find(selector, "matchLabels");
    const auto* wider = is_plain ? nullptr : text::yaml::find(selector, "matchExpressions");
    const auto is_empty = [](const node* part) { return !part || (part->entries.empty() && part->items.empty()); };
    if (!is_plain && selector && selector->mapping() && is_empty(equal) && is_empty(wider))
      pod_.say(lint_code::field_missing, entry->key->location, {.field = path_ + ".matchLabels"});
    if (equal && equal->mapping())
      for (const auto& label : equal->entries) check_label(label, is_plain ? path_ : path_ + ".matchLabels");
    if (!wider || !wider->sequence()) return;
    std::size_t index = 0;
    for (const auto* item : wider->items)
      check_requirement(*item, path_ + ".matchExpressions[" + std::to_string(index++) + "]");
  }

 private:
  void check_label(const node::entry& label, const std::string& path) {
    const auto match = labels_.find(label.key->text);
    const auto& wanted = label.value->text;
    const auto known = match == labels_.end() ? std::string_view() : match->second;
    const bool is_met = match != labels_.end() && known == wanted;
    if (!label.value->scalar() || is_met || is_template(wanted) || is_template(known)) return;
    mismatch(label.key->location, field(path, label.key->text), wanted, known);
  }

  void check_requirement(const node& item, const std::string& path) {
    const auto key = text::yaml::text_at(&item, "key"), op = text::yaml::text_at(&item, "operator");
    std::vector<std::string> values;
    if (const auto* list = text::yaml::find(&item, "values"); list && list->sequence())
      for (const auto* value : list->items) values.push_back(value->text);
    const auto match = labels_.find(key);
    const bool is_there = match != labels_.end();
    const bool is_listed = is_there && std::ranges::find(values, match->second) != values.end();
    const bool is_met = op == "In"             ? is_listed
                        : op == "NotIn"        ? !is_listed
                        : op == "Exists"       ? is_there
                        : op == "DoesNotExist" ? !is_there
                                               : true;
    if (!is_met)
      mismatch(item.location, path, std::string(key) + " " + std::string(op) + " " + text::joined(values), {});
  }

  void mismatch(text::yaml::place place, const std::string& path, std::string_view wanted, std::string_view known) {
    pod_.say(lint_code::selector_mismatch, place,
             {.field = path, .value = wanted, .key = pod_.manifest.kind, .hint = known});
  }

  judged_pod& pod_;
  const node* parent_;
  std::string path_;
  std::map<std::string_view, std::string_view> labels_;  ///< of the template
};

void judge_label_keys(judged_pod& pod, const node* mapping, const std::string& path, bool has_values) {
  if (!mapping || !mapping->mapping()) return;
  for (const auto& entry : mapping->entries) {
    const auto& key = entry.key->text;
    if (is_template(key)) continue;
    const bool is_key = text::is_label_key(has_values ? key : text::lower_case(key));
    const auto& value = entry.value->text;
    if (!is_key)
      pod.say(lint_code::label_key_malformed, entry.key->location, {.field = field(path, key), .value = key});
    else if (has_values && entry.value->scalar() && !text::is_label_value(value) && !is_template(value))
      pod.say(lint_code::label_value_malformed, entry.key->location, {.field = field(path, key), .value = value});
  }
}

}  // namespace

void judge_labels(judged_pod& pod, const node* metadata, const std::string& path) {
  judge_label_keys(pod, text::yaml::find(metadata, "labels"), path + ".labels", true);
  judge_label_keys(pod, text::yaml::find(metadata, "annotations"), path + ".annotations", false);
}

void judge_selectors(judged_pod& pod) {
  judge_label_keys(pod, text::yaml::find(pod.form.spec, "nodeSelector"), pod.path + ".nodeSelector", true);
  const auto& kind = pod.manifest.kind;
  const auto* spec = text::yaml::find(pod.manifest.root, "spec");
  if (!pod.known_kind || kind == "Pod" || kind == "PodTemplate") return;
  if (kind == "CronJob")
    return selector_judge(pod, text::yaml::find(text::yaml::find(spec, "jobTemplate"), "spec"),
                          "spec.jobTemplate.spec.selector")
        .check_generated();
  selector_judge judge(pod, spec, "spec.selector");
  const auto* manual = kind == "Job" ? text::yaml::find(spec, "manualSelector") : nullptr;
  const bool is_generated = kind == "Job" && !(manual && manual->scalar() && manual->text == "true");
  is_generated ? judge.check_generated() : judge.check_own();
}

}  // namespace cli
