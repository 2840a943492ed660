//go:build !unix

package saltlog

import "os"

// openAppend opens a log file.
func openAppend(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
}
