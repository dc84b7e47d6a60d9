#include "cli/lint/judged_pod.hpp"

#include <algorithm>

#include "kube/quantity_text.hpp"
#include "quota/vocabulary.hpp"
#include "text/messages.hpp"
#include "text/text.hpp"

namespace cli {

void judged_pod::say(lint_code code, text::yaml::place place, const lint_details& details) {
  findings.push_back(finding_of(code, manifest, place, details, locale));
}

void judged_pod::unknown_name(const text::yaml::node& key, std::string_view field,
                              const kubernetes_fields::object_type& type) {
  const auto hint = kubernetes_fields::meant(key.text, type);
  say(lint_code::unknown_field, key.location, {.field = field, .hint = hint});
}

void judged_pod::unknown_names(const text::yaml::node* mapping, const std::string& below_path,
                               const kubernetes_fields::object_type& type) {
  if (!mapping || !mapping->mapping()) return;
  for (const auto& entry : mapping->entries)
    if (!type.find(entry.key->text))
      unknown_name(*entry.key, below(below_path, text::shown(entry.key->text, 320)), type);
}

void judged_pod::unreadable(const std::string& field, const text::yaml::node& key, const text::yaml::node& is) {
  readable = false;
  say(lint_code::spec_unreadable, key.location,
      {.field = path, .other = field + ": " + std::string(kind_in_manifest(is, locale))});
}

std::string below(const std::string& path, std::string_view name) {
  return path + (path.empty() ? "" : ".") + std::string(name);
}

std::string field(const std::string& path, std::string_view key) { return path + "[" + text::shown(key, 320) + "]"; }

std::string amount_at(const text::yaml::node& node) {
  const auto text = text::yaml::canonical(node);
  return std::string(node.scalar() ? kube::unpadded_quantity(text) : std::string_view(text));
}

const text::yaml::node* limits_of(const judged_pod::container& container) {
  return text::yaml::find(text::yaml::find(container.item, "resources"), "limits");
}

std::vector<std::pair<std::string_view, std::string_view>> texts_in(const text::yaml::node* node) {
  std::vector<std::pair<std::string_view, std::string_view>> out;
  if (!node || !node->mapping()) return out;
  for (const auto& entry : node->entries) {
    if (entry.value->scalar() && text::yaml::find_entry(node, entry.key->text) == &entry)
      out.emplace_back(entry.key->text, entry.value->text);
  }
  return out;
}

std::vector<const text::yaml::node::entry*> asked_in(const text::yaml::node* limits) {
  std::vector<const text::yaml::node::entry*> out;
  if (!limits || !limits->mapping()) return out;
  for (const auto& entry : limits->entries)
    if (quota::modes_of(entry.key->text) != 0 && kube::parse_quantity(amount_at(*entry.value)).value_or(0) > 0)
      out.push_back(&entry);
  return out;
}

kube::quantities quantities_in(const text::yaml::node* limits) {
  kube::quantities out;
  for (const auto* entry : asked_in(limits))
    if (text::yaml::find_entry(limits, entry->key->text) == entry)  // the last of a key counts
      out.emplace_back(entry->key->text, kube::parse_quantity(amount_at(*entry->value)).value_or(0));
  std::ranges::sort(out);
  return out;
}

std::size_t cards_of(const judged_pod::container& container) {
  const auto* limits = limits_of(container);
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

std::string_view kind_in_manifest(const text::yaml::node& node, text::language locale) {
  return text::pattern_of(node.sequence()  ? "yaml.list"
                          : node.mapping() ? "yaml.mapping"
                                           : "yaml.single_value",
                          locale);
}

}  // namespace cli
