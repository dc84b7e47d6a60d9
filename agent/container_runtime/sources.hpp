#pragma once
// The files of the runtimes, and which of them a runtime reads. Paths are those of the node; its root comes before
// them.

#include <array>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/container_runtime/edit.hpp"
#include "agent/container_runtime/setup.hpp"
#include "agent/disk/folder.hpp"

namespace agent::container_runtime {

/// The files of a runtime. `folder` has the main file and the draft: no runtime reads all of its files.
struct layout {
  std::string_view name, folder, main, drop_in;
};
constexpr std::array layouts{layout{"containerd", "/etc/containerd", "config.toml", containerd_drop_in},
                             layout{"crio", "/etc/crio", "", crio_drop_in},
                             layout{"docker", "/etc/docker", "daemon.json", ""}};

std::string name_of(std::string_view path);
std::string folder_of(std::string_view path);
std::string main_path(const layout& files);
std::string below_root(const std::string& root, std::string_view path);
/// Nothing: there is no such file, or no folder for it.
std::expected<std::optional<disk::content>, text::phrase> content_at(const std::string& root, std::string_view path);

/// The files that the runtime reads, in order; `own` is our drop-in's place among them.
struct sources {
  std::vector<runtime_file> files;  ///< without our drop-in
  std::optional<std::size_t> own;
  std::string missing;  ///< the first that is named and not there; containerd 2 reads no further import then

  bool has(std::string_view path) const { return std::ranges::find(files, path, &runtime_file::path) != files.end(); }
  bool has_later(std::string_view path) const {
    for (auto index = own.value_or(files.size()); index < files.size(); ++index)
      if (files[index].path == path) return true;
    return false;
  }
};

/// `main`: of containerd.
std::expected<sources, text::phrase> sources_of(const setup_options& options, const layout& files,
                                                const std::optional<std::string>& main);

}  // namespace agent::container_runtime
