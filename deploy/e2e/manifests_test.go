package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// manifestFolders hold files for kubectl apply.
func manifestFolders() []string { return []string{"../manifests", "../coredns"} }

// objects reads the objects of a file.
func objects(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return decoded(t, string(data))
}

// shippedRules are the rules of the Roles of a manifest.
func shippedRules(t *testing.T, file string) []rbacv1.PolicyRule {
	t.Helper()
	var rules []rbacv1.PolicyRule
	for _, object := range objects(t, filepath.Join("../manifests", file)) {
		var role rbacv1.Role // a ClusterRole has its rules in the same place
		if !strings.HasSuffix(object.GetKind(), "Role") {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
			t.Fatal(err)
		}
		rules = append(rules, role.Rules...)
	}
	if len(rules) == 0 {
		t.Fatalf("no Role in %s", file)
	}
	return rules
}

// Every object that is shipped is one that the API server takes as it stands:
// no unknown field, no value it would refuse.
func TestManifestsAreAccepted(t *testing.T) {
	stage(t) // or skip
	groups, err := restmapper.GetAPIGroupResources(shared.cluster.Admin.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	client, err := dynamic.NewForConfig(shared.cluster.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range manifestFolders() {
		files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			for _, object := range objects(t, file) {
				t.Run(filepath.Base(file)+"/"+object.GetKind()+"/"+object.GetName(), func(t *testing.T) {
					kind := object.GroupVersionKind()
					mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
					if err != nil {
						t.Fatal(err)
					}
					_, err = client.Resource(mapping.Resource).Namespace(object.GetNamespace()).Create(t.Context(), object, metav1.CreateOptions{
						DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
					})
					if err != nil && !apierrors.IsAlreadyExists(err) {
						t.Error(err)
					}
				})
			}
		}
	}
}
