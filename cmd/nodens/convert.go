package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// corefileFlags are the flags with which check and convert read a Corefile, named
// as on node-cache's command line.
type corefileFlags struct {
	options corefileOptions
	localIP string
	port    uint
}

func addCorefileFlags(flags *flag.FlagSet) *corefileFlags {
	f := &corefileFlags{}
	flags.StringVar(&f.options.Path, "corefile", "", "a Corefile in place of a configuration: `FILE`, with or without node-cache's placeholders")
	flags.StringVar(&f.localIP, "localip", "", "what the placeholder for the local addresses stands for: `ADDRESSES` with commas")
	flags.StringVar(&f.options.Upstream, "upstreamsvc", "kube-dns", "the Service that the placeholder for the cluster's servers stands for: `NAME` or NAMESPACE/NAME")
	flags.StringVar(&f.options.KubeDNS, "kubednscm", "", "the `FOLDER` of the ConfigMap kube-dns")
	flags.UintVar(&f.port, "dns.port", 53, "the `PORT` of zones that name none")
	return f
}

// load reads the Corefile, and the ConfigMap beside it.
func (f *corefileFlags) load(environ []string) (Config, error) {
	o := f.options
	ips, _, err := localIPs(f.localIP)
	if err != nil {
		return Config{}, err
	}
	o.LocalIPs, o.Port, o.Environ, o.IPv6 = ips, uint16(f.port), environ, hasIPv6()
	kube, err := readKubeDNS(o.KubeDNS)
	if err != nil {
		return Config{}, err
	}
	return loadCorefile(o, kube)
}

// loadCorefile reads the file at the options' path.
func loadCorefile(o corefileOptions, kube kubeDNS) (Config, error) {
	data, err := readFile(o.Path)
	if err != nil {
		return Config{}, fmt.Errorf("the Corefile cannot be read: %w; write one or name another", err)
	}
	return readCorefile(o, data, kube)
}

// localIPs reads addresses with commas between. left says that there were empty
// ones.
func localIPs(text string) (ips []netip.Addr, left bool, err error) {
	for _, one := range strings.Split(text, ",") {
		if one = strings.TrimSpace(one); one == "" {
			left = left || text != ""
			continue
		}
		ip, err := netip.ParseAddr(one)
		if err != nil {
			return nil, false, fmt.Errorf("-localip has %q, which is no IP address; write addresses with commas between", cut(one))
		}
		ips = append(ips, ip.Unmap())
	}
	return ips, left, nil
}

// hasIPv6 says that this machine speaks IPv6.
func hasIPv6() bool {
	data, err := os.ReadFile("/proc/net/if_inet6")
	return err == nil && len(data) > 0
}

// convertCommand prints the configuration that a Corefile comes to.
func convertCommand(_ context.Context, s surroundings, args []string) error {
	flags := flag.NewFlagSet("nodens convert", flag.ContinueOnError)
	corefile := addCorefileFlags(flags)
	if err := parse(flags, s, args); err != nil {
		return err
	}
	if corefile.options.Path == "" {
		fmt.Fprintf(flags.Output(), "%s: -corefile FILE is missing\n", flags.Name())
		flags.Usage()
		return errUsage
	}
	config, err := corefile.load(s.environ())
	if err != nil {
		return err
	}
	text, err := yamlOf(&config)
	if err != nil {
		return err
	}
	for _, note := range config.Notes {
		fmt.Fprintf(s.stderr, "note: %s\n", note)
	}
	_, err = s.stdout.Write(text)
	return err
}

// yamlOf writes a configuration as a file that is read into the same, with what the
// Corefile said otherwise as comments.
func yamlOf(c *Config) ([]byte, error) {
	root := configNode(c)
	root.HeadComment = "The configuration that " + c.Path + " comes to."
	for _, note := range c.Notes {
		root.HeadComment += "\n" + note
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return nil, err
	}
	return out.Bytes(), encoder.Close()
}
