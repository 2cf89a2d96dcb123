#!/usr/bin/env bash
# Builds etcd, the API server, the controller manager and kube-proxy once, and prints
# the folder they are in. The folder is named after the versions, so a change of
# tools/go.mod builds anew and nothing else does: cold it is a quarter of an
# hour of CPU time.
set -euo pipefail
cd "$(dirname "$0")/tools"

key=$(cat go.mod go.sum | sha256sum | cut -c 1-12)
folder=$(realpath -m ../../../.cache/bin)/control-plane-$key

# build NAME PACKAGE: a rename at the end, so that a name that exists is whole.
build() {
	[ ! -x "$folder/$1" ] || return 0
	echo "building $1 of $2" >&2
	CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$folder/.$1" "$2"
	mv "$folder/.$1" "$folder/$1"
}

mkdir -p "$folder"
build etcd go.etcd.io/etcd/server/v3
build kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver
build kube-controller-manager k8s.io/kubernetes/cmd/kube-controller-manager
build kube-proxy k8s.io/kubernetes/cmd/kube-proxy
echo "$folder"
