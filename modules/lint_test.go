package modules

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

// shellExempt are the places where a command that the user wrote is handed to a shell on purpose.
func shellExempt() map[string]string {
	return map[string]string{
		"cmdmod/run.go":              "a list with python_shell is what Python makes of it",
		"cmdmod/user_unix.go":        "cmd.run_chroot runs the user's command in the shell inside",
		"supervisord/supervisord.go": "-c names supervisorctl's configuration file",
	}
}

// TestModulesKeepTheRules reads the sources of all modules: no work when the program starts, no programs but through the
// runner, no imports of rooms that modules must not know, and no shell command put together from parts (T15: CVE-2020-28243 and
// CVE-2021-31607 were such commands).
func TestModulesKeepTheRules(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "all") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || !strings.Contains(filepath.ToSlash(path), "/") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		l := &linter{t: t, set: set, path: filepath.ToSlash(path)}
		l.imports(file)
		for _, decl := range file.Decls {
			l.start(decl)
		}
		ast.Inspect(file, l.shell)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

type linter struct {
	t    *testing.T
	set  *token.FileSet
	path string
}

func (l *linter) complain(n ast.Node, text string) {
	l.t.Helper()
	l.t.Errorf("%s: %s", l.set.Position(n.Pos()), text)
}

func (l *linter) imports(file *ast.File) {
	for _, i := range file.Imports {
		name, _ := strconv.Unquote(i.Path.Value)
		ours, isOurs := strings.CutPrefix(name, "github.com/brine-salt/brine/")
		switch {
		case isOurs && ours != "modules" && ours != "modules/pyobj" && !strings.HasPrefix(ours, "internal/") && !l.within(ours) &&
			!(ours == "states" && strings.HasPrefix(l.path, "state/")): // the door to the state system
			l.complain(i, "a module must not import "+ours)
		case name == "os/exec" || name == "text/template" || name == "html/template" || name == "net/http" && !l.speaksHTTP():
			l.complain(i, "a module must not import "+name)
		}
	}
}

// speaksHTTP reports whether HTTP is what the module is for.
func (l *linter) speaksHTTP() bool {
	return slices.ContainsFunc([]string{"httpmod/", "dockermod/", "etcdmod/", "influxdbmod/", "s3/", "returners/httppost/"}, func(room string) bool { return strings.HasPrefix(l.path, room) })
}

// within reports whether a package is part of the same module: its room or one below it.
func (l *linter) within(room string) bool {
	name, _, _ := strings.Cut(l.path, "/")
	return room == "modules/"+name || strings.HasPrefix(room, "modules/"+name+"/")
}

// start looks for work at the start of the program: in init, and in values of package variables.
func (l *linter) start(decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.Name != "init" || d.Recv != nil {
			return
		}
		if slices.ContainsFunc(d.Body.List, func(s ast.Stmt) bool { return !isRegister(s) }) {
			l.complain(d, "init may only register the module")
		}
	case *ast.GenDecl:
		if d.Tok != token.VAR {
			return
		}
		for _, spec := range d.Specs {
			if v := spec.(*ast.ValueSpec); v.Names[0].Name == "_" {
				continue // only the compiler looks at it
			}
			for _, value := range spec.(*ast.ValueSpec).Values {
				ast.Inspect(value, l.value)
			}
		}
	}
}

func isRegister(s ast.Stmt) bool {
	e, ok := s.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := e.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && (sel.Sel.Name == "Register" || sel.Sel.Name == "RegisterSource" || sel.Sel.Name == "RegisterSourceOf")
}

// value allows what the linker can lay out: literals, conversions of constants, errors.New; also functions that run later.
func (l *linter) value(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncLit:
		return false
	case *ast.CompositeLit:
		if _, isMap := n.Type.(*ast.MapType); isMap && len(n.Elts) > 0 {
			l.complain(n, "a map is filled when the program starts: use a function or a sorted slice")
		}
	case *ast.CallExpr:
		name := ""
		switch f := n.Fun.(type) {
		case *ast.Ident:
			name = f.Name
		case *ast.SelectorExpr:
			if x, ok := f.X.(*ast.Ident); ok {
				name = x.Name + "." + f.Sel.Name
			}
		}
		switch name {
		case "int64", "uint64", "float64", "errors.New", "sync.OnceValue", "sync.OnceValues", "sync.OnceFunc":
		default:
			l.complain(n, "a call of "+name+" when the program starts")
		}
	}
	return true
}

// shell looks for "-c" followed by something that is not a constant.
func (l *linter) shell(n ast.Node) bool {
	var list []ast.Expr
	switch n := n.(type) {
	case *ast.CompositeLit:
		list = n.Elts
	case *ast.CallExpr:
		list = n.Args
	default:
		return true
	}
	if shellExempt()[l.path] != "" {
		return true
	}
	for i, x := range list {
		lit, ok := x.(*ast.BasicLit)
		if !ok || lit.Value != `"-c"` || i+1 == len(list) || i > 0 && isProgram(list[i-1]) {
			continue
		}
		if _, ok := list[i+1].(*ast.BasicLit); !ok && !isConstantName(list[i+1]) {
			l.complain(x, "a shell command that is put together: pass the program and its arguments as a list")
		}
	}
	return true
}

// isProgram reports whether an expression is the name of a program that is no shell.
func isProgram(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	if !ok {
		return false
	}
	name, _ := strconv.Unquote(lit.Value)
	return name == "at" || name == "lsof"
}

// isConstantName takes a name for that of a constant by our habit: constants with shell commands are called …Script.
func isConstantName(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && strings.HasSuffix(id.Name, "Script")
}
