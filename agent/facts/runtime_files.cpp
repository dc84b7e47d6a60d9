#include "agent/facts/runtime_files.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>
#include <span>

#include "text/text.hpp"

namespace agent::facts {
namespace {

using problem_found = std::optional<explained_cause>;

explained_cause at_line(check_cause code, const runtime_file& source, std::size_t line,
                        std::vector<text::parameter> parameters = {}) {
  explained_cause out{code, {{"path", source.path}, {"line", std::to_string(line)}}};
  out.parameters.insert(out.parameters.end(), parameters.begin(), parameters.end());
  return out;
}

/// The runtime does not load the file.
explained_cause refused_line(const runtime_file& source, std::size_t line, const std::string& problem,
                             const std::string& value) {
  return at_line(check_cause::config_line, source, line, {{"problem", problem}, {"value", value}});
}

/// `[plugins."io.containerd.grpc.v1.cri".runtimes]` without its brackets.
std::string table_text(std::span<const std::string> path) {
  std::string out;
  for (const auto& name : path) {
    const bool is_bare = !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '_' || c == '-';
    });
    out += (out.empty() ? "" : ".") + (is_bare ? name : "\"" + name + "\"");
  }
  return out;
}

// What types a runtime wants.

enum class value_type { number, text, flag, list, table };
constexpr std::array<const char*, 5> type_problems{"no_number", "no_text", "no_flag", "no_list", "no_table"};

/// "*" is any name.
struct typed_key {
  toml_path path;
  value_type type;
};

bool has_type(std::string_view value, value_type type) {
  const bool is_quoted = value.starts_with('"') || value.starts_with('\'');
  switch (type) {
    case value_type::number:
      return !value.empty() &&
             std::ranges::all_of(value, [](unsigned char c) { return std::isdigit(c) != 0 || c == '_'; });
    case value_type::text:
      return is_quoted;
    case value_type::flag:
      return value == "true" || value == "false";
    case value_type::list:
      return value.starts_with('[');
    case value_type::table:
      return value.starts_with('{');
  }
  return false;
}

problem_found wrong_type(const runtime_file& source, const toml_document& document,
                         const std::vector<typed_key>& keys) {
  const auto is_key = [](const toml_path& path, const toml_path& key) {
    return std::ranges::equal(path, key,
                              [](const auto& name, const auto& part) { return part == "*" || name == part; });
  };
  for (const auto& key : keys) {
    const auto problem = [&](std::size_t line, const std::string& name) {
      return refused_line(source, line, type_problems[static_cast<std::size_t>(key.type)], name);
    };
    for (const auto& setting : document.settings)
      if (is_key(setting.path, key.path) && !has_type(setting.value, key.type))
        return problem(setting.line, setting.path.back());
    if (key.type == value_type::table) continue;
    for (const auto& table : document.tables)
      if (is_key(table.path, key.path)) return problem(table.line, table.path.back());
  }
  return std::nullopt;
}

/// Of the runtimes below a path.
void add_runtime_keys(std::vector<typed_key>& keys, const toml_path& runtimes) {
  const auto add = [&](const toml_path& rest, value_type type) {
    auto path = runtimes;
    path.insert(path.end(), rest.begin(), rest.end());
    keys.push_back({std::move(path), type});
  };
  add({}, value_type::table);
  add({"*"}, value_type::table);
  add({"*", "runtime_type"}, value_type::text);
  add({"*", "runtime_path"}, value_type::text);
  add({"*", "options"}, value_type::table);
  add({"*", "options", "BinaryName"}, value_type::text);
}

// Where settings are, and what is taken over.

/// Where a kind of file has its runtimes.
struct places {
  toml_path runtimes, default_key;
};

places containerd_places(std::string_view plugin) {
  return {containerd_path(plugin, {"runtimes"}), containerd_path(plugin, {"default_runtime_name"})};
}

/// The name below `runtimes`; empty: the path is elsewhere.
std::string runtime_name(const toml_path& path, const places& places) {
  const auto size = places.runtimes.size();
  return path.size() > size && is_within(path, places.runtimes) ? path[size] : std::string();
}

