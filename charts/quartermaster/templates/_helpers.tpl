{{- define "quartermaster.labels" -}}
app.kubernetes.io/name: quartermaster
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "quartermaster.selector" -}}
app.kubernetes.io/name: quartermaster
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /*
Who may reach a page that names pods of all namespaces: `from` of a rule of a NetworkPolicy. The release's namespace has the chart's own
Prometheus and the console. The sources are absent after helm upgrade --reuse-values from an older chart.
*/}}
{{- define "quartermaster.network_sources" -}}
- podSelector: {}
{{- with .Values.networkPolicySources }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Annotations of a pod by which a Prometheus without its operator finds this port: (list chart port). */}}
{{- define "quartermaster.scrape" -}}
prometheus.io/scrape: "true"
{{- if (first .).Values.metrics.authentication }}
prometheus.io/scheme: https
{{- end }}
prometheus.io/port: {{ last . | quote }}
prometheus.io/path: /metrics
{{- end }}

{{- /* How a monitor of the Prometheus operator scrapes with metrics.authentication, by its kind. Only a ServiceMonitor can name the token of
Prometheus itself. */}}
{{- define "quartermaster.scrape.https" -}}
scheme: https
tlsConfig: {insecureSkipVerify: true}
{{- if eq . "ServiceMonitor" }}
bearerTokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
{{- else }}
authorization: {credentials: {name: quartermaster-metrics, key: token}}
{{- end }}
{{- end }}

{{- /*
Is a part of the monitoring on: "true" or nothing. Its own switch counts where it is true or false. Where it is null, monitoring.enabled
switches on what the cluster can take: a `kind` of the Prometheus operator needs that type in the cluster.
*/}}
{{- define "quartermaster.monitors" -}}
{{- if kindIs "bool" .switch }}
{{- ternary "true" "" .switch }}
{{- else if (.root.Values.monitoring | default dict).enabled }}
{{- if or (not .kind) (.root.Capabilities.APIVersions.Has (printf "monitoring.coreos.com/v1/%s" .kind)) }}true{{ end }}
{{- end }}
{{- end }}

{{- /* The same of the PodMonitor of the operator's pods: a ServiceMonitor takes its place. */}}
{{- define "quartermaster.monitors.pods" -}}
{{- $switch := (.Values.metrics.podMonitor).enabled }}
{{- if and (.Values.metrics.serviceMonitor).enabled (not (kindIs "bool" $switch)) }}{{ $switch = false }}{{ end }}
{{- include "quartermaster.monitors" (dict "root" . "switch" $switch "kind" "PodMonitor") }}
{{- end }}

{{- /*
The bytes of a file of rules, which has templates of Prometheus: they are not Helm's. Each alert there names its section of
docs/alerts.md and its dashboard; where the values say at which address people have these, a link of each follows.
*/}}
{{- define "quartermaster.rules" -}}
{{- $monitoring := .root.Values.monitoring | default dict }}
{{- $text := .root.Files.Get .file }}
{{- with $monitoring.runbookUrl }}
{{- $text = regexReplaceAll "(?m)^( +)runbook: .*(#[a-z]+)[)]$" $text (printf "${0}\n${1}runbook_url: \"%s${2}\"" (replace "$" "$$" .)) }}
{{- end }}
{{- with $monitoring.grafanaUrl }}
{{- $text = regexReplaceAll "(?m)^( +)dashboard: (.+)$" $text (printf "${0}\n${1}dashboard_url: \"%s/d/${2}\"" (trimSuffix "/" . | replace "$" "$$")) }}
{{- end }}
{{- $text }}
{{- end }}

{{- /* The registry of every image that values or policy do not name in full, or nothing. */}}
{{- define "quartermaster.registry" -}}
{{- .Values.image.registry | default (include "quartermaster.global" . | fromYaml).address | default "" | trimSuffix "/" }}
{{- end }}

