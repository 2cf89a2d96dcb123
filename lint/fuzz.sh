#!/usr/bin/env bash
# Runs every fuzz target of the main module, one after the other, or those with a name.
# usage: lint/fuzz.sh FUZZTIME [NAME]    (a number of inputs as 50000x, or a duration as 30s)
set -euo pipefail
cd "$(dirname "$0")/.."

fuzztime=${1:?usage: lint/fuzz.sh FUZZTIME [NAME], for example 50000x or 30s}
only=${2:-}
files=$(lint/files.sh '*_test.go')
found=0

for file in $files; do
	targets=$(sed -n "s/^func \(Fuzz${only#Fuzz}[A-Za-z0-9_]*\).*/\1/p" "$file")
	for target in $targets; do
		dir=./$(dirname "$file")
		echo "fuzz $dir $target $fuzztime"
		# Shrinking an input that is merely interesting is bounded too: FUZZTIME does not cover it.
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" -fuzzminimizetime 100x "$dir"
		found=$((found + 1))
	done
done

echo "fuzz: $found targets passed"
