// Package consterr holds errors that are constants. An error of errors.New in a package variable is made when the program
// starts, and would have the compiler build the package's other variables, such as the declarations of a module, by code as well.
package consterr

// Error is an error whose text is all there is to it. Two with the same text are equal.
type Error string

func (e Error) Error() string { return string(e) }
