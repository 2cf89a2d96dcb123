# Everything a person or a machine does with nodens, one word each.
# A fresh machine needs Go; a C compiler adds the race detector, Docker the image.

.DEFAULT_GOAL := help
.PHONY: help build release test chart e2e lint fuzz bench demo image check clean
.DELETE_ON_ERROR:

VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null)
IMAGE     ?= nodens:$(or $(VERSION),devel)
LDFLAGS   := -s -w -X main.version=$(VERSION)

# FUZZTIME is a number of inputs on purpose: with a duration, Go before 1.27 now
# and then fails a healthy target at the deadline (golang/go#75804).
FUZZTIME  ?= 1000000x
FUZZSHORT ?= 30000x
TESTFLAGS ?=
ARGS      ?=
FOR       ?=

# Go itself turns cgo off when it finds no C compiler, and the race detector needs cgo.
RACE      := $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

# A real CoreDNS, of a module of its own, for the integration tests.
PEER      := bench/peers/coredns
COREDNS   := $(if $(wildcard $(PEER)/go.mod),$(CURDIR)/.cache/bin/coredns)

# A comparison that takes about a minute. Its commas would end a Make function.
MINUTE    := compare -rounds 1 -for 1s -points 10k,saturated

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## static binaries into bin/
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

release: ## binaries of each architecture with SBOM into bin/, built twice and compared
	VERSION='$(VERSION)' deploy/image/release.sh bin

test: $(COREDNS) ## build, vet, race tests, a short fuzz; no root needed
	go build ./...
	go vet ./...
	$(if $(RACE),,@echo "no C compiler: the tests run without the race detector")
	NODENS_COREDNS='$(COREDNS)' go test $(RACE) -timeout 8m $(TESTFLAGS) ./...
	$(if $(RACE),go test $(TESTFLAGS) -run Simulated ./forwarder/upstream)
	@$(MAKE) --no-print-directory fuzz FUZZTIME=$(FUZZSHORT)

chart: build ## chart, manifests, alerts and dashboard, without a cluster
	NODENS_BINARY='$(CURDIR)/bin/nodens' go test -C deploy/check -count=1 $(TESTFLAGS) ./...

e2e: build $(COREDNS) ## against a real Kubernetes API on loopback; the whole of it needs root
	programs=$$(deploy/e2e/build.sh) && NODENS_CONTROL_PLANE=$$programs \
		NODENS_COREDNS='$(COREDNS)' NODENS_BINARY='$(CURDIR)/bin/nodens' \
		go test -C deploy/e2e -count=1 -timeout 15m $(TESTFLAGS) ./...

lint: ## format, vet, staticcheck, errcheck, the rules of the house
	lint/run.sh

fuzz: ## every fuzz target for FUZZTIME (inputs as 1000x), or FOR=10m; ARGS=FuzzServe
	lint/fuzz.sh $(or $(FOR),$(FUZZTIME)) $(ARGS)

bench: build ## a minute's comparison with the servers installed; or ARGS='run -h'
	bin/nodens-bench $(or $(ARGS),$(MINUTE) $(if $(wildcard $(COREDNS)),-bin coredns=$(COREDNS)))

demo: build ## a node's DNS on loopback, its nearest server upgraded and killed; FOR=20s
	bin/nodens demo $(if $(FOR),-for $(FOR)) $(ARGS)

image: ## a container image named IMAGE
	DOCKER_BUILDKIT=1 docker build --build-arg VERSION="$(VERSION)" -t $(IMAGE) .

check: lint test chart ## what must pass before a commit

clean: ## remove what the other targets made
	rm -rf bin .cache

$(CURDIR)/.cache/bin/coredns: $(wildcard $(PEER)/*.go $(PEER)/go.mod $(PEER)/go.sum)
	CGO_ENABLED=0 go build -C $(PEER) -trimpath -o $@ $(if $(wildcard $(PEER)/*.go),.,github.com/coredns/coredns)