/// What of an entry a setting sets, or nullptr.
std::string* target_of(const toml_path& path, const places& places, runtime_entry& entry) {
  const auto size = places.runtimes.size();
  const auto& key = path.back();
  const bool is_option = path.size() == size + 3 && path[size + 1] == "options";
  const bool is_own = path.size() == size + 2;
  if (is_own && key == "runtime_type") return &entry.type;
  if ((is_own && key == "runtime_path") || (is_option && key == "BinaryName")) return &entry.program;
  return is_option && key == "SystemdCgroup" ? &entry.systemd : nullptr;
}

/// @param takes_default,takes_runtimes false: a section that goes before this one has them
void take_in(const runtime_file& source, const toml_document& document, const places& places, known_runtimes& out,
             bool takes_default = true, bool takes_runtimes = true) {
  if (takes_runtimes)
    for (const auto& table : document.tables)
      if (const auto name = runtime_name(table.path, places); !name.empty()) out.settings.at(name);
  for (const auto& setting : document.settings) {
    if (setting.path == places.default_key && takes_default) {
      out.settings.default_name = unquoted(setting.value);
      out.default_file = source.path;
    }
    const auto name = runtime_name(setting.path, places);
    if (name.empty() || !takes_runtimes) continue;
    auto& entry = out.settings.at(name);
    auto* target = target_of(setting.path, places, entry);
    if (!target) continue;
    // A boolean as text stays in its quotes: containerd refuses it.
    *target = target == &entry.systemd ? setting.value : unquoted(setting.value);
    if (target == &entry.systemd && setting.value == "true") out.uses_systemd = true;
    out.setters[name + "." + setting.path.back()] = source.path;
  }
}

/// The first containerd that reads the section of version 2 in files of version 3 (its ConfigVersion is 4).
constexpr std::string_view reads_old_section = "2.3";

/// Settings of runtimes that stand where the runtime does not look, and are about NVIDIA's or about cgroups.
/// @param later where newer containerds look as well; nullptr: nowhere
void take_in_strays(const runtime_file& source, const toml_document& document, const std::vector<places>& all,
                    known_runtimes& out, const places* later = nullptr) {
  const auto is_later = [&](const toml_path& path) {
    return later && ((path == later->default_key && !document.has(all.back().default_key)) ||
                     (is_within(path, later->runtimes) && !document.has(all.back().runtimes)));
  };
  for (const auto& setting : document.settings) {
    const auto& path = setting.path;
    const auto& key = path.back();
    runtime_entry ignored;
    const bool is_read = std::ranges::any_of(all, [&](const places& places) {
      return path == places.default_key ||
             (!runtime_name(path, places).empty() && target_of(path, places, ignored) != nullptr);
    });
    if (is_read) continue;
    stray_setting stray{key,
                        unquoted(setting.value),
                        source.path,
                        table_text(std::span(path).first(path.size() - 1)),
                        {},
                        setting.line,
                        is_later(path) ? std::string(reads_old_section) : std::string()};
    for (const auto& places : all)
      if (path.size() == places.runtimes.size() + 2 && stray.runtime.empty())
        stray.runtime = runtime_name(path, places);
    if (!stray.since.empty()) stray.runtime = runtime_name(path, *later);
    const bool is_program = (key == "BinaryName" || key == "runtime_path") && is_nvidia_program(stray.value);
    const bool is_type = key == "runtime_type" && path.size() > 1 && path[path.size() - 2] == "nvidia";
    const bool is_default = key == "default_runtime_name" || (key == "default_runtime" && stray.value == "nvidia");
    if (is_program || is_type || is_default || (key == "SystemdCgroup" && !stray.runtime.empty()))
      out.settings.strays.push_back(std::move(stray));
  }
}

// containerd.

bool is_plugin_name(std::string_view name) {
  return name.starts_with("io.containerd.") && std::ranges::count(name, '.') >= 3;
}

/// 1 to 4; nothing: it says none.
fact<std::optional<int>> version_of(const runtime_file& source, const toml_document& document) {
  const auto* version = document.find({"version"});
  if (!version) return std::nullopt;
  int number = 0;
  std::from_chars(version->value.data(), version->value.data() + version->value.size(), number);
  if (number > 4)
    return std::unexpected(
        at_line(check_cause::config_version_other, source, version->line, {{"version", version->value}}));
  return number == 0 ? std::nullopt : std::optional(number);
}

