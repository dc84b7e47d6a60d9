// Text of inspect nodes, modules and pods: columns for people in two languages, JSON and YAML for programs. JSON is
// stable: fields are added, never renamed.

#include <nlohmann/json.hpp>

#include "cli/cluster/card_number.hpp"
#include "cli/inspect/inspect_fleet.hpp"
#include "cli/output/listing.hpp"
#include "controller/clock.hpp"
#include "controller/coded_message.hpp"
#include "text/list.hpp"
#include "text/quotation.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using nlohmann::ordered_json;
using text::shown;

constexpr std::size_t most_shown = 2000;

/// "vcuda-core" of "tencent.com/vcuda-core".
std::string_view short_name(std::string_view resource) { return resource.substr(resource.rfind('/') + 1); }

std::string free_of(const node_row& node_row) {
  std::string out;
  for (const auto& resource : node_row.resources) {
    (out += out.empty() ? "" : ", ") += short_name(resource.name);
    const auto free = resource.free();
    out += " " + (free ? std::to_string(*free) : std::string("?")) + "/" + std::to_string(resource.allocatable);
  }
  return out;
}

std::string cards_of(const node_row& node_row) {
  return card_number(node_row.cards_known ? std::optional(node_row.cards) : std::nullopt, node_row.other_cards);
}

std::string asked_of(const pod_row& pod_row) {
  std::string out;
  for (const auto& [name, amount] : pod_row.requested) {
    (out += out.empty() ? "" : ", ") += short_name(name);
    out += " " + std::to_string(amount);
  }
  return out;
}

std::string health_of(const node_row& node_row, const bilingual& say) {
  if (!node_row.unhealthy) return {};
  if (*node_row.unhealthy == 0)
    return say.message(node_row.are_looked_at ? "inspect.healthy" : "inspect.unknown_health");
  return say.message("inspect.unhealthy", {{"number", std::to_string(*node_row.unhealthy)}});
}

/// "ok", or what is not: "failed: driver, cdi; fix-runtime: Failed". Empty where no agent reports.
std::string preflight_of(const node_row& node_row, const bilingual& say) {
  if (node_row.preflight.empty()) return {};
  std::vector<std::string> failed, warned;
  for (const auto& row : node_row.preflight) {
    if (row.state == api::check_state::failed) failed.push_back(shown(row.name));
    if (row.state == api::check_state::warning) warned.push_back(shown(row.name));
  }
  if (failed.empty() && warned.empty()) return say.message("inspect.passed");
  std::string out;
  if (!failed.empty()) out = say.message("inspect.failed", {{"checks", text::joined(failed)}});
  if (!warned.empty())
    out += (out.empty() ? "" : "; ") + say.message("inspect.warned", {{"checks", text::joined(warned)}});
  if (node_row.fix) out += "; fix-runtime: " + shown(node_row.fix->result);
  return out;
}

/// The word for programs, that nothing of the agent's report is kept true, and that cards with room get no new share.
std::string reason_of(const node_row& node_row) {
  std::vector<std::string> out;
  if (!node_row.reason.empty()) out.push_back(node_row.reason);
  if (node_row.is_report_old) out.emplace_back("AgentGone");
  if (node_row.withheld_cards > 0) out.emplace_back("SharesWithheld");
  return text::joined(out);
}

std::string node_state(const node_row& node_row, const bilingual& say) {
  if (!node_row.is_seen) return {};
  using enum kube::condition_status;
  std::string out = node_row.ready == yes ? "Ready" : node_row.ready == no ? "NotReady" : "Unknown";
  if (node_row.cordoned) out += say.message("inspect.cordoned");
  return out;
}

std::string shown_words(const text::phrase& message, const bilingual& say) {
  return shown(words_of(quotation_of(message), say.locale()), most_shown);
}

/// The message in English, and next to it the code and what fills its words.
void add_message(ordered_json& out, const text::phrase& message) {
  nlohmann::json object;
  controller::set_message(object, message);
  for (const auto* key : {"message", "cause", "parameters"})
    if (object.contains(key)) out[key] = object[key];
}

std::string number_of(const std::optional<std::int64_t>& number) {
  return number ? std::to_string(*number) : std::string();
}

ordered_json number_or_null(const std::optional<std::int64_t>& number) {
  return number ? ordered_json(*number) : ordered_json();
}

