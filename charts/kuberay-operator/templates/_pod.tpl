{{/* Parts of the operator's Pod that depend on the webhook and on third parties' plugins. */}}

{{- define "kuberay-operator.environment" -}}
{{- $more := list -}}
{{- if .Values.webhook.enabled }}{{ $more = append $more (dict "name" "ENABLE_WEBHOOKS" "value" "true") }}{{ end -}}
{{- with include "kuberay-operator.python-path" . }}{{ $more = append $more (dict "name" "PYTHONPATH" "value" .) }}{{ end -}}
{{- with concat $more (default list .Values.env) -}}
env: {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}

{{/* Each copies its packages to a folder of its own, where the operator looks for them. */}}
{{- define "kuberay-operator.init-containers" -}}
{{- $copied := list -}}
{{- range .Values.extraPlugins }}{{ if and .image (not .imageVolume) }}{{ $copied = append $copied . }}{{ end }}{{ end -}}
{{- with $copied -}}
initContainers:
  {{- range . }}
  - name: plugin-{{ .name }}
    image: {{ .image | quote }}
    imagePullPolicy: {{ default "IfNotPresent" .pullPolicy }}
    {{- if .command }}
    command: {{- toYaml .command | nindent 6 }}
    {{- else }}
    command: [cp, -R, {{ printf "%s/." (default "/plugins" .path | trimSuffix "/") | quote }}, /extra-plugins/{{ .name }}]
    {{- end }}
    securityContext: {{- toYaml (default $.Values.securityContext .securityContext) | nindent 6 }}
    resources: {{- toYaml $.Values.resources | nindent 6 }}
    volumeMounts:
      - {name: plugin-{{ .name }}, mountPath: /extra-plugins/{{ .name }}}
  {{- end }}
{{- end -}}
{{- end -}}

{{- define "kuberay-operator.plugin-mounts" -}}
{{- range .Values.extraPlugins }}
{{- if .image }}
- {name: plugin-{{ .name }}, mountPath: /extra-plugins/{{ if .imageVolume }}images/{{ end }}{{ .name }}, readOnly: true}
{{- end }}
{{- end }}
{{- end -}}

{{- define "kuberay-operator.plugin-volumes" -}}
{{- range .Values.extraPlugins }}
{{- if and .image .imageVolume }}
- name: plugin-{{ .name }}
  image: {reference: {{ .image | quote }}, pullPolicy: {{ default "IfNotPresent" .pullPolicy }}}
{{- else if .image }}
- {name: plugin-{{ .name }}, emptyDir: {}}
{{- end }}
{{- end }}
{{- end -}}

{{/* What Pods of Jobs and tests have in common with the operator's. Takes root and account. */}}
{{- define "kuberay-operator.helper-pod" -}}
serviceAccountName: {{ .account }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.podSecurityContext }}
securityContext: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Annotations of a hook. Takes its kinds and its weight. */}}
{{- define "kuberay-operator.hook" -}}
helm.sh/hook: {{ index . 0 }}
helm.sh/hook-weight: {{ index . 1 | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{/* A probe. Takes what values say, and the path of the health server. */}}
{{- define "kuberay-operator.probe" -}}
{{- $get := dict "httpGet" (dict "path" (index . 1) "port" "health") -}}
{{- merge (dict) (index . 0) $get (dict "timeoutSeconds" 5) | toYaml -}}
{{- end -}}
