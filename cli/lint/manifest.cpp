#include "cli/lint/manifest.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <unordered_set>

#include "reconcilers/declarations/declared_config_map.hpp"
#include "reconcilers/declarations/reader.hpp"
#include "text/messages.hpp"

namespace cli {
namespace {

namespace declarations = reconcilers::declarations;
using text::yaml::node;

manifest made(const text::yaml::source& file, const node& root, std::string_view kind) {
  const auto* metadata = text::yaml::find(&root, "metadata");
  auto name = text::yaml::text_at(metadata, "name");
  if (name.empty()) name = text::yaml::text_at(metadata, "generateName");
  const auto version = text::yaml::text_at(&root, "apiVersion");
  const auto slash = version.find('/');
  return {&file,
          &root,
          std::string(version.substr(0, slash == std::string_view::npos ? 0 : slash)),
          std::string(kind),
          {std::string(text::yaml::text_at(metadata, "namespace")), std::string(name)}};
}

std::string text_of(const node& value) {
  const bool text = value.scalar() && text::yaml::type_of(value) != text::yaml::type::null;
  return text ? value.text : text::yaml::canonical(value);
}

/// Of a key that is written twice the last counts.
std::vector<std::pair<std::string, std::string>> texts_of(const node* node) {
  std::vector<std::pair<std::string, std::string>> out;
  if (!node || !node->mapping()) return out;
  std::unordered_set<std::string> there;
  for (auto position = node->entries.rbegin(); position != node->entries.rend(); ++position) {
    auto name = text::yaml::canonical(*position->key);
    if (there.insert(name).second) out.emplace_back(std::move(name), text_of(*position->value));
  }
  std::ranges::reverse(out);
  return out;
}

std::string filled(std::string_view path, std::string_view key) {
  const auto position = path.find("{}");
  return std::string(path.substr(0, position)) + std::string(key) + std::string(path.substr(position + 2));
}

/// The key whose name, as findings show it, is `name`.
const node* key_shown(const node* parent, std::string_view name) {
  const node* out = nullptr;
  if (!parent) return out;
  for (const auto& [key, value] : parent->entries) {
    if (declarations::data_path(key->text).substr(5) == name) out = key;
  }
  return out;
}

}  // namespace

std::vector<manifest> manifests_in(const text::yaml::source& file) {
  std::vector<manifest> out;
  struct part {
    const node* root;
    std::string_view kind;
  };
  std::vector<part> left;  // the next one last
  for (const auto* root : file.documents) left.push_back({root, text::yaml::text_at(root, "kind")});
  std::ranges::reverse(left);
  std::unordered_set<const node*> taken_apart;  // each list once: aliases multiply
  while (!left.empty()) {
    const auto [root, kind] = left.back();
    left.pop_back();
    const auto* items = text::yaml::find(root, "items");
    if (!kind.ends_with("List") || !items || !items->sequence()) {
      out.push_back(made(file, *root, kind));
      continue;
    }
    if (!taken_apart.insert(items).second) continue;
    // The items of a ConfigMapList straight from the API do not say what they are.
    const auto of_list = kind.substr(0, kind.size() - 4);
    for (auto item = items->items.rbegin(); item != items->items.rend(); ++item) {
      const auto own = text::yaml::text_at(*item, "kind");
      left.push_back({*item, own.empty() ? of_list : own});
    }
  }
  return out;
}

declarations::config_map_view config_map_file::view() const {
  declarations::config_map_view out;
  out.key = key;
  out.labels.assign(labels.begin(), labels.end());
  out.data.assign(data.begin(), data.end());
  out.binary = binary;
  // In the cluster metadata counts, too. What is too large by its data alone is refused there.
  std::size_t bytes = 0;
  for (const auto& [name, value] : data) bytes += name.size() + value.size();
  if (bytes > declarations::declared_config_map::most_bytes) out.left_out = bytes;
  return out;
}

std::vector<config_map_file::not_text> values_not_text(const node* parent, std::string_view path) {
  std::vector<config_map_file::not_text> out;
  if (!parent || !parent->mapping()) return out;
  for (const auto& [key, value] : parent->entries) {
    // null is what an empty field is, and the API server takes it for "".
    const bool text =
        value->is == node::shape::null || (value->scalar() && (text::yaml::type_of(*value) == text::yaml::type::text ||
                                                               text::yaml::type_of(*value) == text::yaml::type::null));
    if (!text) out.push_back({filled(path, declarations::data_path(key->text).substr(5)), key, value});
  }
  return out;
}

config_map_file read_config_map(const manifest& manifest) {
  config_map_file out;
  out.key = manifest.key;
  const auto* metadata = text::yaml::find(manifest.root, "metadata");
  const auto* labels = text::yaml::find(metadata, "labels");
  const auto* data = text::yaml::find(manifest.root, "data");
  out.labels = texts_of(labels);
  out.data = texts_of(data);
  if (const auto* binary = text::yaml::find(manifest.root, "binaryData")) out.binary = binary->entries.size();
  out.refused = values_not_text(labels, "metadata.labels[{}]");
  std::ranges::move(values_not_text(text::yaml::find(metadata, "annotations"), "metadata.annotations[{}]"),
                    std::back_inserter(out.refused));
  std::ranges::move(values_not_text(data, "data.{}"), std::back_inserter(out.refused));
  return out;
}

text::yaml::place place_of(const manifest& manifest, std::string_view field) {
  const auto* metadata = text::yaml::find_entry(manifest.root, "metadata");
  const node* section = metadata ? metadata->value : nullptr;
  const node* parent = metadata ? metadata->key : nullptr;
  if (field.starts_with("data")) {
    const auto* data = text::yaml::find_entry(manifest.root, "data");
    section = data ? data->value : nullptr;
    parent = data ? data->key : nullptr;
    field.remove_prefix(std::min<std::size_t>(field.size(), 5));
  } else if (field.starts_with("metadata.labels[") || field.starts_with("metadata.annotations[")) {
    const auto open = field.find('[');
    if (const auto* part = text::yaml::find_entry(section, field.substr(9, open - 9))) {
      parent = part->key;
      section = part->value;
    } else {
      section = nullptr;
    }
    field = field.substr(open + 1, field.size() - open - 2);
  } else if (field.starts_with("metadata.")) {
    field.remove_prefix(9);
  } else {
    section = manifest.root;
    parent = nullptr;
  }
  if (const auto* found = key_shown(section, field)) return found->location;
  return parent ? parent->location : manifest.root->location;
}

}  // namespace cli
