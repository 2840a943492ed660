package saltcli

import (
	"fmt"
	"os"
)

// MakeDir creates a directory. On Windows it inherits its owner.
func MakeDir(path string, mode os.FileMode, _ string) error {
	if err := os.MkdirAll(path, mode); err != nil {
		return fmt.Errorf("cannot create directory: %w", err)
	}
	return nil
}

// MakePIDFile does nothing on Windows.
func MakePIDFile(string, string) error { return nil }