ordered_json as_json(const node_row& node_row) {
  auto resources = ordered_json::array();
  for (const auto& resource : node_row.resources)
    resources.push_back({{"name", resource.name},
                         {"capacity", resource.capacity},
                         {"allocatable", resource.allocatable},
                         {"asked", number_or_null(resource.requested)},
                         {"free", number_or_null(resource.free())}});
  ordered_json out = {{"name", node_row.name},   {"address", node_row.address},
                      {"mode", node_row.mode},   {"requestedMode", node_row.requested},
                      {"phase", node_row.phase}, {"reason", node_row.reason}};
  add_message(out, node_row.message);
  const bool is_known = node_row.is_seen && node_row.ready != kube::condition_status::unknown;
  out["nodeReady"] = is_known ? ordered_json(node_row.ready == kube::condition_status::yes) : ordered_json();
  out["cordoned"] = node_row.is_seen ? ordered_json(node_row.cordoned) : ordered_json();
  out["cards"] = node_row.cards_known ? ordered_json(node_row.cards) : ordered_json();
  out["unhealthyCards"] = node_row.unhealthy ? ordered_json(*node_row.unhealthy) : ordered_json();
  out["cordonedCards"] = node_row.cards_known ? ordered_json(node_row.cordoned_cards) : ordered_json();
  out["otherCards"] = ordered_json::array();
  for (const auto& card : node_row.other_cards) out["otherCards"].push_back(ordered_json(api::json_of(card)));
  out["withheldCards"] = node_row.withheld_cards;
  out["model"] = node_row.model;
  out["memoryMiB"] = node_row.memory_mib > 0 ? ordered_json(node_row.memory_mib) : ordered_json();
  out["driver"] = node_row.driver;
  out["cuda"] = node_row.cuda;
  out["resources"] = std::move(resources);
  out["waitsFor"] = node_row.waits_for;
  out["reportOld"] = node_row.is_report_old;
  out["preflight"] = ordered_json::array();
  for (const auto& row : node_row.preflight)
    out["preflight"].push_back({{"check", row.name},
                                {"state", to_string(row.state)},
                                {"found", row.found},
                                {"remedy", row.remedy},
                                {"cause", row.cause},
                                {"parameters", row.parameters}});
  out["runtimeFix"] = ordered_json();
  if (node_row.fix)
    out["runtimeFix"] = {
        {"result", node_row.fix->result},
        {"at", controller::rfc3339_seconds(controller::wall_time(std::chrono::seconds(node_row.fix->timestamp)))},
        {"message", node_row.fix->message}};
  return out;
}

ordered_json as_json(const module_row& module_row) {
  ordered_json out = {{"name", module_row.name},
                      {"title", module_row.title},
                      {"enabled", module_row.enabled},
                      {"desired", module_row.desired},
                      {"ready", module_row.ready},
                      {"nodes", module_row.nodes},
                      {"resources", module_row.resources},
                      {"labelValues", module_row.label_values},
                      {"daemonSet", module_row.daemon_set},
                      {"image", module_row.image}};
  add_message(out, module_row.message);
  return out;
}

ordered_json as_json(const pod_row& pod_row) {
  ordered_json out = {{"namespace", pod_row.key.ns}, {"name", pod_row.key.name}, {"node", pod_row.node},
                      {"mode", pod_row.mode},        {"phase", pod_row.phase},   {"reason", pod_row.reason}};
  out["asked"] = ordered_json::object();
  for (const auto& [name, amount] : pod_row.requested) out["asked"][name] = amount;
  out["cards"] = pod_row.cards;
  out["isolation"] = pod_row.isolation;
  return out;
}

