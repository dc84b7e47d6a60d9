// The counterpart of bench/peers/webhook: our admission webhook on a port, with the rules of a file and no cluster. The
// product's own path from the socket to the answer; only where rules come from is another. Prints `serving <port>`.
//
//   webhook_server --certificate FILE --key FILE --rules FILE     (rules: the spec of a ResourceRules object)

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "controller/http_server.hpp"
#include "controller/log.hpp"
#include "controller/loop.hpp"
#include "controller/metrics.hpp"
#include "kube/config.hpp"
#include "reconcilers/admission/admission.hpp"
#include "reconcilers/declarations/compiled.hpp"

int main(int count, char** arguments) {
  CLI::App app("Our admission webhook for the bench");
  controller::certificate_files files;
  std::string rules_file;
  app.add_option("--certificate", files.certificate)->required();
  app.add_option("--key", files.key)->required();
  app.add_option("--rules", rules_file)->required();
  CLI11_PARSE(app, count, arguments);

  const auto text = kube::read_file(rules_file);
  if (!text) {
    std::cerr << text.error().message << "\n";
    return 1;
  }
  const auto rules = reconcilers::declarations::rules_of(nlohmann::json::parse(*text, nullptr, false));
  controller::log::configure(controller::log::format::text, controller::log::level::warn);
  controller::registry metrics;
  controller::loop loop(metrics);
  controller::http_server_metrics serving(metrics);
  controller::http_server_options options;
  options.name = "webhook";
  options.address = "127.0.0.1:0";
  options.tls = files;
  controller::http_server server(loop, serving, options);
  const reconcilers::pod_admission pod_admission{rules, reconcilers::enforcement::deny, "quartermaster"};
  server.route(
      "POST", std::string(reconcilers::mutate_pods_route.path),
      [&pod_admission](const controller::http_request& http_request) {
        auto response = reconcilers::mutate_pod(http_request.body, pod_admission);
        return controller::http_response{response.status, std::move(response.body), "application/json"};
      },
      reconcilers::max_pod_review);
  if (const auto started = server.start(); !started) {
    std::cerr << started.error().message << "\n";
    return 1;
  }
  std::printf("serving %d\n", server.port());
  std::fflush(stdout);
  loop.stop_on_signals([&] { loop.quit(); });
  loop.run();
  return 0;
}
