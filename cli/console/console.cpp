#include "cli/console/console.hpp"

#include <openssl/rand.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "api/gpu_quota.hpp"
#include "cli/cluster/operator_lease.hpp"
#include "cli/cluster/refusal.hpp"
#include "cli/console/access.hpp"
#include "cli/console/leadership.hpp"
#include "cli/console/service.hpp"
#include "cli/console/shares.hpp"
#include "cli/console/view_front.hpp"
#include "cli/console/walked_view.hpp"
#include "cli/flags/flags.hpp"
#include "cli/flags/usage.hpp"
#include "cli/output/answer.hpp"
#include "cli/verbs.hpp"
#include "controller/address.hpp"
#include "controller/health.hpp"
#include "controller/http_server.hpp"
#include "controller/log.hpp"
#include "controller/loop.hpp"
#include "controller/manager.hpp"
#include "controller/metrics_access.hpp"
#include "controller/sleep.hpp"
#include "controller/teardown.hpp"
#include "kube/client.hpp"
#include "kube/config_fault.hpp"
#include "kube/curl_transport.hpp"
#include "text/resource_name.hpp"
#include "text/text.hpp"

namespace cli::console {
namespace {

namespace log = controller::log;

constexpr std::chrono::seconds contact_period{5};
/// Bytes of an answer. The use of 40,000 cards has 5 MiB.
constexpr std::size_t most_of_prometheus = 8u << 20;
constexpr std::string_view verb_example = R"(Examples:
  $ quartermaster console
  The console: http://127.0.0.1:8888/console/#token=...
  $ quartermaster console --prometheus-url https://prometheus.example:9090 --prometheus-token-file token

On a loopback address the console acts as the user of the kubeconfig, and the printed link signs in. On any
other address people sign in with their own tokens and see what their rights allow.
Exit codes: 0 stopped by a signal, 1 failed, 2 wrong usage.)";

/// 32 random bytes, as hexadecimal digits.
std::string random_token() {
  std::array<unsigned char, 32> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) return {};
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (const auto byte : bytes) {
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

controller::http_server_options front(const console_options& options) {
  controller::http_server_options out("console", options.listen);
  out.body_limit = 1024;
  out.header_limit = 64u << 10;  // the token of an identity provider, and a proxy's cookies that have it once more
  out.body_deadline = std::chrono::seconds(10);
  out.idle_deadline = std::chrono::seconds(60);
  if (!options.tls_certificate_file.empty())
    out.tls = controller::certificate_files{options.tls_certificate_file, options.tls_key_file, {}};
  return out;
}

controller::http_server_options back(const console_options& options) {
  controller::http_server_options out("metrics", options.metrics_address);
  if (options.metrics_authentication) out.tls.emplace();
  return out;
}

kube::transport_options short_answers() {
  kube::transport_options out;
  out.unary_deadline = std::chrono::seconds(15);
  out.body_limit = 16u << 20;
  return out;
}

kube::watch_settings old_quota_watch() {
  kube::watch_settings out;
  out.ns = api::gpu_quota_namespace;
  out.field_selector = "metadata.name=" + std::string(api::gpu_quota_name);
  return out;
}

kube::watch_settings unbound_watch() {
  kube::watch_settings out;
  out.field_selector = "spec.nodeName=";
  return out;
}

/// Without the port.
std::string listening_address(const console_options& options) {
  const auto endpoint = controller::parse_address(options.listen);
  return endpoint ? endpoint->address().to_string() : std::string();
}

/// Everything that lives as long as the console, in the order it is made.
class console_program {
 public:
  console_program(const console_options& options, kube::cluster_config cluster)
      : options_(options),
        link_token_(signs_in_by_link(options) ? random_token() : std::string()),
        wire_(loop_.executor(), std::move(cluster), short_answers()),
        server_(loop_, serving_, front(options)),
        metrics_server_(loop_, serving_, back(options)) {
    known_.finish();
    known_.leader.ns = options.ns;
    if (!options.prometheus.url.empty())
      prometheus_ = connection_to(loop_.executor(), options.prometheus, most_of_prometheus);
    access_settings access_settings;
    access_settings.link_token = link_token_;
    access_settings.audience_only = options.audience_only;
    access_ = std::make_unique<access>(client_, access_settings, [this] { return namespaces_of(known_); });
    service_settings service_settings;
    service_settings.hosts = options.hosts;
    service_settings.frame_ancestors = options.frame_ancestors;
    service_settings.by_link = signs_in_by_link(options);
    service_settings.tls = !options.tls_certificate_file.empty();
    if (signs_in_by_link(options)) service_settings.hosts.push_back(listening_address(options));
    service_ = std::make_unique<service>(
        service::dependencies{.known = known_,
                              .doorkeeper = *access_,
                              .reading = seen_,
                              .prometheus = prometheus_.get(),
                              .unbound = &unbound_,
                              .not_ready = [this] { return text::phrase{is_read() ? "" : "console.not_read_yet"}; },
                              .silence = [this] { return health_.silence(); },
                              .leaderless = [this] { return leadership_.leaderless(controller::boot_now()); }},
        std::move(service_settings));
    service_->join(server_);
    manager_.add_server(server_);
    if (!options.metrics_address.empty()) {
      metrics_access_ = add_metrics_route(metrics_server_, metrics_, options.metrics_authentication ? &seen_ : nullptr);
      add_health_routes(metrics_server_, health_);
      manager_.add_server(metrics_server_);
    }
    add_views();
    cache(known_.policies);
    cache(known_.cards);
    cache(known_.nodes);
    cache(known_.pods);
    controller::reflector_options unbound;
    unbound.name = "unbound_pods";
    manager_.add_cache(seen_, unbound_watch(), unbound_, std::move(unbound));
    cache(known_.rules);
    cache(known_.quotas);
    health_.expect_contact_every(contact_period);
    manager_.add_always("contact", [this] { return keep_contact(); });
    manager_.set_leadership(controller::always_leading());
  }

  int run() {
    loop_.stop_on_signals([this] { managing_ ? manager_.stop() : loop_.quit(); });
    loop_.spawn_essential("main", main());
    loop_.run();
    controller::destroy_waiting(loop_.context());
    log::flush();
    return rc_;
  }

 private:
  boost::asio::awaitable<void> main() {
    const auto read = co_await read_old_quotas();
    if (!read) co_return fail(read.error().message);
    managing_ = true;
    loop_.spawn("link", print_link());
    const auto served = co_await manager_.run();
    if (!served) fail(served.error().message);
    loop_.quit();
  }
  void fail(const std::string& reason) {
    std::cerr << "quartermaster: " << reason << "\n";
    rc_ = 1;
    loop_.quit();
  }
  void add_views() {
    if (options_.view_address.empty()) return;
    views_ = std::make_unique<view_front>(
        loop_, serving_,
        view_front_options{options_.view_address, options_.view_certificate_file, options_.view_key_file},
        view_api::dependencies{.look = [this]() -> picture& { return known_; },
                               .api = client_,
                               .not_ready = [this] { return text::phrase{is_read() ? "" : "console.not_read_yet"}; }});
    views_->join(manager_);
  }
  template <class T>
  void cache(controller::store<T>& store) {
    manager_.add_cache(seen_, kube::watch_settings(), store);
  }
  /// Few people may read kube-system: without that right such limits do not count.
  kube::task<void> read_old_quotas() {
    kube::list_options options;
    options.ns = api::gpu_quota_namespace;
    options.field_selector = "metadata.name=" + std::string(api::gpu_quota_name);
    const std::function<void(kube::config_map)> nothing = [](const kube::config_map&) {};
    const auto listed = co_await list_each<kube::config_map>(seen_, options, nothing);
    if (!listed && listed.error().code != kube::errc::forbidden) co_return std::unexpected(listed.error());
    if (listed) {
      manager_.add_cache(seen_, old_quota_watch(), known_.old_quotas);
    } else {
      known_.old_quotas.begin();
      known_.old_quotas.commit();
    }
    co_return kube::result<void>();
  }
  bool is_read() const {
    return known_.policies.synced() && known_.cards.synced() && known_.nodes.synced() && known_.pods.synced() &&
           known_.rules.synced() && known_.quotas.synced() && known_.old_quotas.synced() && unbound_.synced();
  }
  /// Who may not list leases does not know whether an operator leads, and the page says nothing of it.
  kube::task<void> look_at_lease() {
    auto lease = co_await find_lease(seen_, options_.ns);
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    known_.taken = std::chrono::system_clock::now();
    known_.unseen.erase(part::lease);
    if (lease) {
      known_.leader.lease = lease->value_or(kube::lease());  // one that is not there is held by no one
      if (*lease) known_.leader.ns = (*lease)->key.ns;
      leadership_.see(std::move(*lease), controller::boot_now(),
                      std::chrono::duration_cast<std::chrono::microseconds>(now).count());
      known_.leader.renewed = !leadership_.leaderless(controller::boot_now());
    } else {
      known_.unseen.emplace(part::lease, text::phrase{lease.error().message});
      leadership_.lose(controller::boot_now());
    }
    auto problem = lease || lease.error().code != kube::errc::forbidden ? std::string() : lease.error().message;
    if (!problem.empty() && problem != lease_problem_)
      log::warn("the lease cannot be read: the page does not say whether an operator leads", {{"error", problem}});
    lease_problem_ = std::move(problem);
    co_return kube::result<void>();
  }
  /// What `verify` reads besides what is watched. Where an answer is missing the last one stays.
  kube::task<void> look_around() {
    picture seen;
    const picture_request request{
        {}, {part::types, part::device_labels, part::daemon_sets, part::view_api}, known_.leader.ns};
    const auto done = co_await read_picture(seen_, request, seen);
    if (!done) co_return std::unexpected(done.error());
    known_.missing_types = std::move(seen.missing_types);
    known_.declared = std::move(seen.declared);
    known_.daemon_sets = std::move(seen.daemon_sets);
    known_.view_api_problem = std::move(seen.view_api_problem);
    if (known_.leader.ns.empty()) known_.leader.ns = seen.leader.ns;
    for (const auto part : {part::types, part::device_labels, part::daemon_sets}) {
      known_.unseen.erase(part);
      if (const auto match = seen.unseen.find(part); match != seen.unseen.end()) known_.unseen.insert(*match);
    }
    co_await take_in_refused_declarations(seen_, known_);
    co_return kube::result<void>();
  }
  /// Watches alone do not show that the API server still answers.
  kube::task<void> keep_contact() {
    for (;;) {
      co_await client_.raw("/version");
      co_await look_at_lease();
      co_await look_around();
      const bool slept = co_await controller::sleep_for(contact_period);
      if (!slept) co_return kube::result<void>();
    }
  }
  boost::asio::awaitable<void> print_link() {
    bool slept = true;
    while (slept && !is_read()) slept = co_await controller::sleep_for(std::chrono::milliseconds(50));
    if (!slept || link_token_.empty()) co_return;
    std::cout << "The console: " << page_url(options_, server_.port()) << "#token=" << link_token_ << std::endl;
  }

  const console_options options_;
  const std::string link_token_;  ///< empty: people sign in with their own tokens
  int rc_ = 0;
  bool managing_ = false;
  controller::registry metrics_;
  controller::loop loop_{metrics_};
  controller::health health_{metrics_};
  kube::curl_transport wire_;
  controller::observed_transport seen_{wire_, health_, metrics_};
  kube::client client_{seen_};
  std::unique_ptr<kube::transport> prometheus_;
  picture known_;
  unbound_pods unbound_;
  leadership leadership_{contact_period};
  std::string lease_problem_;
  std::unique_ptr<access> access_;
  std::unique_ptr<service> service_;
  controller::http_server_metrics serving_{metrics_};
  controller::http_server server_, metrics_server_;
  std::unique_ptr<view_front> views_;                           ///< null without --view-address
  std::unique_ptr<controller::metrics_access> metrics_access_;  ///< null without --metrics-authentication
  controller::manager manager_{loop_, health_, metrics_};
};

}  // namespace

namespace {

/// "https://name" or "https://name:port", also of http.
bool is_origin(std::string_view text) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (!text.starts_with(scheme)) continue;
    const auto host = text.substr(scheme.size());
    const auto colon = std::min(host.find(':'), host.size());
    const auto port = host.substr(std::min(colon + 1, host.size()));
    const bool has_port = colon < host.size();
    return is_name(host.substr(0, colon)) &&
           (!has_port || (!port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == port.npos));
  }
  return false;
}

