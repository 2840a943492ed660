package heat

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/brine-salt/brine/internal/atomicfile"
)

// writeHostFile replaces a configuration file of the host that other programs read. An existing file keeps its mode
// and owner, and links are followed; a new file gets mode. If directories are missing, the innermost one is created
// private, as the hooks do.
func writeHostFile(path string, b []byte, mode fs.FileMode) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return atomicfile.Replace(path, b, mode)
}
