#include "scheduler_config/edit/static_pod_edit.hpp"

#include <algorithm>
#include <vector>

#include "api/names.hpp"
#include "scheduler_config/edit/placing.hpp"

namespace scheduler_config {
namespace {

using nlohmann::ordered_json;
using result = std::expected<std::string, finding>;
using made = std::expected<insertion, finding>;
constexpr auto volume = "quartermaster-scheduler-config";

class pod_edit {
 public:
  pod_edit(const document& document, const config_file& file)
      : document_(document), file_(file), pod_(read_static_pod(document)) {}

  std::optional<finding> run() {
    const auto tree = tree_of(document_);
    if (!pod_.container || !tree)
      return no_place(document_.root ? document_.root->location : text::yaml::place(), "spec.containers");
    wanted = *tree;
    container_ = &wanted["spec"]["containers"][index()];
    for (const auto step : {&pod_edit::flag, &pod_edit::mount, &pod_edit::annotation}) {
      if (auto wrong = (this->*step)()) return wrong;
    }
    return std::nullopt;
  }

  nlohmann::json wanted;  ///< what a reader is to make of the edited file
  std::vector<insertion> edits;

 private:
  std::size_t index() const {
    const auto& all = text::yaml::find(text::yaml::find(document_.root, "spec"), "containers")->items;
    return static_cast<std::size_t>(std::ranges::find(all, pod_.container) - all.begin());
  }
  std::optional<finding> take(made edit) {
    if (!edit) return std::move(edit.error());
    edits.push_back(std::move(*edit));
    return std::nullopt;
  }

  std::optional<finding> flag() {
    if (const auto* there = pod_.find("config")) {
      if (there->value == file_.path && !there->one_dash) return std::nullopt;
      return finding{
          .issue = code::config_flag_there, .location = there->location, .field = "command", .value = there->value};
    }
    const auto* command = text::yaml::find_entry(pod_.container, "command");
    if (command && pod_.line.through_shell) return no_place(command->key->location, "command");
    if (!command || !command->value->sequence() || command->value->flow || command->value->items.empty())
      return no_place(command ? command->key->location : pod_.container->location, "command");
    const auto text = "--config=" + file_.path;
    const auto& program = *command->value->items[0];
    // The dash of the item stands before it on its line.
    const auto line = std::string_view(document_.text).rfind('\n', document_.base + program.offset) + 1;
    const auto dash = document_.text.find_first_not_of(' ', line);
    if (document_.text[dash] != '-' || dash >= document_.base + program.offset)
      return no_place(program.location, "command");
    auto& list = (*container_)["command"];
    list.insert(list.begin() + 1, text);
    return take(after_line(document_, program, dash - line, "command", ordered_json::array({text})));
  }

  std::optional<finding> mount() {
    if (pod_.mounted(file_.path)) return std::nullopt;
    const auto* spec = text::yaml::find(document_.root, "spec");
    const ordered_json mount = {{"name", volume}, {"mountPath", file_.path}, {"readOnly", true}};
    const ordered_json object = {{"name", volume}, {"hostPath", {{"path", file_.path}, {"type", "File"}}}};
    if (auto wrong = first_of(pod_.container, "volumeMounts", mount, (*container_)["volumeMounts"])) return wrong;
    return first_of(spec, "volumes", object, wanted["spec"]["volumes"]);
  }
  std::optional<finding> first_of(const text::yaml::node* node, const char* key, const ordered_json& item,
                                  nlohmann::json& list) {
    const auto* entry = text::yaml::find_entry(node, key);
    if (!entry || !(list.is_array() || list.is_null()))
      return no_place(entry ? entry->key->location : node->location, key);
    if (list.is_null()) list = nlohmann::json::array();
    list.insert(list.begin(), tree_of(item));
    return take(below_key(document_, *entry, key, ordered_json::array({item})));
  }

  std::optional<finding> annotation() {
    if (file_.checksum.empty()) return std::nullopt;
    const auto* metadata = text::yaml::find_entry(document_.root, "metadata");
    if (!metadata || !metadata->value->mapping()) return no_place(document_.root->location, "metadata");
    ordered_json added = {{std::string(api::names::scheduler_config_annotation), file_.checksum}};
    if (file_.generation > 0)
      added[std::string(api::names::scheduler_generation_annotation)] = std::to_string(file_.generation);
    const auto* annotations = text::yaml::find_entry(metadata->value, "annotations");
    if (annotations && annotations->value->is != text::yaml::node::shape::null && !annotations->value->mapping())
      return no_place(annotations->key->location, "metadata.annotations");
    if (wanted["metadata"]["annotations"].is_null()) wanted["metadata"]["annotations"] = nlohmann::json::object();
    for (const auto& [key, value] : added.items()) {
      if (const auto* there = annotations ? text::yaml::find_entry(annotations->value, key) : nullptr)
        return no_place(there->key->location, "metadata.annotations");
      wanted["metadata"]["annotations"][key] = value;
    }
    if (annotations) return take(below_key(document_, *annotations, "metadata.annotations", added));
    return take(below_key(document_, *metadata, "metadata", {{"annotations", added}}));
  }

  const document& document_;
  const config_file& file_;
  static_pod pod_;
  nlohmann::json* container_ = nullptr;
};

}  // namespace

result remove_config_file(std::string_view manifest) { return without_marked(manifest); }

result add_config_file(std::string_view manifest, const config_file& file) {
  auto bare = remove_config_file(manifest);
  if (!bare && bare.error().issue == code::nothing_of_ours) bare = std::string(manifest);
  if (!bare) return bare;
  const auto document = parse_document(*bare);
  if (!document) return std::unexpected(document.error());
  pod_edit edit(*document, file);
  if (auto wrong = edit.run()) return std::unexpected(std::move(*wrong));
  auto out = with_insertions(document->text, std::move(edit.edits));
  const auto there = parse_document(out);
  if (!there || tree_of(*there) != edit.wanted || (out != *bare && remove_config_file(out) != *bare))
    return std::unexpected(no_place(document->root->location, "spec"));
  return out;
}

}  // namespace scheduler_config
