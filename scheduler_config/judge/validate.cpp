// k8s.io/kubernetes pkg/scheduler/apis/config/validation, after the defaults of config/v1 are filled in.

#include <algorithm>
#include <map>

#include "controller/x509.hpp"
#include "kube/config.hpp"
#include "scheduler_config/judge/judging.hpp"
#include "scheduler_config/managed.hpp"
#include "text/nearest.hpp"
#include "text/resource_name.hpp"
#include "text/text.hpp"

namespace scheduler_config {
namespace {

using text::yaml::node;
constexpr std::int64_t second = 1'000'000'000;

class validator {
 public:
  explicit validator(judging& judging) : judging_(judging) {}

  void run() {
    const auto* root = judging_.config.root;
    at_least(root, "parallelism", "", 1);
    percentage(root, "");
    at_least(judging_.value(root, "clientConnection"), "burst", "clientConnection", 0);
    at_least(root, "podInitialBackoffSeconds", "", 1);
    backoff();
    election();
    kubeconfig();
    profiles();
    extenders();
  }

 private:
  void range(const node* node, std::string_view key, const std::string& path, std::int64_t minimum,
             std::int64_t maximum, const text::phrase& allowed) {
    const auto* position = judging_.entry(node, key);
    const auto number = position ? integer_of(position->value) : std::nullopt;
    if (number && (*number < minimum || *number > maximum))
      judging_.say(refused_value(*position, below(path, key), allowed));
  }
  void at_least(const node* node, std::string_view key, const std::string& path, std::int64_t minimum) {
    range(node, key, path, minimum, INT64_MAX, scheduler_config::at_least(std::to_string(minimum)));
  }
  void percentage(const node* node, const std::string& path) {
    range(node, "percentageOfNodesToScore", path, 0, 100, between("0", "100"));
  }

  void backoff() {
    const auto* root = judging_.config.root;
    const auto first = integer_of(judging_.value(root, "podInitialBackoffSeconds")).value_or(1);
    const auto* longest = judging_.entry(root, "podMaxBackoffSeconds");
    const auto most_seconds = longest ? integer_of(longest->value).value_or(10) : 10;
    if (first <= 0 || most_seconds >= first) return;
    const auto* position = longest ? longest : judging_.entry(root, "podInitialBackoffSeconds");
    judging_.say({.issue = code::backoff_order,
                  .location = position->key->location,
                  .field = "podMaxBackoffSeconds",
                  .value = std::to_string(most_seconds),
                  .other = std::to_string(first)});
  }

  void election() {
    const auto* leader_election = judging_.value(judging_.config.root, "leaderElection");
    const auto* elect = judging_.value(leader_election, "leaderElect");
    const auto& flags = judging_.scheduler.election;
    if (flags.is_off || (elect && text::yaml::canonical(*elect) == "false")) return;
    if (const auto* lock = judging_.entry(leader_election, "resourceLock");
        lock && !lock->value->text.empty() && lock->value->text != "leases")
      judging_.say({.issue = code::resource_lock,
                    .location = lock->key->location,
                    .field = "leaderElection.resourceLock",
                    .value = shown_value(*lock->value),
                    .terms = terms_of(*lock->value)});
    struct period {
      const char* key;
      const std::optional<std::int64_t>& flag;
    };
    for (const auto& [key, flag] : {period{"leaseDuration", flags.lease_duration},
                                    {"renewDeadline", flags.renew_deadline},
                                    {"retryPeriod", flags.retry_period}}) {
      const auto* position = flag ? nullptr : judging_.entry(leader_election, key);
      if (position && duration_of(judging_, leader_election, key, 1) < 0)
        return lease(*position, key, phrase_of(term::more_than_zero));
    }
    const auto lasts = duration_of(judging_, leader_election, "leaseDuration", 15 * second);
    const auto renews = duration_of(judging_, leader_election, "renewDeadline", 10 * second);
    const auto retries = duration_of(judging_, leader_election, "retryPeriod", 2 * second);
    // Where a flag has one of two, judge_flags compares them.
    const bool is_lease_flagged = flags.lease_duration || flags.renew_deadline;
    const bool is_retry_flagged = flags.retry_period || flags.renew_deadline;
    if (!is_lease_flagged && lasts <= renews) {
      const auto* position = judging_.entry(leader_election, "leaseDuration");
      const auto* other = judging_.entry(leader_election, "renewDeadline");
      if (position)
        lease(*position, "leaseDuration",
              phrase_of(term::above_renewal, {{"seconds", std::to_string(renews / second)}}));
      else if (other)
        lease(*other, "renewDeadline", phrase_of(term::below_lease, {{"seconds", std::to_string(lasts / second)}}));
      return;
    }
    // client-go's leaderelection.NewLeaderElector: renewDeadline > 1.2 x retryPeriod, or the process ends.
    if (!is_retry_flagged && static_cast<double>(renews) <= 1.2 * static_cast<double>(retries)) {
      const auto* position = judging_.entry(leader_election, "retryPeriod");
      if (!position) position = judging_.entry(leader_election, "renewDeadline");
      if (position) lease(*position, position->key->text, phrase_of(term::short_retry));
    }
  }
  void lease(const node::entry& entry, std::string_view key, text::phrase allowed) {
    judging_.say({.issue = code::lease_times,
                  .location = entry.key->location,
                  .field = "leaderElection." + std::string(key),
                  .value = shown_value(*entry.value),
                  .allowed = std::move(allowed),
                  .terms = terms_of(*entry.value)});
  }