/// The line of the first setting or table at this path or below it.
std::size_t line_of(const toml_document& document, const toml_path& path) {
  std::size_t out = 0;
  const auto take = [&](const auto& part) {
    if (is_within(part.path, path) && (out == 0 || part.line < out)) out = part.line;
  };
  std::ranges::for_each(document.settings, take);
  std::ranges::for_each(document.tables, take);
  return out;
}

problem_found disabled_plugin(const runtime_file& source, const toml_document& document) {
  const auto* disabled = document.find({"disabled_plugins"});
  if (!disabled) return std::nullopt;
  for (const auto& item : text::quoted_in(disabled->value))
    if (item == "cri" || item == containerd_plugins[0] || item.starts_with("io.containerd.cri.v1."))
      return at_line(check_cause::plugin_disabled, source, disabled->line, {{"plugin", item}});
  return std::nullopt;
}

/// containerd 1 refuses files of version 2 with another name, and containerd 2 ignores such a table.
problem_found unnamed_plugin(const runtime_file& source, const toml_document& document) {
  for (const auto& setting : document.settings)
    if (setting.path.front() == "plugins" && setting.path.size() > 1 && !is_plugin_name(setting.path[1]))
      return at_line(check_cause::plugin_unnamed, source, line_of(document, {"plugins", setting.path[1]}),
                     {{"plugin", setting.path[1]}});
  return std::nullopt;
}

bool has_runtimes(const toml_document& document, const places& places) {
  return document.has(places.runtimes) || document.has(places.default_key);
}

/// The sections that a file of this version is read for, the one that goes before the others last. A main file of
/// version 4 is of containerd 2.3 or newer.
std::vector<std::string_view> sections_of(int version, int main_version) {
  const bool is_of_containerd_2 = main_version > 2;
  std::vector<std::string_view> out;
  if (version == 1) out.emplace_back("cri");
  if (version == 2 || (is_of_containerd_2 && version < (main_version == 4 ? 4 : 3)))
    out.push_back(containerd_plugins[0]);
  if (is_of_containerd_2) out.push_back(containerd_plugins[1]);
  return out;
}

/// A section that containerd 2 reads in a file of this version, and containerd 1 does not.
problem_found section_of_other_version(const runtime_file& source, const toml_document& document, int version) {
  if (version > 2) return std::nullopt;
  for (int index = version == 1 ? 0 : 1; index < 2; ++index) {
    const auto plugin = containerd_plugins.at(static_cast<std::size_t>(index));
    if (!has_runtimes(document, containerd_places(plugin))) continue;
    return at_line(check_cause::section_other_version, source, line_of(document, containerd_path(plugin, {})),
                   {{"table", table_text(containerd_path(plugin, {}))},
                    {"version", std::to_string(version)},
                    {"needed", std::to_string(index + 2)}});
  }
  return std::nullopt;
}

problem_found wrong_containerd_type(const runtime_file& source, const toml_document& document,
                                    const std::vector<std::string_view>& sections) {
  std::vector<typed_key> keys{{{"version"}, value_type::number},        {{"imports"}, value_type::list},
                              {{"disabled_plugins"}, value_type::list}, {{"required_plugins"}, value_type::list},
                              {{"plugins"}, value_type::table},         {{"plugins", "*"}, value_type::table}};
  for (const auto section : sections) {
    keys.push_back({{"plugins", std::string(section), "enable_cdi"}, value_type::flag});
    keys.push_back({containerd_path(section, {}), value_type::table});
    keys.push_back({containerd_path(section, {"default_runtime_name"}), value_type::text});
    add_runtime_keys(keys, containerd_path(section, {"runtimes"}));
  }
  return wrong_type(source, document, keys);
}

void take_in_old_default(const runtime_file& source, const toml_document& document, std::string_view section,
                         known_runtimes& out) {
  const auto text_at = [&](const toml_path& rest) {
    const auto* setting = document.find(containerd_path(section, rest));
    return setting ? unquoted(setting->value) : std::string();
  };
  const std::string name(deprecated_default);
  const auto type = text_at({name, "runtime_type"});
  if (type.empty()) return;
  auto& entry = out.settings.at(name);
  entry = {name, type, text_at({name, "options", "BinaryName"}), text_at({name, "options", "SystemdCgroup"})};
  out.settings.default_name = name;
  out.default_file = source.path;
}

