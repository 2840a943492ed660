package daemon

import "errors"

const noFollow = 0

var errBackground = errors.New("cannot go into the background on Windows: run it as a service")

// Detach returns an error: on Windows the service manager keeps daemons in the background.
func Detach(string, []string, []string) error { return errBackground }

func detachAndWait(string, []string, []string) (int, error) { return 0, errBackground }

func leaveTerminal() error { return nil }
