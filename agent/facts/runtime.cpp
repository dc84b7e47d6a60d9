#include "agent/facts/runtime.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "text/text.hpp"

namespace agent::facts {
namespace {

// What is beyond these was written by no one who sets up a container runtime.
constexpr std::size_t most_bytes = 256 << 10, most_files = 64;
constexpr int deepest_json = 16, deepest_table = 8;

/// A head of a table has no key.
struct setting {
  std::string table, key, value;  ///< the value as it is written
};

std::string without_comment(std::string_view line) {
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quote != 0) {
      if (line[i] == quote) quote = 0;
    } else if (line[i] == '"' || line[i] == '\'') {
      quote = line[i];
    } else if (line[i] == '#') {
      return std::string(text::trimmed(line.substr(0, i)));
    }
  }
  return std::string(text::trimmed(line));
}

std::string bare(std::string_view text) {
  text = text::trimmed(text);
  while (!text.empty() && (text.front() == '"' || text.front() == '\'')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == '"' || text.back() == '\'')) text.remove_suffix(1);
  return std::string(text);
}

/// Tables and their plain keys: what the few settings need of TOML. Texts over several lines are not read.
std::vector<setting> settings_in(std::string_view toml) {
  std::vector<setting> out;
  std::string table, open_array;
  while (!toml.empty()) {
    const auto end = toml.find('\n');
    const auto line = without_comment(toml.substr(0, end));
    toml = end == std::string_view::npos ? std::string_view() : toml.substr(end + 1);
    if (!open_array.empty()) {
      out.back().value += line;
      if (line.contains(']')) open_array.clear();
      continue;
    }
    if (line.starts_with('[')) {
      table = line.substr(line.find_first_not_of('['));
      table.erase(std::min(table.find_last_not_of(']') + 1, table.size()));
      out.push_back({table, {}, {}});
      continue;
    }
    const auto equals = line.find('=');
    if (equals == std::string::npos) continue;
    out.push_back({table, bare(line.substr(0, equals)), std::string(text::trimmed(line.substr(equals + 1)))});
    const auto& value = out.back().value;
    if (value.starts_with('[') && !value.contains(']')) open_array = value;
  }
  return out;
}

/// Dotted keys and inline tables as tables: "options = {BinaryName = 'x'}" is BinaryName of the table below.
void flatten(setting line, std::vector<setting>& out, int depth = 0) {
  if (const auto dot = line.key.rfind('.'); dot != std::string::npos) {
    line.table += (line.table.empty() ? "" : ".") + line.key.substr(0, dot);
    line.key.erase(0, dot + 1);
  }
  if (!line.value.starts_with('{') || depth == deepest_table) {
    out.push_back(std::move(line));
    return;
  }
  const auto table = line.table + (line.table.empty() ? "" : ".") + line.key;
  out.push_back({table, {}, {}});
  const auto add = [&](std::string_view part) {
    const auto equals = part.find('=');
    if (equals != std::string_view::npos)
      flatten({table, bare(part.substr(0, equals)), std::string(text::trimmed(part.substr(equals + 1)))}, out,
              depth + 1);
  };
  char quote = 0;
  int open = 0;
  std::size_t begin = 1;
  for (std::size_t index = 1; index < line.value.size(); ++index) {
    const char c = line.value[index];
    if (quote != 0 ? c == quote : c == '"' || c == '\'') quote = quote == 0 ? c : '\0';
    if (quote != 0) continue;
    if (c == '{' || c == '[') ++open;
    const bool is_end = open == 0 && (c == ',' || c == '}');
    if (c == '}' || c == ']') --open;
    if (!is_end) continue;
    add(std::string_view(line.value).substr(begin, index - begin));
    begin = index + 1;
  }
}

std::vector<setting> flat_settings_in(std::string_view toml) {
  std::vector<setting> out;
  for (auto& line : settings_in(toml)) flatten(std::move(line), out);
  return out;
}

