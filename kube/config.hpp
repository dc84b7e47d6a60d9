#pragma once
// Where the API server is and who we are to it: from flags, kubeconfig files or the service account of a pod, into one
// value. Reading is plain files and environment, done once at start; what changes while we run (tokens, certificates)
// is kube/credentials.hpp's job. Every error is one line: what is wrong, in which file and line, and what to do.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kube/error.hpp"

namespace kube {

/// A token or a name as a file holds it, without the end of its line.
std::string without_line_end(std::string text);

/// PEM text, or the file that holds it. Text wins. Both empty: not given.
struct pem_source {
  std::string path;
  std::string data;

  bool empty() const { return path.empty() && data.empty(); }
  /// For messages: the path, or where the text came from.
  std::string name() const { return data.empty() ? path : "inline data"; }
};

/// A program that prints an ExecCredential (client.authentication.k8s.io/v1 or v1beta1).
struct exec_config {
  std::string api_version;
  std::string command;  ///< a path, or a name looked up in PATH
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;  ///< on top of our own
  std::string install_hint;
  bool provide_cluster_info = false;
  enum class interactive { never, if_available, always } mode = interactive::if_available;
};

struct user_config {
  std::string token;
  std::string token_file;  ///< wins over `token`
  pem_source certificate, key;
  std::string username, password;
  std::string username_file, password_file;  ///< both win over `username` and `password`
  std::optional<exec_config> exec;           ///< asked only when nothing above gives a token
  std::string as_user, as_uid;               ///< impersonation
  std::vector<std::string> as_groups;
  std::vector<std::pair<std::string, std::vector<std::string>>> as_extra;
};

struct cluster_config {
  std::string server;  ///< "https://host:port" and perhaps a path; no slash at the end
  pem_source ca;       ///< empty: the system's CAs
  std::string tls_server_name;
  bool insecure = false;
  bool takes_http = false;  ///< `server` may begin with http://: it is no API server
  std::string proxy_url;    ///< empty: HTTPS_PROXY and NO_PROXY of the environment
  std::string ns = "default";
  user_config user;
  std::string context;  ///< empty in a cluster
  std::string source;   ///< for messages: the file `server` was read from
};

/// What is read besides files; tests bring their own.
struct environment {
  std::function<std::optional<std::string>(const char*)> variable;
  std::string service_account = "/var/run/secrets/kubernetes.io/serviceaccount";

  static environment of_process();
};

struct config_options {
  std::string kubeconfig;     ///< --kubeconfig; empty: $KUBECONFIG, in-cluster, ~/.kube/config
  std::string context;        ///< empty: current-context
  std::string cluster, user;  ///< other entries than the context names
  std::string ns;             ///< another namespace than the context names

  config_options() = default;
};

/// The order of the command line tools: --kubeconfig, $KUBECONFIG, the pod's service account, ~/.kube/config.
/// errc::config.
result<cluster_config> load_config(const config_options& options, const environment& env = environment::of_process());

/// KUBERNETES_SERVICE_HOST, _PORT and the files token, ca.crt, namespace. errc::config.
result<cluster_config> load_in_cluster(const environment& env = environment::of_process());

/// Several files are merged: the first to name a cluster, user, context or current-context wins. Files that do not
/// exist are skipped as long as one does. errc::config.
result<cluster_config> load_kubeconfig(std::span<const std::string> files,
                                       const config_options& choose = config_options());

/// Base64 with any white space between; empty when it is not base64.
std::optional<std::string> base64_decode(std::string_view text);
std::string base64_encode(std::string_view bytes);

/// The whole file; the error line has the path and the system's reason.
result<std::string> read_file(const std::string& path);

}  // namespace kube
