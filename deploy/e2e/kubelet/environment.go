package kubelet

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// environment is that of a container: the Services that exist now, those of its
// namespace and the API server's, and what the container states.
func (p *pod) environment(spec corev1.Container) []string {
	p.k.t.Helper()
	var lines []string
	for _, namespace := range []string{metav1.NamespaceDefault, p.object.Namespace} {
		list, err := p.k.cfg.Client.CoreV1().Services(namespace).List(p.k.t.Context(), metav1.ListOptions{})
		p.k.must("list services", err)
		for i := range list.Items {
			if s := &list.Items[i]; namespace == p.object.Namespace || s.Name == "kubernetes" {
				lines = append(lines, serviceLines(s)...)
			}
		}
	}
	for _, e := range spec.Env {
		value := e.Value
		if e.ValueFrom != nil {
			if e.ValueFrom.FieldRef == nil {
				p.k.t.Fatalf("variable %s of %s comes from what is not played", e.Name, spec.Name)
			}
			value = p.field(e.ValueFrom.FieldRef.FieldPath)
		}
		lines = append(lines, e.Name+"="+value)
	}
	return lines
}

// serviceLines are the variables of a Service that has an address, in the shape of the
// kubelet's and in that of old container links.
func serviceLines(s *corev1.Service) []string {
	ip := s.Spec.ClusterIP
	if ip == "" || ip == corev1.ClusterIPNone {
		return nil
	}
	name := variable(s.Name)
	lines := []string{name + "_SERVICE_HOST=" + ip, fmt.Sprintf("%s_SERVICE_PORT=%d", name, s.Spec.Ports[0].Port)}
	for i, port := range s.Spec.Ports {
		protocol := strings.ToLower(string(port.Protocol))
		link := fmt.Sprintf("%s_PORT_%d_%s", name, port.Port, port.Protocol)
		url := fmt.Sprintf("%s://%s:%d", protocol, ip, port.Port)
		if port.Name != "" {
			lines = append(lines, fmt.Sprintf("%s_SERVICE_PORT_%s=%d", name, variable(port.Name), port.Port))
		}
		if i == 0 {
			lines = append(lines, name+"_PORT="+url)
		}
		lines = append(lines, link+"="+url, link+"_PROTO="+protocol, fmt.Sprintf("%s_PORT=%d", link, port.Port), link+"_ADDR="+ip)
	}
	return lines
}

func variable(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "-", "_")) }

// field is a field of the pod as the downward API gives it.
func (p *pod) field(path string) string {
	p.k.t.Helper()
	switch path {
	case "metadata.name":
		return p.object.Name
	case "metadata.namespace":
		return p.object.Namespace
	case "spec.nodeName":
		return p.object.Spec.NodeName
	case "status.hostIP", "status.podIP":
		return p.k.cfg.Address
	case "metadata.labels":
		var lines []string
		for key, value := range p.object.Labels {
			lines = append(lines, fmt.Sprintf("%s=%q", key, value))
		}
		slices.Sort(lines)
		return strings.Join(lines, "\n")
	}
	p.k.t.Fatalf("the field %s is not played", path)
	return ""
}
