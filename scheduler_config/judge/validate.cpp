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

namespace reconcilers::scheduler_config {
namespace {

using yaml::node;
constexpr std::int64_t second = 1'000'000'000;

class validator {
 public:
  explicit validator(judging& in) : in_(in) {}

  void run() {
    const auto* root = in_.of.root;
    at_least(root, "parallelism", "", 1);
    percentage(root, "");
    at_least(in_.value(root, "clientConnection"), "burst", "clientConnection", 0);
    at_least(root, "podInitialBackoffSeconds", "", 1);
    backoff();
    election();
    kubeconfig();
    profiles();
    extenders();
  }

 private:
  void range(const node* of, std::string_view key, const std::string& path, std::int64_t from, std::int64_t to,
             const std::string& allowed) {
    const auto* at = in_.entry(of, key);
    const auto number = at ? integer_of(at->value) : std::nullopt;
    if (number && (*number < from || *number > to)) in_.say(refused_value(*at, below(path, key), allowed));
  }
  void at_least(const node* of, std::string_view key, const std::string& path, std::int64_t from) {
    range(of, key, path, from, INT64_MAX, std::to_string(from) + " or more");
  }
  void percentage(const node* of, const std::string& path) {
    range(of, "percentageOfNodesToScore", path, 0, 100, "0 to 100");
  }

  void backoff() {
    const auto* root = in_.of.root;
    const auto first = integer_of(in_.value(root, "podInitialBackoffSeconds")).value_or(1);
    const auto* longest = in_.entry(root, "podMaxBackoffSeconds");
    const auto most_seconds = longest ? integer_of(longest->value).value_or(10) : 10;
    if (first <= 0 || most_seconds >= first) return;
    const auto* at = longest ? longest : in_.entry(root, "podInitialBackoffSeconds");
    in_.say({.what = code::backoff_order,
             .at = at->key->at,
             .field = "podMaxBackoffSeconds",
             .value = std::to_string(most_seconds),
             .other = std::to_string(first)});
  }

  void election() {
    const auto* of = in_.value(in_.of.root, "leaderElection");
    const auto* elect = in_.value(of, "leaderElect");
    if (elect && yaml::canonical(*elect) == "false") return;
    if (const auto* lock = in_.entry(of, "resourceLock");
        lock && !lock->value->text.empty() && lock->value->text != "leases")
      in_.say({.what = code::resource_lock,
               .at = lock->key->at,
               .field = "leaderElection.resourceLock",
               .value = shown_value(*lock->value)});
    for (const auto* key : {"leaseDuration", "renewDeadline", "retryPeriod"}) {
      const auto* at = in_.entry(of, key);
      if (at && duration_of(in_, of, key, 1) < 0) return lease(*at, key, "more than 0");
    }
    const auto lasts = duration_of(in_, of, "leaseDuration", 15 * second);
    const auto renews = duration_of(in_, of, "renewDeadline", 10 * second);
    const auto retries = duration_of(in_, of, "retryPeriod", 2 * second);
    if (lasts <= renews) {
      const auto* at = in_.entry(of, "leaseDuration");
      const auto* other = in_.entry(of, "renewDeadline");
      if (at)
        lease(*at, "leaseDuration", "more than renewDeadline (" + std::to_string(renews / second) + "s)");
      else if (other)
        lease(*other, "renewDeadline", "less than leaseDuration (" + std::to_string(lasts / second) + "s)");
      return;
    }
    // client-go's leaderelection.NewLeaderElector: renewDeadline > 1.2 x retryPeriod, or the process ends.
    if (static_cast<double>(renews) <= 1.2 * static_cast<double>(retries)) {
      const auto* at = in_.entry(of, "retryPeriod");
      if (!at) at = in_.entry(of, "renewDeadline");
      if (at) lease(*at, at->key->text, "renewDeadline more than 1.2 times retryPeriod");
    }
  }
  void lease(const node::entry& at, std::string_view key, std::string allowed) {
    in_.say({.what = code::lease_times,
             .at = at.key->at,
             .field = "leaderElection." + std::string(key),
             .value = shown_value(*at.value),
             .allowed = std::move(allowed)});
  }

