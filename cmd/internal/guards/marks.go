package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// testName is a test and the directory of its package, relative to the module's root.
type testName struct{ dir, name string }

func (t testName) String() string { return t.dir + ":" + t.name }

// guard is a marked place in the code.
type guard struct {
	file  string // relative to the root, with slashes
	line  int    // of the removed code
	flaws []string
	// layer is the name of guards that refuse the same thing in several places and are removed together, or "".
	layer string
	tests []testName
	// instead is the code that replaces the guard. If it is "", the condition is false or the statement is left out.
	instead string
	edits   []edit
	// apart means that the guard needs a separate build: its code cannot check at run time whether it is removed (a
	// constant, a field).
	apart bool
}

func (g guard) String() string { return fmt.Sprintf("%s:%d", g.file, g.line) }

// removal identifies what is removed together.
func (g guard) removal() string {
	if g.layer != "" {
		return "@" + g.layer
	}
	return g.String()
}

// edit replaces the bytes from start to end of a file.
type edit struct {
	start, end int
	text       string
}

const (
	prefix = "// guard: "
	// switchName is the variable that is added to the changed packages. switchEnv is the environment variable that
	// sets it.
	switchName = "guardRemoved"
	switchEnv  = "BRINE_GUARD_REMOVED"
)

// findGuards returns the guards in the module at root, sorted by file and line.
func findGuards(root string) ([]guard, error) {
	var found []guard
	err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if name == root {
				return nil
			}
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil ||
				strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		src, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(src), prefix) {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		gs, err := guardsOf(filepath.ToSlash(rel), src)
		found = append(found, gs...)
		return err
	})
	return found, err
}

// guardsOf returns the guards in a file.
func guardsOf(file string, src []byte) ([]guard, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, src, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var found []guard
	for _, group := range f.Comments {
		for _, c := range group.List {
			text, ok := strings.CutPrefix(c.Text, prefix)
			if !ok {
				continue
			}
			g := guard{file: file, line: fset.Position(group.End()).Line + 1}
			fail := func(format string, args ...any) error {
				return fmt.Errorf("%s: %s", fset.Position(c.Pos()), fmt.Sprintf(format, args...))
			}
			if err := g.parseMark(text); err != nil {
				return nil, fail("%v", err)
			}
			n, in := nodeAt(fset, f, g.line)
			if n == nil {
				return nil, fail("no statement or declaration begins below the mark")
			}
			if err := g.cutOut(n, in, func(p token.Pos) int { return fset.Position(p).Offset },
				src); err != nil {
				return nil, fail("%v", err)
			}
			found = append(found, g)
		}
	}
	return found, nil
}

// parseMark parses "flaw,flaw Test,folder:Test instead: code".
func (g *guard) parseMark(text string) error {
	text, g.instead, _ = strings.Cut(text, " instead: ")
	fields := strings.Fields(text)
	if len(fields) == 3 && strings.HasPrefix(fields[1], "@") {
		g.layer = fields[1][1:]
		fields = slices.Delete(fields, 1, 2)
	}
	if len(fields) != 2 {
		return fmt.Errorf("a mark is %q", prefix+
			"FLAW,FLAW [@layer] Test,folder:Test [instead: code]")
	}
	g.flaws = strings.Split(fields[0], ",")
	for _, t := range strings.Split(fields[1], ",") {
		dir, name, ok := strings.Cut(t, ":")
		if !ok {
			dir, name = path.Dir(g.file), t
		}
		if !strings.HasPrefix(name, "Test") {
			return fmt.Errorf("%q is not a test", t)
		}
		g.tests = append(g.tests, testName{dir, name})
	}
	return nil
}

// nodeAt returns the outermost node on a line that can be a guard, and its parent.
func nodeAt(fset *token.FileSet, f *ast.File, line int) (node, in ast.Node) {
	var stack []ast.Node
	ast.Inspect(f, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		if node != nil {
			return false
		}
		start := fset.Position(n.Pos()).Line
		if d, ok := n.(*ast.GenDecl); ok && d.Doc != nil {
			start = fset.Position(d.TokPos).Line
		}
		if start == line {
			switch n.(type) {
			case ast.Stmt, ast.Spec, *ast.GenDecl, *ast.KeyValueExpr:
				node = n
				// The clauses of a switch are the children of its block.
				for _, s := range slices.Backward(stack) {
					if _, block := s.(*ast.BlockStmt); !block {
						in = s
						break
					}
				}
				return false
			}
		}
		stack = append(stack, n)
		return true
	})
	return node, in
}

// cutOut sets the edits that remove the guard n, whose parent is in.
func (g *guard) cutOut(n, in ast.Node, offset func(token.Pos) int, src []byte) error {
	removed := fmt.Sprintf("%s == %q", switchName, g.removal())
	condition := func(e ast.Expr) {
		start, end := offset(e.Pos()), offset(e.End())
		before, after := "!("+removed+") && (", ")"
		if g.instead != "" {
			before, after = "("+removed+" && ("+g.instead+") || !("+removed+") && (", "))"
		}
		g.edits = append(g.edits, edit{start, start, before}, edit{end, end, after})
	}
	start, end := offset(n.Pos()), offset(n.End())
	switch n := n.(type) {
	case *ast.IfStmt:
		condition(n.Cond)
	case *ast.CaseClause:
		if s, ok := in.(*ast.SwitchStmt); !ok || s.Tag != nil || n.List == nil {
			return fmt.Errorf("a case can be removed from a switch without a tag only")
		}
		for _, e := range n.List {
			condition(e)
		}
	case *ast.AssignStmt, *ast.DeclStmt, *ast.GenDecl, ast.Spec, *ast.KeyValueExpr:
		if a, ok := n.(*ast.AssignStmt); ok && a.Tok != token.DEFINE {
			g.statementEdit(start, end, removed)
			return nil
		}
		if g.instead == "" {
			return fmt.Errorf("say what stands there instead of a declaration")
		}
		if g.layer != "" {
			return fmt.Errorf("a declaration cannot be removed together with other guards")
		}
		g.apart = true
		if d, ok := n.(*ast.GenDecl); ok {
			start = offset(d.TokPos)
		}
		// Keep the line numbers.
		text := g.instead + strings.Repeat("\n", strings.Count(string(src[start:end]), "\n"))
		g.edits = append(g.edits, edit{start, end, text})
	case *ast.ReturnStmt:
		if g.instead == "" {
			return fmt.Errorf("say what is returned instead")
		}
		g.statementEdit(start, end, removed)
	default:
		g.statementEdit(start, end, removed)
	}
	return nil
}

// statementEdit sets the edits that remove a statement.
func (g *guard) statementEdit(start, end int, removed string) {
	g.edits = append(g.edits,
		edit{start, start, "if " + removed + " { " + g.instead + " } else { "},
		edit{end, end, " }"})
}
