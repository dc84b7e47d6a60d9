#pragma once
// Keeps our credentials fresh. Tokens, client certificates and CAs are read again when their files change (looked at
// before every request, and read at least every minute). Exec plugins run again when their credential expires. After a
// 401 all of it happens at once. A half written or mismatched file is never taken over: what worked stays until a good
// one is there. Loop thread only; nothing blocks the loop but reading small files. Secrets never appear in errors.

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kube/config.hpp"
#include "kube/exec_plugin.hpp"
#include "kube/task.hpp"
#include "kube/wait_list.hpp"

namespace kube {

using steady_time = std::chrono::steady_clock::time_point;
/// Credentials end at a wall time, so it is read from a clock that a test may set.
using wall_clock = std::function<std::chrono::system_clock::time_point()>;

/// PEM texts of one moment. Shared by the requests that use them.
struct tls_material {
  std::string ca;  ///< empty: the system's
  std::string certificate, key;
};

/// What one request sends along. Valid as long as it is held.
struct credential {
  std::string authorization;  ///< value of the header; empty: none
  std::shared_ptr<const tls_material> tls;
  std::uint64_t serial = 0;  ///< another one whenever anything above changed
};

/// A small file that others replace while we run. Not tied to a clock: `now` is handed in.
class watched_file {
 public:
  explicit watched_file(std::string path = {}) : path_(std::move(path)) {}
  /// True when the content is another than at the last call. Reads when size, inode or time changed, and after a minute
  /// anyway.
  result<bool> refresh(steady_time now, bool force = false);
  const std::string& text() const { return text_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_, text_, fingerprint_;
  steady_time read_at_{};
};

class credentials {
 public:
  credentials(boost::asio::any_io_executor executor, cluster_config config,
              wall_clock wall = std::chrono::system_clock::now);

  /// The credential to use now. Runs the exec plugin when there is none or it is about to expire; callers share one
  /// run, and wait for it only where the one there is cannot be used any more. Errors: config (a file or the plugin,
  /// what to do), timeout, cancelled.
  task<credential> current(steady_time deadline);
  /// The server answered 401 to this one. True when there is another to try.
  task<bool> renew(std::uint64_t rejected, steady_time deadline);

  /// Impersonate-* lines, the same for every request.
  const std::vector<std::string>& fixed_headers() const { return fixed_headers_; }
  const cluster_config& config() const { return config_; }

 private:
  result<void> refresh_files(steady_time now, bool force);
  result<void> refresh_tls(steady_time now, bool force);
  result<std::string> line_in(watched_file& file, std::string_view noun, steady_time now, bool force) const;
  task<void> refresh_exec(steady_time deadline);
  bool needs_exec() const;

  boost::asio::any_io_executor executor_;
  cluster_config config_;
  std::vector<std::string> fixed_headers_;
  watched_file token_file_, username_file_, password_file_, ca_file_, certificate_file_, key_file_;
  /// State of the exec plugin, shared with a run that may outlive us.
  struct exec_state {
    wall_clock wall;
    exec_credential got;                         ///< `expires`: when another one is fetched
    std::chrono::system_clock::time_point ends;  ///< when the server refuses it
    error failed;
    bool running = false, valid = false;
    std::uint64_t runs = 0;
    std::shared_ptr<wait_list> done = std::make_shared<wait_list>();
  };
  static boost::asio::awaitable<void> run_exec(std::shared_ptr<exec_state> state, exec_config exec_config,
                                               std::string info);
  std::shared_ptr<exec_state> exec_ = std::make_shared<exec_state>();
  std::uint64_t exec_seen_ = 0;
  credential now_;
};

/// At least one certificate, and a key that belongs to it; the error says what is wrong with which.
result<void> check_ca(const std::string& pem, const std::string& name);
result<void> check_pair(const std::string& certificate, const std::string& key, const std::string& name);

}  // namespace kube
