#pragma once
// `quartermaster agent`: the node side. It reports the node's cards (agent/cards). With --static-pod it instead keeps
// our extender in the configuration of the kube-scheduler that runs on this control-plane node as a static pod of
// kubeadm (agent/static_pod; docs/scheduler-config.md).

#include <sys/un.h>

#include <string>

#include "agent/agent.hpp"
#include "agent/static_pod/options.hpp"
#include "cli/cluster/cluster.hpp"

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace cli {

struct agent_options : agent::static_pod::options {
  cluster_options cluster;
  agent::options cards;
  bool static_pod = false;
  bool print = false;  ///< the cards as JSON on stdout, and no cluster
  std::string log_format = "text", log_level = "info";
  std::string language;  ///< of refusals; empty: that of the environment
};

/// The longest path of a socket, in bytes.
inline constexpr std::size_t longest_socket_path = sizeof(sockaddr_un::sun_path) - 1;

/// A name that a Node can have.
CLI::Validator node_name();

/// Until a signal (0), or a lost turn or something it cannot run without (1); 2: wrong usage.
int run_agent(const agent_options& options);

/// `quartermaster agent fix-runtime`: what a person calls on the node.
void add_fix_runtime(CLI::App& agent, int& rc);
/// `quartermaster agent plugin`: the kubelet's device plugins for whole cards and for shares.
void add_plugin(CLI::App& agent, int& rc);
/// `quartermaster agent mps`: keeps the MPS servers of a node's cards.
void add_mps(CLI::App& agent, int& rc);

}  // namespace cli
