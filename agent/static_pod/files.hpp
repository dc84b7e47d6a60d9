#pragma once
// The files of a control-plane node. What may be written is exactly scheduler-config.yaml and
// manifests/kube-scheduler.yaml in the folder of kubeadm, and the record in quartermaster/ next to them. No symbolic
// link is followed, in any part of a path. A file is written next to the record, because the kubelet reads every
// file in manifests/ and does not watch that folder. It is synced and renamed into place with the mode and the owner of
// the one before; then the folder is synced. Whatever fails, every file is entirely the one before or entirely the new
// one. The error is one line that says what to do.
//
// The kube-scheduler of a new configuration has to be able to read it, and no one else: it gets the mode and the owner
// of scheduler.conf.

#include <chrono>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "agent/static_pod/machine.hpp"

namespace agent::static_pod {

using error = text::phrase;

class files {
 public:
  /// `root` as it is seen here; on the node it is /etc/kubernetes. Nothing is opened yet.
  explicit files(std::string root = "/etc/kubernetes") : root_(std::move(root)) {}

  struct contents {
    texts now;
    std::optional<record> kept;
    std::chrono::system_clock::time_point manifest_at;  ///< when it was written
  };
  /// Errors: no such folder, a link, no regular file, larger than 1 MiB, no UTF-8, a record that cannot be read.
  std::expected<contents, error> look() const;

  /// Could a change with this record begin? Writes all but the rename, next to the record, and takes it away again.
  std::expected<void, error> rehearse(const record& record) const;

  /// Does what the step says (keep, write_config, remove_config, write_manifest, forget; else nothing). A file that is
  /// no more as `now` has it is left alone. The first record of a change needs room for all that follows.
  std::expected<void, error> take(const step& step, const texts& now) const;

  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

}  // namespace agent::static_pod
