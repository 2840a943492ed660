package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/brine-salt/brine/modules"
	_ "github.com/brine-salt/brine/modules/all"
	"github.com/brine-salt/brine/states"
	_ "github.com/brine-salt/brine/states/all"
)

// getters are the methods of a call that return an argument by name.
var getters = []string{"Value", "Given", "Str", "Bool", "Int", "Float", "Seconds", "Strings", "Map"}

// TestArgumentsAreDeclared: every argument that a package reads is declared by one of its functions. An undeclared
// argument is always nil without an error: its name is misspelled, or a parameter is missing.
func TestArgumentsAreDeclared(t *testing.T) {
	declared := map[string][]string{} // arguments by the name of Salt's file
	for _, m := range modules.Default().All() {
		for _, d := range m.Funcs {
			for _, p := range d.Params {
				declared["modules."+m.Name] = append(declared["modules."+m.Name], p.Name)
			}
		}
	}
	for _, m := range states.Default().Declared() {
		for _, d := range m.Funcs {
			for _, p := range d.Params {
				declared["states."+m.Name] = append(declared["states."+m.Name], p.Name)
			}
		}
	}
	asked := 0
	for _, w := range wings[:2] {
		list, err := os.ReadDir(filepath.Join(root, w.dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			dir := filepath.Join(root, w.dir, e.Name())
			p, err := readPackage(dir)
			if err != nil {
				t.Fatal(err)
			}
			if p == nil || !e.IsDir() || slices.Contains(w.heavy, e.Name()) {
				continue
			}
			var known []string
			for _, name := range p.files {
				known = append(known, declared[w.dir+"."+name]...)
			}
			asked += askedIn(t, dir, known)
		}
	}
	if asked < 2000 {
		t.Errorf("only %d arguments are asked for: the test does not see them", asked)
	}
}

// askedIn reports argument names that a package's sources read but that are not in known, and returns the number of
// the others.
func askedIn(t *testing.T, dir string, known []string) (asked int) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains(getters, sel.Sel.Name) {
				return true
			}
			lit, ok := call.Args[0].(*ast.BasicLit)
			if x, isCall := sel.X.(*ast.Ident); !ok || !isCall || x.Name != "c" {
				return true
			}
			if arg, _ := strconv.Unquote(lit.Value); !slices.Contains(known, arg) {
				t.Errorf("%s: no function of the package declares the argument %q", set.Position(lit.Pos()), arg)
			}
			asked++
			return true
		})
	}
	return asked
}
