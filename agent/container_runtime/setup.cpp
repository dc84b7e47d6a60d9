#include "agent/container_runtime/setup.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "agent/container_runtime/edit.hpp"
#include "agent/disk/folder.hpp"
#include "agent/facts/runtime.hpp"

namespace agent::container_runtime {
namespace {

using messages = std::expected<std::string, std::string>;
using text_or_none = std::optional<std::string>;

constexpr std::string_view backup_suffix = ".quartermaster-backup", draft_name = ".quartermaster-draft";

/// The files of a runtime. `folder` has the main file and the draft: no runtime reads all of its files.
struct layout {
  std::string_view name, folder, main, drop_in;
};
constexpr std::array layouts{layout{"containerd", "/etc/containerd", "config.toml", containerd_drop_in},
                             layout{"crio", "/etc/crio", "", crio_drop_in},
                             layout{"docker", "/etc/docker", "daemon.json", ""}};

std::string name_of(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }
std::string folder_of(std::string_view path) { return std::string(path.substr(0, path.rfind('/'))); }

std::string below_root(const std::string& root, std::string_view path) {
  auto out = root;
  while (out.ends_with('/')) out.pop_back();
  return out + std::string(path);
}

/// Nothing: there is no such file, or no folder for it.
std::expected<std::optional<disk::content>, std::string> content_at(const std::string& root, std::string_view path) {
  if (!facts::files(root).exists(folder_of(path)).value_or(true)) return std::nullopt;
  const auto folder = disk::open_folder(below_root(root, folder_of(path)));
  if (!folder) return std::unexpected(folder.error());
  return disk::read(*folder, name_of(path));
}

/// One step: a text in place of another, or a file that goes, or a backup that takes the place of its file.
struct change {
  std::string path;
  text_or_none before, after;
  disk::like attributes;
  bool is_listed = true;  ///< backups are not
  std::string renamed_from = {};
};

/// What is there of a runtime.
struct present {
  layout files;
  std::optional<disk::content> main, backup, drop_in;
};

std::string main_path(const layout& files) { return std::string(files.folder) + "/" + std::string(files.main); }
std::string backup_path(const layout& files) { return main_path(files) + std::string(backup_suffix); }

text_or_none text_of(const std::optional<disk::content>& content) {
  return content ? text_or_none(content->text) : std::nullopt;
}

std::expected<present, std::string> read_present(const std::string& root, const layout& files) {
  present out{files, {}, {}, {}};
  const auto read = [&](const std::string& path, std::optional<disk::content>& target) -> std::string {
    auto content = content_at(root, path);
    if (!content) return content.error();
    target = std::move(*content);
    return {};
  };
  std::string problem;
  if (!files.main.empty()) {
    problem = read(main_path(files), out.main);
    if (problem.empty()) problem = read(backup_path(files), out.backup);
  }
  if (problem.empty() && !files.drop_in.empty()) problem = read(std::string(files.drop_in), out.drop_in);
  if (!problem.empty()) return std::unexpected(std::move(problem));
  return out;
}

edited main_of(const layout& files, const text_or_none& text, choice choice) {
  if (files.name == "docker") return docker_main(text, choice);
  return containerd_main(text.value_or(""), choice);
}

/// What the main file was before us.
struct origin {
  text_or_none text;
  bool is_edited = false, has_default = false;  ///< by us
};
std::optional<origin> origin_of(const present& now) {
  const auto main = text_of(now.main), backup = text_of(now.backup);
  if (now.backup && main == backup) return origin{main};
  const bool can_be_new = !now.backup && now.main && now.files.name == "docker";
  if (now.backup || can_be_new) {
    for (const bool set_default : {false, true})
      if (const auto expected = main_of(now.files, backup, {set_default}); expected && main == *expected)
        return origin{backup, true, set_default};
  }
  if (now.backup) return std::nullopt;
  return origin{main};
}

std::string changed_by_person(const std::string& root, const layout& files) {
  const auto path = below_root(root, main_path(files)), backup = path + std::string(backup_suffix);
  return path + " was changed after fix-runtime, and is left as it is: compare it with " + backup +
         ", put back what you want, and remove that backup";
}

std::string not_own_drop_in(const std::string& root, const layout& files) {
  return below_root(root, files.drop_in) + " is not as fix-runtime wrote it, and is left as it is: remove it yourself";
}

/// The files that the runtime reads, in order; `own` is our drop-in's place among them.
struct sources {
  std::vector<runtime_file> files;  ///< without our drop-in
  std::size_t own = 0;
};

/// Patterns as containerd has them: "*" in the last part, or none.
std::string add_sources(const std::string& root, const std::string& pattern, std::string_view own, sources& out) {
  const auto folder = folder_of(pattern), name = name_of(pattern);
  const auto star = name.find('*');
  if (folder.contains('*') || (star != std::string::npos && name.find('*', star + 1) != std::string::npos))
    return "the pattern " + pattern + " of its imports is not understood";
  std::vector<std::string> names{name};
  if (star != std::string::npos) {
    auto all = facts::files(root).names(folder);
    if (!all) return all.error();
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
      out.own = out.files.size();
      continue;
    }
    if (star != std::string::npos && folder != folder_of(own) && entry == name_of(own)) continue;
    auto content = content_at(root, path);
    if (!content) return content.error();
    if (*content) out.files.push_back({path, std::move((*content)->text)});
  }
  return {};
}

std::string unseen_import(const std::string& root, const layout& files, const std::string& pattern) {
  return below_root(root, main_path(files)) + " imports " + pattern +
         ", which is not mounted in this pod: call quartermaster agent fix-runtime on the node itself";
}

std::expected<sources, std::string> sources_of(const setup_options& options, const layout& files,
                                               const text_or_none& main) {
  const auto& root = options.root;
  sources out;
  std::vector<std::string> patterns;
  if (files.name == "containerd") {
    out.files.push_back({main_path(files), main.value_or("")});
    const auto imports = containerd_imports(main.value_or(""));
    if (!imports) return std::unexpected(below_root(root, main_path(files)) + ": " + imports.error());
    patterns = *imports;
    for (auto& pattern : patterns)
      if (!pattern.starts_with('/')) pattern = std::string(files.folder) + "/" + pattern;
  } else {
    patterns = {"/etc/crio/crio.conf", "/etc/crio/crio.conf.d/*"};
  }
  for (const auto& pattern : patterns) {
    if (options.in_pod && (!pattern.starts_with(std::string(files.folder) + "/") || pattern.contains("/../")))
      return std::unexpected(unseen_import(root, files, pattern));
    if (auto problem = add_sources(root, pattern, files.drop_in, out); !problem.empty())
      return std::unexpected(std::move(problem));
  }
  if (out.own == 0) out.own = out.files.size();
  return out;
}

/// The changes of a drop-in, given what the other files say.
std::string add_drop_in(const setup_options& options, const present& now, const sources& sources,
                        const known_runtimes& known, std::vector<change>& changes) {
  const bool keeps_default = now.drop_in && drop_in_sets_default(now.drop_in->text);
  const choice choice{(options.set_default || keeps_default) && known.default_name != "nvidia"};
  if (known.has_nvidia && !choice.set_default) return {};
  if (now.drop_in && !is_own_drop_in(now.drop_in->text)) return not_own_drop_in(options.root, now.files);
  for (auto index = sources.own; choice.set_default && index < sources.files.size(); ++index)
    if (sources.files[index].path == known.default_file)
      return below_root(options.root, known.default_file) + " is read after our file and makes " + known.default_name +
             " the default: change it there";
  edited text = now.files.name == "crio" ? edited(crio_drop_in_text(!known.has_nvidia, choice))
                                         : containerd_drop_in_text(sources.files, !known.has_nvidia, choice);
  if (!text) return text.error();
  if (text_of(now.drop_in) != *text)
    changes.push_back({std::string(now.files.drop_in), text_of(now.drop_in), *text, {.mode = 0644}});
  return {};
}

/// The backup, then the file.
void add_main(const present& now, const origin& origin, const std::string& text, std::vector<change>& changes) {
  if (text_of(now.main) == text) return;
  const auto attributes = now.main ? disk::like_of(now.main->about) : disk::like{.mode = 0644};
  if (origin.text && !now.backup)
    changes.push_back({backup_path(now.files), std::nullopt, origin.text, attributes, false});
  changes.push_back({main_path(now.files), text_of(now.main), text, attributes});
}

/// The main file, which we wrote or find as we would write it.
std::string plan_main(const setup_options& options, const present& now, const std::optional<origin>& origin,
                      const std::string& text, std::vector<change>& changes) {
  if (origin)
    add_main(now, *origin, text, changes);
  else if (text_of(now.main) != text)
    return changed_by_person(options.root, now.files);
  return {};
}

std::string plan_docker(const setup_options& options, const present& now, std::vector<change>& changes) {
  const auto path = below_root(options.root, main_path(now.files));
  const auto origin = origin_of(now);
  const auto text = origin ? docker_main(origin->text, {options.set_default || origin->has_default})
                           : docker_main(text_of(now.main), {options.set_default});
  if (!text) return path + ": " + text.error();
  return plan_main(options, now, origin, *text, changes);
}

/// Without the main file.
bool is_known_by_imports(std::vector<runtime_file> files) {
  files.front().text.clear();
  const auto known = containerd_known(files);
  return known && known->has_nvidia;
}

std::string plan_containerd(const setup_options& options, const present& now, std::vector<change>& changes) {
  const auto path = below_root(options.root, main_path(now.files));
  if (!now.main) {
    if (now.backup) return changed_by_person(options.root, now.files);
    return path + " is not there: write one (containerd config default), and call again";
  }
  const auto origin = origin_of(now);
  const auto base = origin ? origin->text : text_of(now.main);
  const auto version = containerd_version(*base);
  if (!version) return path + ": " + version.error();
  const auto sources = sources_of(options, now.files, base);
  if (!sources) return sources.error();
  const auto known = containerd_known(sources->files);
  if (!known) return below_root(options.root, known.error());
  const bool set_default = options.set_default || (origin && origin->has_default);
  if (*version > 2) {
    if (auto problem = add_drop_in(options, now, *sources, *known, changes); !problem.empty()) return problem;
    if (changes.empty() && !now.drop_in) return {};
  } else if (known->has_nvidia && (!set_default || known->default_name == "nvidia")) {
    return {};
  } else if (is_known_by_imports(sources->files)) {
    return path + ": a file that it imports has the runtime nvidia: make it the default there";
  }
  const auto text = containerd_main(*base, {set_default});
  if (!text) return path + ": " + text.error();
  return plan_main(options, now, origin, *text, changes);
}

std::string plan_crio(const setup_options& options, const present& now, std::vector<change>& changes) {
  const auto sources = sources_of(options, now.files, std::nullopt);
  if (!sources) return sources.error();
  const auto known = crio_known(sources->files);
  if (!known) return below_root(options.root, known.error());
  return add_drop_in(options, now, *sources, *known, changes);
}

std::expected<disk::folder, std::string> open_or_make(const std::string& path) {
  auto found = disk::open_folder(path);
  if (found || !found.error().starts_with("no folder " + path)) return found;
  const auto parent = disk::open_folder(folder_of(path));
  if (!parent) return std::unexpected(parent.error());
  if (::mkdirat(parent->handle.get(), name_of(path).c_str(), 0755) != 0 && errno != EEXIST)
    return disk::failed("make the folder", path, errno);
  if (auto done = parent->sync(); !done) return std::unexpected(done.error());
  return disk::open_folder(path);
}

std::expected<void, std::string> take(const setup_options& options, const layout& files, const change& change) {
  const auto own = open_or_make(below_root(options.root, files.folder));
  if (!own) return std::unexpected(own.error());
  const auto target = open_or_make(below_root(options.root, folder_of(change.path)));
  if (!target) return std::unexpected(target.error());
  const auto name = name_of(change.path);
  if (change.after && change.renamed_from.empty())
    return disk::put({*own, std::string(draft_name)}, *target, name, *change.after, change.attributes, &change.before);
  if (auto same = disk::unchanged(*target, name, change.before); !same) return same;
  if (!change.after) return disk::remove(*target, name);
  const int folder = target->handle.get();
  if (::renameat(folder, name_of(change.renamed_from).c_str(), folder, name.c_str()) != 0)
    return disk::failed("rename to", target->file(name), errno);
  return target->sync();
}

messages carry_out(const setup_options& options, const layout& files, const std::vector<change>& changes) {
  std::string out;
  for (const auto& change : changes) {
    const auto path = below_root(options.root, change.path);
    if (options.dry_run) {
      if (change.is_listed) out += difference(path, change.before.value_or(""), change.after.value_or(""));
      continue;
    }
    if (auto done = take(options, files, change); !done) return std::unexpected(done.error());
    out += (change.after ? "wrote " : "removed ") + path + "\n";
  }
  return out;
}

std::string restart_line(std::string_view name) {
  return "to take effect: systemctl restart " + std::string(name) + "\n";
}

constexpr std::string_view k3s_remedy =
    "k3s and RKE2 write containerd's configuration themselves: install nvidia-container-toolkit and restart k3s or "
    "rke2-agent, which then finds the runtime nvidia; make it the default with --default-runtime nvidia";

/// Which runtime is meant.
std::expected<layout, std::string> chosen(const setup_options& options) {
  const auto runtime = facts::read_runtime(facts::files(options.root));
  const auto names = runtime ? runtime->names : std::vector<std::string>();
  const auto has = [&](std::string_view name) { return std::ranges::find(names, name) != names.end(); };
  if (has("k3s") && (options.runtime.empty() || (options.runtime == "containerd" && !has("containerd"))))
    return std::unexpected(std::string(k3s_remedy));
  auto name = options.runtime;
  if (name.empty()) {
    if (names.empty())
      return std::unexpected("no container runtime has a socket below " + below_root(options.root, "/run") +
                             ": start it, or name it with --runtime containerd, crio or docker");
    if (has("cri-o") && names.size() > 1)
      return std::unexpected("several container runtimes run here: name one with --runtime containerd, crio or docker");
    name = names.front() == "cri-o" ? "crio" : names.front();
  }
  return *std::ranges::find(layouts, name, &layout::name);
}

}  // namespace

