//go:build !linux

package pkglist

import (
	"os"
	"time"
)

// Changed returns when a file was modified last.
func Changed(info os.FileInfo) time.Time { return info.ModTime() }
