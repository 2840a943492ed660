package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// withDefault are the methods of the minion's settings that use the table's default.
var withDefault = []string{"text", "truth", "number", "integer", "span"}

// reader describes how sources in some directories read options.
type reader struct {
	dirs    []string // directories, or patterns of files
	getters []string // functions and methods whose first argument is the name of an option
	config  bool     // also the methods of conf.Config
	maps    []string // maps of options
}

// readers are all ways in which the sources read options.
var readers = []reader{
	{dirs: []string{"modules", "states"}, getters: []string{"Opt", "optionText", "requiredOption"}},
	{dirs: []string{"states/render", "states/*.go"}, maps: []string{"opts"}},
	{dirs: []string{"minion", "internal/modkit/owncode"}, config: true, maps: []string{"Opts", "opts", "options"},
		getters: append([]string{"Opt", "optional", "textOr", "truthOr", "texts", "dict", "changed"}, withDefault...)},
	{dirs: []string{"cmd/brine-master", "cmd/brine-minion", "cmd/internal/localmaster", "internal/saltcli", "internal/conf"}, config: true,
		maps: []string{"Opts", "o"}},
	{dirs: []string{"internal/saltlog", "internal/output", "internal/httpproxy"}, getters: []string{"text", "truth", "number", "opt"}, maps: []string{"opts"}},
	{dirs: []string{"modules/httpmod"}, getters: []string{"opt", "seconds"}},
	{dirs: []string{"modules/cmdmod"}, getters: []string{"globs"}},
	{dirs: []string{"master/fileserver/gitfs"}, maps: []string{"opts"}},
}

// configGetters are the methods of conf.Config. configs are the names of configurations in the sources.
var (
	configGetters = []string{"String", "Strings", "Bool", "Int", "Float", "Duration", "List", "Map"}
	configs       = []string{"c", "l", "config", "conf", "Conf", "Config"}
)

// noOptions maps keys that only look like options to what they are.
var noOptions = map[string]string{
	"clean_cache": "an argument of an event", "notify": "an argument of an event",
	"enabled": "a key of schedule and beacons", "jid_include": "a key of a scheduled job",
	"failure": "a finding of brine-minion check",
	"os":      "a grain", "os_family": "a grain", "osfullname": "a grain", "osrelease": "a grain",
	"parallels": "a grain", "vmware": "a grain",
	"port": "a key of rest_cherrypy", "tenants": "a key of rest_cherrypy",
	"minion_id": "set for sources of pillar", "salt": "a program", "salt-key": "a program", "salt-run": "a program",
}

// optionReads returns the names of options that sources read, with the places of each.
func optionReads(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	set := token.NewFileSet()
	parsed := map[string]*ast.File{}
	for _, r := range readers {
		byFolder := map[string][]*ast.File{}
		for _, path := range sourcesIn(t, r.dirs...) {
			f := parsed[path]
			if f == nil {
				var err error
				if f, err = parser.ParseFile(set, path, nil, parser.SkipObjectResolution); err != nil {
					t.Fatal(err)
				}
				parsed[path] = f
			}
			byFolder[filepath.Dir(path)] = append(byFolder[filepath.Dir(path)], f)
		}
		for _, files := range byFolder {
			texts := textConstants(files)
			for _, f := range files {
				ast.Inspect(f, func(n ast.Node) bool {
					if name := r.optionRead(n, texts); name != "" {
						found[name] = append(found[name], set.Position(n.Pos()).String())
					}
					return true
				})
			}
		}
	}
	return found
}

// sourcesIn returns the Go files without tests in directories and below them, or those that match a pattern.
func sourcesIn(t *testing.T, dirs ...string) []string {
	t.Helper()
	var list []string
	for _, dir := range dirs {
		if strings.HasSuffix(dir, ".go") {
			files, err := filepath.Glob(dir)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, files...)
			continue
		}
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasSuffix(path, ".go") {
				list = append(list, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return slices.DeleteFunc(list, func(path string) bool { return strings.HasSuffix(path, "_test.go") })
}

// textConstants returns the text constants of a package.
func textConstants(files []*ast.File) map[string]string {
	constants := map[string]string{}
	for _, f := range files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, s := range g.Specs {
				v := s.(*ast.ValueSpec)
				for i, name := range v.Names {
					if i < len(v.Values) {
						constants[name.Name] = literalText(v.Values[i], nil)
					}
				}
			}
		}
	}
	return constants
}