/// Files that a line of `imports` stands for: one, or all of a folder ("/etc/containerd/conf.d/*.toml").
fact<std::vector<std::string>> imported(const files& node, const std::string& pattern) {
  const auto star = pattern.find('*');
  if (star == std::string::npos) return std::vector{pattern};
  const auto slash = pattern.rfind('/', star);
  if (slash == std::string::npos) return std::vector<std::string>();
  const auto folder = pattern.substr(0, slash);
  const auto prefix = pattern.substr(slash + 1, star - slash - 1), suffix = pattern.substr(star + 1);
  const auto names = node.names(folder);
  if (!names) return std::unexpected(names.error());
  std::vector<std::string> out;
  for (const auto& name : *names)
    if (out.size() < most_files && name.starts_with(prefix) && name.ends_with(suffix))
      out.push_back(folder + "/" + name);
  return out;
}

/// Files that the imports of `path` stand for, as containerd finds them.
fact<std::vector<std::string>> imports_of(const files& node, const std::string& path,
                                          const std::vector<setting>& settings) {
  std::vector<std::string> out;
  for (const auto& setting : settings) {
    if (setting.key != "imports" || !setting.table.empty()) continue;
    for (const auto& pattern : text::quoted_in(setting.value)) {
      if (out.size() >= most_files) break;
      const bool is_relative = !pattern.starts_with('/');
      const auto paths = imported(node, is_relative ? path.substr(0, path.rfind('/') + 1) + pattern : pattern);
      if (!paths) return std::unexpected(paths.error());
      for (const auto& import : *paths) out.push_back(std::filesystem::path(import).lexically_normal());
    }
  }
  return out;
}

/// The files and what they import, each once: file by file, as containerd does. Later ones win.
fact<std::vector<setting>> all_settings(const files& node, const std::vector<std::string>& paths) {
  std::vector<setting> out;
  std::set<std::string> read;
  std::deque<std::string> pending(paths.begin(), paths.end());
  for (; !pending.empty() && read.size() <= most_files; pending.pop_front()) {
    const auto path = pending.front();
    if (!read.insert(path).second) continue;
    const auto text = node.text(path, most_bytes);
    if (!text) return std::unexpected(text.error());
    const auto settings = flat_settings_in(text->value_or(""));
    const auto imports = imports_of(node, path, settings);
    if (!imports) return std::unexpected(imports.error());
    pending.insert(pending.end(), imports->begin(), imports->end());
    out.insert(out.end(), settings.begin(), settings.end());
  }
  return out;
}

/// plugins, io.containerd.grpc.v1.cri, containerd of `plugins."io.containerd.grpc.v1.cri".containerd`.
std::vector<std::string> parts_of(std::string_view table) {
  std::vector<std::string> out{""};
  char quote = 0;
  for (const char c : table) {
    if (quote != 0 ? c == quote : c == '"' || c == '\'')
      quote = quote == 0 ? c : '\0';
    else if (quote == 0 && c == '.')
      out.emplace_back();
    else if (quote != 0 || (c != ' ' && c != '\t'))
      out.back() += c;
  }
  return out;
}

/// The deprecated table of containerd 1 that goes before default_runtime_name.
constexpr std::string_view old_default = "default_runtime";

/// The setting is of a runtime, or of its options: into its entry.
void take_in_entry(const setting& setting, runtime_settings& settings) {
  const auto parts = parts_of(setting.table);
  const auto runtimes = std::ranges::find(parts, "runtimes");
  const bool is_old = runtimes == parts.end();
  const auto name = is_old ? std::ranges::find(parts, old_default) : runtimes + 1;
  if (name >= parts.end()) return;
  auto& entry = settings.at(*name);
  const bool is_option = name + 1 != parts.end() && name[1] == "options";
  const auto value = bare(setting.value);
  if (is_option && setting.key == "BinaryName") entry.program = value;
  if (is_option && setting.key == "SystemdCgroup") entry.systemd = setting.value;  // as text it stays in its quotes
  if (name + 1 != parts.end()) return;
  if (setting.key == "runtime_type") entry.type = value;
  if (setting.key == "runtime_path") entry.program = value;
}