/// In a file of version 2, which containerd 1 may read, a section is replaced as a whole.
bool hides_section(const runtime_file& source, const toml_document& document) {
  if (!document.has({"plugins", std::string(containerd_plugins[0])})) return false;
  known_runtimes known;
  take_in(source, document, containerd_places(containerd_plugins[0]), known);
  return std::ranges::none_of(known.settings.entries, is_nvidia);
}

problem_found take_in_containerd(const runtime_file& source, bool is_main, known_runtimes& out) {
  const auto document = toml_in(source);
  if (!document) return document.error();
  if (auto wrong = wrong_containerd_type(source, *document, {})) return wrong;
  const auto own_version = version_of(source, *document);
  if (!own_version) return own_version.error();
  if (is_main) out.version = own_version->value_or(1);
  const bool is_of_containerd_2 = out.version > 2;
  const int version = own_version->value_or(is_of_containerd_2 ? 1 : out.version);
  if (const auto& later = document->later_problem) {
    if (is_of_containerd_2) return refused_line(source, later->line, later->code, later->value);
    return at_line(check_cause::config_line_later, source, later->line,
                   {{"problem", later->code}, {"value", later->value}});
  }
  if (document->has({"crio"}) && !document->has({"plugins"}))
    return at_line(check_cause::file_of_crio, source, line_of(*document, {"crio"}));
  const auto sections = sections_of(version, out.version);
  if (auto wrong = wrong_containerd_type(source, *document, sections)) return wrong;
  if (auto disabled = disabled_plugin(source, *document)) return disabled;
  if (out.version == 2)
    if (auto unnamed = unnamed_plugin(source, *document)) return unnamed;
  if (!is_of_containerd_2)
    if (auto other = section_of_other_version(source, *document, version)) return other;
  if (!is_main && out.version == 2 && hides_section(source, *document))
    return explained_cause{
        check_cause::section_twice,
        {{"path", source.path}, {"table", table_text(toml_path{"plugins", std::string(containerd_plugins[0])})}}};
  std::vector<places> all;
  for (const auto section : sections) all.push_back(containerd_places(section));
  for (std::size_t index = 0; index < all.size(); ++index) {
    const auto is_hidden = [&](toml_path places::* part) {
      return std::any_of(all.begin() + static_cast<std::ptrdiff_t>(index) + 1, all.end(),
                         [&](const places& later) { return document->has(later.*part); });
    };
    take_in(source, *document, all[index], out, !is_hidden(&places::default_key), !is_hidden(&places::runtimes));
    const auto* cdi = document->find({"plugins", std::string(sections[index]), "enable_cdi"});
    if (cdi) out.uses_cdi = cdi->value == "true";
  }
  const auto old_places = containerd_places(containerd_plugins[0]);
  take_in_strays(source, *document, all, out, version == 3 && sections.size() == 1 ? &old_places : nullptr);
  if (!is_of_containerd_2) take_in_old_default(source, *document, sections.front(), out);
  return std::nullopt;
}

// Docker.

std::size_t line_at(std::string_view text, std::size_t index) {
  return 1 + static_cast<std::size_t>(std::ranges::count(text.substr(0, std::min(index, text.size())), '\n'));
}

std::string text_in(const nlohmann::json& object, const char* key) {
  const auto match = object.find(key);
  return match != object.end() && match->is_string() ? match->get<std::string>() : std::string();
}

/// As nothing but an object is taken apart, there are no copies, which would be recursive.
problem_found docker_fault(const runtime_file& source, const nlohmann::json& json) {
  const auto wrong = [&](const char* key, const char* problem) {
    return refused_line(source, line_at(source.text, source.text.find('"' + std::string(key) + '"')), problem, key);
  };
  if (const auto runtimes = json.find("runtimes"); runtimes != json.end()) {
    if (!runtimes->is_object()) return wrong("runtimes", "no_table");
    for (const auto& [name, runtime] : runtimes->items())
      if (!runtime.is_object()) return wrong(name.c_str(), "no_table");
  }
  const auto name = json.find("default-runtime");
  if (name != json.end() && !name->is_string()) return wrong("default-runtime", "no_text");
  return std::nullopt;
}

}  // namespace

