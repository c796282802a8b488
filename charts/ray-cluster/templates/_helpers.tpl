{{- define "ray-cluster.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := printf "%s-%s" .Release.Name $name -}}
{{- if .Values.fullnameOverride }}{{ $full = .Values.fullnameOverride }}{{ else if contains $name .Release.Name }}{{ $full = .Release.Name }}{{ end -}}
{{- if gt (len $full) 53 -}}
{{- fail (printf "fullnameOverride: the cluster would be called %s, which has %d characters; the operator allows 53" $full (len $full)) -}}
{{- end -}}
{{- $full -}}
{{- end -}}

{{- define "ray-cluster.labels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* Parameters of `ray start`, all as text; values files make floats of large numbers. */}}
{{- define "ray-cluster.params" -}}
{{- $params := dict -}}
{{- range $source := list .rayStartParams .initArgs -}}
{{- range $key, $value := $source -}}
{{- if kindIs "float64" $value }}{{ if eq (floor $value) $value }}{{ $value = printf "%.0f" $value }}{{ end }}{{ end -}}
{{- $_ := set $params $key (toString $value) -}}
{{- end -}}
{{- end -}}
{{- $params | toYaml -}}
{{- end -}}

{{/* The Pod template of a group. Takes root, group (its values) and name (of the Ray container). */}}
{{- define "ray-cluster.template" -}}
{{- $group := .group -}}
{{- $image := merge (dict) (default dict $group.image) .root.Values.image -}}
{{- if and (default dict $group.image).tag (not (default dict $group.image).digest) }}{{ $_ := set $image "digest" "" }}{{ end -}}
{{- $reference := printf "%s:%v" $image.repository $image.tag -}}
{{- if $image.digest }}{{ $reference = printf "%s@%s" $image.repository $image.digest }}{{ end -}}
{{- $env := list -}}
{{- range list (default dict .root.Values.common).containerEnv $group.containerEnv -}}
{{- if kindIs "slice" . }}{{ $env = concat $env . }}{{ end -}}
{{- end -}}
{{- $container := dict "name" .name "image" $reference "imagePullPolicy" $image.pullPolicy -}}
{{- if $env }}{{ $_ := set $container "env" $env }}{{ end -}}
{{- range $key := list "envFrom" "command" "args" "ports" "lifecycle" "volumeMounts" "securityContext" "livenessProbe" "readinessProbe" "startupProbe" -}}
{{- with get $group $key }}{{ $_ := set $container $key . }}{{ end -}}
{{- end -}}
{{- $small := dict "limits" (dict "cpu" "1" "memory" "1Gi") "requests" (dict "cpu" "1" "memory" "1Gi") -}}
{{- $_ := set $container "resources" (default $small $group.resources) -}}
{{- with $group.container }}{{ $container = mergeOverwrite $container (deepCopy .) }}{{ end -}}
{{- $containers := list $container -}}
{{- if kindIs "slice" $group.sidecarContainers }}{{ $containers = concat $containers $group.sidecarContainers }}{{ end -}}
{{- $pod := dict "containers" $containers -}}
{{- with .root.Values.imagePullSecrets }}{{ $_ := set $pod "imagePullSecrets" . }}{{ end -}}
{{- with $group.podSecurityContext }}{{ $_ := set $pod "securityContext" . }}{{ end -}}
{{- range $key := list "initContainers" "volumes" "nodeSelector" "affinity" "tolerations" "topologySpreadConstraints" "priorityClassName" "priority" "schedulerName" "dnsPolicy" "dnsConfig" "hostNetwork" "restartPolicy" "runtimeClassName" "serviceAccountName" "terminationGracePeriodSeconds" "resourceClaims" -}}
{{- with get $group $key }}{{ $_ := set $pod $key . }}{{ end -}}
{{- end -}}
{{- with $group.podSpec }}{{ $pod = mergeOverwrite $pod (deepCopy .) }}{{ end -}}
{{- $metadata := dict "labels" (merge (dict) (default dict $group.labels) (include "ray-cluster.labels" .root | fromYaml)) -}}
{{- with $group.annotations }}{{ $_ := set $metadata "annotations" . }}{{ end -}}
{{- dict "metadata" $metadata "spec" $pod | toYaml -}}
{{- end -}}

{{/* What the head and worker groups have in common. Takes root, group and name. */}}
{{- define "ray-cluster.group" -}}
{{- $spec := dict "template" (include "ray-cluster.template" . | fromYaml) -}}
{{- $params := include "ray-cluster.params" .group | fromYaml -}}
{{- if $params }}{{ $_ := set $spec "rayStartParams" $params }}{{ end -}}
{{- with .group.groupLabels }}{{ $_ := set $spec "labels" . }}{{ end -}}
{{- with .group.groupResources }}{{ $_ := set $spec "resources" . }}{{ end -}}
{{- $spec | toYaml -}}
{{- end -}}

{{/* A worker group. Takes root, group and groupName. */}}
{{- define "ray-cluster.worker" -}}
{{- $group := .group -}}
{{- $spec := include "ray-cluster.group" (merge (dict "name" "ray-worker") .) | fromYaml -}}
{{- $_ := set $spec "groupName" .groupName -}}
{{- $_ := set $spec "minReplicas" (int (default 0 $group.minReplicas)) -}}
{{- $_ := set $spec "maxReplicas" (int (default 2147483647 $group.maxReplicas)) -}}
{{- $_ := set $spec "numOfHosts" (int (default 1 $group.numOfHosts)) -}}
{{- range $from, $to := dict "replicas" "replicas" "groupPriority" "priority" "idleTimeoutSeconds" "idleTimeoutSeconds" -}}
{{- if not (kindIs "invalid" (get $group $from)) }}{{ if hasKey $group $from }}{{ $_ := set $spec $to (int (get $group $from)) }}{{ end }}{{ end -}}
{{- end -}}
{{- if kindIs "bool" $group.suspend }}{{ $_ := set $spec "suspend" $group.suspend }}{{ end -}}
{{- with $group.scaleStrategy }}{{ $_ := set $spec "scaleStrategy" . }}{{ end -}}
{{- $spec | toYaml -}}
{{- end -}}

{{/* The whole spec. */}}
{{- define "ray-cluster.spec" -}}
{{- $head := .Values.head -}}
{{- $spec := dict -}}
{{- $group := include "ray-cluster.group" (dict "root" . "group" $head "name" "ray-head") | fromYaml -}}
{{- with (default dict .Values.service).type }}{{ $_ := set $group "serviceType" . }}{{ end -}}
{{- with $head.headService }}{{ $_ := set $group "headService" . }}{{ end -}}
{{- if kindIs "bool" $head.enableIngress }}{{ $_ := set $group "enableIngress" $head.enableIngress }}{{ end -}}
{{- with $head.ingressOptions }}{{ $_ := set $group "ingressOptions" . }}{{ end -}}
{{- $_ := set $spec "headGroupSpec" $group -}}
{{- $workers := list -}}
{{- if not .Values.worker.disabled -}}
{{- $workers = append $workers (include "ray-cluster.worker" (dict "root" . "group" .Values.worker "groupName" .Values.worker.groupName) | fromYaml) -}}
{{- end -}}
{{- range $name, $values := .Values.additionalWorkerGroups -}}
{{- if and $values (not $values.disabled) -}}
{{- $workers = append $workers (include "ray-cluster.worker" (dict "root" $ "group" $values "groupName" $name) | fromYaml) -}}
{{- end -}}
{{- end -}}
{{- with $workers }}{{ $_ := set $spec "workerGroupSpecs" . }}{{ end -}}
{{- with default .Values.rayVersion $head.rayVersion }}{{ $_ := set $spec "rayVersion" (toString .) }}{{ end -}}
{{- if $head.enableInTreeAutoscaling }}{{ $_ := set $spec "enableInTreeAutoscaling" true }}{{ end -}}
{{- with $head.autoscalerOptions }}{{ $_ := set $spec "autoscalerOptions" . }}{{ end -}}
{{- if kindIs "bool" .Values.suspend }}{{ $_ := set $spec "suspend" .Values.suspend }}{{ end -}}
{{- range $key := list "managedBy" "upgradeStrategy" "authOptions" "tlsOptions" "networkPolicy" "historyServerOptions" "headServiceAnnotations" -}}
{{- with get $.Values $key }}{{ $_ := set $spec $key . }}{{ end -}}
{{- end -}}
{{- $tolerance := default dict .Values.gcsFaultTolerance -}}
{{- if $tolerance.enabled -}}
{{- $options := dict -}}
{{- range $key := list "backend" "redisAddress" "redisUsername" "redisPassword" "externalStorageNamespace" "storage" -}}
{{- with get $tolerance $key }}{{ $_ := set $options $key . }}{{ end -}}
{{- end -}}
{{- $_ := set $spec "gcsFaultToleranceOptions" $options -}}
{{- end -}}
{{- $spec | toYaml -}}
{{- end -}}
