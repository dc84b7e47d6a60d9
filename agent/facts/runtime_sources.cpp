#include "agent/facts/runtime_sources.hpp"

#include <fnmatch.h>

#include <filesystem>

namespace agent::facts {
namespace {

// What is beyond these was written by no one who sets up a container runtime.
constexpr std::size_t most_bytes = 256 << 10, most_files = 64;

using problem_found = std::optional<explained_cause>;

problem_found size_fault(const std::string& path, std::size_t size) {
  if (size <= most_bytes) return std::nullopt;
  return explained_cause{check_cause::config_too_large, {{"path", path}, {"limit", std::to_string(most_bytes >> 10)}}};
}

/// Patterns as containerd has them: "*" in the last part, or none. A file that was read already is skipped, as
/// containerd does: a saved `containerd config dump` imports itself.
/// @param missing what to say of a file without a star that is not there; nothing: that is allowed
problem_found add_sources(const files& node, const std::string& pattern, const source_options& options,
                          const problem_found& missing, sources& out) {
  const auto folder = folder_of(pattern), name = name_of(pattern);
  const auto star = name.find('*');
  if (folder.contains('*') || (star != std::string::npos && name.find('*', star + 1) != std::string::npos))
    return explained_cause{check_cause::import_pattern, {{"pattern", pattern}}};
  std::vector<std::string> names{name};
  if (star != std::string::npos) {
    auto all = node.names(folder);
    if (!all) return all.error();
    names = std::move(*all);
    if (folder == folder_of(options.left_out)) names.push_back(name_of(options.left_out));
    std::erase_if(names, [&](const auto& entry) {
      return entry.size() + 1 < name.size() || !entry.starts_with(name.substr(0, star)) ||
             !entry.ends_with(name.substr(star + 1));
    });
    std::ranges::sort(names);
    names.erase(std::ranges::unique(names).begin(), names.end());
  }
  for (const auto& entry : names) {
    const auto path = folder + "/" + entry;
    if (!options.left_out.empty() && path == options.left_out) {
      if (!out.own) out.own = out.files.size();
      continue;
    }
    if (out.has(path)) continue;
    const auto text = runtime_text(node, path);
    if (!text) return text.error();
    if (*text)
      out.files.push_back({path, **text});
    else if (star == std::string::npos && missing)
      return missing;
  }
  return std::nullopt;
}

problem_found add_pattern(const files& node, const std::string& importer, const std::string& pattern,
                          const source_options& options, const problem_found& missing, sources& out) {
  const bool is_seen = options.only_folder.empty() ||
                       (pattern.starts_with(std::string(options.only_folder) + "/") && !pattern.contains("/../"));
  if (!is_seen) return explained_cause{check_cause::import_not_mounted, {{"path", importer}, {"pattern", pattern}}};
  return add_sources(node, std::filesystem::path(pattern).lexically_normal(), options, missing, out);
}

}  // namespace

std::string name_of(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }
std::string folder_of(std::string_view path) { return std::string(path.substr(0, path.rfind('/'))); }
std::string main_path(const layout& files) { return std::string(files.folder) + "/" + std::string(files.main); }
const layout& layout_of(std::string_view name) { return *std::ranges::find(layouts, name, &layout::name); }

fact<std::optional<std::string>> runtime_text(const files& node, const std::string& path) {
  auto text = node.text(path, most_bytes + 1);
  if (text && *text)
    if (auto problem = size_fault(path, (*text)->size())) return std::unexpected(*std::move(problem));
  return text;
}

bool imports_drop_in(const std::vector<std::string>& patterns) {
  const auto& files = layout_of("containerd");
  return std::ranges::any_of(patterns, [&](std::string pattern) {
    if (!pattern.starts_with('/')) pattern = std::string(files.folder) + "/" + pattern;
    return ::fnmatch(pattern.c_str(), files.drop_in.data(), FNM_PATHNAME) == 0;
  });
}

bool is_linked(const files& node, const std::string& path) {
  for (auto end = path.find('/', 1);; end = path.find('/', end + 1)) {
    if (!node.link_name(path.substr(0, end)).empty()) return true;
    if (end == std::string::npos) return false;
  }
}

/// File by file, as containerd finds them: what a file imports is read after all that was found before.
fact<sources> containerd_sources(const files& node, std::vector<runtime_file> mains, const source_options& options) {
  sources out;
  out.files = std::move(mains);
  for (std::size_t index = 0; index < out.files.size(); ++index) {
    if (index == most_files)
      return std::unexpected(explained_cause{check_cause::config_too_many, {{"path", out.files.front().path}}});
    const auto path = out.files[index].path;
    if (auto problem = size_fault(path, out.files[index].text.size())) return std::unexpected(*std::move(problem));
    const auto imports = containerd_imports(out.files[index]);
    if (!imports) return std::unexpected(imports.error());
    for (const auto& import : imports->patterns) {
      const auto pattern = import.starts_with('/') ? import : folder_of(path) + "/" + import;
      const explained_cause missing{check_cause::import_missing,
                                    {{"path", path}, {"line", std::to_string(imports->line)}, {"pattern", pattern}}};
      if (auto problem = add_pattern(node, path, pattern, options, missing, out))
        return std::unexpected(*std::move(problem));
    }
    // Where main gets the import of our drop-in, that is its last one.
    if (index == 0 && !out.own && !options.left_out.empty()) out.own = out.files.size();
  }
  return out;
}

fact<sources> crio_sources(const files& node, const source_options& options) {
  sources out;
  for (const auto* pattern : {"/etc/crio/crio.conf", "/etc/crio/crio.conf.d/*"})
    if (auto problem = add_pattern(node, "", pattern, options, std::nullopt, out))
      return std::unexpected(*std::move(problem));
  return out;
}

}  // namespace agent::facts
