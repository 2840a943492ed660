//go:build !unix

package fileserver

import (
	"io/fs"
	"path/filepath"
	"strings"
)

// nonblock is 0 on this system, where opening a file cannot block.
const nonblock = 0

// localName reports whether a name can be one file on this system: not a drive, device or stream name.
func localName(name string) bool {
	return !strings.ContainsAny(name, `\:`) && filepath.IsLocal(filepath.FromSlash(name))
}

func inodeOf(fs.FileInfo) uint64 { return 0 }

func sysStat(fs.FileInfo, *[10]int64) {}