void conclude(container_runtime& runtime) {
  const auto* entry = nvidia_entry(runtime.settings);
  runtime.has_nvidia = entry || is_nvidia_default(runtime.settings);
  if (entry) runtime.program = entry->program;
  runtime.default_runtime = runtime.settings.default_name;
}

// Tables differ between versions 1, 2 and 3 of containerd's configuration; the keys do not.
void take_in_containerd(const std::vector<setting>& lines, container_runtime& runtime) {
  auto& settings = runtime.settings;
  settings.default_name = "runc";
  bool is_old = true;
  bool is_new_file = false;  // each has a version of its own
  for (const auto& setting : lines) {
    if (setting.key == "version" && setting.table.empty()) is_new_file = setting.value == "3" || setting.value == "4";
    // From version 3 on containerd skips the section of the old name.
    if (is_new_file && setting.table.contains("io.containerd.grpc.v1.cri")) continue;
    if (setting.key == "default_runtime_name") settings.default_name = bare(setting.value);
    if (setting.key == "enable_cdi") runtime.uses_cdi = setting.value == "true";
    // Versions 3 and 4 are of containerd 2, where CDI is on by default.
    const bool is_new = setting.value == "3" || setting.value == "4";
    if (setting.key == "version" && setting.table.empty() && is_new) {
      is_old = false;
      if (!runtime.uses_cdi) runtime.uses_cdi = true;
    }
    if (setting.key == "SystemdCgroup" && setting.value == "true") runtime.uses_systemd = true;
    take_in_entry(setting, settings);
  }
  const auto* deprecated = settings.find(old_default);
  if (is_old && deprecated && !deprecated->type.empty()) settings.default_name = old_default;
  conclude(runtime);
}

void read_containerd(const files& node, const std::vector<std::string>& paths, container_runtime& runtime) {
  const auto settings = all_settings(node, paths);
  if (settings)
    take_in_containerd(*settings, runtime);
  else
    runtime.default_runtime = std::unexpected(settings.error());
}

void read_crio(const files& node, container_runtime& runtime) {
  auto& settings = runtime.settings;
  settings.type = runtime_settings::kind::crio;
  settings.default_name = "crun";
  runtime.uses_cdi = true;
  runtime.uses_systemd = true;  // unless it says otherwise
  auto paths = imported(node, "/etc/crio/crio.conf.d/*");
  if (!paths) {
    runtime.default_runtime = std::unexpected(paths.error());
    return;
  }
  paths->insert(paths->begin(), "/etc/crio/crio.conf");
  for (const auto& path : *paths) {
    const auto text = node.text(path, most_bytes);
    if (!text) {
      runtime.default_runtime = std::unexpected(text.error());
      return;
    }
    for (const auto& setting : flat_settings_in(text->value_or(""))) {
      if (setting.key == "default_runtime") settings.default_name = bare(setting.value);
      if (setting.key == "cgroup_manager") runtime.uses_systemd = bare(setting.value) == "systemd";
      take_in_entry(setting, settings);
    }
  }
  // CRI-O looks for a program of the runtime's name then.
  for (auto& entry : settings.entries)
    if (entry.program.empty() && is_nvidia_program(entry.name)) entry.program = entry.name;
  conclude(runtime);
}

void read_docker(const files& node, container_runtime& runtime) {
  const std::string path = "/etc/docker/daemon.json";
  const auto text = node.text(path, most_bytes);
  if (!text) {
    runtime.default_runtime = std::unexpected(text.error());
    return;
  }
  const auto is_shallow = [](int depth, auto, const auto&) { return depth < deepest_json; };  // copies are recursive
  const auto json = nlohmann::json::parse(text->value_or("{}"), is_shallow, false);
  if (!json.is_object()) {
    runtime.default_runtime = std::unexpected(explained_cause{check_cause::no_json, {{"path", path}}});
    return;
  }
  const auto text_in = [](const nlohmann::json& object, const char* key) {
    const auto match = object.find(key);
    return match != object.end() && match->is_string() ? match->get<std::string>() : std::string();
  };
  auto& settings = runtime.settings;
  settings.type = runtime_settings::kind::docker;
  settings.default_name = text_in(json, "default-runtime");
  if (settings.default_name.empty()) settings.default_name = "runc";
  const auto runtimes = json.value("runtimes", nlohmann::json::object());
  for (const auto& [name, runtime_of_docker] : runtimes.items()) {
    auto& entry = settings.at(name);
    if (!runtime_of_docker.is_object()) continue;
    entry.program = text_in(runtime_of_docker, "path");
    const auto options = runtime_of_docker.find("options");
    if (entry.program.empty() && options != runtime_of_docker.end() && options->is_object())
      entry.program = text_in(*options, "BinaryName");
  }
  conclude(runtime);
  if (json.contains("exec-opts"))
    runtime.uses_systemd = json["exec-opts"].dump().contains("native.cgroupdriver=systemd");
}

