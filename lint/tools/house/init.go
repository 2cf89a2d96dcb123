package main

import (
	"go/ast"

	"golang.org/x/tools/go/analysis"
)

func initRule() *analysis.Analyzer {
	return &analysis.Analyzer{
		Name: "noinit",
		Doc:  "no init functions: work begins in main, where it can be read, ordered and tested",
		Run:  checkInit,
	}
}

func checkInit(pass *analysis.Pass) (any, error) {
	for _, file := range allFiles(pass) {
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				pass.Reportf(fn.Pos(), "init runs before main and cannot be tested: call it from main by a name of its own")
			}
		}
	}
	return nil, nil
}
