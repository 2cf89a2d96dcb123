package neverdark

import (
	"errors"
	"io"
	"os"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/nodens-dns/nodens/bench/container"
)

// manifested is what of a container in a manifest decides how it is run.
type manifested struct {
	Name         string
	Args         []string
	Security     security `yaml:"securityContext"`
	VolumeMounts []mount  `yaml:"volumeMounts"`
	environ      []string // what the kubelet adds
}

type mount struct {
	Name      string
	MountPath string `yaml:"mountPath"`
	ReadOnly  bool   `yaml:"readOnly"`
}

type security struct {
	RunAsUser                *uint32 `yaml:"runAsUser"`
	RunAsGroup               *uint32 `yaml:"runAsGroup"`
	AllowPrivilegeEscalation *bool   `yaml:"allowPrivilegeEscalation"`
	ReadOnlyRootFilesystem   bool    `yaml:"readOnlyRootFilesystem"`
	Capabilities             struct{ Drop, Add []string }
	SeccompProfile           struct{ Type string } `yaml:"seccompProfile"`
}

// user is who runs it: root, unless the manifest names somebody.
func (s security) user() (uid, gid uint32) {
	if s.RunAsUser != nil {
		uid = *s.RunAsUser
	}
	if s.RunAsGroup != nil {
		gid = *s.RunAsGroup
	}
	return uid, gid
}

// keepsPrivileges tells whether no program that it starts gets more than it has.
func (s security) keepsPrivileges() bool {
	return s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation
}

// confined tells whether it has the engine's list of system calls.
func (s security) confined() bool { return s.SeccompProfile.Type == "RuntimeDefault" }

// capabilities are those of the engine, unless all of them are dropped, and its own.
func (s security) capabilities() []string {
	if slices.Contains(s.Capabilities.Drop, "ALL") {
		return s.Capabilities.Add
	}
	return append(container.DefaultCapabilities(), s.Capabilities.Add...)
}

// pod is the template of a DaemonSet.
type pod struct {
	Security       security     `yaml:"securityContext"`
	InitContainers []manifested `yaml:"initContainers"`
	Containers     []manifested
}

// readManifest finds the pod of the DaemonSet in a manifest of ours.
func readManifest(t *testing.T, path string) pod {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for decoder := yaml.NewDecoder(file); ; {
		var object struct {
			Kind string
			Spec struct{ Template struct{ Spec pod } }
		}
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			t.Fatalf("%s has no DaemonSet", path)
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if object.Kind == "DaemonSet" {
			return object.Spec.Template.Spec
		}
	}
}

// find is a container of the pod with the pod's settings where it has none.
func (p pod) find(t *testing.T, name string) manifested {
	t.Helper()
	for _, c := range append(p.InitContainers, p.Containers...) {
		if c.Name != name {
			continue
		}
		if c.Security.RunAsUser == nil {
			c.Security.RunAsUser = p.Security.RunAsUser
		}
		if c.Security.RunAsGroup == nil {
			c.Security.RunAsGroup = p.Security.RunAsGroup
		}
		if c.Security.SeccompProfile.Type == "" {
			c.Security.SeccompProfile = p.Security.SeccompProfile
		}
		return c
	}
	t.Fatalf("the pod has no container %s", name)
	return manifested{}
}
