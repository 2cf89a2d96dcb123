package names

import (
	"fmt"
	"net/netip"
	"strings"
)

// Words that names are made of, so that their lengths look like a cluster's.
func words() (first, second, hosts []string) {
	first = []string{
		"cart", "checkout", "payment", "user", "order", "search", "stock", "mail", "auth", "image",
		"price", "report", "event", "session", "feature", "billing",
	}
	second = []string{
		"api", "db", "cache", "worker", "gateway", "frontend", "queue", "proxy",
		"primary", "replica", "grpc", "metrics", "admin", "sync", "store", "web",
	}
	hosts = []string{
		"www", "api", "login", "cdn", "s3.eu-west-1", "telemetry", "registry", "oauth2",
		"hooks", "ingest.us", "storage", "sqs.eu-central-1",
	}
	return first, second, hosts
}

func namespace(i int) string {
	first, _, _ := words()
	return fmt.Sprintf("%s-team-%d", first[i%len(first)], i)
}

func (z *Zone) addCluster(cfg Config) error {
	domain := strings.ToLower(strings.TrimSuffix(cfg.Domain, "."))
	bare := []string{domain, "svc." + domain}
	for _, name := range namespaceNames(cfg) {
		bare = append(bare, name+".svc."+domain)
	}
	for i, text := range bare {
		wire, err := z.add(text, entry{class: Bare})
		if err != nil {
			return err
		}
		if pod := i - 2; pod >= 0 && pod < cfg.PodNamespaces {
			z.pods = append(z.pods, wire)
		}
	}
	for _, listed := range cfg.List {
		if err := z.addListed(listed, domain); err != nil {
			return err
		}
	}
	for i := range cfg.Services - len(cfg.List) {
		if err := z.addService(i, domain, cfg); err != nil {
			return err
		}
	}
	return nil
}

// addService makes service i; neighbours in popularity live in different
// namespaces, and each eighth is headless.
func (z *Zone) addService(i int, domain string, cfg Config) error {
	first, second, _ := words()
	text := fmt.Sprintf("%s-%s-%d.%s.svc.%s", first[i%len(first)], second[i/len(first)%len(second)], i,
		namespace(i%cfg.Namespaces), domain)
	e := entry{class: Service, v4: address4(10<<24|96<<16, 12, uint32(i)+1)}
	if i%8 == 7 {
		e = entry{class: Headless, v4: address4(10<<24|128<<16, 12, uint32(i)+1)}
	}
	if cfg.DualStack {
		e.v6 = address6(uint16(e.class), uint64(i)+1)
	}
	wire, err := z.add(text, e)
	z.services = append(z.services, target{name: wire})
	return err
}

// addExternal makes the names outside the cluster. Half of them have an IPv6
// address, half keep their records for long.
func (z *Zone) addExternal(cfg Config) error {
	first, _, hosts := words()
	for i := range cfg.External {
		text := fmt.Sprintf("%s.%s-%d.example", hosts[i%len(hosts)], first[i/len(hosts)%len(first)], i)
		e := entry{class: External, v4: address4(203<<24, 8, uint32(i)+1), v6: netip.Addr{}}
		if i%4 >= 2 {
			e.class = Stable
		}
		if i%2 == 0 {
			e.v6 = address6(uint16(External), uint64(i)+1)
		}
		wire, err := z.add(text, e)
		if err != nil {
			return err
		}
		z.external = append(z.external, target{name: wire})
	}
	return nil
}
