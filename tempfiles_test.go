package brine_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestCVE_2014_3563_NoPredictableTempFiles: nothing below a directory that others may write to is made under a name that can be known
// before (also CVE-2015-1838, CVE-2015-1839 and CVE-2023-34049): only os.CreateTemp and os.MkdirTemp make names there.
func TestCVE_2014_3563_NoPredictableTempFiles(t *testing.T) {
	making := []string{"Create", "WriteFile", "OpenFile", "Mkdir", "MkdirAll", "Rename", "Symlink", "Link"}
	files := 0
	eachGoFile(t, ".", func(_ string, set *token.FileSet, file *ast.File) {
		files++
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if name := calledIn(call, "os"); !slices.Contains(making, name) {
				return true
			}
			for _, arg := range call.Args {
				ast.Inspect(arg, func(n ast.Node) bool {
					if shared(n) {
						t.Errorf("%s: a file with a name that others can know before", set.Position(call.Pos()))
						return false
					}
					return true
				})
			}
			return true
		})
	})
	if files < 500 {
		t.Fatalf("only %d files were looked at", files)
	}
}

// calledIn is the name of the function of a package that is called, "" for another's.
func calledIn(call *ast.CallExpr, pkg string) string {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := sel.X.(*ast.Ident); !ok || x.Name != pkg {
		return ""
	}
	return sel.Sel.Name
}

// shared reports whether an expression is a directory that all users may write to.
func shared(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		return calledIn(n, "os") == "TempDir" || calledIn(n, "pytemp") == "Dir"
	case *ast.BasicLit:
		text, err := strconv.Unquote(n.Value)
		return err == nil && (strings.HasPrefix(text, "/tmp") || strings.HasPrefix(text, "/var/tmp") || strings.HasPrefix(text, "/dev/shm"))
	}
	return false
}
