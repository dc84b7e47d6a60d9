{{- define "quartermaster.labels" -}}
app.kubernetes.io/name: quartermaster
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "quartermaster.selector" -}}
app.kubernetes.io/name: quartermaster
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "quartermaster.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- /* "true" where the webhook is installed: not for an operator that runs elsewhere, which its Service does not reach,
unless it is asked for. On a server that has learned to fill in pods it stays for one more upgrade,
beside the new policy, so that no pod is missed while the server gets to know that. */}}
{{- define "quartermaster.webhook" -}}
{{- $fills := .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" }}
{{- $was := lookup "admissionregistration.k8s.io/v1" "MutatingWebhookConfiguration" "" "quartermaster" }}
{{- $is := and $fills (lookup "admissionregistration.k8s.io/v1" "MutatingAdmissionPolicy" "" "resource-defaults.quartermaster.io") }}
{{- if or (eq .Values.admission.webhook "always") (and (eq .Values.admission.webhook "auto") (or .Values.admission.url (gt (int .Values.replicaCount) 0)) (or (not $fills) (and $was (not $is)))) -}}
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

{{- define "quartermaster.webhook.conditions" -}}
- name: names-an-extended-resource
  expression: >-
    (dyn(has(object.spec.initContainers) ? object.spec.initContainers : []) + dyn(object.spec.containers)).exists(c,
    has(c.resources) && (
    (has(c.resources.limits) && c.resources.limits.exists(k, k.contains('/') && !k.contains('kubernetes.io/'))) ||
    (has(c.resources.requests) && c.resources.requests.exists(k, k.contains('/') && !k.contains('kubernetes.io/')))))
- name: no-mirror-pod
  expression: "!(has(object.metadata.annotations) && 'kubernetes.io/config.mirror' in object.metadata.annotations)"
{{- end }}

{{- /* Namespaces whose pods are held to the rules: reconcilers/names.hpp has the same list. */}}
{{- define "quartermaster.everyday" -}}
matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: {{ list "kube-system" "kube-public" "kube-node-lease" .Release.Namespace | uniq | toJson }}}]
{{- end }}