  void kubeconfig() {
    if (in_.on.in_cluster) return;
    const auto* connection = in_.value(in_.of.root, "clientConnection");
    if (in_.was_refused(in_.of.root, "clientConnection") || in_.was_refused(connection, "kubeconfig") ||
        !in_.text(connection, "kubeconfig").empty())
      return;
    const auto* at = yaml::find_entry(in_.of.root, "clientConnection");
    in_.say({.what = code::no_kubeconfig,
             .at = at ? at->key->at : in_.of.root->at,
             .field = "clientConnection.kubeconfig"});
  }

  // ---- profiles ----
  void profiles() {
    const auto all = in_.items(in_.of.root, "profiles");
    std::map<std::string, std::size_t> names;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto path = below("profiles", i);
      name(all, i, path, names);
      percentage(all[i], path);
      const auto enabled = validate_plugins(in_, all[i], path);
      plugin_config(all[i], path, enabled);
      if (i > 0) same_queue(all[0], all[i], path);
    }
  }
  void name(const std::vector<const node*>& all, std::size_t i, const std::string& path,
            std::map<std::string, std::size_t>& names) {
    const auto* at = in_.entry(all[i], "schedulerName");
    if (in_.was_refused(all[i], "schedulerName")) return;
    auto is = at ? at->value->text : std::string();
    if (!at && all.size() == 1) is = "default-scheduler";
    if (is.empty()) {
      in_.say({.what = code::scheduler_name_missing,
               .at = at ? at->key->at : all[i]->at,
               .field = below(path, "schedulerName"),
               .hint = names.contains("default-scheduler") ? "NAME" : "default-scheduler"});
      return;
    }
    const auto [first, fresh] = names.emplace(is, i);
    if (!fresh)
      in_.say({.what = code::scheduler_name_twice,
               .at = at->key->at,
               .field = below(path, "schedulerName"),
               .value = is,
               .other = below("profiles", first->second)});
  }
  void plugin_config(const node* profile, const std::string& path, const std::set<std::string>& enabled) {
    const auto configs = in_.items(profile, "pluginConfig");
    std::set<std::string> seen;
    for (std::size_t i = 0; i < configs.size(); ++i) {
      const auto where = below(below(path, "pluginConfig"), i);
      const auto plugin = in_.text(configs[i], "name");
      if (!seen.insert(plugin).second) {
        in_.say(
            {.what = code::plugin_config_twice, .at = configs[i]->at, .field = below(where, "name"), .value = plugin});
        continue;
      }
      const auto* args = in_.value(configs[i], "args");
      if (args_of(plugin, in_.on.minor) && args && args->mapping())
        validate_args(in_, plugin, args, below(where, "args"), enabled.contains(plugin));
    }
  }
  /// Reads as much as can differ: the names in their order. PrioritySort takes no arguments.
  std::string queue_of(const node* profile) const {
    const auto* set = in_.value(in_.value(profile, "plugins"), "queueSort");
    std::string out;
    for (const auto* part : {"enabled", "disabled"}) {
      out += part;
      for (const auto* one : in_.items(set, part)) out += " " + in_.text(one, "name");
    }
    return out;
  }
  void same_queue(const node* first, const node* other, const std::string& path) {
    if (queue_of(first) == queue_of(other)) return;
    const auto* plugins = in_.value(other, "plugins");
    const auto* at = yaml::find_entry(plugins, "queueSort");
    in_.say({.what = code::queue_sort, .at = at ? at->key->at : other->at, .field = below(path, "plugins.queueSort")});
  }

