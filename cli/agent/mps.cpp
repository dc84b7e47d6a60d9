// quartermaster agent mps: keeps the MPS servers of a node's cards.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "agent/mps_host.hpp"
#include "cli/agent/agent.hpp"
#include "cli/cluster/refusal.hpp"
#include "cli/flags/flags.hpp"
#include "cli/flags/usage.hpp"
#include "cli/output/answer.hpp"
#include "controller/log.hpp"

namespace cli {
namespace {

namespace log = controller::log;

constexpr std::string_view mps_examples =
    R"(One control daemon and one server for each card. While a card is lent it is in EXCLUSIVE_PROCESS, so that a program that
passes MPS by gets nothing, and the limits of its server were read back. A card whose daemon answers otherwise is lent no
more, and the log says why; its neighbours go on. A driver of branch R615 or newer also limits the memory of a pod's
cgroup, when the device plugin asks for it. When this program ends, all clients end. Cards are DEFAULT again then, but
for those of which a container still has a share: they stay PROHIBITED, so that it cannot use a card without its limits.
It needs root, the driver, and NVIDIA's nvidia-cuda-mps-control and nvidia-cuda-mps-server on the PATH; in a pod, the
node's process IDs (hostPID). Module mps runs it next to the device plugin, which asks it over FOLDER/server.sock.
  $ quartermaster agent mps --folder /run/quartermaster/mps)";

struct mps_flags {
  agent::mps_options mps;
  std::string log_format = "text", log_level = "info", language;
};

/// FOLDER/UUID/pipe/control_privileged, of a UUID as NVIDIA's are
constexpr std::size_t longest_folder =
    longest_socket_path + 1 - sizeof "/GPU-00000000-0000-0000-0000-000000000000/pipe/control_privileged";

int run_mps(const mps_flags& flags) {
  log::level level = log::level::info;
  log::parse_level(flags.log_level, level);
  log::configure(flags.log_format == "json" ? log::format::json : log::format::text, level);
  agent::mps_host program(flags.mps);
  const auto done = program.run();
  return done ? 0 : failed(phrase_without_grants(done.error()), language_of_refusal(flags.language), std::cerr);
}

}  // namespace

void add_mps(CLI::App& agent, int& rc) {
  auto* verb = add_verb(agent, "mps", "Keep the MPS servers of this node's cards, with limits that were read back");
  auto flags = std::make_shared<mps_flags>();
  const auto text = [verb](const char* name, std::string& output, const char* help) {
    return add_option(*verb, name, output, help)->capture_default_str();
  };
  text("--folder", flags->mps.folder, "Where pipes and logs of each card are, and the socket of this program")
      ->check(absolute_path())
      ->check(socket_path(longest_folder));
  text("--driver-root", flags->mps.driver_root, "Where the driver's file system is mounted")->check(absolute_path());
  text("--program", flags->mps.program, "NVIDIA's control daemon, on the PATH or as a path")->check(not_empty());
  text("--cgroup-root", flags->mps.cgroup_root, "Where the node's cgroup v2 is, with the cgroups of pods")
      ->check(absolute_path());
  text("--log-format", flags->log_format, "text or json, on stderr")->check(choice({"text", "json"}));
  text("--log-level", flags->log_level, "debug, info, warn or error")
      ->check(choice({"debug", "info", "warn", "error"}));
  add_refusal_language(*verb, flags->language);
  verb->footer(std::string(mps_examples));
  verb->callback([flags, &rc] { rc = run_mps(*flags); });
}

}  // namespace cli