{{- /* An image's name with the registry before it: `value` is where its repository comes from. */}}
{{- define "quartermaster.in_registry" -}}
{{- $registry := include "quartermaster.registry" .root }}
{{- if and $registry (regexMatch "^(localhost|[^/]*[.:][^/]*)/" .repository) }}
{{- fail (printf "%s is %s, which names a registry, and %s is %s: the image would be %s/%s; allowed: the registry in one of the two" .value .repository (empty .root.Values.image.registry | ternary (include "quartermaster.global" .root | fromYaml).from "image.registry") $registry $registry .repository) }}
{{- end }}
{{- with $registry }}{{ . }}/{{ end }}{{ .repository }}
{{- end }}

{{- define "quartermaster.image" -}}
{{- include "quartermaster.in_registry" (dict "root" . "value" "image.repository" "repository" .Values.image.repository) }}
{{- if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- /* The models of simulated nodes, as test/sim/profiles has them. */}}
{{- define "quartermaster.simulation.models" -}}
a100 ascend910b cpu h100 l40s mi300x rtx4090 t4 v100
{{- end }}

{{- /* What a platform gives to all its charts: global.registry, or else imageRegistry and imagePullSecrets of global. `from` says
which named the registry. */}}
{{- define "quartermaster.global" -}}
{{- $global := .Values.global | default dict }}
{{- $registry := $global.registry | default dict }}
{{- dict "address" ($registry.address | default $global.imageRegistry)
  "from" (empty $registry.address | ternary "global.imageRegistry" "global.registry.address")
  "imagePullSecrets" ($registry.imagePullSecrets | default $global.imagePullSecrets) | toYaml }}
{{- end }}

{{- /* A list of {name}: imagePullSecrets, or else those of the platform, which may be plain names. */}}
{{- define "quartermaster.pull_secrets" -}}
{{- $out := list }}
{{- range .Values.imagePullSecrets | default (include "quartermaster.global" . | fromYaml).imagePullSecrets }}
{{- $out = append $out (kindIs "string" . | ternary (dict "name" .) .) }}
{{- end }}
{{- $out | toYaml }}
{{- end }}

{{- /* Node placement and user of our own pods: the operator's and those of hooks. They tolerate our taints, because other nodes may
have no room, and a node that changes its mode needs an operator to end that. */}}
{{- /* Pods of the product that may run anywhere also run on nodes with cards, and on nodes that change their mode. */}}
{{- define "quartermaster.tolerations" -}}
- {key: quartermaster.io/accelerator, operator: Exists, effect: NoSchedule}
- {key: quartermaster.io/switching, operator: Exists, effect: NoSchedule}
{{- with .Values.tolerations }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "quartermaster.pod" -}}
{{- with include "quartermaster.pull_secrets" . | fromYamlArray }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
tolerations: {{- include "quartermaster.tolerations" . | nindent 2 }}
{{- with .Values.podSecurityContext }}
securityContext: {{- toYaml . | nindent 2 }}
{{- else }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- end }}
{{- end }}

{{- define "quartermaster.container" -}}
{{- include "quartermaster.container.of" (list . (include "quartermaster.image" .)) }}
{{- end }}

{{- /* A container of our own pods with another image: (list chart image). */}}
{{- define "quartermaster.container.of" -}}
image: {{ last . | quote }}
imagePullPolicy: {{ (first .).Values.image.pullPolicy }}
{{- with (first .).Values.securityContext }}
securityContext: {{- toYaml . | nindent 2 }}
{{- else }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}
{{- end }}

{{- /* The spec of the AcceleratorPolicy from the values, or nothing. The switches are another way to set
policy.modules.<module>.enabled. If both are set, they must agree. */}}
{{- define "quartermaster.policy.spec" -}}
{{- $spec := deepCopy (.Values.policy | default dict) }}
{{- range $module := list "pgpu" "vgpu" "mps" }}
{{- $switch := get $.Values (printf "%s_enable" $module) }}
{{- if kindIs "bool" $switch }}
{{- $said := dig "modules" $module "enabled" $switch $spec }}
{{- if ne $said $switch }}
{{- fail (printf "%s_enable is %t, but policy.modules.%s.enabled is %t; allowed: the same in both; set one of them" $module $switch $module $said) }}
{{- end }}
{{- $spec = mergeOverwrite $spec (dict "modules" (dict $module (dict "enabled" $switch))) }}
{{- end }}
{{- end }}
{{- if $spec }}
{{- $secrets := include "quartermaster.pull_secrets" . | fromYamlArray }}
{{- if and $secrets (not (hasKey $spec "imagePullSecrets")) }}{{ $_ := set $spec "imagePullSecrets" $secrets }}{{ end }}
{{- toYaml $spec }}
{{- end }}
{{- end }}

