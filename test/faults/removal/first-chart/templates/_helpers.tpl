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
{{/* The namespaces in which we write events: ours, that of declarations, and "default" for cluster-scoped objects. */}}
{{- define "quartermaster.eventNamespaces" -}}
{{- list .Release.Namespace .Values.declarationsNamespace "default" | uniq | toJson -}}
{{- end }}
