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

}  // namespace

edited docker_main(const std::optional<std::string>& main, choice choice) {
  std::string text = main.value_or("");
  if (text.starts_with("\xEF\xBB\xBF")) return std::unexpected("it begins with a byte order mark: take it away");
  // Docker takes an empty file for an empty object.
  if (text.find_first_not_of(white) == std::string::npos) text = "{\n}\n";
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return std::unexpected("it is no JSON object");
  const auto root = text.find('{');
  const auto members = members_of(text, root);
  std::set<std::string> keys;
  for (const auto& member : members)
    if (!keys.insert(member.key).second) return std::unexpected("it sets " + member.key + " twice");
  const std::string key = "\"nvidia\": ", value = "{\"path\": \"" + std::string(nvidia_program) + "\"}";
  const auto* runtimes = find(members, "runtimes");
  if (runtimes && !json["runtimes"].is_object()) return std::unexpected("its runtimes are no object");
  const auto* name = find(members, "default-runtime");
  if (name && !json["default-runtime"].is_string()) return std::unexpected("its default-runtime is no text");
  const bool has_nvidia = runtimes && json["runtimes"].contains("nvidia");
  const bool new_default = choice.set_default && (!name || json["default-runtime"] != "nvidia");
  // From the end to the beginning, so that places stay.
  const auto set_runtime = [&] {
    if (runtimes && !has_nvidia) insert_member(text, runtimes->begin, key + value, "    ");
  };
  const bool default_is_later = name && runtimes && name->begin > runtimes->begin;
  if (!default_is_later) set_runtime();
  if (new_default && name) text.replace(name->begin, name->end - name->begin, "\"nvidia\"");
  if (default_is_later) set_runtime();
  if (!runtimes) insert_member(text, root, "\"runtimes\": {" + key + value + "}", "  ");
  if (new_default && !name) insert_member(text, root, "\"default-runtime\": \"nvidia\"", "  ");
  return text;
}

}  // namespace agent::container_runtime
