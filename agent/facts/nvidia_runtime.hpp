#pragma once
// Which of the configured runtimes is NVIDIA's, and whether it works: the one judge of the preflight rows and of
// `agent fix-runtime`, which both have the settings from runtime_files.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/facts/files.hpp"

namespace agent::facts {

/// A runtime as all files together have it. Empty: they do not say.
struct runtime_entry {
  std::string name;
  std::string type;     ///< runtime_type of containerd
  std::string program;  ///< BinaryName of containerd, runtime_path of CRI-O, path of Docker
  std::string systemd;  ///< SystemdCgroup of containerd: "true" or "false"
};

/// A setting of a runtime in a place where containerd or CRI-O does not read it, or not every containerd.
struct stray_setting {
  std::string key, value;  ///< "BinaryName", without quotes
  std::string path;        ///< the file
  std::string table;       ///< as a head has it; empty: none
  std::string runtime;     ///< next to whose options it stands, or with `since`, whose it is; empty: elsewhere
  std::size_t line = 0;
  std::string since = {};  ///< the first containerd that reads it; empty: none does
};

struct runtime_settings {
  enum class kind { containerd, crio, docker };
  kind type = kind::containerd;
  std::vector<runtime_entry> entries;
  std::string default_name;
  std::vector<stray_setting> strays;  ///< of NVIDIA's runtime, of the default, and SystemdCgroup next to options

  const runtime_entry* find(std::string_view name) const;
  runtime_entry& at(std::string_view name);  ///< makes it
};

/// nvidia-container-runtime, or its forms .cdi and .legacy, in any folder.
bool is_nvidia_program(std::string_view program);
/// NVIDIA's by its program, whatever it is called; or called nvidia, without a program.
bool is_nvidia(const runtime_entry& entry);
/// Also a default nvidia that has no entry.
bool is_nvidia_default(const runtime_settings& settings);
/// The one that pods get: the default, else the one called nvidia, else any. nullptr: there is none, or the default
/// nvidia has no entry.
const runtime_entry* nvidia_entry(const runtime_settings& settings);

/// Whose SystemdCgroup that of NVIDIA's runtime has to be: runc's, else that of the default. Nothing: neither says it.
/// NVIDIA's own is no source.
struct cgroup_source {
  std::string name, value;
};
std::optional<cgroup_source> source_of_cgroups(const runtime_settings& settings);

/// Of NVIDIA's runtime, where there is none in its place. nullptr: none.
const stray_setting* stray_runtime(const runtime_settings& settings);
/// The SystemdCgroup of this runtime that stands next to its options. nullptr: none, or its options have one.
const stray_setting* stray_cgroups(const runtime_settings& settings, std::string_view runtime);
/// A default that is set where the runtime does not read it, to NVIDIA's runtime. nullptr: none.
const stray_setting* stray_default(const runtime_settings& settings);

/// Why NVIDIA's runtime does not work as it is set up.
struct runtime_defect {
  enum class kind {
    no_entry,
    misplaced,
    by_version,
    other_program,
    unnamed_program,
    missing_program,
    type,
    cgroups,
    other_cgroups
  };
  kind type = kind::no_entry;
  explained_cause cause;  ///< without the names of the runtimes and without an advice
  /// `fix-runtime` writes what is missing. Otherwise a person has to, and `advice` says what.
  bool is_repairable() const {
    return type != kind::missing_program && type != kind::other_program && type != kind::other_cgroups;
  }
  api::check_advice advice() const;
};

/// `has_program`: of nvidia_entry. None: it works, or there is none, or its program cannot be seen. The worst is first.
std::vector<runtime_defect> defects_of(const runtime_settings& settings, const fact<bool>& has_program);
std::optional<runtime_defect> defect_of(const runtime_settings& settings, const fact<bool>& has_program);

/// A bare name is looked for where systemd's PATH leads. True without a name.
fact<bool> has_program(const files& node, const std::string& program);

/// What to do on k3s, k0s and MicroK8s, which write containerd's configuration themselves. Nothing: another name.
std::optional<api::check_advice> distribution_advice(std::string_view name);
/// The cause as a row has it: of these runtimes, with what to do.
explained_cause cause_of(const runtime_defect& defect, std::string_view names, api::check_advice advice);

}  // namespace agent::facts
