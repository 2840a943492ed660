// Package lazyre has regular expressions that are compiled at their first use.
//
// A variable of this type is data that the linker lays out. A call of regexp.MustCompile would run when the program
// starts, and makes the compiler initialise the package's other variables, such as module declarations, by code as
// well.
package lazyre

import (
	"regexp"
	"sync"
)

// Regexp is a regular expression. It must not be copied.
type Regexp struct {
	// Expr is the expression in Go's syntax.
	Expr string

	once     sync.Once
	compiled *regexp.Regexp
}

// Get returns the compiled expression. It panics if Expr is not valid, as regexp.MustCompile does.
func (r *Regexp) Get() *regexp.Regexp {
	r.once.Do(func() { r.compiled = regexp.MustCompile(r.Expr) })
	return r.compiled
}
