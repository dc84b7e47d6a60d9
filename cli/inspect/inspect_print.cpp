// Text of inspect nodes, modules and pods: columns for people in two languages, JSON and YAML for programs. JSON is
// stable: fields are added, never renamed.

#include <map>
#include <nlohmann/json.hpp>

#include "cli/inspect/inspect_fleet.hpp"
#include "cli/output/answer.hpp"
#include "cli/output/table.hpp"
#include "controller/clock.hpp"
#include "text/list.hpp"
#include "text/messages.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using nlohmann::ordered_json;
using text::language, text::shown;

constexpr std::size_t most_shown = 2000;

language locale_of(const look_options& options) { return options.language == "zh" ? language::zh : language::en; }
bool wide(const look_options& options) { return options.output == "wide"; }

/// "vcuda-core" of "tencent.com/vcuda-core".
std::string_view short_name(std::string_view resource) { return resource.substr(resource.rfind('/') + 1); }

std::string free_of(const node_row& node_row) {
  std::string out;
  for (const auto& resource : node_row.resources) {
    (out += out.empty() ? "" : ", ") += short_name(resource.name);
    out += " " + std::to_string(resource.free()) + "/" + std::to_string(resource.allocatable);
  }
  return out;
}

/// "4", "8 AMD", "4, 8 AMD"; empty where no one knows.
std::string cards_of(const node_row& node_row) {
  std::string out = node_row.cards_known ? std::to_string(node_row.cards) : std::string();
  std::map<std::string, int> vendors;
  for (const auto& card : node_row.other_cards) ++vendors[card.vendor];
  for (const auto& [vendor, count] : vendors)
    out += (out.empty() ? "" : ", ") + std::to_string(count) + " " + shown(vendor);
  return out;
}

std::string asked_of(const pod_row& pod_row) {
  std::string out;
  for (const auto& [name, amount] : pod_row.requested) {
    (out += out.empty() ? "" : ", ") += short_name(name);
    out += " " + std::to_string(amount);
  }
  return out;
}

std::string health_of(const node_row& node_row, language locale) {
  if (!node_row.unhealthy) return {};
  if (*node_row.unhealthy == 0) return text::message("inspect.healthy", locale);
  return text::message("inspect.unhealthy", locale, {{"number", std::to_string(*node_row.unhealthy)}});
}

/// "ok", or what is not: "failed: driver, cdi; fix-runtime: Failed". Empty where no agent reports.
std::string preflight_of(const node_row& node_row, language locale) {
  if (node_row.preflight.empty()) return {};
  std::vector<std::string> failed, warned;
  for (const auto& row : node_row.preflight) {
    if (row.state == "failed") failed.push_back(shown(row.check));
    if (row.state == "warning") warned.push_back(shown(row.check));
  }
  if (failed.empty() && warned.empty()) return text::message("inspect.passed", locale);
  std::string out;
  if (!failed.empty()) out = text::message("inspect.failed", locale, {{"checks", text::joined(failed)}});
  if (!warned.empty())
    out += (out.empty() ? "" : "; ") + text::message("inspect.warned", locale, {{"checks", text::joined(warned)}});
  if (node_row.fix) out += "; fix-runtime: " + shown(node_row.fix->result);
  return out;
}

/// The word for programs, and that nothing of the agent's report is kept true.
std::string reason_of(const node_row& node_row) {
  if (!node_row.is_report_old) return node_row.reason;
  return node_row.reason.empty() ? "AgentGone" : node_row.reason + ", AgentGone";
}

std::string node_state(const node_row& node_row, language locale) {
  std::string out = node_row.ready ? "Ready" : "NotReady";
  if (node_row.cordoned) out += text::message("inspect.cordoned", locale);
  return out;
}

ordered_json as_json(const node_row& node_row) {
  auto resources = ordered_json::array();
  for (const auto& resource : node_row.resources)
    resources.push_back({{"name", resource.name},
                         {"capacity", resource.capacity},
                         {"allocatable", resource.allocatable},
                         {"asked", resource.requested},
                         {"free", resource.free()}});
  ordered_json out = {{"name", node_row.name},        {"address", node_row.address},
                      {"mode", node_row.mode},        {"requestedMode", node_row.requested},
                      {"phase", node_row.phase},      {"reason", node_row.reason},
                      {"message", node_row.message},  {"nodeReady", node_row.ready},
                      {"cordoned", node_row.cordoned}};
  out["cards"] = node_row.cards_known ? ordered_json(node_row.cards) : ordered_json();
  out["unhealthyCards"] = node_row.unhealthy ? ordered_json(*node_row.unhealthy) : ordered_json();
  out["otherCards"] = ordered_json::array();
  for (const auto& card : node_row.other_cards) out["otherCards"].push_back(ordered_json(api::json_of(card)));
  out["model"] = node_row.model;
  out["memoryMiB"] = node_row.memory_mib > 0 ? ordered_json(node_row.memory_mib) : ordered_json();
  out["driver"] = node_row.driver;
  out["cuda"] = node_row.cuda;
  out["resources"] = std::move(resources);
  out["waitsFor"] = node_row.waits_for;
  out["reportOld"] = node_row.is_report_old;
  out["preflight"] = ordered_json::array();
  for (const auto& row : node_row.preflight)
    out["preflight"].push_back(
        {{"check", row.check}, {"state", row.state}, {"found", row.found}, {"remedy", row.remedy}});
  out["runtimeFix"] = ordered_json();
  if (node_row.fix)
    out["runtimeFix"] = {
        {"result", node_row.fix->result},
        {"at", controller::rfc3339_seconds(controller::wall_time(std::chrono::seconds(node_row.fix->timestamp)))},
        {"message", node_row.fix->message}};
  return out;
}

