package hostnet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"
)

// Others is what other programs have set up on the host, as far as it shows in its
// links and in the tables of nft, iptables-nft's among them.
type Others struct {
	// Proxies are the modes in which kube-proxy has left its marks: "ipvs",
	// "nftables", "iptables".
	Proxies []string
	// Firewalls are chains that may drop what is sent to this host, a name each.
	Firewalls []string
}

// Others looks at the host. It changes nothing.
func (h *Host) Others() (o Others, err error) {
	links, err := complete(h.nl.LinkList)
	if err != nil {
		return o, explained("the links cannot be read", err)
	}
	for _, l := range links {
		if l.Attrs().Name == ipvsLink {
			o.proxy("ipvs")
		}
	}
	conn, err := h.nft()
	if err != nil {
		return o, err
	}
	for _, family := range []nftables.TableFamily{nftables.TableFamilyIPv4, nftables.TableFamilyIPv6, nftables.TableFamilyINet} {
		chains, err := orNone(conn.ListChainsOfTableFamily(family))
		if err != nil {
			return o, explained("the chains of nft cannot be read", err)
		}
		for _, c := range chains {
			o.take(c, family)
		}
	}
	return o, nil
}

func (o *Others) proxy(mode string) {
	if !slices.Contains(o.Proxies, mode) {
		o.Proxies = append(o.Proxies, mode)
	}
}

// take sees what a chain tells of its owner.
func (o *Others) take(c *nftables.Chain, family nftables.TableFamily) {
	switch {
	case c.Table.Name == "kube-proxy":
		o.proxy("nftables")
	case c.Table.Name == "nat" && c.Name == "KUBE-SERVICES":
		o.proxy("iptables")
	}
	if why := firewall(c); why != "" {
		name := map[nftables.TableFamily]string{unix.NFPROTO_IPV4: "ip", unix.NFPROTO_IPV6: "ip6", unix.NFPROTO_INET: "inet"}[family]
		o.Firewalls = append(o.Firewalls, fmt.Sprintf("chain %s of table %s %s (%s)", c.Name, name, c.Table.Name, why))
	}
}

// firewall says why a chain may drop what is sent to the host, "" = it does not look
// like that.
func firewall(c *nftables.Chain) string {
	names := map[string]string{"cali-INPUT": "Calico", "ufw-user-input": "ufw", "ufw6-user-input": "ufw"}
	if owner := names[c.Name]; owner != "" {
		return owner
	}
	if c.Hooknum == nil || *c.Hooknum != *nftables.ChainHookInput || strings.HasPrefix(c.Table.Name, tablePrefix) {
		return ""
	}
	switch {
	case c.Table.Name == "firewalld":
		return "firewalld"
	case c.Policy != nil && *c.Policy == nftables.ChainPolicyDrop:
		return "policy drop"
	}
	return ""
}
