{{/*
What runs once on every node: a DaemonSet whose init container does it and whose
container then only waits, because a Job cannot be told to be on each node once.
Takes: root, config (the ConfigMap), args, pauseImage, token (whether it asks the API server).
*/}}
{{- define "nodens.onNodes" -}}
hostNetwork: true
dnsPolicy: Default
automountServiceAccountToken: {{ .token }}
{{- if .token }}
serviceAccountName: {{ include "nodens.serviceAccount" .root }}
{{- end }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
priorityClassName: {{ include "nodens.priorityClassName" .root }}
{{- with .root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
tolerations:
- operator: Exists
terminationGracePeriodSeconds: 1
securityContext:
  seccompProfile: {type: RuntimeDefault}
  {{- with .root.Values.seLinuxOptions }}
  seLinuxOptions:
    {{- toYaml . | nindent 4 }}
  {{- end }}
initContainers:
- name: once
  image: {{ include "nodens.image" .root }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  args: {{ toJson .args }}
  securityContext:
    runAsUser: 0
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities: {drop: [ALL], add: [NET_ADMIN]}
  volumeMounts:
  - {name: config, mountPath: /etc/nodens, readOnly: true}
  - {name: host-run, mountPath: /run/nodens}
  - {name: host-state, mountPath: /var/lib/nodens}
containers:
- {{- include "nodens.pause" .pauseImage | nindent 2 }}
volumes:
- name: config
  configMap: {name: {{ .config }}}
- name: host-run
  hostPath: {path: /run/nodens, type: DirectoryOrCreate}
- name: host-state
  hostPath: {path: /var/lib/nodens, type: DirectoryOrCreate}
{{- end -}}

{{- define "nodens.pause" -}}
name: done
image: {{ . }}
resources:
  requests: {cpu: 1m, memory: 1Mi}
  limits: {memory: 8Mi}
securityContext:
  runAsUser: 65532
  runAsNonRoot: true
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

{{/* The security of a container that only asks the API server. */}}
{{- define "nodens.plainSecurity" -}}
runAsUser: 65532
runAsGroup: 65532
runAsNonRoot: true
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end -}}
