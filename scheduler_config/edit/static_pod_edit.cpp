#include "scheduler_config/edit/static_pod_edit.hpp"

#include <algorithm>
#include <vector>

#include "api/names.hpp"
#include "scheduler_config/edit/placing.hpp"

namespace reconcilers::scheduler_config {
namespace {

using json = nlohmann::ordered_json;
using result = std::expected<std::string, finding>;
using made = std::expected<insertion, finding>;
constexpr auto volume = "quartermaster-scheduler-config";

class pod_edit {
 public:
  pod_edit(const document& of, const config_file& file) : of_(of), file_(file), pod_(read_static_pod(of)) {}

  std::optional<finding> run() {
    const auto tree = tree_of(of_);
    if (!pod_.container || !tree) return no_place(of_.root ? of_.root->at : yaml::place(), "spec.containers");
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
    const auto& all = yaml::find(yaml::find(of_.root, "spec"), "containers")->items;
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
      return finding{.what = code::config_flag_there, .at = there->at, .field = "command", .value = there->value};
    }
    const auto* command = yaml::find_entry(pod_.container, "command");
    if (!command || !command->value->sequence() || command->value->flow || command->value->items.empty())
      return no_place(command ? command->key->at : pod_.container->at, "command");
    const auto text = "--config=" + file_.path;
    const auto& program = *command->value->items[0];
    // The dash of the item stands before it on its line.
    const auto line = std::string_view(of_.text).rfind('\n', of_.base + program.from) + 1;
    const auto dash = of_.text.find_first_not_of(' ', line);
    if (of_.text[dash] != '-' || dash >= of_.base + program.from) return no_place(program.at, "command");
    auto& list = (*container_)["command"];
    list.insert(list.begin() + 1, text);
    return take(after_line(of_, program, dash - line, "command", json::array({text})));
  }

  std::optional<finding> mount() {
    if (pod_.mounted(file_.path)) return std::nullopt;
    const auto* spec = yaml::find(of_.root, "spec");
    const json mount = {{"name", volume}, {"mountPath", file_.path}, {"readOnly", true}};
    const json from = {{"name", volume}, {"hostPath", {{"path", file_.path}, {"type", "File"}}}};
    if (auto wrong = first_of(pod_.container, "volumeMounts", mount, (*container_)["volumeMounts"])) return wrong;
    return first_of(spec, "volumes", from, wanted["spec"]["volumes"]);
  }
  std::optional<finding> first_of(const yaml::node* in, const char* key, const json& item, nlohmann::json& list) {
    const auto* entry = yaml::find_entry(in, key);
    if (!entry || !(list.is_array() || list.is_null())) return no_place(entry ? entry->key->at : in->at, key);
    if (list.is_null()) list = nlohmann::json::array();
    list.insert(list.begin(), tree_of(item));
    return take(below_key(of_, *entry, key, json::array({item})));
  }

  std::optional<finding> annotation() {
    if (file_.checksum.empty()) return std::nullopt;
    const auto* metadata = yaml::find_entry(of_.root, "metadata");
    if (!metadata || !metadata->value->mapping()) return no_place(of_.root->at, "metadata");
    json ours = {{std::string(names::scheduler_config_annotation), file_.checksum}};
    if (file_.generation > 0)
      ours[std::string(names::scheduler_generation_annotation)] = std::to_string(file_.generation);
    const auto* annotations = yaml::find_entry(metadata->value, "annotations");
    if (annotations && annotations->value->is != yaml::node::shape::null && !annotations->value->mapping())
      return no_place(annotations->key->at, "metadata.annotations");
    if (wanted["metadata"]["annotations"].is_null()) wanted["metadata"]["annotations"] = nlohmann::json::object();
    for (const auto& [key, value] : ours.items()) {
      if (const auto* there = annotations ? yaml::find_entry(annotations->value, key) : nullptr)
        return no_place(there->key->at, "metadata.annotations");
      wanted["metadata"]["annotations"][key] = value;
    }
    if (annotations) return take(below_key(of_, *annotations, "metadata.annotations", ours));
    return take(below_key(of_, *metadata, "metadata", {{"annotations", ours}}));
  }

  const document& of_;
  const config_file& file_;
  static_pod pod_;
  nlohmann::json* container_ = nullptr;
};

}  // namespace

result remove_config_file(std::string_view manifest) { return without_marked(manifest); }

result add_config_file(std::string_view manifest, const config_file& file) {
  auto bare = remove_config_file(manifest);
  if (!bare && bare.error().what == code::nothing_of_ours) bare = std::string(manifest);
  if (!bare) return bare;
  const auto of = parse_document(*bare);
  if (!of) return std::unexpected(of.error());
  pod_edit edit(*of, file);
  if (auto wrong = edit.run()) return std::unexpected(std::move(*wrong));
  auto out = with_insertions(of->text, std::move(edit.edits));
  const auto there = parse_document(out);
  if (!there || tree_of(*there) != edit.wanted || (out != *bare && remove_config_file(out) != *bare))
    return std::unexpected(no_place(of->root->at, "spec"));
  return out;
}

}  // namespace reconcilers::scheduler_config
