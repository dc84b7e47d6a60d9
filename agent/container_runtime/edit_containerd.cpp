// containerd's config.toml and our drop-ins.

#include <algorithm>
#include <cctype>
#include <functional>

#include "agent/container_runtime/edit.hpp"
#include "scheduler_config/edit/static_pod.hpp"
#include "text/text.hpp"

namespace agent::container_runtime {
namespace {

constexpr std::string_view first_line =
    "# Written by `quartermaster agent fix-runtime`; its --restore removes this file. Do not edit: sha256 ";

using facts::toml_document, facts::toml_path, facts::toml_setting, facts::toml_table;

std::string plugin_of(int version) { return std::string(facts::containerd_plugins[version == 2 ? 0 : 1]); }

std::string head(const std::string& plugin, std::string_view rest) {
  return "[plugins.\"" + plugin + "\".containerd" + std::string(rest) + "]";
}

std::string toml_text(std::string_view text) { return "\"" + std::string(text) + "\""; }

/// A name as a part of a head.
std::string key(const std::string& name) {
  const bool is_bare =
      std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; });
  return is_bare ? name : toml_text(name);
}

using assignments = std::vector<std::pair<std::string, std::string>>;

assignments settings_of(const runtime_edit& edit) {
  return edit.type.empty() ? assignments() : assignments{{"runtime_type", toml_text(edit.type)}};
}
assignments options_of(const runtime_edit& edit) {
  assignments out;
  if (!edit.program.empty()) out.emplace_back("BinaryName", toml_text(edit.program));
  if (!edit.systemd.empty()) out.emplace_back("SystemdCgroup", edit.systemd);
  return out;
}

std::string lines_of(const assignments& values, const std::string& indent, const std::string& newline) {
  std::string out;
  for (const auto& [name, value] : values) out.append(indent).append(name).append(" = ").append(value).append(newline);
  return out;
}

/// The lines of the runtime, each with a line end.
std::string runtime_tables(const std::string& plugin, const runtime_edit& edit, const std::string& newline) {
  const auto table = ".runtimes." + key(edit.name);
  std::string out;
  if (const auto settings = settings_of(edit); !settings.empty())
    out += head(plugin, table) + newline + lines_of(settings, "  ", newline);
  if (const auto options = options_of(edit); !options.empty())
    out += "  " + head(plugin, table + ".options") + newline + lines_of(options, "    ", newline);
  return out;
}

/// Inline tables and dotted keys cannot be continued by a table further down.
text::phrase obstacle(const toml_document& document) {
  for (const auto& setting : document.settings) {
    if (setting.path.front() != "plugins") continue;
    const auto plugin = setting.path.size() > 1 ? setting.path[1] : std::string();
    const bool concerns = setting.path.size() < 2 ||
                          std::ranges::find(facts::containerd_plugins, plugin) != facts::containerd_plugins.end();
    if (!concerns || (setting.path.size() > 2 && setting.path[2] != "containerd")) continue;
    if (setting.value.starts_with('{') || setting.path.size() - setting.table_size > 1)
      return {"fix_runtime.inline_table", {{"name", setting.path.back()}}};
  }
  return {};
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
  if (facts::imports_drop_in(text::quoted_in(imports->value))) return text;
  if (imports->has_comment) return std::unexpected(text::phrase{"fix_runtime.imports_comments", {{"folder", folder}}});
  const auto last = text.find_last_not_of(" \t\r\n", imports->end - 2);
  text.insert(last + 1, (text[last] == '[' ? "" : text[last] == ',' ? " " : ", ") + folder);
  return text;
}

void append(std::string& text, const std::string& lines, const std::string& newline) {
  if (!text.empty() && !text.ends_with('\n')) text += newline;
  text += lines;
}

struct patch {
  std::size_t begin, length;
  std::string text;
};

/// Of the settings that the table has, else two blanks more than its head has.
std::string indent_of(std::string_view text, const toml_document& document, const toml_table& table) {
  const auto blanks_before = [&](std::size_t index) {
    const auto line = index == 0 ? 0 : text.rfind('\n', index - 1) + 1;
    return std::string(text.substr(line, text.find_first_not_of(" \t", line) - line));
  };
  for (const auto& setting : document.settings)
    if (setting.table_size == table.path.size() && setting.path.size() == table.path.size() + 1 &&
        std::equal(table.path.begin(), table.path.end(), setting.path.begin()))
      return blanks_before(setting.begin);
  return blanks_before(table.line_end - 1) + "  ";
}

/// Sets values where they are, or below the head of their table. Returns those that have no head.
assignments set_values(const toml_path& path, const assignments& values, std::string_view text,
                       const toml_document& document, const std::optional<std::string>& indent,
                       std::vector<patch>& patches) {
  assignments missing;
  for (const auto& value : values) {
    auto target = path;
    target.push_back(value.first);
    if (const auto* setting = document.find(target))
      patches.push_back({setting->begin, setting->end - setting->begin, value.second});
    else
      missing.push_back(value);
  }
  const auto* table = document.find_table(path);
  if (missing.empty() || !table) return missing;
  const bool has_end = text[table->line_end - 1] == '\n';
  auto lines = lines_of(missing, indent ? *indent : indent_of(text, document, *table), document.newline);
  if (!has_end) lines = document.newline + lines.substr(0, lines.size() - document.newline.size());
  patches.push_back({table->line_end, 0, std::move(lines)});
  return {};
}

