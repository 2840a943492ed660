package daemon

import "os"

func endSignals() []os.Signal { return []os.Signal{os.Interrupt} }

func notifyExtra(_, _ chan os.Signal) {}
