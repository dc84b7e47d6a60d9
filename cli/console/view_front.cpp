#include "cli/console/view_front.hpp"

#include "controller/log.hpp"
#include "controller/sleep.hpp"
#include "kube/config.hpp"
#include "kube/projections/from_json.hpp"
#include "kube/request.hpp"
#include "kube/status.hpp"

namespace cli::console {
namespace {

controller::http_server_options listening(const view_front_options& options) {
  controller::http_server_options out("views", options.address);
  out.body_limit = 1024;
  out.header_limit = 64u << 10;  // groups of a person, and pods of `simulate`
  out.tls.emplace();
  return out;
}

kube::result<std::string> read_named(std::string_view flag, const std::string& file) {
  auto text = kube::read_file(file);
  if (!text) text.error().message = std::string(flag) + ": " + text.error().message;
  return text;
}

const kube::object_key authentication{"kube-system", "extension-apiserver-authentication"};

}  // namespace

view_front::view_front(controller::loop& loop, controller::http_server_metrics& serving, view_front_options options,
                       view_api::dependencies dependencies)
    : options_(std::move(options)),
      api_(dependencies.api),
      views_(std::move(dependencies)),
      server_(loop, serving, listening(options_)) {
  views_.join(server_);
}

void view_front::join(controller::manager& manager) {
  manager.add_server(server_);
  manager.add_always("views", [this] { return keep_fresh(); });
}

void view_front::report(const std::string& problem) {
  if (!problem.empty() && problem != reported_)
    controller::log::warn("the aggregated API answers no one", {{"error", problem}});
  reported_ = problem;
}

kube::task<void> view_front::look() {
  const auto answer = co_await api_.used_transport().send(kube::get_request(kube::config_map::of(), authentication));
  if (!answer) co_return std::unexpected(answer.error());
  if (answer->status != 200) co_return std::unexpected(kube::error_of("get configmap " + authentication.name, *answer));
  const auto map = kube::from_json<kube::config_map>(answer->body);
  if (!map) co_return std::unexpected(map.error());
  const auto trust = trust_in(*map);
  if (!trust)
    co_return std::unexpected(
        kube::error{kube::errc::config, 0, "ConfigMap " + authentication.to_string() + ": " + trust.error(), {}});
  auto certificate = read_named("--view-cert-file", options_.certificate_file);
  if (!certificate) co_return std::unexpected(certificate.error());
  auto key = read_named("--view-key-file", options_.key_file);
  if (!key) co_return std::unexpected(key.error());
  const controller::given_certificate material{{std::move(*certificate), std::move(*key)}, trust->authorities};
  if (!(material == current_)) {
    const auto taken = server_.show(material);
    if (!taken) co_return taken;
    current_ = material;
  }
  if (!(*trust == trusted_)) views_.trust(trusted_ = *trust);
  co_return kube::result<void>();
}

kube::task<void> view_front::keep_fresh() {
  for (;;) {
    const auto seen = co_await look();
    report(seen ? std::string() : seen.error().message);
    // Until the first certificate someone waits for it.
    const auto wait = current_.pair.certificate.empty() ? options_.period / 10 : options_.period;
    const bool slept = co_await controller::sleep_for(wait);
    if (!slept) co_return kube::result<void>();
  }
}

}  // namespace cli::console
