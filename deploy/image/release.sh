#!/usr/bin/env bash
# Builds the static binary of every architecture with its SBOM into a folder,
# then again from a copy of the source elsewhere, and fails where the two differ.
# usage: VERSION=v1.2.3 deploy/image/release.sh FOLDER
# Everything that the compiler made before is taken from its cache; ALL=1 makes it anew.
set -euo pipefail
cd "$(dirname "$0")/../.."

out=$(realpath -m "${1:?usage: deploy/image/release.sh FOLDER}")
version=${VERSION:-$(git describe --tags --always --dirty)}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH CGO_ENABLED=0 GOOS=linux GOFLAGS=-mod=readonly
again=$(mktemp -d)
trap 'rm -rf "$again"' EXIT

# build ARCHITECTURE BINARY: in the folder we are in, as the Dockerfile does.
build() {
	GOARCH=$1 go build ${ALL:+-a} -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$version" -o "$2" ./cmd/nodens
}

git ls-files -z --cached --others --exclude-standard -- '*.go' go.mod go.sum cmd | xargs -0 cp --parents -t "$again"
for architecture in amd64 arm64; do
	binary=$out/linux-$architecture/nodens
	mkdir -p "$(dirname "$binary")"
	build "$architecture" "$binary"
	(cd "$again" && build "$architecture" "$again/nodens-$architecture")
	cmp "$binary" "$again/nodens-$architecture"
	GOOS='' GOARCH='' go run ./deploy/image/sbom "$binary" "$version" >"$binary.spdx.json"
	grep -q "\"name\": \".* $version\"" "$binary.spdx.json" # the document is about this version
done
(cd "$out" && sha256sum linux-*/nodens)
