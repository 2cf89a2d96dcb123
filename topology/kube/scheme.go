package kube

import (
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

const protobuf = "application/vnd.kubernetes.protobuf"

// newScheme knows slices, watch events, errors and bare metadata, and none of
// the other types of the API, which would cost some 20 MB of memory.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	must(discovery.AddToScheme(scheme))
	must(meta.AddMetaToScheme(scheme))
	meta.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return scheme
}

// must is for a registration that fails only if two types claim one name.
func must(err error) {
	if err != nil {
		panic("kube: " + err.Error())
	}
}

func contentConfig() rest.ContentConfig {
	version := discovery.SchemeGroupVersion
	return rest.ContentConfig{
		AcceptContentTypes:   protobuf + ",application/json",
		ContentType:          protobuf,
		GroupVersion:         &version,
		NegotiatedSerializer: serializer.NewCodecFactory(newScheme()).WithoutConversion(),
	}
}
