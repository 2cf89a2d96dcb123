// House holds the rules of this project that no general linter knows. It is a
// tool for go vet:
//
//	go vet -vettool=.cache/lint/house ./...
//
// Each analyzer is one rule, and its Doc says why the rule exists. No comment
// switches a rule off: a rule with a good exception is a wrong rule, and is
// changed here.
package main

import "golang.org/x/tools/go/analysis/unitchecker"

func main() {
	unitchecker.Main(lengthRule(), wordsRule(), initRule(), stateRule())
}
