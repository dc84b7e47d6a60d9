// kubeconfig files (client-go tools/clientcmd/api/v1/types.go) into a cluster_config. yaml-cpp's own exceptions carry
// the line of a fault up to kubeconfig_in_words, the only function that leaves this file.

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "kube/config_fault.hpp"
#include "text/input_file.hpp"
#include "text/quotation.hpp"
#include "text/text.hpp"
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
  std::string path;  ///< of the file's fields: "users[jane].user"

  std::string field(const char* key) const { return path.empty() ? key : path + "." + key; }
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

/// A value of another form than `name` ("no_list") says.
fault wrong_form(const std::string& name, const std::string& file, const std::string& field, const YAML::Node& value) {
  const auto* form = value.IsSequence() ? "yaml.list"
                     : value.IsMap()    ? "yaml.mapping"
                     : value.IsNull()   ? "yaml.nothing"
                                        : "yaml.single_value";
  return {name, {{"place", at(file, value)}, {"key", text::shown(field, 200)}, {"other", text::phrase(form)}}};
}

/// A scalar, or empty when the key is missing or null.
std::string text(const entry& entry, const char* key) {
  const YAML::Node value = entry.body[key];
  if (!value || value.IsNull()) return {};
  if (!value.IsScalar()) throw wrong_form("no_text", entry.file, entry.field(key), value);
  return value.Scalar();
}

/// Items of a list, which may be missing or null, each with the path of its field.
std::vector<entry> items_of(const entry& parent, const char* key) {
  const YAML::Node list = parent.body[key];
  std::vector<entry> out;
  if (!list || list.IsNull()) return out;
  if (!list.IsSequence()) throw wrong_form("no_list", parent.file, parent.field(key), list);
  for (const auto& item : list)
    out.push_back({item, parent.file, parent.field(key) + "[" + std::to_string(out.size()) + "]"});
  return out;
}

std::vector<std::string> texts(const entry& parent, const char* key) {
  std::vector<std::string> out;
  for (const auto& item : items_of(parent, key)) {
    if (!item.body.IsScalar()) throw wrong_form("no_text", item.file, item.path, item.body);
    out.push_back(item.body.Scalar());
  }
  return out;
}

/// A mapping, or nothing when the key is missing or null.
std::optional<entry> mapping(const entry& parent, const char* key) {
  const YAML::Node value = parent.body[key];
  if (!value || value.IsNull()) return std::nullopt;
  if (!value.IsMap()) throw wrong_form("no_map", parent.file, parent.field(key), value);
  return entry{value, parent.file, parent.field(key)};
}

bool truth(const entry& entry, const char* key) {
  const auto value = text(entry, key);
  if (value.empty() || value == "false") return false;
  if (value == "true") return true;
  throw fault("no_boolean", {{"place", at(entry.file, entry.body[key])},
                             {"key", text::shown(entry.field(key), 200)},
                             {"value", text::shown(value)}});
}

std::string full_path(const entry& entry, std::string path) {
  if (path.empty() || fs::path(path).is_absolute()) return path;
  return (fs::absolute(entry.file).parent_path() / path).lexically_normal().string();
}

/// The path under `key`, of a file that is there and can be read to its end.
std::string named_file(const entry& entry, const char* key, const std::string& absence) {
  const auto path = full_path(entry, text(entry, key));
  if (path.empty()) return path;
  std::vector<text::phrase_argument> place{
      {"place", at(entry.file, entry.body[key])}, {"key", text::shown(entry.field(key), 200)}, {"file", path}};
  if (!fs::exists(path)) throw fault(absence, std::move(place));
  auto problem = fs::is_directory(path) ? std::string("snapshot.folder") : text::fault_of_input(path);
  if (problem.empty()) return path;
  place.emplace_back("problem", text::phrase(std::move(problem)));
  throw fault("wrong_file", std::move(place));
}

pem_source pem(const entry& entry, const std::string& key) {
  pem_source source;
  const auto data_key = key + "-data";
  if (const auto data = text(entry, data_key.c_str()); !data.empty()) {
    const std::vector<text::phrase_argument> place{{"place", at(entry.file, entry.body[data_key])},
                                                   {"key", text::shown(entry.field(data_key.c_str()), 200)}};
    auto decoded = base64_decode(data);
    if (!decoded) throw fault("no_base64", place);
    if (!decoded->contains("-----BEGIN ")) throw fault("no_pem", place);
    source.data = std::move(*decoded);
    return source;
  }
  source.path = named_file(entry, key.c_str(), "no_file");
  return source;
}

