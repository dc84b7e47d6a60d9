#include "cli/lint/scheduler_input.hpp"

#include <algorithm>

#include "scheduler_config/judge/schema.hpp"
#include "scheduler_config/judge/verdict.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

namespace config = scheduler_config;
using text::yaml::node;

bool is_config_map(const node* object) { return text::yaml::text_at(object, "kind") == "ConfigMap"; }

/// The objects of all documents, those in lists too.
std::vector<const node*> objects_of(const text::yaml::source& source) {
  std::vector<const node*> out;
  for (const auto* document : source.documents) {
    const auto* items = text::yaml::find(document, "items");
    if (text::yaml::text_at(document, "kind").ends_with("List") && items && items->sequence()) {
      out.insert(out.end(), items->items.begin(), items->items.end());
    } else {
      out.push_back(document);
    }
  }
  return out;
}

/// Is it meant as a configuration of kube-scheduler, right or wrong?
bool is_meant(std::string_view text) {
  if (text.contains("KubeSchedulerConfiguration") || text.contains(config::group)) return true;
  const auto read = config::parse_document(text);
  if (read && !config::other_product_of(*read).empty()) return true;
  return read && text::yaml::text_at(read->root, "kind") == "Policy" &&
         (text::yaml::find(read->root, "extenders") || text::yaml::find(read->root, "predicates") ||
          text::yaml::find(read->root, "priorities"));
}

std::string_view line_at(std::string_view text, std::size_t index) {
  return text.substr(index, std::min(text.find('\n', index), text.size()) - index);
}

/// A block after "|" stands in the file as it is, but for its margin; `lines` stays 0 where it is none.
void find_block(const text::yaml::source& source, const node& value, scheduler_input& out) {
  const std::string_view file = source.text;
  if (value.offset >= file.size() || file[value.offset] != '|') return;
  auto begin = std::min(file.find('\n', value.offset), file.size() - 1) + 1;
  std::string_view text = value.text;
  while (!text.empty()) {
    const auto wanted = line_at(text, 0);
    const auto first = wanted.find_first_not_of(' ');
    const auto stands = line_at(file, std::min(begin, file.size()));
    const auto margin = stands.find_first_not_of(' ');
    if (first != wanted.npos) {
      if (margin == stands.npos || margin < first) return;
      out.lines = value.location.line;
      out.columns = static_cast<int>(margin - first);
      return;
    }
    text.remove_prefix(std::min(wanted.size() + 1, text.size()));
    begin = std::min(begin + stands.size() + 1, file.size());
  }
}

scheduler_input input_of(const std::string& name, const text::yaml::source& source, const node* config_map,
                         const node::entry& entry) {
  const auto* metadata = text::yaml::find(config_map, "metadata");
  scheduler_input out{.name = name, .read = config::parse_document(entry.value->text)};
  out.entry = entry.key->text;
  out.config_map = {std::string(text::yaml::text_at(metadata, "namespace")),
                    std::string(text::yaml::text_at(metadata, "name"))};
  out.key = entry.key->location;
  find_block(source, *entry.value, out);
  return out;
}

/// A file with ConfigMaps and none that is a configuration.
scheduler_input without(const std::string& name, const std::vector<const node*>& config_maps) {
  const auto* first = config_maps.front();
  std::string keys;
  if (const auto* data = text::yaml::find(first, "data"); data && data->mapping()) {
    for (const auto& entry : data->entries) keys += (keys.empty() ? "" : ", ") + entry.key->text;
  }
  const auto* kind = text::yaml::find_entry(first, "kind");
  return {.name = name,
          .read = std::unexpected(config::finding{
              .issue = config::code::config_map_without,
              .location = kind->key->location,
              .field = "data",
              .value = std::string(text::yaml::text_at(text::yaml::find(first, "metadata"), "name")),
              .other = keys,
              .terms = keys.empty() ? std::vector<text::phrase_argument>{{"other", phrase_of(config::term::no_data)}}
                                    : std::vector<text::phrase_argument>()})};
}

}  // namespace

text::yaml::place scheduler_input::place_in_file(text::yaml::place place) const {
  if (entry.empty()) return place;
  if (lines == 0) return key;
  return {lines + place.line, columns + place.column};
}

std::vector<scheduler_input> read_scheduler_inputs(const std::string& name, const std::string& bytes) {
  std::vector<scheduler_input> out;
  const auto whole = text::yaml::parse(bytes);
  std::vector<const node*> config_maps;
  bool configured = !whole;  // the first document is what kube-scheduler or a kubelet reads
  if (whole && !whole->documents.empty()) {
    const auto* first = whole->documents.front();
    const auto kind = text::yaml::text_at(first, "kind");
    configured = kind == "KubeSchedulerConfiguration" || kind == "Pod" || kind == "Policy" ||
                 text::yaml::text_at(first, "apiVersion").starts_with(config::group);
    std::ranges::copy_if(objects_of(*whole), std::back_inserter(config_maps), is_config_map);
  }
  if (!configured) {
    for (const auto* config_map : config_maps) {
      const auto* data = text::yaml::find(config_map, "data");
      if (!data || !data->mapping()) continue;
      for (const auto& entry : data->entries) {
        if (entry.value->scalar() && is_meant(entry.value->text))
          out.push_back(input_of(name, *whole, config_map, entry));
      }
    }
    if (out.empty() && !config_maps.empty()) out.push_back(without(name, config_maps));
  }
  if (out.empty()) out.push_back({.name = name, .read = config::parse_document(bytes)});
  return out;
}

}  // namespace cli