func literalText(e ast.Expr, constants map[string]string) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ := strconv.Unquote(e.Value)
			return text
		}
	case *ast.Ident:
		return constants[e.Name]
	}
	return ""
}

// lastName returns the last part of a dotted name.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.CallExpr:
		return lastName(e.Fun)
	}
	return ""
}

// optionRead returns the name of the option that an expression reads, or "".
func (r reader) optionRead(n ast.Node, texts map[string]string) string {
	switch n := n.(type) {
	case *ast.IndexExpr:
		if slices.Contains(r.maps, lastName(n.X)) {
			return literalText(n.Index, texts)
		}
	case *ast.CallExpr:
		if len(n.Args) == 0 {
			return ""
		}
		if slices.Contains(r.getters, lastName(n.Fun)) {
			return literalText(n.Args[0], texts)
		}
		if !r.config {
			return ""
		}
		switch f := n.Fun.(type) {
		case *ast.SelectorExpr:
			if slices.Contains(configGetters, f.Sel.Name) && slices.Contains(configs, lastName(f.X)) {
				return literalText(n.Args[0], texts)
			}
		case *ast.Ident: // a function with a configuration and a name
			if len(n.Args) > 1 && slices.Contains(configs, lastName(n.Args[0])) {
				return literalText(n.Args[1], texts)
			}
		}
	}
	return ""
}

// TestReadOptionsAreInTheTable: every option that sources read is in the table, for the role that reads it.
func TestReadOptionsAreInTheTable(t *testing.T) {
	table := loadTable(t).options
	found := optionReads(t)
	if len(found) < 300 {
		t.Errorf("only %d options are read: the sources are not understood", len(found))
	}
	for name, places := range found {
		o := table.named(name)
		switch {
		case o != nil:
			for _, place := range places {
				for dir, role := range map[string]string{"minion/": minion, "cmd/brine-master/": master} {
					if strings.HasPrefix(place, dir) && !slices.Contains(o.of, role) {
						t.Errorf("%s reads the option %q, which %s has not for the %s", place, name, tablePath, role)
					}
				}
			}
		case strings.HasPrefix(name, "__") || strings.ContainsAny(name, ".\x00") || slices.Contains(table.known, name):
		case noOptions[name] == "":
			t.Errorf("%s reads the option %q, which %s lacks", places[0], name, tablePath)
		}
	}
	for name := range noOptions {
		if found[name] == nil {
			t.Errorf("nothing reads %q any more", name)
		}
	}
}

// TestDefaultsAreThere: an option that the minion reads with the table's default has a default there.
func TestDefaultsAreThere(t *testing.T) {
	table := loadTable(t).options
	set := token.NewFileSet()
	read := 0
	for _, path := range sourcesIn(t, "minion/*.go") {
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			name := reader{getters: withDefault}.optionRead(n, nil)
			if o := table.named(name); o != nil {
				read++
				if _, has := o.defaults[minion]; !has && o.unset == nil {
					t.Errorf("%s reads %s with a default, which %s lacks", set.Position(n.Pos()), name, tablePath)
				}
			}
			return true
		})
	}
	if read < 80 {
		t.Errorf("only %d options are read", read)
	}
}

// TestReadersAgreeWithTheTable: a default in the sources of packages that do not use the table is the table's
// default.
func TestReadersAgreeWithTheTable(t *testing.T) {
	table := loadTable(t).options
	set := token.NewFileSet()
	compared := 0
	for _, path := range sourcesIn(t, "internal/output", "modules/httpmod", "minion", "states/*.go", "states/render") {
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 2 {
				return true
			}
			name := reader{getters: []string{"truth", "truthOr", "text", "textOr", "number", "seconds"}}.optionRead(n, nil)
			o := table.named(name)
			if o == nil || o.value(minion) == nil {
				return true
			}
			compared++
			var got string
			switch e := call.Args[1].(type) {
			case *ast.BasicLit:
				got = strings.Trim(e.Value, `"`)
			case *ast.Ident:
				got = e.Name
			}
			if want := strings.TrimSuffix(flow(o.value(minion)), ".0"); got != want {
				t.Errorf("%s: the default of %s is %s there, %s in %s", set.Position(n.Pos()), name, got, want, tablePath)
			}
			return true
		})
	}
	if compared == 0 {
		t.Error("no defaults are compared")
	}
}
