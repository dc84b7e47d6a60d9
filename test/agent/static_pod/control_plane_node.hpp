#pragma once
// A control-plane node for tests: a folder like kubeadm's, and the loop of the agent without cluster and clock.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "agent/static_pod/files.hpp"
#include "test/words.hpp"

namespace agent::static_pod {

inline const texts bare{std::nullopt, "spec: {}\n"};
inline const texts extended{"extenders: [ours]\n", "spec: {command: [--config]}\n"};

class control_plane_node {
 public:
  explicit control_plane_node(std::filesystem::path path = {}) {
    if (path.empty()) {
      // Memory, where there is such a folder: thousands of syncs are made.
      std::string name =
          (std::filesystem::exists("/dev/shm") ? std::string("/dev/shm/") : testing::TempDir()) + "static_pod_XXXXXX";
      path = ::mkdtemp(name.data());
      owned_ = path;
    }
    root = path;
    std::filesystem::create_directories(root / "manifests");
    put(root / "manifests/kube-scheduler.yaml", *bare.manifest, 0600);
    put(root / "scheduler.conf", "conf\n", 0640);
  }
  control_plane_node(const control_plane_node&) = delete;
  ~control_plane_node() {
    if (!owned_.empty()) std::filesystem::remove_all(owned_);
  }

  static void put(const std::filesystem::path& file, const std::string& text, mode_t mode = 0644) {
    std::ofstream(file, std::ios::binary) << text;
    ::chmod(file.c_str(), mode);
  }
  static std::string get(const std::filesystem::path& file) {
    std::ostringstream out;
    out << std::ifstream(file, std::ios::binary).rdbuf();
    return out.str();
  }
  static mode_t mode(const std::filesystem::path& file) {
    struct stat about{};
    return ::lstat(file.c_str(), &about) == 0 ? about.st_mode & 07777 : 0;
  }

  texts now() const {
    texts out;
    if (std::filesystem::exists(config())) out.config = get(config());
    if (std::filesystem::exists(manifest())) out.manifest = get(manifest());
    return out;
  }
  std::filesystem::path config() const { return root / "scheduler-config.yaml"; }
  std::filesystem::path manifest() const { return root / "manifests/kube-scheduler.yaml"; }
  std::filesystem::path kept() const { return root / "quartermaster/record.json"; }
  /// What a kubelet would read.
  std::vector<std::string> manifests() const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(root / "manifests")) {
      if (const auto name = entry.path().filename().string(); !name.starts_with('.')) out.push_back(name);
    }
    return out;
  }

  /// One look and one step, as the agent does; the error of the file layer.
  std::expected<step, error> turn(bool asked_for) {
    const files layer(root);
    const auto seen = layer.look();
    if (!seen) return std::unexpected(seen.error());
    control_plane_facts facts;
    facts.now = seen->now;
    facts.kept = seen->kept;
    facts.asked_for = asked_for;
    facts.wanted = asked_for ? extended : bare;
    facts.generation = (seen->kept ? seen->kept->generation : 0) + 1;
    const bool is_up = works && (*facts.now.manifest != *extended.manifest || ours_works);
    facts.down = is_up ? text::phrase() : text::phrase("it does not work");
    facts.up_for = facts.watched_for = facts.since_manifest = std::chrono::hours(1);
    auto chosen = next(facts);
    const auto done = layer.take(chosen, seen->now);
    if (!done) return std::unexpected(done.error());
    return chosen;
  }
  /// Until there is nothing to do or an error; `reason` is the last message.
  state settle(bool asked_for, std::string* reason = nullptr) {
    for (int i = 0; i < 30; ++i) {
      const auto did = turn(asked_for);
      if (!did) {
        if (reason) *reason = words::line_of(did.error());
        return state::stopped;
      }
      if (did->kind == action::rest || did->kind == action::wait || did->kind == action::stop) {
        if (reason) *reason = words::line_of(did->reason);
        return did->is;
      }
    }
    ADD_FAILURE() << "it does not come to rest";
    return state::stopped;
  }

  std::filesystem::path root;
  bool works = true, ours_works = true;

 private:
  std::filesystem::path owned_;
};

}  // namespace agent::static_pod
