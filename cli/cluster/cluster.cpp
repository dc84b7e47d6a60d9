#include "cli/cluster/cluster.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/cluster/foreign_server.hpp"
#include "cli/flags/flags.hpp"
#include "cli/flags/usage.hpp"
#include "controller/sleep.hpp"
#include "kube/client.hpp"
#include "kube/config_fault.hpp"
#include "kube/curl_transport.hpp"
#include "kube/status.hpp"
#include "reconcilers/declarations/declaration.hpp"
#include "reconcilers/declarations/declared_config_map.hpp"
#include "text/quotation.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

constexpr int most_tries = 10;

std::expected<kube::cluster_config, text::phrase> config_of(const cluster_options& options) {
  kube::config_options config_options;
  config_options.kubeconfig = options.kubeconfig;
  config_options.context = options.context;
  auto out = kube::config_in_words(config_options);
  if (!out || options.person.empty()) return out;
  out->user.as_user = options.person, out->user.as_groups = options.groups;
  out->user.as_uid.clear(), out->user.as_extra.clear();
  return out;
}

std::unexpected<cluster_error> wrong_config(text::phrase words) {
  kube::error error{kube::errc::config, 0, words_of(words, text::language::en), std::nullopt};
  return std::unexpected(cluster_error(std::move(error), std::move(words)));
}

/// What was thrown while answers were read. A value of JSON that is of another type than its reader expects is a fault
/// of the server; anything else is one of this program.
cluster_answer misread(const answer_check& transport, const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const nlohmann::json::exception&) {
    auto words = transport.fault({"transport.foreign.type"});
    if (!words) throw;
    kube::error error{kube::errc::decode, 0, words_of(*words, text::language::en), std::nullopt};
    return std::unexpected(cluster_error(std::move(error), std::move(*words)));
  }
}

/// "10s", "500ms", "1m", and as kubectl takes it a bare number of seconds. Nothing: it is no time.
std::optional<std::chrono::milliseconds> time_in(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, text.data() + text.size());
  const std::int64_t scale = unit == "ms" ? 1 : unit.empty() || unit == "s" ? 1'000 : unit == "m" ? 60'000 : 0;
  if (problem != std::errc() || scale == 0 || number < 0 || number > 3'600) return {};
  return std::chrono::milliseconds(number * scale);
}

}  // namespace

void add_cluster_options(CLI::App& verb, cluster_options& options) {
  add_kubeconfig_options(verb, options);
  auto* person = add_option(verb, "--as", options.person, "Ask as this user; system:serviceaccount:NAMESPACE:NAME too")
                     ->check(not_empty());
  add_option(verb, "--as-group", options.groups, "Ask as a member of this group; may be repeated")
      ->needs(person)
      ->expected(1)
      ->take_all();
  add_option(verb, "--request-timeout", options.deadline, "Of one request, for example 10s or 500ms; 0 is the default")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return time_in(text) ? std::string() : refusal("usage.no_time", text::shown(text));
          },
          ""));
}

void add_kubeconfig_options(CLI::App& verb, cluster_options& options) {
  add_option(verb, "--kubeconfig", options.kubeconfig,
             "kubeconfig file; without it $KUBECONFIG, the pod's service account, ~/.kube/config, in this order")
      ->type_name("FILE");
  add_option(verb, "--context", options.context, "Context of the kubeconfig; without it its current-context");
}

void add_namespace_scope(CLI::App& verb, namespace_scope& scope, std::string help) {
  add_namespace_filter(verb, scope.ns, std::move(help));
  const auto choose_all = [&scope] { scope = {{}, true}; };
  verb.add_flag_callback("-A,--all-namespaces", choose_all, "All namespaces, whatever -n says");
}

text::phrase own_namespace(const std::string& ns) { return {"transport.own_namespace", {{"namespace", ns}}}; }

std::string namespace_of(const cluster_options& options) {
  const auto cluster = config_of(options);
  return cluster && !cluster->ns.empty() ? cluster->ns : "default";
}

cluster_answer ask_cluster(const cluster_options& options,
                           const std::function<kube::task<void>(kube::transport&)>& work) {
  auto cluster = config_of(options);
  if (!cluster) return wrong_config(std::move(cluster.error()));
  if (auto fault = kube::fault_of_credentials(*cluster); !fault.empty()) return wrong_config(std::move(fault));
  boost::asio::io_context loop(1);
  kube::transport_options limits;
  if (const auto deadline = time_in(options.deadline); deadline && deadline->count() > 0)
    limits.unary_deadline = limits.connect_limit = *deadline;
  kube::curl_transport connection(loop.get_executor(), *cluster, limits);
  answer_check transport(connection, *cluster);
  cluster_answer out;
  std::exception_ptr thrown;
  boost::asio::co_spawn(loop, work(transport), [&](std::exception_ptr bug, kube::result<void> result) {
    thrown = bug;
    if (!result) out = std::unexpected(cluster_error(std::move(result.error())));
    loop.stop();
  });
  loop.run();
  if (thrown) return misread(transport, thrown);
  if (!out && out.error().code == kube::errc::decode)
    out.error().words = transport.fault(text::quotation_of(out.error().message)).value_or(text::phrase());
  return out;
}

kube::task<kube::response> send_patiently(kube::transport& transport, std::string operation, kube::request request) {
  for (int tries = 1;; ++tries) {
    auto answer = co_await transport.send(request);
    if (!answer) {
      answer.error().message = operation + ": " + answer.error().message;
      co_return std::unexpected(std::move(answer.error()));
    }
    const bool later = (answer->status == 429 || answer->status >= 500) && answer->retry_after && tries < most_tries;
    if (!later && !kube::succeeded(answer->status)) co_return std::unexpected(kube::error_of(operation, *answer));
    if (!later) co_return answer;
    co_await controller::sleep_for(answer->retry_after.value_or(std::chrono::seconds(1)));
  }
}

kube::task<declared_resources> read_declared(kube::transport& transport, std::string ns) {
  namespace names = reconcilers::declarations::names;
  declared_resources out;
  std::map<kube::object_key, kube::config_map> found;  // one with the labels of both domains comes twice
  using reconcilers::declarations::declared_config_map;
  const std::function<void(declared_config_map)> keep = [&](declared_config_map config_map) {
    found.insert_or_assign(config_map.key, std::move(config_map));
  };
  for (const auto selector : {names::alauda_selector, names::cpaas_selector, names::device_selector}) {
    kube::list_options options;
    options.ns = ns;
    options.label_selector = selector;
    options.limit = declared_config_map::page;
    const auto listed = co_await list_each<declared_config_map>(transport, options, keep);
    if (!listed) co_return std::unexpected(listed.error());
  }
  for (auto& [key, config_map] : found) out.config_maps.push_back(std::move(config_map));

  kube::client api(transport);
  const auto classes = co_await api.list(kube::resources::runtime_classes, kube::list_options());
  if (classes) {
    auto& known = out.runtime_classes.emplace();
    for (const auto& entry : *classes) {
      const auto name = entry.value("/metadata/name"_json_pointer, nlohmann::json());
      if (name.is_string()) known.insert(name.get<std::string>());
    }
  }
  co_return out;
}

}  // namespace cli
