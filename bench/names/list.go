package names

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"slices"
)

// Listed is a service of a real cluster.
type Listed struct {
	Name, Namespace string
	// V4 and V6 are its cluster addresses; an invalid one is a family that it
	// does not have.
	V4, V6 netip.Addr
	// Open says that its addresses are not in the list: it is headless, or a
	// name for something outside.
	Open bool
}

// ReadServices reads what "kubectl get services -A -o json" prints. The order,
// which becomes the popularity, is drawn with the seed. The error says which
// item is wrong.
func ReadServices(in io.Reader, seed uint64) ([]Listed, error) {
	var file struct {
		Kind  string
		Items []serviceItem
	}
	if err := json.NewDecoder(in).Decode(&file); err != nil {
		return nil, fmt.Errorf("the list of services is not JSON: %w; write it with kubectl get services -A -o json", err)
	}
	if len(file.Items) == 0 {
		return nil, fmt.Errorf("the list of services has no items (it is of kind %q); write it with kubectl get services -A -o json", file.Kind)
	}
	var list []Listed
	var errs []error
	for i, item := range file.Items {
		l, err := item.listed()
		if err != nil {
			errs = append(errs, fmt.Errorf("item %d of the list of services: %w", i+1, err))
		}
		list = append(list, l)
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list, errors.Join(errs...)
}

// serviceItem is what of a Service matters here.
type serviceItem struct {
	Metadata struct{ Name, Namespace string }
	Spec     struct {
		Type       string
		ClusterIPs []string `json:"clusterIPs"`
		ClusterIP  string   `json:"clusterIP"`
	}
}

func (s serviceItem) listed() (Listed, error) {
	l := Listed{Name: s.Metadata.Name, Namespace: s.Metadata.Namespace}
	if l.Name == "" || l.Namespace == "" {
		return l, fmt.Errorf("a service needs a name and a namespace, this has %q and %q", l.Name, l.Namespace)
	}
	addresses := s.Spec.ClusterIPs
	if len(addresses) == 0 && s.Spec.ClusterIP != "" {
		addresses = []string{s.Spec.ClusterIP}
	}
	if s.Spec.Type == "ExternalName" || len(addresses) == 0 || addresses[0] == "None" {
		l.Open = true
		return l, nil
	}
	for _, text := range addresses {
		ip, err := netip.ParseAddr(text)
		switch {
		case err != nil:
			return l, fmt.Errorf("%s/%s has the cluster address %q", l.Namespace, l.Name, text)
		case ip.Is4():
			l.V4 = ip
		default:
			l.V6 = ip
		}
	}
	return l, nil
}

// namespacesOf counts the namespaces of a list.
func namespacesOf(list []Listed) int {
	seen := map[string]bool{}
	for _, l := range list {
		seen[l.Namespace] = true
	}
	return len(seen)
}

// namespaceNames are those of the list in its order, or invented ones.
func namespaceNames(cfg Config) []string {
	var all []string
	if len(cfg.List) == 0 {
		for i := range cfg.Namespaces {
			all = append(all, namespace(i))
		}
		return all
	}
	for _, l := range cfg.List {
		if !slices.Contains(all, l.Namespace) {
			all = append(all, l.Namespace)
		}
	}
	return all
}

func (z *Zone) addListed(l Listed, domain string) error {
	e := entry{class: Service, v4: l.V4, v6: l.V6, open: l.Open}
	if l.Open {
		e.class = Headless
	}
	wire, err := z.add(l.Name+"."+l.Namespace+".svc."+domain, e)
	z.services = append(z.services, target{name: wire})
	return err
}
