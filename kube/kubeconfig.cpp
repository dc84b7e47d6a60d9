// kubeconfig files (client-go tools/clientcmd/api/v1/types.go) into a cluster_config. yaml-cpp's own exceptions carry
// the line of a fault up to load_kubeconfig, the only function that leaves this file.

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <map>

#include "kube/config.hpp"

namespace kube {

namespace fs = std::filesystem;

namespace {

/// A fault in a file, thrown up to load_kubeconfig.
struct fault {
  std::string message;
};

struct entry {
  YAML::Node body;
  std::string file;
};
using entry_map = std::map<std::string, entry, std::less<>>;

struct merged {
  entry_map clusters, users, contexts;
  std::string current;
  std::string files;  // for messages
};

std::string at(const std::string& file, const YAML::Node& node) {
  const auto mark = node.Mark();
  return "kubeconfig " + file + (mark.is_null() ? "" : ":" + std::to_string(mark.line + 1));
}

/// A scalar, or empty when the key is missing or null.
std::string text(const entry& entry, const char* key) {
  const YAML::Node value = entry.body[key];
  if (!value || value.IsNull()) return {};
  if (!value.IsScalar()) throw fault{at(entry.file, value) + ": " + key + " must be a string"};
  return value.Scalar();
}

bool truth(const entry& entry, const char* key) {
  const auto value = text(entry, key);
  if (value.empty() || value == "false") return false;
  if (value == "true") return true;
  throw fault{at(entry.file, entry.body[key]) + ": " + key + " is \"" + value + "\"; it must be true or false"};
}

std::string full_path(const entry& entry, std::string path) {
  if (path.empty() || fs::path(path).is_absolute()) return path;
  return (fs::absolute(entry.file).parent_path() / path).lexically_normal().string();
}

pem_source pem(const entry& entry, const std::string& key) {
  pem_source source;
  const auto data_key = key + "-data";
  if (const auto data = text(entry, data_key.c_str()); !data.empty()) {
    const auto location = at(entry.file, entry.body[data_key]) + ": " + data_key;
    auto decoded = base64_decode(data);
    if (!decoded) throw fault{location + " is not base64; it must be the PEM file through `base64 -w0`"};
    if (!decoded->contains("-----BEGIN "))
      throw fault{location + " is base64 of something that is not PEM; it must begin with -----BEGIN"};
    source.data = std::move(*decoded);
    return source;
  }
  source.path = full_path(entry, text(entry, key.c_str()));
  if (!source.path.empty() && !fs::exists(source.path))
    throw fault{at(entry.file, entry.body[key]) + ": " + key + " " + source.path +
                " does not exist; relative paths count from the kubeconfig's folder"};
  return source;
}

/// Items of `clusters`, `users` or `contexts`: {name, <inner>: {...}}. A name that is there already keeps its first
/// value.
void collect(const YAML::Node& list, const char* key, const char* inner, const std::string& file, entry_map& entries) {
  if (!list || list.IsNull()) return;
  if (!list.IsSequence()) throw fault{at(file, list) + ": " + key + " must be a list"};
  for (const auto& item : list) {
    if (!item.IsMap() || !item["name"] || !item["name"].IsScalar())
      throw fault{at(file, item) + ": an entry of " + key + " needs a name"};
    YAML::Node body = item[inner];
    if (!body || body.IsNull()) body = YAML::Node(YAML::NodeType::Map);
    if (!body.IsMap()) throw fault{at(file, body) + ": " + inner + " must be a map"};
    entries.try_emplace(item["name"].Scalar(), entry{body, file});
  }
}

void read(const std::string& file, merged& merged) {
  const auto bytes = read_file(file);
  if (!bytes) throw fault{"kubeconfig: " + bytes.error().message};
  YAML::Node root;
  try {
    root = YAML::Load(*bytes);
  } catch (const YAML::Exception& wrong) {
    throw fault{"kubeconfig " + file + ":" + std::to_string(wrong.mark.line + 1) + ": not YAML: " + wrong.msg};
  }
  merged.files += (merged.files.empty() ? "" : ":") + file;
  if (root.IsNull()) return;
  if (!root.IsMap()) throw fault{"kubeconfig " + file + ": must be a map with clusters, users and contexts"};
  collect(root["clusters"], "clusters", "cluster", file, merged.clusters);
  collect(root["users"], "users", "user", file, merged.users);
  collect(root["contexts"], "contexts", "context", file, merged.contexts);
  if (merged.current.empty()) merged.current = text(entry{root, file}, "current-context");
}

const entry& pick(const entry_map& entries, const std::string& name, const char* kind, const std::string& files) {
  if (const auto found = entries.find(name); found != entries.end()) return found->second;
  std::string known;
  for (const auto& [key, unused] : entries) known += (known.empty() ? "" : ", ") + key;
  throw fault{std::string(kind) + " \"" + name + "\" is not in " + files +
              (known.empty() ? "; there is none" : "; there are: " + known)};
}

exec_config exec_of(const entry& user) {
  const entry section{user.body["exec"], user.file};
  if (!section.body.IsMap()) throw fault{at(section.file, section.body) + ": exec must be a map"};
  exec_config exec;
  exec.api_version = text(section, "apiVersion");
  if (exec.api_version != "client.authentication.k8s.io/v1" &&
      exec.api_version != "client.authentication.k8s.io/v1beta1")
    throw fault{at(section.file, section.body) + ": exec.apiVersion is \"" + exec.api_version +
                "\"; it must be client.authentication.k8s.io/v1 or client.authentication.k8s.io/v1beta1"};
  exec.command = text(section, "command");
  if (exec.command.empty()) throw fault{at(section.file, section.body) + ": exec.command is missing"};
  if (exec.command.contains('/')) exec.command = full_path(section, exec.command);
  for (const auto& arg : section.body["args"]) exec.args.push_back(arg.as<std::string>());
  for (const auto& pair : section.body["env"]) {
    const entry variable{pair, section.file};
    exec.env.emplace_back(text(variable, "name"), text(variable, "value"));
  }
  exec.install_hint = text(section, "installHint");
  exec.provide_cluster_info = truth(section, "provideClusterInfo");
  const auto mode = text(section, "interactiveMode");
  using enum exec_config::interactive;
  if (mode == "Never")
    exec.mode = never;
  else if (mode == "Always")
    exec.mode = always;
  else if (mode == "IfAvailable" || (mode.empty() && exec.api_version.ends_with("v1beta1")))
    exec.mode = if_available;
  else
    throw fault{at(section.file, section.body) + ": exec.interactiveMode is \"" + mode +
                "\"; it must be Never, IfAvailable or Always"};
  return exec;
}

user_config user_of(const entry& entry) {
  user_config user;
  user.token = text(entry, "token");
  user.token_file = full_path(entry, text(entry, "tokenFile"));
  if (!user.token_file.empty() && !fs::exists(user.token_file))
    throw fault{at(entry.file, entry.body["tokenFile"]) + ": tokenFile " + user.token_file + " does not exist"};
  user.certificate = pem(entry, "client-certificate");
  user.key = pem(entry, "client-key");
  if (user.certificate.empty() != user.key.empty())
    throw fault{at(entry.file, entry.body) + ": client-certificate and client-key are needed both, one is missing"};
  user.username = text(entry, "username");
  user.password = text(entry, "password");
  user.as_user = text(entry, "as");
  user.as_uid = text(entry, "as-uid");
  for (const auto& group : entry.body["as-groups"]) user.as_groups.push_back(group.as<std::string>());
  for (const auto& extra : entry.body["as-user-extra"])
    user.as_extra.emplace_back(extra.first.as<std::string>(), extra.second.as<std::vector<std::string>>());
  if (entry.body["exec"] && !entry.body["exec"].IsNull()) user.exec = exec_of(entry);
  if (entry.body["auth-provider"])
    throw fault{at(entry.file, entry.body["auth-provider"]) +
                ": auth-provider was removed in Kubernetes 1.26; use exec"};
  return user;
}

cluster_config resolve(const merged& all, const config_options& choose) {
  const auto name = choose.context.empty() ? all.current : choose.context;
  entry context{YAML::Node(YAML::NodeType::Map), all.files};
  if (!name.empty())
    context = pick(all.contexts, name, "context", all.files);
  else if (choose.cluster.empty())
    throw fault{all.files + " has no current-context; give --context, one of `kubectl config get-contexts -o name`"};

  const auto cluster_name = choose.cluster.empty() ? text(context, "cluster") : choose.cluster;
  const auto user_name = choose.user.empty() ? text(context, "user") : choose.user;
  const auto& cluster = pick(all.clusters, cluster_name, "cluster", all.files);

  cluster_config config;
  config.context = name;
  config.source = cluster.file;
  config.server = text(cluster, "server");
  if (!config.server.starts_with("https://") || config.server.size() < 9)
    throw fault{at(cluster.file, cluster.body) + ": server of cluster \"" + cluster_name + "\" is \"" + config.server +
                "\"; it must be https://HOST[:PORT] (credentials are never sent in clear text)"};
  while (config.server.ends_with('/')) config.server.pop_back();
  config.ca = pem(cluster, "certificate-authority");
  config.tls_server_name = text(cluster, "tls-server-name");
  config.insecure = truth(cluster, "insecure-skip-tls-verify");
  config.proxy_url = text(cluster, "proxy-url");
  if (config.insecure && !config.ca.empty())
    throw fault{at(cluster.file, cluster.body) +
                ": insecure-skip-tls-verify and certificate-authority exclude each other; remove one"};
  if (!user_name.empty()) config.user = user_of(pick(all.users, user_name, "user", all.files));
  if (auto ns = choose.ns.empty() ? text(context, "namespace") : choose.ns; !ns.empty()) config.ns = std::move(ns);
  return config;
}

}  // namespace

result<cluster_config> load_kubeconfig(std::span<const std::string> files, const config_options& choose) try {
  merged all;
  std::string missing;
  for (const auto& file : files) {
    if (fs::exists(file))
      read(file, all);
    else
      missing += (missing.empty() ? "" : ", ") + file;
  }
  if (all.files.empty()) throw fault{"kubeconfig " + (missing.empty() ? "list is empty" : missing + " does not exist")};
  return resolve(all, choose);
} catch (const fault& wrong) {
  return std::unexpected(error{errc::config, 0, wrong.message, {}});
} catch (const YAML::Exception& wrong) {
  const auto line = wrong.mark.is_null() ? "" : " line " + std::to_string(wrong.mark.line + 1);
  return std::unexpected(error{errc::config, 0, "kubeconfig" + line + ": " + wrong.msg, {}});
} catch (const fs::filesystem_error& wrong) {
  return std::unexpected(
      error{errc::config, 0, "kubeconfig: " + wrong.path1().string() + ": " + wrong.code().message(), {}});
}

}  // namespace kube
