#include "agent/facts/nvidia_runtime.hpp"

#include <algorithm>
#include <array>

namespace agent::facts {
namespace {

constexpr std::string_view wanted_type = "io.containerd.runc.v2", usual_name = "nvidia";
constexpr std::array<std::string_view, 3> programs{"nvidia-container-runtime", "nvidia-container-runtime.cdi",
                                                   "nvidia-container-runtime.legacy"};
/// Below /usr alone: other folders are links to these, and are not mounted in the agent's pod.
constexpr std::array<std::string_view, 4> program_folders{"/usr/local/sbin/", "/usr/local/bin/", "/usr/sbin/",
                                                          "/usr/bin/"};

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// A path to the shim is a type, too.
bool is_runc_type(std::string_view type) {
  return type == wanted_type || (type.starts_with('/') && last_part(type) == "containerd-shim-runc-v2");
}

std::string_view program_key(runtime_settings::kind type) {
  using kind = runtime_settings::kind;
  return type == kind::containerd ? "BinaryName" : type == kind::crio ? "runtime_path" : "path";
}

/// No boolean, mostly one that is written as text: containerd refuses it.
bool is_quoted(std::string_view value) { return !value.empty() && value != "true" && value != "false"; }

explained_cause cause_of(check_cause code, const stray_setting& stray, std::vector<text::parameter> parameters) {
  explained_cause out{code, std::move(parameters)};
  const std::vector<text::parameter> place{
      {"path", stray.path}, {"line", std::to_string(stray.line)}, {"key", stray.key}, {"table", stray.table}};
  out.parameters.insert(out.parameters.end(), place.begin(), place.end());
  return out;
}

/// A SystemdCgroup next to the options of runc, or of the default, that NVIDIA's runtime would have to follow.
std::optional<runtime_defect> other_cgroups(const runtime_settings& settings, const runtime_entry* entry) {
  if (settings.type != runtime_settings::kind::containerd || (entry && !entry->systemd.empty())) return std::nullopt;
  for (const auto& name : {std::string("runc"), settings.default_name}) {
    const auto* other = settings.find(name);
    const auto* stray = other && !is_nvidia(*other) ? stray_cgroups(settings, name) : nullptr;
    if (stray && stray->value == "true")
      return runtime_defect{runtime_defect::kind::other_cgroups,
                            cause_of(check_cause::cgroups_misplaced, *stray, {{"runtime", name}})};
  }
  return std::nullopt;
}

std::optional<runtime_defect> cgroup_defect(const runtime_settings& settings, const runtime_entry& entry) {
  constexpr auto type = runtime_defect::kind::cgroups;
  if (is_quoted(entry.systemd))
    return runtime_defect{type, {check_cause::cgroups_quoted, {{"runtime", entry.name}, {"value", entry.systemd}}}};
  if (const auto* stray = stray_cgroups(settings, entry.name))
    return runtime_defect{type, cause_of(check_cause::cgroups_misplaced, *stray, {{"runtime", entry.name}})};
  const auto source = source_of_cgroups(settings);
  if (!source || (source->value == "true") == (entry.systemd == "true")) return std::nullopt;
  const auto* present = settings.find(settings.default_name);
  // Pods of the default work with it: a runc that no pod uses has containerd's own false.
  if (entry.systemd == "true" && present && present->systemd == "true") return std::nullopt;
  runtime_defect out{
      type,
      {check_cause::cgroups_unset, {{"runtime", entry.name}, {"source", source->name}, {"needed", source->value}}}};
  if (entry.systemd.empty()) return out;
  out.cause.code = check_cause::cgroups_other;
  out.cause.parameters.push_back({"value", entry.systemd});
  return out;
}

}  // namespace

const runtime_entry* runtime_settings::find(std::string_view name) const {
  const auto entry = std::ranges::find(entries, name, &runtime_entry::name);
  return entry == entries.end() ? nullptr : &*entry;
}

runtime_entry& runtime_settings::at(std::string_view name) {
  const auto entry = std::ranges::find(entries, name, &runtime_entry::name);
  return entry == entries.end() ? entries.emplace_back(runtime_entry{std::string(name), {}, {}, {}}) : *entry;
}

const stray_setting* stray_runtime(const runtime_settings& settings) {
  for (const auto& stray : settings.strays)
    if (stray.key == "BinaryName" || stray.key == "runtime_path" || stray.key == "runtime_type") return &stray;
  return nullptr;
}

const stray_setting* stray_cgroups(const runtime_settings& settings, std::string_view runtime) {
  const auto* entry = settings.find(runtime);
  if (!entry || !entry->systemd.empty()) return nullptr;
  for (const auto& stray : settings.strays)
    if (stray.key == "SystemdCgroup" && stray.runtime == runtime && stray.since.empty()) return &stray;
  return nullptr;
}

const stray_setting* stray_default(const runtime_settings& settings) {
  for (const auto& stray : settings.strays) {
    if (!stray.key.starts_with("default_runtime")) continue;
    const auto* entry = settings.find(stray.value);
    if (entry ? is_nvidia(*entry) : stray.value == usual_name) return &stray;
  }
  return nullptr;
}

bool is_nvidia_program(std::string_view program) {
  return std::ranges::find(programs, last_part(program)) != programs.end();
}

bool is_nvidia(const runtime_entry& entry) {
  return entry.program.empty() ? entry.name == usual_name : is_nvidia_program(entry.program);
}

bool is_nvidia_default(const runtime_settings& settings) {
  const auto* present = settings.find(settings.default_name);
  return present ? is_nvidia(*present) : settings.default_name == usual_name;
}

const runtime_entry* nvidia_entry(const runtime_settings& settings) {
  const auto* present = settings.find(settings.default_name);
  if (present && is_nvidia(*present)) return present;
  if (is_nvidia_default(settings)) return nullptr;
  const auto* usual = settings.find(usual_name);
  if (usual && is_nvidia_program(usual->program)) return usual;
  for (const auto program : programs)  // the plain one before its forms
    for (const auto& entry : settings.entries)
      if (last_part(entry.program) == program) return &entry;
  return usual && is_nvidia(*usual) ? usual : nullptr;
}

std::optional<cgroup_source> source_of_cgroups(const runtime_settings& settings) {
  if (settings.type != runtime_settings::kind::containerd) return std::nullopt;
  for (const auto& name : {std::string("runc"), settings.default_name})
    if (const auto* entry = settings.find(name);
        entry && !is_nvidia(*entry) && !entry->systemd.empty() && !is_quoted(entry->systemd))
      return cgroup_source{name, entry->systemd};
  return std::nullopt;
}

api::check_advice runtime_defect::advice() const {
  if (type == kind::missing_program) return api::check_advice::install_toolkit;
  if (type == kind::other_cgroups) return api::check_advice::move_cgroups;
  return type == kind::other_program ? api::check_advice::rename_runtime : api::check_advice::fix_runtime;
}

std::vector<runtime_defect> defects_of(const runtime_settings& settings, const fact<bool>& has_program) {
  using kind = runtime_defect::kind;
  const auto* entry = nvidia_entry(settings);
  std::vector<runtime_defect> out;
  auto cgroups_of_others = other_cgroups(settings, entry);
  if (!entry) {
    const auto* usual = settings.find(usual_name);
    if (const auto* stray = stray_runtime(settings); stray && !usual)
      out.push_back(stray->since.empty()
                        ? runtime_defect{kind::misplaced, cause_of(check_cause::runtime_misplaced, *stray, {})}
                        : runtime_defect{kind::by_version,
                                         cause_of(check_cause::runtime_since, *stray, {{"since", stray->since}})});
    else if (is_nvidia_default(settings))
      out.push_back({kind::no_entry, {check_cause::runtime_undefined}});
    else if (usual)
      out.push_back({kind::other_program, {check_cause::runtime_other_program, {{"program", usual->program}}}});
    if (cgroups_of_others) out.push_back(std::move(*cgroups_of_others));
    return out;
  }
  const text::parameter runtime{"runtime", entry->name};
  if (entry->program.empty())
    out.push_back(
        {kind::unnamed_program,
         {check_cause::runtime_without_program, {runtime, {"key", std::string(program_key(settings.type))}}}});
  else if (has_program && !*has_program)
    out.push_back(
        {kind::missing_program, {check_cause::runtime_program_missing, {runtime, {"program", entry->program}}}});
  if (settings.type != runtime_settings::kind::containerd) return out;
  if (entry->type.empty())
    out.push_back({kind::type, {check_cause::runtime_without_type, {runtime}}});
  else if (!is_runc_type(entry->type))
    out.push_back(
        {kind::type,
         {check_cause::runtime_other_type, {runtime, {"type", entry->type}, {"needed", std::string(wanted_type)}}}});
  if (auto defect = cgroup_defect(settings, *entry)) out.push_back(std::move(*defect));
  if (cgroups_of_others) out.push_back(std::move(*cgroups_of_others));
  return out;
}

std::optional<runtime_defect> defect_of(const runtime_settings& settings, const fact<bool>& has_program) {
  auto defects = defects_of(settings, has_program);
  return defects.empty() ? std::nullopt : std::optional(std::move(defects.front()));
}

fact<bool> has_program(const files& node, const std::string& program) {
  if (program.empty()) return true;
  if (program.starts_with('/')) return node.exists(program);
  fact<bool> out = false;
  for (const auto folder : program_folders) {
    const auto exists = node.exists(std::string(folder) + program);
    if (exists && *exists) return true;
    if (!exists) out = exists;
  }
  return out;
}

std::optional<api::check_advice> distribution_advice(std::string_view name) {
  for (const auto advice : {api::check_advice::k3s, api::check_advice::k0s, api::check_advice::microk8s})
    if (to_string(advice) == name) return advice;
  return std::nullopt;
}

explained_cause cause_of(const runtime_defect& defect, std::string_view names, api::check_advice advice) {
  auto out = defect.cause;
  out.parameters.push_back({"names", std::string(names)});
  out.parameters.push_back({"advice", std::string(to_string(advice))});
  return out;
}

}  // namespace agent::facts
