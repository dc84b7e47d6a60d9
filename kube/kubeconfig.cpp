// kubeconfig files (client-go tools/clientcmd/api/v1/types.go) into a cluster_config. yaml-cpp's own exceptions carry
// the line of a fault up to kubeconfig_in_words, the only function that leaves this file.

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <map>

#include "kube/config_fault.hpp"
#include "text/quotation.hpp"
#include "text/yaml/fault_words.hpp"

namespace kube {

namespace fs = std::filesystem;

namespace {

/// A fault in a file, thrown up to kubeconfig_in_words.
struct fault {
  text::phrase words;

  fault(const std::string& name, std::vector<text::phrase_argument> values)
      : words("kubeconfig." + name, std::move(values)) {}
};

text::phrase words_of_library(const YAML::Exception& wrong) {
  return text::quotation_of(text::phrase(text::yaml::fault_of_library(wrong.msg)));
}

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
  if (!value.IsScalar()) throw fault("no_text", {{"place", at(entry.file, value)}, {"key", std::string(key)}});
  return value.Scalar();
}

bool truth(const entry& entry, const char* key) {
  const auto value = text(entry, key);
  if (value.empty() || value == "false") return false;
  if (value == "true") return true;
  throw fault("no_boolean", {{"place", at(entry.file, entry.body[key])}, {"key", std::string(key)}, {"value", value}});
}

std::string full_path(const entry& entry, std::string path) {
  if (path.empty() || fs::path(path).is_absolute()) return path;
  return (fs::absolute(entry.file).parent_path() / path).lexically_normal().string();
}

pem_source pem(const entry& entry, const std::string& key) {
  pem_source source;
  const auto data_key = key + "-data";
  if (const auto data = text(entry, data_key.c_str()); !data.empty()) {
    const std::vector<text::phrase_argument> place{{"place", at(entry.file, entry.body[data_key])}, {"key", data_key}};
    auto decoded = base64_decode(data);
    if (!decoded) throw fault("no_base64", place);
    if (!decoded->contains("-----BEGIN ")) throw fault("no_pem", place);
    source.data = std::move(*decoded);
    return source;
  }
  source.path = full_path(entry, text(entry, key.c_str()));
  if (!source.path.empty() && !fs::exists(source.path))
    throw fault("no_file", {{"place", at(entry.file, entry.body[key])}, {"key", key}, {"file", source.path}});
  return source;
}

/// Items of `clusters`, `users` or `contexts`: {name, <inner>: {...}}. A name that is there already keeps its first
/// value.
void collect(const YAML::Node& list, const char* key, const char* inner, const std::string& file, entry_map& entries) {
  if (!list || list.IsNull()) return;
  if (!list.IsSequence()) throw fault("no_list", {{"place", at(file, list)}, {"key", std::string(key)}});
  for (const auto& item : list) {
    if (!item.IsMap() || !item["name"] || !item["name"].IsScalar())
      throw fault("no_name", {{"place", at(file, item)}, {"key", std::string(key)}});
    YAML::Node body = item[inner];
    if (!body || body.IsNull()) body = YAML::Node(YAML::NodeType::Map);
    if (!body.IsMap()) throw fault("no_map", {{"place", at(file, body)}, {"key", std::string(inner)}});
    entries.try_emplace(item["name"].Scalar(), entry{body, file});
  }
}

void read(const std::string& file, merged& merged) {
  const auto bytes = bytes_of_file(file);
  if (!bytes) throw fault("unreadable", {{"problem", bytes.error()}});
  YAML::Node root;
  try {
    root = YAML::Load(*bytes);
  } catch (const YAML::Exception& wrong) {
    throw fault("no_yaml", {{"place", "kubeconfig " + file + ":" + std::to_string(wrong.mark.line + 1)},
                            {"problem", words_of_library(wrong)}});
  }
  merged.files += (merged.files.empty() ? "" : ":") + file;
  if (root.IsNull()) return;
  if (!root.IsMap()) throw fault("no_kubeconfig", {{"place", "kubeconfig " + file}});
  collect(root["clusters"], "clusters", "cluster", file, merged.clusters);
  collect(root["users"], "users", "user", file, merged.users);
  collect(root["contexts"], "contexts", "context", file, merged.contexts);
  if (merged.current.empty()) merged.current = text(entry{root, file}, "current-context");
}

const entry& pick(const entry_map& entries, const std::string& name, const char* kind, const std::string& files) {
  if (const auto found = entries.find(name); found != entries.end()) return found->second;
  std::string known;
  for (const auto& [key, unused] : entries) known += (known.empty() ? "" : ", ") + key;
  throw fault(known.empty() ? "none" : "unknown",
              {{"kind", std::string(kind)}, {"name", name}, {"file", files}, {"list", known}});
}

exec_config exec_of(const entry& user) {
  const entry section{user.body["exec"], user.file};
  if (!section.body.IsMap())
    throw fault("no_map", {{"place", at(section.file, section.body)}, {"key", std::string("exec")}});
  exec_config exec;
  exec.api_version = text(section, "apiVersion");
  if (exec.api_version != "client.authentication.k8s.io/v1" &&
      exec.api_version != "client.authentication.k8s.io/v1beta1")
    throw fault("exec_version", {{"place", at(section.file, section.body)}, {"value", exec.api_version}});
  exec.command = text(section, "command");
  if (exec.command.empty()) throw fault("exec_command", {{"place", at(section.file, section.body)}});
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
    throw fault("exec_mode", {{"place", at(section.file, section.body)}, {"value", mode}});
  return exec;
}

user_config user_of(const entry& entry) {
  user_config user;
  user.token = text(entry, "token");
  user.token_file = full_path(entry, text(entry, "tokenFile"));
  if (!user.token_file.empty() && !fs::exists(user.token_file))
    throw fault("no_token_file", {{"place", at(entry.file, entry.body["tokenFile"])}, {"file", user.token_file}});
  user.certificate = pem(entry, "client-certificate");
  user.key = pem(entry, "client-key");
  if (user.certificate.empty() != user.key.empty()) throw fault("half_a_pair", {{"place", at(entry.file, entry.body)}});
  user.username = text(entry, "username");
  user.password = text(entry, "password");
  user.as_user = text(entry, "as");
  user.as_uid = text(entry, "as-uid");
  for (const auto& group : entry.body["as-groups"]) user.as_groups.push_back(group.as<std::string>());
  for (const auto& extra : entry.body["as-user-extra"])
    user.as_extra.emplace_back(extra.first.as<std::string>(), extra.second.as<std::vector<std::string>>());
  if (entry.body["exec"] && !entry.body["exec"].IsNull()) user.exec = exec_of(entry);
  if (entry.body["auth-provider"])
    throw fault("auth_provider", {{"place", at(entry.file, entry.body["auth-provider"])}});
  return user;
}

cluster_config resolve(const merged& all, const config_options& choose) {
  const auto name = choose.context.empty() ? all.current : choose.context;
  entry context{YAML::Node(YAML::NodeType::Map), all.files};
  if (!name.empty())
    context = pick(all.contexts, name, "context", all.files);
  else if (choose.cluster.empty())
    throw fault("no_context", {{"file", all.files}});

  const auto cluster_name = choose.cluster.empty() ? text(context, "cluster") : choose.cluster;
  const auto user_name = choose.user.empty() ? text(context, "user") : choose.user;
  const auto& cluster = pick(all.clusters, cluster_name, "cluster", all.files);

  cluster_config config;
  config.context = name;
  config.source = cluster.file;
  config.server = text(cluster, "server");
  if (!config.server.starts_with("https://") || config.server.size() < 9)
    throw fault("server",
                {{"place", at(cluster.file, cluster.body)}, {"name", cluster_name}, {"value", config.server}});
  while (config.server.ends_with('/')) config.server.pop_back();
  config.ca = pem(cluster, "certificate-authority");
  config.tls_server_name = text(cluster, "tls-server-name");
  config.insecure = truth(cluster, "insecure-skip-tls-verify");
  config.proxy_url = text(cluster, "proxy-url");
  if (config.insecure && !config.ca.empty())
    throw fault("insecure_with_ca", {{"place", at(cluster.file, cluster.body)}});
  if (!user_name.empty()) config.user = user_of(pick(all.users, user_name, "user", all.files));
  if (auto ns = choose.ns.empty() ? text(context, "namespace") : choose.ns; !ns.empty()) config.ns = std::move(ns);
  return config;
}

}  // namespace

std::expected<cluster_config, text::phrase> kubeconfig_in_words(std::span<const std::string> files,
                                                                const config_options& choose) try {
  merged all;
  std::string missing;
  for (const auto& file : files) {
    if (fs::exists(file))
      read(file, all);
    else
      missing += (missing.empty() ? "" : ", ") + file;
  }
  if (all.files.empty()) throw fault(missing.empty() ? "no_files" : "absent", {{"list", missing}});
  return resolve(all, choose);
} catch (const fault& wrong) {
  return std::unexpected(wrong.words);
} catch (const YAML::Exception& wrong) {
  const auto line = wrong.mark.is_null() ? "" : " line " + std::to_string(wrong.mark.line + 1);
  return std::unexpected(
      text::phrase{"kubeconfig.of_library", {{"place", "kubeconfig" + line}, {"problem", words_of_library(wrong)}}});
} catch (const fs::filesystem_error& wrong) {
  return std::unexpected(text::phrase{
      "kubeconfig.of_system",
      {{"file", wrong.path1().string()}, {"problem", text::quotation_of(text::phrase(wrong.code().message()))}}});
}

}  // namespace kube
