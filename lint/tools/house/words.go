package main

import (
	"go/ast"
	"go/token"
	"strings"

	"golang.org/x/tools/go/analysis"
)

func wordsRule() *analysis.Analyzer {
	return &analysis.Analyzer{
		Name: "words",
		Doc:  "no package, file or identifier has a word in its name that fits anything, such as util or manager",
		Run:  checkWords,
	}
}

// emptyWords fit every piece of code, so they tell a reader nothing about one.
func emptyWords() []string {
	return []string{"util", "utils", "common", "helper", "helpers", "manager", "engine", "plugin"}
}

// emptyPlaces are the words refused for packages and files: a service is also a
// thing of Kubernetes, which code about endpoints has to name.
func emptyPlaces() []string {
	return append(emptyWords(), "service", "services")
}

func checkWords(pass *analysis.Pass) (any, error) {
	files := allFiles(pass)
	for _, file := range files {
		checkPlace(pass, file, "package", pass.Pkg.Name())
		checkPlace(pass, file, "file", strings.TrimSuffix(fileName(pass, file), ".go"))
	}
	for id, object := range pass.TypesInfo.Defs {
		if object == nil || !inFiles(files, id.Pos()) {
			continue
		}
		if word := firstOf(emptyWords(), id.Name); word != "" {
			pass.Reportf(id.Pos(), "%s: the word %q fits anything: name what this one is", id.Name, word)
		}
	}
	return nil, nil
}

func checkPlace(pass *analysis.Pass, file *ast.File, kind, name string) {
	if word := firstOf(emptyPlaces(), name); word != "" {
		pass.Reportf(file.Package, "%s %s: the word %q fits anything: name what it holds", kind, name, word)
	}
}

func inFiles(files []*ast.File, pos token.Pos) bool {
	for _, file := range files {
		if file.FileStart <= pos && pos < file.FileEnd {
			return true
		}
	}
	return false
}
