#include "cli/remove/uninstall.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <ranges>
#include <set>

#include "agent/static_pod/cluster.hpp"
#include "api/accelerator_node.hpp"
#include "api/names.hpp"
#include "cli/cluster/operator_lease.hpp"
#include "cli/flags/flags.hpp"
#include "cli/output/answer.hpp"
#include "cli/verbs.hpp"
#include "controller/clock.hpp"
#include "controller/sleep.hpp"
#include "kube/json_text.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"
#include "text/escape.hpp"
#include "text/list.hpp"
#include "text/phrase_code.hpp"

namespace cli {
namespace {

using kube::text_at;
using nlohmann::json;
using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

using kube::resources::deployments;
constexpr kube::resource cluster_roles{"rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", false};
constexpr auto look_again = 1s;
constexpr auto say_again = 30s;
constexpr std::size_t named_in_message = 3;

kube::error failure(std::string message) { return {kube::errc::timeout, 0, std::move(message), std::nullopt}; }

/// Asks on the terminal, where there is one; `yes`: does not ask. False: says so, nothing is to be done.
bool agreed(bool yes, std::ostream& out) {
  if (yes) return true;
  if (isatty(STDIN_FILENO) == 0) {
    out << "nothing was changed: add --yes, as no one can be asked here" << std::endl;
    return false;
  }
  out << "Go on? [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "Y" || answer == "yes") return true;
  out << "nothing was changed" << std::endl;
  return false;
}

}  // namespace

std::string text_of_orphaned(std::string_view release, std::string_view ns) {
  const auto labels = " -l app.kubernetes.io/name=quartermaster,app.kubernetes.io/instance=" + std::string(release);
  return "namespace " + std::string(ns) + " is gone, and helm's record of release " + std::string(release) +
         " with it, so `helm uninstall` finds no release. What it installed for the whole cluster goes by:\n"
         "  kubectl delete "
         "validatingadmissionpolicybindings,validatingadmissionpolicies,validatingwebhookconfigurations,"
         "mutatingwebhookconfigurations,clusterrolebindings,clusterroles" +
         labels + "\n  kubectl delete mutatingadmissionpolicybindings,mutatingadmissionpolicies" + labels +
         "    # Kubernetes 1.36 and newer\n";
}

namespace {

class removal {
 public:
  removal(kube::transport& transport, const uninstall_options& options, std::ostream& out)
      : transport_(transport), api_(transport), options_(options), out_(out), ns_(options.ns) {}

  int rc() const { return rc_; }

  kube::task<void> run() {
    const auto seen = co_await look();
    if (!seen) co_return seen;
    if (options_.check) co_return check();
    if (options_.cancel) co_return co_await cancel();
    auto written = co_await read_written(transport_);
    if (!written) co_return std::unexpected(written.error());
    written_ = std::move(*written);
    if (options_.if_idle && !removing_) {
      const auto users = co_await read_card_users(transport_, ns_);
      if (!users) co_return std::unexpected(users.error());
      if (!users->empty()) co_return refuse(*users);
    }
    if (!wanted()) co_return kube::result<void>();
    if (!options_.without_operator) {
      const auto left = co_await leave();
      if (!left) co_return left;
      const auto again = co_await look();
      if (!again) co_return again;
      if (const auto still = not_taken_back(); !still) co_return still;
    }
    const auto stopped = co_await stop_operator();
    if (!stopped) co_return stopped;
    const auto removed = co_await sweep(transport_, ns_, options_.declarations);
    if (!removed) co_return std::unexpected(removed.error());
    tell(*removed);
    const auto waiting = co_await read_waiting(transport_);
    if (!waiting) co_return std::unexpected(waiting.error());
    out_ << note_of_waiting(*waiting) << std::flush;
    if (options_.keep_crds) {
      const auto back = co_await set_removing(false);
      if (!back) co_return back;
    } else {
      const auto types = co_await remove_types(transport_);
      if (!types) co_return std::unexpected(types.error());
      tell(*types);
      if (!types->empty() && !written_.empty()) out_ << "  and with them " << summary_of(written_) << std::endl;
    }
    const auto orphaned = co_await read_orphaned();
    if (!orphaned) co_return std::unexpected(orphaned.error());
    if (*orphaned) {
      out_ << text_of_orphaned(release_, ns_) << std::flush;
      co_return kube::result<void>();
    }
    out_ << "nothing is left but what helm installed" << (release_.empty() ? ", if it did" : "")
         << ":\n  helm uninstall " << (release_.empty() ? "quartermaster" : release_)
         << (ns_.empty() ? "" : " --namespace " + ns_) << std::endl;
    if (!options_.keep_crds)
      out_ << "(helm then says that it keeps the CustomResourceDefinitions; they are gone)" << std::endl;
    co_return kube::result<void>();
  }

