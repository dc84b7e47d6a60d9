#pragma once
// What the files of a container runtime have to say so that it knows NVIDIA's runtime. Pure: texts in, texts out.
// Errors are what is wrong with a file, to be read behind its name.
//
// containerd 1 (files of version 2) replaces the whole section of a plugin by that of an imported file: sandbox image,
// SystemdCgroup and more would be gone. So the main file itself is edited there. containerd 2 merges sections, and a
// drop-in is enough (containerd, cmd/containerd/server/config: mergeConfig).

#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "agent/facts/runtime_sources.hpp"
#include "text/phrase.hpp"

namespace agent::container_runtime {

constexpr std::string_view nvidia_program = "/usr/bin/nvidia-container-runtime";

using edited = std::expected<std::string, text::phrase>;

struct choice {
  bool set_default = false;
  /// SystemdCgroup that goes with the kubelet's cgroup driver, for a new runtime where neither runc nor the default
  /// says it: "true" or "false". Empty: not known.
  std::string kubelet_systemd = {};
  /// As this program wrote before it knew runtimes by their programs: only to recognize what it wrote.
  bool is_by_name = false;
};

/// What is wrong with a file or a runtime, and what to do about it.
text::phrase phrase_of(const facts::explained_cause& cause);
/// The main file as it has to be. From version 3 on only the import of our drop-in's folder is added.
edited containerd_main(const std::string& main, const choice& choice);

/// What is written of a runtime, and of the default. Empty texts: nothing.
struct runtime_edit {
  std::string name;     ///< of NVIDIA's runtime
  bool is_new = false;  ///< there is no such runtime yet
  std::string type;     ///< of containerd
  std::string program;
  std::string systemd;  ///< of containerd
  std::string default_name;
  bool is_empty() const { return type.empty() && program.empty() && systemd.empty() && default_name.empty(); }
};
/// Error: a default with SystemdCgroup would be replaced by one without.
std::expected<runtime_edit, text::phrase> edit_of(const facts::runtime_settings& settings, const choice& choice);

/// Our drop-ins.
std::string containerd_drop_in_text(int version, const runtime_edit& edit);
std::string crio_drop_in_text(const runtime_edit& edit);
/// Does a drop-in begin with our line, and is the rest as we wrote it?
bool is_own_drop_in(std::string_view text);
bool drop_in_sets_default(std::string_view text);

/// daemon.json as it has to be. `main`: nullopt where there is none.
edited docker_main(const std::optional<std::string>& main, const choice& choice);

/// A list like that of diff: lines that go, lines that come.
std::string difference(std::string_view path, std::string_view before, std::string_view after);

}  // namespace agent::container_runtime
