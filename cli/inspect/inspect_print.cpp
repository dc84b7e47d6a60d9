// Text of inspect nodes, modules and pods: columns for people in two languages, JSON and YAML for programs. JSON is
// stable: fields are added, never renamed.

#include <nlohmann/json.hpp>

#include "cli/inspect/inspect_fleet.hpp"
#include "cli/output/answer.hpp"
#include "cli/output/table.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using json = nlohmann::ordered_json;
using reconcilers::crl::shown;

constexpr std::size_t most_shown = 2000;

bool zh(const look_options& how) { return how.language == "zh"; }
bool wide(const look_options& how) { return how.output == "wide"; }

/// "vcuda-core" of "tencent.com/vcuda-core".
std::string_view short_name(std::string_view resource) { return resource.substr(resource.rfind('/') + 1); }

std::string joined(const std::vector<std::string>& of, std::string_view between = ", ") {
  std::string out;
  for (const auto& one : of) (out += out.empty() ? std::string_view() : between) += one;
  return out;
}

std::string free_of(const node_row& of) {
  std::string out;
  for (const auto& one : of.resources) {
    (out += out.empty() ? "" : ", ") += short_name(one.name);
    out += " " + std::to_string(one.free()) + "/" + std::to_string(one.allocatable);
  }
  return out;
}

std::string asked_of(const pod_row& of) {
  std::string out;
  for (const auto& [name, amount] : of.asked) {
    (out += out.empty() ? "" : ", ") += short_name(name);
    out += " " + std::to_string(amount);
  }
  return out;
}

std::string health_of(const node_row& of, bool in_zh) {
  if (!of.unhealthy) return {};
  if (*of.unhealthy == 0) return in_zh ? "正常" : "ok";
  return std::to_string(*of.unhealthy) + (in_zh ? " 张异常" : " unhealthy");
}

std::string node_state(const node_row& of, bool in_zh) {
  std::string out = of.ready ? "Ready" : "NotReady";
  if (of.cordoned) out += in_zh ? "，禁止调度" : ",cordoned";
  return out;
}

json as_json(const node_row& of) {
  auto resources = json::array();
  for (const auto& one : of.resources)
    resources.push_back({{"name", one.name},
                         {"capacity", one.capacity},
                         {"allocatable", one.allocatable},
                         {"asked", one.asked},
                         {"free", one.free()}});
  json out = {
      {"name", of.name},        {"address", of.address}, {"mode", of.mode},       {"requestedMode", of.requested},
      {"phase", of.phase},      {"reason", of.reason},   {"message", of.message}, {"nodeReady", of.ready},
      {"cordoned", of.cordoned}};
  out["cards"] = of.cards_known ? json(of.cards) : json();
  out["unhealthyCards"] = of.unhealthy ? json(*of.unhealthy) : json();
  out["model"] = of.model;
  out["memoryMiB"] = of.memory_mib > 0 ? json(of.memory_mib) : json();
  out["driver"] = of.driver;
  out["cuda"] = of.cuda;
  out["resources"] = std::move(resources);
  out["waitsFor"] = of.waits_for;
  return out;
}

json as_json(const module_row& of) {
  return {{"name", of.name},
          {"title", of.title},
          {"enabled", of.enabled},
          {"desired", of.desired},
          {"ready", of.ready},
          {"nodes", of.nodes},
          {"resources", of.resources},
          {"labelValues", of.label_values},
          {"daemonSet", of.daemon_set},
          {"image", of.image},
          {"message", of.message}};
}

json as_json(const pod_row& of) {
  json out = {{"namespace", of.key.ns}, {"name", of.key.name}, {"node", of.node},
              {"mode", of.mode},        {"phase", of.phase},   {"reason", of.reason}};
  out["asked"] = json::object();
  for (const auto& [name, amount] : of.asked) out["asked"][name] = amount;
  out["cards"] = of.cards;
  out["isolation"] = of.isolation;
  return out;
}

template <class Row>
json list_of(const char* name, const std::vector<Row>& rows) {
  json out = {{name, json::array()}};
  for (const auto& one : rows) out[name].push_back(as_json(one));
  return out;
}

}  // namespace

