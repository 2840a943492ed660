package version

import (
	"runtime"
	"strings"
)

// Host returns the machine and system like Python's platform module: "AMD64", "Windows".
func Host() (machine, system string) { return strings.ToUpper(runtime.GOARCH), "Windows" }
