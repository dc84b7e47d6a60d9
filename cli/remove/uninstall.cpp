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
#include "cli/cluster/refusal.hpp"
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

/// Asks on the terminal, where there is one; `yes`: does not ask. False: says so, nothing is to be done.
bool agreed(bool yes, const bilingual& say, std::ostream& out) {
  if (yes) return true;
  if (isatty(STDIN_FILENO) == 0) {
    out << say.message("uninstall.needs_yes") << std::endl;
    return false;
  }
  out << say.message("uninstall.question") << " [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "Y" || answer == "yes") return true;
  out << say.message("uninstall.unchanged") << std::endl;
  return false;
}

/// A phrase with these arguments, of KEY.one or KEY.many.
text::phrase counted_with(std::size_t number, std::string_view key, std::vector<text::phrase_argument> arguments) {
  auto out = text::counted_phrase(number, key);
  out.arguments.insert(out.arguments.end(), arguments.begin(), arguments.end());
  return out;
}

/// The first of them, and how many more there are.
text::phrase some_of(std::vector<text::phrase> items, text::phrase (*join)(std::vector<text::phrase>)) {
  const auto number = items.size();
  items.resize(std::min(number, named_in_message));
  auto list = join(std::move(items));
  if (number <= named_in_message) return list;
  return {"uninstall.more", {{"list", std::move(list)}, {"number", std::to_string(number - named_in_message)}}};
}

}  // namespace

std::string text_of_orphaned(std::string_view release, std::string_view ns, text::language locale) {
  const auto labels = " -l app.kubernetes.io/name=quartermaster,app.kubernetes.io/instance=" + std::string(release);
  return text::message("uninstall.orphaned", locale,
                       {{"namespace", std::string(ns)}, {"release", std::string(release)}}) +
         "\n  kubectl delete "
         "validatingadmissionpolicybindings,validatingadmissionpolicies,validatingwebhookconfigurations,"
         "mutatingwebhookconfigurations,clusterrolebindings,clusterroles" +
         labels + "\n  kubectl delete mutatingadmissionpolicybindings,mutatingadmissionpolicies" + labels + "    # " +
         text::message("uninstall.newer", locale) + "\n";
}

namespace {

text::phrase state_of(const api::mode_status& mode) {
  if (mode.message.empty()) return mode.phase;
  return {"uninstall.phase", {{"phase", mode.phase}, {"message", quoted_phrase_of(mode.code, mode.message)}}};
}

class removal {
 public:
  removal(kube::transport& transport, const uninstall_options& options, std::ostream& out)
      : transport_(transport), api_(transport), options_(options), out_(out), say_(options.language), ns_(options.ns) {}

  int rc() const { return rc_; }
  /// Why it ended where no request failed.
  const text::phrase& problem() const { return problem_; }

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
    report(*removed);
    const auto waiting = co_await read_waiting(transport_);
    if (!waiting) co_return std::unexpected(waiting.error());
    out_ << note_of_waiting(*waiting, say_.locale()) << std::flush;
    if (options_.keep_crds) {
      const auto back = co_await set_removing(false);
      if (!back) co_return back;
    } else {
      const auto types = co_await remove_types(transport_);
      if (!types) co_return std::unexpected(types.error());
      report(*types);
      if (!types->empty() && !written_.empty()) line({"uninstall.with_types", {{"objects", summary_of(written_)}}});
    }
    const auto orphaned = co_await read_orphaned();
    if (!orphaned) co_return std::unexpected(orphaned.error());
    if (*orphaned) {
      out_ << text_of_orphaned(release_, ns_, say_.locale()) << std::flush;
      co_return kube::result<void>();
    }
    line({release_.empty() ? "uninstall.left_if_any" : "uninstall.left"});
    out_ << "  helm uninstall " << (release_.empty() ? "quartermaster" : release_)
         << (ns_.empty() ? "" : " --namespace " + ns_) << std::endl;
    if (!options_.keep_crds) line({"uninstall.types_gone"});
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
    if (!written) line({"uninstall.no_event", {{"error", written.error().message}}});
    co_return kube::result<void>();
  }