/// A file that is not there yet is waited for: a certificate may be made later. One whose folder is not there never
/// comes.
text::phrase problem_of_file(const char* flag, const std::string& path, std::string_view begin) {
  const text::phrase_argument name{"name", flag}, value{"value", text::shown(path, 4096)};
  std::error_code ignored;
  const auto folder = std::filesystem::path(path).parent_path();
  if (!std::filesystem::is_directory(folder.empty() ? "." : folder, ignored))
    return {"usage.console.no_folder", {name, value}};
  if (!std::filesystem::exists(path, ignored)) return {};
  const auto content = kube::read_file(path);
  if (!content) return {"usage.console.unreadable", {name, {"problem", content.error().message}}};
  if (!content->contains(begin)) return {"usage.console.not_pem", {name, value, {"begin", std::string(begin)}}};
  return {};
}

/// Someone else serves there already, or it is no address of this machine.
text::phrase problem_of_address(const char* flag, const std::string& address) {
  const auto endpoint = controller::parse_address(address);
  if (address.empty() || !endpoint || endpoint->port() == 0) return {};
  boost::asio::io_context loop(1);
  boost::asio::ip::tcp::acceptor acceptor(loop);
  boost::system::error_code failed;
  acceptor.open(endpoint->protocol(), failed);
  if (failed) return {};  // a kernel without IPv6
  acceptor.set_option(boost::asio::ip::tcp::acceptor::reuse_address(true), failed);
  acceptor.bind(*endpoint, failed);
  if (!failed) acceptor.listen(1, failed);
  if (!failed) return {};
  return {"usage.console.address", {{"name", flag}, {"value", text::shown(address)}, {"problem", failed.message()}}};
}

}  // namespace

