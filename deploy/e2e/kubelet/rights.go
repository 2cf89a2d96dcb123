package kubelet

import (
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodens-dns/nodens/bench/container"
)

// config is what an engine is told of a container.
func (p *pod) config(spec corev1.Container) container.Config {
	p.k.t.Helper()
	own, of := spec.SecurityContext, p.object.Spec.SecurityContext
	if own == nil {
		own = &corev1.SecurityContext{}
	}
	if of == nil {
		of = &corev1.PodSecurityContext{}
	}
	if own.Privileged != nil && *own.Privileged {
		p.k.t.Fatalf("container %s is privileged, which is not played", spec.Name)
	}
	c := container.Config{
		Name: spec.Name, Space: p.k.cfg.Space, Args: spec.Args, Env: p.environment(spec),
		UID: number(own.RunAsUser, of.RunAsUser), GID: number(own.RunAsGroup, of.RunAsGroup),
		Capabilities:    capabilities(own.Capabilities),
		NoNewPrivileges: own.AllowPrivilegeEscalation != nil && !*own.AllowPrivilegeEscalation,
		ReadOnlyRoot:    own.ReadOnlyRootFilesystem != nil && *own.ReadOnlyRootFilesystem,
		Confined:        confined(own.SeccompProfile, of.SeccompProfile),
		Mounts:          p.mounts(spec), Memory: spec.Resources.Limits.Memory().Value(),
	}
	for _, must := range []*bool{own.RunAsNonRoot, of.RunAsNonRoot} {
		if must == nil {
			continue
		}
		if *must && c.UID == 0 {
			p.k.t.Fatalf("container %s must not run as root and does: a kubelet refuses it", spec.Name)
		}
		break
	}
	return c
}

// confined tells whether it has the engine's list of system calls.
func confined(own, of *corev1.SeccompProfile) bool {
	if own == nil {
		own = of
	}
	return own != nil && own.Type == corev1.SeccompProfileTypeRuntimeDefault
}

// number is the first that is set, else that of root, whom the image has.
func number(list ...*int64) uint32 {
	for _, n := range list {
		if n != nil {
			return uint32(*n)
		}
	}
	return 0
}

// capabilities are those that are left and those that are added.
func capabilities(c *corev1.Capabilities) []string {
	list := container.DefaultCapabilities()
	if c == nil {
		return list
	}
	for _, drop := range c.Drop {
		list = slices.DeleteFunc(list, func(name string) bool { return drop == "ALL" || string(drop) == name })
	}
	for _, add := range c.Add {
		if !slices.Contains(list, string(add)) {
			list = append(list, string(add))
		}
	}
	return list
}

// mounts are the volumes of a container, and the files that a kubelet mounts itself.
func (p *pod) mounts(spec corev1.Container) []container.Mount {
	p.k.t.Helper()
	var list []container.Mount
	for _, m := range spec.VolumeMounts {
		v := p.volumes[m.Name]
		if v == nil {
			p.k.t.Fatalf("container %s mounts a volume %s, and there is none", spec.Name, m.Name)
		}
		list = append(list, container.Mount{Source: filepath.Join(v.path, m.SubPath), Path: m.MountPath, ReadOnly: m.ReadOnly})
	}
	if v := p.volumes[accessName]; v != nil {
		list = append(list, container.Mount{Source: v.path, Path: accessPath, ReadOnly: true})
	}
	for _, file := range []string{"/etc/resolv.conf", "/etc/hosts"} {
		list = append(list, container.Mount{Source: p.k.hostPath(file), Path: file})
	}
	return list
}
