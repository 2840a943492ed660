package version

import (
	"runtime"
	"strings"
)

// Host returns the machine and the system, as Python's platform module names them: "AMD64", "Windows".
func Host() (machine, system string) { return strings.ToUpper(runtime.GOARCH), "Windows" }
