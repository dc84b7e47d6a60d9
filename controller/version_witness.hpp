#pragma once
// Notices that the data of the API server went back to an older state, because etcd was restored from a backup. Every
// change of the cluster raises etcd's revision, and resourceVersions are revisions: they never fall, also where an
// object is deleted and made again. So a version lower than one before means that what we remember may never have been.
// A store would keep it for good, because it drops what is older than what it has.
//
// Judge only versions of answers that come from etcd itself: those to writes, to a GET of one object and to a list that
// ask for no version. A lagging API server cannot give these out of its cache, so it is never taken for a restored one.
// One witness is for one resource: others may be in another etcd (`--etcd-servers-overrides`).

#include <cstdint>
#include <optional>
#include <string_view>

namespace controller {

/// What showed it: an answer of `version`, when `seen` had been seen before.
struct version_fall {
  std::uint64_t seen = 0, version = 0;
};

class version_witness {
 public:
  /// A version that a watch sent. It proves that the server was there, and may come late.
  void note(std::string_view version);
  /// A version of an answer that comes from etcd. Versions that are no numbers say nothing.
  [[nodiscard]] std::optional<version_fall> judge(std::string_view version);

 private:
  std::uint64_t highest_ = 0;
};

/// One line to the log, then `_exit(1)`: no destructor, no hook, and no call to the extender is answered from what we
/// remember. The next process lists everything.
[[noreturn]] void start_afresh(std::string_view resource, const version_fall& fall);

}  // namespace controller
