package brine_test

import (
	"go/ast"
	"go/token"
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
		eachGoFile(t, dir, func(path string, _ *token.FileSet, f *ast.File) {
			ast.Inspect(f, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok || sel.Sel.Name != "Default" {
					return true
				}
				if pkg, ok := sel.X.(*ast.Ident); ok && (pkg.Name == "modules" || pkg.Name == "states") {
					asked[path] = true
				}
				return true
			})
		})
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
