package configmod

import (
	"os"
	"path/filepath"
)

// hostsFile returns the file of host names.
func hostsFile() string {
	return filepath.Join(os.Getenv("SystemRoot"), "System32", "drivers", "etc", "hosts")
}
