//go:build !windows

package atomicfile

import (
	"fmt"
	"os"
)

// SyncDir writes new and removed names in dir to the disk, so that they survive a crash of the machine.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("cannot sync directory: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("cannot sync directory %q: %w", dir, err)
	}
	return nil
}
