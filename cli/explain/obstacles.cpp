#include "cli/explain/obstacles.hpp"

#include <algorithm>
#include <set>

#include "cli/explain/pod_fields.hpp"
#include "cli/lint/unoffered.hpp"
#include "text/list.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using nlohmann::json;
using text::shown;

constexpr std::size_t longest = 1000;  // of a sentence by another program

/// "UnexpectedAdmissionError: Allocate failed"; empty: it says neither.
std::string reason_and_message(const json& status) {
  const auto reason = shown(text_at(status, "reason"), longest), message = shown(text_at(status, "message"), longest);
  return reason.empty() || message.empty() ? reason + message : reason + ": " + message;
}

void add_ended(const json& pod, std::vector<obstacle>& out) {
  const auto& status = member(pod, "status");
  const auto phase = text_at(status, "phase");
  if (phase == "Succeeded")
    out.push_back({"ended", "It has ended well, and holds no card any more.", "它已成功结束，不再占用卡。", true});
  if (phase != "Failed") return;
  const auto cause = reason_and_message(status);
  std::string en = "It has failed" + (cause.empty() ? "." : ": " + cause),
              zh = "它已失败" + (cause.empty() ? "。" : "：" + cause);
  const auto reason = text_at(status, "reason");
  if (reason == "UnexpectedAdmissionError") {
    en +=
        "\nThe node's kubelet refused it after it was bound, and does not try again: delete the pod, its controller "
        "makes a new one. What refuses the devices: quartermaster verify NODE; quartermaster explain error "
        "UnexpectedAdmissionError";
    zh +=
        "\n绑定之后节点的 kubelet 拒绝了它，且不会重试：请删除该 Pod，其控制器会新建一个。设备被拒绝的原因："
        "quartermaster verify 节点名；quartermaster explain error UnexpectedAdmissionError";
  }
  out.push_back({"ended", std::move(en), std::move(zh), true});
}

void add_deleted(const json& pod, std::vector<obstacle>& out) {
  const auto& metadata = member(pod, "metadata");
  const auto since = shown(text_at(metadata, "deletionTimestamp"));
  if (since.empty()) return;
  std::vector<std::string> finalizers;
  for (const auto& entry : member(metadata, "finalizers"))
    if (entry.is_string()) finalizers.push_back(shown(entry.get<std::string>()));
  const auto list = text::some_of(finalizers);
  out.push_back(
      {"deleted",
       "It is being deleted since " + since +
           (list.empty() ? "." : "; it stays until its finalizers are taken away: " + list),
       "它自 " + since + " 起正在被删除" + (list.empty() ? "。" : "；在其 finalizer 移除之前会一直存在：" + list),
       true});
}

void add_gated(const json& pod, std::vector<obstacle>& out) {
  std::vector<std::string> gates;
  for (const auto& gate : member(member(pod, "spec"), "schedulingGates"))
    if (auto name = text_at(gate, "name"); !name.empty()) gates.push_back(shown(name));
  if (gates.empty()) return;
  const auto list = text::some_of(gates, 8);
  out.push_back(
      {"gated",
       (gates.size() == 1 ? "The scheduling gate " + list + " holds it" : "The scheduling gates " + list + " hold it") +
           ": no scheduler looks at the pod before they are taken away, by who set them.",
       "调度门 " + list + " 挡住了它：在设置者移除之前，没有调度器会处理它。", true});
}

/// Cards by names that no node can have.
void add_native(const json& pod, std::vector<obstacle>& out) {
  const auto& spec = member(pod, "spec");
  std::set<std::string> seen;
  for (const auto* list : {"initContainers", "containers"})
    for (const auto& container : member(spec, list)) {
      const auto& limits = member(member(container, "resources"), "limits");
      if (!limits.is_object()) continue;
      for (const auto& [key, amount] : limits.items()) {
        const std::string card(card_of_native_domain(key));
        if (card.empty() || !seen.insert(key).second) continue;
        const auto name = shown(key, 320);
        out.push_back(
            {"native_resource",
             "It asks for " + name + ", a name of Kubernetes' own domain that no node has: write " + card + ".",
             "它请求 " + name + "，这是 Kubernetes 自己域名下的名称，没有节点提供：请改为 " + card + "。", true});
      }
    }
}

