// quartermaster agent plugin: device plugins for whole cards and for shares.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/card_plugin.hpp"
#include "cli/agent/agent.hpp"
#include "cli/cluster/refusal.hpp"
#include "cli/flags/flags.hpp"
#include "cli/flags/usage.hpp"
#include "cli/output/answer.hpp"
#include "controller/log.hpp"
#include "kube/config_fault.hpp"
#include "text/resource_name.hpp"
#include "text/text.hpp"

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
  std::vector<std::string> shares, limits;
  cluster_options cluster;
  std::string log_format = "text", log_level = "info", language;
};

bool is_resource(const std::string& name) { return text::is_extended_resource(name) && text::is_label_key(name); }

using agent::allocation::device_unit;
using agent::allocation::offered_resource;

struct meaning {
  std::string_view word;
  device_unit unit;
  bool has_size, is_offered;
};
constexpr meaning meanings[] = {{"cores", device_unit::core, false, true},
                                {"memory", device_unit::memory, true, true},
                                {"slots", device_unit::slot, true, true},
                                {"percent", device_unit::percent, false, false}};

std::optional<int> number_in(std::string_view text, int minimum) {
  int out = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
  const bool is_number = failed == std::errc() && end == text.data() + text.size();
  return is_number && out >= minimum && out <= 10'000'000 ? std::optional(out) : std::nullopt;
}

/// What is left of `text` before `mark`; what stands behind it.
std::string_view cut(std::string_view text, char mark, std::optional<std::string_view>& rest) {
  const auto position = text.find(mark);
  if (position == std::string_view::npos) return text;
  rest = text.substr(position + 1);
  return text.substr(0, position);
}

/// "nvidia.com/mps-memory=memory:1024", "nvidia.com/gpumem=memory:1@5000".
std::optional<offered_resource> key_in(std::string_view text, bool is_offered) {
  std::optional<std::string_view> rest, size, fallback;
  offered_resource out{.name = std::string(cut(text, '=', rest)), .is_offered = is_offered};
  const auto word = cut(cut(rest.value_or(""), '@', fallback), ':', size);
  const auto* known = std::ranges::find(meanings, word, &meaning::word);
  if (!is_resource(out.name) || known == std::end(meanings) || known->has_size != size.has_value()) return {};
  if (is_offered && (fallback || !known->is_offered)) return {};
  const auto number = number_in(size.value_or("1"), 1), by_default = number_in(fallback.value_or("0"), 0);
  if (!number || !by_default) return {};
  out.unit = known->unit;
  (out.unit == device_unit::slot ? out.per_card : out.unit_mib) = *number;
  out.by_default = *by_default;
  return out;
}

/// Adds the keys of a flag to the vocabulary, or says what is wrong with one.
text::phrase problem_with(const std::vector<std::string>& texts, bool is_offered, std::vector<offered_resource>& out) {
  const std::string flag = is_offered ? "--share" : "--limit";
  for (const auto& text : texts) {
    auto key = key_in(text, is_offered);
    if (!key)
      return {is_offered ? "usage.plugin.share" : "usage.plugin.limit",
              {{"name", flag}, {"value", text::shown(text, 300)}}};
    if (std::ranges::find(out, key->name, &offered_resource::name) != out.end())
      return {"usage.plugin.twice", {{"value", key->name}}};
    out.push_back(std::move(*key));
  }
  if (out.empty() || out.front().is_offered) return {};
  return {"usage.requires", {{"name", "--limit"}, {"value", "--share"}}};
}

/// quartermaster-PID.sock, and the kubelet's own name
constexpr std::size_t longest_plugin_folder = longest_socket_path + 1 - sizeof "/quartermaster-c-4194304.sock";
constexpr std::size_t longest_mps_folder = longest_socket_path + 1 - sizeof "/server.sock";