messages set_up(const setup_options& options) {
  const auto files = chosen(options);
  if (!files) return std::unexpected(files.error());
  const auto has_program = facts::files(options.root).exists(std::string(nvidia_program));
  if (!has_program) return std::unexpected(has_program.error());
  if (!*has_program)
    return std::unexpected(below_root(options.root, nvidia_program) +
                           " is not there: install nvidia-container-toolkit, and call again");
  const auto now = read_present(options.root, *files);
  if (!now) return std::unexpected(now.error());
  std::vector<change> changes;
  const auto problem = files->name == "docker" ? plan_docker(options, *now, changes)
                       : files->name == "crio" ? plan_crio(options, *now, changes)
                                               : plan_containerd(options, *now, changes);
  if (!problem.empty()) return std::unexpected(problem);
  if (changes.empty()) return "nothing to do: " + std::string(files->name) + " is set up already\n";
  auto out = carry_out(options, *files, changes);
  if (out && !options.dry_run) *out += restart_line(files->name);
  return out;
}

messages restore(const setup_options& options) {
  std::vector<std::pair<layout, std::vector<change>>> all;
  for (const auto& files : layouts) {
    const auto now = read_present(options.root, files);
    if (!now) return std::unexpected(now.error());
    std::vector<change> changes;
    const auto origin = origin_of(*now);
    if (now->backup && !origin) return std::unexpected(changed_by_person(options.root, files));
    if (now->backup)
      changes.push_back({main_path(files), text_of(now->main), text_of(now->backup), {}, true, backup_path(files)});
    else if (origin && origin->is_edited && !origin->text)
      changes.push_back({main_path(files), text_of(now->main), std::nullopt, {}});
    if (now->drop_in) {
      if (!is_own_drop_in(now->drop_in->text)) return std::unexpected(not_own_drop_in(options.root, files));
      changes.push_back({std::string(files.drop_in), text_of(now->drop_in), std::nullopt, {}});
    }
    const auto draft = std::string(files.folder) + "/" + std::string(draft_name);
    const auto half = content_at(options.root, draft);
    if (half && *half) changes.push_back({draft, text_of(*half), std::nullopt, {}, false});
    if (!changes.empty()) all.emplace_back(files, std::move(changes));
  }
  if (all.empty()) return "nothing to restore\n";
  std::string out;
  for (const auto& [files, changes] : all) {
    const auto done = carry_out(options, files, changes);
    if (!done) return done;
    out += *done;
    if (!options.dry_run) out += restart_line(files.name);
  }
  return out;
}

}  // namespace agent::container_runtime
