// Package checks checks lists of options.
package checks

import (
	"fmt"
	"slices"
)

// Each returns an error for the first value of a list that is bad. format has a verb for the value's number, which
// begins with 1.
func Each[T any](list []T, bad func(T) bool, format string) error {
	if i := slices.IndexFunc(list, bad); i >= 0 {
		return fmt.Errorf(format, i+1)
	}
	return nil
}