const listing<node_row>& nodes_listing() {
  using row = const node_row&;
  using words = const bilingual&;
  static const listing<node_row> out{
      .name = "nodes",
      .columns = {{"name", "node_name", [](row node, words) { return node.name; }},
                  {"mode", [](row node, words) { return node.shown_mode.empty() ? node.mode : node.shown_mode; }},
                  {"phase", [](row node, words) { return node.phase; }},
                  {"cards", "card_number", [](row node, words) { return cards_of(node); }},
                  {"free", [](row node, words) { return free_of(node); }},
                  {"sick", [](row node, words) { return number_of(node.unhealthy); }},
                  {"cordoned",
                   [](row node, words) { return node.cards_known ? std::to_string(node.cordoned_cards) : ""; }},
                  {"reason", [](row node, words) { return reason_of(node); }},
                  {"requested", [](row node, words) { return node.requested; }, true},
                  {"node", "node_state", [](row node, words say) { return node_state(node, say); }, true},
                  {"model", [](row node, words) { return shown(node.model); }, true},
                  {"memory",
                   [](row node, words) {
                     return node.memory_mib > 0 ? std::to_string(node.memory_mib) + " MiB" : std::string();
                   },
                   true},
                  {"driver", [](row node, words) { return shown(node.driver); }, true},
                  {"cuda", [](row node, words) { return shown(node.cuda); }, true},
                  {"health", [](row node, words say) { return health_of(node, say); }, true},
                  {"preflight", [](row node, words say) { return preflight_of(node, say); }, true},
                  {"message", [](row node, words say) { return shown_words(node.message, say); }, true}},
      .json = [](row node) { return as_json(node); },
      .object = [](row node) { return "node/" + node.name; },
      .absence = "inspect.no_node"};
  return out;
}

/// A module of the policy's own has the words of the policy.
std::string title_of(const module_row& module_row, const bilingual& say) {
  const auto key = "module_title." + module_row.name;
  return text::pattern_of(key, say.locale()).empty() ? module_row.title : say.message(key);
}

const listing<module_row>& modules_listing() {
  using row = const module_row&;
  using words = const bilingual&;
  static const listing<module_row> out{
      .name = "modules",
      .columns = {{"name", "module_name", [](row module, words) { return module.name; }},
                  {"enabled",
                   [](row module, words say) { return say.message(module.enabled ? "inspect.yes" : "inspect.no"); }},
                  {"ready", [](row module,
                               words) { return std::to_string(module.ready) + "/" + std::to_string(module.desired); }},
                  {"nodes", [](row module, words) { return std::to_string(module.nodes); }},
                  {"resources", [](row module, words) { return text::joined(module.resources); }},
                  {"message", [](row module, words say) { return shown_words(module.message, say); }},
                  {"label", "label_value", [](row module, words) { return text::joined(module.label_values); }, true},
                  {"daemonset", [](row module, words) { return module.daemon_set; }, true},
                  {"image", [](row module, words) { return shown(module.image, 300); }, true},
                  {"title", [](row module, words say) { return title_of(module, say); }, true}},
      .json = [](row module) { return as_json(module); },
      .object = [](row module) { return "daemonset.apps/" + module.daemon_set; }};
  return out;
}

const listing<pod_row>& pods_listing() {
  using row = const pod_row&;
  using words = const bilingual&;
  static const listing<pod_row> out{
      .name = "pods",
      .columns = {{"namespace", [](row pod, words) { return pod.key.ns; }},
                  {"name", [](row pod, words) { return pod.key.name; }},
                  {"node", [](row pod, words) { return pod.node; }},
                  {"mode", [](row pod, words) { return pod.mode; }},
                  {"phase", [](row pod, words) { return pod.phase; }},
                  {"asks", [](row pod, words) { return asked_of(pod); }},
                  {"cards", [](row pod, words) { return shown(text::joined(pod.cards), most_shown); }},
                  {"isolation", [](row pod, words) { return shown(pod.isolation); }, true},
                  {"reason", [](row pod, words) { return shown(pod.reason); }, true}},
      .json = [](row pod) { return as_json(pod); },
      .object = [](row pod) { return "pod/" + pod.key.name; },
      .absence = "inspect.no_pod"};
  return out;
}

}  // namespace

std::vector<std::string> node_headers() { return sort_keys(nodes_listing()); }
std::vector<std::string> module_headers() { return sort_keys(modules_listing()); }
std::vector<std::string> pod_headers() { return sort_keys(pods_listing()); }

void print(const std::vector<node_row>& rows, const look_options& options, std::ostream& out) {
  print(nodes_listing(), rows, filtered_by(options, options.only), out);
}
void print(const std::vector<module_row>& rows, const look_options& options, std::ostream& out) {
  print(modules_listing(), rows, options, out);
}
void print(const std::vector<pod_row>& rows, const look_options& options, std::ostream& out) {
  auto filters = options.pods;
  filters.push_back(namespace_filter(options.scope.ns));
  print(pods_listing(), rows, filtered_by(options, std::move(filters)), out);
}

}  // namespace cli