void print(const std::vector<node_row>& rows, const look_options& how, std::ostream& to) {
  if (printed_as_data(list_of("nodes", rows), how.output, to)) return;
  if (rows.empty()) {
    to << (zh(how) ? "没有节点具有卡，也没有节点请求模式\n" : "No node has cards or asks for a mode\n");
    return;
  }
  std::vector<std::string> header{"NAME", "MODE", "PHASE", "CARDS", "FREE", "REASON"};
  std::vector<std::string> more{"REQUESTED", "NODE", "MODEL", "MEMORY", "DRIVER", "CUDA", "HEALTH", "MESSAGE"};
  if (zh(how)) {
    header = {"节点", "模式", "阶段", "卡数", "空闲", "原因"};
    more = {"请求", "状态", "型号", "显存", "驱动", "CUDA", "健康", "说明"};
  }
  if (wide(how)) header.insert(header.end(), more.begin(), more.end());
  table out(std::move(header));
  for (const auto& one : rows) {
    std::vector<std::string> row{one.name,     one.mode,  one.phase, one.cards_known ? std::to_string(one.cards) : "",
                                 free_of(one), one.reason};
    if (wide(how)) {
      const auto memory = one.memory_mib > 0 ? std::to_string(one.memory_mib) + " MiB" : std::string();
      row.insert(row.end(), {one.requested, node_state(one, zh(how)), shown(one.model), memory, shown(one.driver),
                             shown(one.cuda), health_of(one, zh(how)), shown(one.message, most_shown)});
    }
    out.add(std::move(row));
  }
  out.print(to);
}

void print(const std::vector<module_row>& rows, const look_options& how, std::ostream& to) {
  if (printed_as_data(list_of("modules", rows), how.output, to)) return;
  std::vector<std::string> header{"NAME", "ENABLED", "READY", "NODES", "RESOURCES", "MESSAGE"};
  std::vector<std::string> more{"LABEL", "DAEMONSET", "IMAGE", "TITLE"};
  if (zh(how)) {
    header = {"模块", "启用", "就绪", "节点数", "资源", "说明"};
    more = {"标签值", "DAEMONSET", "镜像", "描述"};
  }
  if (wide(how)) header.insert(header.end(), more.begin(), more.end());
  table out(std::move(header));
  for (const auto& one : rows) {
    std::string on = one.enabled ? "yes" : "no";
    if (zh(how)) on = one.enabled ? "是" : "否";
    std::vector<std::string> row{one.name,
                                 on,
                                 std::to_string(one.ready) + "/" + std::to_string(one.desired),
                                 std::to_string(one.nodes),
                                 joined(one.resources),
                                 shown(one.message, most_shown)};
    if (wide(how)) row.insert(row.end(), {joined(one.label_values), one.daemon_set, shown(one.image, 300), one.title});
    out.add(std::move(row));
  }
  out.print(to);
}

void print(const std::vector<pod_row>& rows, const look_options& how, std::ostream& to) {
  if (printed_as_data(list_of("pods", rows), how.output, to)) return;
  if (rows.empty()) {
    to << (zh(how) ? "没有 Pod 使用加速卡\n" : "No pod asks for cards\n");
    return;
  }
  std::vector<std::string> header{"NAMESPACE", "NAME", "NODE", "MODE", "PHASE", "ASKS", "CARDS"};
  std::vector<std::string> more{"ISOLATION", "REASON"};
  if (zh(how)) {
    header = {"命名空间", "名称", "节点", "模式", "阶段", "申请", "卡"};
    more = {"隔离", "原因"};
  }
  if (wide(how)) header.insert(header.end(), more.begin(), more.end());
  table out(std::move(header));
  for (const auto& one : rows) {
    std::vector<std::string> row{
        one.key.ns, one.key.name, one.node, one.mode, one.phase, asked_of(one), shown(joined(one.cards), most_shown)};
    if (wide(how)) row.insert(row.end(), {shown(one.isolation), shown(one.reason)});
    out.add(std::move(row));
  }
  out.print(to);
}

}  // namespace cli
