//go:build !unix

package confined

import (
	"io/fs"
	"os"
)

// nonblock is 0 on this system, where opening a file cannot block.
const nonblock = 0

// readEntries reads an open directory.
func readEntries(f *os.File) ([]fs.DirEntry, error) { return f.ReadDir(-1) }
