#include "cli/lint/manifest.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <unordered_set>

#include "reconcilers/declarations/reader.hpp"

namespace cli {
namespace {

namespace crl = reconcilers::crl;
using yaml::node;

struct workload_kind {
  std::string_view kind, path;
};
constexpr std::array<workload_kind, 9> workload_kinds{{{"Pod", "spec"},
                                                       {"Deployment", "spec.template.spec"},
                                                       {"StatefulSet", "spec.template.spec"},
                                                       {"DaemonSet", "spec.template.spec"},
                                                       {"ReplicaSet", "spec.template.spec"},
                                                       {"ReplicationController", "spec.template.spec"},
                                                       {"Job", "spec.template.spec"},
                                                       {"CronJob", "spec.jobTemplate.spec.template.spec"},
                                                       {"PodTemplate", "template.spec"}}};

manifest made(const yaml::source& file, const node& root, std::string_view kind) {
  const auto* metadata = yaml::find(&root, "metadata");
  auto name = yaml::text_at(metadata, "name");
  if (name.empty()) name = yaml::text_at(metadata, "generateName");
  return {&file, &root, std::string(kind), {std::string(yaml::text_at(metadata, "namespace")), std::string(name)}};
}

std::string text_of(const node& value) {
  const bool text = value.scalar() && yaml::type_of(value) != yaml::type::null;
  return text ? value.text : yaml::canonical(value);
}

/// Of a key that is written twice the last counts.
std::vector<std::pair<std::string, std::string>> texts_of(const node* in) {
  std::vector<std::pair<std::string, std::string>> out;
  if (!in || !in->mapping()) return out;
  std::unordered_set<std::string> there;
  for (auto at = in->entries.rbegin(); at != in->entries.rend(); ++at) {
    auto name = yaml::canonical(*at->key);
    if (there.insert(name).second) out.emplace_back(std::move(name), text_of(*at->value));
  }
  std::ranges::reverse(out);
  return out;
}

std::string filled(std::string_view path, std::string_view key) {
  const auto at = path.find("{}");
  return std::string(path.substr(0, at)) + std::string(key) + std::string(path.substr(at + 2));
}

/// The key whose name, as findings show it, is `shown`.
const node* key_shown(const node* in, std::string_view shown) {
  const node* out = nullptr;
  if (!in) return out;
  for (const auto& [key, value] : in->entries) {
    if (crl::data_path(key->text).substr(5) == shown) out = key;
  }
  return out;
}

}  // namespace

std::vector<manifest> manifests_in(const yaml::source& file) {
  std::vector<manifest> out;
  struct part {
    const node* root;
    std::string_view kind;
  };
  std::vector<part> left;  // the next one last
  for (const auto* root : file.documents) left.push_back({root, yaml::text_at(root, "kind")});
  std::ranges::reverse(left);
  std::unordered_set<const node*> taken_apart;  // each list once: aliases multiply
  while (!left.empty()) {
    const auto [root, kind] = left.back();
    left.pop_back();
    const auto* items = yaml::find(root, "items");
    if (!kind.ends_with("List") || !items || !items->sequence()) {
      out.push_back(made(file, *root, kind));
      continue;
    }
    if (!taken_apart.insert(items).second) continue;
    // The items of a ConfigMapList straight from the API do not say what they are.
    const auto of_list = kind.substr(0, kind.size() - 4);
    for (auto item = items->items.rbegin(); item != items->items.rend(); ++item) {
      const auto own = yaml::text_at(*item, "kind");
      left.push_back({*item, own.empty() ? of_list : own});
    }
  }
  return out;
}

crl::config_map_view config_map_file::view() const {
  crl::config_map_view out;
  out.key = key;
  out.labels.assign(labels.begin(), labels.end());
  out.data.assign(data.begin(), data.end());
  out.binary = binary;
  return out;
}

std::vector<config_map_file::not_text> values_not_text(const node* in, std::string_view path) {
  std::vector<config_map_file::not_text> out;
  if (!in || !in->mapping()) return out;
  for (const auto& [key, value] : in->entries) {
    // null is what an empty field is, and the API server takes it for "".
    const bool text =
        value->is == node::shape::null ||
        (value->scalar() && (yaml::type_of(*value) == yaml::type::text || yaml::type_of(*value) == yaml::type::null));
    if (!text) out.push_back({filled(path, crl::data_path(key->text).substr(5)), key, value});
  }
  return out;
}

config_map_file read_config_map(const manifest& from) {
  config_map_file out;
  out.key = from.key;
  const auto* metadata = yaml::find(from.root, "metadata");
  const auto* labels = yaml::find(metadata, "labels");
  const auto* data = yaml::find(from.root, "data");
  out.labels = texts_of(labels);
  out.data = texts_of(data);
  if (const auto* binary = yaml::find(from.root, "binaryData")) out.binary = binary->entries.size();
  out.refused = values_not_text(labels, "metadata.labels[{}]");
  std::ranges::move(values_not_text(yaml::find(metadata, "annotations"), "metadata.annotations[{}]"),
                    std::back_inserter(out.refused));
  std::ranges::move(values_not_text(data, "data.{}"), std::back_inserter(out.refused));
  return out;
}

yaml::place place_of(const manifest& in, std::string_view field) {
  const auto* metadata = yaml::find_entry(in.root, "metadata");
  const node* within = metadata ? metadata->value : nullptr;
  const node* parent = metadata ? metadata->key : nullptr;
  if (field.starts_with("data")) {
    const auto* data = yaml::find_entry(in.root, "data");
    within = data ? data->value : nullptr;
    parent = data ? data->key : nullptr;
    field.remove_prefix(std::min<std::size_t>(field.size(), 5));
  } else if (field.starts_with("metadata.labels[") || field.starts_with("metadata.annotations[")) {
    const auto open = field.find('[');
    if (const auto* part = yaml::find_entry(within, field.substr(9, open - 9))) {
      parent = part->key;
      within = part->value;
    } else {
      within = nullptr;
    }
    field = field.substr(open + 1, field.size() - open - 2);
  } else if (field.starts_with("metadata.")) {
    field.remove_prefix(9);
  } else {
    within = in.root;
    parent = nullptr;
  }
  if (const auto* found = key_shown(within, field)) return found->at;
  return parent ? parent->at : in.root->at;
}

std::string_view pod_spec_path(std::string_view kind) {
  const auto at = std::ranges::find(workload_kinds, kind, &workload_kind::kind);
  return at == workload_kinds.end() ? std::string_view() : at->path;
}

const node* pod_spec_of(const manifest& from) {
  auto path = pod_spec_path(from.kind);
  const node* at = path.empty() ? nullptr : from.root;
  while (at && !path.empty()) {
    const auto dot = std::min(path.find('.'), path.size());
    at = yaml::find(at, path.substr(0, dot));
    path.remove_prefix(std::min(path.size(), dot + 1));
  }
  return at && at->mapping() ? at : nullptr;
}

}  // namespace cli
