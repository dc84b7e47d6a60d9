#include "kube/exec_plugin.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "kube/json_text.hpp"
#include "kube/rfc3339.hpp"

namespace kube {

namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr std::size_t max_output = 1 << 20;

std::unexpected<error> bad(std::string message) {
  return std::unexpected(error{errc::config, 0, std::move(message), {}});
}

std::string named(const exec_config& plugin) { return "credential plugin \"" + plugin.command + "\""; }

/// A file without a name, closed with its owner.
class memory_file {
 public:
  explicit memory_file(const char* name) : fd_(::memfd_create(name, MFD_CLOEXEC)) {}
  memory_file(const memory_file&) = delete;
  memory_file& operator=(const memory_file&) = delete;
  ~memory_file() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }
  std::string text() const {
    struct stat about{};
    if (::fstat(fd_, &about) != 0) return {};
    std::string all(std::min(static_cast<std::size_t>(about.st_size), max_output), '\0');
    const auto size = ::pread(fd_, all.data(), all.size(), 0);
    all.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return all;
  }

 private:
  int fd_;
};

/// A running program; killed and reaped by the destructor unless it has ended.
class child {
 public:
  child(pid_t pid, bool own_group) : pid_(pid), own_group_(own_group) {}
  child(const child&) = delete;
  child& operator=(const child&) = delete;
  ~child() {
    if (pid_ <= 0) return;
    ::kill(own_group_ ? -pid_ : pid_, SIGKILL);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  /// The wait status once it has ended.
  std::optional<int> ended() {
    int status = 0;
    const auto got = ::waitpid(pid_, &status, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR)) return std::nullopt;
    pid_ = -1;
    return got < 0 ? 0 : status;  // someone else reaped it: the output decides
  }

 private:
  pid_t pid_;
  bool own_group_;
};

