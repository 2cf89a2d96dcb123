package main

import (
	"go/ast"
	"go/token"

	"golang.org/x/tools/go/analysis"
)

// Both limits count every line, comments included, of code that is not a test.
const (
	maxFunctionLines = 70
	maxFileLines     = 400
)

func lengthRule() *analysis.Analyzer {
	return &analysis.Analyzer{
		Name: "length",
		Doc:  "functions have at most 70 lines and files 400, so that each is read in one go",
		Run:  checkLength,
	}
}

func checkLength(pass *analysis.Pass) (any, error) {
	for _, file := range ownFiles(pass) {
		if n := lines(pass.Fset, file.FileStart, file.FileEnd); n > maxFileLines {
			pass.Reportf(file.Package, "file has %d lines, more than %d: cut it where a second subject begins", n, maxFileLines)
		}
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := lines(pass.Fset, fn.Pos(), fn.End()); n > maxFunctionLines {
				pass.Reportf(fn.Pos(), "function %s has %d lines, more than %d: name its steps", fn.Name.Name, n, maxFunctionLines)
			}
		}
	}
	return nil, nil
}

// lines counts the lines that the source from one position to another touches.
func lines(fset *token.FileSet, from, to token.Pos) int {
	return fset.Position(to).Line - fset.Position(from).Line + 1
}
