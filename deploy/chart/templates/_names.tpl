{{- define "nodens.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "nodens.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "nodens.name" . -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "nodens.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "nodens.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "nodens.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default .Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "nodens.selector" -}}
app.kubernetes.io/name: {{ include "nodens.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "nodens.labels" -}}
{{ include "nodens.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "nodens.priorityClassName" -}}
{{- ternary .Values.priorityClass.name .Values.priorityClassName .Values.priorityClass.create -}}
{{- end -}}

{{/* True where nodens has the network of the node. */}}
{{- define "nodens.onHost" -}}
{{- if ne .Values.mode "none" }}true{{ end -}}
{{- end -}}

{{/* How guard runs: sidecar or container. */}}
{{- define "nodens.guardAs" -}}
{{- if ne .Values.guard.as "auto" -}}
{{- .Values.guard.as -}}
{{- else if semverCompare ">=1.29.0-0" .Capabilities.KubeVersion.Version -}}
sidecar
{{- else -}}
container
{{- end -}}
{{- end -}}

{{/* The volume of the token, for those containers of a pod alone that mount it. */}}
{{- define "nodens.token" -}}
name: token
projected:
  defaultMode: 0444
  sources:
  - serviceAccountToken: {path: token, expirationSeconds: 3607}
  - configMap:
      name: kube-root-ca.crt
      items: [{key: ca.crt, path: ca.crt}]
  - downwardAPI:
      items: [{path: namespace, fieldRef: {fieldPath: metadata.namespace}}]
{{- end -}}
