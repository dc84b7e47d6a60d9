#include "cli/cluster/prometheus.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include "cli/flags/flags.hpp"
#include "kube/curl_transport.hpp"
#include "kube/percent.hpp"
#include "kube/server_address.hpp"
#include "kube/status.hpp"
#include "text/text.hpp"

namespace cli {

void add_prometheus_options(CLI::App& verb, prometheus_options& options, const std::string& purpose) {
  add_option(verb, "--prometheus-url", options.url, purpose)->type_name("URL");
  add_option(verb, "--prometheus-token-file", options.token_file, "Bearer token for Prometheus")->type_name("FILE");
  add_option(verb, "--prometheus-username-file", options.username_file, "User name for Prometheus, instead of a token")
      ->type_name("FILE");
  add_option(verb, "--prometheus-password-file", options.password_file, "Password of that user")->type_name("FILE");
  add_option(verb, "--prometheus-ca-file", options.ca_file, "Authorities that Prometheus is trusted by")
      ->type_name("FILE");
}

text::phrase problem_of(const prometheus_options& options) {
  const auto address = kube::address_of(options.url);
  const auto about_url = [&](const char* key) { return text::phrase{key, {{"url", text::shown(options.url, 300)}}}; };
  // It is not repeated: there may be a password in it.
  if (address.substr(0, address.find('/')).contains('@')) return {"usage.prometheus.user"};
  const bool is_http = options.url.starts_with("http://");
  if (!options.url.empty() && !is_http && !options.url.starts_with("https://"))
    return about_url("usage.prometheus.begin");
  if (address.find_first_of("?#") != std::string_view::npos) return about_url("usage.prometheus.query");
  const bool has_host = !address.empty() && address.front() != '/' && address.front() != ':';
  const bool is_plain = std::ranges::all_of(address, [](unsigned char c) { return c > ' ' && c != 0x7f; });
  if (!options.url.empty() && !(has_host && is_plain)) return about_url("usage.prometheus.host");
  if (is_http && !options.token_file.empty()) return {"usage.prometheus.token"};
  if (options.username_file.empty() != options.password_file.empty())
    return {"usage.together", {{"name", "--prometheus-username-file"}, {"value", "--prometheus-password-file"}}};
  if (is_http && !options.password_file.empty()) return {"usage.prometheus.password"};
  if (!options.token_file.empty() && !options.password_file.empty()) return {"usage.prometheus.either"};
  return {};
}

std::unique_ptr<kube::transport> connection_to(boost::asio::any_io_executor executor, const prometheus_options& options,
                                               std::size_t most_bytes) {
  kube::cluster_config config;
  config.server = options.url;
  while (config.server.ends_with("/")) config.server.pop_back();
  config.takes_http = true;
  config.ca.path = options.ca_file;
  config.user.token_file = options.token_file;
  config.user.username_file = options.username_file;
  config.user.password_file = options.password_file;
  config.source = "--prometheus-url";
  kube::transport_options limits;
  limits.unary_deadline = std::chrono::seconds(15);
  limits.body_limit = most_bytes;
  return std::make_unique<kube::curl_transport>(std::move(executor), std::move(config), limits);
}

kube::task<std::string> ask_prometheus(kube::transport& prometheus, std::string target) {
  kube::request question;
  question.target = std::move(target);
  auto answer = co_await prometheus.send(std::move(question));
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  if (!kube::succeeded(answer->status))
    co_return std::unexpected(
        kube::error{kube::errc::server, answer->status, "status " + std::to_string(answer->status), std::nullopt});
  co_return std::move(answer->body);
}

kube::result<std::string> answer_of(const prometheus_options& options, const std::string& target) {
  boost::asio::io_context loop(1);
  const auto connection = connection_to(loop.get_executor(), options);
  kube::result<std::string> out;
  std::exception_ptr thrown;
  boost::asio::co_spawn(loop, ask_prometheus(*connection, target), [&](std::exception_ptr bug, auto result) {
    thrown = bug;
    out = std::move(result);
    loop.stop();
  });
  loop.run();
  if (thrown) std::rethrow_exception(thrown);
  if (!out) out.error().message = "Prometheus " + options.url + ": " + out.error().message;
  return out;
}

std::string instant_target(std::string_view query) {
  std::string out = "/api/v1/query?query=";
  kube::append_percent_encoded(out, query);
  return out;
}

nlohmann::json answer_in(std::string_view body) {
  static constexpr int deepest = 16;  // its own are 6
  int depth = 0;
  bool is_text = false;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (is_text && c == '\\') ++i;
    if (c == '"') is_text = !is_text;
    if (!is_text && (c == '[' || c == '{') && ++depth > deepest) return nlohmann::json::value_t::discarded;
    if (!is_text && (c == ']' || c == '}')) --depth;
  }
  return nlohmann::json::parse(body, nullptr, false);
}

const nlohmann::json* series_in(const nlohmann::json& answer) {
  const auto status = answer.is_object() ? answer.find("status") : answer.end();
  if (!answer.is_object() || status == answer.end() || *status != "success") return nullptr;
  const auto data = answer.find("data");
  if (data == answer.end() || !data->is_object()) return nullptr;
  const auto result = data->find("result");
  return result != data->end() && result->is_array() ? &*result : nullptr;
}

std::string label_of(const nlohmann::json& series, const char* name) {
  if (!series.is_object()) return {};
  const auto labels = series.find("metric");
  if (labels == series.end() || !labels->is_object()) return {};
  const auto label = labels->find(name);
  return label != labels->end() && label->is_string() ? label->get<std::string>() : std::string();
}

}  // namespace cli