text::phrase address_problem_of(const console_options& options) {
  for (const auto& [flag, value] :
       {std::pair("--listen", &options.listen), std::pair("--metrics-address", &options.metrics_address),
        std::pair("--view-address", &options.view_address)})
    if (auto problem = problem_of_address(flag, *value); !problem.empty()) return problem;
  return {};
}

bool signs_in_by_link(const console_options& options) {
  const auto endpoint = controller::parse_address(options.listen);
  return endpoint && endpoint->address().is_loopback();
}

std::string page_url(const console_options& options, unsigned short port) {
  const auto address = listening_address(options);
  const auto host = address.contains(':') ? "[" + address + "]" : address;
  return (options.tls_certificate_file.empty() ? "http://" : "https://") + host + ":" + std::to_string(port) +
         "/console/";
}

text::phrase problem_of(const console_options& options) {
  for (const auto& [flag, value] :
       {std::pair("--listen", &options.listen), std::pair("--metrics-address", &options.metrics_address),
        std::pair("--view-address", &options.view_address)}) {
    const bool is_absent = value->empty() && value != &options.listen;
    if (!is_absent && !controller::parse_address(*value))
      return {"usage.not_an_address", {{"name", flag}, {"value", text::shown(*value)}}};
  }
  const bool has_pair = !options.view_certificate_file.empty() && !options.view_key_file.empty();
  const bool has_file = !options.view_certificate_file.empty() || !options.view_key_file.empty();
  if (options.view_address.empty() ? has_file : !has_pair)
    return {"usage.together", {{"name", "--view-address, --view-cert-file"}, {"value", "--view-key-file"}}};
  if (has_pair) {
    if (auto problem =
            problem_of_file("--view-cert-file", options.view_certificate_file, "-----BEGIN CERTIFICATE-----");
        !problem.empty())
      return problem;
    if (auto problem = problem_of_file("--view-key-file", options.view_key_file, "PRIVATE KEY-----"); !problem.empty())
      return problem;
  }
  if (options.tls_certificate_file.empty() != options.tls_key_file.empty())
    return {"usage.together", {{"name", "--tls-cert-file"}, {"value", "--tls-key-file"}}};
  if (options.audience_only && signs_in_by_link(options)) return {"usage.console.audience"};
  if (auto problem = problem_of(options.prometheus); !problem.empty()) return problem;
  for (const auto& name : options.hosts)
    if (!is_name(name)) return {"usage.console.host", {{"value", text::shown(name)}}};
  for (const auto& origin : options.frame_ancestors)
    if (!is_origin(origin)) return {"usage.console.origin", {{"value", text::shown(origin)}}};
  return {};
}

