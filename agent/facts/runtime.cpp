#include "agent/facts/runtime.hpp"

#include <array>

#include "agent/facts/runtime_sources.hpp"

namespace agent::facts {
namespace {

/// A runtime that newer containerds alone read may be there.
void take_later(container_runtime& runtime) {
  for (const auto& stray : runtime.settings.strays) {
    if (stray.since.empty() || stray.key.starts_with("default_runtime")) continue;
    runtime.has_nvidia = true;
    if (stray.key == "BinaryName") runtime.program = stray.value;
  }
}

void conclude(const fact<known_runtimes>& known, container_runtime& runtime) {
  if (!known) {
    runtime.default_runtime = std::unexpected(known.error());
    return;
  }
  runtime.settings = known->settings;
  const auto* entry = nvidia_entry(runtime.settings);
  runtime.has_nvidia = entry || is_nvidia_default(runtime.settings);
  if (entry) runtime.program = entry->program;
  if (!runtime.has_nvidia) take_later(runtime);
  runtime.default_runtime = runtime.settings.default_name;
  runtime.uses_cdi = known->uses_cdi;
  runtime.uses_systemd = known->uses_systemd;
}

fact<known_runtimes> read_containerd(const files& node, const std::vector<std::string>& paths) {
  std::vector<runtime_file> mains;
  for (const auto& path : paths) {
    const auto text = runtime_text(node, path);
    if (!text) return std::unexpected(text.error());
    mains.push_back({path, text->value_or("")});
  }
  const auto sources = containerd_sources(node, std::move(mains));
  if (!sources) return std::unexpected(sources.error());
  return containerd_known(sources->files);
}

fact<known_runtimes> read_crio(const files& node) {
  const auto sources = crio_sources(node);
  if (!sources) return std::unexpected(sources.error());
  return crio_known(sources->files);
}

fact<known_runtimes> read_docker(const files& node) {
  const auto path = main_path(layout_of("docker"));
  const auto text = runtime_text(node, path);
  if (!text) return std::unexpected(text.error());
  return docker_known(path, *text);
}

/// k3s and RKE2 have a socket in common.
std::string rancher_config(const files& node) {
  const std::string folder = "/var/lib/rancher/", file = "/agent/etc/containerd/config.toml";
  return folder + (node.exists(folder + "rke2" + file).value_or(false) ? "rke2" : "k3s") + file;
}

/// k0s takes a drop-in over into what its main file imports when it starts.
std::vector<std::string> k0s_configs(const files& node) {
  std::vector<std::string> out{"/etc/k0s/containerd.toml"};
  const std::string folder = "/etc/k0s/containerd.d";
  const auto names = node.names(folder);
  if (!names) return out;
  for (const auto& name : *names)
    if (name.ends_with(".toml")) out.push_back(folder + "/" + name);
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

/// Is what fix-runtime would write over a link? A drop-in that is imported already is written in its place.
bool is_main_linked(const files& node, const layout& files) {
  const auto path = main_path(files);
  if (files.main.empty() || !is_linked(node, path)) return false;
  if (files.drop_in.empty() || is_linked(node, folder_of(path))) return true;
  const auto text = runtime_text(node, path);
  const auto imports = text && *text ? containerd_imports({path, **text}) : import_list();
  return !imports || !imports_drop_in(imports->patterns);
}

}  // namespace

std::string toolkit_config(const container_runtime& runtime) {
  const bool is_operators = runtime.program.starts_with("/usr/local/nvidia/toolkit/");  // the GPU Operator's
  return std::string(is_operators ? "/usr/local/nvidia/toolkit/.config" : "/etc") +
         "/nvidia-container-runtime/config.toml";
}

fact<std::optional<bool>> read_environment_rule(const files& node, const container_runtime& runtime) {
  const auto path = toolkit_config(runtime);
  const auto text = runtime_text(node, path);
  if (!text) return std::unexpected(text.error());
  const auto document = toml_in({path, text->value_or("")});
  if (!document) return std::unexpected(document.error());
  const auto* rule = document->find({"accept-nvidia-visible-devices-envvar-when-unprivileged"});
  return rule ? std::optional(rule->value == "true") : std::nullopt;
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
  conclude(first == "cri-o"      ? read_crio(node)
           : first == "docker"   ? read_docker(node)
           : first == "k3s"      ? read_containerd(node, {rancher_config(node)})
           : first == "k0s"      ? read_containerd(node, k0s_configs(node))
           : first == "microk8s" ? read_containerd(node, {microk8s_config})
                                 : read_containerd(node, {main_path(layout_of("containerd"))}),
           out);
  if (first == "docker" || first == "containerd") out.is_linked = is_main_linked(node, layout_of(first));
  return out;
}

}  // namespace agent::facts
