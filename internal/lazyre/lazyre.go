// Package lazyre holds regular expressions that are compiled when they are first used.
//
// A variable of this type is data: the linker lays it out. A function call in its place would run when the program starts, and
// would have the compiler build the package's other variables, such as the declarations of a module, by code as well.
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
