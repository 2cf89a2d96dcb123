package check

import (
	"regexp"
	"strings"
	"testing"
)

// instructions are the lines of the Dockerfile, continued ones joined.
func instructions(t *testing.T) []string {
	t.Helper()
	text := regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(read(t, "../../Dockerfile"), "")
	var all []string
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// There is no container engine here, so the layout of the image is read off its
// recipe: what the manifests count on, and what a release is built with.
func TestImage(t *testing.T) {
	lines := instructions(t)
	all := strings.Join(lines, "\n")
	for what, want := range map[string]string{
		"the program where the probes start it":   "COPY --from=build /out/nodens /nodens\n",
		"its SBOM":                                "COPY --from=build /out/nodens.spdx.json /nodens.spdx.json\n",
		"what a container runs":                   `ENTRYPOINT ["/nodens"]`,
		"the capability, permitted only":          "setcap cap_net_bind_service+p /out/nodens",
		"a static binary of the target's kind":    "CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH",
		"a compiler that is not emulated":         "FROM --platform=$BUILDPLATFORM golang:",
		"flags of the build as in release.sh":     `go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION"`,
		"nothing but the files in the last stage": "FROM gcr.io/distroless/static-debian12\nCOPY",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("the image lacks %s: %q", what, want)
		}
	}
	release := strings.ReplaceAll(read(t, "../image/release.sh"), "$version", "$VERSION")
	if !strings.Contains(release, `-trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION"`) {
		t.Error("release.sh builds with other flags than the Dockerfile")
	}
	if strings.Contains(all, "\nUSER ") {
		t.Error("the manifest says who runs it, not the image: node-cache's expects root")
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../../go.mod"))[1]
	if !strings.Contains(all, "golang:"+version+"-") {
		t.Errorf("the compiler is not the %s of go.mod", version)
	}
}
