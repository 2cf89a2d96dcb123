package main

import (
	"go/ast"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// allFiles returns the hand-written files of a package, tests included.
func allFiles(pass *analysis.Pass) []*ast.File {
	var files []*ast.File
	for _, file := range pass.Files {
		if !ast.IsGenerated(file) && strings.HasSuffix(fileName(pass, file), ".go") {
			files = append(files, file)
		}
	}
	return files
}

// ownFiles returns the hand-written files of a package that are not tests.
func ownFiles(pass *analysis.Pass) []*ast.File {
	var files []*ast.File
	for _, file := range allFiles(pass) {
		if !strings.HasSuffix(fileName(pass, file), "_test.go") {
			files = append(files, file)
		}
	}
	return files
}

func fileName(pass *analysis.Pass, file *ast.File) string {
	return filepath.Base(pass.Fset.Position(file.FileStart).Filename)
}