  void kubeconfig() {
    if (judging_.scheduler.in_cluster) return;
    const auto* connection = judging_.value(judging_.config.root, "clientConnection");
    if (judging_.was_refused(judging_.config.root, "clientConnection") ||
        judging_.was_refused(connection, "kubeconfig") || !judging_.text(connection, "kubeconfig").empty())
      return;
    const auto* position = text::yaml::find_entry(judging_.config.root, "clientConnection");
    judging_.say({.issue = code::no_kubeconfig,
                  .location = position ? position->key->location : judging_.config.root->location,
                  .field = "clientConnection.kubeconfig"});
  }

  // ---- profiles ----
  void profiles() {
    const auto all = judging_.items(judging_.config.root, "profiles");
    std::map<std::string, std::size_t> names;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto path = below("profiles", i);
      name(all, i, path, names);
      percentage(all[i], path);
      const auto enabled = validate_plugins(judging_, all[i], path);
      plugin_config(all[i], path, enabled);
      if (i > 0) same_queue(all[0], all[i], path);
    }
  }
  void name(const std::vector<const node*>& all, std::size_t i, const std::string& path,
            std::map<std::string, std::size_t>& names) {
    const auto* position = judging_.entry(all[i], "schedulerName");
    if (judging_.was_refused(all[i], "schedulerName")) return;
    auto is = position ? position->value->text : std::string();
    if (!position && all.size() == 1) is = "default-scheduler";
    if (is.empty()) {
      judging_.say({.issue = code::scheduler_name_missing,
                    .location = position ? position->key->location : all[i]->location,
                    .field = below(path, "schedulerName"),
                    .hint = names.contains("default-scheduler") ? "NAME" : "default-scheduler"});
      return;
    }
    const auto [first, fresh] = names.emplace(is, i);
    if (!fresh)
      judging_.say({.issue = code::scheduler_name_twice,
                    .location = position->key->location,
                    .field = below(path, "schedulerName"),
                    .value = is,
                    .other = below("profiles", first->second)});
  }
  void plugin_config(const node* profile, const std::string& path, const std::set<std::string>& enabled) {
    const auto configs = judging_.items(profile, "pluginConfig");
    std::set<std::string> seen;
    for (std::size_t i = 0; i < configs.size(); ++i) {
      const auto config_path = below(below(path, "pluginConfig"), i);
      const auto plugin = judging_.text(configs[i], "name");
      if (!seen.insert(plugin).second) {
        judging_.say({.issue = code::plugin_config_twice,
                      .location = configs[i]->location,
                      .field = below(config_path, "name"),
                      .value = plugin});
        continue;
      }
      const auto* args = judging_.value(configs[i], "args");
      if (args_of(plugin, judging_.scheduler.minor) && args && args->mapping())
        validate_args(judging_, plugin, args, below(config_path, "args"), enabled.contains(plugin));
    }
  }
  /// Reads as much as can differ: the names in their order. PrioritySort takes no arguments.
  std::string queue_of(const node* profile) const {
    const auto* set = judging_.value(judging_.value(profile, "plugins"), "queueSort");
    std::string out;
    for (const auto* part : {"enabled", "disabled"}) {
      out += part;
      for (const auto* item : judging_.items(set, part)) out += " " + judging_.text(item, "name");
    }
    return out;
  }
  void same_queue(const node* first, const node* other, const std::string& path) {
    if (queue_of(first) == queue_of(other)) return;
    const auto* plugins = judging_.value(other, "plugins");
    const auto* position = text::yaml::find_entry(plugins, "queueSort");
    judging_.say({.issue = code::queue_sort,
                  .location = position ? position->key->location : other->location,
                  .field = below(path, "plugins.queueSort")});
  }

