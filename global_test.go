package brine_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestNobodyAsksTheGlobalRegistry: a minion may have a registry of its own, with a policy. Whatever asks the one that the blank imports
// of the program fill sees other functions than its minion has: state modules say Needs, functions ask their call's registry.
func TestNobodyAsksTheGlobalRegistry(t *testing.T) {
	// Where a program or an embedder has chosen no registry, and what lists a program's own parts.
	allowed := map[string]bool{
		"minion/minion.go": true, "states/run.go": true, "states/render/pillar/pillar.go": true, "minion/standard/standard.go": true,
		"minion/program/check.go": true, "minion/program/seal.go": true,
		"minion/program/minion.go": true, "minion/program/doctor.go": true,
	}
	asked := map[string]bool{}
	for _, dir := range []string{"modules", "states", "minion", "master", "internal", "openstack"} {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok || sel.Sel.Name != "Default" {
					return true
				}
				if pkg, ok := sel.X.(*ast.Ident); ok && (pkg.Name == "modules" || pkg.Name == "states") {
					asked[filepath.ToSlash(path)] = true
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	asked["states/run.go"] = true // calls its own package's Default
	for path := range asked {
		if !allowed[path] {
			t.Errorf("%s asks the global registry", path)
		}
	}
	for path := range allowed {
		if !asked[path] {
			t.Errorf("%s does not ask the global registry any more: take it from the list", path)
		}
	}
}
