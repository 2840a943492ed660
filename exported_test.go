package brine_test

import (
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// filledByUs lists public packages with such types that only this module uses, and why.
var filledByUs = map[string]string{
	"master/requests":         "what the master keeps of pushed files; package master makes it",
	"master/requests/returns": "the master's log; package master makes it",
	"master/requests/signin":  "the master's log; package master makes it",
	"minion/check":            "the programs' own command; they read the configuration",
	"minion/doctor":           "the programs' own command; they read the configuration",
	"minion/program":          "the programs' own command; they read the configuration",
	"modules/x509_v2":         "drafts that states/x509_v2 compares",
	"states/render/jinja":     "JSON as the filters write it, for the other filters of package render",
}

// TestExportedTypesCanBeNamed: no exported declaration of a package that other programs may import mentions a type that
// they may not import.
func TestExportedTypesCanBeNamed(t *testing.T) {
	used := map[string]bool{}
	for _, p := range list(t, "linux", "./...") {
		r := room(p.ImportPath)
		if p.Name == "main" || hidden(p.ImportPath) {
			continue
		}
		files, _ := parseRoom(t, r)
		for _, f := range files {
			internals := hiddenImports(f)
			if len(internals) == 0 {
				continue
			}
			for what, where := range exportedTypes(f) {
				ast.Inspect(where, func(n ast.Node) bool {
					if s, ok := n.(*ast.SelectorExpr); ok {
						if x, ok := s.X.(*ast.Ident); ok && slices.Contains(internals, x.Name) {
							if used[r] = filledByUs[r] != ""; !used[r] {
								t.Errorf("%s: %s has the type %s.%s of an internal package", r, what, x.Name, s.Sel.Name)
							}
						}
					}
					return true
				})
			}
		}
	}
	for r, why := range filledByUs {
		if !used[r] {
			t.Errorf("%s is an exception (%s) and needs none", r, why)
		}
	}
}

// hidden reports whether only a part of the module may import a package.
func hidden(importPath string) bool {
	return slices.Contains(strings.Split(importPath, "/"), "internal")
}

// hiddenImports are the names under which a file knows internal packages.
func hiddenImports(f *ast.File) (names []string) {
	for _, s := range f.Imports {
		p, err := strconv.Unquote(s.Path.Value)
		if err != nil || !hidden(p) {
			continue
		}
		if s.Name != nil {
			names = append(names, s.Name.Name)
		} else {
			names = append(names, path.Base(p))
		}
	}
	return names
}

// exportedTypes returns the type expressions of what a file exports, by name. Aliases are left out: they give a type a
// public name.
func exportedTypes(f *ast.File) map[string]ast.Node {
	found := map[string]ast.Node{}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				of := typeName(d.Recv.List[0].Type)
				if !ast.IsExported(of) {
					continue
				}
				name = of + "." + name
			}
			if d.Name.IsExported() {
				found[name] = d.Type
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					for _, name := range s.Names {
						if name.IsExported() && s.Type != nil {
							found[name.Name] = s.Type
						}
					}
				case *ast.TypeSpec:
					if s.Name.IsExported() && !s.Assign.IsValid() {
						addMembers(found, s)
					}
				}
			}
		}
	}
	return found
}

// addMembers adds the exported fields of a struct, the methods of an interface, or the type itself.
func addMembers(found map[string]ast.Node, s *ast.TypeSpec) {
	var members *ast.FieldList
	switch typ := s.Type.(type) {
	case *ast.StructType:
		members = typ.Fields
	case *ast.InterfaceType:
		members = typ.Methods
	default:
		found[s.Name.Name] = s.Type
		return
	}
	for _, m := range members.List {
		if len(m.Names) == 0 { // embedded
			found[s.Name.Name+"."+typeName(m.Type)] = m.Type
		}
		for _, name := range m.Names {
			if name.IsExported() {
				found[s.Name.Name+"."+name.Name] = m.Type
			}
		}
	}
}