  /// Writes the reason where people look who do not see our output: `kubectl describe` of the operator's Deployment.
  /// Without a right to write events it stays with the output.
  kube::task<void> record(std::string reason) {
    const json about = {
        {"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"namespace", options_.ns}, {"name", "quartermaster"}};
    const json event = {{"metadata", {{"generateName", "quartermaster-"}, {"namespace", options_.ns}}},
                        {"eventTime", controller::rfc3339_micros(std::chrono::system_clock::now())},
                        {"reportingController", "quartermaster.io/uninstall"},
                        {"reportingInstance", "quartermaster-uninstall"},
                        {"type", "Warning"},
                        {"reason", rc_ == 3 ? "UninstallRefused" : "UninstallFailed"},
                        {"action", "Uninstall"},
                        {"note", text::utf8_clean(reason, 1000)},
                        {"regarding", about}};
    const auto written = co_await api_.create(kube::resources::events, options_.ns, event);
    if (!written) out_ << "no event was written: " << written.error().message << std::endl;
    co_return kube::result<void>();
  }

 private:
  /// True where the namespace of the release is gone, and helm's record with it, while its cluster-wide objects stay.
  /// Without the right to see these: false.
  kube::task<bool> read_orphaned() {
    if (!release_.empty()) co_return false;  // its Deployment is there
    kube::list_options options;
    options.label_selector = "app.kubernetes.io/name=quartermaster,app.kubernetes.io/managed-by=Helm";
    const auto roles = co_await api_.list(cluster_roles, options);
    if (!roles && roles.error().code != kube::errc::forbidden) co_return std::unexpected(roles.error());
    if (!roles || roles->empty()) co_return false;
    const auto release = text_at(roles->front(), "/metadata/annotations/meta.helm.sh~1release-name");
    const auto ns = text_at(roles->front(), "/metadata/annotations/meta.helm.sh~1release-namespace");
    if (release.empty() || ns.empty()) co_return false;
    const auto there = co_await api_.get(kube::resources::namespaces, kube::object_key{{}, ns});
    if (there || there.error().code != kube::errc::not_found) co_return false;
    release_ = release;
    ns_ = ns;
    co_return true;
  }

  /// Nodes, their messages, the policy and the lease as they are now.
  kube::task<void> look() {
    nodes_.clear();
    enrolled_.clear();
    const std::function<void(kube::node)> keep = [this](kube::node node) {
      if (enrolled(node)) enrolled_.emplace(node.key.name, "");
      nodes_.insert(std::move(node.key.name));
    };
    const auto nodes = co_await list_each<kube::node>(transport_, kube::list_options(), keep);
    if (!nodes) co_return nodes;
    if (options_.check) co_return co_await look_at_control_plane_nodes();
    const std::function<void(api::accelerator_node)> note = [this](api::accelerator_node status) {
      if (const auto match = enrolled_.find(status.key.name); match != enrolled_.end())
        match->second = status.mode.phase + (status.mode.message.empty() ? "" : ": " + status.mode.message);
    };
    const auto listed = co_await list_each<api::accelerator_node>(transport_, kube::list_options(), note);
    if (!listed && listed.error().code != kube::errc::not_found) co_return listed;
    const auto policy = co_await api_.get(kube::resources::accelerator_policies, reconcilers::policy_key);
    if (!policy && policy.error().code != kube::errc::not_found) co_return std::unexpected(policy.error());
    has_policy_ = policy.has_value();
    removing_ = policy && policy->value("/spec/removing"_json_pointer, false);
    const auto lease = co_await look_at_lease();  // which says the namespace where no one did
    if (!lease) co_return lease;
    co_return co_await look_at_control_plane_nodes();
  }

  /// Control-plane nodes that are there and whose kube-scheduler asks our extender, by the rows of their agents.
  kube::task<void> look_at_control_plane_nodes() {
    if (ns_.empty()) co_return kube::result<void>();
    const kube::object_key key{ns_, agent::static_pod::static_pod_name};
    const auto rows = co_await api_.get(kube::resources::config_maps, key);
    const auto none = [](kube::errc code) { return code == kube::errc::not_found || code == kube::errc::forbidden; };
    if (!rows && none(rows.error().code)) co_return kube::result<void>();  // the hook may only where the chart has it
    if (!rows) co_return std::unexpected(rows.error());
    for (const auto& [node, text] : rows->value("data", json::object()).items()) {
      const auto row = agent::static_pod::read_row(text.is_string() ? text.get<std::string>() : std::string());
      if (row.is.empty() || row.is == to_string(agent::static_pod::state::disabled) || !nodes_.contains(node)) continue;
      enrolled_.insert_or_assign(node, "kube-scheduler with our extender (" + row.is +
                                           (row.reason.empty() ? "" : ": " + text::message_text(row.reason)) + ")");
    }
    co_return kube::result<void>();
  }

  kube::task<void> look_at_lease() {
    auto found = co_await find_lease(transport_, ns_);
    if (!found) co_return std::unexpected(found.error());
    if (*found && ns_.empty()) ns_ = (*found)->key.ns;
    lease_.see(std::move(*found));
    co_return kube::result<void>();
  }

  kube::result<void> check() {
    if (enrolled_.empty()) {
      out_ << "no node is enrolled" << std::endl;
      return {};
    }
    rc_ = 3;
    return std::unexpected(failure(text::counted(enrolled_.size(), "node") + " still " +
                                   (enrolled_.size() == 1 ? "has" : "have") + " a mode or our extender (" + examples() +
                                   "): run `quartermaster uninstall` first, which takes them out as their pods allow"));
  }

  kube::result<void> refuse(const std::vector<std::string>& users) {
    rc_ = 3;
    std::string names;
    for (const auto& user : users | std::views::take(named_in_message)) names += (names.empty() ? "" : ", ") + user;
    if (users.size() > named_in_message) names += " and " + std::to_string(users.size() - named_in_message) + " more";
    return std::unexpected(failure(
        text::counted(users.size(), "pod") + (users.size() == 1 ? " uses cards (" : " use cards (") + names +
        "): nothing was removed. End them and uninstall again. Or let nodes leave as spec.enrolment.drain of the "
        "policy "
        "says: kubectl patch apol default --type merge -p '{\"spec\":{\"removing\":true}}', then uninstall again"));
  }

  kube::task<void> cancel() {
    if (!removing_) {
      out_ << "no removal is under way" << std::endl;
      co_return kube::result<void>();
    }
    const auto done = co_await set_removing(false);
    if (done) out_ << "taken back: nodes go to the modes that their labels ask for" << std::endl;
    co_return done;
  }

  bool wanted() {
    out_ << text::counted(enrolled_.size(), "node") << " of " << nodes_.size()
         << (enrolled_.size() == 1 ? " has" : " have") << " a mode and will leave it"
         << (options_.without_operator ? " at once, whatever pods are on them" : "")
         << "; then the operator stops, and all that it made goes" << (options_.keep_crds ? "." : ", with the CRDs.")
         << std::endl;
    if (!written_.empty()) {
      out_ << (options_.keep_crds ? "With the CRDs stays" : "With the CRDs goes")
           << " what people wrote: " << summary_of(written_) << (written_.quotas.empty() ? "." : ":") << "\n"
           << list_of_quotas(written_);
      if (!options_.keep_crds) {
        const auto* types = written_.quotas.empty() ? "apol" : "apol,aq";
        out_ << "A copy: kubectl get " << types << " -A -o yaml > quartermaster.yaml; --keep-crds leaves them.\n";
      }
      out_ << std::flush;
    }
    if (agreed(options_.yes, out_)) return true;
    rc_ = 1;
    return false;
  }

  kube::task<void> set_removing(bool removing) {
    const json patch = {{"spec", {{"removing", removing ? json(true) : json()}}}};
    const auto done = co_await api_.patch(kube::resources::accelerator_policies, reconcilers::policy_key,
                                          kube::patch_kind::merge, patch);
    if (!done && done.error().code != kube::errc::not_found) co_return std::unexpected(done.error());
    co_return kube::result<void>();
  }

  kube::task<void> leave() {
    if (!enrolled_.empty() && !lease_.last) co_return no_operator();
    if (has_policy_ && !removing_) {
      const auto set = co_await set_removing(true);
      if (!set) co_return set;
    }
    if (enrolled_.empty()) co_return kube::result<void>();
    out_ << "nodes leave their modes (Ctrl-C stops watching, not them; call again to go on, --cancel takes it back)"
         << std::endl;
    const auto began = clock::now();
    const auto at_first = enrolled_.size();
    std::string last_line;
    auto said_at = clock::time_point();
    while (!enrolled_.empty()) {
      if (lease_.silent_for(options_.lease_patience)) co_return no_operator();
      if (options_.timeout > 0s && clock::now() - began > options_.timeout)
        co_return std::unexpected(failure(text::counted(enrolled_.size(), "node") + " did not leave in time (" +
                                          examples() +
                                          "); they go on leaving: call again to go on, --cancel takes it back"));
      auto line = "  " + std::to_string(at_first - std::min(at_first, enrolled_.size())) + " of " +
                  std::to_string(at_first) + " have left; " + examples();
      if (lease_.last && lease_.silent_for(std::chrono::seconds(lease_.last->duration_seconds)))
        line += " (no operator renews the lease now)";
      if (line != last_line || clock::now() - said_at > say_again) {
        out_ << line << std::endl;
        last_line = std::move(line);
        said_at = clock::now();
      }
      co_await controller::sleep_for(look_again);
      const auto seen = co_await look();
      if (!seen) co_return seen;
      if (const auto still = not_taken_back(); !still) co_return still;
    }
    out_ << "every node has left its mode" << std::endl;
    co_return kube::result<void>();
  }

  kube::result<void> no_operator() const {
    return std::unexpected(failure(
        "no operator renews the lease " + (ns_.empty() ? "quartermaster" : ns_ + "/quartermaster") +
        ", so that no node can leave: start it (helm upgrade, or kubectl scale its Deployment; one outside this "
        "cluster "
        "is started there), or add --without-operator, which takes labels off at once, under the pods that use cards "
        "(without this program: docs/install.md, \"Removing by hand\")"));
  }

  /// Someone may have called --cancel meanwhile.
  kube::result<void> not_taken_back() const {
    if (!has_policy_ || removing_) return {};
    return std::unexpected(failure(
        "someone took it back (spec.removing of AcceleratorPolicy default is no longer true): nothing was removed"));
  }

  kube::task<void> stop_operator() {
    kube::list_options options;
    options.ns = ns_;
    options.label_selector = "app.kubernetes.io/name=quartermaster";
    const auto found = co_await api_.list(deployments, options);
    if (!found) co_return std::unexpected(found.error());
    for (const auto& entry : *found) {
      const kube::object_key key{text_at(entry, "/metadata/namespace"), text_at(entry, "/metadata/name")};
      if (ns_.empty()) ns_ = key.ns;
      release_ = text_at(entry, "/metadata/annotations/meta.helm.sh~1release-name");
      if (entry.value("/spec/replicas"_json_pointer, 1) == 0) continue;
      const json none = {{"spec", {{"replicas", 0}}}};
      const auto done = co_await api_.patch(deployments, key, kube::patch_kind::merge, none);
      if (!done) co_return std::unexpected(done.error());
      const bool is_console = key.name.ends_with("-console");
      out_ << (is_console ? "console" : "operator") << " stopped: Deployment " << key.to_string()
           << " has no replicas any more" << std::endl;
    }
    bool announced = false;
    const auto began = clock::now();
    for (;;) {
      const auto seen = co_await look_at_lease();
      if (!seen) co_return seen;
      if (!lease_.last || lease_.silent_for(std::chrono::seconds(lease_.last->duration_seconds) + 1s)) break;
      if (clock::now() - began > options_.lease_patience)
        co_return std::unexpected(failure("operator " + lease_.last->holder + " still renews the lease " + ns_ +
                                          "/quartermaster and is of no Deployment here, so it runs outside this "
                                          "cluster: stop that process, then call "
                                          "this again, which goes on from here"));
      if (!announced) {
        out_ << "waiting for the operator to stop (" << lease_.last->holder
             << " renews the lease; one outside this cluster has to be stopped there)" << std::endl;
        announced = true;
      }
      co_await controller::sleep_for(look_again);
    }
    co_return kube::result<void>();
  }

  std::string examples() const {
    std::string out;
    std::size_t named = 0;
    for (const auto& [name, state] : enrolled_) {
      if (named++ == named_in_message)
        return out + " and " + std::to_string(enrolled_.size() - named_in_message) + " more";
      out += (out.empty() ? "" : "; ") + name + (state.empty() ? "" : " " + state);
    }
    return out;
  }

  void tell(const std::vector<removed_objects>& removals) {
    for (const auto& removal : removals) out_ << "removed " << removal.summary << std::endl;
  }

  kube::transport& transport_;
  kube::client api_;
  const uninstall_options& options_;
  std::ostream& out_;
  std::string ns_, release_;
  std::set<std::string> nodes_;
  written_objects written_;
  std::map<std::string, std::string> enrolled_;  ///< node -> what it is at
  bool has_policy_ = false, removing_ = false;
  pulse lease_;
  int rc_ = 0;
};

constexpr std::string_view uninstall_examples = R"(Examples:
  $ helm uninstall quartermaster --namespace quartermaster    # its Job runs this command first: --yes --keep-crds --if-idle
  $ quartermaster uninstall             # the same from here, with the CRDs; nodes leave as their pods allow
  $ quartermaster uninstall --check     # is a node still enrolled?

Nodes are taken out by the same transaction as any change of mode: pods that hold cards are waited for and named (or
evicted, where the policy says drain: {mode: Evict}). May be stopped and called again at any point.
Labels of nodes and ConfigMaps that people wrote stay. Objects of our types that people wrote (AcceleratorPolicy,
AcceleratorQuotas) go with the CRDs: they are counted and named before the question, and --keep-crds leaves them.
Events expire by themselves.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 (--check) a node is enrolled, (--if-idle) pods use cards.)";

}  // namespace

int run_uninstall(const uninstall_options& options, std::ostream& out, std::ostream& err) {
  int rc = 0;
  const auto result = ask_cluster(options.cluster, [&](kube::transport& transport) -> kube::task<void> {
    removal work(transport, options, out);
    auto done = co_await work.run();
    rc = work.rc();
    if (!done && options.if_idle && !options.ns.empty()) co_await work.record(done.error().message);
    co_return done;
  });
  if (result) return rc;
  return failed(result.error().message, err, rc != 0 ? rc : 1);
}

void add_uninstall(CLI::App& app, int& rc) {
  auto* verb = add_verb(app, "uninstall", "Take nodes out of their modes, then remove everything the operator made");
  auto options = std::make_shared<uninstall_options>();
  auto* check = add_flag(*verb, "--check", options->check, "Change nothing; exit code 3 while a node is enrolled");
  auto* cancel = add_flag(*verb, "--cancel", options->cancel, "Take back a removal that is under way");
  check->excludes(cancel);
  add_flag(*verb, "-y,--yes", options->yes, "Do not ask");
  add_flag(*verb, "--if-idle", options->if_idle,
           "Change nothing while pods use cards (exit code 3), unless the policy says spec.removing already; with "
           "--namespace also write the reason of a failure as an event of the Deployment")
      ->excludes(check)
      ->excludes(cancel);
  add_flag(*verb, "--keep-crds", options->keep_crds,
           "Leave the CRDs, and with them the AcceleratorPolicy and AcceleratorQuotas");
  add_flag(*verb, "--without-operator", options->without_operator,
           "Do not wait for nodes: labels and plugins go at once, under the pods that use them");
  auto seconds = std::make_shared<int>(0);
  add_option(*verb, "--timeout", *seconds, "Seconds for nodes to leave; 0: as long as it takes")
      ->check(whole_number(0, 604800))
      ->capture_default_str();
  add_namespace_option(*verb, options->ns, "The operator's; without it the one with the lease quartermaster");
  add_option(*verb, "--declarations-namespace", options->declarations, "The namespace of declarations")
      ->capture_default_str();
  add_cluster_options(*verb, options->cluster);
  verb->footer(std::string(uninstall_examples));
  verb->callback([options, seconds, &rc] {
    options->timeout = std::chrono::seconds(*seconds);
    rc = run_uninstall(*options, std::cout, std::cerr);
  });
}

}  // namespace cli
