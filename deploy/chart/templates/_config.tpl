{{/* A list of addresses, from a list or from a text with commas, as JSON. */}}
{{- define "nodens.addresses" -}}
{{- $list := list -}}
{{- if kindIs "string" . -}}
{{- range splitList "," . -}}{{- with trim . -}}{{- $list = append $list . -}}{{- end -}}{{- end -}}
{{- else -}}
{{- $list = . -}}
{{- end -}}
{{- $list | toJson -}}
{{- end -}}

{{/* The addresses that nodens listens on, without ports, as JSON. */}}
{{- define "nodens.listen" -}}
{{- $config := .Values.config -}}
{{- if eq .Values.mode "none" -}}
{{- include "nodens.addresses" $config.bindIp -}}
{{- else -}}
{{- $list := include "nodens.addresses" $config.localDns | fromJsonArray -}}
{{- if eq .Values.mode "service" -}}
{{- $list = concat $list (include "nodens.addresses" $config.dnsServer | fromJsonArray) -}}
{{- end -}}
{{- $list | toJson -}}
{{- end -}}
{{- end -}}

{{/* address:53, with the brackets of IPv6. */}}
{{- define "nodens.at53" -}}
{{- ternary (printf "[%s]:53" .) (printf "%s:53" .) (contains ":" .) -}}
{{- end -}}

{{- define "nodens.metricsPort" -}}
{{- .Values.config.metricsAddress | splitList ":" | last -}}
{{- end -}}

{{- define "nodens.guardPort" -}}
{{- .Values.guard.metricsAddress | splitList ":" | last -}}
{{- end -}}

{{/* What the guard has to set up, as JSON. */}}
{{- define "nodens.host" -}}
{{- $host := dict "mode" .Values.mode -}}
{{- if include "nodens.onHost" . -}}
{{- $_ := set $host "link" .Values.guard.linkName -}}
{{- $_ := set $host "metrics" .Values.guard.metricsAddress -}}
{{- with .Values.guard.tracked -}}{{- $_ := set $host "tracked" . -}}{{- end -}}
{{- if eq .Values.mode "service" -}}
{{- $_ := set $host "service" (include "nodens.addresses" .Values.config.dnsServer | fromJsonArray) -}}
{{- end -}}
{{- end -}}
{{- $host | toJson -}}
{{- end -}}

{{/* The keys that the configuration has, each on a line, after an empty one. */}}
{{- define "nodens.keys" }}
{{ .Files.Get "files/keys.txt" }}
{{- end -}}

{{/* The configuration as a file. A Corefile knows no host, so that one made of it has none. */}}
{{- define "nodens.file" -}}
{{- include "nodens.refuseTogether" . -}}
{{- with .Values.config.customConfig -}}
{{- if $.Values.config.extra -}}
{{- fail "config.extra counts for nothing beside config.customConfig: write its keys there" -}}
{{- end -}}
{{- $config := fromYaml . -}}
{{- with get $config "Error" -}}
{{- fail (printf "config.customConfig is no mapping in YAML: %s" .) -}}
{{- end -}}
{{- include "nodens.refuseKeys" (dict "keys" (include "nodens.keys" $) "from" "config.customConfig" "at" "" "value" $config) -}}
{{- include "nodens.refuse" (dict "from" "config.customConfig" "config" $config) -}}
{{- trim . -}}
{{- if not (hasKey $config "host") }}
host: {{ include "nodens.host" $ }}
{{- end -}}
{{- else -}}
{{- include "nodens.config" . -}}
{{- end -}}
{{- end -}}

{{/*
What of the configuration is only read at a start, as JSON: a change of it needs new pods,
and one of anything else none.
*/}}
{{- define "nodens.readAtStart" -}}
{{- $config := include "nodens.file" . | fromYaml -}}
{{- $host := omit (get $config "host" | default dict) "mode" "service" "tracked" -}}
{{- dict "host" $host "socket" (dig "admin" "socket" "" $config) "format" (dig "log" "format" "" $config) | toJson -}}
{{- end -}}

{{/* The configuration, as a map, so that extra can be laid over it. */}}
{{- define "nodens.config" -}}
{{- $config := .Values.config -}}
{{- $listen := list -}}
{{- range include "nodens.listen" . | fromJsonArray -}}
{{- $listen = append $listen (include "nodens.at53" .) -}}
{{- end -}}
{{- $upstream := dict "namespace" $config.upstream.namespace -}}
{{- with $config.upstream.service -}}{{- $_ := set $upstream "service" . -}}{{- end -}}
{{- with $config.upstream.local -}}{{- $_ := set $upstream "local" . -}}{{- end -}}
{{- with $config.upstream.clusterIP -}}{{- $_ := set $upstream "clusterIP" . -}}{{- end -}}
{{- $routes := list (dict "zones" (prepend $config.reverseZones $config.dnsDomain) "topology" $upstream) -}}
{{- range $zone, $servers := $config.stubDomains -}}
{{- $routes = append $routes (dict "zones" (list $zone) "servers" $servers) -}}
{{- end -}}
{{- if $config.upstreamServers -}}
{{- $routes = append $routes (dict "zones" (list ".") "servers" $config.upstreamServers) -}}
{{- else -}}
{{- $routes = append $routes (dict "zones" (list ".") "resolvConf" "/etc/resolv.conf") -}}
{{- end -}}
{{- if eq $config.commProtocol "force_tcp" -}}{{- $_ := set (first $routes) "forceTCP" true -}}{{- end -}}
{{- range $routes -}}
{{- if $config.noIPv6Lookups -}}{{- $_ := set . "filterAAAA" true -}}{{- end -}}
{{- if $config.cacheTTL -}}{{- $_ := set . "cache" (dict "maxTTL" (printf "%ds" (int $config.cacheTTL))) -}}{{- end -}}
{{- end -}}
{{- $kubernetes := dict "readNode" .Values.rbac.readNode -}}
{{- if not (include "nodens.onHost" .) -}}{{- $_ := set $kubernetes "snapshots" "/var/lib/nodens" -}}{{- end -}}
{{- $all := dict
  "version" "v1"
  "listen" $listen
  "host" (include "nodens.host" . | fromJson)
  "node" (dict "labelsFile" "/etc/podinfo/labels")
  "kubernetes" $kubernetes
  "admin" (dict "address" $config.metricsAddress)
  "cache" (dict "size" $config.cacheSize)
  "log" (dict "level" $config.logLevel)
  "routes" $routes
-}}
{{- if $config.enableLogging -}}{{- $_ := set $all "queryLog" (dict "every" 1) -}}{{- end -}}
{{- include "nodens.refuseKeys" (dict "keys" (include "nodens.keys" .) "from" "config.extra" "at" "" "value" $config.extra) -}}
{{- $all = mustMergeOverwrite $all (deepCopy $config.extra) -}}
{{- include "nodens.refuse" (dict "from" "config" "config" $all) -}}
{{- include "nodens.refuseLoops" (dict "config" $config "listen" $all.listen) -}}
{{- toYaml $all -}}
{{- end -}}