int run_console(console_options options) {
  const auto locale = language_of_refusal(options.language);
  if (const auto problem = problem_of(options); !problem.empty())
    return failed(problem, locale, std::cerr, problem.key == "usage.console.unreadable" ? 1 : 2);
  log::level level = signs_in_by_link(options) ? log::level::warn : log::level::info;
  log::parse_level(options.log_level, level);
  log::configure(options.log_format == "json" ? log::format::json : log::format::text, level);
  if (const auto problem = address_problem_of(options); !problem.empty()) return failed(problem, locale, std::cerr);
  kube::config_options config_options;
  config_options.kubeconfig = options.cluster.kubeconfig;
  config_options.context = options.cluster.context;
  auto cluster = kube::config_in_words(config_options);
  if (!cluster) return failed(cluster.error(), locale, std::cerr);
  return std::make_unique<console_program>(options, std::move(*cluster))->run();
}

}  // namespace cli::console

namespace cli {

void add_console(CLI::App& app, int& rc) {
  auto* verb = add_verb(app, "console", "Serve the console: a page that shows the cluster's cards, read only");
  auto options = std::make_shared<console::console_options>();
  add_option(*verb, "--listen", options->listen, "Address of the page")->capture_default_str()->type_name("HOST:PORT");
  add_option(*verb, "--host", options->hosts, "A name by which people reach the page, besides localhost; repeatable")
      ->type_name("NAME");
  add_option(*verb, "--frame-ancestor", options->frame_ancestors,
             "Origin of a page that may show the console in a frame; repeatable, none by default")
      ->type_name("URL");
  add_option(*verb, "--tls-cert-file", options->tls_certificate_file, "Serve HTTPS with this certificate (PEM)")
      ->type_name("FILE");
  add_option(*verb, "--tls-key-file", options->tls_key_file, "Its key (PEM)")->type_name("FILE");
  add_option(*verb, "--view-address", options->view_address,
             "Address of the aggregated API that kube-apiserver asks (APIService); none by default")
      ->type_name("HOST:PORT");
  add_option(*verb, "--view-cert-file", options->view_certificate_file, "Its certificate (PEM)")->type_name("FILE");
  add_option(*verb, "--view-key-file", options->view_key_file, "The key of that (PEM)")->type_name("FILE");
  add_flag(
      *verb, "--audience-only", options->audience_only,
      "Take only tokens for the audience " + std::string(console::audience) + ", and none for the API server itself");
  add_prometheus_options(*verb, options->prometheus, "Where history comes from; without it there is none");
  add_namespace_option(*verb, options->ns, "The operator's; without it where the lease quartermaster is");
  add_option(*verb, "--metrics-address", options->metrics_address,
             "Address of /metrics, /healthz and /readyz; none by default")
      ->type_name("HOST:PORT");
  add_metrics_authentication(*verb, options->metrics_authentication);
  add_option(*verb, "--log-format", options->log_format, "text or json")
      ->check(choice({"text", "json"}))
      ->capture_default_str();
  add_option(*verb, "--log-level", options->log_level,
             "debug, info, warn or error; without it warn on a loopback address, else info")
      ->check(choice({"debug", "info", "warn", "error"}));
  add_refusal_language(*verb, options->language);
  add_kubeconfig_options(*verb, options->cluster);
  verb->footer(std::string(console::verb_example));
  verb->callback([options, &rc] { rc = console::run_console(*options); });
}

}  // namespace cli
