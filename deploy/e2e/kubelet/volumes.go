package kubelet

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// volume is a volume of a pod on the node.
type volume struct {
	path     string
	files    map[string]string // as they were written last
	versions int
}

// Where an admission controller mounts what a pod may be at the API server, and what it
// calls the volume.
const (
	accessPath = "/var/run/secrets/kubernetes.io/serviceaccount"
	accessName = "kube-api-access"
)

// prepare makes the volumes, and brings those that follow objects up to date. It tells
// whether all are there.
func (p *pod) prepare() bool {
	p.k.t.Helper()
	if p.volumes == nil {
		p.volumes, p.started = make(map[string]*volume), make(map[string]*contained)
		if p.hasAccess() {
			p.volumes[accessName] = p.folder(accessName)
		}
	}
	all := p.object.Spec.Volumes
	if p.volumes[accessName] != nil {
		all = append(all, corev1.Volume{Name: accessName, VolumeSource: corev1.VolumeSource{Projected: accessSources()}})
	}
	for i := range all {
		if !p.place(&all[i]) {
			return false
		}
	}
	return true
}

// hasAccess tells whether the pod gets a token without asking for one.
func (p *pod) hasAccess() bool {
	p.k.t.Helper()
	name := p.object.Spec.ServiceAccountName
	if name == "" {
		return false
	}
	account, err := p.k.cfg.Client.CoreV1().ServiceAccounts(p.object.Namespace).Get(p.k.t.Context(), name, metav1.GetOptions{})
	p.k.must("get the account of a pod", err)
	for _, wants := range []*bool{p.object.Spec.AutomountServiceAccountToken, account.AutomountServiceAccountToken} {
		if wants != nil {
			return *wants
		}
	}
	return true
}

func accessSources() *corev1.ProjectedVolumeSource {
	return &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}}},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
			{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}},
		}}},
	}}
}

// place makes a volume if it is not there, and tells whether it now is.
func (p *pod) place(v *corev1.Volume) bool {
	p.k.t.Helper()
	have := p.volumes[v.Name]
	var files map[string]string
	there := true
	switch {
	case v.HostPath != nil:
		p.volumes[v.Name] = &volume{path: p.k.hostPath(v.HostPath.Path)}
		p.k.must("make "+v.HostPath.Path, makeHostPath(p.volumes[v.Name].path, v.HostPath.Type))
		return true
	case v.EmptyDir != nil:
		if have == nil {
			p.volumes[v.Name] = p.folder(v.Name)
		}
		return true
	case v.ConfigMap != nil:
		files, there = p.configMap(v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.Optional)
	case v.DownwardAPI != nil:
		files = p.downward(v.DownwardAPI.Items)
	case v.Projected != nil:
		files, there = p.projected(have, v.Projected.Sources)
	default:
		p.k.t.Fatalf("volume %s is of a kind that is not played", v.Name)
	}
	if !there {
		return false
	}
	if have == nil {
		have = p.folder(v.Name)
		p.volumes[v.Name] = have
	}
	if have.files == nil || !maps.Equal(have.files, files) {
		p.k.must("write volume "+v.Name, have.write(files))
	}
	return true
}

// folder is one that everybody may write in, as an emptyDir is.
func (p *pod) folder(name string) *volume {
	p.k.t.Helper()
	path := filepath.Join(p.k.cfg.Dir, "pods", string(p.object.UID), name)
	p.k.must("make a volume", os.MkdirAll(path, 0o755))
	p.k.must("make a volume", os.Chmod(path, 0o777))
	return &volume{path: path}
}