{{- /* Values of earlier charts that did the same as the policy's own switch. */}}
{{- define "quartermaster.one.switch" -}}
{{- range $part := list "extender" "staticPod" }}
{{- if and (hasKey (index $.Values $part) "enabled") (not (kindIs "invalid" (index $.Values $part "enabled"))) }}
{{- fail (printf "%s.enabled is no value any more: both parts are always there, and spec.scheduler.mode of the AcceleratorPolicy (policy.scheduler.mode in values: None, Dedicated or StaticPod) says whether a kube-scheduler asks. Leave it out: --set %s.enabled=null" $part $part) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* An amount of cores or bytes as a number. The schema has judged its form. */}}
{{- define "quartermaster.amount" -}}
{{- $units := dict "" 1.0 "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 }}
{{- $unit := kindIs "string" . | ternary (regexFind "[A-Za-z]+$" (toString .)) "" }}
{{- mulf (trimSuffix $unit (toString .) | float64) (get $units $unit) }}
{{- end }}

{{- /* What the API server would refuse in the middle of an installation: a container that asks for more than it may have. */}}
{{- define "quartermaster.amounts" -}}
{{- $all := dict }}
{{- range $path := list "resources" "staticPod.resources" "agent.resources" "console.resources" "simulate.resources" "monitoring.prometheus.resources" }}
{{- $part := $.Values }}
{{- range splitList "." $path }}{{ $part = get ($part | default dict) . }}{{ end }}
{{- $_ := set $all $path $part }}
{{- end }}
{{- range $name, $module := (.Values.policy | default dict).modules }}
{{- $_ := set $all (printf "policy.modules.%s.resources" $name) ($module | default dict).resources }}
{{- end }}
{{- range $path, $resources := $all }}
{{- $limits := ($resources | default dict).limits | default dict }}
{{- range $name, $request := ($resources | default dict).requests | default dict }}
{{- $limit := get $limits $name }}
{{- if and (hasKey $limits $name) (gt (include "quartermaster.amount" $request | float64) (include "quartermaster.amount" $limit | float64)) }}
{{- fail (printf "%s.requests.%s is %v, which is more than limits.%s, %v; allowed: at most the limit" $path $name $request $name $limit) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "quartermaster.policy" -}}
{{- with include "quartermaster.policy.spec" . -}}
apiVersion: quartermaster.io/v1alpha1
kind: AcceleratorPolicy
metadata:
  name: default
spec: {{- . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* "true" where the webhook fills in pods. An operator outside the cluster is not reached by the Service, so it fills in pods
only with admission.url. When a server learns to fill in pods itself, the webhook stays for one more upgrade together with the
new policy. So no pod is missed while the server picks the policy up. */}}
{{- define "quartermaster.webhook.fills" -}}
{{- $fills := .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" }}
{{- $was := false }}
{{- range (lookup "admissionregistration.k8s.io/v1" "MutatingWebhookConfiguration" "" "quartermaster").webhooks }}
{{- if eq .name "resource-defaults.quartermaster.io" }}{{ $was = true }}{{ end }}
{{- end }}
{{- $is := and $fills (lookup "admissionregistration.k8s.io/v1" "MutatingAdmissionPolicy" "" "resource-defaults.quartermaster.io") }}
{{- if and (eq .Values.admission.webhook "auto") (or .Values.admission.url (gt (int .Values.replicaCount) 0)) (or (not $fills) (and $was (not $is))) -}}
true
{{- end }}
{{- end }}

{{- /* "true" where the webhook checks the driver and card that pods ask for. This is the case on every server, because no policy
of the API server can look at nodes. */}}
{{- define "quartermaster.webhook.compatibility" -}}
{{- if and .Values.admission.compatibility (ne .Values.admission.webhook "never") (or .Values.admission.url (gt (int .Values.replicaCount) 0)) -}}
true
{{- end }}
{{- end }}

{{- /* "true" where the console serves the aggregated API. */}}
{{- define "quartermaster.views" -}}
{{- $console := .Values.console | default dict }}
{{- if and $console.enabled ($console.views | default dict).enabled -}}
true
{{- end -}}
{{- end -}}

{{- /* "true" where there is a webhook at all. */}}
{{- define "quartermaster.webhook" -}}
{{- if or (include "quartermaster.webhook.fills" .) (include "quartermaster.webhook.compatibility" .) -}}
true
{{- end }}
{{- end }}

{{- define "quartermaster.webhook.at" -}}
{{- $chart := first . }}
{{- if $chart.Values.admission.url -}}
url: {{ $chart.Values.admission.url }}{{ last . }}
{{- else -}}
service: {name: quartermaster-webhook, namespace: {{ $chart.Release.Namespace }}, path: {{ last . }}, port: 443}
{{- end }}
{{- end }}

{{- /* Whether the pod or pod template of the expression `.` asks for an extended resource. */}}
{{- define "quartermaster.webhook.asks" -}}
(dyn(has({{ . }}.spec.initContainers) ? {{ . }}.spec.initContainers : []) + dyn({{ . }}.spec.containers)).exists(c,
has(c.resources) && (
(has(c.resources.limits) && c.resources.limits.exists(k, k.contains('/') && !k.contains('kubernetes.io/'))) ||
(has(c.resources.requests) && c.resources.requests.exists(k, k.contains('/') && !k.contains('kubernetes.io/')))))
{{- end }}

{{- define "quartermaster.webhook.conditions" -}}
- name: names-an-extended-resource
  expression: >-
    {{- include "quartermaster.webhook.asks" "object" | nindent 4 }}
- name: no-mirror-pod
  expression: "!(has(object.metadata.annotations) && 'kubernetes.io/config.mirror' in object.metadata.annotations)"
{{- end }}

{{- /* Only these pods and their templates cause a call: pods that ask for an accelerator and say what they need, share a card for
a known framework, or have an affinity on CUDA versions. The names are those of reconcilers/cuda. */}}
{{- define "quartermaster.webhook.compatibility.conditions" -}}
- name: is-new
  expression: request.operation == 'CREATE' || object.spec != oldObject.spec
- name: no-mirror-pod
  expression: "!(has(object.metadata.annotations) && 'kubernetes.io/config.mirror' in object.metadata.annotations)"
- name: says-what-it-needs
  expression: >-
    [request.kind.kind == 'Pod' ? dyn(object) : request.kind.kind == 'CronJob' ? dyn(object).spec.jobTemplate.spec.template :
    dyn(object).spec.template].exists(p, {{ include "quartermaster.webhook.asks" "p" | nindent 4 }} && (
    (has(p.metadata) && has(p.metadata.annotations) && ('quartermaster.io/cuda' in p.metadata.annotations ||
    'quartermaster.io/compute-capability' in p.metadata.annotations)) ||
    (dyn(has(p.spec.initContainers) ? p.spec.initContainers : []) + dyn(p.spec.containers)).exists(c,
    (has(c.env) && c.env.exists(e, e.name == 'CUDA_VERSION' || e.name.startsWith('NVIDIA_REQUIRE_'))) ||
    (has(c.resources) && has(c.resources.limits) && 'tencent.com/vcuda-core' in c.resources.limits)) ||
    (has(p.spec.affinity) && has(p.spec.affinity.nodeAffinity) &&
    has(p.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution) &&
    p.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.exists(t,
    has(t.matchExpressions) && t.matchExpressions.exists(x, x.key == 'cuda-major-version' || x.key == 'cuda-minor-version')))))
{{- end }}

{{- /* The namespaces where the rules apply to pods. api/names.hpp has the same list. */}}
{{- define "quartermaster.everyday" -}}
matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: {{ list "kube-system" "kube-public" "kube-node-lease" .Release.Namespace | uniq | toJson }}}]
{{- end }}

{{- /* The annotations of an object that exists only while a hook runs: (list event weight). */}}
{{- define "quartermaster.hook" -}}
helm.sh/hook: {{ first . }}
helm.sh/hook-weight: {{ last . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