std::vector<std::string> environment_with(const exec_config& plugin, const std::string& info) {
  std::vector<std::string> all;
  const auto replaced = [&](std::string_view line) {
    const auto key = line.substr(0, line.find('='));
    if (key == "KUBERNETES_EXEC_INFO") return true;
    for (const auto& [name, value] : plugin.env)
      if (name == key) return true;
    return false;
  };
  for (char** line = ::environ; line && *line; ++line)
    if (!replaced(*line)) all.emplace_back(*line);
  for (const auto& [name, value] : plugin.env) all.push_back(name + "=" + value);
  all.push_back("KUBERNETES_EXEC_INFO=" + info);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (auto& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

/// posix_spawnp's error number, or 0 and the pid.
int spawn(const exec_config& plugin, const std::string& info, const memory_file& out, const memory_file& err,
          bool interactive, pid_t& pid) {
  std::vector<std::string> args{plugin.command};
  args.insert(args.end(), plugin.args.begin(), plugin.args.end());
  auto env = environment_with(plugin, info);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  if (!interactive) {
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, err.fd(), 2);
  }
  posix_spawn_file_actions_adddup2(&files, out.fd(), 1);
  posix_spawn_file_actions_addclosefrom_np(&files, 3);
  posix_spawnattr_t posix_spawnattr_t;
  posix_spawnattr_init(&posix_spawnattr_t);
  if (!interactive) posix_spawnattr_setflags(&posix_spawnattr_t, POSIX_SPAWN_SETPGROUP);
  const int failed = ::posix_spawnp(&pid, plugin.command.c_str(), &files, &posix_spawnattr_t, pointers(args).data(),
                                    pointers(env).data());
  posix_spawnattr_destroy(&posix_spawnattr_t);
  posix_spawn_file_actions_destroy(&files);
  return failed;
}

/// The last line that says something, cut to a readable length.
std::string last_line(std::string text) {
  while (!text.empty() && std::strchr(" \t\r\n", text.back())) text.pop_back();
  if (const auto cut = text.rfind('\n'); cut != std::string::npos) text.erase(0, cut + 1);
  if (text.size() > 300) text = text.substr(0, 300) + "...";
  return text;
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return "was killed by signal " + std::to_string(WTERMSIG(status));
  return "failed with exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

bool have_terminal() { return ::isatty(0) && ::isatty(2); }

std::string exec_info(const exec_config& plugin, const cluster_config& cluster, const std::string& ca_pem,
                      bool interactive) {
  json info = {
      {"kind", "ExecCredential"}, {"apiVersion", plugin.api_version}, {"spec", {{"interactive", interactive}}}};
  if (plugin.provide_cluster_info) {
    json about = {{"server", cluster.server}};
    if (!cluster.tls_server_name.empty()) about["tls-server-name"] = cluster.tls_server_name;
    if (cluster.insecure) about["insecure-skip-tls-verify"] = true;
    if (!ca_pem.empty()) about["certificate-authority-data"] = base64_encode(ca_pem);
    if (!cluster.proxy_url.empty()) about["proxy-url"] = cluster.proxy_url;
    info["spec"]["cluster"] = std::move(about);
  }
  return info.dump(-1, ' ', false, json::error_handler_t::replace);
}

result<exec_credential> parse_exec_credential(std::string_view output, const exec_config& plugin) {
  const auto doc = json::parse(output, nullptr, false);
  if (doc.is_discarded() || !doc.is_object())
    return bad(named(plugin) + " printed something that is not an ExecCredential");
  if (doc.value("apiVersion", json()) != plugin.api_version)
    return bad(named(plugin) + " answered in another apiVersion than " + plugin.api_version +
               ", which the kubeconfig asks for");
  const auto status = doc.find("status");
  if (status == doc.end() || !status->is_object())
    return bad(named(plugin) + " printed an ExecCredential without status");
  exec_credential got;
  got.token = text_in(*status, "token");
  got.certificate = text_in(*status, "clientCertificateData");
  got.key = text_in(*status, "clientKeyData");
  if (got.token.empty() && got.certificate.empty())
    return bad(named(plugin) + " printed neither status.token nor status.clientCertificateData");
  if (got.certificate.empty() != got.key.empty())
    return bad(named(plugin) + " printed only one of status.clientCertificateData and status.clientKeyData");
  if (const auto until = text_in(*status, "expirationTimestamp"); !until.empty()) {
    const auto rfc3339 = parse_rfc3339(until);
    if (!rfc3339) return bad(named(plugin) + ": status.expirationTimestamp \"" + until + "\" is not RFC 3339");
    got.expires = std::chrono::system_clock::time_point(std::chrono::seconds(*rfc3339));
  }
  return got;
}

task<exec_credential> run_exec_plugin(exec_config plugin, std::string info, std::chrono::milliseconds limit) {
  const bool interactive = plugin.mode != exec_config::interactive::never && have_terminal();
  if (plugin.mode == exec_config::interactive::always && !interactive)
    co_return bad(named(plugin) + " must ask a person (interactiveMode: Always) and there is no terminal");
  memory_file out("exec-plugin-out"), err("exec-plugin-err");
  if (out.fd() < 0 || err.fd() < 0) co_return bad(named(plugin) + ": memfd_create: " + std::strerror(errno));

  pid_t pid = -1;
  if (const int failed = spawn(plugin, info, out, err, interactive, pid); failed != 0) {
    auto reason = failed == ENOENT ? std::string("not found") : std::string(std::strerror(failed));
    co_return bad(named(plugin) + ": " + reason +
                  (plugin.install_hint.empty() ? "" : "; " + last_line(plugin.install_hint)));
  }
  child program(pid, !interactive);
  boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor);
  const auto deadline = std::chrono::steady_clock::now() + limit;
  std::optional<int> status;
  for (auto pause = 2ms; !(status = program.ended()); pause = std::min(pause * 2, 50ms)) {
    if (std::chrono::steady_clock::now() >= deadline)
      co_return std::unexpected(error{errc::timeout,
                                      0,
                                      named(plugin) + " has not ended after " +
                                          std::to_string(std::chrono::ceil<std::chrono::seconds>(limit).count()) +
                                          " s and was killed",
                                      {}});
    timer.expires_after(pause);
    auto [interrupted] = co_await timer.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    if (interrupted) co_return std::unexpected(error{errc::cancelled, 0, named(plugin) + ": cancelled", {}});
  }
  if (*status != 0) {
    auto detail = last_line(err.text());
    co_return bad(named(plugin) + " " + how_it_ended(*status) + (detail.empty() ? "" : ": " + detail));
  }
  co_return parse_exec_credential(out.text(), plugin);
}

}  // namespace kube