 private:
  void line(const text::phrase& words) { out_ << words_of(words, say_.locale()) << std::endl; }

  /// Ends the removal for this reason.
  std::unexpected<kube::error> ended_by(text::phrase problem) {
    problem_ = std::move(problem);
    return std::unexpected(kube::error{kube::errc::timeout, 0, text::message_text(problem_), std::nullopt});
  }

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
      if (enrolled(node)) enrolled_.emplace(node.key.name, text::phrase());
      nodes_.insert(std::move(node.key.name));
    };
    const auto nodes = co_await list_each<kube::node>(transport_, kube::list_options(), keep);
    if (!nodes) co_return nodes;
    if (options_.check) co_return co_await look_at_control_plane_nodes();
    const std::function<void(api::accelerator_node)> note = [this](api::accelerator_node status) {
      if (const auto match = enrolled_.find(status.key.name); match != enrolled_.end())
        match->second = state_of(status.mode);
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
      const auto state = row.reason.empty()
                             ? text::phrase{row.is}
                             : text::phrase{"uninstall.phase", {{"phase", row.is}, {"message", row.reason}}};
      enrolled_.insert_or_assign(node, text::phrase{"uninstall.scheduler", {{"state", state}}});
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
      line({"uninstall.not_enrolled"});
      return {};
    }
    rc_ = 3;
    return ended_by(counted_with(enrolled_.size(), "uninstall.enrolled", {{"examples", examples()}}));
  }

  kube::result<void> refuse(const std::vector<card_user>& users) {
    rc_ = 3;
    std::vector<text::phrase> names;
    for (const auto& [pod, node] : users) names.push_back({"uninstall.user", {{"pod", pod}, {"node", node}}});
    constexpr auto command = "kubectl patch apol default --type merge -p '{\"spec\":{\"removing\":true}}'";
    return ended_by(counted_with(users.size(), "uninstall.in_use",
                                 {{"list", some_of(std::move(names), text::joined_by_commas)}, {"command", command}}));
  }

  kube::task<void> cancel() {
    if (!removing_) {
      line({"uninstall.no_removal"});
      co_return kube::result<void>();
    }
    const auto done = co_await set_removing(false);
    if (done) line({"uninstall.taken_back"});
    co_return done;
  }

  bool wanted() {
    const text::phrase at_once{options_.without_operator ? "uninstall.at_once" : ""};
    const text::phrase with_types{options_.keep_crds ? "" : "uninstall.with_crds"};
    line(counted_with(enrolled_.size(), "uninstall.plan",
                      {{"all", std::to_string(nodes_.size())}, {"at_once", at_once}, {"crds", with_types}}));
    if (!written_.empty()) {
      out_ << say_.message(options_.keep_crds ? "uninstall.written_stays" : "uninstall.written_goes",
                           {{"objects", words_of(summary_of(written_), say_.locale())}})
           << (written_.quotas.empty() ? "." : ":") << "\n"
           << list_of_quotas(written_, say_.locale());
      if (!options_.keep_crds) {
        const auto* types = written_.quotas.empty() ? "apol,acceleratorusages" : "apol,aq,acceleratorusages";
        line({"uninstall.copy",
              {{"command", "kubectl get " + std::string(types) + " -A -o yaml > quartermaster.yaml"}}});
      }
      out_ << std::flush;
    }
    if (agreed(options_.yes, say_, out_)) return true;
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
    line({"uninstall.leaving"});
    const auto began = clock::now();
    const auto at_first = enrolled_.size();
    text::phrase last_line;
    auto said_at = clock::time_point();
    while (!enrolled_.empty()) {
      if (lease_.silent_for(options_.lease_patience)) co_return no_operator();
      if (options_.timeout > 0s && clock::now() - began > options_.timeout)
        co_return ended_by(counted_with(enrolled_.size(), "uninstall.late", {{"examples", examples()}}));
      const bool is_silent = lease_.last && lease_.silent_for(std::chrono::seconds(lease_.last->duration_seconds));
      text::phrase progress{"uninstall.progress",
                            {{"gone", std::to_string(at_first - std::min(at_first, enrolled_.size()))},
                             {"all", std::to_string(at_first)},
                             {"examples", examples()},
                             {"note", text::phrase{is_silent ? "uninstall.silent" : ""}}}};
      if (progress != last_line || clock::now() - said_at > say_again) {
        out_ << "  ";
        line(progress);
        last_line = std::move(progress);
        said_at = clock::now();
      }
      co_await controller::sleep_for(look_again);
      const auto seen = co_await look();
      if (!seen) co_return seen;
      if (const auto still = not_taken_back(); !still) co_return still;
    }
    line({"uninstall.all_left"});
    co_return kube::result<void>();
  }

  kube::result<void> no_operator() {
    return ended_by({"uninstall.no_operator", {{"lease", ns_.empty() ? "quartermaster" : ns_ + "/quartermaster"}}});
  }

  /// Someone may have called --cancel meanwhile.
  kube::result<void> not_taken_back() {
    if (!has_policy_ || removing_) return {};
    return ended_by({"uninstall.cancelled"});
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
      line({is_console ? "uninstall.console_stopped" : "uninstall.operator_stopped", {{"name", key.to_string()}}});
    }
    bool announced = false;
    const auto began = clock::now();
    for (;;) {
      const auto seen = co_await look_at_lease();
      if (!seen) co_return seen;
      if (!lease_.last || lease_.silent_for(std::chrono::seconds(lease_.last->duration_seconds) + 1s)) break;
      if (clock::now() - began > options_.lease_patience)
        co_return ended_by({"uninstall.outside", {{"holder", lease_.last->holder}, {"lease", ns_ + "/quartermaster"}}});
      if (!announced) {
        line({"uninstall.stopping", {{"holder", lease_.last->holder}}});
        announced = true;
      }
      co_await controller::sleep_for(look_again);
    }
    co_return kube::result<void>();
  }

  text::phrase examples() const {
    std::vector<text::phrase> out;
    for (const auto& [name, state] : enrolled_)
      out.push_back(state.empty() ? text::phrase{name}
                                  : text::phrase{"uninstall.example", {{"name", name}, {"state", state}}});
    return some_of(std::move(out), text::joined_by_semicolons);
  }

  void report(const std::vector<removed_objects>& removals) {
    for (const auto& removal : removals) line({"uninstall.removed", {{"objects", removal.summary}}});
  }

  kube::transport& transport_;
  kube::client api_;
  const uninstall_options& options_;
  std::ostream& out_;
  const bilingual say_;
  text::phrase problem_;
  std::string ns_, release_;
  std::set<std::string> nodes_;
  written_objects written_;
  std::map<std::string, text::phrase> enrolled_;  ///< node -> what it is at
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
  text::phrase problem;
  const auto result = ask_cluster(options.cluster, [&](kube::transport& transport) -> kube::task<void> {
    removal work(transport, options, out);
    auto done = co_await work.run();
    rc = work.rc();
    problem = work.problem();
    if (!done && options.if_idle && !options.ns.empty()) co_await work.record(done.error().message);
    co_return done;
  });
  if (result) return rc;
  if (problem.empty()) problem = phrase_without_grants(result.error());
  return failed(problem, bilingual(options.language).locale(), err, rc != 0 ? rc : 1);
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
  add_language(*verb, options->language);
  add_cluster_options(*verb, options->cluster);
  verb->footer(std::string(uninstall_examples));
  verb->callback([options, seconds, &rc] {
    options->timeout = std::chrono::seconds(*seconds);
    rc = run_uninstall(*options, std::cout, std::cerr);
  });
}

}  // namespace cli
