{{/*
What runs once on every node: a DaemonSet whose init container does it and whose
container then only waits, because a Job cannot be told to be on each node once.
Takes: root, config (the ConfigMap), steps (the arguments of one container after another, by name),
nodeSelector, pauseImage, token (whether it asks the API server), priorityClassName.
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
priorityClassName: {{ .priorityClassName }}
{{- with .nodeSelector }}
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
{{- range $step := .steps }}
- name: {{ first $step }}
  image: {{ include "nodens.image" $.root }}
  imagePullPolicy: {{ $.root.Values.image.pullPolicy }}
  args: {{ append (rest $step) "-config=/etc/nodens/nodens.yaml" | toJson }}
  resources:
    requests: {cpu: 10m, memory: 32Mi}
    limits: {memory: 96Mi}
  securityContext:
    runAsUser: 0
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities: {drop: [ALL], add: [NET_ADMIN]}
  volumeMounts:
  - {name: config, mountPath: /etc/nodens, readOnly: true}
  - {name: host-run, mountPath: /run/nodens}
  - {name: host-state, mountPath: /var/lib/nodens}
{{- end }}
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
