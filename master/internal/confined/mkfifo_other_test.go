//go:build !unix

package confined_test

import "errors"

func mkfifo(string) error { return errors.ErrUnsupported }
