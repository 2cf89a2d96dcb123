#!/usr/bin/env bash
# Prints the files of the main module whose name matches a pattern: no hidden
# folders, no build output, no testdata, no nested modules.
# usage: lint/files.sh '*.go'
set -euo pipefail
cd "$(dirname "$0")/.."

nested=()
while IFS= read -r mod; do
	nested+=(-o -path "./$mod")
done < <(lint/modules.sh)

find . \( -path './.*' -o -path ./bin -o -name testdata "${nested[@]}" \) -prune \
	-o -type f -name "${1:?usage: lint/files.sh PATTERN}" -print | sed 's|^\./||' | sort
