package daemon

import (
	"errors"
	"os"
)

func endSignals() []os.Signal { return []os.Signal{os.Interrupt} }

func notifyExtra(_, _ chan os.Signal) {}

// Detach returns an error: on Windows the service manager keeps daemons in the background.
func Detach(string, []string, []string) error {
	return errors.New("cannot go into the background on Windows: run it as a service")
}