// configMap are the files of a ConfigMap, if it is there or need not be.
func (p *pod) configMap(name string, items []corev1.KeyToPath, optional *bool) (files map[string]string, there bool) {
	p.k.t.Helper()
	m, err := p.k.cfg.Client.CoreV1().ConfigMaps(p.object.Namespace).Get(p.k.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return map[string]string{}, optional != nil && *optional
	}
	p.k.must("get ConfigMap", err)
	if len(items) == 0 {
		return m.Data, true
	}
	files = make(map[string]string)
	for _, item := range items {
		text, ok := m.Data[item.Key]
		if !ok {
			return nil, optional != nil && *optional
		}
		files[item.Path] = text
	}
	return files, true
}

func (p *pod) downward(items []corev1.DownwardAPIVolumeFile) map[string]string {
	p.k.t.Helper()
	files := make(map[string]string)
	for _, item := range items {
		files[item.Path] = p.field(item.FieldRef.FieldPath)
	}
	return files
}

// projected puts sources together. A token is made once.
func (p *pod) projected(have *volume, sources []corev1.VolumeProjection) (files map[string]string, there bool) {
	p.k.t.Helper()
	files = make(map[string]string)
	for _, s := range sources {
		switch {
		case s.ServiceAccountToken != nil && have != nil && have.files != nil:
			files[s.ServiceAccountToken.Path] = have.files[s.ServiceAccountToken.Path]
		case s.ServiceAccountToken != nil:
			files[s.ServiceAccountToken.Path] = p.token(s.ServiceAccountToken)
		case s.ConfigMap != nil:
			more, ok := p.configMap(s.ConfigMap.Name, s.ConfigMap.Items, s.ConfigMap.Optional)
			if !ok {
				return nil, false
			}
			maps.Copy(files, more)
		case s.DownwardAPI != nil:
			maps.Copy(files, p.downward(s.DownwardAPI.Items))
		}
	}
	return files, true
}

// token is one of the pod's account, good for as long as the pod exists.
func (p *pod) token(s *corev1.ServiceAccountTokenProjection) string {
	p.k.t.Helper()
	made, err := p.k.cfg.Client.CoreV1().ServiceAccounts(p.object.Namespace).CreateToken(p.k.t.Context(), p.object.Spec.ServiceAccountName,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: s.ExpirationSeconds,
			BoundObjectRef: &authenticationv1.BoundObjectReference{
				APIVersion: "v1", Kind: "Pod", Name: p.object.Name, UID: p.object.UID,
			},
		}}, metav1.CreateOptions{})
	p.k.must("create a token", err)
	return made.Status.Token
}

// write replaces all files at once, as a kubelet does: the link to the folder that they
// are in leads to another.
func (v *volume) write(files map[string]string) error {
	v.versions++
	data := fmt.Sprintf("..%d", v.versions)
	if err := os.Mkdir(filepath.Join(v.path, data), 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(v.path, data, name), []byte(text), 0o444); err != nil {
			return err
		}
		err := os.Symlink(filepath.Join("..data", name), filepath.Join(v.path, name))
		if err != nil && !os.IsExist(err) {
			return err
		}
	}
	for name := range v.files {
		if _, stays := files[name]; !stays {
			_ = os.Remove(filepath.Join(v.path, name)) // it leads nowhere by now
		}
	}
	link := filepath.Join(v.path, "..data_tmp")
	if err := os.Symlink(data, link); err != nil {
		return err
	}
	v.files = maps.Clone(files)
	if v.files == nil {
		v.files = map[string]string{} // written, and empty
	}
	return os.Rename(link, filepath.Join(v.path, "..data"))
}

// makeHostPath makes what a hostPath of this kind lets the kubelet make.
func makeHostPath(path string, kind *corev1.HostPathType) error {
	if kind == nil || !strings.HasSuffix(string(*kind), "OrCreate") {
		_, err := os.Stat(path)
		return err
	}
	if *kind == corev1.HostPathDirectoryOrCreate {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o644)
	if err == nil {
		err = file.Close()
	}
	return err
}

// hostPath is where a file of the node is.
func (k *Kubelet) hostPath(path string) string { return filepath.Join(k.cfg.Dir, "host", path) }
