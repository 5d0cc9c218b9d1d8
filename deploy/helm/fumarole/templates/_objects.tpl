{{/* What all processes have in common, and one of them: containers are merged by their place, which is the same in both. */}}
{{- define "fumarole.deployment" -}}
{{- $ := .root -}}
{{- $object := .object -}}
{{- $common := $.Files.Get "processes/common.yaml" | fromYaml -}}
{{- $shared := $common.spec.template.spec -}}
{{- $pod := $object.spec.template.spec -}}
{{- $image := printf "%s:%s" $.Values.image.repository (toString $.Values.image.tag) -}}
{{- range $part := list "initContainers" "containers" -}}
{{- $merged := list -}}
{{- range $index, $container := (get $pod $part) -}}
{{- $first := index (get $shared $part) 0 -}}
{{- $mounts := concat $first.volumeMounts (default (list) $container.volumeMounts) -}}
{{- $whole := mergeOverwrite (deepCopy $first) $container (dict "volumeMounts" $mounts) -}}
{{- $_ := set $whole "image" $image -}}
{{- $_ := set $whole "imagePullPolicy" $.Values.image.pullPolicy -}}
{{- range $source := $whole.envFrom -}}
{{- if $source.secretRef }}{{ $_ := set $source.secretRef "name" $.Values.existingSecret }}{{ end -}}
{{- end -}}
{{- $merged = append $merged $whole -}}
{{- end -}}
{{- $_ := set $pod $part $merged -}}
{{- end -}}
{{- $volumes := concat $shared.volumes (default (list) $pod.volumes) -}}
{{- range $volume := $volumes -}}
{{- if $volume.secret }}{{ $_ := set $volume.secret "secretName" $.Values.webhooks.tlsSecret }}{{ end -}}
{{- end -}}
{{- $_ := set $object.spec.template "spec" (mergeOverwrite (deepCopy $shared) $pod (dict "volumes" $volumes)) -}}
{{- $_ := set $object.spec "revisionHistoryLimit" $common.spec.revisionHistoryLimit -}}
{{- $component := get $object.metadata.labels "app.kubernetes.io/component" -}}
{{- if hasKey $.Values.replicas $component }}{{ $_ := set $object.spec "replicas" (int (get $.Values.replicas $component)) }}{{ end -}}
{{- $settings := include (print $.Template.BasePath "/settings.yaml") $ | sha256sum -}}
{{- $_ := set $object.spec.template.metadata "annotations" (dict "checksum/settings" $settings) -}}
{{- toYaml $object -}}
{{- end -}}
