#include "scheduler_config/judge/finding.hpp"

#include <algorithm>
#include <array>

#include "scheduler_config/names.hpp"
#include "scheduler_config/url.hpp"
#include "text/text.hpp"

namespace scheduler_config {
namespace {

using text::language, text::shown;
using enum effect;

struct code_text {
  code issue;
  std::string_view name;
  effect comes;
  text::message_pattern en, zh;
};

// {field} {value} {other} {allowed} {hint}.
// clang-format off
constexpr std::array<code_text, code_count> table{{
  {code::not_yaml, "not_yaml", ends,
   {"this is no YAML: {other}", "", "correct it here or a line above", ""},
   {"不是合法的 YAML：{other}", "", "请更正此处或上一行", ""}},
  {code::not_json, "not_json", ends,
   {"the file begins with {, so kube-scheduler reads it as JSON, and it is none: {other}", "", "write JSON, or YAML that does not begin with {", ""},
   {"文件以 { 开头，kube-scheduler 按 JSON 读取，但不是合法的 JSON：{other}", "", "请写成 JSON，或不以 { 开头的 YAML", ""}},
  {code::no_kind, "no_kind", ends,
   {"{field} is missing", "apiVersion: kubescheduler.config.k8s.io/v1 and kind: KubeSchedulerConfiguration", "write {field}: {hint}", ""},
   {"缺少 {field}", "apiVersion: kubescheduler.config.k8s.io/v1 与 kind: KubeSchedulerConfiguration", "请填写 {field}: {hint}", ""}},
  {code::other_kind, "other_kind", ends,
   {"kind is \"{value}\"", "KubeSchedulerConfiguration", "write KubeSchedulerConfiguration, or hand over another file", ""},
   {"kind 为“{value}”", "KubeSchedulerConfiguration", "请填写 KubeSchedulerConfiguration，或换一个文件", ""}},
  {code::policy, "policy", ends,
   {"a scheduler Policy: kube-scheduler has read none since Kubernetes 1.23, and --policy-config-file with it is gone", "kind: KubeSchedulerConfiguration", "write its extenders into a KubeSchedulerConfiguration; quartermaster render scheduler-config shows one", ""},
   {"这是调度器 Policy：自 Kubernetes 1.23 起 kube-scheduler 不再读取，--policy-config-file 也已移除", "kind: KubeSchedulerConfiguration", "请将其中的扩展写入 KubeSchedulerConfiguration；quartermaster render scheduler-config 可输出一份", ""}},
  {code::api_version_removed, "api_version_removed", ends,
   {"apiVersion is {value}, which kube-scheduler no longer reads since Kubernetes {other}", "{allowed}", "write {hint}", ""},
   {"apiVersion 为 {value}，自 Kubernetes {other} 起 kube-scheduler 不再读取该版本", "{allowed}", "请改为 {hint}", ""}},
  {code::api_version_unknown, "api_version_unknown", ends,
   {"apiVersion is \"{value}\", which no kube-scheduler knows", "{allowed}", "write {hint}", ""},
   {"apiVersion 为“{value}”，任何 kube-scheduler 都不认识", "{allowed}", "请改为 {hint}", ""}},
  {code::written_twice, "written_twice", ends,
   {"{field} is written again further down; kube-scheduler refuses that", "each name once", "remove one of the two", ""},
   {"{field} 在后面又写了一次，kube-scheduler 不接受", "每个名称只写一次", "请删除其中之一", ""}},
  {code::merged_twice, "merged_twice", ends,
   {"{field} stands here and comes by << as well; kube-scheduler refuses that", "each name once", "write the mapping out without <<", ""},
   {"{field} 既写在这里又由 << 引入，kube-scheduler 不接受", "每个名称只写一次", "请不用 <<，直接写全", ""}},
  {code::field_misplaced, "field_misplaced", ends,
   {"{value}: at the left margin kube-scheduler knows no such field", "inside of {other}", "indent it as the rest of {other}", ""},
   {"{value} 写在了最左边，kube-scheduler 在此处没有这样的字段", "应在 {other} 之内", "请缩进到 {other} 之下", ""}},
  {code::field_unknown, "field_unknown", ends,
   {"{field}: kube-scheduler knows no such field here, and reads strictly", "{allowed}", "remove it", "did you mean {hint}?"},
   {"{field}：kube-scheduler 在此处没有这个字段，且读取是严格的", "{allowed}", "请删除它", "是否想写 {hint}？"}},
  {code::field_of_other_version, "field_of_other_version", ends,
   {"{field} is not a field of {other}", "{allowed}", "remove it", "{hint}"},
   {"{field} 不是 {other} 的字段", "{allowed}", "请删除它", "{hint}"}},
  {code::algorithm_source, "algorithm_source", ends,
   {"algorithmSource: kube-scheduler no longer reads it, and has read no Policy since Kubernetes 1.23", "extenders, and plugins in profiles", "write the extenders of the Policy into extenders of this file, and remove algorithmSource; quartermaster render scheduler-config shows one", ""},
   {"algorithmSource：kube-scheduler 不再读取该字段，且自 Kubernetes 1.23 起不再读取 Policy", "extenders，以及 profiles 中的插件", "请将 Policy 中的扩展写入本文件的 extenders，并删除 algorithmSource；quartermaster render scheduler-config 可输出一份", ""}},
  {code::config_map_without, "config_map_without", ends,
   {"ConfigMap {value} has no KubeSchedulerConfiguration in data; it has {other}", "an entry of data that is a KubeSchedulerConfiguration", "hand over the file that holds it", ""},
   {"ConfigMap {value} 的 data 中没有 KubeSchedulerConfiguration，只有 {other}", "data 中内容为 KubeSchedulerConfiguration 的条目", "请换成含有该配置的文件", ""}},
  {code::wrong_type, "wrong_type", ends,
   {"{field} is {value}", "{allowed}", "write {allowed}", "write {hint}"},
   {"{field} 为 {value}", "{allowed}", "请填写 {allowed}", "请改为 {hint}"}},
  {code::not_a_duration, "not_a_duration", ends,
   {"{field} is {value}, which is no duration", "a number with a unit in text: 5s, 500ms, 1m30s", "write {hint}", ""},
   {"{field} 为 {value}，不是时长", "带单位的文本：5s、500ms、1m30s", "请改为 {hint}", ""}},
  {code::not_base64, "not_base64", ends,
   {"{field} is no base64", "base64 of the file on one line", "write what base64 -w0 FILE prints; a path belongs into {hint}", ""},
   {"{field} 不是 base64", "文件内容的 base64，写成一行", "请填写 base64 -w0 文件 的输出；路径应写在 {hint}", ""}},

  {code::value_refused, "value_refused", ends,
   {"{field} is {value}", "{allowed}", "write one of these", "{hint}"},
   {"{field} 为 {value}", "{allowed}", "请填写允许的值", "{hint}"}},
  {code::scheduler_name_missing, "scheduler_name_missing", ends,
   {"{field} is missing: of several profiles each needs a name", "a name of its own", "write schedulerName: {hint}", ""},
   {"缺少 {field}：有多个 profile 时每个都需要名称", "各自的名称", "请填写 schedulerName: {hint}", ""}},
  {code::scheduler_name_twice, "scheduler_name_twice", ends,
   {"{field} is {value}, as {other} is", "a name of its own for each profile", "make one profile of the two, or rename one", ""},
   {"{field} 为 {value}，与 {other} 相同", "每个 profile 使用各自的名称", "请合并为一个 profile，或改名", ""}},
  {code::resource_lock, "resource_lock", ends,
   {"{field} is {value}, a lock Kubernetes no longer has", "leases", "write leases, or leave the line out", ""},
   {"{field} 为 {value}，Kubernetes 已不再支持这种锁", "leases", "请填写 leases，或删除该行", ""}},
  {code::lease_times, "lease_times", ends,
   {"{field} is {value}", "{allowed}", "leave the line out: 15s, 10s and 2s are the defaults", ""},
   {"{field} 为 {value}", "{allowed}", "请删除该行：默认值为 15s、10s、2s", ""}},
  {code::backoff_order, "backoff_order", ends,
   {"{field} is {value}, less than podInitialBackoffSeconds ({other})", "{other} or more", "write {other} or more", ""},
   {"{field} 为 {value}，小于 podInitialBackoffSeconds（{other}）", "不小于 {other}", "请填写不小于 {other} 的值", ""}},
  {code::weight_zero, "weight_zero", ends,
   {"{field} is {value} and there is a prioritizeVerb", "1 or more", "write weight: 1 or more, or remove prioritizeVerb", ""},
   {"{field} 为 {value}，而又写了 prioritizeVerb", "不小于 1", "请填写不小于 1 的 weight，或删除 prioritizeVerb", ""}},
  {code::two_binders, "two_binders", ends,
   {"{field}: {other} binds already, and kube-scheduler takes one extender with a bindVerb", "one bindVerb in all extenders", "remove one of the two bindVerb", ""},
   {"{field}：{other} 已负责绑定，kube-scheduler 只接受一个带 bindVerb 的扩展", "全部扩展中只有一个 bindVerb", "请删除其中一个 bindVerb", ""}},
  {code::managed_twice, "managed_twice", ends,
   {"{field} is {value}, which {other} manages already", "each resource in one extender", "leave it to one of the two", ""},
   {"{field} 为 {value}，已由 {other} 管理", "每个资源只属于一个扩展", "请只保留其中之一", ""}},
  {code::managed_name, "managed_name", ends,
   {"{field} is \"{value}\", which is no extended resource", "<domain>/<name> as the device plugin advertises it, not of kubernetes.io", "write the full name", "did you mean {hint}?"},
   {"{field} 为“{value}”，不是扩展资源", "设备插件上报的 <域名>/<名称>，不属于 kubernetes.io", "请填写完整的资源名", "是否想写 {hint}？"}},
  {code::plugin_unknown, "plugin_unknown", ends,
   {"{field} is {value}: kube-scheduler {other} has no such plugin", "the plugins of kube-scheduler {other}, and those named with --plugin", "remove it; for a kube-scheduler of your own that has it: --plugin {value}", "did you mean {hint}?"},
   {"{field} 为 {value}：kube-scheduler {other} 没有这个插件", "kube-scheduler {other} 自带的插件，以及用 --plugin 指明的插件", "请删除它；若自编译的 kube-scheduler 含有它：--plugin {value}", "是否想写 {hint}？"}},
  {code::plugin_removed, "plugin_removed", ends,
   {"{field} is {value}, a plugin that Kubernetes removed", "plugins of kube-scheduler {other}", "remove it; NodeVolumeLimits does its work", ""},
   {"{field} 为 {value}，Kubernetes 已移除该插件", "kube-scheduler {other} 的插件", "请删除它；其功能由 NodeVolumeLimits 承担", ""}},
  {code::plugin_point, "plugin_point", ends,
   {"{field} is {value}, which does nothing at {other}", "{allowed}", "move it to one of these, or to multiPoint", ""},
   {"{field} 为 {value}，该插件不属于 {other}", "{allowed}", "请移到其中之一，或 multiPoint", ""}},
  {code::plugin_twice, "plugin_twice", ends,
   {"{field} is {value} again", "each plugin once at an extension point", "remove one of the two", ""},
   {"{field} 再次为 {value}", "每个扩展点中每个插件只出现一次", "请删除其中之一", ""}},
  {code::plugin_set, "plugin_set", ends,
   {"{field} leaves the profile with {value} plugins of {other}", "{allowed}", "write {hint}", ""},
   {"{field} 使该 profile 的 {other} 插件为 {value} 个", "{allowed}", "请填写 {hint}", ""}},
  {code::plugin_without_args, "plugin_without_args", ends,
   {"{field} is {value}, which this extension point alone gives no arguments", "a plugin that has arguments at another extension point or in multiPoint too, or in pluginConfig", "write pluginConfig: [{name: {value}}]", ""},
   {"{field} 为 {value}，仅在此扩展点启用时没有参数", "有参数的插件同时出现在其他扩展点、multiPoint 或 pluginConfig 中", "请填写 pluginConfig: [{name: {value}}]", ""}},
  {code::queue_sort, "queue_sort", ends,
   {"{field} differs from that of the first profile: all profiles share one queue", "the same in all profiles", "write the same into each profile, or into none", ""},
   {"{field} 与第一个 profile 不同：所有 profile 共用一个队列", "各 profile 相同", "请在每个 profile 中写得相同，或都不写", ""}},
  {code::plugin_config_twice, "plugin_config_twice", ends,
   {"{field} is {value} again", "one entry a plugin", "make one entry of the two", ""},
   {"{field} 再次为 {value}", "每个插件一项", "请合并为一项", ""}},
  {code::args_of_other_kind, "args_of_other_kind", ends,
   {"{field} is {value}", "{allowed}", "remove apiVersion and kind there", ""},
   {"{field} 为 {value}", "{allowed}", "请删除其中的 apiVersion 与 kind", ""}},
  {code::insecure_with_ca, "insecure_with_ca", ends,
   {"{field} is true and there is a certificate authority", "one of the two", "remove insecure", ""},
   {"{field} 为 true，而又给出了证书颁发机构", "两者之一", "请删除 insecure", ""}},
  {code::certificate_not_pem, "certificate_not_pem", ends,
   {"{field} is base64 of something that is no PEM", "base64 of a file that begins with -----BEGIN", "write what base64 -w0 FILE prints of the PEM file", ""},
   {"{field} 的 base64 内容不是 PEM", "以 -----BEGIN 开头的文件的 base64", "请填写 base64 -w0 文件 对 PEM 文件的输出", ""}},
  {code::key_of_other_certificate, "key_of_other_certificate", ends,
   {"{field} is not the key of certData", "a certificate and its own key", "take both from one Secret", ""},
   {"{field} 不是 certData 的私钥", "证书及其私钥", "请从同一个 Secret 中取两者", ""}},
  {code::no_kubeconfig, "no_kubeconfig", ends,
   {"clientConnection.kubeconfig is missing, and the flag --kubeconfig counts no more once there is --config", "the path of the kubeconfig in the container", "write clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}", ""},
   {"缺少 clientConnection.kubeconfig，而使用 --config 后参数 --kubeconfig 不再生效", "kubeconfig 在容器中的路径", "请填写 clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}", ""}},

  {code::flag_with_one_dash, "flag_with_one_dash", ends,
   {"{value}: with one dash kube-scheduler takes it for short flags and ends", "{hint}", "write {hint}", ""},
   {"{value}：只有一个短横时 kube-scheduler 会当作短参数并退出", "{hint}", "请改为 {hint}", ""}},
  {code::flag_removed, "flag_removed", ends,
   {"{value}: kube-scheduler {other} has no such flag", "--config={hint}", "write the extenders of the policy into a KubeSchedulerConfiguration, and --config={hint}", ""},
   {"{value}：kube-scheduler {other} 没有这个参数", "--config={hint}", "请将 Policy 中的扩展写入 KubeSchedulerConfiguration，并改为 --config={hint}", ""}},
  {code::flag_gone, "flag_gone", ends,
   {"{value}: kube-scheduler has had no flag {field} since Kubernetes {other}, and ends", "the flags of kube-scheduler --help", "remove it", "write {hint}"},
   {"{value}：自 Kubernetes {other} 起 kube-scheduler 没有参数 {field}，会退出", "kube-scheduler --help 列出的参数", "请删除它", "请改为 {hint}"}},
  {code::flag_unknown, "flag_unknown", ends,
   {"{value}: kube-scheduler {other} has no such flag, and ends", "the flags of kube-scheduler --help", "remove it", "did you mean {hint}?"},
   {"{value}：kube-scheduler {other} 没有这个参数，会退出", "kube-scheduler --help 列出的参数", "请删除它", "是否想写 {hint}？"}},
  {code::flag_of_other_version, "flag_of_other_version", ends,
   {"{value}: kube-scheduler {other} has no such flag, and ends", "{field} {allowed}", "remove it", ""},
   {"{value}：kube-scheduler {other} 没有这个参数，会退出", "{field} {allowed}", "请删除它", ""}},
  {code::flag_value, "flag_value", ends,
   {"{field} is \"{value}\", at which kube-scheduler ends", "{allowed}", "write what is allowed, or remove the flag", "did you mean {hint}?"},
   {"{field} 为“{value}”，kube-scheduler 会退出", "{allowed}", "请填写允许的值，或删除该参数", "是否想写 {hint}？"}},
  {code::flag_without_value, "flag_without_value", ends,
   {"{field} needs a value and is the last word: kube-scheduler ends", "{field}=VALUE", "write the value", ""},
   {"{field} 需要一个值，却是最后一个词：kube-scheduler 会退出", "{field}=值", "请填写该值", ""}},
  {code::flag_ends, "flag_ends", ends,
   {"{value}: kube-scheduler prints or writes what it is asked for, and ends", "flags with which it goes on running", "remove it", ""},
   {"{value}：kube-scheduler 输出所要求的内容后即退出", "使其继续运行的参数", "请删除它", ""}},
  {code::argument, "argument", ends,
   {"\"{value}\": kube-scheduler takes no arguments, and ends", "flags alone, as --NAME=VALUE", "remove it", "did you mean {hint}?"},
   {"“{value}”：kube-scheduler 不接受参数以外的词，会退出", "只写参数，形如 --名称=值", "请删除它", "是否想写 {hint}？"}},
  {code::words_in_one, "words_in_one", ends,
   {"\"{value}\" is one word, and no program has that name", "each word as an item of its own", "write command: [kube-scheduler, --config=FILE]", ""},
   {"“{value}”是一个词，没有这个名称的程序", "每个词各为一项", "请填写 command: [kube-scheduler, --config=文件]", ""}},
  {code::gate_unknown, "gate_unknown", ends,
   {"feature gate {value}: kube-scheduler {other} knows no such gate, and ends", "the gates of Kubernetes {other}", "remove it from --feature-gates", "did you mean {hint}?"},
   {"特性门控 {value}：kube-scheduler {other} 没有这个门控，会退出", "Kubernetes {other} 的特性门控", "请从 --feature-gates 中删除它", "是否想写 {hint}？"}},
  {code::gate_of_other_version, "gate_of_other_version", ends,
   {"feature gate {value}: kube-scheduler {other} does not have it, and ends", "{field} in Kubernetes {allowed}", "remove it from --feature-gates", ""},
   {"特性门控 {value}：kube-scheduler {other} 没有这个门控，会退出", "{field} 用于 Kubernetes {allowed}", "请从 --feature-gates 中删除它", ""}},
  {code::gate_locked, "gate_locked", ends,
   {"feature gate {value}: in kube-scheduler {other} it is locked, and cannot be set so", "{field}={hint}", "remove it from --feature-gates", ""},
   {"特性门控 {value}：在 kube-scheduler {other} 中已锁定，不能这样设置", "{field}={hint}", "请从 --feature-gates 中删除它", ""}},
  {code::gate_dependency, "gate_dependency", ends,
   {"feature gate {field} is on and needs {value}, which is off: kube-scheduler ends", "both on, or both off", "write {hint}, or {field}=false", ""},
   {"特性门控 {field} 已启用，它需要的 {value} 却未启用：kube-scheduler 会退出", "两者都启用，或都不启用", "请填写 {hint}，或 {field}=false", ""}},
  {code::file_not_mounted, "file_not_mounted", ends,
   {"{value} ({other}) is in no mount of the container: kube-scheduler cannot open it", "a hostPath volume and its volumeMount", "{hint}", ""},
   {"{value}（{other}）未挂载到容器中：kube-scheduler 打不开它", "hostPath 卷及其 volumeMount", "{hint}", ""}},

  {code::no_config_flag, "no_config_flag", idle,
   {"no --config among the flags: kube-scheduler reads no file", "--config={hint}", "add - --config={hint} below command", ""},
   {"参数中没有 --config：kube-scheduler 不读取任何文件", "--config={hint}", "请在 command 下添加 - --config={hint}", ""}},
  {code::placeholder_left, "placeholder_left", idle,
   {"{field} still holds {value}, which a person was to replace", "an address", "write {hint}", ""},
   {"{field} 中仍有 {value}，需要人工替换", "地址", "请填写 {hint}", ""}},
  {code::url_folded, "url_folded", idle,
   {"{field} is \"{value}\": there is a blank in it, as where an address runs over two lines", "https://HOST:PORT/PATH on one line", "write the whole address on one line", ""},
   {"{field} 为“{value}”：其中有空白，例如写成了两行", "写在一行中的 https://主机:端口/路径", "请将完整地址写在一行", ""}},
  {code::url_cut, "url_cut", idle,
   {"{field} is \"{value}\", which is no whole address", "{allowed}", "write all of it", ""},
   {"{field} 为“{value}”，地址不完整", "{allowed}", "请填写完整地址", ""}},
  {code::url_malformed, "url_malformed", idle,
   {"{field} is \"{value}\", and nothing can be sent there: {other}", "https://HOST:PORT/PATH", "write the extender's address", ""},
   {"{field} 为“{value}”，无法向其发送请求：{other}", "https://主机:端口/路径", "请填写扩展的地址", ""}},
  {code::url_of_service_name, "url_of_service_name", idle,
   {"{field} is {value}: kube-scheduler on the host network resolves no name of a Service", "the Service's clusterIP or a node's address, with tlsConfig.serverName for the certificate", "write the clusterIP and tlsConfig.serverName: {hint}", ""},
   {"{field} 为 {value}：使用主机网络的 kube-scheduler 无法解析 Service 名称", "Service 的 clusterIP 或节点地址，并用 tlsConfig.serverName 对应证书", "请填写 clusterIP，并加上 tlsConfig.serverName: {hint}", ""}},
  {code::service_proxy_without_certificate, "service_proxy_without_certificate", idle,
   {"{field} goes through the API server's service proxy without a client certificate: it answers 401 or 403", "certFile and keyFile, or certData and keyData, of an identity with a Role", "add them, with a Role in {other}: create on services/proxy, resourceNames [\"{hint}\"]", ""},
   {"{field} 经过 API server 的 service proxy，却没有客户端证书：返回 401 或 403", "具有 Role 的身份的 certFile 与 keyFile，或 certData 与 keyData", "请添加，并在 {other} 中建立 Role：对 services/proxy 的 create，resourceNames [\"{hint}\"]", ""}},
  {code::not_offered_not_ignored, "not_offered_not_ignored", idle,
   {"{field} is {value} without ignoredByScheduler: no node advertises it, so kube-scheduler itself finds no room", "ignoredByScheduler: true for what no node advertises", "add ignoredByScheduler: true", ""},
   {"{field} 为 {value}，未设置 ignoredByScheduler：没有节点上报它，kube-scheduler 自身会认为资源不足", "没有节点上报的资源设置 ignoredByScheduler: true", "请添加 ignoredByScheduler: true", ""}},
  {code::lease_name_malformed, "lease_name_malformed", idle,
   {"{field} is \"{value}\": the API server has no Lease of that name, so this kube-scheduler never leads and schedules nothing", "{allowed}", "write a legal name, or leave the line out", ""},
   {"{field} 为“{value}”：API server 不接受这样的 Lease，此 kube-scheduler 永远无法成为 leader，不会调度任何 Pod", "{allowed}", "请填写合法的名称，或删除该行", ""}},
  {code::extender_lost, "extender_lost", idle,
   {"{field} asks for {value}; {other} has no such extender, and kube-scheduler reads one file", "all extenders in one file", "merge: quartermaster render scheduler-config --into, or copy the entry", ""},
   {"{field} 负责 {value}；{other} 中没有该扩展，而 kube-scheduler 只读取一个文件", "所有扩展写在一个文件中", "请合并：quartermaster render scheduler-config --into，或复制该项", ""}},

  {code::kubelet_client_certificate, "kubelet_client_certificate", risk,
   {"{field} is {value}: since 1.33.12, 1.34.8, 1.35.5 and 1.36.1 kubeadm issues it without a group, and after its next renewal the API server answers 403", "a certificate with the right for this Service alone", "make one by a CertificateSigningRequest, with a Role in {other}: create on services/proxy, resourceNames [\"{hint}\"]", ""},
   {"{field} 为 {value}：自 1.33.12、1.34.8、1.35.5、1.36.1 起 kubeadm 签发时不再带组，下次续期后 API server 返回 403", "只拥有该 Service 权限的证书", "请通过 CertificateSigningRequest 签发，并在 {other} 中建立 Role：对 services/proxy 的 create，resourceNames [\"{hint}\"]", ""}},
  {code::service_proxy_rights, "service_proxy_rights", risk,
   {"{field} goes through the API server's service proxy: the certificate's user needs a right that no one has by default", "a Role in {other}: create on services/proxy, resourceNames [\"{hint}\"]", "make that Role and bind the user, or give the extender's own address", ""},
   {"{field} 经过 API server 的 service proxy：证书的用户需要一项默认没有的权限", "{other} 中的 Role：对 services/proxy 的 create，resourceNames [\"{hint}\"]", "请建立该 Role 并绑定用户，或直接填写扩展自身的地址", ""}},
  {code::single_api_server, "single_api_server", risk,
   {"{field} names one API server, {value}: when it is away no control-plane node schedules pods with cards", "the load balancer's address, or 127.0.0.1 in each control-plane node's own file", "write {hint}", ""},
   {"{field} 只指向一个 API server {value}：它不可用时所有主节点都无法调度使用卡的 Pod", "负载均衡地址，或在各主节点自己的文件中填写 127.0.0.1", "请填写 {hint}", ""}},
  {code::https_without_ca, "https_without_ca", risk,
   {"{field} is https without a certificate authority, or with insecure: kube-scheduler does not know whom it asks", "caFile or caData", "add tlsConfig.caData, remove insecure", ""},
   {"{field} 为 https，却没有证书颁发机构，或设置了 insecure：kube-scheduler 无法校验对方身份", "caFile 或 caData", "请添加 tlsConfig.caData，并删除 insecure", ""}},
  {code::managed_incomplete, "managed_incomplete", risk,
   {"{field} has {value} without {other}: pods that name only the latter never reach the extender", "every key of the vocabulary", "add {other}", ""},
   {"{field} 有 {value} 而没有 {other}：只写后者的 Pod 不会到达扩展", "该词汇的全部资源", "请添加 {other}", ""}},
  {code::scheduler_name_malformed, "scheduler_name_malformed", risk,
   {"{field} is \"{value}\", which no event can name as its reporter: the API server refuses them all, and no pod says why it waits", "{allowed}", "write such a name, here and in the pods", ""},
   {"{field} 为“{value}”，不能作为事件的上报者：API server 会拒绝这些事件，Pod 上看不到等待的原因", "{allowed}", "请在此处与 Pod 中填写这样的名称", ""}},
  {code::pod_not_replaced, "pod_not_replaced", risk,
   {"no annotation {field} with the checksum of the file: kube-scheduler reads it once, at start, and a changed file alone replaces no pod", "{hint}", "write {field}: {hint}", ""},
   {"注解 {field} 不是该文件的校验和：kube-scheduler 只在启动时读取文件，仅修改文件不会替换 Pod", "{hint}", "请填写 {field}: {hint}", ""}},
  {code::image_of_other_version, "image_of_other_version", risk,
   {"image is {value}, the cluster is {other}", "the cluster's own version", "put the cluster's version back", ""},
   {"镜像为 {value}，而集群为 {other}", "与集群相同的版本", "请恢复为集群的版本", ""}},
  {code::shell_not_followed, "shell_not_followed", risk,
   {"{value}: a shell is not followed here, so kube-scheduler's flags are not judged", "kube-scheduler and its flags as a list, or one plain line after sh -c", "write command: [kube-scheduler, --config=FILE]", ""},
   {"{value}：此处的 shell 无法跟踪，因此未判断 kube-scheduler 的参数", "以列表写出 kube-scheduler 及其参数，或在 sh -c 后写一行普通命令", "请填写 command: [kube-scheduler, --config=文件]", ""}},
  {code::flags_not_judged, "flags_not_judged", risk,
   {"{value}: not judged, as its value, its program or the version it asks for is not known here", "the flags of kube-scheduler, with their values", "write the value out, or try it with the program itself", ""},
   {"{value}：未判断，因为此处不知道它的值、所属程序或所要求的版本", "kube-scheduler 的参数及其值", "请写出具体的值，或用该程序实际验证", ""}},
  {code::more_documents, "more_documents", risk,
   {"a second document begins here; kube-scheduler reads the first alone", "one document", "remove what follows, or merge it into the first", ""},
   {"第二个文档从这里开始；kube-scheduler 只读取第一个", "一个文档", "请删除后面的内容，或合并到第一个文档", ""}},

  {code::no_safe_place, "no_safe_place", idle,
   {"{field} is written in a way that nothing can be added to without changing the rest", "a list, one \"- \" a line or in brackets, without alias", "write {field} out as a list, or add the entry by hand", ""},
   {"{field} 的写法无法在不改动其余内容的情况下添加", "列表，每行一个“- ”或写在方括号中，不使用别名", "请将 {field} 写成列表，或手工添加", ""}},
  {code::managed_by_another, "managed_by_another", idle,
   {"{field} is {value}: another extender manages it, and kube-scheduler ends when two do", "each resource in one extender", "remove it there, or leave it out of our entry: --resource with the others", ""},
   {"{field} 为 {value}：已由另一个扩展管理，两个扩展管理同一资源时 kube-scheduler 会退出", "每个资源只属于一个扩展", "请在那里删除，或从我们的扩展中去掉：用 --resource 列出其余资源", ""}},
  {code::bound_by_another, "bound_by_another", idle,
   {"{field} is \"{value}\": another extender binds pods, and kube-scheduler takes one that does", "one bindVerb in all extenders", "remove bindVerb there, or use a kube-scheduler of its own: --scheduler-name without --into", ""},
   {"{field} 为“{value}”：另一个扩展负责绑定，而 kube-scheduler 只接受一个", "全部扩展中只有一个 bindVerb", "请删除那里的 bindVerb，或使用单独的 kube-scheduler：--scheduler-name 而不用 --into", ""}},
  {code::profile_there, "profile_there", idle,
   {"{field} is {value}: there is a profile of that name", "a name that no profile has", "choose another --scheduler-name, or leave it out: extenders serve all profiles", ""},
   {"{field} 为 {value}：已有同名的 profile", "尚未使用的名称", "请更换 --scheduler-name，或不写：扩展对所有 profile 生效", ""}},
  {code::profile_without_name, "profile_without_name", idle,
   {"{field} has no schedulerName, which a second profile would make an error", "schedulerName: default-scheduler", "write schedulerName: default-scheduler there first", ""},
   {"{field} 没有 schedulerName，再加一个 profile 就会出错", "schedulerName: default-scheduler", "请先在那里填写 schedulerName: default-scheduler", ""}},
  {code::config_flag_there, "config_flag_there", idle,
   {"{field} reads {value} already", "one --config", "merge into that file instead", ""},
   {"{field} 已读取 {value}", "只有一个 --config", "请合并到该文件", ""}},
  {code::nothing_of_ours, "nothing_of_ours", idle,
   {"nothing here is known as ours", "a file that render scheduler-config --into made", "remove the entry by hand", "in JSON and brackets ours is known by its address alone: say {hint}, as when it was merged, or remove the entry by hand"},
   {"这里没有可识别为我们添加的内容", "由 render scheduler-config --into 生成的文件", "请手工删除该项", "在 JSON 和方括号中只能通过地址识别我们的项：请填写合并时的 {hint}，或手工删除该项"}},
  {code::ours_was_edited, "ours_was_edited", idle,
   {"what we added here was edited, or others wrote into it", "what we wrote, between its two comment lines", "move what is not ours out of it, or remove the entry by hand", ""},
   {"我们添加的内容被修改过，或有他人写入其中", "两行注释之间我们写入的内容", "请将不属于我们的内容移出，或手工删除该项", ""}},
}};
// clang-format on

static_assert(
    [] {
      for (std::size_t i = 0; i < table.size(); ++i) {
        if (table[i].issue != static_cast<code>(i)) return false;
      }
      return true;
    }(),
    "one row a code, in the order of the enumeration");

const code_text& row_of(code c) { return table[static_cast<std::size_t>(c)]; }
const text::message_pattern& words_of(const finding& finding, language locale) {
  return locale == language::zh ? row_of(finding.issue).zh : row_of(finding.issue).en;
}

/// What the parts of a verdict put into the words, in Chinese; all else are names and numbers.
constexpr std::pair<std::string_view, std::string_view> phrases[] = {
    {"a list", "列表"},
    {"a mapping", "映射"},
    {"missing", "空"},
    {"text", "文本"},
    {"true or false", "true 或 false"},
    {"a number", "数字"},
    {"a whole number", "整数"},
    {"a whole number of 32 bits", "32 位整数"},
    {"a whole number without fraction or exponent", "不带小数部分和指数的整数"},
    {"base64 text", "base64 文本"},
    {"the same extender", "同一个扩展"},
    {"1 or more", "不小于 1"},
    {"0 or more", "不小于 0"},
    {"0 or 1", "0 或 1"},
    {"0 to 100", "0 到 100"},
    {"0 to 10", "0 到 10"},
    {"1 to 100", "1 到 100"},
    {"1s or more", "不小于 1s"},
    {"more than 0", "大于 0"},
    {"renewDeadline more than 1.2 times retryPeriod", "renewDeadline 大于 retryPeriod 的 1.2 倍"},
    {"each resource once", "每个资源一次"},
    {"one or more", "一个或多个"},
    {"one point or more", "一个或多个点"},
    {"none", "无"},
    {"exactly one", "恰好一个"},
    {"exactly one whole number, in quotes", "恰好一个整数，写在引号中"},
    {"values of a node label", "节点标签的值"},
    {"the key of a node label", "节点标签的键"},
    {"more than the point before", "大于前一个点"},
    {"with requestedToCapacityRatio", "同时填写 requestedToCapacityRatio"},
    {"only for type RequestedToCapacityRatio", "仅用于 type: RequestedToCapacityRatio"},
    {"none, or defaultingType: List", "无，或 defaultingType: List"},
    {"nothing: each pod's own is used", "不填写：使用各 Pod 自己的"},
    {"nothing before Kubernetes 1.36", "Kubernetes 1.36 之前不填写"},
    {"a whole number, 0 or more", "不小于 0 的整数"},
    {"a number with a unit: 5s, 500ms, 1m30s", "带单位的数字：5s、500ms、1m30s"},
    {"an IP address", "IP 地址"},
    {"0 to 65535", "0 到 65535"},
    {"a number of bytes: 512, 3M, 5Mi", "字节数：512、3M、5Mi"},
    {"METRIC,LABEL=VALUE", "指标,标签=值"},
    {"PATTERN=N, separated by commas", "模式=N，以逗号分隔"},
    {"CERTIFICATE,KEY", "证书,私钥"},
    {"names separated by commas, none of them blank", "以逗号分隔的名称，均不为空"},
    {"a name", "名称"},
    {"leaseDuration more than renewDeadline", "leaseDuration 大于 renewDeadline"},
    {"json with the feature gate LoggingBetaOptions", "启用特性门控 LoggingBetaOptions 时才可为 json"},
    {"nothing with --logging-format=json", "使用 --logging-format=json 时不填写"},
    {"with the feature gate LoggingAlphaOptions alone", "仅在启用特性门控 LoggingAlphaOptions 时"},
    {"with the feature gate RemoteRequestHeaderUID alone", "仅在启用特性门控 RemoteRequestHeaderUID 时"},
    {"X-Remote-Uid among them", "其中包含 X-Remote-Uid"},
    {"names that kube-scheduler --help lists", "kube-scheduler --help 列出的名称"},
    {"* at the end of a path alone", "* 只能在路径末尾"},
    {"GATE=true or GATE=false", "门控=true 或 门控=false"},
    {"kube: before every gate, or before none", "所有门控前都写 kube:，或都不写"},
    {"a domain without a slash", "不带斜杠的域名"},
    {fault_of_port, "端口不在 1 到 65535 之内"},
    {fault_of_host, "主机既不是 DNS 名称，也不是 IP 地址"},
    {fault_of_address, "含有 URL 中不允许的内容"},
    {a_lease_name, "小写 DNS 名称：字母、数字、- 与 .，首尾为字母或数字"},
    {a_namespace_name, "小写字母、数字与 -，首尾为字母或数字，最多 63 个字符"},
    {a_scheduler_name, "字母、数字、-、_ 与 .，首尾为字母或数字，最多 63 个字符；前面可加 域名/"},
};
std::string said(const std::string& text, language locale) {
  const auto* match = std::ranges::find(phrases, text, &std::pair<std::string_view, std::string_view>::first);
  return locale == language::zh && match != std::end(phrases) ? std::string(match->second) : text;
}

/// A brace that opens no known name stands for itself.
std::string filled(std::string_view pattern, const finding& finding, language language) {
  const std::array<std::pair<std::string_view, std::string>, 5> known{
      {{"{field}", finding.field},
       {"{value}", said(shown(finding.value, 200), language)},
       {"{other}", said(shown(finding.other, 240), language)},
       {"{allowed}", said(finding.allowed, language)},
       {"{hint}", shown(finding.hint, 400)}}};
  std::string out;
  while (!pattern.empty()) {
    const auto match = std::ranges::find_if(known, [&](const auto& entry) { return pattern.starts_with(entry.first); });
    if (match != known.end()) {
      out += match->second;
      pattern.remove_prefix(match->first.size());
    } else {
      out += pattern.front();
      pattern.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace

std::string_view to_string(code c) noexcept { return row_of(c).name; }
effect effect_of(code c) noexcept { return row_of(c).comes; }
text::severity severity_of(code c) noexcept {
  return effect_of(c) == risk ? text::severity::warning : text::severity::error;
}
bool any_ends(std::span<const finding> findings) noexcept {
  return std::ranges::any_of(findings, [](const finding& finding) { return effect_of(finding.issue) == ends; });
}

std::string wrong_of(const finding& finding, language language) {
  return filled(words_of(finding, language).wrong, finding, language);
}
std::string allowed_of(const finding& finding, language language) {
  return filled(words_of(finding, language).allowed, finding, language);
}
std::string remedy_of(const finding& finding, language language) {
  const auto& words = words_of(finding, language);
  const bool guessed = !finding.hint.empty() && !words.remedy_with_hint.empty();
  return filled(guessed ? words.remedy_with_hint : words.remedy, finding, language);
}
std::string message_of(const finding& finding, language locale) {
  const bool chinese = locale == language::zh;
  auto out = wrong_of(finding, locale);
  if (const auto allowed = allowed_of(finding, locale); !allowed.empty())
    out += (chinese ? "；允许：" : "; allowed: ") + allowed;
  return out + (chinese ? "；" : "; ") + remedy_of(finding, locale);
}

}  // namespace scheduler_config
