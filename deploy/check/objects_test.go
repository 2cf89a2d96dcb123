package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	kubeyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// shared are things that take long to make and that no test changes.
var shared = struct {
	decoder func() (runtime.Decoder, error)
	shipped func(*testing.T) map[string][]string
}{sync.OnceValues(newDecoder), onceShipped()}

func newDecoder() (runtime.Decoder, error) {
	known := runtime.NewScheme()
	err := errors.Join(scheme.AddToScheme(known), monitoring.AddToScheme(known))
	return serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer(), err
}

// decode reads one object as the API server would, and refuses a field that it
// does not know or that is there twice.
func decode(t *testing.T, text string) runtime.Object {
	t.Helper()
	if kind := kindOf(t, text); kind == "CiliumLocalRedirectPolicy" {
		var policy localRedirectPolicy
		if err := yaml.UnmarshalStrict([]byte(text), &policy); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		return nil
	}
	decoder, err := shared.decoder()
	if err != nil {
		t.Fatal(err)
	}
	object, _, err := decoder.Decode([]byte(text), nil, nil)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return object
}

// localRedirectPolicy is what we use of Cilium's type, whose module is large.
type localRedirectPolicy struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string            `json:"name"`
		Namespace string            `json:"namespace"`
		Labels    map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		RedirectFrontend struct {
			ServiceMatcher struct {
				ServiceName string `json:"serviceName"`
				Namespace   string `json:"namespace"`
			} `json:"serviceMatcher"`
		} `json:"redirectFrontend"`
		RedirectBackend struct {
			LocalEndpointSelector struct {
				MatchLabels map[string]string `json:"matchLabels"`
			} `json:"localEndpointSelector"`
			ToPorts []struct {
				Port     string `json:"port"`
				Name     string `json:"name"`
				Protocol string `json:"protocol"`
			} `json:"toPorts"`
		} `json:"redirectBackend"`
	} `json:"spec"`
}

// typed is every object of a kind.
func typed[T any](t *testing.T, texts []string) []*T {
	t.Helper()
	var all []*T
	for _, text := range texts {
		if object, ok := any(decode(t, text)).(*T); ok {
			all = append(all, object)
		}
	}
	return all
}

func kindOf(t *testing.T, text string) string {
	t.Helper()
	var head struct {
		Kind string `json:"kind"`
	}
	if err := yaml.Unmarshal([]byte(text), &head); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return head.Kind
}

// documents are the objects of a file.
func documents(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return split(t, data)
}

func split(t *testing.T, data []byte) []string {
	t.Helper()
	var all []string
	reader := kubeyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(data)))
	buffer := make([]byte, len(data)+1)
	for {
		n, err := reader.Read(buffer)
		switch {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		case strings.TrimSpace(string(buffer[:n])) != "":
			all = append(all, string(buffer[:n]))
		}
	}
}

func readJSON(t *testing.T, path string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var value map[string]any
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return value
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
