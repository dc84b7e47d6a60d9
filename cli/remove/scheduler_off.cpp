#include "cli/remove/scheduler_off.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "api/names.hpp"
#include "cli/cluster/operator_lease.hpp"
#include "cli/remove/stranded.hpp"
#include "cli/verbs.hpp"
#include "kube/client.hpp"
#include "reconcilers/plugins/policy_status.hpp"

namespace cli {
namespace {

namespace names = reconcilers::names;
using nlohmann::json;
using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;
using kube::resources::accelerator_policies;
using kube::resources::resource_rules;

const kube::object_key policy_key{{}, std::string(names::policy)};
constexpr auto say_again = 30s;
constexpr std::string_view may_be_recreated = "--recreate-owned lets its owner recreate it";

kube::error failure(std::string message) { return {kube::errc::timeout, 0, std::move(message), std::nullopt}; }

std::string text_at(const json& object, const char* pointer) {
  const json::json_pointer location(pointer);
  return object.contains(location) && object[location].is_string() ? object[location].get<std::string>()
                                                                   : std::string();
}

std::string pods_that_wait(std::size_t number) {
  return std::to_string(number) + (number == 1 ? " pod waits" : " pods wait");
}

class switching_off {
 public:
  switching_off(kube::transport& transport, const scheduler_off_options& options, std::ostream& out)
      : transport_(transport), api_(transport), options_(options), out_(out), waiting_(transport) {}

  int rc() const { return rc_; }

  kube::task<void> run() {
    const auto seen = co_await look();
    if (!seen) co_return seen;
    if (off() && waiting_.pods().empty()) {
      out_ << "it is off: spec.scheduler.mode is " << mode_ << ", and no pod waits for the scheduler "
           << names::scheduler_name << std::endl;
      co_return kube::result<void>();
    }
    tell_what_comes();
    if (!agreed(options_.yes, out_)) {
      rc_ = 1;
      co_return kube::result<void>();
    }
    const auto done = co_await ask();
    if (!done) co_return done;
    co_return co_await watch();
  }

 private:
  /// The policy and what the operator says of it, whether pods are sent, who waits, and whether an operator works.
  kube::task<void> look() {
    const auto policy = co_await api_.get(accelerator_policies, policy_key);
    if (!policy) co_return std::unexpected(policy.error());
    mode_ = text_at(*policy, "/spec/scheduler/mode");
    if (mode_.empty()) mode_ = "None";
    const auto generation = policy->value("/metadata/generation"_json_pointer, std::int64_t{0});
    current_ = policy->value("/status/observedGeneration"_json_pointer, std::int64_t{0}) >= generation;
    rows_ = policy->value("/status/schedulers"_json_pointer, json::array());
    says_.reset();
    for (const auto& entry : policy->value("/status/conditions"_json_pointer, json::array()))
      if (text_at(entry, "/type") == reconcilers::scheduler_ready)
        says_ = text_at(entry, "/reason") + ": " + text_at(entry, "/message");
    const kube::object_key rules_key{{}, "default"};
    const auto rules = co_await api_.get(resource_rules, rules_key);
    if (!rules && rules.error().code != kube::errc::not_found) co_return std::unexpected(rules.error());
    const bool sent = rules && text_at(*rules, "/metadata/labels/quartermaster.io~1scheduler") == "Dedicated";
    if (sent) quiet_since_.reset();
    if (!sent && !quiet_since_) quiet_since_ = clock::now();
    const auto waiting = co_await waiting_.look();
    if (!waiting) co_return waiting;
    auto lease = co_await find_lease(transport_, {});
    if (!lease) co_return std::unexpected(lease.error());
    lease_.see(std::move(*lease));
    co_return kube::result<void>();
  }

  /// The operator says nothing of a scheduler any more, and that is of the policy as it is now.
  bool off() const { return mode_ == "None" && current_ && !says_; }
  bool learned() const { return quiet_since_ && clock::now() - *quiet_since_ >= options_.learn; }

