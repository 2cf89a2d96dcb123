package check

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
)

// Values that cannot be meant are refused, with the name of the key.
func TestValuesAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		values map[string]any
		want   string
	}{
		"unknown mode":                     {map[string]any{"mode": "ipvs"}, "mode"},
		"a key that does not exist":        {map[string]any{"confg": map[string]any{}}, "confg"},
		"a key of another chart":           {map[string]any{"config": map[string]any{"setupIptables": true}}, "setupIptables"},
		"mode service without its address": {map[string]any{"mode": "service"}, "dnsServer"},
		"no address at all":                {map[string]any{"config": map[string]any{"localDns": []any{}}}, "localDns"},
		"a size without a unit of ours":    {map[string]any{"config": map[string]any{"cacheSize": "32MB"}}, "cacheSize"},
		"a digest that is none":            {map[string]any{"image": map[string]any{"digest": "latest"}}, "digest"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := tryRender(newest, tc.values)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error about %s", err, tc.want)
			}
		})
	}
}

// What the program or a node would refuse is refused where it is written, before a pod
// starts.
func TestWrongValuesAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"config: {localDns: [nine]}":                                                                "/config/localDns/0",
		"config: {localDns: 169.254.20.10 fd00::1}":                                                 "/config/localDns",
		"config: {localDns: ['169.254.20.10:53']}":                                                  "/config/localDns/0",
		"config: {localDns: [169.254.20.10, 169.254.20.10]}":                                        "listen names an address twice",
		"mode: service\nconfig: {dnsServer: [kube-dns]}":                                            "/config/dnsServer/0",
		"mode: none\nconfig: {bindIp: '*'}":                                                         "/config/bindIp",
		"config: {cacheSize: '5'}":                                                                  "/config/cacheSize",
		"config: {cacheSize: 512Ki}":                                                                "/config/cacheSize",
		"config: {cacheSize: 17Gi}":                                                                 "/config/cacheSize",
		"config: {upstreamServers: [dns.google]}":                                                   "/config/upstreamServers/0",
		"config: {upstreamServers: ['192.0.2.53:530000']}":                                          "/config/upstreamServers/0",
		"config: {upstreamServers: ['tls://192.0.2.53']}":                                           "/config/upstreamServers/0",
		"config: {upstreamServers: [169.254.20.10]}":                                                "nodens would ask 169.254.20.10",
		"config: {stubDomains: {a.example: 192.0.2.1}}":                                             "/config/stubDomains/a.example",
		"config: {stubDomains: {'a b': [192.0.2.1]}}":                                               "at '/config/stubDomains': additional properties 'a b'",
		"config: {stubDomains: {cluster.local: [192.0.2.1]}}":                                       `the zone "cluster.local" is in two routes`,
		"config: {stubDomains: {.: [192.0.2.1]}}":                                                   `the zone "." is in two routes`,
		"config: {upstream: {clusterIP: [kube-dns]}}":                                               "/config/upstream/clusterIP/0",
		"config: {upstream: {service: kube-system/coredns}}":                                        "/config/upstream/service",
		"mode: service\nconfig: {dnsServer: 10.96.0.10, upstream: {clusterIP: ['10.96.0.10:53']}}":  "nodens would ask 10.96.0.10:53",
		"config: {metricsAddress: ':9253'}":                                                         "/config/metricsAddress",
		"config: {metricsAddress: '0.0.0.0:92530'}":                                                 "/config/metricsAddress",
		"config: {metricsAddress: '0.0.0.0:9254'}":                                                  "config.metricsAddress and guard.metricsAddress",
		"config: {dnsDomain: 'a b'}":                                                                "/config/dnsDomain",
		"config: {extra: {routs: []}}":                                                              "config.extra has routs,",
		"config: {extra: {cache: {sise: 1Mi}}}":                                                     "config.extra has cache.sise,",
		"config: {extra: {routes: [{zones: [.], cache: {ttl: 5s}}]}}":                               "config.extra has routes.cache.ttl,",
		"config: {extra: {listen: [169.254.20.10]}}":                                                "config: listen has 169.254.20.10,",
		"config: {extra: {listen: '169.254.20.10:53'}}":                                             "config: listen must be a list",
		"config: {extra: {version: v2}}":                                                            "config: version must be v1",
		"config: {customConfig: nonsense}":                                                          "config.customConfig is no mapping",
		"config: {customConfig: 'version: v1\n\nlisten: [\n'}":                                      "config.customConfig is no mapping in YAML",
		"config: {customConfig: 'version: v1'}":                                                     "config.customConfig: listen must be a list",
		`config: {customConfig: "version: v1\nlisten: ['169.254.20.10:53']\nrouts: []"}`:            "config.customConfig has routs,",
		`config: {customConfig: "version: v1\nlisten: [169.254.20.10]\nroutes: [{zones: [.]}]"}`:    "config.customConfig: listen has 169.254.20.10,",
		`config: {customConfig: "version: v1\nlisten: ['169.254.20.10:53']\nroutes: [{zones: .}]"}`: "config.customConfig: a route has no list of zones",
		`config: {extra: {stopGrace: 9s}, customConfig: "version: v1"}`:                             "config.extra counts for nothing",
		"ciliumLocalRedirectPolicy: {enabled: true}":                                                "ciliumLocalRedirectPolicy.enabled has no effect",
		"networkPolicy: {enabled: true}":                                                            "networkPolicy.enabled has no effect",
		"networkPolicy: {nodeCIDRs: [10.0.0.1]}":                                                    "/networkPolicy/nodeCIDRs/0",
		"networkPolicy: {nodeCIDRs: [10.0.0.0/33]}":                                                 "/networkPolicy/nodeCIDRs/0",
		"networkPolicy: {metricsFrom: [monitoring]}":                                                "/networkPolicy/metricsFrom/0",
		"upstreamService: {selector: {k8s-app: null}}":                                              "/upstreamService/selector",
		"image: {repository: 'ghcr.io/nodens-dns/nodens:0.1.0'}":                                    "/image/repository",
		"image: {tag: 'nodens:0.1.0'}":                                                              "/image/tag",
		"imagePullSecrets: [registry]":                                                              "/imagePullSecrets/0",
		"resources: {limit: {memory: 128Mi}}":                                                       "/resources",
		"resources: {limits: {memory: 128MB}}":                                                      "/resources/limits/memory",
		"guard: {resources: {requests: {cpu: ten}}}":                                                "/guard/resources/requests/cpu",
		"guard: {linkName: nodens/0}":                                                               "/guard/linkName",
		"startupTaint: {key: 'nodens.io/starting=true'}":                                            "/startupTaint/key",
		"startupTaint: {effect: NoExecute}":                                                         "/startupTaint/effect",
		"nodeSelector: {nodens: true}":                                                              "/nodeSelector/nodens",
		"tolerations: {operator: Exists}":                                                           "/tolerations",
		"tolerations: [Exists]":                                                                     "/tolerations/0",
		"tolerations: [{effects: NoSchedule}]":                                                      "effects",
		"updateStrategy: OnDelete":                                                                  "/updateStrategy",
		"updateStrategy: {maxSurge: 1}":                                                             "maxSurge",
		"affinity: {nodeAfinity: {}}":                                                               "nodeAfinity",
		"lifecycle: {prestop: {}}":                                                                  "prestop",
		"seLinuxOptions: {typ: spc_t}":                                                              "typ",
		"extraEnv: [A=b]":                                                                           "/extraEnv/0",
		"podMonitor: true":                                                                          "/podMonitor",
		"podMonitor: {labels: {release: 5}}":                                                        "/podMonitor/labels/release",
		"fullnameOverride: Node_DNS":                                                                "/fullnameOverride",
		"config: {localDns: 169.254.20.300}":                                                        "/config/localDns",
		"config: {localDns: 'fd00:::1'}":                                                            "/config/localDns",
		"config: {upstreamServers: [8.8.8.888]}":                                                    "/config/upstreamServers/0",
		"config: {upstreamServers: ['[fd00::1]']}":                                                  "/config/upstreamServers/0",
		"config: {upstreamServers: ['tls://1.1.1.300#dns.example']}":                                "/config/upstreamServers/0",
		"config: {stubDomains: {corp.test: [1.1.1.300]}}":                                           "/config/stubDomains/corp.test/0",
		"config: {stubDomains: {corp..test: [192.0.2.1]}}":                                          "at '/config/stubDomains': additional properties 'corp..test'",
		"config: {stubDomains: {Cluster.Local.: [192.0.2.1]}}":                                      `the zone "Cluster.Local." is in two routes`,
		"config: {reverseZones: [cluster.local]}":                                                   `the zone "cluster.local" is in two routes`,
		"config: {dnsServer: 10.96.0}":                                                              "/config/dnsServer",
		"mode: service\nconfig: {dnsServer: 10.96.0.300}":                                           "/config/dnsServer",
		"mode: service\nconfig: {dnsServer: 169.254.20.10}":                                         "config.dnsServer and config.localDns both have 169.254.20.10",
		"config: {dnsServer: [169.254.20.10]}":                                                      "config.dnsServer and config.localDns both have 169.254.20.10",
		"config: {upstream: {clusterIP: [10.96.0]}}":                                                "/config/upstream/clusterIP/0",
		"config: {upstream: {local: [10.96.0.0.1]}}":                                                "/config/upstream/local/0",
		"config: {dnsDomain: cluster..local}":                                                       "/config/dnsDomain",
		"config: {dnsDomain: .}":                                                                    `the zone "." is in two routes`,
		"config: {metricsAddress: '0.0.0.300:9253'}":                                                "/config/metricsAddress",
		"config: {metricsAddress: '0.0.0.0:53'}":                                                    "config: admin.address is 0.0.0.0:53, which listen has with 169.254.20.10:53",
		"config: {extra: {listen: ['169.254.20.300:53']}}":                                          "config: listen has 169.254.20.300:53,",
		"guard: {metricsAddress: '0.0.0.0:9253'}":                                                   "config.metricsAddress and guard.metricsAddress both have port 9253",
		"guard: {metricsAddress: '169.254.20.10:53'}":                                               "config: host.metrics is 169.254.20.10:53, which listen has",
		"guard: {linkName: ..}":                                                                     "/guard/linkName",
		"networkPolicy: {nodeCIDRs: [10.0.0.300/24]}":                                               "/networkPolicy/nodeCIDRs/0",
		"updateStrategy: {type: Recreate}":                                                          "/updateStrategy/type",
		"updateStrategy: {rollingUpdate: {maxSurge: 0}}":                                            "maxSurge 0 and maxUnavailable 0: one of them must be 0, and only one",
		"updateStrategy: {rollingUpdate: {maxUnavailable: 1}}":                                      "maxSurge 10% and maxUnavailable 1: one of them",
		"updateStrategy: {rollingUpdate: {maxSurge: 200%}}":                                         "/updateStrategy/rollingUpdate/maxSurge",
		"lifecycle: {preStop: sleep}":                                                               "/lifecycle/preStop",
		"lifecycle: {preStop: {slep: {seconds: 2}}}":                                                "slep",
		"upstreamService: {name: Kube_DNS}":                                                         "/upstreamService/name",
	} {
		values, err := chartutil.ReadValues([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if _, _, err := tryRender(newest, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %s", text, err, want)
		}
	}
}

// All that an address can be written as is taken, and the program takes what it comes to.
func TestRightValuesAreTaken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nodens.yaml")
	for _, text := range []string{
		"config: {upstreamServers: ['[2001:db8::1]:53', '2001:db8::2', 192.0.2.255, '192.0.2.1:65535', '::ffff:192.0.2.2']}",
		"config: {upstreamServers: ['tls://192.0.2.1#dns.example', 'tls://192.0.2.2:853#dns.example', 'tls://[2001:db8::1]:853#dns.example']}",
		"config: {localDns: 'fd00:90de:d95::1, 169.254.20.10'}",
		"config: {localDns: ['2001:db8:1:2:3:4:5:6', 'fd00::']}",
		"config: {localDns: '2001:db8:1:2:3:4:5:6,fd00::,::2:3:4:5:6:7:8'}",
		"config: {dnsDomain: Cluster.Example., reverseZones: [10.in-addr.arpa], stubDomains: {_my.corp.test.: ['[fd00::53]:5300']}}",
		"config: {upstream: {clusterIP: ['fd00::a', 10.96.0.10], local: ['[fd00::b]:53', '10.96.0.11:53']}}",
		"config: {metricsAddress: '[::]:9253'}\nguard: {metricsAddress: '[fd00::1]:9254', linkName: node-dns_0.1}",
		"updateStrategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 10%}}",
		"updateStrategy: {type: OnDelete}",
		"updateStrategy: {type: OnDelete, rollingUpdate: null}",
		"mode: none\nconfig: {bindIp: ['::'], metricsAddress: '0.0.0.0:9254'}",
	} {
		values, err := chartutil.ReadValues([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		objects, _, err := tryRender(newest, values)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if err := os.WriteFile(file, []byte(configOf(t, objects)), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(program(t), "check", "-config", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", text, err, out)
		}
	}
}
