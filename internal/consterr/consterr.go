// Package consterr has an error type for constants. An error of errors.New in a package variable is created when the
// program starts, and makes the compiler initialise the package's other variables, such as module declarations, by
// code as well.
package consterr

// Error is an error that consists of its text. Two errors with the same text are equal.
type Error string

func (e Error) Error() string { return string(e) }
