package daemon

import "errors"

// Again is left to the service manager on Windows.
func Again() error { return errors.New("cannot start again: left to the service manager") }
