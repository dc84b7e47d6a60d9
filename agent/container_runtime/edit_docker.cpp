// Docker's daemon.json. It has no drop-ins: members are inserted into the text, and all other bytes stay.

#include <nlohmann/json.hpp>
#include <set>

#include "agent/container_runtime/edit.hpp"

namespace agent::container_runtime {
namespace {

constexpr std::string_view white = " \t\r\n";

struct member {
  std::string key;
  std::size_t begin, end;  ///< of its value
};

/// Behind the value that begins at `index`. The text is valid JSON.
std::size_t value_end(std::string_view text, std::size_t index) {
  int depth = 0;
  do {
    const char c = text[index];
    if (c == '"') {
      for (++index; text[index] != '"'; ++index)
        if (text[index] == '\\') ++index;
      ++index;
    } else if (c == '{' || c == '[') {
      ++depth;
      ++index;
    } else if (c == '}' || c == ']') {
      --depth;
      ++index;
    } else if (depth > 0) {
      ++index;
    } else {
      index = std::min(text.find_first_of(" \t\r\n,]}", index), text.size());
    }
  } while (depth > 0);
  return index;
}

/// Of the object that begins at `index`.
std::vector<member> members_of(std::string_view text, std::size_t index) {
  std::vector<member> out;
  for (++index;;) {
    index = text.find_first_not_of(white, index);
    if (text[index] == ',') index = text.find_first_not_of(white, index + 1);
    if (text[index] == '}') return out;
    const auto key_end = value_end(text, index);
    auto key = nlohmann::json::parse(text.substr(index, key_end - index)).get<std::string>();
    const auto begin = text.find_first_not_of(white, text.find(':', key_end) + 1);
    index = value_end(text, begin);
    out.push_back({std::move(key), begin, index});
  }
}

/// As the first member of the object that begins at `index`.
void insert_member(std::string& text, std::size_t index, const std::string& member, const std::string& indent) {
  const auto first = text.find_first_not_of(white, index + 1);
  if (text[first] == '}') {
    text.insert(first, (text.substr(index + 1, first - index - 1).contains('\n') ? "" : "\n") + indent + member + "\n" +
                           indent.substr(2));
    return;
  }
  text.insert(first, member + "," + (first == index + 1 ? " " : text.substr(index + 1, first - index - 1)));
}

const member* find(const std::vector<member>& members, std::string_view key) {
  const auto found = std::ranges::find(members, key, &member::key);
  return found == members.end() ? nullptr : &*found;
}

struct docker_file {
  std::string text;
  std::size_t root = 0;  ///< where its object begins
};

/// Of a file that Docker reads: what would make an edit ambiguous.
std::expected<docker_file, text::phrase> editable(const std::optional<std::string>& main) {
  const auto wrong = [](const char* key, std::vector<text::phrase_argument> arguments = {}) {
    return std::unexpected(text::phrase{std::string("fix_runtime.docker.") + key, std::move(arguments)});
  };
  docker_file out{main.value_or(""), 0};
  if (out.text.starts_with("\xEF\xBB\xBF")) return wrong("byte_order_mark");
  // Docker takes an empty file for an empty object.
  if (out.text.find_first_not_of(white) == std::string::npos) out.text = "{\n}\n";
  out.root = out.text.find('{');
  std::set<std::string> keys;
  for (const auto& member : members_of(out.text, out.root))
    if (!keys.insert(member.key).second) return wrong("twice", {{"name", member.key}});
  return out;
}

/// As it was decided before programs were looked at.
runtime_edit docker_edit_by_name(const facts::runtime_settings& settings, bool set_default) {
  runtime_edit out;
  out.name = "nvidia";
  out.is_new = !settings.find("nvidia");
  if (out.is_new) out.program = nvidia_program;
  if (set_default && settings.default_name != "nvidia") out.default_name = "nvidia";
  return out;
}

/// The path of a runtime that is there.
void set_path(std::string& text, std::size_t runtimes, const runtime_edit& edit, const std::string& path) {
  const auto members = members_of(text, runtimes);
  const auto* runtime = find(members, edit.name);
  if (!runtime || text[runtime->begin] != '{') return;
  const auto parts = members_of(text, runtime->begin);
  if (const auto* present = find(parts, "path"))
    text.replace(present->begin, present->end - present->begin, path);
  else
    insert_member(text, runtime->begin, "\"path\": " + path, "      ");
}

}  // namespace

edited docker_main(const std::optional<std::string>& main, const choice& choice) {
  const auto known = facts::docker_known(facts::main_path(facts::layout_of("docker")), main);
  if (!known) return std::unexpected(phrase_of(known.error()));
  const auto& settings = known->settings;
  const auto edit = choice.is_by_name ? docker_edit_by_name(settings, choice.set_default) : edit_of(settings, choice);
  if (!edit) return std::unexpected(edit.error());
  if (main && edit->is_empty()) return *main;
  auto file = editable(main);
  if (!file) return std::unexpected(file.error());
  auto& text = file->text;
  const auto members = members_of(text, file->root);
  const auto path = nlohmann::json(edit->program).dump(), default_name = nlohmann::json(edit->default_name).dump();
  const auto entry = nlohmann::json(edit->name).dump() + ": {\"path\": " + path + "}";
  const auto* runtimes = find(members, "runtimes");
  const auto* name = find(members, "default-runtime");
  const bool new_default = !edit->default_name.empty();
  // From the end to the beginning, so that places stay.
  const auto set_runtime = [&] {
    if (!runtimes || edit->program.empty()) return;
    if (edit->is_new)
      insert_member(text, runtimes->begin, entry, "    ");
    else
      set_path(text, runtimes->begin, *edit, path);
  };
  const bool default_is_later = name && runtimes && name->begin > runtimes->begin;
  if (!default_is_later) set_runtime();
  if (new_default && name) text.replace(name->begin, name->end - name->begin, default_name);
  if (default_is_later) set_runtime();
  if (!runtimes && edit->is_new) insert_member(text, file->root, "\"runtimes\": {" + entry + "}", "  ");
  if (new_default && !name) insert_member(text, file->root, "\"default-runtime\": " + default_name, "  ");
  return text;
}

}  // namespace agent::container_runtime
