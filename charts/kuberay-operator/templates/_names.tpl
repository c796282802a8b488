{{/* Names and labels. */}}

{{- define "kuberay-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "kuberay-operator.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "kuberay-operator.selector" -}}
app.kubernetes.io/name: {{ include "kuberay-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "kuberay-operator.labels" -}}
{{ include "kuberay-operator.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "kuberay-operator.account" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "kuberay-operator.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* The operator as a subject of bindings. */}}
{{- define "kuberay-operator.subject" -}}
- kind: ServiceAccount
  name: {{ include "kuberay-operator.account" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{- define "kuberay-operator.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (default $.Chart.AppVersion .tag) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The watched namespaces, as a list in YAML; empty is all. */}}
{{- define "kuberay-operator.namespaces" -}}
{{- if .Values.watchNamespace -}}
{{- .Values.watchNamespace | uniq | toYaml -}}
{{- else if .Values.singleNamespaceInstall -}}
{{- list .Release.Namespace | toYaml -}}
{{- else -}}
[]
{{- end -}}
{{- end -}}

{{- define "kuberay-operator.webhook" -}}
{{- printf "%s-webhook" (include "kuberay-operator.fullname" . | trunc 55) -}}
{{- end -}}