/// k3s and RKE2 have a socket in common.
std::string rancher_config(const files& node) {
  const std::string folder = "/var/lib/rancher/", file = "/agent/etc/containerd/config.toml";
  return folder + (node.exists(folder + "rke2" + file).value_or(false) ? "rke2" : "k3s") + file;
}

/// k0s takes a drop-in over into what its main file imports when it starts.
std::vector<std::string> k0s_configs(const files& node) {
  std::vector<std::string> out{"/etc/k0s/containerd.toml"};
  const auto drop_ins = imported(node, "/etc/k0s/containerd.d/*.toml");
  if (drop_ins) out.insert(out.end(), drop_ins->begin(), drop_ins->end());
  return out;
}

/// MicroK8s makes it of containerd-template.toml when it starts.
constexpr const char* microk8s_config = "/var/snap/microk8s/current/args/containerd.toml";
constexpr const char* microk8s_socket = "/var/snap/microk8s/common/run/containerd.sock";

constexpr std::array<std::pair<const char*, const char*>, 6> sockets{{
    {"/run/crio/crio.sock", "cri-o"},
    {"/run/k3s/containerd/containerd.sock", "k3s"},
    {"/run/k0s/containerd.sock", "k0s"},
    {microk8s_socket, "microk8s"},
    {"/run/cri-dockerd.sock", "docker"},
    {"/run/containerd/containerd.sock", "containerd"},
}};

}  // namespace

std::string toolkit_config(const container_runtime& runtime) {
  const bool is_operators = runtime.program.starts_with("/usr/local/nvidia/toolkit/");  // the GPU Operator's
  return std::string(is_operators ? "/usr/local/nvidia/toolkit/.config" : "/etc") +
         "/nvidia-container-runtime/config.toml";
}

fact<std::optional<bool>> read_environment_rule(const files& node, const container_runtime& runtime) {
  const auto text = node.text(toolkit_config(runtime), most_bytes);
  if (!text) return std::unexpected(text.error());
  std::optional<bool> out;
  for (const auto& setting : settings_in(text->value_or("")))
    if (setting.table.empty() && setting.key == "accept-nvidia-visible-devices-envvar-when-unprivileged")
      out = setting.value == "true";
  return out;
}

fact<container_runtime> read_runtime(const files& node) {
  container_runtime out;
  bool sees_snaps = true;
  for (const auto& [socket, name] : sockets) {
    const auto exists = node.exists(socket);
    // The folder of snaps is not mounted in the agent's pod.
    if (!exists && socket == microk8s_socket) {
      sees_snaps = false;
      continue;
    }
    if (!exists) return std::unexpected(exists.error());
    if (*exists) out.names.emplace_back(name);
  }
  if (out.names.empty())
    return std::unexpected(
        explained_cause{sees_snaps ? check_cause::runtime_unseen : check_cause::runtime_unseen_but_snaps});
  const auto& first = out.names.front();
  if (first == "cri-o")
    read_crio(node, out);
  else if (first == "docker")
    read_docker(node, out);
  else if (first == "k3s")
    read_containerd(node, {rancher_config(node)}, out);
  else if (first == "k0s")
    read_containerd(node, k0s_configs(node), out);
  else if (first == "microk8s")
    read_containerd(node, {microk8s_config}, out);
  else
    read_containerd(node, {"/etc/containerd/config.toml"}, out);
  return out;
}

}  // namespace agent::facts
