// containerd's config.toml and our drop-ins.

#include <fnmatch.h>

#include <algorithm>
#include <array>

#include "agent/container_runtime/edit.hpp"
#include "agent/container_runtime/toml.hpp"
#include "scheduler_config/edit/static_pod.hpp"
#include "text/text.hpp"

namespace agent::container_runtime {
namespace {

constexpr std::string_view first_line =
    "# Written by `quartermaster agent fix-runtime`; its --restore removes this file. Do not edit: sha256 ";
constexpr std::array plugins{"io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"};

std::string plugin_of(int version) { return plugins[version == 2 ? 0 : 1]; }

toml_path below(const std::string& plugin, toml_path rest) {
  toml_path out{"plugins", plugin, "containerd"};
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

std::string head(const std::string& plugin, std::string_view rest) {
  return "[plugins.\"" + plugin + "\".containerd" + std::string(rest) + "]";
}

/// The lines of the runtime, each with a line end.
std::string nvidia_tables(const std::string& plugin, const std::string& systemd, const std::string& newline) {
  std::string out = head(plugin, ".runtimes.nvidia") + newline;
  out += "  runtime_type = \"io.containerd.runc.v2\"" + newline;
  out += "  " + head(plugin, ".runtimes.nvidia.options") + newline;
  out += "    BinaryName = \"" + std::string(nvidia_program) + "\"" + newline;
  if (!systemd.empty()) out += "    SystemdCgroup = " + systemd + newline;
  return out;
}

/// Inline tables and dotted keys cannot be continued by a table further down.
std::string obstacle(const toml_document& document) {
  for (const auto& setting : document.settings) {
    if (setting.path.front() != "plugins") continue;
    const auto plugin = setting.path.size() > 1 ? setting.path[1] : std::string();
    const bool concerns = setting.path.size() < 2 || std::ranges::find(plugins, plugin) != plugins.end();
    if (!concerns) continue;
    const auto target = below(plugin, {"runtimes", "nvidia", "options"});
    const auto size = std::min(target.size(), setting.path.size());
    if (!std::equal(target.begin(), target.begin() + static_cast<std::ptrdiff_t>(size), setting.path.begin())) {
      if (setting.path.size() < 3 || setting.path[2] != "containerd") continue;
    }
    if (setting.value.starts_with('{') || setting.path.size() - setting.table_size > 1)
      return "it writes " + setting.path.back() +
             " below plugins as an inline table or dotted key; write it as a table";
  }
  return {};
}

std::expected<toml_document, std::string> understood(std::string_view text) {
  auto document = read_toml(text);
  if (!document) return document;
  if (auto problem = obstacle(*document); !problem.empty()) return std::unexpected(std::move(problem));
  return document;
}

std::expected<int, std::string> version_of(const toml_document& document) {
  const auto* version = document.find({"version"});
  if (!version)
    return std::unexpected(
        "it names no version, which is containerd's old format: write one of version 2 or 3 "
        "(containerd config default), and call again");
  for (const auto number : {2, 3, 4})
    if (version->value == std::to_string(number)) return number;
  return std::unexpected("its version is " + version->value + ", and 2, 3 and 4 are understood");
}

bool imports_drop_in(const toml_setting& imports) {
  return std::ranges::any_of(text::quoted_in(imports.value), [](std::string pattern) {
    if (!pattern.starts_with('/')) pattern = "/etc/containerd/" + pattern;
    return ::fnmatch(pattern.c_str(), std::string(containerd_drop_in).c_str(), FNM_PATHNAME) == 0;
  });
}

edited with_import(std::string text, const toml_document& document) {
  const std::string folder = "\"/etc/containerd/conf.d/*.toml\"";
  const auto* imports = document.find({"imports"});
  if (!imports) {
    const auto* version = document.find({"version"});
    const bool has_end = version->line_end > 0 && text[version->line_end - 1] == '\n';
    const auto line = "imports = [" + folder + "]";
    text.insert(version->line_end, has_end ? line + document.newline : document.newline + line);
    return text;
  }
  if (imports_drop_in(*imports)) return text;
  if (!imports->value.starts_with('[')) return std::unexpected("its imports are no list");
  if (imports->has_comment)
    return std::unexpected("its imports have comments between them: add " + folder + " to them, and call again");
  const auto last = text.find_last_not_of(" \t\r\n", imports->end - 2);
  text.insert(last + 1, (text[last] == '[' ? "" : text[last] == ',' ? " " : ", ") + folder);
  return text;
}

std::string systemd_of(const toml_document& document) {
  std::string out;
  for (const auto* plugin : plugins)
    if (const auto* setting = document.find(below(plugin, {"runtimes", "runc", "options", "SystemdCgroup"})))
      out = setting->value;
  return out;
}

void append(std::string& text, const std::string& lines, const std::string& newline) {
  if (!text.empty() && !text.ends_with('\n')) text += newline;
  text += lines;
}

/// Of version 2.
std::string with_runtime(std::string text, const toml_document& document, choice choice) {
  const auto plugin = plugin_of(2);
  const auto& newline = document.newline;
  std::string lines;
  if (choice.set_default) {
    const std::string line = "default_runtime_name = \"nvidia\"";
    const auto* setting = document.find(below(plugin, {"default_runtime_name"}));
    const auto* table = document.find_table(below(plugin, {}));
    if (setting && unquoted(setting->value) != "nvidia") {
      text.replace(setting->begin, setting->end - setting->begin, "\"nvidia\"");
    } else if (!setting && table) {
      const bool has_end = text[table->line_end - 1] == '\n';
      text.insert(table->line_end, has_end ? "  " + line + newline : newline + "  " + line);
    } else if (!setting) {
      lines += head(plugin, "") + newline + "  " + line + newline;
    }
  }
  if (!document.has(below(plugin, {"runtimes", "nvidia"})))
    lines += nvidia_tables(plugin, systemd_of(document), newline);
  if (!lines.empty()) append(text, lines, newline);
  return text;
}

std::string signed_text(const std::string& text) {
  return std::string(first_line) + scheduler_config::checksum_of(text) + "\n" + text;
}

std::expected<known_runtimes, std::string> known_in(const std::vector<runtime_file>& sources,
                                                    const std::vector<std::pair<toml_path, toml_path>>& places) {
  known_runtimes out;
  for (const auto& source : sources) {
    const auto document = read_toml(source.text);
    if (!document) return std::unexpected(source.path + ": " + document.error());
    for (const auto& [runtime, default_key] : places) {
      if (document->has(runtime)) out.has_nvidia = true;
      if (const auto* setting = document->find(default_key)) {
        out.default_name = unquoted(setting->value);
        out.default_file = source.path;
      }
    }
  }
  return out;
}

}  // namespace

std::expected<int, std::string> containerd_version(std::string_view main) {
  const auto document = understood(main);
  if (!document) return std::unexpected(document.error());
  const auto* disabled = document->find({"disabled_plugins"});
  if (disabled) {
    for (const auto& item : text::quoted_in(disabled->value))
      if (item == "cri" || item == plugins[0] || item == plugins[1])
        return std::unexpected("its disabled_plugins have " + item +
                               ", and Kubernetes cannot use containerd without it: take it out, and call again");
  }
  return version_of(*document);
}

std::expected<std::vector<std::string>, std::string> containerd_imports(std::string_view main) {
  const auto document = read_toml(main);
  if (!document) return std::unexpected(document.error());
  const auto* imports = document->find({"imports"});
  return imports ? text::quoted_in(imports->value) : std::vector<std::string>();
}

edited containerd_main(std::string_view main, choice choice) {
  const auto version = containerd_version(main);
  if (!version) return std::unexpected(version.error());
  const auto document = read_toml(main);
  if (*version > 2) return with_import(std::string(main), *document);
  return with_runtime(std::string(main), *document, choice);
}

std::expected<known_runtimes, std::string> containerd_known(const std::vector<runtime_file>& sources) {
  std::vector<std::pair<toml_path, toml_path>> places;
  for (const auto* plugin : plugins)
    places.emplace_back(below(plugin, {"runtimes", "nvidia"}), below(plugin, {"default_runtime_name"}));
  // In a file of version 2, which containerd 1 may read, a section is replaced as a whole.
  for (std::size_t index = 1; index < sources.size(); ++index) {
    const auto version = containerd_version(sources.front().text);
    const auto document = read_toml(sources[index].text);
    if (!document) return std::unexpected(sources[index].path + ": " + document.error());
    if (document->find({"imports"}))
      return std::unexpected(sources[index].path + ": it imports files in turn, which is not followed");
    if (version && *version == 2 && document->has({"plugins", plugins[0]}) &&
        !document->has(below(plugins[0], {"runtimes", "nvidia"})))
      return std::unexpected(sources[index].path + ": it sets plugins.\"" + plugins[0] +
                             "\" too, and containerd 1 then ignores that section of other files; set up one of them by "
                             "hand, or move the section into config.toml");
  }
  return known_in(sources, places);
}

edited containerd_drop_in_text(const std::vector<runtime_file>& sources, bool needs_nvidia, choice choice) {
  const auto version = containerd_version(sources.front().text);
  if (!version) return std::unexpected(version.error());
  const auto plugin = plugin_of(*version);
  std::string systemd;
  for (const auto& source : sources) {
    const auto document = read_toml(source.text);
    if (!document) return std::unexpected(source.path + ": " + document.error());
    if (const auto found = systemd_of(*document); !found.empty()) systemd = found;
  }
  std::string out = "version = " + std::to_string(*version) + "\n";
  if (choice.set_default) out += head(plugin, "") + "\n  default_runtime_name = \"nvidia\"\n";
  if (needs_nvidia) out += nvidia_tables(plugin, systemd, "\n");
  return signed_text(out);
}

std::expected<known_runtimes, std::string> crio_known(const std::vector<runtime_file>& sources) {
  return known_in(sources, {{{"crio", "runtime", "runtimes", "nvidia"}, {"crio", "runtime", "default_runtime"}}});
}

std::string crio_drop_in_text(bool needs_nvidia, choice choice) {
  std::string out;
  if (choice.set_default) out += "[crio.runtime]\n  default_runtime = \"nvidia\"\n";
  if (needs_nvidia)
    out += "[crio.runtime.runtimes.nvidia]\n  runtime_path = \"" + std::string(nvidia_program) +
           "\"\n  runtime_type = \"oci\"\n";
  return signed_text(out);
}

bool is_own_drop_in(std::string_view text) {
  if (!text.starts_with(first_line)) return false;
  const auto end = text.find('\n');
  if (end == std::string_view::npos) return false;
  return text.substr(first_line.size(), end - first_line.size()) == scheduler_config::checksum_of(text.substr(end + 1));
}

bool drop_in_sets_default(std::string_view text) { return text.contains("  default_runtime"); }

std::string difference(std::string_view path, std::string_view before, std::string_view after) {
  const auto lines_of = [](std::string_view text) {
    std::vector<std::string_view> out;
    while (!text.empty()) {
      const auto end = std::min(text.find('\n'), text.size() - 1) + 1;
      out.push_back(text.substr(0, end));
      text.remove_prefix(end);
    }
    return out;
  };
  const auto old = lines_of(before), fresh = lines_of(after);
  const auto least = std::min(old.size(), fresh.size());
  std::size_t front = 0, back = 0;
  while (front < least && old[front] == fresh[front]) ++front;
  while (back < least - front && old[old.size() - 1 - back] == fresh[fresh.size() - 1 - back]) ++back;
  std::string out =
      "--- " + std::string(path) + "\n+++ " + std::string(path) + "\n@@ line " + std::to_string(front + 1) + " @@\n";
  const auto list = [&](char sign, const std::vector<std::string_view>& lines) {
    for (std::size_t index = front; index < lines.size() - back; ++index) {
      auto line = lines[index];
      while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
      out += sign + std::string(line) + "\n";
    }
  };
  list('-', old);
  list('+', fresh);
  return out;
}

}  // namespace agent::container_runtime
