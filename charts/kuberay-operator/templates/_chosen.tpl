{{/* What is chosen: gates, plugins, the batch scheduler, and the rights that follow from them. */}}

{{/* Every gate with its state, as the operator would have it. */}}
{{- define "kuberay-operator.gates" -}}
{{- $known := .Files.Get "files/gates.yaml" | fromYaml -}}
{{- range .Values.yamlPlugins -}}
{{- with .featureGate -}}
{{- $own := dict "stage" (default "alpha" .stage) "default" (default false .default) -}}
{{- if not (hasKey $known .name) }}{{ $_ := set $known .name $own }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $given := dict -}}
{{- range .Values.featureGates }}{{ $_ := set $given .name .enabled }}{{ end -}}
{{- $states := dict -}}
{{- range $name, $gate := $known -}}
{{- $group := printf "All%s" (title $gate.stage) -}}
{{- $_ := set $states $name (ternary (get $given $group) $gate.default (hasKey $given $group)) -}}
{{- end -}}
{{- range $name, $on := $given }}{{ $_ := set $states $name $on }}{{ end -}}
{{- $states | toYaml -}}
{{- end -}}

{{/* Every plugin that the chart knows: those of the image, and those in values. */}}
{{- define "kuberay-operator.known" -}}
{{- $known := dict -}}
{{- range $path, $_ := .Files.Glob "files/plugins/*.yaml" -}}
{{- $_ := set $known (base $path | trimSuffix ".yaml") ($.Files.Get $path | fromYaml) -}}
{{- end -}}
{{- range $name, $manifest := .Values.yamlPlugins -}}
{{- if hasKey $known $name }}{{ fail (printf "yamlPlugins.%s: the image has a plugin of this name; choose another" $name) }}{{ end -}}
{{- if ne (toString $manifest.name) $name }}{{ fail (printf "yamlPlugins.%s: its manifest says name: %v; both must be the same" $name $manifest.name) }}{{ end -}}
{{- $provides := default dict $manifest.provides -}}
{{- $gate := default dict $manifest.featureGate -}}
{{- $_ := set $known $name (dict "default" false "batchScheduler" (default "" $provides.batchScheduler) "featureGate" (default "" $gate.name) "rbac" (default list $manifest.rbac)) -}}
{{- end -}}
{{- range .Values.extraPlugins -}}
{{- if hasKey $known .name }}{{ fail (printf "extraPlugins: there is a plugin %s already; choose another name" .name) }}{{ end -}}
{{- $_ := set $known .name (dict "default" false "batchScheduler" (default "" .batchScheduler) "featureGate" "" "rbac" (default list .rbac)) -}}
{{- end -}}
{{- $known | toYaml -}}
{{- end -}}

{{/* Whether values ask for each plugin that they name or bring: a map of name to bool. */}}
{{- define "kuberay-operator.asked" -}}
{{- $asked := dict -}}
{{- range $name, $_ := .Values.yamlPlugins }}{{ $_ := set $asked $name true }}{{ end -}}
{{- range .Values.extraPlugins }}{{ $_ := set $asked .name true }}{{ end -}}
{{- range $name, $choice := .Values.plugins -}}
{{- $choice = default dict $choice -}}
{{- $_ := set $asked $name (ne (toString (get $choice "enabled")) "false") -}}
{{- end -}}
{{- $asked | toYaml -}}
{{- end -}}

{{/* The name of the batch scheduler, or nothing; a contradiction is an error. */}}
{{- define "kuberay-operator.scheduler" -}}
{{- $old := default dict .Values.batchScheduler -}}
{{- $known := include "kuberay-operator.known" . | fromYaml -}}
{{- $asked := include "kuberay-operator.asked" . | fromYaml -}}
{{- $gates := include "kuberay-operator.gates" . | fromYaml -}}
{{- $names := list -}}
{{- if $old.name }}{{ $names = append $names $old.name }}{{ end -}}
{{- if $old.enabled }}{{ $names = append $names "volcano" }}{{ end -}}
{{- if and $old.name $old.enabled }}{{ fail (printf "batchScheduler.enabled is the old way to say batchScheduler.name: volcano; with batchScheduler.name: %s, leave it out" $old.name) }}{{ end -}}
{{- range $name, $on := $asked -}}
{{- $provided := (get $known $name | default dict).batchScheduler -}}
{{- if and $on $provided (ne (get $known $name).featureGate "KubernetesWAS") }}{{ $names = append $names $provided }}{{ end -}}
{{- end -}}
{{- $names = uniq $names -}}
{{- if and $names (get $gates "KubernetesWAS") }}{{ fail (printf "featureGates: KubernetesWAS schedules gangs itself; leave out the batch scheduler %s" (first $names)) }}{{ end -}}
{{- if gt (len $names) 1 }}{{ fail (printf "batchScheduler.name and plugins: there can be one batch scheduler, but these are asked for: %s" (join ", " $names)) }}{{ end -}}
{{- if $names -}}
{{- $providers := list -}}
{{- $all := list -}}
{{- range $name, $plugin := $known -}}
{{- if and $plugin.batchScheduler (ne $plugin.featureGate "KubernetesWAS") }}{{ $all = append $all $plugin.batchScheduler }}{{ end -}}
{{- if and (eq $plugin.batchScheduler (first $names)) (ne (toString (get $asked $name)) "false") }}{{ $providers = append $providers $name }}{{ end -}}
{{- end -}}
{{- if or (not $providers) (not (has (first $names) $all)) }}{{ fail (printf "batchScheduler.name: no plugin provides %s; allowed are %s" (first $names) (join ", " (sortAlpha $all))) }}{{ end -}}
{{- first $names -}}
{{- end -}}
{{- end -}}