  void tell_what_comes() {
    out_ << "spec.scheduler.mode is " << mode_ << (mode_ == "None" ? "" : " and becomes None")
         << ": new pods that ask for accelerators go to the cluster's own scheduler"
         << (mode_ == "StaticPod" ? ", which does not ask the extender any more" : "") << "; "
         << pods_that_wait(waiting_.pods().size()) << " for the scheduler " << names::scheduler_name
         << (waiting_.pods().empty() ? "" : ":") << std::endl;
    waiting_.tell(out_, options_.recreate_owned ? "it is deleted once no more are sent, and its owner recreates it"
                                                : may_be_recreated);
  }

  kube::task<void> ask() {
    if (mode_ == "None") co_return kube::result<void>();
    const json patch = {{"spec", {{"scheduler", {{"mode", "None"}}}}}};
    const auto done = co_await api_.patch(accelerator_policies, policy_key, kube::patch_kind::merge, patch);
    if (!done) co_return std::unexpected(done.error());
    out_ << "spec.scheduler.mode is None (Ctrl-C stops watching, not the operator; call again to go on)" << std::endl;
    co_return kube::result<void>();
  }

  kube::task<void> watch() {
    const auto began = clock::now();
    bool settled = false;
    for (;;) {
      const auto seen = co_await look();
      if (!seen) co_return seen;
      if (mode_ != "None") co_return std::unexpected(failure("someone has set spec.scheduler.mode to " + mode_));
      if (learned() && !settled && !waiting_.pods().empty()) {
        const auto done = co_await settle();
        if (!done) co_return done;
        settled = true;
        continue;
      }
      if (off() && (settled || waiting_.pods().empty())) break;
      if (lease_.silent_for(options_.lease_patience))
        co_return std::unexpected(
            failure("no operator renews the lease quartermaster, so that nothing is switched off: "
                    "start it; this goes on when it is called again"));
      if (options_.timeout > 0s && clock::now() - began > options_.timeout) {
        tell_what_is_left();
        rc_ = 3;
        co_return kube::result<void>();
      }
      progress();
      boost::asio::steady_timer pause(co_await boost::asio::this_coro::executor, options_.look_every);
      co_await pause.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    }
    out_ << "it is off: nothing of it is left" << std::endl;
    if (!waiting_.pods().empty()) rc_ = 3;
    co_return kube::result<void>();
  }

  /// Once: no pod is sent any more, so what waits now is what is left.
  kube::task<void> settle() {
    if (options_.recreate_owned) {
      const auto removed = co_await waiting_.recreate();
      if (!removed) co_return std::unexpected(removed.error());
      out_ << recreated(*removed) << std::endl;
    }
    if (waiting_.any_to_stay() || !options_.recreate_owned)
      out_ << "left for the scheduler " << names::scheduler_name
           << ", which stays until they have a node or are gone:" << std::endl;
    waiting_.tell(out_, options_.recreate_owned ? "" : may_be_recreated);
    co_return kube::result<void>();
  }

  /// Time is up: who waits, what the status has of kube-schedulers, and who would have to take that out.
  void tell_what_is_left() {
    out_ << "it is not off yet" << std::endl;
    if (!waiting_.pods().empty()) {
      out_ << pods_that_wait(waiting_.pods().size()) << " still for the scheduler " << names::scheduler_name
           << ", which stays until none does" << std::endl;
      waiting_.tell(out_, options_.recreate_owned ? "came later: call again" : may_be_recreated);
    }
    bool by_agents = false;
    for (const auto& row : rows_) {
      by_agents = by_agents || text_at(row, "/mode") == "StaticPod";
      const auto message = text_at(row, "/message");
      out_ << "still there: kube-scheduler " << text_at(row, "/name") << " (" << text_at(row, "/mode")
           << "): " << text_at(row, "/reason") << (message.empty() ? "" : ": " + message) << std::endl;
    }
    if (by_agents)
      out_ << "only the agents (DaemonSet quartermaster-static-pod) take it out of a control-plane node's "
              "kube-scheduler, and only "
              "an operator that leads sees that: both have to run"
           << std::endl;
    else if (waiting_.pods().empty())
      out_ << "an operator that leads switches it off: it has to run" << std::endl;
  }

