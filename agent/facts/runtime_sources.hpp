#pragma once
// The files of the container runtimes, and which of them a runtime reads. Paths are those of the node.

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/facts/runtime_files.hpp"

namespace agent::facts {

/// The files of a runtime. `folder` has the main file and the draft: no runtime reads all of its files. `drop_in` is
/// that of `agent fix-runtime`.
struct layout {
  std::string_view name, folder, main, drop_in;
};
constexpr std::array layouts{
    layout{"containerd", "/etc/containerd", "config.toml", "/etc/containerd/conf.d/99-quartermaster.toml"},
    layout{"crio", "/etc/crio", "", "/etc/crio/crio.conf.d/99-quartermaster.conf"},
    layout{"docker", "/etc/docker", "daemon.json", ""}};
const layout& layout_of(std::string_view name);

std::string name_of(std::string_view path);
std::string folder_of(std::string_view path);
std::string main_path(const layout& files);

/// The files that the runtime reads, in order; `own` is our drop-in's place among them, where it was left out.
struct sources {
  std::vector<runtime_file> files;
  std::optional<std::size_t> own;

  bool has(std::string_view path) const { return std::ranges::find(files, path, &runtime_file::path) != files.end(); }
  bool has_later(std::string_view path) const {
    for (auto index = own.value_or(files.size()); index < files.size(); ++index)
      if (files[index].path == path) return true;
    return false;
  }
};

struct source_options {
  std::string_view left_out = {};     ///< our drop-in: its place is noted, and it is not read; empty: none
  std::string_view only_folder = {};  ///< the one that is mounted; empty: all are
};
/// The main files, and what they import.
fact<sources> containerd_sources(const files& node, std::vector<runtime_file> mains,
                                 const source_options& options = {});
fact<sources> crio_sources(const files& node, const source_options& options = {});
/// One file, of a size that a person writes; nothing: it is not there.
fact<std::optional<std::string>> runtime_text(const files& node, const std::string& path);

/// Is our drop-in among what these patterns of the main file import?
bool imports_drop_in(const std::vector<std::string>& patterns);
/// Is the file, or a folder above it, a symbolic link? Nothing is written over one.
bool is_linked(const files& node, const std::string& path);

}  // namespace agent::facts