/// Items of `clusters`, `users` or `contexts`: {name, <inner>: {...}}. A name that is there already keeps its first
/// value.
void collect(const entry& root, const char* key, const char* inner, entry_map& entries) {
  for (auto& item : items_of(root, key)) {
    const YAML::Node whole = item.body;
    if (!whole.IsMap() || !whole["name"] || !whole["name"].IsScalar())
      throw fault("no_name", {{"place", at(item.file, whole)}, {"key", std::string(key)}});
    const auto name = whole["name"].Scalar();
    item.path = std::string(key) + "[" + name + "]";
    auto body = mapping(item, inner);
    if (!body) body = entry{YAML::Node(YAML::NodeType::Map), item.file, item.field(inner)};
    entries.try_emplace(name, std::move(*body));
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
  const entry whole{root, file, {}};
  collect(whole, "clusters", "cluster", merged.clusters);
  collect(whole, "users", "user", merged.users);
  collect(whole, "contexts", "context", merged.contexts);
  if (merged.current.empty()) merged.current = text(whole, "current-context");
}

const entry& pick(const entry_map& entries, const std::string& name, const char* kind, const std::string& files) {
  if (const auto found = entries.find(name); found != entries.end()) return found->second;
  std::string known;
  for (const auto& [key, unused] : entries) known += (known.empty() ? "" : ", ") + key;
  throw fault(known.empty() ? "none" : "unknown",
              {{"kind", std::string(kind)}, {"name", name}, {"file", files}, {"list", known}});
}

exec_config exec_of(const entry& section) {
  exec_config exec;
  exec.api_version = text(section, "apiVersion");
  if (exec.api_version != "client.authentication.k8s.io/v1" &&
      exec.api_version != "client.authentication.k8s.io/v1beta1")
    throw fault("exec_version", {{"place", at(section.file, section.body)}, {"value", exec.api_version}});
  exec.command = text(section, "command");
  if (exec.command.empty()) throw fault("exec_command", {{"place", at(section.file, section.body)}});
  if (exec.command.contains('/')) exec.command = full_path(section, exec.command);
  exec.args = texts(section, "args");
  for (const auto& variable : items_of(section, "env")) {
    if (!variable.body.IsMap()) throw wrong_form("no_map", variable.file, variable.path, variable.body);
    auto name = text(variable, "name");
    if (name.empty())
      throw fault("no_name", {{"place", at(variable.file, variable.body)}, {"key", section.field("env")}});
    exec.env.emplace_back(std::move(name), text(variable, "value"));
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
  user.token_file = named_file(entry, "tokenFile", "no_token_file");
  user.certificate = pem(entry, "client-certificate");
  user.key = pem(entry, "client-key");
  if (user.certificate.empty() != user.key.empty()) throw fault("half_a_pair", {{"place", at(entry.file, entry.body)}});
  user.username = text(entry, "username");
  user.password = text(entry, "password");
  user.as_user = text(entry, "as");
  user.as_uid = text(entry, "as-uid");
  user.as_groups = texts(entry, "as-groups");
  if (const auto extra = mapping(entry, "as-user-extra"))
    for (const auto& pair : extra->body) {
      const auto key = pair.first.IsScalar() ? pair.first.Scalar() : std::string();
      if (key.empty()) throw wrong_form("no_text", extra->file, extra->path, pair.first);
      user.as_extra.emplace_back(key, texts(*extra, key.c_str()));
    }
  if (const auto section = mapping(entry, "exec")) user.exec = exec_of(*section);
  if (entry.body["auth-provider"])
    throw fault("auth_provider", {{"place", at(entry.file, entry.body["auth-provider"])}});
  return user;
}

cluster_config resolve(const merged& all, const config_options& choose) {
  const auto name = choose.context.empty() ? all.current : choose.context;
  entry context{YAML::Node(YAML::NodeType::Map), all.files, {}};
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
