{{/* The container that owns the link, its addresses and the table of the kernel. */}}
{{- define "nodens.guard" -}}
name: guard
image: {{ include "nodens.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args:
- guard
- -config=/etc/nodens/nodens.yaml
{{- if eq (include "nodens.guardAs" .) "sidecar" }}
restartPolicy: Always
{{- end }}
env:
- name: NODE_NAME
  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
securityContext:
  # The capability is the only power of root that is left.
  runAsUser: 0
  runAsGroup: 0
  runAsNonRoot: false
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL], add: [NET_ADMIN]}
{{- with .Values.guard.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
- {name: config, mountPath: /etc/nodens, readOnly: true}
- {name: podinfo, mountPath: /etc/podinfo, readOnly: true}
- {name: pod, mountPath: /run/nodens-pod}
- {name: host-run, mountPath: /run/nodens}
- {name: host-state, mountPath: /var/lib/nodens}
{{- if .Values.rbac.create }}
# It follows the endpoints itself while nodens is away.
- {name: token, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
{{- end }}
{{- end -}}
