// quartermaster agent plugin: the device plugin for whole cards.

#include <sys/un.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "agent/card_plugin.hpp"
#include "cli/agent/agent.hpp"
#include "cli/flags/flags.hpp"
#include "controller/log.hpp"
#include "kube/config.hpp"
#include "text/resource_name.hpp"

namespace cli {
namespace {

namespace log = controller::log;

constexpr std::string_view plugin_examples =
    R"(It offers one device for each card that the agent reports in the AcceleratorNode, and a container gets exactly the cards
that annotation quartermaster.io/placement of its pod names. A pod without a placement does not start, and says why:
  $ kubectl describe pod POD
It needs a kubelet (its folder of device plugins, to write; its pod-resources, to ask) and a runtime with CDI. Next to
another device plugin of the same resource it must not run: the kubelet takes the one that came last.
Module pgpu runs it with spec.modules.pgpu.settings.plugin: quartermaster in the AcceleratorPolicy.)";

struct plugin_flags {
  agent::card_plugin_options plugin;
  cluster_options cluster;
  std::string log_format = "text", log_level = "info";
};

std::string problem_of(const plugin_flags& flags) {
  if (flags.plugin.node.empty()) return "--node-name is required (NODE_NAME in a pod)";
  if (!text::is_dns_subdomain(flags.plugin.node))
    return "--node-name is no name of a Node: lower-case letters, digits, '-' and '.' are allowed";
  if (!text::is_extended_resource(flags.plugin.resource) || !text::is_label_key(flags.plugin.resource))
    return "--resource is no name of a resource: DOMAIN/NAME is";
  for (const auto& [name, path] :
       {std::pair("--plugin-folder", &flags.plugin.plugin_folder),
        std::pair("--pod-resources", &flags.plugin.pod_resources), std::pair("--cdi-folder", &flags.plugin.cdi_folder)})
    if (!path->starts_with('/')) return std::string(name) + " is no absolute path";
  // quartermaster-PID.sock, and the kubelet's own name
  constexpr std::size_t longest = sizeof(sockaddr_un::sun_path) - sizeof "/quartermaster-4194304.sock";
  if (flags.plugin.plugin_folder.size() > longest)
    return "--plugin-folder is too long for a socket in it: at most " + std::to_string(longest) + " bytes";
  if (flags.plugin.pod_resources.size() >= sizeof(sockaddr_un::sun_path))
    return "--pod-resources is longer than a socket's path may be (" +
           std::to_string(sizeof(sockaddr_un::sun_path) - 1) + " bytes)";
  return {};
}

int run_plugin(const plugin_flags& flags) {
  const auto complain = [](const std::string& message, int rc) {
    std::cerr << "quartermaster: " << message << "\n";
    return rc;
  };
  log::level level = log::level::info;
  log::parse_level(flags.log_level, level);
  log::configure(flags.log_format == "json" ? log::format::json : log::format::text, level);
  if (const auto problem = problem_of(flags); !problem.empty()) return complain("agent plugin: " + problem, 2);
  kube::config_options config;
  config.kubeconfig = flags.cluster.kubeconfig;
  config.context = flags.cluster.context;
  auto cluster = kube::load_config(config);
  if (!cluster) return complain(cluster.error().message, 1);
  agent::card_plugin program(flags.plugin, std::move(*cluster));
  const auto done = program.run();
  return done ? 0 : complain(done.error().message, 1);
}

}  // namespace

void add_plugin(CLI::App& agent, int& rc) {
  auto* verb = add_verb(agent, "plugin", "Be the kubelet's device plugin for whole cards: each pod gets its placement");
  auto flags = std::make_shared<plugin_flags>();
  const auto text = [verb](const char* name, std::string& output, const char* help) {
    return add_option(*verb, name, output, help)->capture_default_str();
  };
  text("--node-name", flags->plugin.node, "Name of this node's Node object")->envname("NODE_NAME");
  text("--resource", flags->plugin.resource, "Name of the resource that is offered");
  text("--plugin-folder", flags->plugin.plugin_folder, "The kubelet's folder of device plugins");
  text("--pod-resources", flags->plugin.pod_resources, "The kubelet's socket that says which pod has which device");
  text("--cdi-folder", flags->plugin.cdi_folder, "Where the container runtime looks for CDI files");
  text("--log-format", flags->log_format, "text or json, on stderr")->check(choice({"text", "json"}));
  text("--log-level", flags->log_level, "debug, info, warn or error")
      ->check(choice({"debug", "info", "warn", "error"}));
  add_cluster_options(*verb, flags->cluster);
  verb->footer(std::string(plugin_examples));
  verb->callback([flags, &rc] { rc = run_plugin(*flags); });
}

}  // namespace cli
