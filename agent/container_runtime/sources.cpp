#include "agent/container_runtime/sources.hpp"

#include <algorithm>
#include <filesystem>

#include "api/check.hpp"

namespace agent::container_runtime {

std::string name_of(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }
std::string folder_of(std::string_view path) { return std::string(path.substr(0, path.rfind('/'))); }

std::string below_root(const std::string& root, std::string_view path) {
  auto out = root;
  while (out.ends_with('/')) out.pop_back();
  return out + std::string(path);
}

std::expected<std::optional<disk::content>, text::phrase> content_at(const std::string& root, std::string_view path) {
  if (!facts::files(root).exists(folder_of(path)).value_or(true)) return std::nullopt;
  const auto folder = disk::open_folder(below_root(root, folder_of(path)));
  if (!folder) return std::unexpected(folder.error());
  return disk::read(*folder, name_of(path));
}
std::string main_path(const layout& files) { return std::string(files.folder) + "/" + std::string(files.main); }

namespace {

constexpr std::size_t most_files = 64;

/// Patterns as containerd has them: "*" in the last part, or none. A file that was read already is skipped, as
/// containerd does: a saved `containerd config dump` imports itself.
text::phrase add_sources(const std::string& root, const std::string& pattern, std::string_view own, sources& out) {
  const auto folder = folder_of(pattern), name = name_of(pattern);
  const auto star = name.find('*');
  if (folder.contains('*') || (star != std::string::npos && name.find('*', star + 1) != std::string::npos))
    return {"fix_runtime.pattern", {{"pattern", pattern}}};
  std::vector<std::string> names{name};
  if (star != std::string::npos) {
    auto all = facts::files(root).names(folder);
    if (!all) return api::found_phrase(all.error());
    names = std::move(*all);
    std::erase_if(names, [&](const auto& entry) {
      return entry.size() + 1 < name.size() || !entry.starts_with(name.substr(0, star)) ||
             !entry.ends_with(name.substr(star + 1));
    });
    names.push_back(name_of(own));
    std::ranges::sort(names);
    names.erase(std::ranges::unique(names).begin(), names.end());
  }
  for (const auto& entry : names) {
    const auto path = folder + "/" + entry;
    if (path == own) {
      if (!out.own) out.own = out.files.size();
      continue;
    }
    if (out.has(path) || (star != std::string::npos && folder != folder_of(own) && entry == name_of(own))) continue;
    auto content = content_at(root, path);
    if (!content) return content.error();
    if (*content)
      out.files.push_back({path, std::move((*content)->text)});
    else if (star == std::string::npos && out.missing.empty())
      out.missing = path;
  }
  return {};
}

text::phrase unseen_import(const std::string& root, const std::string& path, const std::string& pattern) {
  return {"fix_runtime.not_mounted", {{"file", below_root(root, path)}, {"pattern", pattern}}};
}

text::phrase add_pattern(const setup_options& options, const layout& files, const std::string& importer,
                         std::string pattern, sources& out) {
  if (options.in_pod && (!pattern.starts_with(std::string(files.folder) + "/") || pattern.contains("/../")))
    return unseen_import(options.root, importer, pattern);
  return add_sources(options.root, std::filesystem::path(pattern).lexically_normal(), files.drop_in, out);
}

/// File by file, as containerd finds them: what a file imports is read after all that was found before.
text::phrase add_imports(const setup_options& options, const layout& files, sources& out) {
  for (std::size_t index = 0; index < out.files.size(); ++index) {
    if (index == most_files) return {"fix_runtime.too_many", {{"file", below_root(options.root, main_path(files))}}};
    const auto path = out.files[index].path;
    const auto imports = containerd_imports(out.files[index].text);
    if (!imports)
      return {"fix_runtime.of_file", {{"file", below_root(options.root, path)}, {"problem", imports.error()}}};
    for (const auto& import : *imports) {
      const auto pattern = import.starts_with('/') ? import : folder_of(path) + "/" + import;
      if (auto problem = add_pattern(options, files, path, pattern, out); !problem.empty()) return problem;
    }
    // Where main gets the import of our drop-in, that is its last one.
    if (index == 0 && !out.own) out.own = out.files.size();
  }
  return {};
}

}  // namespace

std::expected<sources, text::phrase> sources_of(const setup_options& options, const layout& files,
                                                const std::optional<std::string>& main) {
  sources out;
  text::phrase problem;
  if (files.name == "containerd") {
    out.files.push_back({main_path(files), main.value_or("")});
    problem = add_imports(options, files, out);
  } else {
    for (const auto* pattern : {"/etc/crio/crio.conf", "/etc/crio/crio.conf.d/*"})
      if (problem.empty()) problem = add_pattern(options, files, "", pattern, out);
  }
  if (!problem.empty()) return std::unexpected(std::move(problem));
  return out;
}

}  // namespace agent::container_runtime
