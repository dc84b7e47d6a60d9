#pragma once
// The verbs of the program. Each adds its flags and its callback to the command line; the callback leaves the exit code
// in `rc`.

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cli {

/// "quartermaster 0.1.0".
std::string version_line();

/// The command line as typed, by whatever name the program was called: as kubectl-inspect-cgpu it is
/// `inspect nodes --compat cgpu`, and as kubectl_complete-quartermaster it is asked for completions.
std::vector<std::string> command_of(const std::string& called, std::vector<std::string> words);

/// All of those below.
void add_verbs(CLI::App& app, int& rc);
/// `quartermaster agent --static-pod`: on a control-plane node, until a signal.
void add_agent(CLI::App& app, int& rc);
/// `quartermaster completion bash|zsh|fish`: the script that makes a shell complete our commands.
void add_completion(CLI::App& app, int& rc);
/// `quartermaster console`: a page that shows the cluster's cards, until a signal.
void add_console(CLI::App& app, int& rc);
/// `quartermaster controller`: the operator itself, until a signal or a lost lease.
void add_controller(CLI::App& app, int& rc);
/// `quartermaster explain error` and `explain compat`: what an error means, and whether an image runs on a node.
void add_explain(CLI::App& app, int& rc);
/// `explain node`, below `explain`: the walk of `verify` on one node.
void add_explain_node(CLI::App& explain, int& rc);
/// `explain pod`, below `explain`: why a pod waits, or which cards it has.
void add_explain_pod(CLI::App& explain, int& rc);
/// `quartermaster inspect resources`: what is declared in a cluster, and which pods the rules would refuse.
void add_inspect(CLI::App& app, int& rc);
/// `inspect nodes`, `inspect modules` and `inspect pods`, below `inspect`.
void add_inspect_fleet(CLI::App& inspect, int& rc);
/// `quartermaster lint FILE...`: declarations and workloads in files, judged without a cluster.
void add_lint(CLI::App& app, int& rc);
/// `lint scheduler-config FILE...`, below `lint`: does kube-scheduler start with it, and are pods with cards scheduled?
void add_lint_scheduler(CLI::App& lint, int& rc);
/// `quartermaster man`: the man page, for those who make packages. Not in --help.
void add_man(CLI::App& app, int& rc);
/// `quartermaster render declaration`: a correct ConfigMap.
void add_render(CLI::App& app, int& rc);
/// `render scheduler-config`, below `render`.
void add_render_scheduler(CLI::App& render, int& rc);
/// `quartermaster report chargeback|capacity|right-size`: what cards cost, what is left, what is too large.
void add_report(CLI::App& app, int& rc);
/// `quartermaster simulate -f FILE`: would these pods fit?
void add_simulate(CLI::App& app, int& rc);
/// `quartermaster top nodes|pods|cards`: what is given out of the cards.
void add_top(CLI::App& app, int& rc);
/// `quartermaster uninstall`: nodes leave their modes, then everything the operator made goes.
void add_uninstall(CLI::App& app, int& rc);
/// `quartermaster verify [node]`: what is wrong between a label and what pods can ask for.
void add_verify(CLI::App& app, int& rc);
/// `quartermaster version [-o json]`.
void add_version(CLI::App& app, int& rc);

}  // namespace cli
