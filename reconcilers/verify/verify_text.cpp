#include <array>

#include "reconcilers/verify/verify.hpp"

namespace reconcilers::verify {
namespace {

using text::language;

struct bilingual {
  std::string_view en, zh;
  std::string_view in(language locale) const { return locale == language::zh ? zh : en; }
};

struct stage_row {
  stage position;
  bilingual name, good;
};
struct code_row {
  stage_code cause;
  std::string_view name;
  bilingual text, remedy;
};

// {value} {other} {node}
// clang-format off
constexpr std::array<stage_row, static_cast<std::size_t>(stage::allocation) + 1> stages{{
  {stage::types, {"types", "类型"}, {"the custom resource types are there", "自定义资源类型齐全"}},
  {stage::policy, {"policy", "策略"}, {"AcceleratorPolicy default is ready: {value}", "AcceleratorPolicy default 已就绪：{value}"}},
  {stage::rules, {"rules", "规则"}, {"enforcement {value}: {other}", "执行方式 {value}：{other}"}},
  {stage::daemon_sets, {"daemonsets", "守护进程集"}, {"{value}: {other} pods available", "{value}：{other} 个 Pod 可用"}},
  {stage::leader, {"leader", "leader"}, {"{value} leads", "{value} 是当前的 leader"}},
  {stage::scheduler, {"scheduler", "调度器"}, {"{value}: {other}", "{value}：{other}"}},
  {stage::extender, {"extender", "扩展器"}, {"asked by {value} after {other}", "{value} 询问了扩展器，用时 {other}"}},
  {stage::callers, {"callers", "调用方证书"}, {"{value}", "{value}"}},
  {stage::runtimes, {"runtimes", "容器运行时"}, {"{value}", "{value}"}},
  {stage::health, {"health", "健康"}, {"{value}", "{value}"}},
  {stage::quotas, {"quotas", "配额"}, {"{value} enforced", "{value} 个配额均已生效"}},
  {stage::label, {"label", "标签"}, {"{value} asks for {other}", "{value} 请求 {other}"}},
  {stage::node, {"node", "节点"}, {"Ready, and takes new pods", "Ready，可调度"}},
  {stage::module, {"module", "模块"}, {"{value} is on in AcceleratorPolicy default", "{value} 已在 AcceleratorPolicy default 中启用"}},
  {stage::enrolment, {"enrolment", "接入"}, {"{value}, mode {other}", "{value}，模式 {other}"}},
  {stage::agent, {"agent", "代理"}, {"{value}", "{value}"}},
  {stage::preflight, {"preflight", "预检"}, {"{value}", "{value}"}},
  {stage::module_label, {"module-label", "模块标签"}, {"quartermaster.io/module={value}", "quartermaster.io/module={value}"}},
  {stage::plugin, {"plugin", "插件"}, {"pod {value} is ready", "Pod {value} 已就绪"}},
  {stage::other_plugins, {"other-plugins", "其他插件"}, {"no one else advertises cards", "没有其他插件上报卡"}},
  {stage::resources, {"resources", "资源"}, {"allocatable of capacity: {value}", "可分配/容量：{value}"}},
  {stage::pods, {"pods", "Pod"}, {"{value} hold cards{other}", "{value} 个 Pod 占用卡{other}"}},
  {stage::taint, {"taint", "污点"}, {"none is ours", "没有本产品的污点"}},
  {stage::allocation, {"allocation", "试分配"}, {"{value}", "{value}"}},
}};

constexpr std::array<code_row, code_count> codes{{
  {stage_code::none, "", {}, {}},
  {stage_code::types_missing, "types_missing",
   {"the API server does not know {value} of quartermaster.io", "API 服务器缺少 quartermaster.io 的 {value}"},
   {"install the chart: helm install quartermaster CHART -n quartermaster --create-namespace", "请安装 chart：helm install quartermaster CHART -n quartermaster --create-namespace"}},
  {stage_code::policy_missing, "policy_missing",
   {"there is no AcceleratorPolicy named default", "没有名为 default 的 AcceleratorPolicy"},
   {"create it with the modules you want under spec.modules, as in docs/install.md, \"Who owns the policy?\"; a policy of another name has no effect", "请创建它，并在 spec.modules 中启用所需模块（示例见 docs/install.md 的 \"Who owns the policy?\"）；其他名称的 AcceleratorPolicy 不生效"}},
  {stage_code::policy_not_ready, "policy_not_ready",
   {"AcceleratorPolicy default is not ready: {value}: {other}", "AcceleratorPolicy default 未就绪：{value}：{other}"},
   {"fix what it says; kubectl describe apol default shows the events", "请按其提示处理；kubectl describe apol default 可查看事件"}},
  {stage_code::policy_not_looked_at, "policy_not_looked_at",
   {"the newest AcceleratorPolicy default has not been looked at by the operator", "Operator 尚未处理最新的 AcceleratorPolicy default"},
   {"verify waited 5 s for it; if it stays so, read the operator's log", "verify 已等待 5 秒；若仍如此，请查看 Operator 日志"}},
  {stage_code::rules_not_enforced, "rules_not_enforced",
   {"pods are not held to the declarations: {value}: {other}", "未按声明检查 Pod：{value}：{other}"},
   {"helm upgrade restores the chart's admission policies; kubectl get resourcerules default -o yaml is what they read", "helm upgrade 可恢复 chart 中的准入策略；kubectl get resourcerules default -o yaml 为其读取的内容"}},
  {stage_code::daemon_set_missing, "daemonset_missing",
   {"module {other} is on, but its DaemonSet {value} is not there", "模块 {other} 已启用，但 DaemonSet {value} 不存在"},
   {"read the operator's log and kubectl describe apol default", "请查看 Operator 日志与 kubectl describe apol default"}},
  {stage_code::daemon_set_not_rolled_out, "daemonset_not_rolled_out",
   {"DaemonSet {value} is not rolled out: {other} pods available", "DaemonSet {value} 尚未完成部署：{other} 个 Pod 可用"},
   {"kubectl describe ds {value} shows what it waits for", "kubectl describe ds {value} 可查看原因"}},
  {stage_code::leader_missing, "leader_missing",
   {"no operator leads: the lease quartermaster is not there or released", "没有 Operator 担任 leader：租约 quartermaster 不存在或已释放"},
   {"find it: kubectl get deploy quartermaster -A; if it has 0 replicas, kubectl scale starts it; otherwise the logs of its pods say why none leads", "请查找：kubectl get deploy quartermaster -A；副本数为 0 时用 kubectl scale 启动，否则请查看其 Pod 日志"}},
  {stage_code::leader_silent, "leader_silent",
   {"the operator {value} has not renewed its lease for {other} s", "Operator {value} 已有 {other} 秒未续租"},
   {"look at its pod and log; until one leads, nothing is enrolled or repaired", "请检查其 Pod 与日志；在有 leader 之前不会接入或修复任何节点"}},
  {stage_code::unknown_mode, "unknown_mode",
   {"{other}", "{other}"},
   {"kubectl label node {node} nvidia-device-enable=MODE --overwrite", "请改正：kubectl label node {node} nvidia-device-enable=模式 --overwrite"}},
  {stage_code::conflicting_labels, "conflicting_labels",
   {"{other}", "{other}"},
   {"keep one: kubectl label node {node} KEY-", "请只保留一个：kubectl label node {node} 键名-"}},
  {stage_code::foreign_label, "foreign_label",
   {"{other}", "其他产品的设备插件已占用或将占用该节点：{value}；{other}"},
   {"do what it says, or take our label off and leave the node to them", "请按其提示处理，或去掉本产品的标签，把节点留给对方"}},
  {stage_code::refused, "refused",
   {"the operator refuses it: {value}: {other}", "Operator 拒绝了请求：{value}：{other}"},
   {"kubectl describe node {node} shows its events", "kubectl describe node {node} 可查看事件"}},
  {stage_code::node_not_ready, "node_not_ready",
   {"the node is not Ready", "节点不是 Ready"},
   {"kubectl describe node {node}; look at its kubelet", "kubectl describe node {node}；请检查 kubelet"}},
  {stage_code::node_cordoned, "node_cordoned",
   {"the node is cordoned: no new pod comes to it", "节点已被 cordon：不会再调度新的 Pod"},
   {"kubectl uncordon {node}", "kubectl uncordon {node}"}},
  {stage_code::cards_cordoned, "cards_cordoned",
   {"cards out of use by annotation quartermaster.io/cordon: {value}", "已被注解 quartermaster.io/cordon 停用的卡：{value}"},
   {"kubectl annotate node {node} quartermaster.io/cordon- gives them back", "kubectl annotate node {node} quartermaster.io/cordon- 可恢复使用"}},
  {stage_code::cordon_unknown, "cordon_unknown",
   {"annotation quartermaster.io/cordon names {value}, which is no card of this node; its cards are {other}", "注解 quartermaster.io/cordon 中的 {value} 不是该节点的卡；该节点的卡为 {other}"},
   {"name cards as quartermaster explain pod and inspect name them, comma separated", "请使用 quartermaster explain pod 与 inspect 中的卡名，以逗号分隔"}},
  {stage_code::module_off, "module_off",
   {"module {value} is off in AcceleratorPolicy default", "模块 {value} 未在 AcceleratorPolicy default 中启用"},
   {"kubectl patch apol default --type=merge -p '{\"spec\":{\"modules\":{\"{value}\":{\"enabled\":true}}}}'", "kubectl patch apol default --type=merge -p '{\"spec\":{\"modules\":{\"{value}\":{\"enabled\":true}}}}'"}},
  {stage_code::not_enrolled, "not_enrolled",
   {"the operator has not looked at the node: it has no AcceleratorNode", "Operator 尚未处理该节点：没有对应的 AcceleratorNode"},
   {"verify waited 5 s for it; if it stays so, read the operator's log", "verify 已等待 5 秒；若仍如此，请查看 Operator 日志"}},
  {stage_code::enrolment_behind, "enrolment_behind",
   {"the operator has not seen the label yet: it knows {value}, asked is {other}", "Operator 尚未看到新标签：它记录的是 {value}，请求的是 {other}"},
   {"verify waited 5 s for it; if it stays so, read the operator's log", "verify 已等待 5 秒；若仍如此，请查看 Operator 日志"}},
  {stage_code::waits_for_pods, "waits_for_pods",
   {"the change of mode waits for pods that hold the old mode's cards: {value}", "模式切换正在等待占用旧模式资源的 Pod：{value}"},
   {"let them end or delete them", "请等待其结束，或删除它们"}},
  {stage_code::change_under_way, "change_under_way",
   {"{value}: {other}", "{value}：{other}"},
   {"wait; kubectl get anode {node} -w follows it", "请等待；kubectl get anode {node} -w 可跟踪进度"}},
  {stage_code::stuck, "stuck",
   {"stuck: {value}: {other}", "已卡住：{value}：{other}"},
   {"kubectl describe node {node} shows its events", "kubectl describe node {node} 可查看事件"}},
  {stage_code::rolled_back, "rolled_back",
   {"the change was given up, the node is {value}: {other}", "模式切换已放弃，节点仍为 {value}：{other}"},
   {"fix the cause; the operator tries again by itself, at once when the label or the policy changes", "请排除原因；Operator 会自动重试，标签或策略变更时立即重试"}},
  {stage_code::agent_gone, "agent_gone",
   {"the report of this node is old: {value}", "该节点的报告已过期：{value}"},
   {"kubectl describe node {node} and the pods of DaemonSet quartermaster-agent show why; kubectl delete anode {node} removes the report where no agent is wanted", "请查看 kubectl describe node {node} 与 DaemonSet quartermaster-agent 的 Pod；不再需要代理时，kubectl delete anode {node} 可删除该报告"}},
  {stage_code::preflight_failed, "preflight_failed", {"", ""}, {"", ""}},
  {stage_code::module_label_missing, "module_label_missing",
   {"label quartermaster.io/module={value} is gone, so no plugin runs here", "标签 quartermaster.io/module={value} 已丢失，插件不会在此运行"},
   {"the operator puts it back; if it does not, read its log for {node}", "Operator 会自动恢复；否则请查看其日志中关于 {node} 的内容"}},
  {stage_code::module_label_other, "module_label_other",
   {"label quartermaster.io/module is {value}; it should be {other}", "标签 quartermaster.io/module 的值为 {value}，应为 {other}"},
   {"the operator puts it right; if it does not, read its log for {node}", "Operator 会自动改正；否则请查看其日志中关于 {node} 的内容"}},
  {stage_code::plugin_missing, "plugin_missing",
   {"DaemonSet {value} has no pod on this node", "DaemonSet {value} 在该节点上没有 Pod"},
   {"kubectl describe ds {value}: a taint it does not tolerate, or too little CPU or memory on the node", "请查看 kubectl describe ds {value}：可能有未容忍的污点，或节点 CPU、内存不足"}},
  {stage_code::taint_not_tolerated, "taint_not_tolerated",
   {"the plugin of module {value} does not tolerate {other}, so no pod of it comes to this node", "模块 {value} 的插件不容忍污点 {other}，因此该节点上没有其 Pod"},
   {"add a toleration to spec.modules.{value}.tolerations of AcceleratorPolicy default, or take the taint off", "请在 AcceleratorPolicy default 的 spec.modules.{value}.tolerations 中添加容忍，或去掉该污点"}},
  {stage_code::plugin_not_ready, "plugin_not_ready",
   {"plugin pod {value} is not ready: {other}", "插件 Pod {value} 未就绪：{other}"},
   {"kubectl describe pod and kubectl logs --previous of it; an image that cannot be pulled is set in spec.modules of the policy", "请查看该 Pod 的 kubectl describe 与 kubectl logs --previous；镜像拉取失败时，请在策略的 spec.modules 中设置镜像"}},
  {stage_code::foreign_plugin, "foreign_plugin",
   {"{value} comes from a plugin that does not belong to this mode: a card could be given out twice", "{value} 来自不属于该模式的插件：同一张卡可能被重复分配"},
   {"find it: kubectl get pods -A --field-selector spec.nodeName={node}; then remove it", "请查找并移除：kubectl get pods -A --field-selector spec.nodeName={node}"}},
  {stage_code::nothing_advertised, "nothing_advertised",
   {"the plugin is ready, but {value} is not allocatable", "插件已就绪，但 {value} 不可分配"},
   {"delete the pod of {other} on this node: its kubelet may have lost it; if that does not help, read its log, and nvidia-smi there", "请删除该节点上 {other} 的 Pod：其 kubelet 可能已丢失它；若无效，请查看其日志，并在节点上执行 nvidia-smi"}},
  {stage_code::cards_unhealthy, "cards_unhealthy",
   {"part of the cards is unhealthy: {value} allocatable", "部分卡不健康：可分配 {value}"},
   {"nvidia-smi and dmesg (Xid) on the node; a plugin that has given a card up offers it again after a restart", "请在节点上查看 nvidia-smi 与 dmesg（Xid）；插件放弃的卡在其重启后会重新上报"}},
  {stage_code::cards_sick, "cards_sick",
   {"the agent finds cards sick: {value}", "代理报告以下卡有故障：{value}"},
   {"kubectl describe anode {node} and dmesg (Xid) of the node say more; quartermaster explain error XID knows what to do", "详见 kubectl describe anode {node} 与该节点的 dmesg（Xid）；处理办法见 quartermaster explain error XID"}},
  {stage_code::cards_missing, "cards_missing",
   {"fewer cards than the node has: {value}", "上报的卡少于节点实有：{value}"},
   {"read the log of the plugin's pod on this node, and nvidia-smi -L there", "请查看该节点上插件 Pod 的日志，并在节点上执行 nvidia-smi -L"}},
  {stage_code::overbooked, "overbooked",
   {"pods hold more than there is: {value}", "Pod 占用超过总量：{value}"},
   {"a card went away under them; delete a pod or fix the card", "其使用的卡已减少；请删除部分 Pod 或修复卡"}},
  {stage_code::card_given_twice, "card_given_twice",
   {"more is given out of a card than it has: {value}", "卡被重复分配，超过其总量：{value}"},
   {"delete one of its pods; someone placed it past the extender: quartermaster verify --scheduler proves whether kube-scheduler asks it", "请删除其中一个 Pod；该 Pod 未经扩展器放置：quartermaster verify --scheduler 可验证 kube-scheduler 是否询问扩展器"}},
  {stage_code::pods_not_counted, "pods_not_counted",
   {"pods have something of the cards, and their limits count nowhere: {value}", "以下 Pod 占用了卡，但其限额未被计入：{value}"},
   {"someone bound them past the scheduler that would have refused them: delete them, and put their limits right; quartermaster explain pod says what is allowed", "它们绕过了本应拒绝它们的调度器：请删除它们并改正其限额；允许的取值见 quartermaster explain pod"}},
  {stage_code::pod_of_other_mode, "pod_of_other_mode",
   {"pods hold resources of another mode on cards that are given out again: {value}", "有 Pod 占用其他模式的资源，而卡已被重新分配：{value}"},
   {"delete them", "请删除它们"}},
  {stage_code::taint_left, "taint_left",
   {"taint quartermaster.io/switching is there, and no change is under way: no new pod comes here", "存在污点 quartermaster.io/switching，但没有切换在进行：不会调度新的 Pod"},
   {"kubectl taint node {node} quartermaster.io/switching-", "kubectl taint node {node} quartermaster.io/switching-"}},
  {stage_code::allocation_failed, "allocation_failed",
   {"a test pod for {other} did not run: {value}", "测试 Pod（{other}）未能运行：{value}"},
   {"kubectl get events -n {namespace} --field-selector involvedObject.name={pod}", "kubectl get events -n {namespace} --field-selector involvedObject.name={pod}"}},
  {stage_code::allocation_sees_nothing, "allocation_sees_nothing",
   {"a test pod for {other} ran and sees no card", "测试 Pod（{other}）已运行，但看不到卡"},
   {"nvidia-ctk and the container runtime's configuration on {node}: the plugin gave a card, and the runtime did not put it into the container", "请检查 {node} 上的 nvidia-ctk 与容器运行时配置：插件已分配卡，但运行时没有把它放入容器"}},
  {stage_code::scheduler_not_ready, "scheduler_not_ready",
   {"pods that ask for accelerators wait or go past the extender: {value}: {other}", "请求加速卡的 Pod 会等待，或绕过扩展器：{value}：{other}"},
   {"do what it says; kubectl get pods -A -l app.kubernetes.io/name=quartermaster-scheduler and kubectl describe apol default show more", "请按其提示处理；kubectl get pods -A -l app.kubernetes.io/name=quartermaster-scheduler 与 kubectl describe apol default 可查看详情"}},
  {stage_code::scheduler_leaving, "scheduler_leaving",
   {"the scheduler is being switched off: {value}: {other}", "调度器正在关闭：{value}：{other}"},
   {"kubectl get pods -A --field-selector spec.schedulerName=quartermaster,spec.nodeName=,status.phase=Pending lists who waits for it: delete those that an owner recreates; docs/scheduling.md, \"Switching off\"", "kubectl get pods -A --field-selector spec.schedulerName=quartermaster,spec.nodeName=,status.phase=Pending 可列出正在等待的 Pod：请删除会由其所有者重新创建的；见 docs/scheduling.md 的 \"Switching off\""}},
  {stage_code::control_plane_node_stopped, "control_plane_node_stopped",
   {"control-plane node {value}: a person has to look, nothing is written there: {other}", "控制平面节点 {value}：需要人工处理，不会再写入任何文件：{other}"},
   {"fix what it says on {value}, then delete /etc/kubernetes/quartermaster/record.json there for a new try", "请在 {value} 上按其提示处理，然后删除其 /etc/kubernetes/quartermaster/record.json 以重试"}},
  {stage_code::control_plane_node_rolled_back, "control_plane_node_rolled_back",
   {"control-plane node {value}: its kube-scheduler did not work with our extender and has its own files back: {other}", "控制平面节点 {value}：其 kube-scheduler 使用本扩展器时未能工作，文件已恢复：{other}"},
   {"quartermaster lint scheduler-config on {value}'s files; the same is not tried twice: fix it, or delete /etc/kubernetes/quartermaster/record.json there", "请对 {value} 的文件执行 quartermaster lint scheduler-config；相同内容不会重试：请改正，或删除其 /etc/kubernetes/quartermaster/record.json"}},
  {stage_code::control_plane_node_without_agent, "control_plane_node_without_agent",
   {"control-plane node {value}: {other}", "控制平面节点 {value}：没有代理上报其状态：{other}"},
   {"kubectl get pods -A -o wide --field-selector spec.nodeName={value}: the agent's pod quartermaster-static-pod has to run there", "kubectl get pods -A -o wide --field-selector spec.nodeName={value}：代理的 Pod quartermaster-static-pod 必须在其上运行"}},
  {stage_code::control_plane_node_not_ready, "control_plane_node_not_ready",
   {"control-plane node {value}: its kube-scheduler does not ask the extender yet: {other}", "控制平面节点 {value}：其 kube-scheduler 尚未询问扩展器：{other}"},
   {"wait, one control-plane node changes at a time; if it stays so, read the log of the agent's pod quartermaster-static-pod on {value}", "请等待，各控制平面节点依次变更；若一直如此，请查看 {value} 上代理 Pod quartermaster-static-pod 的日志"}},
  {stage_code::caller_certificate_ends, "caller_certificate_ends",
   {"{value}", "{value}"},
   {"hand over what it names and have those kube-schedulers started again", "请交付其中指明的文件，并重启这些 kube-scheduler"}},
  {stage_code::runtimes_not_fixed, "runtimes_not_fixed",
   {"container runtimes of nodes: {value}: {other}", "节点的容器运行时：{value}：{other}"},
   {"do what it says; docs/agent.md, and kubectl describe anode of the node it names show more", "请按其提示处理；更多信息见 docs/agent.md 与所述节点的 kubectl describe anode"}},
  {stage_code::withdrawals_held_back, "withdrawals_held_back",
   {"sick cards still get pods: {value}", "故障卡仍在接收 Pod：{value}"},
   {"kubectl get anode shows which nodes; spec.health.maxWithdrawn of AcceleratorPolicy default is the limit", "kubectl get anode 可查看相关节点；上限为 AcceleratorPolicy default 的 spec.health.maxWithdrawn"}},
  {stage_code::condition_unknown, "condition_unknown",
   {"AcceleratorPolicy default has a condition {value} that this version of quartermaster does not know: {other}", "AcceleratorPolicy default 带有此版本 quartermaster 不认识的状况 {value}：{other}"},
   {"ask with the version that the operator has: kubectl get deploy -A -l app.kubernetes.io/name=quartermaster -o wide", "请使用与 Operator 相同的版本：kubectl get deploy -A -l app.kubernetes.io/name=quartermaster -o wide"}},
  {stage_code::quota_not_enforced, "quota_not_enforced",
   {"no one enforces AcceleratorQuota {value}: {other}", "没有组件执行 AcceleratorQuota {value}：{other}"},
   {"do what it says, or delete the quota: pods of its namespace are not held to it", "请按其提示处理，或删除该配额：其命名空间的 Pod 不受其限制"}},
  {stage_code::quota_counts_in_part, "quota_counts_in_part",
   {"AcceleratorQuota {value} counts in part: {other}", "AcceleratorQuota {value} 仅部分生效：{other}"},
   {"put right what it says in its spec", "请按其提示修改其 spec"}},
  {stage_code::scheduler_unseen, "scheduler_unseen",
   {"no kube-scheduler has looked at a test pod with schedulerName {other} within {value}", "{value} 内没有 kube-scheduler 处理 schedulerName 为 {other} 的测试 Pod"},
   {"start the kube-scheduler whose profile has the schedulerName {other} (kubectl get leases -A shows which lead and renew); or name the one there is: --scheduler NAME", "请启动 profile 的 schedulerName 为 {other} 的 kube-scheduler（kubectl get leases -A 可查看哪些在续租）；或指定现有的调度器：--scheduler NAME"}},
  {stage_code::scheduler_looks_itself, "scheduler_looks_itself",
   {"the scheduler {other} does not ask the extender, it looks on the nodes for what no node offers: {value}", "调度器 {other} 没有询问扩展器，而是自行在节点上查找没有节点提供的资源：{value}"},
   {"hand what quartermaster render scheduler-config writes to the people who run it; a kube-scheduler reads its file at its start alone, so it has to be restarted; if the entry is there, its managedResources lacks the resource, or ignoredByScheduler: true (quartermaster lint scheduler-config FILE), or try --resource KEY", "请把 quartermaster render scheduler-config 的输出交给其维护者；kube-scheduler 只在启动时读取配置，因此需要重启；若已有该扩展器，则其 managedResources 缺少该资源或 ignoredByScheduler: true（quartermaster lint scheduler-config FILE），或试用 --resource KEY"}},
  {stage_code::scheduler_found_no_node, "scheduler_found_no_node",
   {"the scheduler {other} left no node over by itself, so that our extender was not asked: {value}", "调度器 {other} 自身已排除所有节点，因此没有询问本扩展器：{value}"},
   {"fix what it says and try again; without --resource no node has to have anything free; words that are not Kubernetes' own are of another extender", "请按其提示处理后重试；不带 --resource 时不要求节点有空闲资源；非 Kubernetes 自身的提示来自其他扩展器"}},
  {stage_code::scheduler_did_not_ask, "scheduler_did_not_ask",
   {"the scheduler {other} bound a test pod that the extender refuses everywhere to node {value}: it does NOT ask the extender and gives cards out outside its book; the pod is removed", "调度器 {other} 把扩展器在所有节点上都会拒绝的测试 Pod 绑定到了节点 {value}：它没有询问扩展器，会在其账本之外分配卡；该 Pod 已删除"},
   {"send no pods that ask for cards there until it asks: hand what quartermaster render scheduler-config writes to the people who run it, have it restarted, then verify again", "在它询问扩展器之前，不要让请求卡的 Pod 经过它：请把 quartermaster render scheduler-config 的输出交给其维护者，重启后再次验证"}},
  {stage_code::extender_unreachable, "extender_unreachable",
   {"the scheduler {other} asks an extender and cannot reach it: {value}", "调度器 {other} 询问扩展器但无法连接：{value}"},
   {"from where kube-scheduler runs, that address has to be reachable: the operator runs and its Service quartermaster-extender has endpoints; control-plane nodes outside of the cluster's network need a load balancer or node port; a host resolves no Service names", "该地址须能从 kube-scheduler 所在处访问：Operator 正在运行，且 Service quartermaster-extender 有端点；集群网络之外的控制平面需要负载均衡或 NodePort；主机不解析 Service 名称"}},
  {stage_code::extender_untrusted, "extender_untrusted",
   {"the scheduler {other} asks an extender, and the certificates do not fit: {value}", "调度器 {other} 询问扩展器，但证书不匹配：{value}"},
   {"hand over ca.crt, tls.crt and tls.key of Secret quartermaster-extender-client as they are now, with the serverName of the extender's Service, and have kube-scheduler restarted; a connection that is closed at once is a client certificate the extender does not know, or a proxy in between", "请交付 Secret quartermaster-extender-client 当前的 ca.crt、tls.crt 与 tls.key，以及扩展器 Service 的 serverName，并重启 kube-scheduler；连接立即被关闭表示扩展器不认识该客户端证书，或中间有代理"}},
  {stage_code::extender_refuses, "extender_refuses",
   {"the scheduler {other} asks an extender, which does not answer as one: {value}", "调度器 {other} 询问扩展器，但未得到有效应答：{value}"},
   {"503: no operator leads, read its log; 404: urlPrefix has to end with /scheduler and filterVerb is filter; 401 or 403: the API server's proxy is in between, use the address of the Service", "503：没有 Operator 担任 leader，请查看其日志；404：urlPrefix 须以 /scheduler 结尾且 filterVerb 为 filter；401 或 403：经过了 API 服务器代理，请使用 Service 地址"}},
  {stage_code::test_pod_refused, "test_pod_refused",
   {"the test pod could not be made: {value}", "无法创建测试 Pod：{value}"},
   {"do what it says; pods are held to the same where they are people's. Another scheduler: --scheduler NAME, another resource: --resource KEY, another namespace: --allocate-namespace", "请按其提示处理；用户的 Pod 受到同样的约束。其他调度器：--scheduler NAME；其他资源：--resource KEY；其他命名空间：--allocate-namespace"}},
}};
// clang-format on

std::string filled(std::string_view text, const step& step, std::string_view node, language locale) {
  const auto& other = locale == language::zh && !step.other_zh.empty() ? step.other_zh : step.other;
  std::string out;
  while (!text.empty()) {
    const auto open = text.find('{');
    out += text.substr(0, open);
    if (open == std::string_view::npos) break;
    text.remove_prefix(open);
    const auto take = [&](std::string_view mark, std::string_view value) {
      if (!text.starts_with(mark)) return false;
      out += value;
      text.remove_prefix(mark.size());
      return true;
    };
    if (take("{value}", step.value) || take("{other}", other) || take("{node}", node) || take("{pod}", step.pod.name) ||
        take("{namespace}", step.pod.ns))
      continue;
    out += '{';
    text.remove_prefix(1);
  }
  return out;
}

std::string good_text(const step& step, language locale) {
  const bool zh = locale == language::zh;
  if (step.position == stage::label && step.value.empty() && !step.other.empty())
    return zh ? "没有标签；按策略的默认值为 " + step.other : "no label; the policy's default is " + step.other;
  if (step.position == stage::label && step.other.empty())
    return step.value.empty() ? (zh ? "没有请求模式的标签" : "no label asks for a mode")
                              : step.value + (zh ? "：不请求任何模式" : " asks for no mode");
  if (step.position == stage::policy && step.value.empty())
    return zh ? "AcceleratorPolicy default 已就绪" : "AcceleratorPolicy default is ready";
  if (step.position == stage::scheduler && step.value == "None")
    return zh ? "spec.scheduler.mode 为 None：由人工配置的 kube-scheduler 是否询问扩展器，用 quartermaster verify "
                "--scheduler 验证"
              : "spec.scheduler.mode is None; whether a kube-scheduler that was set up by hand asks the extender, "
                "quartermaster verify --scheduler proves";
  if (step.position == stage::pods) {
    auto words = step;
    words.other = step.other.empty() ? "" : (zh ? "：" : ": ") + step.other;
    if (!zh) words.value += step.value == "1" ? " pod" : " pods";
    if (!zh && step.value == "1") return words.value + " holds cards" + words.other;
    return filled(stages[static_cast<std::size_t>(step.position)].good.in(locale), words, {}, locale);
  }
  return filled(stages[static_cast<std::size_t>(step.position)].good.in(locale), step, {}, locale);
}

}  // namespace

std::string_view to_string(stage stage) noexcept { return stages[static_cast<std::size_t>(stage)].name.en; }
std::string_view name_of(stage stage, language language) noexcept {
  return stages[static_cast<std::size_t>(stage)].name.in(language);
}

std::string_view to_string(outcome is) noexcept {
  constexpr std::array<std::string_view, 6> all{"good", "wrong", "changing", "warning", "unknown", "skipped"};
  return all[static_cast<std::size_t>(is)];
}

std::string_view to_string(stage_code code) noexcept { return codes[static_cast<std::size_t>(code)].name; }

std::string text_of(const step& step, language locale) {
  if (step.row) return reconcilers::text_of(*step.row, locale);
  if (step.reported) return step.reported->check + (locale == language::zh ? "：" : ": ") + step.reported->found;
  if (step.is == outcome::skipped)
    return locale == language::zh ? "未检查：取决于另一处问题" : "not looked at: it follows from something else";
  if (step.is == outcome::good) return good_text(step, locale);
  const auto& row = codes[static_cast<std::size_t>(step.cause)];
  if (step.cause == stage_code::none) return step.value;
  auto out = filled(row.text.in(locale), step, {}, locale);
  if (step.cause == stage_code::policy_missing && !step.value.empty())
    out += (locale == language::zh ? "；现有：" : "; there is ") + step.value;
  return out;
}

std::string remedy_of(const step& step, std::string_view node, language language) {
  if (step.row) return reconcilers::remedy_of(*step.row, language);
  if (step.reported) return step.reported->remedy;
  if (step.is != outcome::wrong && step.is != outcome::changing) return {};
  return filled(codes[static_cast<std::size_t>(step.cause)].remedy.in(language), step, node, language);
}

}  // namespace reconcilers::verify