CLI::Validator resource_name() {
  return {[](const std::string& text) {
            const bool is_good = text.empty() || is_resource(text);
            return is_good ? std::string() : refusal("usage.not_a_resource", text::shown(text));
          },
          ""};
}

int run_plugin(plugin_flags flags) {
  if (flags.shares.empty() && flags.plugin.cards.empty()) flags.plugin.cards = whole_cards;
  const auto locale = language_of_refusal(flags.language);
  log::level level = log::level::info;
  log::parse_level(flags.log_level, level);
  log::configure(flags.log_format == "json" ? log::format::json : log::format::text, level);
  for (const bool is_offered : {true, false})
    if (const auto problem = problem_with(is_offered ? flags.shares : flags.limits, is_offered, flags.plugin.shares);
        !problem.empty())
      return failed(problem, locale, std::cerr, 2);
  if (flags.plugin.node.empty()) return failed({"usage.no_node_name"}, locale, std::cerr, 2);
  kube::config_options config;
  config.kubeconfig = flags.cluster.kubeconfig;
  config.context = flags.cluster.context;
  auto cluster = kube::config_in_words(config);
  if (!cluster) return failed(cluster.error(), locale, std::cerr);
  agent::card_plugin program(flags.plugin, std::move(*cluster));
  const auto done = program.run();
  return done ? 0 : failed(phrase_without_grants(done.error()), locale, std::cerr);
}

}  // namespace

void add_plugin(CLI::App& agent, int& rc) {
  auto* verb = add_verb(agent, "plugin", "Be the kubelet's device plugin: each pod gets the cards of its placement");
  auto flags = std::make_shared<plugin_flags>();
  const auto text = [verb](const char* name, std::string& output, const char* help) {
    return add_option(*verb, name, output, help)->capture_default_str();
  };
  text("--node-name", flags->plugin.node, "Name of this node's Node object")->check(node_name())->envname("NODE_NAME");
  flags->plugin.mps_folder = mps_folder;
  auto* cards = add_option(*verb, "--resource", flags->plugin.cards, "Resource of whole cards (nvidia.com/gpu)")
                    ->check(resource_name());
  add_option(*verb, "--share", flags->shares,
             "Key of shares and what one is: NAME=cores, NAME=memory:MIB or NAME=slots:NUMBER; again for the next key. "
             "All that have a share ask for the first")
      ->excludes(cards);
  add_option(*verb, "--limit", flags->limits,
             "Key next to those that no kubelet counts; @NUMBER: what a container has that does not name it")
      ->excludes(cards);
  text("--mps-folder", flags->plugin.mps_folder, "Folder of quartermaster agent mps, which holds shares")
      ->check(absolute_path())
      ->check(socket_path(longest_mps_folder));
  text("--plugin-folder", flags->plugin.plugin_folder, "The kubelet's folder of device plugins")
      ->check(absolute_path())
      ->check(socket_path(longest_plugin_folder));
  text("--pod-resources", flags->plugin.pod_resources, "The kubelet's socket that says which pod has which device")
      ->check(absolute_path())
      ->check(socket_path(longest_socket_path));
  text("--cdi-folder", flags->plugin.cdi_folder, "Where the container runtime looks for CDI files")
      ->check(absolute_path());
  add_option(*verb, "--health-port", flags->plugin.health_port,
             "Answer GET /readyz on this port: 200 while the kubelet listens to the plugin; 0: do not")
      ->check(whole_number(0, 65535))
      ->capture_default_str();
  text("--log-format", flags->log_format, "text or json, on stderr")->check(choice({"text", "json"}));
  text("--log-level", flags->log_level, "debug, info, warn or error")
      ->check(choice({"debug", "info", "warn", "error"}));
  add_refusal_language(*verb, flags->language);
  add_kubeconfig_options(*verb, flags->cluster);
  verb->footer(std::string(plugin_examples));
  verb->callback([flags, &rc] { rc = run_plugin(*flags); });
}

}  // namespace cli