  void progress() {
    auto line = "  " + pods_that_wait(waiting_.pods().size()) + (says_ ? "; " + *says_ : std::string());
    if (line == last_line_ && clock::now() - said_at_ < say_again) return;
    out_ << line << std::endl;
    last_line_ = std::move(line);
    said_at_ = clock::now();
  }

  kube::transport& transport_;
  kube::client api_;
  const scheduler_off_options& options_;
  std::ostream& out_;
  stranded waiting_;
  std::string mode_;
  bool current_ = false;                          ///< the status is of this policy
  json rows_;                                     ///< status.schedulers
  std::optional<std::string> says_;               ///< the condition SchedulerReady; empty: there is none
  std::optional<clock::time_point> quiet_since_;  ///< the API server has been asked to send no pod
  pulse lease_;
  std::string last_line_;
  clock::time_point said_at_;
  int rc_ = 0;
};

constexpr std::string_view example = R"(Examples:
  $ quartermaster scheduler off                    # no new pod is sent to it; it stays until no pod waits for it
  $ quartermaster scheduler off --recreate-owned   # and pods that wait are deleted where an owner recreates them

A pod keeps the scheduler it was made with: schedulerName cannot be changed. Left alone are pods without an owner, pods
whose owner's template names the scheduler (the output says which to edit), pods of a Job that would count as failed,
pods of types that are not Kubernetes' own, and pods that get a node meanwhile. Each pod is deleted once at most.
Exit codes: 0 it is off, 1 failed, 2 wrong usage, 3 it is not off yet, or pods still wait for it.)";

}  // namespace

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

kube::task<void> switch_scheduler_off(kube::transport& transport, const scheduler_off_options& options,
                                      std::ostream& out, int& rc) {
  switching_off work(transport, options, out);
  auto done = co_await work.run();
  rc = work.rc();
  co_return done;
}

int run_scheduler_off(const scheduler_off_options& options, std::ostream& out, std::ostream& err) {
  int rc = 0;
  const auto result = ask_cluster(
      options.cluster, [&](kube::transport& transport) { return switch_scheduler_off(transport, options, out, rc); });
  if (result) return rc;
  err << "quartermaster: " << result.error().message << "\n";
  return 1;
}

void add_scheduler(CLI::App& app, int& rc) {
  auto* verb = app.add_subcommand("scheduler", "The kube-scheduler that the operator runs next to the cluster's own");
  verb->require_subcommand(1);
  verb->footer("Exit codes: those of the verb. Documentation: docs/scheduling.md");
  auto* subcommand = verb->add_subcommand("off", "Switch it off, and say which pods still wait for it");
  auto options = std::make_shared<scheduler_off_options>();
  subcommand->add_flag("--recreate-owned", options->recreate_owned,
                       "Delete pods that wait for it where their owner recreates them, for another scheduler");
  subcommand->add_flag("-y,--yes", options->yes, "Do not ask");
  auto seconds = std::make_shared<int>(0);
  subcommand->add_option("--timeout", *seconds, "Seconds until nothing of it is left; 0: as long as it takes")
      ->check(CLI::Range(0, 604800))
      ->capture_default_str();
  add_cluster_options(*subcommand, options->cluster);
  subcommand->footer(std::string(example));
  subcommand->callback([options, seconds, &rc] {
    options->timeout = std::chrono::seconds(*seconds);
    rc = run_scheduler_off(*options, std::cout, std::cerr);
  });
}

}  // namespace cli
