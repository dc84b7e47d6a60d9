#include "agent/container_runtime/setup.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "agent/container_runtime/edit.hpp"
#include "agent/disk/folder.hpp"
#include "agent/facts/kubelet.hpp"
#include "agent/facts/runtime.hpp"
#include "api/check.hpp"
#include "text/list.hpp"

namespace agent::container_runtime {
namespace {

using facts::known_runtimes, facts::sources;
using facts::layout, facts::layouts, facts::main_path, facts::name_of, facts::folder_of;

using messages = std::expected<report, text::phrase>;
using text_or_none = std::optional<std::string>;

constexpr std::string_view backup_suffix = ".quartermaster-backup", draft_name = ".quartermaster-draft";

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

std::string backup_path(const layout& files) { return main_path(files) + std::string(backup_suffix); }

std::string below_root(const std::string& root, std::string_view path) {
  auto out = root;
  while (out.ends_with('/')) out.pop_back();
  return out + std::string(path);
}

/// Of a file of the node, whose root is elsewhere.
facts::explained_cause at_root(const std::string& root, facts::explained_cause cause) {
  for (auto& parameter : cause.parameters)
    if (parameter.name == "path" && !parameter.value.empty()) parameter.value = below_root(root, parameter.value);
  return cause;
}
text::phrase of_node(const std::string& root, const facts::explained_cause& cause) {
  return phrase_of(at_root(root, cause));
}

/// Nothing: there is no such file, or no folder for it. What a link leads to is read, and never written over.
std::expected<std::optional<disk::content>, text::phrase> content_at(const std::string& root, std::string_view path) {
  const facts::files node(root);
  if (!node.exists(folder_of(path)).value_or(true)) return std::nullopt;
  if (facts::is_linked(node, std::string(path))) {
    const auto text = facts::runtime_text(node, std::string(path));
    if (!text) return std::unexpected(of_node(root, text.error()));
    return *text ? std::optional(disk::content{**text, {}}) : std::nullopt;
  }
  const auto folder = disk::open_folder(below_root(root, folder_of(path)));
  if (!folder) return std::unexpected(folder.error());
  return disk::read(*folder, name_of(path));
}

text_or_none text_of(const std::optional<disk::content>& content) {
  return content ? text_or_none(content->text) : std::nullopt;
}

std::expected<present, text::phrase> read_present(const std::string& root, const layout& files) {
  present out{files, {}, {}, {}};
  const auto read = [&](const std::string& path, std::optional<disk::content>& target) -> text::phrase {
    auto content = content_at(root, path);
    if (!content) return content.error();
    target = std::move(*content);
    return {};
  };
  text::phrase problem;
  if (!files.main.empty()) {
    problem = read(main_path(files), out.main);
    if (problem.empty()) problem = read(backup_path(files), out.backup);
  }
  if (problem.empty() && !files.drop_in.empty()) problem = read(std::string(files.drop_in), out.drop_in);
  if (!problem.empty()) return std::unexpected(std::move(problem));
  return out;
}

edited main_of(const layout& files, const text_or_none& text, const choice& choice) {
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
    for (const bool is_by_name : {false, true})
      for (const auto* systemd : {"", "true", "false"})
        for (const bool set_default : {false, true})
          if (const auto expected = main_of(now.files, backup, {set_default, systemd, is_by_name});
              expected && main == *expected)
            return origin{backup, true, set_default};
  }
  if (now.backup) return std::nullopt;
  return origin{main};
}

text::phrase refusal(std::string_view key, std::vector<text::phrase_argument> arguments) {
  return {"fix_runtime." + std::string(key), std::move(arguments)};
}

text::phrase changed_by_person(const std::string& root, const layout& files) {
  const auto path = below_root(root, main_path(files));
  return refusal("changed_by_person", {{"file", path}, {"backup", path + std::string(backup_suffix)}});
}

text::phrase not_own_drop_in(const std::string& root, const layout& files) {
  return refusal("not_own", {{"file", below_root(root, files.drop_in)}});
}

text::phrase of_file(const std::string& path, text::phrase problem) {
  return refusal("of_file", {{"file", path}, {"problem", std::move(problem)}});
}

struct runtime_plan {
  std::vector<change> changes;
  std::vector<text::phrase> repairs;  ///< what did not work
};

/// What a person has to put right before anything is written, in the words of the preflight row container_runtime.
text::phrase obstacle(const setup_options& options, const layout& files, const facts::runtime_settings& settings,
                      const runtime_edit& edit, runtime_plan& plan) {
  const facts::files node(options.root);
  const auto* entry = facts::nvidia_entry(settings);
  const auto has_program = facts::has_program(node, entry ? entry->program : "");
  if (!has_program)
    return refusal("unseen_program", {{"runtime", std::string(files.name)},
                                      {"name", entry->name},
                                      {"program", entry->program},
                                      {"problem", api::found_phrase(has_program.error())}});
  if (options.in_pod && !*has_program && !entry->program.starts_with("/usr/bin/"))
    return refusal("program_not_mounted",
                   {{"runtime", std::string(files.name)}, {"name", entry->name}, {"program", entry->program}});
  for (const auto& defect : facts::defects_of(settings, has_program)) {
    const auto cause = at_root(options.root, facts::cause_of(defect, files.name, defect.advice()));
    if (!defect.is_repairable()) return phrase_of(cause);
    plan.repairs.push_back(api::found_phrase(cause));
  }
  if (edit.program.empty()) return {};
  const auto has_own = node.exists(std::string(nvidia_program));
  if (!has_own) return api::found_phrase(has_own.error());
  if (*has_own) return {};
  return refusal("no_toolkit", {{"file", below_root(options.root, nvidia_program)}});
}

/// What is set of a runtime that is there: keys, and lines for a person.
std::vector<std::pair<std::string, std::string>> lines_of(const runtime_edit& edit, const layout& files) {
  std::vector<std::pair<std::string, std::string>> out;
  if (edit.is_new) return out;
  const auto add = [&](const std::string& key, const std::string& value) {
    out.emplace_back(key, key + " = " + value);
  };
  if (!edit.type.empty()) add("runtime_type", "\"" + edit.type + "\"");
  if (!edit.program.empty()) add(files.name == "crio" ? "runtime_path" : "BinaryName", "\"" + edit.program + "\"");
  if (!edit.systemd.empty()) add("SystemdCgroup", edit.systemd);
  return out;
}

/// Our drop-in is read with the other files where a person has changed it.
facts::source_options reading_of(const setup_options& options, const present& now) {
  const bool is_own = !now.drop_in || is_own_drop_in(now.drop_in->text);
  return {.left_out = is_own ? now.files.drop_in : "", .only_folder = options.in_pod ? now.files.folder : ""};
}

/// The changes of a drop-in, given what the other files say.
text::phrase add_drop_in(const setup_options& options, const present& now, const sources& sources,
                         const known_runtimes& known, const runtime_edit& edit, const std::string& text,
                         std::vector<change>& changes) {
  if (edit.is_empty()) return {};
  if (now.drop_in && !is_own_drop_in(now.drop_in->text)) return not_own_drop_in(options.root, now.files);
  if (!edit.default_name.empty() && sources.has_later(known.default_file))
    return refusal("later_default",
                   {{"file", below_root(options.root, known.default_file)}, {"name", known.settings.default_name}});
  for (const auto& [key, line] : lines_of(edit, now.files)) {
    const auto setter = known.setters.find(edit.name + "." + key);
    if (setter != known.setters.end() && sources.has_later(setter->second))
      return refusal(
          "later_setter",
          {{"file", below_root(options.root, setter->second)}, {"key", key}, {"name", edit.name}, {"line", line}});
  }
  if (text_of(now.drop_in) != text)
    changes.push_back({std::string(now.files.drop_in), text_of(now.drop_in), text, {.mode = 0644}});
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
text::phrase plan_main(const setup_options& options, const present& now, const std::optional<origin>& origin,
                       const std::string& text, std::vector<change>& changes) {
  if (origin)
    add_main(now, *origin, text, changes);
  else if (text_of(now.main) != text)
    return changed_by_person(options.root, now.files);
  return {};
}

text::phrase plan_docker(const setup_options& options, const present& now, runtime_plan& plan) {
  const auto path = below_root(options.root, main_path(now.files));
  const auto origin = origin_of(now);
  const auto base = origin ? origin->text : text_of(now.main);
  const choice choice{options.set_default || (origin && origin->has_default)};
  const auto known = facts::docker_known(main_path(now.files), base);
  if (!known) return of_node(options.root, known.error());
  const auto edit = edit_of(known->settings, choice);
  if (!edit) return of_file(path, edit.error());
  if (auto problem = obstacle(options, now.files, known->settings, *edit, plan); !problem.empty()) return problem;
  const auto text = docker_main(base, choice);
  if (!text) return of_file(path, text.error());
  return plan_main(options, now, origin, *text, plan.changes);
}

/// Of version 2: config.toml alone is edited.
text::phrase import_in_the_way(const setup_options& options, const layout& files, const known_runtimes& known,
                               const runtime_edit& edit) {
  const auto importer = [&](const auto& setter) {
    return setter.first.starts_with(edit.name + ".") && setter.second != main_path(files);
  };
  const auto setter = std::ranges::find_if(known.setters, importer);
  if (edit.is_new || setter == known.setters.end()) return {};
  std::vector<std::string> lines;
  if (!edit.default_name.empty()) lines.push_back("default_runtime_name = \"" + edit.default_name + "\"");
  for (const auto& [key, line] : lines_of(edit, files)) lines.push_back(line);
  return refusal(
      "import_in_the_way",
      {{"file", below_root(options.root, setter->second)}, {"name", edit.name}, {"lines", text::joined(lines)}});
}

text::phrase plan_containerd(const setup_options& options, const present& now, runtime_plan& plan) {
  const auto path = below_root(options.root, main_path(now.files));
  if (!now.main) {
    if (now.backup) return changed_by_person(options.root, now.files);
    return refusal("no_main", {{"file", path}});
  }
  const auto origin = origin_of(now);
  const auto base = origin ? origin->text : text_of(now.main);
  const facts::files node(options.root);
  const auto sources = containerd_sources(node, {{main_path(now.files), *base}}, reading_of(options, now));
  if (!sources) return of_node(options.root, sources.error());
  const auto known = containerd_known(sources->files);
  if (!known) return of_node(options.root, known.error());
  const bool keeps_default =
      (origin && origin->has_default) || (now.drop_in && drop_in_sets_default(now.drop_in->text));
  const choice choice{options.set_default || keeps_default, facts::kubelet_systemd(node)};
  const auto edit = edit_of(known->settings, choice);
  if (!edit) return of_file(path, edit.error());
  if (auto problem = obstacle(options, now.files, known->settings, *edit, plan); !problem.empty()) return problem;
  if (known->version > 2) {
    const auto text = containerd_drop_in_text(known->version, *edit);
    if (auto problem = add_drop_in(options, now, *sources, *known, *edit, text, plan.changes); !problem.empty())
      return problem;
    if (plan.changes.empty() && !now.drop_in) return {};
  } else if (edit->is_empty()) {
    return {};
  } else if (auto problem = import_in_the_way(options, now.files, *known, *edit); !problem.empty()) {
    return problem;
  }
  const auto text = containerd_main(*base, choice);
  if (!text) return of_file(path, text.error());
  return plan_main(options, now, origin, *text, plan.changes);
}

text::phrase plan_crio(const setup_options& options, const present& now, runtime_plan& plan) {
  const auto sources = crio_sources(facts::files(options.root), reading_of(options, now));
  if (!sources) return of_node(options.root, sources.error());
  const auto known = crio_known(sources->files);
  if (!known) return of_node(options.root, known.error());
  const choice choice{options.set_default || (now.drop_in && drop_in_sets_default(now.drop_in->text))};
  const auto edit = edit_of(known->settings, choice);
  if (!edit) return edit.error();
  if (auto problem = obstacle(options, now.files, known->settings, *edit, plan); !problem.empty()) return problem;
  return add_drop_in(options, now, *sources, *known, *edit, crio_drop_in_text(*edit), plan.changes);
}

std::expected<disk::folder, text::phrase> open_or_make(const std::string& path) {
  auto found = disk::open_folder(path);
  if (found || !disk::is_missing(found.error(), path)) return found;
  const auto parent = disk::open_folder(folder_of(path));
  if (!parent) return std::unexpected(parent.error());
  if (::mkdirat(parent->handle.get(), name_of(path).c_str(), 0755) != 0 && errno != EEXIST)
    return disk::failed("make_folder", path, errno);
  if (auto done = parent->sync(); !done) return std::unexpected(done.error());
  return disk::open_folder(path);
}

std::expected<void, text::phrase> take(const setup_options& options, const layout& files, const change& change) {
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
    return disk::failed("rename", target->file(name), errno);
  return target->sync();
}

std::expected<void, text::phrase> carry_out(const setup_options& options, const layout& files,
                                            const std::vector<change>& changes, report& out) {
  for (const auto& change : changes) {
    const auto path = below_root(options.root, change.path);
    if (options.dry_run) {
      if (change.is_listed) out.difference += difference(path, change.before.value_or(""), change.after.value_or(""));
      continue;
    }
    if (auto done = take(options, files, change); !done) return done;
    out.lines.push_back(refusal(change.after ? "wrote" : "removed", {{"file", path}}));
  }
  return {};
}

text::phrase restart_line(std::string_view name) { return refusal("restart", {{"runtime", std::string(name)}}); }

/// Which runtime is meant.
std::expected<layout, text::phrase> chosen(const setup_options& options) {
  const auto runtime = facts::read_runtime(facts::files(options.root));
  const auto names = runtime ? runtime->names : std::vector<std::string>();
  const auto has = [&](std::string_view name) { return std::ranges::find(names, name) != names.end(); };
  for (const auto& found : names)
    if (const auto advice = facts::distribution_advice(found))
      if (options.runtime.empty() || (options.runtime == "containerd" && !has("containerd")))
        return std::unexpected(api::remedy_phrase(*advice));
  auto name = options.runtime;
  if (name.empty()) {
    if (names.empty()) return std::unexpected(refusal("no_socket", {{"folder", below_root(options.root, "/run")}}));
    if (has("cri-o") && names.size() > 1) return std::unexpected(refusal("several", {}));
    name = names.front() == "cri-o" ? "crio" : names.front();
  }
  return *std::ranges::find(layouts, name, &layout::name);
}

}  // namespace

std::string text_of(const report& report, text::language locale) {
  std::string out;
  for (const auto* lines : {&report.repairs, &report.lines}) {
    if (lines == &report.lines) out += report.difference;
    for (const auto& line : *lines) out += words_of(line, locale) + "\n";
  }
  return out;
}

messages set_up(const setup_options& options) {
  const auto files = chosen(options);
  if (!files) return std::unexpected(files.error());
  const auto now = read_present(options.root, *files);
  if (!now) return std::unexpected(now.error());
  runtime_plan plan;
  const auto problem = files->name == "docker" ? plan_docker(options, *now, plan)
                       : files->name == "crio" ? plan_crio(options, *now, plan)
                                               : plan_containerd(options, *now, plan);
  if (!problem.empty()) return std::unexpected(problem);
  for (const auto& change : plan.changes)
    if (facts::is_linked(facts::files(options.root), change.path))
      return std::unexpected(api::remedy_phrase(api::check_advice::replace_link));
  report out;
  if (plan.changes.empty()) {
    out.lines.push_back(refusal("nothing", {{"runtime", std::string(files->name)}}));
    return out;
  }
  for (const auto& repair : plan.repairs) out.repairs.push_back(refusal("repairs", {{"problem", repair}}));
  if (auto done = carry_out(options, *files, plan.changes, out); !done) return std::unexpected(done.error());
  if (!options.dry_run) out.lines.push_back(restart_line(files->name));
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
  report out;
  if (all.empty()) out.lines.push_back(refusal("nothing_to_restore", {}));
  for (const auto& [files, changes] : all) {
    if (auto done = carry_out(options, files, changes, out); !done) return std::unexpected(done.error());
    if (!options.dry_run) out.lines.push_back(restart_line(files.name));
  }
  return out;
}

}  // namespace agent::container_runtime
