package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a line in columns. A tab counts as four, as in most editors and reviews.
const (
	codeColumns    = 100
	commentColumns = 120
	tabColumns     = 4
)

// A room holds the counts of a package without its tests.
type room struct {
	dir            string
	code, comments int // lines; a line with code and a comment is code
	// unexported functions and methods, and how many of them have a one-word name
	functions, oneWord     int
	longCode, longComments int // lines beyond codeColumns and commentColumns
	texts                  []text
	long                   []string // lines beyond a limit, as file:line: n columns
}

// A text is a comment and the declaration that it belongs to.
type text struct {
	position string // file:line
	// stable across edits: directory, declaration, and the comment's number in it
	declaration string
	body        string
}

// expandPatterns returns the directories with Go files. A pattern that ends in "/..." includes all directories below
// it.
func expandPatterns(patterns []string) ([]string, error) {
	var dirs []string
	for _, pattern := range patterns {
		root, tree := strings.CutSuffix(filepath.ToSlash(pattern), "/...")
		if !tree {
			dirs = append(dirs, filepath.Clean(pattern))
			continue
		}
		err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case !d.IsDir():
				return nil
			case name != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")):
				return fs.SkipDir
			}
			dirs = append(dirs, filepath.Clean(name))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs), nil
}

// readRoom counts the Go files in a directory. Files for other platforms count too, since people have to read them.
func readRoom(dir string) (room, error) {
	r := room{dir: filepath.ToSlash(dir)}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return r, err
	}
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".go") ||
			strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		src, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return r, err
		}
		if err := r.addFile(filepath.ToSlash(filepath.Join(dir, e.Name())), src); err != nil {
			return r, err
		}
	}
	return r, nil
}

// addFile counts one file. It skips generated files.
func (r *room) addFile(name string, src []byte) error {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.ParseComments)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", name, err)
	}
	if ast.IsGenerated(file) {
		return nil
	}
	if err := r.addLines(name, src); err != nil {
		return err
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		// The language defines the names init and main, and a blank function has no name.
		if !ok || f.Name.IsExported() ||
			slices.Contains([]string{"init", "main", "_"}, f.Name.Name) {
			continue
		}
		r.functions++
		if oneWord(f.Name.Name) {
			r.oneWord++
		}
	}
	r.addTexts(fset, file)
	return nil
}

// oneWord reports whether a name has no capital after its first letter, like "open" and unlike "openSession".
func oneWord(name string) bool {
	_, n := utf8.DecodeRuneInString(name)
	return !strings.ContainsFunc(name[n:], unicode.IsUpper)
}

// addLines counts the lines of a file with code and with comments. Blank lines and directives such as //go:build are
// neither.
func (r *room) addLines(name string, src []byte) error {
	lines := bytes.Split(src, []byte("\n"))
	isCode, isComment := make([]bool, len(lines)+1), make([]bool, len(lines)+1)
	fset := token.NewFileSet()
	file := fset.AddFile(name, -1, len(src))
	var s scanner.Scanner
	var failed scanner.ErrorList
	s.Init(file, src, failed.Add, scanner.ScanComments)
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue // inserted by the scanner at the end of a counted line
		}
		marked := isCode
		if tok == token.COMMENT {
			if isDirective(lit) {
				continue
			}
			marked = isComment
		}
		first := file.Line(pos)
		for i := range strings.Count(lit, "\n") + 1 {
			marked[first+i] = true
		}
	}
	if err := failed.Err(); err != nil {
		return errors.Join(fmt.Errorf("cannot read %s", name), err)
	}
	for i, line := range lines {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		columns := utf8.RuneCount(line) + (tabColumns-1)*bytes.Count(line, []byte("\t"))
		switch {
		case isCode[i+1]:
			r.code++
			if columns > codeColumns {
				r.longCode++
				r.long = append(r.long,
					fmt.Sprintf("%s:%d: code of %d columns", name, i+1, columns))
			}
		case isComment[i+1]:
			r.comments++
			if columns > commentColumns {
				r.longComments++
				r.long = append(r.long,
					fmt.Sprintf("%s:%d: comment of %d columns", name, i+1, columns))
			}
		}
	}
	return nil
}

// isDirective reports whether a comment is for a program and not for a reader: //go:build, //nolint, // guard: lines.
func isDirective(comment string) bool {
	return strings.HasPrefix(comment, "//go:") || strings.HasPrefix(comment, "//lint:") ||
		strings.HasPrefix(comment, "//nolint") || strings.HasPrefix(comment, "// guard: ")
}

// addTexts adds the comments of a file, each with the declaration that it belongs to.
func (r *room) addTexts(fset *token.FileSet, file *ast.File) {
	seen := map[string]int{}
	for _, group := range file.Comments {
		body := strings.TrimSpace(group.Text())
		if body == "" || strings.HasPrefix(body, "guard: ") {
			continue
		}
		position := fset.Position(group.Pos())
		name := r.dir + ":" + declarationAt(file, group)
		seen[name]++
		r.texts = append(r.texts, text{
			position:    fmt.Sprintf("%s:%d", position.Filename, position.Line),
			declaration: fmt.Sprintf("%s#%d", name, seen[name]),
			body:        body,
		})
	}
}

// declarationAt returns the name of the declaration that a comment belongs to: "Type.method", "name", or "package".
func declarationAt(file *ast.File, group *ast.CommentGroup) string {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if covers(d, d.Doc, group) {
				if d.Recv != nil && len(d.Recv.List) > 0 {
					return receiverName(d.Recv.List[0].Type) + "." + d.Name.Name
				}
				return d.Name.Name
			}
		case *ast.GenDecl:
			if !covers(d, d.Doc, group) {
				continue
			}
			name := d.Tok.String()
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					name = spec.Name.Name
				case *ast.ValueSpec:
					name = spec.Names[0].Name
				}
				if group.Pos() < spec.End() {
					break
				}
			}
			return name
		}
	}
	return "package"
}

// covers reports whether a comment is a declaration's doc comment, is inside it, or follows it on its last line.
func covers(d ast.Node, doc, group *ast.CommentGroup) bool {
	return doc == group || d.Pos() <= group.Pos() && group.Pos() <= d.End()+1
}

// receiverName returns the name of a method's receiver type, without the pointer and type parameters.
func receiverName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiverName(x.X)
	case *ast.IndexExpr:
		return receiverName(x.X)
	case *ast.IndexListExpr:
		return receiverName(x.X)
	case *ast.Ident:
		return x.Name
	}
	return "?"
}
