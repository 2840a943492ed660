package brine_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Ceilings of package master, lines without tests. They only ever go down: a change that needs more belongs in a room of its own.
// The aim is 4,500 lines, 25 fields, 95 methods and 80 lines of go doc.
const (
	masterLines   = 4150
	masterFields  = 25
	masterMethods = 92
	masterDoc     = 63
	// roomLines is for every package below master.
	roomLines = 2500
)

// smallRooms meet the package that uses them only through interfaces, which have at most so many methods.
var smallRooms = map[string]int{"master/clones": 4, "master/sessions": 1, "master/orders": 6, "master/subscribers": 6,
	"master/cluster": 10, "master/requests": 4, "master/requests/returns": 4, "master/requests/door": 4,
	"master/requests/signin": 4, "master/tenants": 4, "master/announced": 4, "master/targets": 4, "master/tools": 2, "master/network": 2,
	"master/upkeep": 2}

// parseRoom returns the files of a package without its tests, and how many lines they have.
func parseRoom(t *testing.T, dir string) (files []*ast.File, lines int) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, b, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files, lines = append(files, f), lines+bytes.Count(b, []byte("\n"))
	}
	return files, lines
}

// structType returns a struct of a package, nil if there is none of this name.
func structType(files []*ast.File, name string) (s *ast.StructType) {
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.Name == name {
				s, _ = spec.Type.(*ast.StructType)
			}
			return s == nil
		})
	}
	return s
}

// typeName is the name of a type or of what a pointer points to, without the package.
func typeName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return typeName(x.X)
	case *ast.Ident:
		return x.Name
	case *ast.IndexExpr:
		return typeName(x.X)
	}
	return ""
}

// membersOf counts the fields and methods of a struct, with those of what it embeds. What is embedded must be of the same
// package, since nothing else is counted here.
func membersOf(t *testing.T, files []*ast.File, name string) (fields, methods int) {
	t.Helper()
	s := structType(files, name)
	if s == nil {
		t.Fatalf("there is no struct %s", name)
	}
	for _, f := range s.Fields.List {
		fields += max(1, len(f.Names))
		if len(f.Names) > 0 {
			continue
		}
		embedded := typeName(f.Type)
		if structType(files, embedded) == nil {
			t.Errorf("%s embeds a type of another package", name)
			continue
		}
		more, calls := membersOf(t, files, embedded)
		fields, methods = fields+more, methods+calls
	}
	for _, f := range files {
		for _, d := range f.Decls {
			if fun, ok := d.(*ast.FuncDecl); ok && fun.Recv != nil && typeName(fun.Recv.List[0].Type) == name {
				methods++
			}
		}
	}
	return fields, methods
}

// TestMasterDoesNotGrow: the root package of the master is doors to its rooms, and becomes no larger than it is.
func TestMasterDoesNotGrow(t *testing.T) {
	files, lines := parseRoom(t, "master")
	fields, methods := membersOf(t, files, "Master")
	doc, err := exec.CommandContext(t.Context(), "go", "doc", "-short", "./master").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what    string
		is, may int
	}{
		{"lines", lines, masterLines}, {"fields of Master", fields, masterFields}, {"methods of Master", methods, masterMethods},
		{"lines of go doc -short", bytes.Count(doc, []byte("\n")), masterDoc},
	} {
		t.Logf("package master: %d %s, ceiling %d", c.is, c.what, c.may)
		if c.is > c.may {
			t.Errorf("package master has %d %s, more than %d: put the new in a room of its own", c.is, c.what, c.may)
		}
	}
}

// TestRoomsOfMaster: no room below master is too large, and those that keep its promises know no more of the master than an
// interface says.
func TestRoomsOfMaster(t *testing.T) {
	err := filepath.WalkDir("master", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || dir == "master" || d.Name() == "testdata" {
			return err
		}
		dir = filepath.ToSlash(dir)
		_, lines := parseRoom(t, dir)
		if lines > roomLines {
			t.Errorf("%s has %d lines, more than %d", dir, lines, roomLines)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for dir, most := range smallRooms {
		files, _ := parseRoom(t, dir)
		if len(files) == 0 {
			t.Errorf("there is no %s", dir)
		}
		for _, f := range files {
			for _, imp := range f.Imports {
				if imp.Path.Value == `"`+module+`/master"` {
					t.Errorf("%s imports master", dir)
				}
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.InterfaceType:
					if n.Methods.NumFields() > most {
						t.Errorf("%s has an interface of %d methods, more than %d", dir, n.Methods.NumFields(), most)
					}
				case *ast.StructType:
					for _, field := range n.Fields.List {
						if _, ok := field.Type.(*ast.FuncType); ok {
							t.Errorf("%s has a struct with a function in a field: %v", dir, field.Names)
						}
					}
				}
				return true
			})
		}
	}
}
