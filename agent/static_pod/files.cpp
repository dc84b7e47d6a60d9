#include "agent/static_pod/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "agent/disk/folder.hpp"
#include "agent/static_pod/record.hpp"

namespace agent::static_pod {
namespace {

constexpr auto largest = disk::largest_file;
/// Four files are in a record, and JSON writes some bytes as six.
constexpr std::size_t largest_record = 4 * 6 * largest + largest;
constexpr auto config_name = "scheduler-config.yaml", manifest_name = "kube-scheduler.yaml",
               kubeconfig_name = "scheduler.conf", record_name = "record.json", draft_name = "draft";
constexpr auto manifests_folder = "manifests", own_folder = "quartermaster";

using disk::folder;
using disk::like;
using disk::like_of;
using disk::read;

text::phrase no_control_plane() { return {"static_pod.no_control_plane"}; }

/// The three folders. `own` may not be there before the first write.
struct folders {
  folder root, manifests;
  std::optional<folder> own;
};

std::expected<folders, error> open_all(const std::string& path, bool make) {
  auto root = disk::open_folder(path, no_control_plane());
  if (!root) return std::unexpected(std::move(root.error()));
  auto manifests = disk::open_below(*root, manifests_folder, no_control_plane());
  if (!manifests) return std::unexpected(std::move(manifests.error()));
  if (make) {
    if (::mkdirat(root->handle.get(), own_folder, 0700) == 0) {
      if (auto done = root->sync(); !done) return std::unexpected(std::move(done.error()));
    } else if (errno != EEXIST) {
      return disk::failed("make_folder", root->file(own_folder), errno);
    }
  }
  struct stat about{};
  std::optional<folder> own;
  if (::fstatat(root->handle.get(), own_folder, &about, AT_SYMLINK_NOFOLLOW) == 0) {
    auto there = disk::open_below(*root, own_folder, no_control_plane());
    if (!there) return std::unexpected(std::move(there.error()));
    own = std::move(*there);
  }
  return folders{std::move(*root), std::move(*manifests), std::move(own)};
}

/// Room for this many bytes in files, their blocks and entries.
std::expected<void, error> room(const folder& folder, std::size_t bytes, std::size_t in_files) {
  struct statvfs about{};
  if (::fstatvfs(folder.handle.get(), &about) != 0) return disk::failed("look_for_space", folder.path, errno);
  const auto needed = bytes + in_files * 2 * about.f_frsize;
  const auto free = static_cast<std::size_t>(about.f_bavail) * about.f_frsize;
  if (free < needed)
    return std::unexpected(
        error{"static_pod.no_space",
              {{"path", folder.path}, {"free", std::to_string(free)}, {"needed", std::to_string(needed)}}});
  if (about.f_files > 0 && about.f_favail < in_files + 1)
    return std::unexpected(
        error{"static_pod.no_inodes", {{"path", folder.path}, {"free", std::to_string(about.f_favail)}}});
  return {};
}

/// A rename crosses neither file systems nor mounts of one.
std::expected<void, error> one_mount(const folders& folders) {
  struct statx first{};
  for (const auto* entry : {&folders.root, &folders.manifests, &*folders.own}) {
    struct statx about{};
    if (::statx(entry->handle.get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, &about) != 0)
      return disk::failed("look", entry->path, errno);
    if (entry == &folders.root) first = about;
    if (about.stx_dev_major != first.stx_dev_major || about.stx_dev_minor != first.stx_dev_minor ||
        ((about.stx_mask & first.stx_mask & STATX_MNT_ID) != 0 && about.stx_mnt_id != first.stx_mnt_id))
      return std::unexpected(error{"static_pod.other_mount", {{"path", entry->path}, {"other", folders.root.path}}});
  }
  return {};
}

/// Before the first record of a change.
std::expected<void, error> preflight(const folders& folders, const record& record) {
  if (auto mounted = one_mount(folders); !mounted) return mounted;
  // Twice: the way there, and the way back.
  const auto bytes =
      write(record).size() + record.after.config.value_or("").size() + record.after.manifest.value_or("").size();
  return room(*folders.own, 2 * bytes, 3);
}

std::expected<void, error> keep(const folders& folders, const record& record) {
  if (record.stage == phase::applying || record.stage == phase::removing) {
    if (auto can = preflight(folders, record); !can) return can;
  }
  const auto text = write(record);
  return disk::put({*folders.own}, *folders.own, record_name, text, like(), nullptr);
}

/// A key is for its owner alone, whatever the file before allowed.
like like_config(const folders& folders, std::string_view text) {
  const mode_t allowed = text.contains("keyData") ? 0700 : 07777;
  for (const auto* name : {config_name, kubeconfig_name}) {
    struct stat about{};
    if (::fstatat(folders.root.handle.get(), name, &about, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(about.st_mode))
      continue;
    auto out = like_of(about);
    out.mode &= allowed;
    return out;
  }
  return like();
}

std::expected<void, error> forget(const folders& folders) {
  for (const auto* name : {draft_name, record_name}) {
    if (auto done = disk::remove(*folders.own, name); !done) return done;
  }
  // Where a person keeps something next to it, the folder stays.
  if (::unlinkat(folders.root.handle.get(), own_folder, AT_REMOVEDIR) != 0 && errno != ENOTEMPTY && errno != EEXIST)
    return disk::failed("remove_folder", folders.own->path, errno);
  return folders.root.sync();
}

}  // namespace

std::expected<files::contents, error> files::look() const {
  const auto folders = open_all(root_, false);
  if (!folders) return std::unexpected(folders.error());
  contents out;
  const auto config = read(folders->root, config_name);
  if (!config) return std::unexpected(config.error());
  if (*config) out.now.config = (*config)->text;
  const auto manifest = read(folders->manifests, manifest_name);
  if (!manifest) return std::unexpected(manifest.error());
  if (*manifest) {
    out.now.manifest = (*manifest)->text;
    out.manifest_at = std::chrono::system_clock::from_time_t((*manifest)->about.st_mtime);
  }
  if (!folders->own) return out;
  const auto kept = read(*folders->own, record_name, largest_record);
  if (!kept) return std::unexpected(kept.error());
  if (!*kept) return out;
  auto known = read_record((*kept)->text);
  if (!known)
    return std::unexpected(
        error{"static_pod.record", {{"file", folders->own->file(record_name)}, {"problem", known.error()}}});
  out.kept = std::move(*known);
  return out;
}

std::expected<void, error> files::rehearse(const record& record) const {
  const auto folders = open_all(root_, true);
  if (!folders) return std::unexpected(folders.error());
  auto done = preflight(*folders, record);
  if (done) done = disk::draft({*folders->own}, write(record), like());
  ::unlinkat(folders->own->handle.get(), draft_name, 0);
  // A folder that was made for this only goes; one with a record in it stays.
  ::unlinkat(folders->root.handle.get(), own_folder, AT_REMOVEDIR);
  return done;
}

std::expected<void, error> files::take(const step& step, const texts& now) const {
  if (step.kind == action::rest || step.kind == action::wait || step.kind == action::stop) return {};
  const auto folders = open_all(root_, true);
  if (!folders) return std::unexpected(folders.error());
  switch (step.kind) {
    case action::keep:
      return keep(*folders, step.kept);
    case action::forget:
      return forget(*folders);
    case action::remove_config:
      if (auto same = disk::unchanged(folders->root, config_name, now.config); !same) return same;
      return disk::remove(folders->root, config_name);
    case action::write_config:
      return disk::put({*folders->own}, folders->root, config_name, step.text, like_config(*folders, step.text),
                       &now.config);
    case action::write_manifest: {
      const auto there = read(folders->manifests, manifest_name);
      if (!there) return std::unexpected(there.error());
      const auto attributes = *there ? like_of((*there)->about) : like();
      return disk::put({*folders->own}, folders->manifests, manifest_name, step.text, attributes, &now.manifest);
    }
    default:
      return {};
  }
}

}  // namespace agent::static_pod
