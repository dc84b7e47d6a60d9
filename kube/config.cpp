#include "kube/config.hpp"

#include <openssl/evp.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "kube/config_fault.hpp"
#include "text/input_file.hpp"
#include "text/quotation.hpp"

namespace kube {

namespace fs = std::filesystem;

namespace {

bool readable(const std::string& path) { return ::access(path.c_str(), R_OK) == 0; }

text::phrase words_of_system(int reason) {
  return text::quotation_of(text::phrase(std::string(std::strerror(reason))));
}

}  // namespace

std::string without_line_end(std::string text) {
  while (!text.empty() && std::strchr(" \t\r\n", text.back())) text.pop_back();
  return text;
}

environment environment::of_process() {
  environment env;
  env.variable = [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value && *value ? std::optional<std::string>(value) : std::nullopt;
  };
  return env;
}

std::optional<std::string> base64_decode(std::string_view text) {
  std::string packed;
  packed.reserve(text.size());
  for (const char c : text)
    if (!std::strchr(" \t\r\n", c)) packed.push_back(c);
  if (packed.empty() || packed.size() % 4 != 0) return std::nullopt;
  std::string bytes(packed.size() / 4 * 3, '\0');
  const int size =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                      reinterpret_cast<const unsigned char*>(packed.data()), static_cast<int>(packed.size()));
  if (size < 0) return std::nullopt;
  const std::size_t padding = packed.ends_with("==") ? 2 : packed.ends_with('=') ? 1 : 0;
  bytes.resize(static_cast<std::size_t>(size) - padding);
  return bytes;
}

std::string base64_encode(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4, '\0');
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), reinterpret_cast<const unsigned char*>(bytes.data()),
                  static_cast<int>(bytes.size()));
  return text;
}

/// A kubeconfig of a thousand clusters has a few.
constexpr std::size_t max_file_bytes = 8U << 20U;

std::expected<std::string, text::phrase> bytes_of_file(const std::string& path) {
  const auto unreadable = [&](int reason) {
    return std::unexpected(text::phrase{"kubeconfig.file", {{"file", path}, {"problem", words_of_system(reason)}}});
  };
  if (const auto wrong = text::fault_of_input(path); !wrong.empty())
    return std::unexpected(text::phrase{"kubeconfig.file", {{"file", path}, {"problem", text::phrase(wrong)}}});
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (stream && fs::is_directory(path)) errno = EISDIR;
  if (!stream || errno == EISDIR) return unreadable(errno ? errno : EIO);
  std::string text;
  char part[16 << 10];
  while (stream.read(part, sizeof part), stream.gcount() > 0) {
    text.append(part, static_cast<std::size_t>(stream.gcount()));
    if (text.size() > max_file_bytes)
      return std::unexpected(
          text::phrase{"kubeconfig.large_file", {{"file", path}, {"size", std::to_string(max_file_bytes >> 20)}}});
  }
  if (stream.bad()) return unreadable(errno);
  return text;
}

namespace {

template <class T>
result<T> in_english(std::expected<T, text::phrase> outcome) {
  if (outcome) return std::move(*outcome);
  return config_error(words_of(outcome.error(), text::language::en));
}

std::expected<cluster_config, text::phrase> in_cluster(const environment& env) {
  const auto host = env.variable("KUBERNETES_SERVICE_HOST");
  const auto port = env.variable("KUBERNETES_SERVICE_PORT");
  if (!host || !port) return std::unexpected(text::phrase{"kubeconfig.not_in_cluster"});
  cluster_config config;
  const bool v6 = host->contains(':') && !host->starts_with('[');
  config.server = "https://" + (v6 ? "[" + *host + "]" : *host) + ":" + *port;
  config.user.token_file = env.service_account + "/token";
  config.ca.path = env.service_account + "/ca.crt";
  config.source = "KUBERNETES_SERVICE_HOST of this pod";
  for (const auto* path : {&config.user.token_file, &config.ca.path})
    if (!readable(*path))
      return std::unexpected(
          text::phrase{"kubeconfig.no_account", {{"file", *path}, {"problem", words_of_system(errno)}}});
  if (auto ns = bytes_of_file(env.service_account + "/namespace")) {
    auto name = without_line_end(std::move(*ns));
    if (!name.empty()) config.ns = std::move(name);
  }
  return config;
}

}  // namespace

result<std::string> read_file(const std::string& path) { return in_english(bytes_of_file(path)); }

result<cluster_config> load_in_cluster(const environment& env) { return in_english(in_cluster(env)); }

std::expected<cluster_config, text::phrase> config_in_words(const config_options& options, const environment& env) {
  std::vector<std::string> files;
  if (!options.kubeconfig.empty()) {
    files.push_back(options.kubeconfig);
    return kubeconfig_in_words(files, options);
  }
  if (const auto listed = env.variable("KUBECONFIG")) {
    std::istringstream names(*listed);
    for (std::string name; std::getline(names, name, ':');)
      if (!name.empty()) files.push_back(name);
    return kubeconfig_in_words(files, options);
  }
  if (readable(env.service_account + "/token")) return in_cluster(env);
  const auto home = env.variable("HOME");
  if (!home) return std::unexpected(text::phrase{"kubeconfig.no_home"});
  const auto path = *home + "/.kube/config";
  if (!fs::exists(path)) return std::unexpected(text::phrase{"kubeconfig.no_cluster", {{"file", path}}});
  files.push_back(path);
  return kubeconfig_in_words(files, options);
}

result<cluster_config> load_config(const config_options& options, const environment& env) {
  return in_english(config_in_words(options, env));
}

result<cluster_config> load_kubeconfig(std::span<const std::string> files, const config_options& choose) {
  return in_english(kubeconfig_in_words(files, choose));
}

}  // namespace kube
