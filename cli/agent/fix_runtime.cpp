// quartermaster agent fix-runtime: a person calls it as root on the node, or asks for it in the policy
// (spec.containerRuntime.fix). Then the operator calls it in a pod.

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "agent/container_runtime/setup.hpp"
#include "cli/agent/agent.hpp"
#include "cli/flags/flags.hpp"
#include "cli/output/answer.hpp"
#include "controller/coded_message.hpp"

namespace cli {
namespace {

constexpr std::string_view fix_runtime_examples =
    R"(It runs on the node itself, as root, and only when you call it:
  $ quartermaster agent fix-runtime --dry-run
  $ quartermaster agent fix-runtime --set-default
  $ systemctl restart containerd
What was done is taken back, byte for byte:
  $ quartermaster agent fix-runtime --restore

containerd 2 (files of version 3 and 4) and CRI-O get a file of its own in conf.d or crio.conf.d; containerd's config.toml
gets an import of conf.d if it has none. containerd 1 (version 2) would lose settings by an import, so config.toml itself
is edited. Docker's daemon.json has no such folder and is edited too. A file that is edited is kept next to itself as
FILE.quartermaster-backup. A file that a person has changed since is left alone. Nothing is restarted.
NVIDIA's runtime is known by its program, whatever it is called. One that works is left as it is; what it lacks is added.
k3s and RKE2 find it by themselves. On k0s and MicroK8s, the command says which file of theirs to write. For many nodes,
spec.containerRuntime.fix of the AcceleratorPolicy makes the operator call it, node by node.)";

/// The kubelet puts this file into the status of the pod.
constexpr const char* termination_message = "/dev/termination-log";

/// The operator reads it (reconcilers/container_runtime/pod): a message with its code, or where that is too long for a
/// kubelet, the message alone.
std::string answer_in_pod(const std::expected<agent::container_runtime::report, text::phrase>& done) {
  constexpr std::size_t longest = 4096;
  auto answer = done ? text::phrase() : done.error();
  if (done) {
    auto lines = done->repairs;
    lines.insert(lines.end(), done->lines.begin(), done->lines.end());
    answer = text::joined_by_semicolons(std::move(lines));
  }
  nlohmann::json object;
  controller::set_message(object, answer);
  auto out = object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return out.size() > longest ? text::message_text(answer) : out;
}

int run_fix_runtime(const agent::container_runtime::setup_options& options, bool restores, text::language locale) {
  const auto done = restores ? agent::container_runtime::restore(options) : agent::container_runtime::set_up(options);
  if (options.in_pod) std::ofstream(termination_message) << answer_in_pod(done);
  if (!done) return failed(done.error(), locale, std::cerr);
  std::cout << text_of(*done, locale);
  return 0;
}

}  // namespace

void add_fix_runtime(CLI::App& agent, int& rc) {
  auto* verb = add_verb(agent, "fix-runtime", "Make this node's container runtime know NVIDIA's runtime");
  auto options = std::make_shared<agent::container_runtime::setup_options>();
  auto restores = std::make_shared<bool>(false);
  add_option(*verb, "--root", options->root, "Where the node's file system is")
      ->check(absolute_path())
      ->capture_default_str();
  auto language = std::make_shared<std::string>("en");
  add_language(*verb, *language);
  auto* runtime = add_option(*verb, "--runtime", options->runtime, "Without it, the one that has a socket below /run")
                      ->check(choice({"containerd", "crio", "docker"}));
  auto* set_default = add_flag(*verb, "--set-default", options->set_default,
                               "Containers without a RuntimeClass use NVIDIA's runtime too");
  add_flag(*verb, "--dry-run", options->dry_run, "Print what would change, and write nothing");
  add_flag(*verb, "--restore", *restores, "Put back what was there before")->excludes(runtime)->excludes(set_default);
  add_flag(*verb, "--in-pod", options->in_pod,
           "As the operator calls it: only the runtime's own folder is mounted, and the pod's status gets the answer")
      ->needs(runtime);
  verb->footer(std::string(fix_runtime_examples));
  verb->callback(
      [options, restores, language, &rc] { rc = run_fix_runtime(*options, *restores, bilingual(*language).locale()); });
}

}  // namespace cli
