//go:build !linux

package aptpkg

import (
	"os"
	"time"
)

// changed is when a file was changed last.
func changed(info os.FileInfo) time.Time { return info.ModTime() }