  // ---- extenders ----
  void extenders() {
    const auto all = judging_.items(judging_.config.root, "extenders");
    std::string binder;
    std::map<std::string, std::string> managed;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto path = below("extenders", i);
      weight(all[i], path);
      if (const auto* position = judging_.entry(all[i], "bindVerb"); position && !position->value->text.empty()) {
        if (!binder.empty())
          judging_.say({.issue = code::two_binders,
                        .location = position->key->location,
                        .field = below(path, "bindVerb"),
                        .other = binder});
        else
          binder = path;
      }
      const auto resources = judging_.items(all[i], "managedResources");
      for (std::size_t j = 0; j < resources.size(); ++j) {
        const auto resource_path = below(below(path, "managedResources"), j);
        resource(resources[j], resource_path, path, managed);
      }
      certificates(judging_.value(all[i], "tlsConfig"), below(path, "tlsConfig"));
    }
  }
  void weight(const node* node, const std::string& path) {
    if (judging_.text(node, "prioritizeVerb").empty() || judging_.was_refused(node, "weight")) return;
    const auto* position = judging_.entry(node, "weight");
    const auto is = position ? integer_of(position->value).value_or(1) : 0;
    if (is > 0) return;
    const auto* verb = judging_.entry(node, "prioritizeVerb");
    judging_.say({.issue = code::weight_zero,
                  .location = (position ? position : verb)->key->location,
                  .field = below(path, "weight"),
                  .value = std::to_string(is)});
  }
  void resource(const node* node, const std::string& path, const std::string& extender,
                std::map<std::string, std::string>& managed) {
    if (judging_.refused.contains(node) || judging_.was_refused(node, "name")) return;
    const auto* position = judging_.entry(node, "name");
    const auto is = position ? position->value->text : std::string();
    const auto place = position ? position->key->location : node->location;
    if (!text::is_extended_resource(is)) {
      judging_.say({.issue = code::managed_name,
                    .location = place,
                    .field = below(path, "name"),
                    .value = is,
                    .hint = meant(is)});
      return;
    }
    const auto [first, fresh] = managed.emplace(is, extender);
    if (fresh) return;
    finding twice{.issue = code::managed_twice,
                  .location = place,
                  .field = below(path, "name"),
                  .value = is,
                  .other = first->second};
    if (first->second == extender) twice.terms = {{"other", phrase_of(term::same_extender)}};
    judging_.say(std::move(twice));
  }
  static std::string meant(std::string_view is) {
    for (const auto& managed_key : managed_keys) {
      if (!is.empty() && managed_key.key.ends_with("/" + std::string(is))) return std::string(managed_key.key);
    }
    return {};
  }

  /// client-go transport.TLSConfigFor, with what stands in the file itself; files are the static pod's matter.
  void certificates(const node* node, const std::string& path) {
    if (!node) return;
    const auto has = [&](const char* key) { return !judging_.text(node, key).empty(); };
    const bool authority = has("caData") || has("caFile");
    if (judging_.flag(node, "insecure") && authority) {
      judging_.say({.issue = code::insecure_with_ca,
                    .location = judging_.entry(node, "insecure")->key->location,
                    .field = below(path, "insecure")});
      return;
    }
    const auto read = [&](const char* key) {
      return kube::base64_decode(judging_.text(node, key)).value_or(std::string());
    };
    const auto ca = read("caData"), certificate = read("certData"), key = read("keyData");
    if (!ca.empty() && controller::x509::read(ca).empty()) say_at(code::certificate_not_pem, node, "caData", path);
    const bool pair = (has("certData") || has("certFile")) && (has("keyData") || has("keyFile"));
    if (!pair) return;
    if (!certificate.empty() && controller::x509::read(certificate).empty())
      say_at(code::certificate_not_pem, node, "certData", path);
    else if (!key.empty() && !key.contains("PRIVATE KEY-----"))
      say_at(code::certificate_not_pem, node, "keyData", path);
    else if (!certificate.empty() && !key.empty() && !controller::x509::belongs({certificate, key}))
      say_at(code::key_of_other_certificate, node, "keyData", path);
  }
  void say_at(code code, const node* node, const char* key, const std::string& path) {
    judging_.say({.issue = code, .location = judging_.entry(node, key)->key->location, .field = below(path, key)});
  }

  judging& judging_;
};

}  // namespace

finding refused_value(const node::entry& entry, std::string_view field, text::phrase allowed) {
  return {.issue = code::value_refused,
          .location = entry.key->location,
          .field = std::string(field),
          .value = shown_value(*entry.value),
          .allowed = std::move(allowed),
          .terms = terms_of(*entry.value)};
}

std::int64_t duration_of(const judging& judging, const node* node, std::string_view key, std::int64_t otherwise) {
  const auto* position = judging.value(node, key);
  const auto read = position ? parse_duration(position->text) : std::nullopt;
  return read && *read != 0 ? *read : otherwise;
}

void validate(judging& judging) { validator(judging).run(); }

}  // namespace scheduler_config