{{/* The plugins that are on, by name. */}}
{{- define "kuberay-operator.plugins" -}}
{{- $known := include "kuberay-operator.known" . | fromYaml -}}
{{- $asked := include "kuberay-operator.asked" . | fromYaml -}}
{{- $gates := include "kuberay-operator.gates" . | fromYaml -}}
{{- $scheduler := include "kuberay-operator.scheduler" . -}}
{{- range $name, $_ := $asked -}}
{{- if not (hasKey $known $name) }}{{ fail (printf "plugins.%s: there is no such plugin; known are %s, and those that extraPlugins or yamlPlugins bring" $name (keys $known | sortAlpha | join ", ")) }}{{ end -}}
{{- end -}}
{{- $on := dict -}}
{{- range $name, $plugin := $known -}}
{{- $wanted := ternary (get $asked $name) $plugin.default (hasKey $asked $name) -}}
{{- if $plugin.batchScheduler -}}
{{- $wanted = or (eq $plugin.batchScheduler $scheduler) (eq $plugin.featureGate "KubernetesWAS") -}}
{{- end -}}
{{- if and $plugin.featureGate (not (get $gates $plugin.featureGate)) }}{{ $wanted = false }}{{ end -}}
{{- if $wanted }}{{ $_ := set $on $name $plugin }}{{ end -}}
{{- end -}}
{{- $on | toYaml -}}
{{- end -}}

{{/* The operator's rules: the core's, and those of the gates and plugins that are on; one for each resource. */}}
{{- define "kuberay-operator.rules" -}}
{{- $full := eq .Values.rbac.profile "full" -}}
{{- $gates := include "kuberay-operator.gates" . | fromYaml -}}
{{- $plugins := include (ternary "kuberay-operator.known" "kuberay-operator.plugins" $full) . | fromYaml -}}
{{- $rules := .Files.Get "files/rbac/core.yaml" | fromYamlArray -}}
{{- range $path, $_ := .Files.Glob "files/rbac/gates/*.yaml" -}}
{{- if or $full (get $gates (base $path | trimSuffix ".yaml")) -}}
{{- $rules = concat $rules ($.Files.Get $path | fromYamlArray) -}}
{{- end -}}
{{- end -}}
{{- range $plugins }}{{ $rules = concat $rules .rbac }}{{ end -}}
{{- $merged := dict -}}
{{- range $rule := concat $rules .Values.rbac.extraRules -}}
{{- range $group := default (list "") $rule.apiGroups -}}
{{- range $resource := $rule.resources -}}
{{- $names := default list $rule.resourceNames | sortAlpha -}}
{{- $key := printf "%s %s %s" $group $resource (join "," $names) -}}
{{- $entry := default (dict "apiGroups" (list $group) "resources" (list $resource) "verbs" list) (get $merged $key) -}}
{{- if $names }}{{ $_ := set $entry "resourceNames" $names }}{{ end -}}
{{- $_ := set $entry "verbs" (concat $entry.verbs $rule.verbs | uniq | sortAlpha) -}}
{{- $_ := set $merged $key $entry -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $key := keys $merged | sortAlpha }}
- {{ get $merged $key | toJson }}
{{- end -}}
{{- end -}}

{{/* Whether a Job writes the CRDs. It needs rights for the whole cluster, which a single namespace does not have. */}}
{{- define "kuberay-operator.writes-crds" -}}
{{- if kindIs "bool" .Values.crds.upgrade -}}
{{- if .Values.crds.upgrade }}true{{ end -}}
{{- else if not .Values.singleNamespaceInstall -}}
true
{{- end -}}
{{- end -}}
