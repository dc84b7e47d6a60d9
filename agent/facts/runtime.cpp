#include "agent/facts/runtime.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "text/text.hpp"

namespace agent::facts {
namespace {

// What is beyond these was written by no one who sets up a container runtime.
constexpr std::size_t most_bytes = 256 << 10, most_files = 64;
constexpr int deepest_json = 16;

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

/// The file and what it imports; later ones win.
fact<std::vector<setting>> all_settings(const files& node, const std::string& path) {
  const auto text = node.text(path, most_bytes);
  if (!text) return std::unexpected(text.error());
  auto out = settings_in(text->value_or(""));
  std::vector<std::string> more;
  for (const auto& setting : out) {
    if (setting.key != "imports" || !setting.table.empty()) continue;
    for (const auto& pattern : text::quoted_in(setting.value)) {
      if (more.size() >= most_files) break;
      const bool is_relative = !pattern.starts_with('/');
      const auto paths = imported(node, is_relative ? path.substr(0, path.rfind('/') + 1) + pattern : pattern);
      if (!paths) return std::unexpected(paths.error());
      more.insert(more.end(), paths->begin(), paths->end());
    }
  }
  for (const auto& import : more) {
    const auto imported_text = node.text(import, most_bytes);
    if (!imported_text) return std::unexpected(imported_text.error());
    const auto settings = settings_in(imported_text->value_or(""));
    out.insert(out.end(), settings.begin(), settings.end());
  }
  return out;
}

bool is_runtime(const setting& setting, std::string_view key) {
  const bool named = setting.table.contains(".runtimes.nvidia") || setting.table.contains(".runtimes.\"nvidia\"");
  return named && setting.key == key;
}

// Tables differ between versions 1, 2 and 3 of containerd's configuration; the keys do not.
void take_in_containerd(const std::vector<setting>& settings, container_runtime& runtime) {
  std::string default_name = "runc";
  for (const auto& setting : settings) {
    if (setting.key == "default_runtime_name") default_name = bare(setting.value);
    if (setting.key == "enable_cdi") runtime.uses_cdi = setting.value == "true";
    // Versions 3 and 4 are of containerd 2, where CDI is on by default.
    const bool is_new = setting.value == "3" || setting.value == "4";
    if (setting.key == "version" && setting.table.empty() && is_new && !runtime.uses_cdi) runtime.uses_cdi = true;
    if (setting.key == "SystemdCgroup" && setting.value == "true") runtime.uses_systemd = true;
    if (is_runtime(setting, "BinaryName")) runtime.program = bare(setting.value);
    if (is_runtime(setting, "runtime_type")) runtime.has_nvidia = true;
  }
  runtime.has_nvidia = runtime.has_nvidia || !runtime.program.empty() || default_name == "nvidia";
  runtime.default_runtime = default_name;
}

void read_containerd(const files& node, const std::string& path, container_runtime& runtime) {
  const auto settings = all_settings(node, path);
  if (settings)
    take_in_containerd(*settings, runtime);
  else
    runtime.default_runtime = std::unexpected(settings.error());
}

void read_crio(const files& node, container_runtime& runtime) {
  std::string default_name = "crun";
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
    for (const auto& setting : settings_in(text->value_or(""))) {
      if (setting.key == "default_runtime") default_name = bare(setting.value);
      if (setting.key == "cgroup_manager") runtime.uses_systemd = bare(setting.value) == "systemd";
      if (is_runtime(setting, "runtime_path")) runtime.program = bare(setting.value);
    }
  }
  runtime.has_nvidia = !runtime.program.empty() || default_name == "nvidia";
  runtime.default_runtime = default_name;
}

void read_docker(const files& node, container_runtime& runtime) {
  const auto text = node.text("/etc/docker/daemon.json", most_bytes);
  if (!text) {
    runtime.default_runtime = std::unexpected(text.error());
    return;
  }
  const auto is_shallow = [](int depth, auto, const auto&) { return depth < deepest_json; };  // copies are recursive
  const auto json = nlohmann::json::parse(text->value_or("{}"), is_shallow, false);
  if (!json.is_object()) {
    runtime.default_runtime = std::unexpected("/etc/docker/daemon.json is no JSON object");
    return;
  }
  const auto text_in = [](const nlohmann::json& object, const char* key) {
    const auto match = object.find(key);
    return match != object.end() && match->is_string() ? match->get<std::string>() : std::string();
  };
  const auto name = text_in(json, "default-runtime");
  runtime.default_runtime = name.empty() ? "runc" : name;
  const auto runtimes = json.value("runtimes", nlohmann::json::object());
  if (runtimes.is_object() && runtimes.contains("nvidia")) {
    runtime.has_nvidia = true;
    if (runtimes["nvidia"].is_object()) runtime.program = text_in(runtimes["nvidia"], "path");
  }
  if (json.contains("exec-opts"))
    runtime.uses_systemd = json["exec-opts"].dump().contains("native.cgroupdriver=systemd");
}

/// k3s and RKE2 have a socket in common.
std::string rancher_config(const files& node) {
  const std::string folder = "/var/lib/rancher/", file = "/agent/etc/containerd/config.toml";
  return folder + (node.exists(folder + "rke2" + file).value_or(false) ? "rke2" : "k3s") + file;
}

constexpr std::array<std::pair<const char*, const char*>, 4> sockets{{
    {"/run/crio/crio.sock", "cri-o"},
    {"/run/k3s/containerd/containerd.sock", "k3s"},
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
  for (const auto& [socket, name] : sockets) {
    const auto exists = node.exists(socket);
    if (!exists) return std::unexpected(exists.error());
    if (*exists) out.names.emplace_back(name);
  }
  if (out.names.empty()) return std::unexpected("no container runtime has a socket where it usually is, below /run");
  const auto& first = out.names.front();
  if (first == "cri-o")
    read_crio(node, out);
  else if (first == "docker")
    read_docker(node, out);
  else if (first == "k3s")
    read_containerd(node, rancher_config(node), out);
  else
    read_containerd(node, "/etc/containerd/config.toml", out);
  return out;
}

}  // namespace agent::facts
