package main

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/astutil"
)

func stateRule() *analysis.Analyzer {
	return &analysis.Analyzer{
		Name: "state",
		Doc:  "package-level variables are only read: state belongs to a value that somebody made and owns",
		Run:  checkState,
	}
}

// checkState reports every place outside tests that changes a package-level
// variable, or could: an assignment to it or to a part of it, its address
// taken, a method with a pointer receiver called on it, clear or delete. A
// channel is state by itself.
func checkState(pass *analysis.Pass) (any, error) {
	s := stateWalk{pass: pass}
	for _, file := range ownFiles(pass) {
		for _, decl := range file.Decls {
			s.checkChannels(decl)
		}
		ast.Inspect(file, s.visit)
	}
	return nil, nil
}

type stateWalk struct{ pass *analysis.Pass }

func (s stateWalk) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			s.changed(n.Lhs...)
		}
	case *ast.IncDecStmt:
		s.changed(n.X)
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			s.changed(n.Key, n.Value)
		}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			s.changed(n.X)
		}
	case *ast.SelectorExpr:
		s.checkMethod(n)
	case *ast.CallExpr:
		s.checkBuiltin(n)
	}
	return true
}

// checkMethod finds the address that Go takes silently: x.Lock() is (&x).Lock().
func (s stateWalk) checkMethod(n *ast.SelectorExpr) {
	selection := s.pass.TypesInfo.Selections[n]
	if selection == nil || selection.Kind() != types.MethodVal {
		return
	}
	receiver := selection.Obj().(*types.Func).Signature().Recv()
	if isPointer(receiver.Type()) && !isPointer(s.pass.TypesInfo.TypeOf(n.X)) {
		s.changed(n.X)
	}
}

func (s stateWalk) checkBuiltin(n *ast.CallExpr) {
	id, ok := astutil.Unparen(n.Fun).(*ast.Ident)
	if !ok || len(n.Args) == 0 {
		return
	}
	if _, ok := s.pass.TypesInfo.Uses[id].(*types.Builtin); !ok {
		return
	}
	switch id.Name {
	case "clear", "copy", "delete":
		s.changed(n.Args[0])
	}
}

func (s stateWalk) checkChannels(decl ast.Decl) {
	gen, ok := decl.(*ast.GenDecl)
	if !ok || gen.Tok != token.VAR {
		return
	}
	for _, spec := range gen.Specs {
		for _, name := range spec.(*ast.ValueSpec).Names {
			if v := s.pass.TypesInfo.Defs[name]; v != nil && isChannel(v.Type()) {
				s.pass.Reportf(name.Pos(), "package variable %s is a channel: give it to the value that owns it", name.Name)
			}
		}
	}
}

func (s stateWalk) changed(targets ...ast.Expr) {
	for _, target := range targets {
		if v := s.packageVar(target); v != nil {
			s.pass.Reportf(target.Pos(), "package variable %s is changed here: keep the state in a value that somebody owns", v.Name())
		}
	}
}

// packageVar returns the package-level variable that an expression is, or is a
// part of. A pointer on the way ends the search: what it points to is another
// value. nil if there is none.
func (s stateWalk) packageVar(expr ast.Expr) *types.Var {
	for expr != nil {
		switch e := expr.(type) {
		case *ast.ParenExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.SliceExpr:
			expr = e.X
		case *ast.SelectorExpr:
			if v := s.asPackageVar(e.Sel); v != nil {
				return v
			}
			if isPointer(s.pass.TypesInfo.TypeOf(e.X)) {
				return nil
			}
			expr = e.X
		case *ast.Ident:
			return s.asPackageVar(e)
		default:
			return nil
		}
	}
	return nil
}

func (s stateWalk) asPackageVar(id *ast.Ident) *types.Var {
	v, ok := s.pass.TypesInfo.Uses[id].(*types.Var)
	if !ok || v.IsField() || v.Pkg() == nil || v.Parent() != v.Pkg().Scope() {
		return nil
	}
	return v
}

func isPointer(t types.Type) bool {
	if t == nil {
		return false
	}
	_, ok := t.Underlying().(*types.Pointer)
	return ok
}

func isChannel(t types.Type) bool {
	_, ok := t.Underlying().(*types.Chan)
	return ok
}
