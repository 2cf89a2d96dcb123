#!/usr/bin/env bash
# Prints the folders of the nested modules (this one, peers, end-to-end tests).
set -euo pipefail
cd "$(dirname "$0")/.."

find . -mindepth 2 \( -path './.*' -o -path ./bin -o -name testdata \) -prune \
	-o -name go.mod -print | sed 's|^\./||; s|/go\.mod$||' | sort