ordered_json as_json(const module_row& module_row) {
  return {{"name", module_row.name},
          {"title", module_row.title},
          {"enabled", module_row.enabled},
          {"desired", module_row.desired},
          {"ready", module_row.ready},
          {"nodes", module_row.nodes},
          {"resources", module_row.resources},
          {"labelValues", module_row.label_values},
          {"daemonSet", module_row.daemon_set},
          {"image", module_row.image},
          {"message", module_row.message}};
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

template <class Row>
ordered_json list_of(const char* name, const std::vector<Row>& rows) {
  ordered_json out = {{name, ordered_json::array()}};
  for (const auto& row : rows) out[name].push_back(as_json(row));
  return out;
}

}  // namespace

void print(const std::vector<node_row>& rows, const look_options& options, std::ostream& stream) {
  if (printed_as_data(list_of("nodes", rows), options.output, stream)) return;
  if (rows.empty()) {
    stream << text::message("inspect.no_node", locale_of(options)) << "\n";
    return;
  }
  std::vector<std::string> header{"NAME", "MODE", "PHASE", "CARDS", "FREE", "REASON"};
  std::vector<std::string> more{"REQUESTED", "NODE",   "MODEL",     "MEMORY", "DRIVER",
                                "CUDA",      "HEALTH", "PREFLIGHT", "MESSAGE"};
  if (locale_of(options) == language::zh) {
    header = {"节点", "模式", "阶段", "卡数", "空闲", "原因"};
    more = {"请求", "状态", "型号", "显存", "驱动", "CUDA", "健康", "预检", "说明"};
  }
  if (wide(options)) header.insert(header.end(), more.begin(), more.end());
  table out(std::move(header));
  for (const auto& entry : rows) {
    std::vector<std::string> row{entry.name,      entry.mode,     entry.phase,
                                 cards_of(entry), free_of(entry), reason_of(entry)};
    if (wide(options)) {
      const auto memory = entry.memory_mib > 0 ? std::to_string(entry.memory_mib) + " MiB" : std::string();
      row.insert(row.end(), {entry.requested, node_state(entry, locale_of(options)), shown(entry.model), memory,
                             shown(entry.driver), shown(entry.cuda), health_of(entry, locale_of(options)),
                             preflight_of(entry, locale_of(options)), shown(entry.message, most_shown)});
    }
    out.add(std::move(row));
  }
  out.print(stream);
}

void print(const std::vector<module_row>& rows, const look_options& options, std::ostream& stream) {
  if (printed_as_data(list_of("modules", rows), options.output, stream)) return;
  std::vector<std::string> header{"NAME", "ENABLED", "READY", "NODES", "RESOURCES", "MESSAGE"};
  std::vector<std::string> more{"LABEL", "DAEMONSET", "IMAGE", "TITLE"};
  if (locale_of(options) == language::zh) {
    header = {"模块", "启用", "就绪", "节点数", "资源", "说明"};
    more = {"标签值", "DAEMONSET", "镜像", "描述"};
  }
  if (wide(options)) header.insert(header.end(), more.begin(), more.end());
  table out(std::move(header));
  for (const auto& entry : rows) {
    const auto enabled = text::message(entry.enabled ? "inspect.yes" : "inspect.no", locale_of(options));
    std::vector<std::string> row{entry.name,
                                 enabled,
                                 std::to_string(entry.ready) + "/" + std::to_string(entry.desired),
                                 std::to_string(entry.nodes),
                                 text::joined(entry.resources),
                                 shown(entry.message, most_shown)};
    if (wide(options))
      row.insert(row.end(), {text::joined(entry.label_values), entry.daemon_set, shown(entry.image, 300), entry.title});
    out.add(std::move(row));
  }
  out.print(stream);
}

void print(const std::vector<pod_row>& rows, const look_options& options, std::ostream& stream) {
  if (printed_as_data(list_of("pods", rows), options.output, stream)) return;
  if (rows.empty()) {
    stream << text::message("inspect.no_pod", locale_of(options)) << "\n";
    return;
  }
  std::vector<std::string> header{"NAMESPACE", "NAME", "NODE", "MODE", "PHASE", "ASKS", "CARDS"};
  std::vector<std::string> more{"ISOLATION", "REASON"};
  if (locale_of(options) == language::zh) {
    header = {"命名空间", "名称", "节点", "模式", "阶段", "申请", "卡"};
    more = {"隔离", "原因"};
  }
  if (wide(options)) header.insert(header.end(), more.begin(), more.end());
  table out(std::move(header));
  for (const auto& entry : rows) {
    std::vector<std::string> row{entry.key.ns,
                                 entry.key.name,
                                 entry.node,
                                 entry.mode,
                                 entry.phase,
                                 asked_of(entry),
                                 shown(text::joined(entry.cards), most_shown)};
    if (wide(options)) row.insert(row.end(), {shown(entry.isolation), shown(entry.reason)});
    out.add(std::move(row));
  }
  out.print(stream);
}

}  // namespace cli
