//go:build !unix

package confined

import (
	"io/fs"
	"os"
)

// nonblock is nothing where opening a file cannot wait.
const nonblock = 0

// readEntries reads an open directory.
func readEntries(f *os.File) ([]fs.DirEntry, error) { return f.ReadDir(-1) }