toml_path containerd_path(std::string_view plugin, const toml_path& rest) {
  toml_path out{"plugins", std::string(plugin), "containerd"};
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

fact<toml_document> toml_in(const runtime_file& source) {
  auto document = read_toml(source.text);
  if (document) return *std::move(document);
  const auto& problem = document.error();
  return std::unexpected(refused_line(source, problem.line, problem.code, problem.value));
}

fact<import_list> containerd_imports(const runtime_file& source) {
  const auto document = toml_in(source);
  if (!document) return std::unexpected(document.error());
  if (auto wrong = wrong_containerd_type(source, *document, {})) return std::unexpected(*std::move(wrong));
  const auto* imports = document->find({"imports"});
  return imports ? import_list{text::quoted_in(imports->value), imports->line} : import_list();
}

fact<known_runtimes> containerd_known(const std::vector<runtime_file>& sources) {
  known_runtimes out;
  out.settings.default_name = "runc";
  for (const auto& source : sources)
    if (auto problem = take_in_containerd(source, &source == &sources.front(), out))
      return std::unexpected(*std::move(problem));
  // Versions 3 and 4 are of containerd 2, where CDI is on by default.
  if (out.version > 2 && !out.uses_cdi) out.uses_cdi = true;
  return out;
}

fact<known_runtimes> crio_known(const std::vector<runtime_file>& sources) {
  const places places{{"crio", "runtime", "runtimes"}, {"crio", "runtime", "default_runtime"}};
  std::vector<typed_key> keys{{{"crio"}, value_type::table},
                              {{"crio", "runtime"}, value_type::table},
                              {places.default_key, value_type::text},
                              {{"crio", "runtime", "cgroup_manager"}, value_type::text}};
  add_runtime_keys(keys, places.runtimes);
  known_runtimes out;
  out.settings.type = runtime_settings::kind::crio;
  out.settings.default_name = "crun";
  out.uses_cdi = true;
  out.uses_systemd = true;  // unless it says otherwise
  for (const auto& source : sources) {
    const auto document = toml_in(source);
    if (!document) return std::unexpected(document.error());
    if (auto wrong = wrong_type(source, *document, keys)) return std::unexpected(*std::move(wrong));
    take_in(source, *document, places, out);
    take_in_strays(source, *document, {places}, out);
    if (const auto* manager = document->find({"crio", "runtime", "cgroup_manager"}))
      out.uses_systemd = unquoted(manager->value) == "systemd";
  }
  // CRI-O looks for a program of the runtime's name then.
  for (auto& entry : out.settings.entries)
    if (entry.program.empty() && is_nvidia_program(entry.name)) entry.program = entry.name;
  return out;
}

fact<known_runtimes> docker_known(const std::string& path, const std::optional<std::string>& text) {
  known_runtimes out;
  auto& settings = out.settings;
  settings.type = runtime_settings::kind::docker;
  settings.default_name = "runc";
  // Docker takes an empty file for an empty object.
  if (!text || text::trimmed(*text).empty()) return out;
  const runtime_file source{path, *text};
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(*text);
  } catch (const nlohmann::json::parse_error& error) {
    return std::unexpected(refused_line(source, line_at(*text, error.byte == 0 ? 0 : error.byte - 1), "no_json", ""));
  }
  if (!json.is_object()) return std::unexpected(refused_line(source, 1, "no_object", ""));
  if (auto wrong = docker_fault(source, json)) return std::unexpected(*std::move(wrong));
  if (auto name = text_in(json, "default-runtime"); !name.empty()) settings.default_name = std::move(name);
  if (const auto runtimes = json.find("runtimes"); runtimes != json.end())
    for (const auto& [name, runtime] : runtimes->items()) {
      auto& entry = settings.at(name);
      entry.program = text_in(runtime, "path");
      const auto options = runtime.find("options");
      if (entry.program.empty() && options != runtime.end() && options->is_object())
        entry.program = text_in(*options, "BinaryName");
    }
  if (const auto options = json.find("exec-opts"); options != json.end() && options->is_array())
    out.uses_systemd = std::ranges::any_of(
        *options, [](const nlohmann::json& option) { return option == "native.cgroupdriver=systemd"; });
  return out;
}

api::check_state state_of(api::check_cause fault) {
  switch (fault) {
    case check_cause::config_line:
    case check_cause::file_of_crio:
    case check_cause::plugin_disabled:
    case check_cause::plugin_unnamed:
    case check_cause::import_missing:
      return api::check_state::failed;
    case check_cause::config_line_later:
    case check_cause::section_twice:
    case check_cause::section_other_version:
      return api::check_state::warning;
    default:
      return api::check_state::unknown;
  }
}

}  // namespace agent::facts
