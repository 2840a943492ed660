//go:build !linux

package archive

import (
	"archive/tar"
	"errors"
	"os"
)

// node returns an error: the system has neither pipes nor devices in archives.
func node(*os.Root, string, *tar.Header) error { return errors.ErrUnsupported }
