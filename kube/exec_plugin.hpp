#pragma once
// Exec credential plugins: a program that prints an ExecCredential. Started with posix_spawn, waited for on the loop
// without blocking it; its output goes to anonymous memory files, so no pipe can fill up. When we have a terminal and
// the plugin may ask, it gets it.

#include <chrono>
#include <string>
#include <string_view>

#include "kube/config.hpp"
#include "kube/task.hpp"

namespace kube {

struct exec_credential {
  std::string token;
  std::string certificate, key;  ///< PEM
  std::chrono::system_clock::time_point expires = std::chrono::system_clock::time_point::max();
};

/// The text of KUBERNETES_EXEC_INFO.
std::string exec_info(const exec_config& plugin, const cluster_config& cluster, const std::string& ca_pem,
                      bool interactive);

/// Runs the program once; it is killed after `limit` or when the caller is cancelled. errc::config: not found (with its
/// install hint), failed (with the last line of its stderr), or printed something else; errc::timeout; errc::cancelled.
task<exec_credential> run_exec_plugin(exec_config plugin, std::string info,
                                      std::chrono::milliseconds limit = std::chrono::seconds(30));

/// Pure part: what the program printed.
result<exec_credential> parse_exec_credential(std::string_view output, const exec_config& plugin);

/// Both ends of a terminal are there for a plugin that wants to ask.
bool have_terminal();

}  // namespace kube