/// Devices of DRA: another program gives them out.
void add_claims(const json& pod, std::vector<obstacle>& out) {
  const auto list = text::some_of(claims_of(member(pod, "spec")), 8);
  if (list.empty()) return;
  out.push_back({"claims",
                 "It asks for devices by ResourceClaims (" + list +
                     "): a DRA driver gives them, and they are not judged here. kubectl describe resourceclaim -n " +
                     shown(text_at(member(pod, "metadata"), "namespace")),
                 "它通过 ResourceClaim（" + list +
                     "）请求设备：由 DRA 驱动分配，此处不检查。kubectl describe resourceclaim -n " +
                     shown(text_at(member(pod, "metadata"), "namespace")),
                 true});
}

void add_scheduler(const json& pod, std::string_view asking, std::vector<obstacle>& out) {
  const auto named = text_at(member(pod, "spec"), "schedulerName");
  const auto name = named.empty() ? std::string("default-scheduler") : shown(named);
  const json* looked = nullptr;
  for (const auto& condition : member(member(pod, "status"), "conditions"))
    if (text_at(condition, "type") == "PodScheduled") looked = &condition;
  const auto who_en = asking.empty() ? std::string(" No scheduler asks Quartermaster here.")
                                     : " Here the scheduler " + std::string(asking) + " asks Quartermaster.";
  const auto who_zh = asking.empty() ? std::string("这里没有调度器询问 Quartermaster。")
                                     : "这里由调度器 " + std::string(asking) + " 询问 Quartermaster。";
  if (!looked) {
    out.push_back({"not_looked_at",
                   "It names the scheduler " + name +
                       ", and no scheduler has looked at it yet (no condition "
                       "PodScheduled): does one of that name run?" +
                       who_en,
                   "它指定调度器 " + name +
                       "，但还没有调度器处理过它（没有 PodScheduled 状态）：是否运行着这个名字的调度器？" + who_zh,
                   name != asking && name != "default-scheduler"});
    return;
  }
  if (name != asking)
    out.push_back(
        {"other_scheduler", "Its scheduler is " + name + "." + who_en, "它的调度器是 " + name + "。" + who_zh, false});
  if (const auto says = reason_and_message(*looked); !says.empty() && text_at(*looked, "status") == "False")
    out.push_back(
        {"scheduler_says", "The scheduler " + name + " says: " + says, "调度器 " + name + " 的说明：" + says, false});
}

/// What its containers wait for on their node.
void add_not_well(const json& pod, std::vector<obstacle>& out) {
  const auto& status = member(pod, "status");
  if (const auto cause = reason_and_message(status); !cause.empty())
    out.push_back({"not_well", "Its node says: " + cause, "节点的说明：" + cause, false});
  for (const auto* list : {"initContainerStatuses", "containerStatuses"})
    for (const auto& container : member(status, list)) {
      const auto& waiting = member(member(container, "state"), "waiting");
      const auto reason = text_at(waiting, "reason");
      if (reason.empty() || reason == "PodInitializing" || reason == "ContainerCreating") continue;
      const auto name = shown(text_at(container, "name"));
      out.push_back({"not_well", "Container " + name + " waits: " + reason_and_message(waiting),
                     "容器 " + name + " 在等待：" + reason_and_message(waiting), false});
    }
}

}  // namespace

std::vector<std::string> claims_of(const json& spec) {
  std::vector<std::string> out;
  for (const auto& claim : member(spec, "resourceClaims"))
    if (auto name = text_at(claim, "name"); !name.empty()) out.push_back(shown(name));
  return out;
}

std::vector<obstacle> obstacles_of(const json& pod, std::string_view asking) {
  std::vector<obstacle> out;
  add_ended(pod, out);
  if (!out.empty()) return out;
  add_deleted(pod, out);
  if (!text_at(member(pod, "spec"), "nodeName").empty()) {
    add_not_well(pod, out);
  } else if (pod.is_object()) {
    add_native(pod, out);
    add_gated(pod, out);
    add_claims(pod, out);
    if (std::ranges::find(out, "gated", &obstacle::code) == out.end()) add_scheduler(pod, asking, out);
  }
  return out;
}

}  // namespace cli
