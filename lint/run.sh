#!/usr/bin/env bash
# Checks the whole tree and names every finding before it fails.
# The tools are pinned in lint/tools/go.mod and built once into .cache/lint.
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD
tools=$root/.cache/lint
failed=()

# check NAME COMMAND...: runs a check; what it prints is shown when it fails.
# The shell ignores set -e in here, so a check must return its own status.
check() {
	local name=$1 out
	shift
	if out=$("$@" 2>&1); then
		echo "lint: $name ok"
		return
	fi
	printf '%s\nlint: %s FAILED\n' "$out" "$name"
	failed+=("$name")
}

# The checks that look at one module, from its folder.
check_module() {
	pushd "$1" >/dev/null
	check "$1: vet" go vet ./...
	check "$1: rules of the house" go vet -vettool="$tools/house" ./...
	check "$1: staticcheck" "$tools/staticcheck" ./...
	check "$1: errcheck" "$tools/errcheck" -exclude "$root/lint/errcheck.txt" ./...
	check "$1: ineffassign" "$tools/ineffassign" ./...
	popd >/dev/null
}

# gofumpt prints the files it would change, and exits 0.
formatted() {
	local out
	out=$(xargs "$tools/gofumpt" -l <<<"$1") || return
	[ -z "$out" ] || { echo "run .cache/lint/gofumpt -w on:"; echo "$out"; return 1; }
}

simple() { xargs "$tools/gocognit" -over 15 <<<"$1"; }

# Nothing in the tree may lead to one person's machine.
no_machine_paths() {
	local parent status=0
	local paths=(-e "$root" -e "/Users/[a-z]" -e "/home/[a-z]")
	parent=$(dirname "$root")
	[ "$parent" = / ] || [ "$parent" = /tmp ] || paths+=(-e "$parent/[a-z]")
	grep -rnIE "${paths[@]}" --exclude-dir=.git --exclude-dir=.cache --exclude-dir=bin . || status=$?
	[ "$status" -eq 1 ]
}

scripts_clean() {
	if ! command -v shellcheck >/dev/null; then
		echo "lint: shellcheck is not installed: the scripts are not checked"
		return
	fi
	check "scripts" shellcheck lint/*.sh deploy/*/*.sh .ci/run
}

mkdir -p "$tools"
GOBIN=$tools go install -C lint/tools tool
go build -C lint/tools -o "$tools/house" ./house

own=$(lint/files.sh '*.go')
nested=$(lint/modules.sh)
rules=$(find lint/tools -name '*.go' -not -path '*/testdata/*')

check "format" formatted "$own"$'\n'"$rules"
check "cognitive complexity" simple "$(grep -v '_test\.go$' <<<"$own")"
check_module .
for module in $nested; do
	# A module without Go files only pins a tool.
	if [ -n "$(find "$module" -name '*.go' -print -quit)" ]; then check_module "$module"; fi
done
check "tests of the rules" go test -C lint/tools ./...
check "machine paths" no_machine_paths
scripts_clean

if [ ${#failed[@]} -gt 0 ]; then
	printf 'lint: %d checks failed:\n' "${#failed[@]}"
	printf '  %s\n' "${failed[@]}"
	exit 1
fi
echo "lint: all checks passed"
