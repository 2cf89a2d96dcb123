{{/*
What the schema cannot see and the program would refuse on the node is refused here.
Takes: from (the value it is made of), config.
*/}}
{{- define "nodens.refuse" -}}
{{- if ne (get .config "version" | toString) "v1" -}}
{{- fail (printf "%s: version must be v1, the only one there is" .from) -}}
{{- end -}}
{{- range $key := list "listen" "routes" -}}
{{- $list := get $.config $key -}}
{{- if not (and (kindIs "slice" $list) $list) -}}
{{- fail (printf "%s: %s must be a list that is not empty" $.from $key) -}}
{{- end -}}
{{- end -}}
{{- range .config.listen -}}
{{- if not (regexMatch (include "nodens.addressWithPort" $) (toString .)) -}}
{{- fail (printf "%s: listen has %v, which is no address with a port: write it as 169.254.20.10:53 or [fd00::1]:53" $.from .) -}}
{{- end -}}
{{- end -}}
{{- if ne (len .config.listen) (uniq .config.listen | len) -}}
{{- fail (printf "%s: listen names an address twice" .from) -}}
{{- end -}}
{{- include "nodens.refuseShared" . -}}
{{- include "nodens.refuseZones" . -}}
{{- end -}}

{{- define "nodens.addressWithPort" -}}
{{- $byte := "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])" -}}
^({{ $byte }}(\.{{ $byte }}){3}|\[[0-9a-fA-F:.]+\]):([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$
{{- end -}}

{{/*
An address that queries and metrics, or two kinds of metrics, would have to share.
Takes: from, config.
*/}}
{{- define "nodens.refuseShared" -}}
{{- $taken := list -}}
{{- range .config.listen -}}{{- $taken = append $taken (list "listen" (toString .)) -}}{{- end -}}
{{- $host := get .config "host" | default dict -}}
{{- $own := list (list "admin.address" (dig "address" "127.0.0.1:9253" (get .config "admin" | default dict) | toString)) -}}
{{- if ne (dig "mode" "none" $host) "none" -}}
{{- $own = append $own (list "host.metrics" (dig "metrics" "127.0.0.1:9254" $host | toString)) -}}
{{- end -}}
{{- range $one := $own -}}
{{- range $other := $taken -}}
{{- if include "nodens.same" (dict "one" (last $one) "other" (last $other)) -}}
{{- fail (printf "%s: %s is %s, which %s has with %s: choose another port" $.from (first $one) (last $one) (first $other) (last $other)) -}}
{{- end -}}
{{- end -}}
{{- $taken = append $taken $one -}}
{{- end -}}
{{- end -}}

{{/* True where two addresses with ports cannot both be listened on. */}}
{{- define "nodens.same" -}}
{{- $port := ":[0-9]+$" -}}
{{- $hosts := list (regexReplaceAll $port .one "") (regexReplaceAll $port .other "") -}}
{{- if eq (splitList ":" .one | last) (splitList ":" .other | last) -}}
{{- if or (eq (first $hosts) (last $hosts)) (and (eq (hasPrefix "[" .one) (hasPrefix "[" .other)) (or (has "0.0.0.0" $hosts) (has "[::]" $hosts))) -}}
true
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
A key that the configuration does not have.
Takes: keys (those it has, each on a line), from (the value it is in), at (its path), value.
*/}}
{{- define "nodens.refuseKeys" -}}
{{- if kindIs "slice" .value -}}
{{- range .value -}}
{{- include "nodens.refuseKeys" (dict "keys" $.keys "from" $.from "at" $.at "value" .) -}}
{{- end -}}
{{- else if kindIs "map" .value -}}
{{- range $key, $value := .value -}}
{{- $at := printf "%s.%s" $.at $key | trimPrefix "." -}}
{{- if contains (printf "\n%s\n" $at) $.keys | not -}}
{{- fail (printf "%s has %s, which is no key of the configuration: 'nodens check -sample' prints all" $.from $at) -}}
{{- end -}}
{{- if contains (printf "\n%s." $at) $.keys -}}
{{- include "nodens.refuseKeys" (dict "keys" $.keys "from" $.from "at" $at "value" $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A zone that is in two routes, or twice in one. */}}
{{- define "nodens.refuseZones" -}}
{{- $seen := dict -}}
{{- range .config.routes -}}
{{- $zones := ternary . (dict) (kindIs "map" .) | dig "zones" "" -}}
{{- if not (kindIs "slice" $zones) -}}
{{- fail (printf "%s: a route has no list of zones" $.from) -}}
{{- end -}}
{{- range $zones -}}
{{- $zone := toString . | lower | trimSuffix "." -}}
{{- if hasKey $seen $zone -}}
{{- fail (printf "%s: the zone %q is in two routes or twice in one: dnsDomain, reverseZones, stubDomains and routes must name it once" $.from (toString .)) -}}
{{- end -}}
{{- $_ := set $seen $zone true -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A server that is nodens itself. Takes: config (values), listen. */}}
{{- define "nodens.refuseLoops" -}}
{{- $upstream := .config.upstream -}}
{{- $servers := concat (default list $upstream.local) (default list $upstream.clusterIP) (default list .config.upstreamServers) -}}
{{- range .config.stubDomains -}}{{- $servers = concat $servers . -}}{{- end -}}
{{- range $servers -}}
{{- if or (has . $.listen) (has (include "nodens.at53" .) $.listen) -}}
{{- fail (printf "config: nodens would ask %s, where it listens itself: name the server behind it" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* How many pods an update may have too many and too few: one of the two, not both or none. */}}
{{- define "nodens.refuseUpdate" -}}
{{- with .Values.updateStrategy -}}
{{- if and (ne .type "OnDelete") .rollingUpdate -}}
{{- $surge := has (get .rollingUpdate "maxSurge" | toString) (list "0" "0%" "") | not -}}
{{- $missing := has (get .rollingUpdate "maxUnavailable" | toString) (list "0" "0%") | not -}}
{{- if eq $surge $missing -}}
{{- fail (printf "updateStrategy.rollingUpdate has maxSurge %v and maxUnavailable %v: one of them must be 0, and only one" (get .rollingUpdate "maxSurge") (get .rollingUpdate "maxUnavailable")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Values that each are right and that do not go together. */}}
{{- define "nodens.refuseTogether" -}}
{{- include "nodens.refuseUpdate" . -}}
{{- range $address := include "nodens.addresses" .Values.config.dnsServer | fromJsonArray -}}
{{- if has $address (include "nodens.addresses" $.Values.config.localDns | fromJsonArray) -}}
{{- fail (printf "config.dnsServer and config.localDns both have %s: the one is the address of the DNS Service, the other one of nodens alone" $address) -}}
{{- end -}}
{{- end -}}
{{- if include "nodens.onHost" . -}}
{{- if eq (include "nodens.metricsPort" .) (include "nodens.guardPort" .) -}}
{{- fail (printf "config.metricsAddress and guard.metricsAddress both have port %s: change one" (include "nodens.guardPort" .)) -}}
{{- end -}}
{{- range $name, $policy := dict "networkPolicy" .Values.networkPolicy "ciliumLocalRedirectPolicy" .Values.ciliumLocalRedirectPolicy -}}
{{- if $policy.enabled -}}
{{- fail (printf "%s.enabled has no effect in mode %s, in which pods have the network of the host: choose mode none, or leave it off" $name $.Values.mode) -}}
{{- end -}}
{{- end -}}
{{- if and (eq .Values.guard.as "sidecar") (semverCompare "<1.29.0-0" .Capabilities.KubeVersion.Version) -}}
{{- fail (printf "guard.as is sidecar, which Kubernetes %s does not have: write auto or container" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- end -}}
{{- end -}}
