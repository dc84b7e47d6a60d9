// What all kinds of files have in common: which edit is needed, and how it is shown.

#include "agent/container_runtime/edit.hpp"

#include <algorithm>

#include "api/check.hpp"

namespace agent::container_runtime {

namespace {

/// What newer containerds read of NVIDIA's runtime, where there is no entry: all others get the same. Empty: nothing.
facts::runtime_entry later_entry(const facts::runtime_settings& settings) {
  const auto* runtime = facts::stray_runtime(settings);
  if (!runtime || runtime->since.empty()) return {};
  facts::runtime_entry out{runtime->runtime, {}, {}, {}};
  for (const auto& stray : settings.strays)
    if (stray.since == runtime->since && stray.runtime == out.name && stray.key == "SystemdCgroup")
      out.systemd = stray.value;
  return out;
}

}  // namespace

text::phrase phrase_of(const facts::explained_cause& cause) {
  auto found = api::found_phrase(cause), remedy = api::remedy_phrase(cause);
  if (text::pattern_of(remedy.key, text::language::en).empty()) return found;
  return {"fix_runtime.defect", {{"problem", std::move(found)}, {"remedy", std::move(remedy)}}};
}

std::expected<runtime_edit, text::phrase> edit_of(const facts::runtime_settings& settings, const choice& choice) {
  using kind = facts::runtime_defect::kind;
  const bool is_containerd = settings.type == facts::runtime_settings::kind::containerd;
  const auto source = facts::source_of_cgroups(settings);
  const auto* entry = facts::nvidia_entry(settings);
  const auto* stray = entry ? facts::stray_cgroups(settings, entry->name) : nullptr;
  const auto later = entry ? facts::runtime_entry() : later_entry(settings);
  const auto new_systemd = !is_containerd           ? ""
                           : !later.systemd.empty() ? later.systemd
                           : source                 ? source->value
                           : stray                  ? stray->value
                                                    : choice.kubelet_systemd;
  runtime_edit out;
  out.name = entry ? entry->name : !later.name.empty() ? later.name : "nvidia";
  out.is_new = !entry;
  if (!entry) {
    out.type = is_containerd ? "io.containerd.runc.v2" : "";
    out.program = nvidia_program;
    out.systemd = new_systemd;
  }
  for (const auto& defect : facts::defects_of(settings, true)) {
    if (defect.type == kind::unnamed_program) out.program = nvidia_program;
    if (defect.type == kind::type) out.type = "io.containerd.runc.v2";
    if (defect.type == kind::cgroups) out.systemd = new_systemd;
    if (defect.type == kind::cgroups && out.systemd.empty())
      out.systemd = entry->systemd.contains("true") ? "true" : "false";
  }
  if (entry && !out.is_empty() && entry->systemd.empty()) out.systemd = new_systemd;
  const bool has_new_default = choice.set_default && !facts::is_nvidia_default(settings);
  if (is_containerd && settings.default_name == facts::deprecated_default &&
      (has_new_default || (out.name == facts::deprecated_default && !out.is_empty())))
    return std::unexpected(text::phrase{"fix_runtime.old_default"});
  if (!has_new_default) return out;
  out.default_name = out.name;
  const auto systemd = out.systemd.empty() && entry ? entry->systemd : out.systemd;
  const auto* present = settings.find(settings.default_name);
  if (present && present->systemd == "true" && systemd != "true")
    return std::unexpected(text::phrase{
        "fix_runtime.loses_cgroups",
        {{"name", present->name},
         {"other", out.name},
         {"reason", source ? text::phrase{"fix_runtime.because_of", {{"name", source->name}, {"value", source->value}}}
                           : text::phrase()},
         {"target", source ? source->name : out.name}}});
  return out;
}

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
