#pragma once
// What the files of a container runtime say, read as the runtime reads them: the one reading for the preflight rows and
// for `agent fix-runtime`. Pure: texts in, settings out. The error of each is what the runtime refuses, or what is not
// known of it: with the file, and with its line.
//
// Which tables containerd reads (its cmd/containerd/server/config and plugins/cri/runtime: configMigration):
//   version 1, or none    plugins.cri; containerd 2 alone reads the full names as well
//   version 2             plugins."io.containerd.grpc.v1.cri"; containerd 2 alone reads that of version 3 as well
//   version 3 and 4       plugins."io.containerd.cri.v1.runtime"; containerd 1 refuses the file. In one of version 3,
//                         containerd from 2.3 on alone reads that of version 2 as well
// An imported file without a version is of version 1 for containerd 2, and of that of the main file for containerd 1.

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/facts/nvidia_runtime.hpp"
#include "agent/facts/toml.hpp"
#include "api/check.hpp"

namespace agent::facts {

/// Of the runtime's section in files of version 2, and from version 3 on.
constexpr std::array<std::string_view, 2> containerd_plugins{"io.containerd.grpc.v1.cri",
                                                             "io.containerd.cri.v1.runtime"};
/// The table goes before default_runtime_name in containerd 1, and is nothing in containerd 2.
constexpr std::string_view deprecated_default = "default_runtime";

/// A file as the runtime reads it.
struct runtime_file {
  std::string path, text;
};

/// What all files together say.
struct known_runtimes {
  runtime_settings settings;
  int version = 1;                             ///< of containerd's main file
  std::optional<bool> uses_cdi;                ///< nothing: not said
  bool uses_systemd = false;                   ///< for the cgroups of containers
  std::string default_file;                    ///< that sets the default; empty: none
  std::map<std::string, std::string> setters;  ///< the last file that sets "nvidia.runtime_type"
};

/// In the order in which they are read; the first is the main file.
fact<known_runtimes> containerd_known(const std::vector<runtime_file>& sources);
fact<known_runtimes> crio_known(const std::vector<runtime_file>& sources);
/// @param text nothing: there is no file
fact<known_runtimes> docker_known(const std::string& path, const std::optional<std::string>& text);

/// Patterns, as they are written, and the line that has them.
struct import_list {
  std::vector<std::string> patterns;
  std::size_t line = 0;
};
fact<import_list> containerd_imports(const runtime_file& source);
fact<toml_document> toml_in(const runtime_file& source);

/// Where the runtimes are below a section of containerd.
toml_path containerd_path(std::string_view plugin, const toml_path& rest);
/// How a row ends that names such an error: the runtime refuses the file, or one version of it, or it is not known.
api::check_state state_of(api::check_cause fault);

}  // namespace agent::facts