  // ---- extenders ----
  void extenders() {
    const auto all = in_.items(in_.of.root, "extenders");
    std::string binder;
    std::map<std::string, std::string> managed;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto path = below("extenders", i);
      weight(all[i], path);
      if (const auto* at = in_.entry(all[i], "bindVerb"); at && !at->value->text.empty()) {
        if (!binder.empty())
          in_.say({.what = code::two_binders, .at = at->key->at, .field = below(path, "bindVerb"), .other = binder});
        else
          binder = path;
      }
      const auto resources = in_.items(all[i], "managedResources");
      for (std::size_t j = 0; j < resources.size(); ++j) {
        const auto where = below(below(path, "managedResources"), j);
        resource(resources[j], where, path, managed);
      }
      certificates(in_.value(all[i], "tlsConfig"), below(path, "tlsConfig"));
    }
  }
  void weight(const node* of, const std::string& path) {
    if (in_.text(of, "prioritizeVerb").empty() || in_.was_refused(of, "weight")) return;
    const auto* at = in_.entry(of, "weight");
    const auto is = at ? integer_of(at->value).value_or(1) : 0;
    if (is > 0) return;
    const auto* verb = in_.entry(of, "prioritizeVerb");
    in_.say({.what = code::weight_zero,
             .at = (at ? at : verb)->key->at,
             .field = below(path, "weight"),
             .value = std::to_string(is)});
  }
  void resource(const node* of, const std::string& where, const std::string& extender,
                std::map<std::string, std::string>& managed) {
    if (in_.refused.contains(of) || in_.was_refused(of, "name")) return;
    const auto* at = in_.entry(of, "name");
    const auto is = at ? at->value->text : std::string();
    const auto place = at ? at->key->at : of->at;
    if (!crl::is_extended_resource(is)) {
      in_.say({.what = code::managed_name, .at = place, .field = below(where, "name"), .value = is, .hint = meant(is)});
      return;
    }
    const auto [first, fresh] = managed.emplace(is, extender);
    if (!fresh)
      in_.say({.what = code::managed_twice,
               .at = place,
               .field = below(where, "name"),
               .value = is,
               .other = first->second == extender ? "the same extender" : first->second});
  }
  static std::string meant(std::string_view is) {
    for (const auto& one : managed_keys) {
      if (!is.empty() && one.key.ends_with("/" + std::string(is))) return std::string(one.key);
    }
    return {};
  }

  /// client-go transport.TLSConfigFor, with what stands in the file itself; files are the static pod's matter.
  void certificates(const node* of, const std::string& path) {
    if (!of) return;
    const auto given = [&](const char* key) { return !in_.text(of, key).empty(); };
    const bool authority = given("caData") || given("caFile");
    if (in_.flag(of, "insecure") && authority) {
      in_.say(
          {.what = code::insecure_with_ca, .at = in_.entry(of, "insecure")->key->at, .field = below(path, "insecure")});
      return;
    }
    const auto read = [&](const char* key) { return kube::base64_decode(in_.text(of, key)).value_or(std::string()); };
    const auto ca = read("caData"), certificate = read("certData"), key = read("keyData");
    if (!ca.empty() && controller::x509::read(ca).empty()) say_at(code::certificate_not_pem, of, "caData", path);
    const bool pair = (given("certData") || given("certFile")) && (given("keyData") || given("keyFile"));
    if (!pair) return;
    if (!certificate.empty() && controller::x509::read(certificate).empty())
      say_at(code::certificate_not_pem, of, "certData", path);
    else if (!key.empty() && !key.contains("PRIVATE KEY-----"))
      say_at(code::certificate_not_pem, of, "keyData", path);
    else if (!certificate.empty() && !key.empty() && !controller::x509::belongs({certificate, key}))
      say_at(code::key_of_other_certificate, of, "keyData", path);
  }
  void say_at(code what, const node* of, const char* key, const std::string& path) {
    in_.say({.what = what, .at = in_.entry(of, key)->key->at, .field = below(path, key)});
  }

  judging& in_;
};

}  // namespace

finding refused_value(const node::entry& at, std::string_view field, std::string allowed) {
  return {.what = code::value_refused,
          .at = at.key->at,
          .field = std::string(field),
          .value = shown_value(*at.value),
          .allowed = std::move(allowed)};
}

std::int64_t duration_of(const judging& in, const node* of, std::string_view key, std::int64_t otherwise) {
  const auto* at = in.value(of, key);
  const auto read = at ? parse_duration(at->text) : std::nullopt;
  return read && *read != 0 ? *read : otherwise;
}

void validate(judging& in) { validator(in).run(); }

}  // namespace reconcilers::scheduler_config