/// Of version 2.
std::string with_runtime(std::string text, const toml_document& document, const runtime_edit& edit) {
  const auto plugin = plugin_of(2);
  const auto& newline = document.newline;
  std::vector<patch> patches;
  std::string lines;
  if (!edit.default_name.empty()) {
    const assignments values{{"default_runtime_name", toml_text(edit.default_name)}};
    const auto missing = set_values(facts::containerd_path(plugin, {}), values, text, document, "  ", patches);
    if (!missing.empty()) lines += head(plugin, "") + newline + lines_of(missing, "  ", newline);
  }
  auto rest = edit;
  if (!edit.is_new) {
    rest.type = rest.program = rest.systemd = {};
    const auto settings = set_values(facts::containerd_path(plugin, {"runtimes", edit.name}), settings_of(edit), text,
                                     document, std::nullopt, patches);
    if (!settings.empty()) rest.type = edit.type;
    for (const auto& [name, value] : set_values(facts::containerd_path(plugin, {"runtimes", edit.name, "options"}),
                                                options_of(edit), text, document, std::nullopt, patches)) {
      if (name == "BinaryName") rest.program = edit.program;
      if (name == "SystemdCgroup") rest.systemd = edit.systemd;
    }
  }
  lines += runtime_tables(plugin, rest, newline);
  std::ranges::sort(patches, std::greater(), &patch::begin);
  for (const auto& patch : patches) text.replace(patch.begin, patch.length, patch.text);
  if (!lines.empty()) append(text, lines, newline);
  return text;
}

/// As it was decided before programs were looked at.
runtime_edit edit_by_name(const toml_document& document, const facts::runtime_settings& settings, bool set_default) {
  runtime_edit out;
  out.name = "nvidia";
  out.is_new = !document.has(facts::containerd_path(plugin_of(2), {"runtimes", "nvidia"}));
  if (set_default && settings.default_name != "nvidia") out.default_name = "nvidia";
  if (!out.is_new) return out;
  out.type = "io.containerd.runc.v2";
  out.program = nvidia_program;
  if (const auto* runc = settings.find("runc")) out.systemd = runc->systemd;
  return out;
}

std::string signed_text(const std::string& text) {
  return std::string(first_line) + scheduler_config::checksum_of(text) + "\n" + text;
}

}  // namespace

edited containerd_main(const std::string& main, const choice& choice) {
  const facts::runtime_file source{facts::main_path(facts::layout_of("containerd")), main};
  const auto known = facts::containerd_known({source});
  if (!known) return std::unexpected(phrase_of(known.error()));
  const auto document = facts::toml_in(source);
  if (!document) return std::unexpected(phrase_of(document.error()));
  if (!document->find({"version"})) return std::unexpected(text::phrase{"fix_runtime.no_version"});
  if (known->version > 2) return with_import(main, *document);
  if (auto problem = obstacle(*document); !problem.empty()) return std::unexpected(std::move(problem));
  if (choice.is_by_name)
    return with_runtime(main, *document, edit_by_name(*document, known->settings, choice.set_default));
  const auto edit = edit_of(known->settings, choice);
  if (!edit) return std::unexpected(edit.error());
  return with_runtime(main, *document, *edit);
}

std::string containerd_drop_in_text(int version, const runtime_edit& edit) {
  const auto plugin = plugin_of(version);
  std::string out = "version = " + std::to_string(version) + "\n";
  if (!edit.default_name.empty())
    out += head(plugin, "") + "\n  default_runtime_name = " + toml_text(edit.default_name) + "\n";
  return signed_text(out + runtime_tables(plugin, edit, "\n"));
}

std::string crio_drop_in_text(const runtime_edit& edit) {
  std::string out;
  if (!edit.default_name.empty()) out += "[crio.runtime]\n  default_runtime = " + toml_text(edit.default_name) + "\n";
  if (!edit.program.empty())
    out += "[crio.runtime.runtimes." + key(edit.name) + "]\n  runtime_path = " + toml_text(edit.program) +
           "\n  runtime_type = \"oci\"\n";
  return signed_text(out);
}

bool is_own_drop_in(std::string_view text) {
  if (!text.starts_with(first_line)) return false;
  const auto end = text.find('\n');
  if (end == std::string_view::npos) return false;
  return text.substr(first_line.size(), end - first_line.size()) == scheduler_config::checksum_of(text.substr(end + 1));
}

bool drop_in_sets_default(std::string_view text) { return text.contains("  default_runtime"); }

}  // namespace agent::container_runtime
