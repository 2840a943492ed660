package brine_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// TestLogLines: lines of the log begin with a capital, as stock's do, so that a log with both reads as one. A name of Salt's,
// such as that of an option, keeps its letters.
func TestLogLines(t *testing.T) {
	lines := 0
	eachGoFile(t, ".", func(_ string, files *token.FileSet, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			lit := logText(n)
			if lit == nil {
				return true
			}
			lines++
			text, err := strconv.Unquote(lit.Value)
			asStock := slices.ContainsFunc(stocksLogLines, func(begin string) bool { return strings.HasPrefix(text, begin) })
			if word, _, _ := strings.Cut(text, " "); err == nil && word != "" && unicode.IsLower([]rune(word)[0]) &&
				!strings.ContainsAny(word, "_:./") && !asStock {
				t.Errorf("%s: %q does not begin with a capital", files.Position(lit.Pos()), text)
			}
			return true
		})
	})
	if lines < 400 {
		t.Errorf("only %d lines were found", lines)
	}
}

// stocksLogLines are how lines begin that have a small letter in stock too.
var stocksLogLines = []string{"saltutil returning ", "expected integer ", "could not stat ", "failed to set state ", "df cannot ", "etcd3 ",
	"syslog has no ", "tag must ", "tag size "}

// logText returns the literal with which the text of a call of a logger begins, nil if n is no such call or begins with something else.
func logText(n ast.Node) *ast.BasicLit {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return nil
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	at := 0
	switch {
	case !ok:
		return nil
	case slices.Contains([]string{"Debug", "Info", "Warn", "Error"}, method.Sel.Name):
	case method.Sel.Name == "Log" || method.Sel.Name == "LogAttrs":
		at = 2
	default:
		return nil
	}
	var of string
	switch x := method.X.(type) {
	case *ast.Ident:
		of = x.Name
	case *ast.SelectorExpr:
		of = x.Sel.Name
	case *ast.CallExpr:
		if s, ok := x.Fun.(*ast.SelectorExpr); ok {
			of = s.Sel.Name
		}
	}
	if !slices.Contains([]string{"log", "Log", "slog", "logger", "Logger", "With"}, of) || len(call.Args) <= at {
		return nil
	}
	arg := call.Args[at]
	for {
		switch x := arg.(type) {
		case *ast.BasicLit:
			return x
		case *ast.BinaryExpr:
			arg = x.X
			continue
		case *ast.CallExpr:
			if s, ok := x.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Sprintf" {
				arg = x.Args[0]
				continue
			}
		}
		return nil
	}
}
