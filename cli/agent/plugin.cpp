// quartermaster agent plugin: device plugins for whole cards and for shares.

#include <sys/un.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <expected>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
    R"(It offers the cards that the agent reports in the AcceleratorNode, and a container gets exactly the cards that
annotation quartermaster.io/placement of its pod names. A pod without a placement does not start, and says why:
  $ kubectl describe pod POD
Whole cards are one device each. Shares are asked for by the keys of a vocabulary: hundredths of a card, units of memory
in MiB, seats on a card. They are held by the MPS server of the card, which quartermaster agent mps keeps on the node:
  $ quartermaster agent plugin --share nvidia.com/mps-core=cores --share nvidia.com/mps-memory=memory:1024
  $ quartermaster agent plugin --share aliyun.com/gpu-mem=memory:1024 --share aliyun.com/gpu-count=slots:1
It needs a kubelet (its folder of device plugins, to write; its pod-resources, to ask) and a runtime with CDI. Next to
another device plugin of the same resource it must not run: the kubelet takes the one that came last.
Module mps runs it; module pgpu does with spec.modules.pgpu.settings.plugin: quartermaster in the AcceleratorPolicy.)";
constexpr std::string_view whole_cards = "nvidia.com/gpu", mps_folder = "/run/quartermaster/mps";

struct plugin_flags {
  agent::card_plugin_options plugin;
  std::vector<std::string> shares;
  cluster_options cluster;
  std::string log_format = "text", log_level = "info";
};

bool is_resource(const std::string& name) { return text::is_extended_resource(name) && text::is_label_key(name); }

/// "nvidia.com/mps-memory=memory:1024".
std::optional<agent::allocation::offered_resource> share_in(std::string_view text) {
  using enum agent::allocation::device_unit;
  const auto middle = text.find('=');
  if (middle == std::string_view::npos) return {};
  agent::allocation::offered_resource out{.name = std::string(text.substr(0, middle)), .unit = core};
  const auto meaning = text.substr(middle + 1);
  const auto colon = std::min(meaning.find(':'), meaning.size());
  const auto unit = meaning.substr(0, colon);
  int size = 0;
  if (colon < meaning.size()) {
    const auto digits = meaning.substr(colon + 1);
    const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
    if (failed != std::errc() || end != digits.data() + digits.size() || size < 1 || size > 1 << 20) return {};
  }
  if (unit == "memory") out.unit = memory, out.unit_mib = size;
  if (unit == "slots") out.unit = slot, out.per_card = size;
  const bool has_size = size > 0, is_known = unit == "cores" || out.unit != core;
  return is_known && has_size == (out.unit != core) && is_resource(out.name) ? std::optional(out) : std::nullopt;
}

/// The keys of the vocabulary; an error is one line.
std::expected<std::vector<agent::allocation::offered_resource>, std::string> shares_in(
    const std::vector<std::string>& texts) {
  std::vector<agent::allocation::offered_resource> out;
  for (const auto& text : texts) {
    auto share = share_in(text);
    if (!share) return std::unexpected("--share is NAME=cores, NAME=memory:MIB or NAME=slots:NUMBER, and is " + text);
    if (std::ranges::find(out, share->name, &agent::allocation::offered_resource::name) != out.end())
      return std::unexpected("two of --share are " + share->name);
    out.push_back(std::move(*share));
  }
  return out;
}

std::string problem_of(const plugin_flags& flags) {
  if (flags.plugin.node.empty()) return "--node-name is required (NODE_NAME in a pod)";
  if (!text::is_dns_subdomain(flags.plugin.node))
    return "--node-name is no name of a Node: lower-case letters, digits, '-' and '.' are allowed";
  const auto& cards = flags.plugin.cards;
  if (!cards.empty() && !is_resource(cards)) return "--resource is no name of a resource: DOMAIN/NAME is";
  for (const auto& [name, path] :
       {std::pair("--plugin-folder", &flags.plugin.plugin_folder),
        std::pair("--pod-resources", &flags.plugin.pod_resources), std::pair("--cdi-folder", &flags.plugin.cdi_folder),
        std::pair("--mps-folder", &flags.plugin.mps_folder)})
    if (!path->starts_with('/')) return std::string(name) + " is no absolute path";
  // quartermaster-PID.sock, and the kubelet's own name
  constexpr std::size_t longest = sizeof(sockaddr_un::sun_path) - sizeof "/quartermaster-c-4194304.sock";
  constexpr std::size_t longest_mps = sizeof(sockaddr_un::sun_path) - sizeof "/server.sock";
  if (flags.plugin.mps_folder.size() > longest_mps)
    return "--mps-folder is too long for a socket in it: at most " + std::to_string(longest_mps) + " bytes";
  if (flags.plugin.plugin_folder.size() > longest)
    return "--plugin-folder is too long for a socket in it: at most " + std::to_string(longest) + " bytes";
  if (flags.plugin.pod_resources.size() >= sizeof(sockaddr_un::sun_path))
    return "--pod-resources is longer than a socket's path may be (" +
           std::to_string(sizeof(sockaddr_un::sun_path) - 1) + " bytes)";
  return {};
}

int run_plugin(plugin_flags flags) {
  if (flags.shares.empty() && flags.plugin.cards.empty()) flags.plugin.cards = whole_cards;
  const auto complain = [](const std::string& message, int rc) {
    std::cerr << "quartermaster: " << message << "\n";
    return rc;
  };
  log::level level = log::level::info;
  log::parse_level(flags.log_level, level);
  log::configure(flags.log_format == "json" ? log::format::json : log::format::text, level);
  auto shares = shares_in(flags.shares);
  if (!shares) return complain("agent plugin: " + shares.error(), 2);
  flags.plugin.shares = std::move(*shares);
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
  auto* verb = add_verb(agent, "plugin", "Be the kubelet's device plugin: each pod gets the cards of its placement");
  auto flags = std::make_shared<plugin_flags>();
  const auto text = [verb](const char* name, std::string& output, const char* help) {
    return add_option(*verb, name, output, help)->capture_default_str();
  };
  text("--node-name", flags->plugin.node, "Name of this node's Node object")->envname("NODE_NAME");
  flags->plugin.mps_folder = mps_folder;
  auto* cards = add_option(*verb, "--resource", flags->plugin.cards, "Resource of whole cards (nvidia.com/gpu)");
  add_option(*verb, "--share", flags->shares,
             "Key of shares and what one is: NAME=cores, NAME=memory:MIB or NAME=slots:NUMBER; again for the next key. "
             "All that have a share ask for the first")
      ->excludes(cards);
  text("--mps-folder", flags->plugin.mps_folder, "Folder of quartermaster agent mps, which holds shares");
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
