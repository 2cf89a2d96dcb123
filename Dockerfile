# syntax=docker/dockerfile:1
#
# Needs BuildKit: the classic builder drops file capabilities on COPY --from.
#
#   docker buildx build --platform linux/amd64,linux/arm64 --build-arg VERSION=v1.2.3 .

# The compiler runs on the builder's own architecture and crosses to the target's.
FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends libcap2-bin && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH VERSION
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
	go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION" -o /out/nodens ./cmd/nodens
# What it is made of, for those who look for known faults.
ARG SOURCE_DATE_EPOCH
RUN go run ./deploy/image/sbom /out/nodens "${VERSION:-devel}" >/out/nodens.spdx.json
# Permitted, not effective: with +ep, exec fails where the bounding set lacks the
# capability. nodens raises it itself before it binds a port below 1024.
RUN setcap cap_net_bind_service+p /out/nodens

# No USER: the manifest chooses it, and existing manifests expect the default.
FROM gcr.io/distroless/static-debian12
COPY --from=build /out/nodens /nodens
COPY --from=build /out/nodens.spdx.json /nodens.spdx.json
ENTRYPOINT ["/nodens"]
