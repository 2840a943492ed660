package daemon

import "errors"

// Again returns an error: on Windows the service manager restarts the program.
func Again() error { return errors.New("cannot restart: left to the service manager") }
