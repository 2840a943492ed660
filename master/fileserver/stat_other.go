//go:build !unix

package fileserver

import (
	"io/fs"
	"path/filepath"
	"strings"
)

// nonblock is nothing where opening a file cannot wait.
const nonblock = 0

// localName says whether a name can be one file here: no drive, device or stream name.
func localName(name string) bool {
	return !strings.ContainsAny(name, `\:`) && filepath.IsLocal(filepath.FromSlash(name))
}

func inode(fs.FileInfo) uint64 { return 0 }

func sysStat(fs.FileInfo, *[10]int64) {}
