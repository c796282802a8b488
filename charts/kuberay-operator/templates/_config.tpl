{{/* How the operator is told what to do: by flags, or by a configuration file once plugins have something to say. */}}

{{- define "kuberay-operator.by-file" -}}
{{- if or .Values.configuration.enabled .Values.plugins .Values.yamlPlugins .Values.extraPlugins }}true{{ end -}}
{{- end -}}

{{/* A number as the operator reads it; values files make floats of large ones. */}}
{{- define "kuberay-operator.number" -}}
{{- if kindIs "float64" . -}}
{{- if eq (floor .) . }}{{ printf "%.0f" . }}{{ else }}{{ . }}{{ end -}}
{{- else }}{{ . }}{{ end -}}
{{- end -}}

{{/* The settings that can be given either way: flag, key in the file, value. As a list, for its order. */}}
{{- define "kuberay-operator.settings" -}}
{{- $old := default dict .Values.batchScheduler -}}
{{- $scheduler := include "kuberay-operator.scheduler" . -}}
{{- $namespaces := include "kuberay-operator.namespaces" . | fromYamlArray -}}
{{- $logs := .Values.logging -}}
{{- $found := list -}}
{{- if and $old.enabled (not .Values.plugins) -}}
{{- $found = append $found (dict "flag" "enable-batch-scheduler" "key" "enableBatchScheduler" "value" true) -}}
{{- else if $scheduler -}}
{{- $found = append $found (dict "flag" "batch-scheduler" "key" "batchScheduler" "value" $scheduler) -}}
{{- end -}}
{{- if $namespaces }}{{ $found = append $found (dict "flag" "watch-namespace" "key" "watchNamespace" "value" (join "," $namespaces)) }}{{ end -}}
{{- if and $logs.baseDir $logs.fileName }}{{ $found = append $found (dict "flag" "log-file-path" "key" "logFile" "value" (printf "%s/%s" (trimSuffix "/" $logs.baseDir) $logs.fileName)) }}{{ end -}}
{{- with $logs.stdoutEncoder }}{{ $found = append $found (dict "flag" "log-stdout-encoder" "key" "logStdoutEncoder" "value" .) }}{{ end -}}
{{- with $logs.fileEncoder }}{{ $found = append $found (dict "flag" "log-file-encoder" "key" "logFileEncoder" "value" .) }}{{ end -}}
{{- if kindIs "bool" .Values.useKubernetesProxy }}{{ $found = append $found (dict "flag" "use-kubernetes-proxy" "key" "useKubernetesProxy" "value" .Values.useKubernetesProxy) }}{{ end -}}
{{- $found = append $found (dict "flag" "enable-leader-election" "key" "enableLeaderElection" "value" .Values.leaderElectionEnabled) -}}
{{- $found = append $found (dict "flag" "enable-metrics" "key" "enableMetrics" "value" .Values.metrics.enabled) -}}
{{- $found = append $found (dict "flag" "reconcile-concurrency" "key" "reconcileConcurrency" "number" (include "kuberay-operator.number" .Values.reconcileConcurrency)) -}}
{{- $found = append $found (dict "flag" "qps" "key" "qps" "number" (include "kuberay-operator.number" .Values.kubeClient.qps)) -}}
{{- $found = append $found (dict "flag" "burst" "key" "burst" "number" (include "kuberay-operator.number" .Values.kubeClient.burst)) -}}
{{- if .Values.webhook.enabled -}}
{{- $found = append $found (dict "flag" "webhook-bind-address" "key" "webhookAddr" "value" (printf ":%v" .Values.webhook.port)) -}}
{{- if .Values.webhook.certManager.enabled -}}
{{- $found = append $found (dict "flag" "webhook-cert-dir" "key" "webhookCertDir" "value" "/etc/kuberay-webhook") -}}
{{- else -}}
{{- $found = append $found (dict "flag" "webhook-secret-name" "key" "webhookSecretName" "value" (include "kuberay-operator.webhook" .)) -}}
{{- $found = append $found (dict "flag" "webhook-configurations" "key" "webhookConfigurations" "value" (include "kuberay-operator.webhook" .)) -}}
{{- end -}}
{{- end -}}
{{- $found | toYaml -}}
{{- end -}}

{{/* The arguments, one per line of a list. */}}
{{- define "kuberay-operator.args" -}}
{{- if include "kuberay-operator.by-file" . -}}
- --config
- /etc/kuberay/config.yaml
{{- else -}}
{{- range include "kuberay-operator.settings" . | fromYamlArray }}
{{- if eq .flag "enable-batch-scheduler" }}
- --enable-batch-scheduler
{{- else if or (eq .flag "watch-namespace") (hasPrefix "log-" .flag) }}
- --{{ .flag }}
- {{ .value | quote }}
{{- else }}
- {{ printf "--%s=%s" .flag (ternary (toString .number) (toString .value) (hasKey . "number")) | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- $gates := list -}}
{{- range .Values.featureGates }}{{ $gates = append $gates (printf "%s=%v" .name .enabled) }}{{ end -}}
{{- with $gates }}
- --feature-gates={{ join "," . }}
{{- end }}
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{/* The configuration file. */}}
{{- define "kuberay-operator.config" -}}
apiVersion: config.ray.io/v1alpha1
kind: Configuration
{{- range include "kuberay-operator.settings" . | fromYamlArray }}
{{ .key }}: {{ if hasKey . "number" }}{{ .number }}{{ else }}{{ .value | toJson }}{{ end }}
{{- end }}
{{- if .Values.configuration.enabled }}
{{- range $key := list "headSidecarContainers" "workerSidecarContainers" "defaultContainerEnvs" "defaultPodAnnotations" "defaultPodLabels" }}
{{- with get $.Values.configuration $key }}
{{ $key }}: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}
{{- if .Values.yamlPlugins }}
pluginFolders: /etc/kuberay-plugins
{{- end }}
{{- $choices := dict }}
{{- range $name, $on := include "kuberay-operator.asked" . | fromYaml }}
{{- $choice := dict "enabled" $on }}
{{- with (get $.Values.plugins $name | default dict).options }}{{ $_ := set $choice "options" . }}{{ end }}
{{- $_ := set $choices $name $choice }}
{{- end }}
{{- with $choices }}
plugins: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The folders in which Python finds third parties' plugins. */}}
{{- define "kuberay-operator.python-path" -}}
{{- $folders := list -}}
{{- range .Values.extraPlugins -}}
{{- if .image -}}
{{- if .imageVolume }}{{ $folders = append $folders (printf "/extra-plugins/images/%s/%s" .name (default "plugins" .path | trimPrefix "/") ) }}{{ else }}{{ $folders = append $folders (printf "/extra-plugins/%s" .name) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- join ":" $folders -}}
{{- end -}}
